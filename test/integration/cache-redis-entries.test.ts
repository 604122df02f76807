import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Lease } from '../../src/cache/ports.ts';
import { CacheNames } from '../../src/redis/names.ts';
import { type CacheFleet, startCacheFleet } from '../support/cache-fleet.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { aStoredAbsence, aStoredEvaluation, keyOfEvaluation } from '../support/stored-entry.ts';

const key = keyOfEvaluation('ev_1');
const names = new CacheNames('test');
const name = names.of(key);
const HOUR_MS = 3_600_000;

let redis: TestRedis;
let raw: Redis;
let fleet: CacheFleet;
let reports: { operation: string; error: unknown }[];

beforeAll(async () => {
  redis = await startRedis();
  raw = await connectWhenUp(redis.url, 5000);
});
afterAll(async () => {
  raw.disconnect();
  await redis.close();
});
beforeEach(async () => {
  await redis.flush();
  reports = [];
  fleet = await startCacheFleet({ url: redis.url, size: 2, hooks: { onFailed: (report) => reports.push(report) } });
});
afterEach(() => fleet.close());

async function acquired(): Promise<Lease> {
  const attempt = await fleet.one.fleet.leases.acquire(key);
  if (attempt.kind !== 'acquired') throw new Error(`the lease is ${attempt.kind}`);
  return attempt.lease;
}

describe('entries in Redis', () => {
  test('an entry, its lease and the memory of its failure have one slot', () => {
    const slots = [name, names.beside(name, 'lease'), names.beside(name, 'failure')].map(slotOf);
    expect(new Set(slots).size).toBe(1);
  });

  test('an entry is kept for its fresh, stale and error times, an absence for its own', async () => {
    await fleet.one.fleet.tier.set(key, aStoredEvaluation(Date.now()));
    const keptMs = await raw.pttl(name);
    const expectedMs = 300_000 + HOUR_MS + 24 * HOUR_MS;
    expect(keptMs).toBeGreaterThan(expectedMs - 5000);
    expect(keptMs).toBeLessThanOrEqual(expectedMs);
    await fleet.one.fleet.tier.set(key, aStoredAbsence(Date.now()));
    expect(await raw.pttl(name)).toBeLessThanOrEqual(15_000);
  });

  test('what has no times is kept for those who wait for it', async () => {
    fleet.one.times.set('evaluation', { freshMs: 0, staleMs: 0, errorMs: 0 });
    await (await acquired()).complete(aStoredEvaluation(Date.now()));
    expect(await raw.pttl(name)).toBeGreaterThan(4000);
  });

  test.each([
    ['broken', { meta: '{"format":1', body: '{}' }],
    ['of an older release', { meta: '{"format":0}', body: '{}' }],
    ['without a record', { meta: '{}' }],
  ])('an entry that is %s counts as nothing, and a fill replaces it', async (_, fields) => {
    await raw.hset(name, fields);
    expect(await fleet.one.fleet.tier.get(key)).toBeUndefined();
    expect(await fleet.one.fleet.tier.measure(() => true)).toEqual({ entries: 0, bytes: 0 });
    const stored = aStoredEvaluation(Date.now());
    expect(await (await acquired()).complete(stored)).toBe(true);
    expect((await fleet.two.fleet.tier.get(key))?.entry.answer).toEqual(stored.entry.answer);
  });

  test('a broken entry is reported, by its key and without its values', async () => {
    await fleet.one.fleet.tier.set(key, aStoredEvaluation(Date.now(), { title: 'Secret title' }));
    await raw.hset(name, 'body', '{"title":"Secret title"');
    expect(await fleet.one.fleet.tier.get(key)).toBeUndefined();
    expect(reports.map(({ operation }) => operation)).toEqual(['decode']);
    expect(String(reports[0]?.error)).toContain(key);
    expect(String(reports[0]?.error)).not.toContain('Secret');
  });

  test('something else under the name is replaced too', async () => {
    await raw.set(name, 'a string');
    const stored = aStoredEvaluation(Date.now());
    await fleet.one.fleet.tier.seed([{ key, stored }]);
    expect((await fleet.two.fleet.tier.get(key))?.entry.answer).toEqual(stored.entry.answer);
  });

  test('only entries are measured: no leases, no keys of others', async () => {
    await raw.set('other:{cache-x}', 'x');
    await acquired();
    await fleet.one.fleet.tier.set(keyOfEvaluation('ev_2'), aStoredEvaluation(Date.now(), { id: 'ev_2' }));
    expect((await fleet.one.fleet.tier.measure(() => true)).entries).toBe(1);
  });
});

describe('a fill that was overtaken', () => {
  test('does not replace what a page has seeded by a later fetch; waiters are woken', async () => {
    const lease = await acquired();
    const following = await fleet.two.fleet.leases.follow(key);
    const nowMs = Date.now();
    await fleet.two.fleet.tier.seed([{ key, stored: aStoredEvaluation(nowMs + 1, { title: 'Later' }) }]);
    expect(await lease.complete(aStoredEvaluation(nowMs, { title: 'Earlier' }))).toBe(false);
    expect((await fleet.one.fleet.tier.get(key))?.entry.answer).toMatchObject({ record: { title: 'Later' } });
    expect(await following.next(5000)).toEqual({ kind: 'stored' });
    expect((await fleet.two.fleet.leases.acquire(key)).kind).toBe('acquired');
    following.close();
  });

  test('replaces a later one that knew of fewer purges', async () => {
    const lease = await acquired();
    const nowMs = Date.now();
    await fleet.two.fleet.tier.seed([{ key, stored: aStoredEvaluation(nowMs + 1, { title: 'Purged' }) }]);
    const stored = { ...aStoredEvaluation(nowMs, { title: 'New' }), position: { history: 'h', sequence: 4 } };
    expect(await lease.complete(stored)).toBe(true);
    expect((await fleet.one.fleet.tier.get(key))?.entry.answer).toMatchObject({ record: { title: 'New' } });
  });
});

test('a released lease wakes those who wait: there is something to look at', async () => {
  const lease = await acquired();
  const following = await fleet.two.fleet.leases.follow(key);
  await lease.release();
  expect(await following.next(5000)).toEqual({ kind: 'stored' });
  following.close();
});

test('who waits for a lease that nobody renews looks again when it lapses', async () => {
  const short = await startCacheFleet({ url: redis.url, leaseMs: 300 });
  const { leases } = short.one.fleet;
  await leases.acquire(key);
  const following = await leases.follow(key);
  expect(await leases.acquire(key)).toEqual({ kind: 'taken' });
  const startedMs = performance.now();
  expect(await following.next(10_000)).toBeNull();
  expect(performance.now() - startedMs).toBeLessThan(3000);
  expect((await leases.acquire(key)).kind).toBe('acquired');
  following.close();
  await short.close();
});

test('a lease of 2 s is taken where nothing else is said', async () => {
  await acquired();
  const leftMs = await raw.pttl(names.beside(name, 'lease'));
  expect(leftMs).toBeGreaterThan(1000);
  expect(leftMs).toBeLessThanOrEqual(2000);
});

/** As Redis Cluster computes it: CRC-16 of what stands between the first braces. */
function slotOf(keyName: string): number {
  const tag = /\{(.+?)\}/.exec(keyName)?.[1] ?? keyName;
  let crc = 0;
  for (const byte of Buffer.from(tag)) {
    crc ^= byte << 8;
    for (let bit = 0; bit < 8; bit += 1) crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
    crc &= 0xffff;
  }
  return crc % 16_384;
}
