/** R5: what a process admitted while it could not ask Redis is added to the log there: in order, in its time, once. */
import { randomUUID } from 'node:crypto';
import { afterAll, expect, test } from 'vitest';
import { systemClock } from '../../src/time/clock.ts';
import { RedisLimiter } from '../../src/quota/redis-limiter.ts';
import { RedisLink } from '../../src/redis/connection.ts';
import { quotaLogKey } from '../../src/redis/names.ts';
import { forFile } from '../support/opened.ts';
import { connectToAny } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const SECOND = 1_000_000;
const HOUR = 3600 * SECOND;

const redis = await forFile(startRedis());
const raw = await connectToAny(redis.url, 5000);
afterAll(() => raw.disconnect());
const link = await forFile(new RedisLink({ url: redis.url, role: 'state' }));
await new Promise<void>((resolve) => void link.onUp(resolve));
const limiter = new RedisLimiter({ redis: link, clock: systemClock, onForgotten: () => undefined });

async function nowMicros(): Promise<number> {
  const [seconds, micros] = await raw.time();
  return Number(seconds) * SECOND + Number(micros);
}

async function givenLog(times: readonly number[]): Promise<string> {
  const quotaId = randomUUID();
  await raw.rpush(quotaLogKey(quotaId), ...times);
  return quotaId;
}

const timesOf = async (quotaId: string): Promise<readonly number[]> =>
  (await raw.lrange(quotaLogKey(quotaId), 0, -1)).map(Number);

test('each at its time, among those that others admitted meanwhile', async () => {
  const now = await nowMicros();
  const times = [now - 50 * SECOND, now - 30 * SECOND, now - 30 * SECOND, now - 10 * SECOND];
  const quotaId = await givenLog(times);
  const merged = [
    [now - 40 * SECOND, 2],
    [now - 30 * SECOND, 1],
    [now - 5 * SECOND, 1],
  ] as const;
  await limiter.merge(quotaId, 'a', 1, merged);
  const added = merged.flatMap(([time, count]) => Array<number>(count).fill(time));
  expect(await timesOf(quotaId)).toEqual([...times, ...added].toSorted((a, b) => a - b));
});

test('once, however often it is sent, and also if it comes after a later one; another process has its own', async () => {
  const now = await nowMicros();
  const quotaId = await givenLog([now - SECOND]);
  for (const [process, number] of [
    ['a', 1],
    ['a', 1],
    ['a', 2],
    ['a', 1],
    ['b', 1],
    ['b', 1],
  ] as const) {
    await limiter.merge(quotaId, process, number, [[now - number * SECOND, 1]]);
  }
  expect(await timesOf(quotaId)).toEqual([2, 1, 1, 1].map((seconds) => now - seconds * SECOND));
});

test('all of the last hour, nothing older, and nothing of the future but as of now', async () => {
  const from = await nowMicros();
  const quotaId = await givenLog([from + HOUR]);
  const inTheHour = from - HOUR + 60 * SECOND;
  await limiter.merge(quotaId, 'a', 1, [
    [from - HOUR - SECOND, 5],
    [inTheHour, 1],
    [from + 2 * HOUR, 2],
  ]);
  const [oldest, ...times] = await timesOf(quotaId);
  expect(oldest).toBe(inTheHour);
  expect(times).toHaveLength(3);
  for (const time of times) expect(time - from).toBeLessThan(10 * SECOND);
});

test('thousands at once', async () => {
  const now = await nowMicros();
  const quotaId = await givenLog([now - SECOND]);
  await limiter.merge(quotaId, 'a', 1, [[now - 2 * SECOND, 20_000]]);
  expect(await timesOf(quotaId)).toHaveLength(20_001);
  const usage = await limiter.usage(quotaId, { perMinute: 30_000, perHour: 50_000 });
  expect([usage.minute.remaining, usage.hour.remaining]).toEqual([9999, 29_999]);
});
