/**
 * Makes the pictures of the README: a real gateway in front of the sample store, an hour of mixed reads, the real page.
 * The hour passes in three minutes: until then the gateway's clock runs twenty times as fast as the machine's.
 *
 *     node test/browser/screenshots.ts [FOLDER]
 *
 * With a folder, pictures of the whole page go there too, to be looked at.
 */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser, Page } from 'playwright-core';
import { z } from 'zod';
import { type Clock, systemClock } from '../../src/time/clock.ts';
import { loadConfig } from '../../src/config/load.ts';
import { type Gateway, startGateway } from '../../src/gateway.ts';
import { createLogger } from '../../src/log/logger.ts';
import { createSampleData } from '../../src/sample/data.ts';
import { SampleUpstream } from '../../src/sample/server.ts';
import { launchChromium } from './chromium.ts';

const HASTE = 20;
const DRIVEN_MS = 180_000;
const READS_PER_SECOND = 120;
/** Then some at the machine's own pace, so that the numbers of now are those of now. */
const AFTERWARDS_MS = 75_000;
const [, , whole] = process.argv;
const IMAGES = fileURLToPath(new URL('../../docs/images/', import.meta.url));

/** Runs `HASTE` times as fast as the machine's, and meets it at `endMs`; from then on it is the machine's. */
function hastened(endMs: number): Clock {
  const micros = (): number => {
    const real = systemClock.nowMicros();
    return real - (HASTE - 1) * Math.max(0, endMs * 1000 - real);
  };
  return { nowMicros: () => Math.floor(micros()), nowMs: () => Math.floor(micros() / 1000) };
}

const issuedSchema = z.object({ token: z.string() });
const pageSchema = z.object({ calls: z.array(z.object({ id: z.string() })) });

const data = createSampleData({ seed: 7, evaluations: 3000 });
const token = 'sample-store-token';
const store = new SampleUpstream({ data, token, latency: 20 });
const { url } = await store.listen(0);
const { workspaceId } = data.demo;
const endMs = Date.now() + DRIVEN_MS;
// Read times pass as fast as the clock.
const CONFIG_FILE = join(mkdtempSync(join(tmpdir(), 'evalgate-pictures-')), 'evalgate.yaml');
writeFileSync(CONFIG_FILE, 'objectives: {hitP99: 60s, missP99: 5m}');
const gateway = await startGateway(
  loadConfig({ env: { PORT: '0', ADMIN_PORT: '0', UPSTREAM_URL: url, UPSTREAM_TOKEN: token, CONFIG_FILE } }),
  { logger: createLogger({ level: 'silent' }), clock: hastened(endMs) },
);
const browser = await launchChromium();
try {
  const key = await issueKey('Coaching portal');
  await issueKey('Nightly export');
  await drive(gateway, key);
  await admin('PUT', '/api/cache/ttl/scorecard', { fresh: '20m' });
  await admin('POST', '/api/cache/purge', { tags: ['class:notFound'], mode: 'soft' });
  await takePictures(browser, gateway);
} finally {
  await browser.close();
  await gateway.stop(0);
  await store.close();
}

async function admin(method: string, path: string, body: object): Promise<unknown> {
  const answer = await fetch(`${gateway.adminUrl}${path}`, {
    method,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`${method} ${path}: ${await answer.text()}`);
  const content: unknown = await answer.json();
  return content;
}

async function issueKey(name: string): Promise<string> {
  const scopes = ['reports.read', 'calls.read', 'coaching.read'];
  const limits = { perMinute: 1_000_000, perHour: 10_000_000 };
  return issuedSchema.parse(await admin('POST', '/api/keys', { name, workspaceIds: [workspaceId], scopes, ...limits }))
    .token;
}

/** Reads as people do: few calls often and many seldom, more in the middle of the hour, with a short outage of the store. */
async function drive({ publicUrl }: Gateway, key: string): Promise<void> {
  const get = async (path: string): Promise<unknown> => {
    const answer = await fetch(publicUrl + path, { headers: { authorization: `Bearer ${key}` } });
    const content: unknown = await answer.json();
    return content;
  };
  const pages = await Promise.all([1, 2, 3, 4, 5, 6].map((page) => get(`/v2/calls?page=${page}`)));
  const ids = pages.flatMap((page) => pageSchema.parse(page).calls.map(({ id }) => id));
  const pick = (): string => ids[Math.floor(ids.length ** Math.random()) - 1] ?? '';
  const kinds: readonly (readonly [number, () => string])[] = [
    [22, () => `/v2/calls?page=${1 + Math.floor(6 * Math.random() ** 3)}`],
    [30, () => `/v2/calls/${pick()}`],
    [18, () => `/v2/calls/${pick()}/transcript`],
    [12, () => `/v2/calls/${pick()}/scorecard`],
    [10, () => `/v1/workspaces/${workspaceId}/reports/${pick()}/deal-insights`],
    [5, () => `/v2/scorecards/${data.demo.scorecardId}/rubric`],
    [3, () => `/v2/calls/gone_${Math.floor(Math.random() * 8)}`],
  ];
  const under = new Set<Promise<unknown>>();
  for (let left = endMs - Date.now(); left > -AFTERWARDS_MS; left = endMs - Date.now()) {
    const share = Math.min(1, 1 - left / DRIVEN_MS);
    const perSecond = left > 0 ? READS_PER_SECOND : READS_PER_SECOND / HASTE;
    store.setFaults(share > 0.62 && share < 0.66 ? { errorRate: 1 } : {});
    const path = drawn(kinds);
    const read = get(path).catch(() => null);
    under.add(read);
    void read.finally(() => under.delete(read));
    await sleep((1000 / perSecond) * (1.4 - 0.8 * Math.sin(Math.PI * share)) * 2 * Math.random());
  }
  await Promise.all(under);
}

function drawn(kinds: readonly (readonly [number, () => string])[]): string {
  let left = Math.random() * kinds.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, path] of kinds) {
    left -= weight;
    if (left <= 0) return path();
  }
  return '/v2/calls';
}

async function takePictures(from: Browser, { adminUrl }: Gateway): Promise<void> {
  mkdirSync(IMAGES, { recursive: true });
  for (const colorScheme of ['dark', 'light'] as const) {
    const page = await from.newPage({
      viewport: { width: 1360, height: 900 },
      locale: 'en-GB',
      colorScheme,
      reducedMotion: 'reduce',
    });
    for (const view of ['health', 'cache', 'keys']) {
      await page.goto(`${adminUrl}/#${view}`);
      await page.locator('.panel[data-state="waiting"]').first().waitFor({ state: 'detached' });
      await sleep(3000);
      if (view === 'health') await page.screenshot({ path: `${IMAGES}dashboard-${colorScheme}.png` });
      if (view === 'cache' && colorScheme === 'light') await pictureWhatIf(page);
      if (whole !== undefined)
        await page.screenshot({ path: join(whole, `${view}-${colorScheme}.png`), fullPage: true });
    }
    await page.close();
  }
}

async function pictureWhatIf(page: Page): Promise<void> {
  const whatIf = page.locator('#what-if');
  await whatIf.getByRole('combobox', { name: 'Class' }).selectOption('list');
  const slider = whatIf.getByRole('slider', { name: 'Fresh TTL' });
  await slider.focus();
  for (let step = 0; step < 2; step += 1) await slider.press('ArrowRight');
  await sleep(500);
  await whatIf.screenshot({ path: `${IMAGES}what-if.png` });
}
