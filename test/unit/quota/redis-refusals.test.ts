import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import type { QuotaDecision, QuotaLimits } from '../../../src/quota/quota.ts';
import { MOST_LEAVING } from '../../../src/quota/redis-log-script.ts';
import type { LogReply } from '../../../src/quota/redis-log.ts';
import { RefusalMemory } from '../../../src/quota/redis-refusals.ts';
import { QuotaOracle } from '../../contract/quota/oracle.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { sized } from '../../support/prove.ts';

const WINDOWS = { minuteMicros: 1000, hourMicros: 10_000 };

/** The reply of the script to one refused request, worked out in the plainest way. */
function replyTo(refused: QuotaDecision, entries: readonly number[]): LogReply {
  const { nowMicros } = refused;
  const windowOf = (lengthMicros: number) => {
    const held = entries.filter((time) => time >= nowMicros - lengthMicros);
    const beyond = held.findIndex((time) => time >= (refused.retryAtMicros ?? 0) - 1 - lengthMicros);
    const leaving = held.slice(0, beyond === -1 ? held.length : beyond + 1).slice(0, MOST_LEAVING);
    return { use: { used: held.length, oldestMicros: held[0] ?? null }, leaving };
  };
  const minute = windowOf(WINDOWS.minuteMicros);
  const hour = windowOf(WINDOWS.hourMicros);
  return {
    nowMicros,
    minute: minute.use,
    hour: hour.use,
    newestMicros: entries.at(-1) ?? null,
    outcomes: [{ admitted: 0, minuteRoomAtMicros: null, hourRoomAtMicros: null }],
    leaving: { minute: minute.leaving, hour: hour.leaving },
  };
}

/** Brings an oracle to its first refusal, and the memory to know it. */
function refusedAfter(gaps: readonly number[], limits: QuotaLimits, trip = { sent: 0, back: 0 }) {
  const clock = new ManualClock();
  const oracle = new QuotaOracle(WINDOWS);
  const memory = new RefusalMemory(clock, WINDOWS);
  let decision = oracle.take(clock.nowMicros(), limits);
  for (let i = 0; decision.admitted; i += 1) {
    // Where the gaps alone never fill a window, requests without any do.
    clock.advanceMicros(i < 100 ? (gaps[i % gaps.length] ?? 0) : 0);
    decision = oracle.take(clock.nowMicros(), limits);
  }
  const sentMicros = clock.nowMicros() - trip.sent;
  clock.advanceMicros(trip.back);
  memory.note('q', decision, replyTo(decision, oracle.admitted), { sentMicros, receivedMicros: clock.nowMicros() });
  return { clock, oracle, memory, refused: decision };
}

test('R2: a remembered refusal is what the oracle decides at that time, until there is room', () => {
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.nat(3), fc.nat(300)), { minLength: 1, maxLength: 30 }),
      fc.record({ perMinute: fc.integer({ min: 1, max: 12 }), perHour: fc.integer({ min: 1, max: 40 }) }),
      fc.array(fc.nat(400), { minLength: 1, maxLength: 30 }),
      (gaps, limits, waits) => {
        const { clock, oracle, memory, refused } = refusedAfter(gaps, limits);
        for (const wait of waits) {
          clock.advanceMicros(wait);
          const expected = oracle.take(clock.nowMicros(), limits);
          const recalled = memory.recall('q', limits);
          expect(recalled).toEqual(expected.admitted ? null : expected);
          expect(expected.admitted ? refused.retryAtMicros : expected.retryAtMicros).toBe(refused.retryAtMicros);
          if (expected.admitted) return;
        }
      },
    ),
    { numRuns: sized(10_000) },
  );
});

test('R2: the last microsecond before there is room is refused from memory, the next asks again', () => {
  const limits = { perMinute: 2, perHour: 50 };
  const { clock, memory, refused } = refusedAfter([10], limits);
  clock.advanceMicros((refused.retryAtMicros ?? 0) - 1 - clock.nowMicros());
  expect(memory.recall('q', limits)?.retryAtMicros).toBe(clock.nowMicros() + 1);
  clock.advanceMicros(1);
  expect(memory.recall('q', limits)).toBeNull();
  expect(memory.size).toBe(0);
});

