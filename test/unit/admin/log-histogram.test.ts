import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { LogHistogram } from '../../../src/admin/log-histogram.ts';

test('nothing recorded has no quantile', () => {
  expect(new LogHistogram().quantile(0.5)).toBeNull();
});

test('small values are exact', () => {
  const histogram = new LogHistogram();
  for (const value of [0, 1, 2, 3, 4, 5, 6, 7, 8, 15]) histogram.record(value);
  expect([0.1, 0.2, 0.5, 0.9, 1].map((share) => histogram.quantile(share))).toEqual([0, 1, 4, 8, 15]);
});

test('a quantile is within 7 % of the one of the values themselves, whatever they are', () => {
  const value = fc.integer({ min: 0, max: 2 ** 32 - 1 });
  fc.assert(
    fc.property(fc.array(value, { minLength: 1, maxLength: 200 }), fc.constantFrom(0.5, 0.9, 0.99, 1), (all, share) => {
      const histogram = new LogHistogram();
      for (const one of all) histogram.record(one);
      const exact = all.toSorted((a, b) => a - b)[Math.max(1, Math.ceil(share * all.length)) - 1] ?? 0;
      const told = histogram.quantile(share) ?? Number.NaN;
      expect(Math.abs(told - exact)).toBeLessThanOrEqual(0.07 * exact);
    }),
  );
});

test('what is out of its range counts as the nearest value in it', () => {
  const histogram = new LogHistogram();
  histogram.record(-5);
  expect(histogram.quantile(1)).toBe(0);
  histogram.record(1e15);
  expect(histogram.quantile(1)).toBeGreaterThan(4e9);
});
