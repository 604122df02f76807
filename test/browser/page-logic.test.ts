/** What of the page's own scripts is pure, without a browser. */
import { describe, expect, test } from 'vitest';
import { actionWords, differenceWords } from '../../src/admin/dashboard/page/audit-words.js';
import { bytes, duration, parseDuration, percent, rate, written } from '../../src/admin/dashboard/page/format.js';
import { steps, whole, windows } from '../../src/admin/dashboard/page/hour-data.js';
import { compare, nearest, predict } from '../../src/admin/dashboard/page/prediction.js';
import { hear, together } from '../../src/admin/dashboard/page/pulse-data.js';
import { readAdvice } from '../../src/admin/dashboard/page/shapes.js';
import { factorOf, leftWords, limitWords, perRead, shareOf } from '../../src/admin/dashboard/page/trial-words.js';

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

const ARM = {
  fresh: '30s',
  freshMs: 30_000,
  reads: 100,
  hitRatio: 0.9,
  storeCalls: 10,
  storeFailures: 0,
  storeCallsPerRead: 0.1,
  storeFailureRatio: 0,
};
const TRIAL = {
  id: 't1',
  class: 'list',
  state: 'running',
  reason: null,
  fresh: '1m',
  freshMs: 60_000,
  share: 0.1,
  startedAt: 0,
  startedBy: 'alice',
  until: 3_600_000,
  endedAt: null,
  limits: { maxStoreLoad: 1.5, maxErrors: 0.05 },
  arms: { trial: { ...ARM, fresh: '1m', freshMs: 60_000 }, control: ARM },
  predicted: { trial: null, control: null },
};

const share = (typed: string): number => shareOf(typed, { name: 'Share', least: 0, largest: 0.5 });
const words = (trial: object, control: object = {}, more: object = {}): readonly string[] =>
  limitWords({
    ...TRIAL,
    ...more,
    arms: { trial: { ...TRIAL.arms.trial, ...trial }, control: { ...ARM, ...control } },
  }).map(spaced);

describe('trials', () => {
  test('a share is typed in percent or as a ratio, and nothing else is one', () => {
    expect(['10%', '0.1', ' 7 % ', '0.5', '50%', '2.5%'].map(share)).toEqual([0.1, 0.1, 0.07, 0.5, 0.5, 0.025]);
    const said = 'Share: “10” is no share for this. Write 10% or 0.1; above 0 and at most 50\u00a0%.';
    expect(() => share('10')).toThrow(said);
    for (const typed of ['', '0', '0%', '51%', '-1%', '1e-1', '0,1', 'ten'])
      expect(() => share(typed)).toThrow('is no share for this');
    const errors = { name: 'Errors', least: 0.01, largest: 1 };
    expect([shareOf('1%', errors), shareOf('1', errors)]).toEqual([0.01, 1]);
    expect(() => shareOf('0.9%', errors)).toThrow('at least 1\u00a0% and at most 100\u00a0%.');
  });

  test('a multiple has its bounds', () => {
    expect(['1.1', ' 2 ', '100'].map((typed) => factorOf('Load', typed))).toEqual([1.1, 2, 100]);
    for (const typed of ['', '1', '100.1', '1.5x', '-2']) expect(() => factorOf('Load', typed)).toThrow('at least 1.1');
  });

  test('few calls per read are more than none', () => {
    expect([null, 0, 0.0004, 0.0625, 1.5].map(perRead)).toEqual(['–', '0.000', '<\u00a00.001', '0.063', '1.500']);
  });

  test('what is left is never less than nothing', () => {
    expect(spaced(leftWords(TRIAL, 1_200_000))).toMatch(/^40 min left, until /);
    expect(leftWords(TRIAL, 3_600_000)).toBe('about to end');
  });

  test('how the trial stands beside the rest, and where it goes back', () => {
    const [back, errors] = [
      'clearly above 1.5 times the trial goes back by itself.',
      'clearly above 5 points more it goes back by itself.',
    ];
    expect(words({ storeCallsPerRead: 0.123, storeFailureRatio: 0.031 })).toEqual([
      `A read costs the store 1.23 times what one of the rest does; ${back}`,
      `Of its store calls 3.1 points more than of the rest fail; ${errors}`,
    ]);
    expect(words({}, { storeCallsPerRead: 0, storeFailureRatio: 0.2 })).toEqual([
      `A read costs the store something, that of the rest nothing; ${back}`,
      `Of its store calls 20 points fewer than of the rest fail; ${errors}`,
    ]);
    expect(words({ storeCallsPerRead: 0 }, { storeCallsPerRead: 0 })).toEqual([
      `A read costs the store nothing, as that of the rest; ${back}`,
      `Of its store calls as many as of the rest fail; ${errors}`,
    ]);
    const unread = { storeCallsPerRead: null, storeFailureRatio: null, freshMs: 1000 };
    expect(words(unread, {}, { reason: 'Not judged yet: none was read.' })).toEqual([
      'A read costs the store an amount that is not known yet; clearly above 1.5 times what is predicted the trial goes back by itself.',
      `Of its store calls a share that is not known yet fail; ${errors}`,
      'Not judged yet: none was read.',
    ]);
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
