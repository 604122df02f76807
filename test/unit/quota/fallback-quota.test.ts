import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { FallbackQuota, type SeenUse } from '../../../src/quota/fallback-quota.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const LIMITS = { perMinute: 10, perHour: 100 };
const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

function setUp({ processes = 1, mostLogs = 1000 } = {}) {
  const clock = new ManualClock();
  const fallback = new FallbackQuota({ clock, processes: () => processes, mostLogs });
  const see = (use: Partial<SeenUse>, quotaId = 'q') => {
    const none = { nowMicros: clock.nowMicros(), minuteUsed: 0, hourUsed: 0, newestMicros: null, admitted: 0 };
    fallback.see(quotaId, { ...none, ...use }, clock.nowMicros());
  };
  /** Admissions that the shared log gave to this process, one by one. */
  const admit = (count: number, quotaId = 'q') => {
    for (let i = 0; i < count; i += 1)
      see({ minuteUsed: i, hourUsed: i, newestMicros: clock.nowMicros(), admitted: 1 }, quotaId);
  };
  return { clock, fallback, see, admit };
}

test('R5: a process goes on from what it was itself given', () => {
  const { fallback, admit } = setUp();
  admit(4);
  expect(fallback.take('q', LIMITS)).toMatchObject({
    admitted: true,
    minute: { limit: 10, remaining: 5 },
    hour: { remaining: 95 },
  });
});

test('R5: a process goes on from what others were seen to use, taken to be as new as it can be', () => {
  const { clock, fallback, see } = setUp();
  const newestMicros = clock.nowMicros() - 20 * SECOND;
  see({ minuteUsed: 3, hourUsed: 8, newestMicros });
  const decision = fallback.take('q', LIMITS);
  expect(decision).toMatchObject({ minute: { remaining: 6 }, hour: { remaining: 91 } });
  expect(decision.minute.nextFreeAtMicros).toBe(newestMicros + MINUTE);
  expect(decision.hour.nextFreeAtMicros).toBe(clock.nowMicros() - MINUTE - 1 + HOUR);
});

test('R5: what others use later is seen later', () => {
  const { clock, fallback, see, admit } = setUp();
  admit(2);
  clock.advance(5000);
  see({ minuteUsed: 6, hourUsed: 6, newestMicros: clock.nowMicros() - SECOND, admitted: 1 });
  expect(fallback.take('q', LIMITS).minute.remaining).toBe(2);
  clock.advance(54_999);
  expect(fallback.take('q', LIMITS).minute.remaining).toBe(1);
  clock.advance(2);
  expect(fallback.take('q', LIMITS).minute.remaining).toBe(2);
});

test('R5: where less was used than this process thought, the shared log is believed', () => {
  const { clock, fallback, see, admit } = setUp();
  admit(9);
  see({ minuteUsed: 1, hourUsed: 1, newestMicros: clock.nowMicros() });
  expect(fallback.take('q', LIMITS).minute.remaining).toBe(8);
});

test('R5: what the hour has seen before the minute is no use of the minute, whatever was admitted alone before it was seen', () => {
  const { clock, fallback, see } = setUp();
  const limits = { perMinute: 120, perHour: 3000 };
  expect(fallback.take('q', limits).minute.remaining).toBe(119);
  see({ minuteUsed: 6, hourUsed: 2406, newestMicros: clock.nowMicros() });
  clock.advance(1000);
  expect(fallback.take('q', limits)).toMatchObject({
    admitted: true,
    minute: { remaining: 112 },
    hour: { remaining: 593 },
  });
});

