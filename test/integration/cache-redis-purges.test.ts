import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PurgeLog } from '../../src/cache/purge-log.ts';
import { DEFAULT_TIMES } from '../../src/cache/times.ts';
import { cacheStateKey } from '../../src/redis/names.ts';
import { type CacheFleet, comesTrue, startCacheFleet } from '../support/cache-fleet.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

/** What issue 3 allows a process that lost its messages. */
const WITHIN_MS = 1000;

let redis: TestRedis;
let raw: Redis;
let fleet: CacheFleet;

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
  fleet = await startCacheFleet({ url: redis.url, size: 2 });
});
afterEach(() => fleet.close());

const logs = (): readonly PurgeLog[] => fleet.members.map(({ purges }) => purges);
const historyOf = (log: PurgeLog | undefined): string => log?.position().history ?? '';
const allSay = (isSo: (log: PurgeLog) => boolean): Promise<boolean> =>
  comesTrue(() => logs().every((log) => isSo(log)), WITHIN_MS);

describe('lost history counts as a purge of everything', () => {
  test('Redis was emptied: every process notices within a second, and they agree on a new history', async () => {
    await fleet.one.purges.purge(['class:list'], 'hard');
    expect(await allSay((log) => log.position().sequence === 1)).toBe(true);
    const before = fleet.one.purges.position();
    await redis.flush();
    expect(await allSay((log) => log.since(before, ['evaluation:x']) === 'hard')).toBe(true);
    expect(await comesTrue(() => new Set(logs().map(historyOf)).size === 1, WITHIN_MS)).toBe(true);
    expect(historyOf(fleet.one.purges)).not.toBe(before.history);
  });

  test('an older copy was restored: a sequence that went back begins a new history', async () => {
    await fleet.one.purges.purge(['class:list'], 'hard');
    await fleet.one.purges.purge(['class:rubric'], 'hard');
    expect(await allSay((log) => log.position().sequence === 2)).toBe(true);
    const before = fleet.one.purges.position();
    await raw.multi().hincrby(cacheStateKey('head'), 'sequence', -1).rpop(cacheStateKey('purges')).exec();
    expect(await allSay((log) => log.since(before, ['evaluation:x']) === 'hard')).toBe(true);
  });

  test('a purge was lost and another has its place: that is noticed too', async () => {
    await fleet.one.purges.purge(['class:list'], 'hard');
    expect(await allSay((log) => log.position().sequence === 1)).toBe(true);
    const before = fleet.one.purges.position();
    await raw.lset(cacheStateKey('purges'), 0, 'AAAAAAAAAAAA ["hard",["class:rubric"]]');
    expect(await allSay((log) => log.since(before, ['evaluation:x']) === 'hard')).toBe(true);
  });

  test('a purge into a Redis that was emptied begins a new history by itself', async () => {
    await fleet.one.purges.purge(['class:list'], 'hard');
    const before = fleet.one.purges.position();
    await redis.flush();
    await fleet.one.purges.purge(['class:rubric'], 'hard');
    expect(fleet.one.purges.since(before, ['evaluation:x'])).toBe('hard');
    expect(fleet.one.purges.position().sequence).toBe(1);
  });
});

describe('what messages left out is found by looking', () => {
  test('a purge whose message was lost is known within a second', async () => {
    const before = fleet.two.purges.position();
    await raw.hincrby(cacheStateKey('head'), 'sequence', 1);
    await raw.rpush(cacheStateKey('purges'), 'AAAAAAAAAAAA ["soft",["class:list"]]');
    expect(await allSay((log) => log.since(before, ['class:list']) === 'soft')).toBe(true);
    expect(fleet.two.purges.since(before, ['class:rubric'])).toBeNull();
  });

  test('a message with a gap before it makes the process look', async () => {
    const before = fleet.two.purges.position();
    await raw.hincrby(cacheStateKey('head'), 'sequence', 1);
    await raw.rpush(cacheStateKey('purges'), 'AAAAAAAAAAAA ["hard",["class:list"]]');
    await fleet.one.purges.purge(['class:rubric'], 'hard');
    expect(await allSay((log) => log.since(before, ['class:list']) === 'hard' && log.position().sequence === 2)).toBe(
      true,
    );
  });

  test('a purge that cannot be read purges everything', async () => {
    const before = fleet.two.purges.position();
    await raw.hincrby(cacheStateKey('head'), 'sequence', 1);
    await raw.rpush(cacheStateKey('purges'), 'AAAAAAAAAAAA ["gently",["tenant:1"]]');
    expect(await allSay((log) => log.since(before, ['all', 'class:list']) === 'hard')).toBe(true);
  });

  test('who missed more purges than are remembered counts everything as purged', async () => {
    await fleet.one.purges.purge(['class:list'], 'hard');
    expect(await allSay((log) => log.position().sequence === 1)).toBe(true);
    const before = fleet.one.purges.position();
    await raw.multi().hincrby(cacheStateKey('head'), 'sequence', 5).del(cacheStateKey('purges')).exec();
    expect(await allSay((log) => log.since(before, ['evaluation:x']) === 'hard')).toBe(true);
    expect(historyOf(fleet.one.purges)).toBe(before.history);
  });

  test('purges of many processes at once leave all with the same log', async () => {
    const before = fleet.one.purges.position();
    const tags = Array.from({ length: 50 }, (_, i) => `evaluation:${i}` as const);
    await Promise.all(tags.map((tag, i) => (i % 2 === 0 ? fleet.one : fleet.two).purges.purge([tag], 'hard')));
    expect(await allSay((log) => log.position().sequence === 50)).toBe(true);
    for (const log of logs()) expect(tags.filter((tag) => log.since(before, [tag]) !== 'hard')).toEqual([]);
  });
});

