/**
 * The keys that a quota leaves in Redis, byte by byte. Releases that run side by side during an upgrade share it: another form
 * needs another key name, or a limit is given twice.
 */
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { SettableKey } from '../http/common/rate-limit-suite.ts';
import { type World, quotasAreExact, startFleet, WITHIN } from '../support/world.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const HOUR_MS = 3_600_000;
/** By quota. All releases have to agree on the tag, which decides on the slot of a Cluster. */
const LOGS = {
  'golden-1': 'evalgate:{quota-308}:golden-1:log',
  'golden-2': 'evalgate:{quota-658}:golden-2:log',
  'golden-3': 'evalgate:{quota-385}:golden-3:log',
  'golden-4': 'evalgate:{quota-975}:golden-4:log',
  'golden-5': 'evalgate:{quota-748}:golden-5:log',
  'golden-6': 'evalgate:{quota-823}:golden-6:log',
  'golden-7': 'evalgate:{quota-608}:golden-7:log',
  'a_b-C9': 'evalgate:{quota-975}:a_b-C9:log',
};
const EARLIER_LOG = 'evalgate:{quota-248}:earlier:log';
const MERGED_LOG = 'evalgate:{quota-87}:merged:log';
const MARKER = /^evalgate:\{quota-87\}:merged:merged:[0-9a-f-]{36}$/;

let redis: TestRedis;
let raw: Redis;
let fleet: World;
beforeAll(async () => {
  redis = await startRedis({ isDurable: true });
  raw = await connectWhenUp(redis.url, 5000);
  fleet = await startFleet(redis.url, { size: 1 });
});
afterAll(async () => {
  await fleet.close();
  raw.disconnect();
  await redis.close();
});

async function keyOf(quotaId: string): Promise<SettableKey> {
  const key = new SettableKey(fleet.here);
  await key.setLimits({ perMinute: 5, perHour: 90 }, quotaId);
  return key;
}

const namesInRedis = async (): Promise<readonly string[]> => (await raw.keys('evalgate:{quota-*}:*')).toSorted();
const entriesOf = (log: string): Promise<readonly string[]> => raw.lrange(log, 0, -1);

async function redisMicros(): Promise<number> {
  const [seconds, micros] = await raw.time();
  return Number(seconds) * 1_000_000 + Number(micros);
}

async function expectToExpire(log: string): Promise<void> {
  const leftMs = await raw.pttl(log);
  expect(leftMs).toBeGreaterThan(HOUR_MS);
  expect(leftMs).toBeLessThanOrEqual(HOUR_MS + 60_001);
}

test('a log is a list of Unix microseconds in decimal, oldest first, and the only thing that a quota leaves', async () => {
  const fromMicros = await redisMicros();
  for (const quotaId of Object.keys(LOGS)) {
    const key = await keyOf(quotaId);
    for (let i = 0; i < 7; i += 1) await key.ask();
    await key.look();
  }
  const untilMicros = await redisMicros();
  expect(await namesInRedis()).toEqual(Object.values(LOGS).toSorted());
  for (const log of Object.values(LOGS)) {
    expect(await raw.type(log)).toBe('list');
    const entries = await entriesOf(log);
    expect(entries).toHaveLength(5);
    for (const entry of entries) expect(entry).toMatch(/^\d{16}$/);
    expect(entries.toSorted()).toEqual(entries);
    expect(Number(entries[0])).toBeGreaterThanOrEqual(fromMicros);
    expect(Number(entries[4])).toBeLessThanOrEqual(untilMicros);
    await expectToExpire(log);
  }
});

test('a log of another release is read, and goes on as it is', async () => {
  const nowMicros = await redisMicros();
  const before = [3_500_000_000, 3_500_000_000, 50_000_000, 40_000_000].map((age) => String(nowMicros - age));
  await raw.rpush(EARLIER_LOG, ...before);
  const reply = await (await keyOf('earlier')).ask();
  expect(reply.headers['x-ratelimit-minute-remaining']).toBe('2');
  expect(reply.headers['x-ratelimit-hour-remaining']).toBe('85');
  const entries = await entriesOf(EARLIER_LOG);
  expect(entries.slice(0, 4)).toEqual(before);
  expect(entries).toHaveLength(5);
});

test('requests admitted without Redis are added at their times; one marker per key and process lasts for minutes', async () => {
  const key = await keyOf('merged');
  await key.ask();
  for (const number of [1, 2]) {
    await redis.kill();
    expect((await key.ask()).status).toBe(200);
    await redis.restart();
    raw.disconnect();
    raw = await connectWhenUp(redis.url, 5000);
    await quotasAreExact(fleet.here);
    await vi.waitFor(async () => expect(await raw.llen(MERGED_LOG)).toBe(1 + number), WITHIN);
    const entries = await entriesOf(MERGED_LOG);
    for (const entry of entries) expect(entry).toMatch(/^\d{16}$/);
    expect(entries.toSorted()).toEqual(entries);
    const markers = (await namesInRedis()).filter((name) => name.includes(':merged:merged:'));
    expect(markers).toEqual([expect.stringMatching(MARKER)]);
    expect(await raw.get(markers[0] ?? '')).toBe(String(number));
    const leftMs = await raw.pttl(markers[0] ?? '');
    expect(leftMs).toBeGreaterThan(4 * 60_000);
    expect(leftMs).toBeLessThanOrEqual(5 * 60_000);
    await expectToExpire(MERGED_LOG);
  }
});
