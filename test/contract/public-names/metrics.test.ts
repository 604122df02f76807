/** The metrics: names, types and names of labels, as Prometheus reads them. */
import { afterAll, expect, test, vi } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { WORKSPACE_A } from '../../support/records.ts';
import { startRedis } from '../../support/redis.ts';
import { GatewayProcess } from '../../support/process.ts';
import { expectPinned } from './pin.ts';
import { askEverything, startBusyGateway } from './world.ts';

const redis = await forFile(startRedis());
const alone = await startBusyGateway();
const shared = await startBusyGateway({ REDIS_URL: redis.url });
for (const gateway of [alone, shared]) await askEverything(gateway);
// Room for one call to the store: the next is refused.
const config = 'upstream: {maxConnections: 1, maxQueue: 0, breakerPercent: null, retryPercent: 0}';
const { store, clock } = shared;
const sibling = await startTestGateway({ env: { REDIS_URL: redis.url }, config, store, clock });
await waitForEachOther();
await refuseCalls();
const { url, token } = shared.store;
const workers = await GatewayProcess.start({
  env: { REDIS_URL: redis.url, WORKERS: '2', DRAIN_DELAY: '0s', UPSTREAM_URL: url, UPSTREAM_TOKEN: token },
});
afterAll(async () => {
  await workers.stop();
  for (const gateway of [sibling, alone, shared]) await gateway.close();
});

/** One gateway asks the store, and the other waits for what it gets. */
async function waitForEachOther(): Promise<void> {
  const key = await shared.issueKey({ perMinute: 1000 });
  let tried = 0;
  await vi.waitFor(
    async () => {
      tried += 1;
      const path = `/v2/calls/ev_together_${tried}`;
      const gate = shared.store.hold();
      const before = shared.store.calls();
      const first = shared.get(path, { key });
      await shared.store.waitForCalls(before + 1);
      const second = sibling.get(path, { key });
      await vi.waitUntil(async () => (await explained(sibling, path)).flight.since !== null);
      gate.release();
      await Promise.all([first, second]);
      expect((await sibling.admin('GET', '/metrics')).text).toContain('evalgate_cache_lease_wait_seconds_count{');
    },
    { timeout: 20_000 },
  );
}

async function explained(gateway: TestGateway, path: string) {
  const { json } = await gateway.admin('GET', `/api/cache/explain?path=${path}&workspace=${WORKSPACE_A}`);
  return z.object({ flight: z.object({ since: z.string().nullable() }) }).parse(json);
}

async function refuseCalls(): Promise<void> {
  const key = await sibling.issueKey({ perMinute: 1000 });
  const gate = sibling.store.hold();
  const before = sibling.store.calls();
  const held = sibling.get('/v2/calls/ev_held', { key });
  await sibling.store.waitForCalls(before + 1);
  expect((await sibling.get('/v2/calls/ev_refused', { key })).status).toBe(500);
  gate.release();
  await held;
}

/** Each metric with its type and its labels; of the runtime's own, whose samples come and go, the name. */
async function metricsOf(...adminUrls: readonly string[]): Promise<readonly string[]> {
  const texts = await Promise.all(adminUrls.map(async (adminUrl) => (await fetch(`${adminUrl}/metrics`)).text()));
  const text = texts.join('\n');
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]));
  const labels = new Map<string, Set<string>>();
  for (const [, sample = '', pairs = ''] of text.matchAll(/^([a-z_]+)(?:\{(.*)\})? \S+$/gm)) {
    const name = types.has(sample) ? sample : sample.replace(/_(?:bucket|sum|count)$/, '');
    expect([sample, types.has(name)]).toEqual([sample, true]);
    const own = labels.get(name) ?? new Set();
    labels.set(name, own);
    for (const [, label = ''] of pairs.matchAll(/([a-zA-Z_]+)="/g)) if (label !== 'le') own.add(label);
  }
  return [...types]
    .map(([name, type]) => {
      const own = labels.get(name);
      if (!name.startsWith('evalgate_')) return `${name} ${type}`;
      return `${name} ${type} ${own === undefined ? '(no sample)' : `{${[...own].toSorted().join(', ')}}`}`;
    })
    .toSorted();
}

test('metrics are as pinned, with Redis and without', async () => {
  const without = await metricsOf(alone.adminUrl);
  const withRedis = await metricsOf(shared.adminUrl, sibling.adminUrl);
  const withWorkers = await metricsOf(workers.adminUrl);
  const names = new Set(withRedis.map((line) => line.split(' ')[0]));
  await expectPinned('metrics.txt', [
    ...withRedis,
    '',
    '# Without a sample where there is no Redis, or no other gateway',
    ...without.filter((line) => line.endsWith('(no sample)')),
    '',
    '# With several workers also',
    ...withWorkers.filter((line) => !names.has(line.split(' ')[0])),
  ]);
  expect(without.map((line) => line.split(' ')[0])).toEqual([...names]);
  expect(withRedis.filter((line) => line.endsWith('(no sample)'))).toEqual([]);
});
