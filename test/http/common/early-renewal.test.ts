/** Copies that are read often are renewed before they are stale, if the store has room. */
import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { putCalls, startUpstreamGateway, type UpstreamGateway } from '../../support/upstream-settings.ts';

/** `upstream` beside the times of calls: fresh for 100 s, of which jitter takes ten at most. */
async function start(upstream: Readonly<Record<string, unknown>> = {}): Promise<UpstreamGateway> {
  return await startUpstreamGateway(upstream, { env: { CACHE_EVALUATION_FRESH: '100s' } });
}

/** Reads the call every so many seconds; returns by which words of `Cache-Status` the reads were answered. */
async function readEvery(
  gateway: UpstreamGateway,
  id: string,
  { seconds = 0, times = 0 },
): Promise<ReadonlySet<string>> {
  const answers = new Set<string>();
  for (let read = 0; read < times; read += 1) {
    gateway.clock.advance(1000 * seconds);
    const status = String((await gateway.read(id)).headers['cache-status']);
    const [, ttl = '0'] = /ttl=(\d+)/.exec(status) ?? [];
    answers.add(/hit; ttl=\d+$|detail=[a-z-]+$/.exec(status)?.[0].replace(ttl, 'N') ?? status);
    // A renewal ends before the next read.
    if (Number(ttl) <= 10) {
      await vi.waitUntil(async () => (await gateway.metric('evalgate_store_calls_in_flight')) === 0);
    }
  }
  return answers;
}

const statsSchema = z.object({ classes: z.array(z.looseObject({ class: z.string(), earlyRenewals: z.number() })) });

async function earlyRenewals(gateway: UpstreamGateway): Promise<number | undefined> {
  const { classes } = statsSchema.parse((await gateway.admin('GET', '/api/cache')).json);
  return classes.find((one) => one.class === 'evaluation')?.earlyRenewals;
}

test('a call that is read 50 times per freshness is never served stale, by few more store calls', async () => {
  const gateway = await start();
  const [id = ''] = putCalls(gateway, 1);
  await gateway.read(id);
  expect(await readEvery(gateway, id, { seconds: 2, times: 500 })).toEqual(new Set(['hit; ttl=N']));
  // In 1000 s, by freshnesses of 90 to 100 s: 10 to 11 without.
  expect(gateway.store.calls('evaluation')).toBeLessThanOrEqual(1 + 12);
  expect(await earlyRenewals(gateway)).toBe(gateway.store.calls('evaluation') - 1);
});

test('one that is read less often is renewed when it is stale', async () => {
  const gateway = await start();
  const [id = ''] = putCalls(gateway, 1);
  await gateway.read(id);
  expect(await readEvery(gateway, id, { seconds: 12, times: 30 })).toContain('detail=stale-while-revalidate');
  expect(await earlyRenewals(gateway)).toBe(0);
});

test('nothing is renewed early while the limit of calls is reached, or during maintenance', async () => {
  const gateway = await start({ maxConnections: 1 });
  const [id = '', other = ''] = putCalls(gateway, 2);
  await gateway.read(id);
  await readEvery(gateway, id, { seconds: 2, times: 39 });
  gateway.clock.advance(11_000);
  const hold = gateway.store.hold();
  const waiting = gateway.read(other);
  await gateway.store.waitForCalls(2);
  expect((await gateway.read(id)).headers['cache-status']).toMatch(/hit; ttl=\d+$/);
  hold.release();
  await waiting;
  const begun = await gateway.admin('PUT', '/api/cache/maintenance', { for: '10m' });
  expect(begun.status).toBe(200);
  expect((await gateway.read(id)).headers['cache-status']).toMatch(/hit; ttl=\d+$/);
  expect([gateway.store.calls(), await earlyRenewals(gateway)]).toEqual([2, 0]);
});

test('a renewal that fails leaves the copy as it is, and is tried again a second later', async () => {
  const gateway = await start();
  const [id = ''] = putCalls(gateway, 1);
  await gateway.read(id);
  await readEvery(gateway, id, { seconds: 2, times: 39 });
  const recover = gateway.store.fail(500);
  gateway.clock.advance(11_000);
  await readEvery(gateway, id, { times: 3 });
  expect(gateway.store.calls('evaluation')).toBe(2);
  recover();
  gateway.clock.advance(1000);
  await readEvery(gateway, id, { times: 3 });
  expect(gateway.store.calls('evaluation')).toBe(3);
});