test('R5: after each look the hour is what was seen, the minute no less than that, and no more than that and what was known', () => {
  const limits = { perMinute: 1_000_000, perHour: 1_000_000 };
  const step = fc.record({
    passMs: fc.integer({ min: 0, max: 90_000 }),
    alone: fc.integer({ min: 0, max: 3 }),
    others: fc.integer({ min: 0, max: 5 }),
    isSeen: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { clock, fallback, see } = setUp();
      const times: number[] = [];
      const usedWithin = (lengthMicros: number) =>
        times.filter((time) => time >= clock.nowMicros() - lengthMicros).length;
      const known = () => {
        const { minute, hour } = fallback.peek('q', limits);
        return { minute: minute.limit - minute.remaining, hour: hour.limit - hour.remaining };
      };
      for (const { passMs, alone, others, isSeen } of steps) {
        clock.advance(passMs);
        for (let count = 0; count < alone; count += 1) fallback.take('q', limits);
        for (let count = 0; count < alone + others; count += 1) times.push(clock.nowMicros());
        if (!isSeen) continue;
        const before = known();
        const [minuteUsed, hourUsed] = [usedWithin(MINUTE), usedWithin(HOUR)];
        see({ minuteUsed, hourUsed, newestMicros: times.at(-1) ?? null });
        const after = known();
        expect(after.hour).toBe(hourUsed);
        expect(after.minute).toBeGreaterThanOrEqual(minuteUsed);
        expect(after.minute).toBeLessThanOrEqual(minuteUsed + before.minute);
      }
    }),
    { numRuns: 500 },
  );
});

test('R5: a limit that was used up stays used up until its requests leave', () => {
  const { clock, fallback, admit } = setUp({ processes: 4 });
  admit(10);
  const refused = fallback.take('q', LIMITS);
  expect(refused).toMatchObject({ admitted: false, minute: { remaining: 0 } });
  expect(refused.retryAtMicros).toBe(clock.nowMicros() + MINUTE + 1);
});

test('R5: a quota that was never seen gets the share of one process', () => {
  const { fallback } = setUp({ processes: 4 });
  const admitted = [1, 2, 3].map(() => fallback.take('q', LIMITS).admitted);
  expect(admitted).toEqual([true, true, false]);
});

test('times are those of the shared clock, as it was last seen', () => {
  const { clock, fallback } = setUp();
  const aheadMicros = 250_000;
  const use = {
    nowMicros: clock.nowMicros() + aheadMicros,
    minuteUsed: 0,
    hourUsed: 0,
    newestMicros: null,
    admitted: 1,
  };
  fallback.see('q', use, clock.nowMicros());
  clock.advance(1000);
  expect(fallback.take('other', LIMITS).nowMicros).toBe(clock.nowMicros() + aheadMicros);
});

test('what was admitted alone is handed out once, oldest first', () => {
  const { clock, fallback, admit } = setUp({ processes: 2 });
  admit(3);
  const first = clock.nowMicros();
  fallback.take('q', LIMITS);
  fallback.take('q', LIMITS);
  clock.advance(1);
  fallback.take('q', LIMITS);
  expect(fallback.unsharedIds()).toEqual(['q']);
  expect(fallback.takeUnshared('q')).toEqual({
    quotaId: 'q',
    admissions: [
      [first, 2],
      [first + 1000, 1],
    ],
  });
  expect(fallback.takeUnshared('q')).toBeNull();
  expect(fallback.unsharedIds()).toEqual([]);
});

test('refused requests leave nothing to be shared', () => {
  const { fallback, admit } = setUp();
  admit(10);
  fallback.take('q', LIMITS);
  expect(fallback.unsharedIds()).toEqual([]);
});

test('logs are bounded: the one that was used longest ago goes first', () => {
  const { fallback } = setUp({ mostLogs: 3 });
  const one = { perMinute: 1, perHour: 1 };
  for (const quotaId of ['a', 'b', 'c', 'a', 'd']) fallback.take(quotaId, one);
  expect(fallback.logCount).toBe(3);
  expect(fallback.take('a', one).admitted).toBe(false);
  expect(fallback.take('b', one).admitted).toBe(true);
});

test('an idle log goes once its newest request has left the hour', () => {
  const { clock, fallback } = setUp();
  fallback.take('idle', LIMITS);
  clock.advance(HOUR / 1000);
  fallback.take('q', LIMITS);
  expect(fallback.logCount).toBe(2);
  clock.advance(1);
  fallback.take('q', LIMITS);
  expect(fallback.logCount).toBe(1);
});

test('a refusal of a quota with nothing known leaves no log behind', () => {
  const { fallback, see } = setUp();
  see({});
  expect(fallback.logCount).toBe(0);
});
