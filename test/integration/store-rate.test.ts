/** `upstream.maxRequestsPerSecond` of gateways that share a Redis: together they send no more than that. */
import { beforeEach, expect, test } from 'vitest';
import { forFile, forTest } from '../support/opened.ts';
import { startRedis } from '../support/redis.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';
import { putCalls, startUpstreamGateway, type UpstreamGateway } from '../support/upstream-settings.ts';

const redis = await forFile(startRedis());
beforeEach(() => redis.flush());

async function startStore(): Promise<StoreServer> {
  const store = await forTest(createStoreServer());
  return store;
}

function start(store: StoreServer, maxRequestsPerSecond: number): Promise<UpstreamGateway> {
  const limits = { maxRequestsPerSecond, maxQueue: 1000, queueTimeout: '60s', timeout: '60s' };
  return startUpstreamGateway(limits, { store, env: { REDIS_URL: redis.url } });
}

/** Reads so many calls at once through each gateway; returns the milliseconds between the first and the last call to the store. */
async function readAll(store: StoreServer, gateways: readonly UpstreamGateway[], reads: number): Promise<number> {
  store.requests.length = 0;
  const replies = gateways.flatMap((gateway, index) =>
    putCalls(gateway, reads, `by_${index}`).map((id) => gateway.read(id)),
  );
  expect(new Set((await Promise.all(replies)).map(({ status }) => status))).toEqual(new Set([200]));
  const times = store.requests.map(({ arrivedAtMs }) => arrivedAtMs);
  return Math.max(...times) - Math.min(...times);
}

test('two gateways together send no more than the rate, but for a tenth of a second at once', async () => {
  const store = await startStore();
  const gateways = [await start(store, 100), await start(store, 100)];
  const tookMs = await readAll(store, gateways, 50);
  expect(store.calls('evaluation')).toBe(100);
  // A burst of ten, and leave for some more that a gateway took in advance.
  expect(tookMs).toBeGreaterThanOrEqual((100 - 20) * 10);
});

test('a rate of a few a second is kept too', async () => {
  const store = await startStore();
  expect(await readAll(store, [await start(store, 5)], 6)).toBeGreaterThanOrEqual(4 * 200);
});

test('while Redis is away a gateway goes on by itself', async () => {
  const store = await startStore();
  const gateway = await start(store, 50);
  await gateway.read('warm');
  await redis.kill();
  try {
    const replies = putCalls(gateway, 10).map((id) => gateway.read(id));
    // The clock of the gateway stands still: move it, so that its own count of calls goes on.
    for (let moved = 0; store.calls('evaluation') < 11 && moved < 10_000; moved += 1) {
      gateway.clock.advance(20);
      await gateway.admin('GET', '/livez');
    }
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual(replies.map(() => 200));
  } finally {
    await redis.restart();
  }
});
