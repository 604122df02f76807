/** The dashboard of a real gateway in a real browser, watched for everything that it must not do. */
import { expect, onTestFinished, vi } from 'vitest';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { samplesOf } from '../support/admin.ts';
import { startTestGateway, type TestGateway, type TestGatewayOptions } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { launchChromium } from './chromium.ts';

/** Forbidden actions of the page: a test fails on any of them. */
interface Watched {
  readonly elsewhere: readonly string[];
  readonly complaints: readonly string[];
}

export interface DashboardOptions extends Pick<BrowserContextOptions, 'viewport' | 'colorScheme' | 'locale'> {
  /** Console messages that the test provokes: a refused call is told there by the browser itself. */
  readonly tolerated?: RegExp;
}

let browser: Promise<Browser> | undefined;

/** One browser for all tests of a file. */
export async function closeBrowser(): Promise<void> {
  await (await browser)?.close();
  browser = undefined;
}

const PAST_MS = 600_000;

/**
 * A gateway at the browser's own time, which can't be moved: the gateway's stands still unless the test moves it. It
 * began ten minutes ago and has read nothing since.
 */
export async function startIdle(env: TestGatewayOptions['env'] = {}): Promise<TestGateway> {
  const gateway = await startTestGateway({ env, clock: new ManualClock(Date.now() - PAST_MS) });
  gateway.clock.advance(PAST_MS);
  return gateway;
}

const IN_FLIGHT = 'evalgate_store_calls_in_flight';

/** The same; in its ten minutes it has read a dozen calls, some often and some seldom. */
export async function startBusy(): Promise<{ readonly gateway: TestGateway; readonly key: string }> {
  const gateway = await startTestGateway({ clock: new ManualClock(Date.now() - PAST_MS) });
  const key = await gateway.issueKey({ perMinute: 100_000, perHour: 1_000_000, workspaceIds: [WORKSPACE_A] });
  const ids = Array.from({ length: 12 }, (_, index) => `ev_${index + 1}`);
  gateway.store.put({ evaluations: ids.map((id) => anEvaluation({ _id: id })) });
  const rounds = 15;
  // The last round is of this moment.
  for (let round = 0; round <= rounds; round += 1) {
    if (round > 0) gateway.clock.advance(PAST_MS / rounds);
    const asked = ids.filter((_, index) => round % (index + 1) === 0);
    await Promise.all(asked.map((id) => gateway.get(`/v2/calls/${id}`, { key })));
    // A refresh that runs on while the clock moves would count as a slow call.
    await vi.waitFor(async () => expect(await samplesOf(gateway, IN_FLIGHT)).toEqual({ [IN_FLIGHT]: 0 }));
  }
  return { gateway, key };
}

export type View = 'health' | 'cache' | 'keys';

/**
 * Opens a view of the dashboard; when the test ends it is closed, and what was watched is checked. The locale of the machine
 * may be one that `Intl` refuses, en-US@posix: the page works with it, without charts.
 */
export async function openDashboard(gateway: TestGateway, view: View, options: DashboardOptions = {}): Promise<Page> {
  const { tolerated, ...context } = options;
  browser ??= launchChromium();
  const page = await (await browser).newPage({ viewport: { width: 1440, height: 900 }, locale: 'en-GB', ...context });
  const watched = watch(page, gateway, tolerated);
  onTestFinished(async () => {
    await page.context().close();
    expect(watched).toEqual({ elsewhere: [], complaints: [] });
  });
  page.setDefaultTimeout(8000);
  await page.goto(`${gateway.adminUrl}/#${view}`);
  return page;
}

/** Waits until every section of the view has what it shows. */
export async function filled(page: Page): Promise<void> {
  await page.locator('.panel').first().waitFor();
  await expect.poll(() => page.locator('.panel[data-state="waiting"]').count(), { timeout: 8000 }).toBe(0);
}

/** Goes to a view as people do. */
export async function goTo(page: Page, name: 'Health' | 'Cache' | 'Keys'): Promise<void> {
  const navigation = page.getByRole('navigation');
  await navigation.getByRole('link', { name }).click();
  // Until then the panels are those of the view before.
  await navigation.locator('[aria-current="page"]', { hasText: name }).waitFor();
  await filled(page);
}

function watch(page: Page, { adminUrl }: TestGateway, tolerated: RegExp | undefined): Watched {
  const elsewhere: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(`${adminUrl}/`) && !url.startsWith('data:')) elsewhere.push(url);
  });
  // Violations of the Content-Security-Policy are errors on the console.
  page.on('console', (message) => {
    if (message.type() === 'error' && tolerated?.test(message.text()) !== true) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return { elsewhere, complaints };
}
