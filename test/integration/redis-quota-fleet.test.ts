import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { rateLimitHeaders } from '../support/quota-headers.ts';
import { QUOTA_WINDOWS } from '../../src/quota/log.ts';
import { createRedisQuota } from '../../src/quota/redis-quota.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { scriptStats } from '../support/quota-cost.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let link: RedisLink;
beforeAll(async () => {
  redis = await startRedis();
  link = openRedis({ url: redis.url, role: 'state' });
  await linkUp(link);
});
afterAll(async () => {
  await link.close();
  await redis.close();
});

async function scriptCalls(): Promise<number> {
  return (await scriptStats(link.client)).calls;
}

test('a refused key that hammers costs Redis nothing until its earliest retry', async () => {
  const quota = createRedisQuota({ redis: link, clock: systemClock });
  const limits = { perMinute: 3, perHour: 50 };
  for (let i = 0; i < 4; i += 1) await quota.take('hammered', limits);
  const before = await scriptCalls();
  for (let i = 0; i < 20_000; i += 1) {
    const decision = await quota.take('hammered', limits);
    if (decision.admitted) throw new Error('Admitted over the limit.');
  }
  expect((await scriptCalls()) - before).toBe(0);
});

test('R2: Retry-After counts down while refusals are answered from memory', async () => {
  const quota = createRedisQuota({ redis: link, clock: systemClock });
  const limits = { perMinute: 1, perHour: 50 };
  const admitted = await quota.take('waits', limits);
  const first = await quota.take('waits', limits);
  expect(first.retryAtMicros).toBe(admitted.nowMicros + QUOTA_WINDOWS.minuteMicros + 1);
  await new Promise((resume) => setTimeout(resume, 30));
  const later = await quota.take('waits', limits);
  expect(later.retryAtMicros).toBe(first.retryAtMicros);
  expect(later.nowMicros - first.nowMicros).toBeGreaterThanOrEqual(25_000);
  expect(rateLimitHeaders(later)).toMatchObject({
    'Retry-After': '60',
    'X-RateLimit-Minute-Reset': String(Math.ceil((admitted.nowMicros + QUOTA_WINDOWS.minuteMicros) / 1e6)),
  });
});

test('R1: a limit that was raised is in force at once, for a key that was just refused', async () => {
  const quota = createRedisQuota({ redis: link, clock: systemClock });
  await quota.take('raised', { perMinute: 1, perHour: 50 });
  expect((await quota.take('raised', { perMinute: 1, perHour: 50 })).admitted).toBe(false);
  expect((await quota.take('raised', { perMinute: 2, perHour: 50 })).admitted).toBe(true);
  expect(await quota.take('raised', { perMinute: 1, perHour: 50 })).toMatchObject({
    admitted: false,
    hour: { remaining: 48 },
  });
});

test('requests of one turn go in one call, each with its own answer', async () => {
  const quota = createRedisQuota({ redis: link, clock: systemClock });
  await quota.take('warm', { perMinute: 1, perHour: 1 });
  const before = await scriptCalls();
  const wide = { perMinute: 100, perHour: 1000 };
  // Each from a callback of its own, as requests of many connections come.
  const decisions = await Promise.all(
    Array.from({ length: 50 }, async () => {
      await new Promise((resume) => setImmediate(resume));
      return quota.take('turn', wide);
    }),
  );
  expect((await scriptCalls()) - before).toBe(1);
  expect(decisions.map((decision) => decision.minute.remaining)).toEqual(Array.from({ length: 50 }, (_, i) => 99 - i));
});

test('requests of one turn that go by different limits are each decided by their own', async () => {
  const quota = createRedisQuota({ redis: link, clock: systemClock });
  const narrow = { perMinute: 2, perHour: 1000 };
  const wide = { perMinute: 4, perHour: 1000 };
  const decisions = await Promise.all(
    [narrow, narrow, narrow, wide, wide, wide].map(async (limits) => await quota.take('mixed', limits)),
  );
  expect(decisions.map(({ admitted, minute }) => [admitted, minute.remaining])).toEqual([
    [true, 1],
    [true, 0],
    [false, 0],
    [true, 1],
    [true, 0],
    [false, 0],
  ]);
});

test('more requests of one turn than fit into one call are all decided on', async () => {
  const quota = createRedisQuota({ redis: link, clock: systemClock });
  const limits = { perMinute: 1700, perHour: 100_000 };
  const decisions = await Promise.all(Array.from({ length: 2500 }, async () => await quota.take('many', limits)));
  expect(decisions.filter((decision) => decision.admitted).length).toBe(1700);
});
