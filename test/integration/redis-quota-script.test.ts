import * as fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { type QuotaWindows, QUOTA_WINDOWS } from '../../src/quota/log.ts';
import type { QuotaDecision } from '../../src/quota/quota.ts';
import { decisionsOf, standingOf } from '../../src/quota/redis-decisions.ts';
import { type LogReply, MOST_REQUESTS, type RequestRun, takeFromLogs } from '../../src/quota/redis-log.ts';
import { mergeIntoLog } from '../../src/quota/redis-merge.ts';
import { createRedisQuota } from '../../src/quota/redis-quota.ts';
import { RefusalMemory } from '../../src/quota/redis-refusals.ts';
import { quotaLogKey } from '../../src/redis/names.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { QuotaOracle } from '../contract/quota/oracle.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { sized } from '../support/prove.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let link: RedisLink;
beforeAll(async () => {
  redis = await startRedis();
  link = openRedis({ url: redis.url, role: 'state', timeoutMs: 10_000 });
  await linkUp(link);
});
afterAll(async () => {
  await link.close();
  await redis.close();
});

const KEY = quotaLogKey('q');
/** So far ahead of Redis's clock that a log's newest entry says what time it is, to the microsecond. */
const AHEAD_MICROS = 600_000_000;

async function entries(): Promise<number[]> {
  return (await link.client.lrange(KEY, 0, -1)).map(Number);
}

async function fill(times: readonly number[]): Promise<void> {
  await link.client.del(KEY);
  if (times.length > 0) await link.client.rpush(KEY, ...times);
}

async function takeFromLog(runs: readonly RequestRun[], windows: QuotaWindows, expectedUse = 0): Promise<LogReply> {
  const [reply] = await takeFromLogs(link, [{ quotaId: 'q', runs }], windows, () => expectedUse);
  if (reply === undefined || reply instanceof Error) throw reply ?? new Error('there is no reply');
  return reply;
}

async function take(
  runs: readonly RequestRun[],
  windows: QuotaWindows,
  expectedUse?: number,
): Promise<QuotaDecision[]> {
  return decisionsOf(await takeFromLog(runs, windows, expectedUse), runs, windows);
}

function expectedOf(log: readonly number[], nowMicros: number, runs: readonly RequestRun[], windows: QuotaWindows) {
  const oracle = new QuotaOracle(windows);
  oracle.admitted.push(...log);
  const decisions = runs.flatMap(({ limits, count }) =>
    Array.from({ length: count }, () => oracle.take(nowMicros, limits)),
  );
  return { decisions, log: oracle.admitted };
}

/** The hour is long enough for a log not to expire before the test has looked at it. */
const windowsArbitrary = fc.record({
  minuteMicros: fc.constantFrom(10, 1000, 10_000_000),
  hourMicros: fc.constantFrom(10_000_000, 3_600_000_000),
});

/** Steps from one entry to the next: most are such that entries stand just at, before or after the edge of a window. */
function gapsArbitrary({ minuteMicros, hourMicros }: QuotaWindows) {
  const edges = [minuteMicros, hourMicros, hourMicros - minuteMicros].flatMap((edge) => [edge - 1, edge, edge + 1]);
  const gap = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(0, 0, 1, 2, ...edges.filter((edge) => edge >= 0)) },
    { weight: 3, arbitrary: fc.nat(Math.ceil(minuteMicros / 3)) },
    { weight: 1, arbitrary: fc.nat(Math.ceil(hourMicros / 5)) },
  );
  return fc.array(gap, { maxLength: 40 });
}

const limitsArbitrary = fc.record({
  perMinute: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.constant(1_000_000_000)),
  perHour: fc.oneof(fc.integer({ min: 1, max: 40 }), fc.constant(1_000_000_000)),
});
const runsArbitrary = fc.array(fc.record({ limits: limitsArbitrary, count: fc.integer({ min: 1, max: 9 }) }), {
  minLength: 1,
  maxLength: 4,
});
const traceArbitrary = windowsArbitrary.chain((windows) =>
  fc.record({
    windows: fc.constant(windows),
    gaps: gapsArbitrary(windows),
    runs: runsArbitrary,
    isAhead: fc.boolean(),
    /** Right, wrong or none: it must never make a difference. */
    expectedUse: fc.nat(45),
  }),
);

