/** The rate of calls to the store that all processes share, in a real Redis. */
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { systemTimers } from '../../src/timers.ts';
import type { CallRate } from '../../src/upstream/guard/call-rate.ts';
import { createRedisCallRate } from '../../src/upstream/guard/redis-call-rate.ts';
import { scriptStats } from '../support/quota-cost.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startRedis({ controls: true });
});
afterAll(() => redis.close());
beforeEach(() => redis.flush());

async function openProcess(perSecond: number, processes: number): Promise<{ rate: CallRate; link: RedisLink }> {
  const link = openRedis({ url: redis.url, role: 'state' });
  onTestFinished(() => link.close());
  await linkUp(link);
  const rate = createRedisCallRate({
    link,
    store: 'store',
    perSecond,
    processes: () => processes,
    clock: systemClock,
    timers: systemTimers,
  });
  return { rate, link };
}

/** Takes whatever can be taken for so long; the times of what was. */
async function takeAll(rate: CallRate, durationMs: number): Promise<number[]> {
  const endMs = performance.now() + durationMs;
  const takenAtMs: number[] = [];
  while (performance.now() < endMs) {
    const { promise: more, resolve } = Promise.withResolvers<void>();
    if (rate.take(resolve)) takenAtMs.push(performance.now());
    else await more;
  }
  return takenAtMs;
}

function mostInASecond(timesMs: readonly number[]): number {
  const sorted = timesMs.toSorted((a, b) => a - b);
  return Math.max(...sorted.map((fromMs) => sorted.filter((atMs) => atMs >= fromMs && atMs < fromMs + 1000).length));
}

test('two processes together send no more than the rate, but for a tenth of a second at once', async () => {
  const processes = [await openProcess(200, 2), await openProcess(200, 2)];
  const taken = await Promise.all(processes.map(({ rate }) => takeAll(rate, 1500)));
  const all = taken.flat();
  expect(mostInASecond(all)).toBeLessThanOrEqual(200 * 1.2 + 1);
  expect(all.length).toBeGreaterThan(100);
  expect(Math.min(...taken.map(({ length }) => length))).toBeGreaterThan(10);
});

test('a process alone in using it gets all of the rate, and asks Redis once for several calls', async () => {
  const { rate, link } = await openProcess(1000, 4);
  const before = (await scriptStats(link.client)).calls;
  const taken = await takeAll(rate, 500);
  expect(taken.length).toBeGreaterThan(150);
  expect((await scriptStats(link.client)).calls - before).toBeLessThan(taken.length / 5);
});

test('a rate of a few a second is kept too', async () => {
  const { rate } = await openProcess(5, 3);
  expect((await takeAll(rate, 1500)).length).toBeLessThanOrEqual(9);
});

test('while Redis is frozen or gone a process goes on with its share', async () => {
  const { rate } = await openProcess(200, 4);
  await takeAll(rate, 100);
  await redis.pause();
  const frozen = await takeAll(rate, 1500);
  await redis.resume();
  // Half a second until it is noticed.
  expect(frozen.length).toBeGreaterThan(5);
  expect(frozen.length).toBeLessThanOrEqual(20 + 1.5 * 55);
});