test('a process that starts later knows the purges before it, and trusts what was filled after them', async () => {
  const before = fleet.one.purges.position();
  await fleet.one.purges.purge(['class:list'], 'hard');
  const between = fleet.one.purges.position();
  await fleet.one.purges.purge(['class:rubric'], 'soft');
  const late = await startCacheFleet({ url: redis.url });
  const { purges } = late.one;
  expect(purges.since(before, ['class:list'])).toBe('hard');
  expect(purges.since(between, ['class:list'])).toBeNull();
  expect(purges.since(between, ['class:rubric'])).toBe('soft');
  await late.close();
});

describe('times in force', () => {
  const { list } = DEFAULT_TIMES;

  test('a change is in force in every process within a second', async () => {
    await fleet.one.timesControl.set('list', { freshMs: 45_000 });
    expect(await comesTrue(() => fleet.two.times.of('list').freshMs === 45_000, WITHIN_MS)).toBe(true);
    await fleet.two.timesControl.reset('list');
    expect(await comesTrue(() => fleet.one.times.of('list').freshMs === list.freshMs, WITHIN_MS)).toBe(true);
  });

  test('it is in force in a process that starts later', async () => {
    await fleet.one.timesControl.set('list', { freshMs: 45_000 });
    const late = await startCacheFleet({ url: redis.url });
    expect(late.one.times.of('list')).toEqual({ ...list, freshMs: 45_000 });
    await late.close();
  });

  test('changes of two processes to one class add up, and each tells what it changed', async () => {
    const [a, b] = await Promise.all([
      fleet.one.timesControl.set('list', { freshMs: 45_000 }),
      fleet.two.timesControl.set('list', { staleMs: 1000 }),
    ]);
    expect([a.to, b.to]).toContainEqual({ ...list, freshMs: 45_000, staleMs: 1000 });
    expect(await allSay(() => fleet.members.every(({ times }) => times.of('list').staleMs === 1000))).toBe(true);
    expect(fleet.two.times.of('list')).toEqual({ ...list, freshMs: 45_000, staleMs: 1000 });
  });

  test('one whose message was lost is found by looking; what is no time counts as not set', async () => {
    await raw.hset(cacheStateKey('times'), { 'list.freshMs': '45000', 'list.staleMs': '-1', 'rubric.errorMs': 'x' });
    await raw.hset(cacheStateKey('head'), 'times', 'another version');
    expect(await comesTrue(() => fleet.two.times.of('list').freshMs === 45_000, WITHIN_MS)).toBe(true);
    expect(fleet.two.times.of('list')).toEqual({ ...list, freshMs: 45_000 });
    expect(fleet.two.times.of('rubric')).toEqual(DEFAULT_TIMES.rubric);
  });

  test('where Redis was emptied the configured times are in force again', async () => {
    await fleet.one.timesControl.set('list', { freshMs: 45_000 });
    await redis.flush();
    expect(
      await comesTrue(() => fleet.members.every(({ times }) => times.of('list').freshMs === list.freshMs), WITHIN_MS),
    ).toBe(true);
  });

  test('a change does not purge, and a purge does not change', async () => {
    const before = fleet.one.purges.position();
    await fleet.one.timesControl.set('list', { freshMs: 45_000 });
    await fleet.one.purges.purge(['class:list'], 'hard');
    expect(fleet.one.purges.position()).toEqual({ ...before, sequence: before.sequence + 1 });
    expect(fleet.one.times.of('list').freshMs).toBe(45_000);
  });
});