test('R1, R2: the script decides on any log and any batch as the oracle does, and leaves the log that it should', async () => {
  await fc.assert(
    fc.asyncProperty(traceArbitrary, async ({ windows, gaps, runs, isAhead, expectedUse }) => {
      const newest = Date.now() * 1000 + (isAhead ? AHEAD_MICROS : -gaps.length);
      const log = gaps.reduceRight<number[]>((times, gap) => [(times[0] ?? newest) - gap, ...times], []);
      await fill(log);
      const decisions = await take(runs, windows, expectedUse);
      const nowMicros = decisions[0]?.nowMicros ?? 0;
      const expected = expectedOf(log, nowMicros, runs, windows);
      expect(decisions).toEqual(expected.decisions);
      const isChanged = decisions.some(({ admitted }) => admitted);
      const kept = expected.log.filter((time) => !isChanged || time >= nowMicros - windows.hourMicros);
      expect(await entries()).toEqual(kept);
    }),
    { numRuns: sized(10_000) },
  );
}, 300_000);

test('a look at any log tells how both windows stand as the oracle does, and leaves the log and its expiry alone', async () => {
  await fc.assert(
    fc.asyncProperty(traceArbitrary, limitsArbitrary, async ({ windows, gaps, isAhead }, limits) => {
      const newest = Date.now() * 1000 + (isAhead ? AHEAD_MICROS : -gaps.length);
      const log = gaps.reduceRight<number[]>((times, gap) => [(times[0] ?? newest) - gap, ...times], []);
      await fill(log);
      const reply = await takeFromLog([{ limits, count: 0 }], windows);
      const oracle = new QuotaOracle(windows);
      oracle.admitted.push(...log);
      expect(standingOf(reply, limits, windows)).toEqual(oracle.peek(reply.nowMicros, limits));
      expect(await entries()).toEqual(log);
      // -1: it has none, -2: there is no log.
      expect(await link.client.pttl(KEY)).toBe(log.length === 0 ? -2 : -1);
    }),
    { numRuns: sized(2000) },
  );
}, 60_000);

test('R2: what the script tells with a refusal is enough to go on refusing as the oracle does', async () => {
  const waits = fc.array(fc.nat(400), { minLength: 1, maxLength: 10 });
  await fc.assert(
    fc.asyncProperty(fc.array(fc.nat(300), { maxLength: 40 }), limitsArbitrary, waits, async (gaps, limits, steps) => {
      const windows = { minuteMicros: 1000, hourMicros: 10_000 };
      const newest = Date.now() * 1000 + AHEAD_MICROS;
      const log = gaps.reduceRight<number[]>((times, gap) => [(times[0] ?? newest) - gap, ...times], [newest]);
      await fill(log);
      const clock = new ManualClock();
      const times = { sentMicros: clock.nowMicros(), receivedMicros: clock.nowMicros() };
      const runs = [{ limits, count: 30 }];
      const reply = await takeFromLog(runs, windows);
      const last = decisionsOf(reply, runs, windows).at(-1);
      fc.pre(last?.admitted === false);
      const memory = new RefusalMemory(clock, windows);
      memory.note('q', last, reply, times);
      const oracle = new QuotaOracle(windows);
      oracle.admitted.push(...(await entries()));
      for (const step of steps) {
        clock.advanceMicros(step);
        const expected = oracle.take(reply.nowMicros + clock.nowMicros() - times.sentMicros, limits);
        expect(memory.recall('q', limits)).toEqual(expected.admitted ? null : expected);
        if (expected.admitted) return;
      }
    }),
    { numRuns: sized(4000) },
  );
}, 60_000);

test('R1: a window is closed: what was admitted exactly its length ago still counts', async () => {
  const windows = { minuteMicros: 100, hourMicros: 1000 };
  const newest = Date.now() * 1000 + AHEAD_MICROS;
  const runs = [{ limits: { perMinute: 2, perHour: 9 }, count: 1 }];
  await fill([newest - 100, newest]);
  expect(await take(runs, windows)).toMatchObject([{ admitted: false, retryAtMicros: newest + 1 }]);
  await fill([newest - 101, newest]);
  expect(await take(runs, windows)).toMatchObject([{ admitted: true, nowMicros: newest }]);
});