test('R2: between sending and receiving Redis is asked rather than refused for, and no time is promised too early', () => {
  const limits = { perMinute: 2, perHour: 50 };
  const { clock, memory, refused } = refusedAfter([10], limits, { sent: 30, back: 50 });
  const recalled = memory.recall('q', limits);
  expect(recalled?.nowMicros).toBe(refused.nowMicros);
  const untilAsked = (refused.retryAtMicros ?? 0) - refused.nowMicros - 80;
  clock.advanceMicros(untilAsked - 1);
  expect(memory.recall('q', limits)).not.toBeNull();
  clock.advanceMicros(1);
  expect(memory.recall('q', limits)).toBeNull();
});

test.each([
  { perMinute: 3, perHour: 50 },
  { perMinute: 2, perHour: 49 },
])('R1: a refusal ends when the limits change to %o', (changed) => {
  const limits = { perMinute: 2, perHour: 50 };
  const { memory } = refusedAfter([10], limits);
  expect(memory.recall('q', changed)).toBeNull();
  expect(memory.recall('q', limits)).toBeNull();
});

test('another quota is not refused for it', () => {
  const limits = { perMinute: 2, perHour: 50 };
  expect(refusedAfter([10], limits).memory.recall('p', limits)).toBeNull();
});

test('an admitted request ends what was remembered', () => {
  const limits = { perMinute: 2, perHour: 50 };
  const { clock, memory, refused } = refusedAfter([10], limits);
  const admitted = { ...refused, admitted: true, retryAtMicros: null };
  const times = { sentMicros: clock.nowMicros(), receivedMicros: clock.nowMicros() };
  memory.note('q', admitted, { ...replyTo(refused, []), leaving: null }, times);
  expect(memory.recall('q', limits)).toBeNull();
});

test('where more entries leave than are known, Redis is asked again once the known ones have left', () => {
  const limits = { perMinute: 500, perHour: 400 };
  const { clock, oracle, memory } = refusedAfter([2], limits);
  const lastKnown = oracle.admitted[MOST_LEAVING - 1] ?? 0;
  clock.advanceMicros(lastKnown + WINDOWS.minuteMicros - clock.nowMicros());
  expect(memory.recall('q', limits)).toEqual(oracle.take(clock.nowMicros(), limits));
  clock.advanceMicros(1);
  expect(memory.recall('q', limits)).toBeNull();
});

test('a refusal is confirmed once a minute, so that a step of Redis’s clock can’t last', () => {
  const clock = new ManualClock();
  const windows = { minuteMicros: 60_000_000, hourMicros: 3_600_000_000 };
  const memory = new RefusalMemory(clock, windows);
  const limits = { perMinute: 5, perHour: 1 };
  const nowMicros = clock.nowMicros();
  const oracle = new QuotaOracle(windows);
  oracle.take(nowMicros, limits);
  const refused = oracle.take(nowMicros, limits);
  const use = { used: 1, oldestMicros: nowMicros };
  memory.note(
    'q',
    refused,
    {
      nowMicros,
      minute: use,
      hour: use,
      newestMicros: nowMicros,
      outcomes: [{ admitted: 0, minuteRoomAtMicros: null, hourRoomAtMicros: refused.retryAtMicros }],
      leaving: { minute: [nowMicros], hour: [nowMicros] },
    },
    { sentMicros: nowMicros, receivedMicros: nowMicros },
  );
  clock.advance(60_000);
  expect(memory.recall('q', limits)).not.toBeNull();
  clock.advanceMicros(1);
  expect(memory.recall('q', limits)).toBeNull();
});

test('refusals are bounded: the oldest is forgotten', () => {
  const limits = { perMinute: 1, perHour: 1 };
  const { refused, oracle, clock } = refusedAfter([10], limits);
  const memory = new RefusalMemory(clock, WINDOWS, 2);
  const times = { sentMicros: clock.nowMicros(), receivedMicros: clock.nowMicros() };
  for (const quotaId of ['a', 'b', 'c']) memory.note(quotaId, refused, replyTo(refused, oracle.admitted), times);
  expect(memory.size).toBe(2);
  expect(memory.recall('a', limits)).toBeNull();
  expect(memory.recall('c', limits)).not.toBeNull();
});
