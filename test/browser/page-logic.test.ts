/** What of the page's own scripts is pure, without a browser. */
import { describe, expect, test } from 'vitest';
import { actionWords, differenceWords } from '../../src/admin/dashboard/page/audit-words.js';
import { bytes, duration, parseDuration, percent, rate, written } from '../../src/admin/dashboard/page/format.js';
import { steps, whole, windows } from '../../src/admin/dashboard/page/hour-data.js';
import { compare, nearest, predict } from '../../src/admin/dashboard/page/prediction.js';
import { hear, together } from '../../src/admin/dashboard/page/pulse-data.js';
import { readAdvice } from '../../src/admin/dashboard/page/shapes.js';

const spaced = (text: string): string => text.replaceAll('\u00a0', ' ');

describe('numbers', () => {
  test('what is short of all is never shown as all, and what is more than nothing never as nothing', () => {
    expect([0, 0.000_001, 0.0042, 0.5, 0.999_6, 0.999_999, 1].map((ratio) => spaced(percent(ratio)))).toEqual([
      '0 %',
      '< 0.01 %',
      '0.42 %',
      '50.0 %',
      '99.96 %',
      '> 99.99 %',
      '100 %',
    ]);
    expect([0, 0.001, 2.2, 41.06, 1234].map((perSecond) => spaced(rate(perSecond)))).toEqual([
      '0/s',
      '< 0.01/s',
      '2.20/s',
      '41.1/s',
      '1,234/s',
    ]);
    expect([0, 999, 1000, 999_600, 64_000_000].map((size) => spaced(bytes(size)))).toEqual([
      '0 B',
      '999 B',
      '1.0 kB',
      '1.0 MB',
      '64 MB',
    ]);
  });

  test('times have at most two units, and what is written is read again as it was', () => {
    expect([0, 250, 1500, 59_960, 90_000, 5_400_000, 86_400_000].map((ms) => spaced(duration(ms)))).toEqual([
      '0 s',
      '250 ms',
      '1.5 s',
      '1 min',
      '1 min 30 s',
      '1 h 30 min',
      '1 d',
    ]);
    for (const ms of [0, 500, 45_000, 120_000, 90_000, 7_200_000, 604_800_000])
      expect(parseDuration(written(ms))).toBe(ms);
    expect(['', '5', '1.5h', '-1s', '5 m', '5min'].map(parseDuration)).toEqual([
      null,
      null,
      null,
      null,
      300_000,
      300_000,
    ]);
  });
});

const point = (freshMs: number, hitRatio: number, extrapolated = false) => ({
  freshMs,
  hitRatio,
  upstreamRps: 10 * (1 - hitRatio),
  ageP90Ms: freshMs / 2,
  outdatedRatio: null,
  extrapolated,
});
const curve = [point(1000, 0.2), point(10_000, 0.6), point(100_000, 0.8, true)];

describe('predictions', () => {
  test('a tried time is what was tried; between two it is linear over the logarithm; outside nothing is known', () => {
    expect(predict(curve, 10_000)).toEqual({ point: curve[1], between: null });
    const between = predict(curve, Math.sqrt(1000 * 10_000));
    expect(between?.between).toEqual([1000, 10_000]);
    expect(between?.point.hitRatio).toBeCloseTo(0.4, 12);
    expect(predict(curve, 50_000)?.point.extrapolated).toBe(true);
    expect([predict(curve, 500), predict(curve, 200_000), predict([], 1000)]).toEqual([null, null, null]);
    expect([1, 2000, 5000, 1e9].map((ms) => nearest(curve, ms))).toEqual([0, 0, 1, 2]);
  });

  test('differences are told in words, and whether they are to be wished for', () => {
    const rows = compare(point(10_000, 0.59), point(60_000, 0.78));
    expect(rows.map(({ difference, kind }) => [spaced(difference), kind])).toEqual([
      ['+19.0 points', 'better'],
      ['−46 %', 'better'],
      ['+25 s', 'worse'],
      ['–', 'same'],
    ]);
  });
});

const HOUR = {
  stepMs: 30_000,
  points: [0, 30_000, 90_000].map((at) => ({
    at,
    classes: new Map([['list', { reads: 10, hits: 5, storeCalls: 6, failed: 0 }]]),
  })),
};

const pulseOf = (process: string, p99Ms: number) => ({
  process,
  stepMs: 30_000,
  points: [{ at: 0, reads: 5, p99Ms, staleOnError: 1 }],
});

describe('the last hour', () => {
  test('a step that is missing is a gap, one that is not over is left out, and each point is of two minutes', () => {
    const all = steps(HOUR);
    expect(all.map((step) => step.point?.at ?? null)).toEqual([0, 30_000, null, 90_000]);
    expect(whole(all, 30_000, 100_000)).toHaveLength(3);
    expect(windows(all, 'list').map(({ reads, steps: of }) => [reads, of])).toEqual([
      [10, 1],
      [20, 2],
      [20, 3],
      [30, 4],
    ]);
  });

  test('several processes under one address are put together, and one that is gone is forgotten', () => {
    const heard = hear(hear(new Map(), pulseOf('a', 10), 0), pulseOf('b', 30), 1000);
    expect(together([...heard.values()].map(({ pulse }) => pulse))).toEqual([
      { at: 0, reads: 10, p99Ms: 30, staleOnError: 2 },
    ]);
    expect([...hear(heard, pulseOf('b', 30), 60_500).keys()]).toEqual(['b']);
  });
});

test('the audit tells what differs and nothing else', () => {
  expect(differenceWords({ fresh: '30s', stale: '5m' }, { fresh: '45s', stale: '5m' })).toBe('fresh 30s → 45s');
  expect(differenceWords(null, { tags: ['all'], mode: 'soft', by: null })).toBe('tags all, mode soft');
  expect(differenceWords({ status: 'active' }, null)).toBe('status active → none');
  const [one, two] = ['2026-01-15T13:00:00.000Z', '2026-01-15T14:00:00.000Z'].map((until) => ({ until, by: 'alice' }));
  const moved = ['cache.maintenance.on', 'cache.maintenance.move'].map(actionWords);
  expect(moved).toEqual(['began maintenance of', 'moved the end of maintenance of']);
  expect(differenceWords(one, two)).toBe('until 2026-01-15T13:00:00.000Z → 2026-01-15T14:00:00.000Z');
});

test('an answer of another shape is told by the place where it differs', () => {
  expect(() =>
    readAdvice({ at: '2026-01-15T12:00:00Z', processes: 1, classes: [{ class: 'list' }] }, 'api/cache/advice'),
  ).toThrow('api/cache/advice.classes[0].reads is not a number');
});
