import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HOUR_MICROS as HOUR, MINUTE_MICROS as MINUTE, SlidingWindowLog } from '../../../src/quota/window-log.ts';
import { judgeTraces, logOf } from '../../support/quota-traces.ts';

const START = 1_768_478_400_000_000;

test('R1: an entry is in the window when exactly its length has gone by, and out of it a microsecond later', () => {
  const limits = { perMinute: 1, perHour: 100 };
  expect(logOf([START]).consume(START + MINUTE, limits)).toMatchObject({
    admitted: false,
    retryAtMicros: START + MINUTE + 1,
  });
  expect(logOf([START]).consume(START + MINUTE + 1, limits).admitted).toBe(true);
});

test('an admitted request drops the entries older than an hour, and no others; a refused one drops nothing', () => {
  const lengthAfter = (nowMicros: number, perMinute: number): number => {
    const log = logOf([START, START, START + 1, START + HOUR - 5]);
    log.consume(nowMicros, { perMinute, perHour: 9 });
    return log.length;
  };
  expect(lengthAfter(START + HOUR, 9)).toBe(5);
  expect(lengthAfter(START + HOUR + 1, 9)).toBe(3);
  expect(lengthAfter(START + 2 * HOUR, 9)).toBe(1);
  expect(lengthAfter(START + HOUR + 1, 1)).toBe(4);
});

describe('R6: after the clock went back', () => {
  const limits = { perMinute: 2, perHour: 10 };

  test('nothing extra is admitted, and what is from the future counts for one window from now', () => {
    const log = logOf([START, START + 5]);
    const back = START - HOUR;
    expect(log.consume(back, limits)).toMatchObject({
      admitted: false,
      nowMicros: back,
      minute: { remaining: 0, emptyAtMicros: back + MINUTE, nextFreeAtMicros: back + MINUTE },
      retryAtMicros: back + MINUTE + 1,
    });
    // A later refusal does not put it off.
    expect(log.consume(back + 7, limits).retryAtMicros).toBe(back + MINUTE + 1);
    expect(log.consume(back + MINUTE, limits).admitted).toBe(false);
    expect(log.consume(back + MINUTE + 1, limits).admitted).toBe(true);
  });

  test('entries of the past keep their times', () => {
    const log = logOf([START, START + 30, START + 40]);
    log.usage(START + 20, limits);
    expect(log.runs()).toEqual([
      [START, 1],
      [START + 20, 2],
    ]);
  });

  test('whatever the log holds, a request is admitted at retryAt and not a microsecond before', () => {
    const steps = fc.array(fc.integer({ min: 0, max: 2 * MINUTE }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(steps, fc.integer({ min: 1, max: 2 * HOUR }), fc.integer({ min: 1, max: 4 }), (gaps, back, max) => {
        const times = gaps.reduce<number[]>((all, gap) => [...all, (all.at(-1) ?? START) + gap], []);
        const nowMicros = (times.at(-1) ?? START) - back;
        const log = logOf(times);
        const { admitted, retryAtMicros } = log.consume(nowMicros, { perMinute: max, perHour: 6 });
        if (admitted || retryAtMicros === null) return;
        expect(retryAtMicros).toBeLessThanOrEqual(nowMicros + HOUR + 1);
        expect(log.consume(retryAtMicros - 1, { perMinute: max, perHour: 6 }).admitted).toBe(false);
        expect(log.consume(retryAtMicros, { perMinute: max, perHour: 6 }).admitted).toBe(true);
      }),
    );
  });
});

test('a log of bounded size takes no request for older than it is, and forgets none', () => {
  const bounded = new SlidingWindowLog(16);
  for (let i = 0; i < 1000; i += 1) bounded.add(START + i * 1000, 1 + (i % 3));
  const runs = bounded.runs();
  expect(runs.length).toBeLessThanOrEqual(16);
  expect(bounded.length).toBe(1999);
  let counted = 0;
  for (const [time, count] of runs) {
    const exact = Array.from({ length: 1000 }, (_, i) => i).filter((i) => START + i * 1000 <= time);
    counted += count;
    expect(counted).toBe(exact.reduce((sum, i) => sum + 1 + (i % 3), 0));
  }
});

test('R1, R2: random traces, with bursts at the edges, changing limits and clocks that go back, are as the oracle says', async () => {
  const { faults, refusals } = await judgeTraces(1000);
  expect(faults).toEqual([]);
  expect(refusals).toBeGreaterThan(5000);
});
