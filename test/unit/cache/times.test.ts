import { expect, test } from 'vitest';
import { AdjustableTimes, DEFAULT_TIMES, isKept } from '../../../src/cache/times.ts';

const S = 1000;
const M = 60 * S;
const H = 60 * M;

test.each([
  ['list', 30 * S, 5 * M, H],
  ['evaluation', 5 * M, H, 24 * H],
  ['transcript', H, 24 * H, 7 * 24 * H],
  ['scorecard', 15 * M, H, 24 * H],
  ['rubric', 10 * M, H, 24 * H],
  ['dealInsights', 5 * M, H, 24 * H],
  ['notFound', 15 * S, 0, 0],
] as const)('C1: the default times of %s', (cacheClass, freshMs, staleMs, errorMs) => {
  expect(DEFAULT_TIMES[cacheClass]).toEqual({ freshMs, staleMs, errorMs });
});

test('a time that is set rules, the others of its class and the other classes stay', () => {
  const times = new AdjustableTimes();
  times.set('list', { freshMs: 45 * S });
  times.set('list', { errorMs: 0 });
  expect(times.of('list')).toEqual({ freshMs: 45 * S, staleMs: 5 * M, errorMs: 0 });
  expect(times.setOf('list')).toEqual({ freshMs: 45 * S, errorMs: 0 });
  expect(times.of('rubric')).toEqual(DEFAULT_TIMES.rubric);
});

test('a reset goes back to the configuration', () => {
  const times = new AdjustableTimes();
  times.set('list', { freshMs: 45 * S });
  times.reset('list');
  expect(times.of('list')).toEqual(DEFAULT_TIMES.list);
  expect(times.setOf('list')).toEqual({});
});

test('another configuration leaves what was set set', () => {
  const times = new AdjustableTimes();
  times.set('list', { freshMs: 45 * S });
  const list = { freshMs: 1, staleMs: 2, errorMs: 3 };
  times.configure({ ...DEFAULT_TIMES, list, rubric: list });
  expect(times.of('list')).toEqual({ freshMs: 45 * S, staleMs: 2, errorMs: 3 });
  expect(times.of('rubric')).toEqual(list);
});

test('only a class without any time is not kept', () => {
  expect(isKept({ freshMs: 0, staleMs: 0, errorMs: 0 })).toBe(false);
  expect(isKept({ freshMs: 0, staleMs: 0, errorMs: 1 })).toBe(true);
  expect(isKept({ freshMs: 0, staleMs: 1, errorMs: 0 })).toBe(true);
  expect(isKept({ freshMs: 1, staleMs: 0, errorMs: 0 })).toBe(true);
});