test('R1: in one call the first come are admitted, each told its own remainder', async () => {
  await fill([]);
  const decisions = await take([{ limits: { perMinute: 3, perHour: 9 }, count: 5 }], QUOTA_WINDOWS);
  expect(decisions.map(({ admitted, minute, hour }) => [admitted, minute.remaining, hour.remaining])).toEqual([
    [true, 2, 8],
    [true, 1, 7],
    [true, 0, 6],
    [false, 0, 6],
    [false, 0, 6],
  ]);
});

test('the largest call and the largest limits are decided on', async () => {
  await fill([]);
  const limits = { perMinute: 1_000_000_000, perHour: 1_000_000_000 };
  const decisions = await take([{ limits, count: MOST_REQUESTS }], QUOTA_WINDOWS);
  expect(decisions.at(-1)).toMatchObject({ admitted: true, minute: { remaining: 999_999_000 } });
  expect(await link.client.llen(KEY)).toBe(MOST_REQUESTS);
});

test('times keep their microseconds in Redis', async () => {
  await fill([]);
  const [decision] = await take([{ limits: { perMinute: 1, perHour: 1 }, count: 1 }], QUOTA_WINDOWS);
  expect(await link.client.lrange(KEY, 0, -1)).toEqual([String(decision?.nowMicros)]);
});

test('a log goes by itself within a minute after its newest request has left the hour, and not before', async () => {
  const windows = { minuteMicros: 60_000_000, hourMicros: 3_600_000_000 };
  const takeOne = () => take([{ limits: { perMinute: 9, perHour: 9 }, count: 1 }], windows);
  await fill([]);
  await takeOne();
  const afresh = await link.client.pttl(KEY);
  expect(afresh).toBeGreaterThan(3_659_000);
  expect(afresh).toBeLessThanOrEqual(3_660_001);
  await takeOne();
  expect(await link.client.pttl(KEY)).toBeGreaterThan(3_600_000);

  const nowMs = Date.now();
  await fill([(nowMs - 60_000) * 1000]);
  await link.client.pexpire(KEY, 5000);
  await takeOne();
  expect(await link.client.pttl(KEY)).toBeGreaterThan(3_659_000);

  await fill([Date.now() * 1000 + AHEAD_MICROS]);
  await link.client.pexpire(KEY, 3_660_000 + AHEAD_MICROS / 1000);
  await takeOne();
  expect(await link.client.pttl(KEY)).toBeGreaterThan(3_600_000 + AHEAD_MICROS / 1000 - 1000);
});

test('a log of 1,000 requests takes about 10 kB', async () => {
  const now = Date.now() * 1000;
  await fill(Array.from({ length: 1000 }, (_, i) => now - (1000 - i) * 3_000_000));
  expect(await link.client.memory('USAGE', KEY, 'SAMPLES', 0)).toBeLessThan(12_000);
});

/** The log, the times to add, and when the merge was sent. */
const mergeArbitrary = fc.record({
  log: fc.array(fc.nat(3000), { maxLength: 30 }),
  added: fc.array(fc.tuple(fc.nat(3500), fc.integer({ min: 1, max: 4 })), { minLength: 1, maxLength: 10 }),
});

test('R5: what was admitted without Redis is added at its time, and the log stays in order', async () => {
  let merges = 0;
  await fc.assert(
    fc.asyncProperty(mergeArbitrary, async ({ log, added }) => {
      const base = Date.now() * 1000 + AHEAD_MICROS;
      const windows = { minuteMicros: 100, hourMicros: 2000 };
      const sorted = log.map((offset) => base + offset).toSorted((a, b) => a - b);
      const admissions = added.map(([offset, count]) => [base + offset, count] as const).toSorted(([a], [b]) => a - b);
      await fill(sorted);
      merges += 1;
      await mergeIntoLog(link, { quotaId: 'q', admissions }, `m${merges}`, windows);
      const merged = await entries();
      const newest = sorted.at(-1);
      // Without a log the added ones lie ahead of Redis's clock, and count as now.
      const now = newest ?? merged[0] ?? 0;
      const expected = admissions
        .flatMap(([time, count]) => Array.from({ length: count }, () => Math.min(time, now)))
        .filter((time) => time >= now - windows.hourMicros);
      expect(merged).toEqual([...sorted, ...expected].toSorted((a, b) => a - b));
      expect(await link.client.pttl(KEY)).toBeGreaterThanOrEqual(expected.length > 0 ? 0 : -2);
    }),
    { numRuns: sized(2000) },
  );
}, 60_000);

