import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { combined, fit } from '../../bench/capacity-fit.ts';

test('points of a line give the line, and nothing is left over', () => {
  const found = fit([0, 1, 4, 9].map((x) => ({ terms: [1, x], value: 7 + 3 * x })));
  expect(found.coefficients[0]).toBeCloseTo(7, 10);
  expect(found.coefficients[1]).toBeCloseTo(3, 10);
  expect(found.r2).toBeCloseTo(1, 10);
  expect(found.errorPercent).toBeCloseTo(0, 8);
});

test('what lies beside the line is what is left over', () => {
  // The best line through these is 1 + x, with 1, -2, 1 left over.
  const found = fit([
    { terms: [1, 0], value: 2 },
    { terms: [1, 1], value: 0 },
    { terms: [1, 2], value: 4 },
  ]);
  expect(found.coefficients[0]).toBeCloseTo(1, 10);
  expect(found.coefficients[1]).toBeCloseTo(1, 10);
  expect(found.r2).toBeCloseTo(1 - 6 / 8, 10);
  expect(found.errorPercent).toBeCloseTo((100 * Math.sqrt(2)) / 2, 8);
});

test('a plane without a constant is found by the terms alone', () => {
  const observations = [
    [1, 500, 20],
    [1, 2000, 30],
    [2, 1000, 80],
    [4, 8000, 160],
    [4, 0, 0],
  ].map((terms) => ({ terms, value: combined(terms, [12_000, 31, 450]) }));
  const { coefficients } = fit(observations);
  expect(coefficients.map((value) => Number(value.toFixed(3)))).toEqual([12_000, 31, 450]);
});

test('any coefficients are found again from enough points', () => {
  const coefficient = fc.double({ min: -1000, max: 1000, noNaN: true });
  fc.assert(
    fc.property(fc.tuple(coefficient, coefficient, coefficient), (wanted) => {
      const observations = [-3, -1, 0, 2, 5].map((x) => {
        const terms = [1, x, x * x];
        return { terms, value: combined(terms, wanted) };
      });
      for (const [index, found] of fit(observations).coefficients.entries())
        expect(found).toBeCloseTo(wanted[index] ?? 0, 6);
    }),
  );
});

test('too few points, or terms that always go together, are refused', () => {
  expect(() => fit([{ terms: [1, 2], value: 3 }])).toThrow(RangeError);
  expect(() => fit([])).toThrow(RangeError);
  const together = [1, 2, 3].map((x) => ({ terms: [x, 2 * x], value: x }));
  expect(() => fit(together)).toThrow('The points do not tell the terms apart.');
});
