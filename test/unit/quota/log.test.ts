import { expect, test } from 'vitest';
import { type AdmissionLog, decide, QUOTA_WINDOWS } from '../../../src/quota/log.ts';
import { judgeTraces, ListLog } from '../../support/quota-traces.ts';

const MINUTE = QUOTA_WINDOWS.minuteMicros;
const HOUR = QUOTA_WINDOWS.hourMicros;
const T0 = 1_768_478_400_000_000;

test('R2: the first request of a key leaves all but itself, for a minute and an hour', () => {
  expect(decide(new ListLog(), T0, { perMinute: 120, perHour: 3000 })).toEqual({
    decision: {
      admitted: true,
      nowMicros: T0,
      minute: { limit: 120, remaining: 119, emptyAtMicros: T0 + MINUTE, nextFreeAtMicros: T0 + MINUTE },
      hour: { limit: 3000, remaining: 2999, emptyAtMicros: T0 + HOUR, nextFreeAtMicros: T0 + HOUR },
      retryAtMicros: null,
    },
    expired: 0,
  });
});

test('R1: an entry is in the window when exactly its length has gone by, and out of it a microsecond later', () => {
  const limits = { perMinute: 1, perHour: 100 };
  expect(decide(new ListLog([T0]), T0 + MINUTE, limits).decision).toMatchObject({
    admitted: false,
    retryAtMicros: T0 + MINUTE + 1,
  });
  expect(decide(new ListLog([T0]), T0 + MINUTE + 1, limits).decision.admitted).toBe(true);
});

test('R2: where both windows are full, the later of them says when to try again', () => {
  const log = new ListLog([T0, T0 + HOUR - 10]);
  expect(decide(log, T0 + HOUR, { perMinute: 1, perHour: 2 }).decision.retryAtMicros).toBe(T0 + HOUR - 10 + MINUTE + 1);
  expect(decide(log, T0 + HOUR, { perMinute: 1, perHour: 1 }).decision.retryAtMicros).toBe(T0 + HOUR - 10 + HOUR + 1);
});

test('R2: where the limit was lowered below the use, as many must leave as are too many, and one more', () => {
  const log = new ListLog([T0, T0 + 1, T0 + 2, T0 + 3, T0 + 4]);
  const { decision } = decide(log, T0 + 10, { perMinute: 2, perHour: 100 });
  expect(decision.minute).toEqual({
    limit: 2,
    remaining: 0,
    emptyAtMicros: T0 + 4 + MINUTE,
    nextFreeAtMicros: T0 + MINUTE,
  });
  // The entries at 3 and 4 are the limit's two: room is made when the one at 3 has left.
  expect(decision.retryAtMicros).toBe(T0 + 3 + MINUTE + 1);
});

test('R2: a window that is empty when the other refuses is empty now', () => {
  const { decision } = decide(new ListLog([T0]), T0 + 2 * MINUTE, { perMinute: 1, perHour: 1 });
  expect(decision.admitted).toBe(false);
  expect(decision.minute).toEqual({
    limit: 1,
    remaining: 1,
    emptyAtMicros: T0 + 2 * MINUTE,
    nextFreeAtMicros: T0 + 2 * MINUTE,
  });
});

test('R1: a clock that goes back admits nothing extra', () => {
  const limits = { perMinute: 2, perHour: 10 };
  expect(decide(new ListLog([T0, T0 + 5]), T0 - HOUR, limits).decision.admitted).toBe(false);
});

test('with an admitted request the entries older than an hour are told to be dropped, and no others', () => {
  const log = new ListLog([T0, T0, T0 + 1, T0 + 2]);
  expect(decide(log, T0 + HOUR, { perMinute: 9, perHour: 9 }).expired).toBe(0);
  expect(decide(log, T0 + HOUR + 1, { perMinute: 9, perHour: 9 }).expired).toBe(2);
  expect(decide(log, T0 + 2 * HOUR, { perMinute: 9, perHour: 9 }).expired).toBe(4);
});

test('a log of 100,000 entries is read at a few dozen places', () => {
  let reads = 0;
  const log: AdmissionLog = {
    length: 100_000,
    at(index) {
      reads += 1;
      return T0 + index * 1000;
    },
  };
  decide(log, T0 + 100_000_000, { perMinute: 60_001, perHour: 100_000 });
  expect(reads).toBeLessThan(50);
});

test('R1: a refused request drops nothing', () => {
  const log = new ListLog([T0, T0 + HOUR]);
  const limits = { perMinute: 1, perHour: 9 };
  expect(decide(log, T0 + HOUR + 1, limits)).toMatchObject({ decision: { admitted: false }, expired: 0 });
});

test('R1, R2: random traces, with bursts at the edges and limits that change, are decided as the plain oracle does', () => {
  const { faults, refusals } = judgeTraces(1000);
  expect(faults).toEqual([]);
  expect(refusals).toBeGreaterThan(5000);
});