test('R5: a merge that is sent again counts once', async () => {
  await fill([]);
  const unshared = { quotaId: 'q', admissions: [[Date.now() * 1000 - 5, 3]] as const };
  await mergeIntoLog(link, unshared, 'again', QUOTA_WINDOWS);
  await mergeIntoLog(link, unshared, 'again', QUOTA_WINDOWS);
  expect(await link.client.llen(KEY)).toBe(3);
  await mergeIntoLog(link, unshared, 'another', QUOTA_WINDOWS);
  expect(await link.client.llen(KEY)).toBe(6);
});

test('R1: several quotas of one call are decided on as if each had come alone', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(runsArbitrary, { minLength: 1, maxLength: 5 }), async (runsByQuota) => {
      await link.client.flushdb();
      const quotas = runsByQuota.map((runs, index) => ({ quotaId: `several-${index}`, runs }));
      const replies = await takeFromLogs(link, quotas, QUOTA_WINDOWS);
      for (const [index, { quotaId, runs }] of quotas.entries()) {
        const reply = replies[index];
        if (reply === undefined || reply instanceof Error) throw reply ?? new Error('there is no reply');
        const expected = expectedOf([], reply.nowMicros, runs, QUOTA_WINDOWS);
        expect(decisionsOf(reply, runs, QUOTA_WINDOWS)).toEqual(expected.decisions);
        expect((await link.client.lrange(quotaLogKey(quotaId), 0, -1)).map(Number)).toEqual(expected.log);
      }
    }),
    { numRuns: sized(400) },
  );
});

async function entriesLookedAt(): Promise<number> {
  return Number(/cmdstat_lindex:calls=(\d+)/.exec(await link.client.info('commandstats'))?.[1] ?? 0);
}

test.for([
  ['few requests', 50],
  ['thousands a minute', 20_000],
  ['thousands a minute, in bursts', 20_000, 500],
] as const)(
  'of a quota with %s Redis looks at four entries a call, five now and then',
  async ([, inHour, burst = 1]) => {
    const now = Date.now() * 1000;
    const apart = QUOTA_WINDOWS.hourMicros / inHour;
    const times = Array.from({ length: inHour }, (_, i) => Math.round(now - (inHour - (i - (i % burst))) * apart));
    await link.client.del(KEY);
    for (let from = 0; from < inHour; from += 1000) await link.client.rpush(KEY, ...times.slice(from, from + 1000));
    const quota = createRedisQuota({ redis: link, clock: systemClock });
    const limits = { perMinute: 1_000_000, perHour: 1_000_000 };
    await quota.take('q', limits);
    const before = await entriesLookedAt();
    for (let calls = 0; calls < 200; calls += 1) await quota.take('q', limits);
    expect((await entriesLookedAt()) - before).toBeLessThan(200 * 4.5);
  },
);

test('a log that cannot be decided on fails alone', async () => {
  await link.client.flushdb();
  await link.client.set(quotaLogKey('broken'), 'no list');
  const runs = [{ limits: { perMinute: 5, perHour: 5 }, count: 1 }];
  const quotas = ['before', 'broken', 'after'].map((quotaId) => ({ quotaId, runs }));
  const [before, broken, after] = await takeFromLogs(link, quotas, QUOTA_WINDOWS);
  expect(broken instanceof Error ? broken.message : broken).toContain('WRONGTYPE');
  for (const reply of [before, after]) expect(reply).toMatchObject({ outcomes: [{ admitted: 1 }] });
  expect(await link.client.llen(quotaLogKey('after'))).toBe(1);
});
