import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { RetryBudget } from '../../../../src/upstream/guard/retry-budget.ts';
import { retryDelayMs, verdictOf } from '../../../../src/upstream/guard/verdicts.ts';
import { StoreError, type StoreErrorKind } from '../../../../src/upstream/store.ts';

function failure(kind: StoreErrorKind, status: number | null = null, retryAfterMs: number | null = null): StoreError {
  return new StoreError(kind, 'a failure', { status, retryAfterMs });
}

test('whatever fails, and in whatever order, no more than a tenth of the calls is repeated', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 500 }), (steps) => {
      const budget = new RetryBudget(10);
      let [sent, repeated] = [0, 0];
      for (const isCall of steps) {
        if (isCall) {
          budget.earn();
          sent += 1;
        } else if (budget.spend()) repeated += 1;
        expect(repeated * 10).toBeLessThanOrEqual(sent);
      }
    }),
  );
});

test('ten calls earn one repetition', () => {
  const budget = new RetryBudget(10);
  const spent = Array.from({ length: 20 }, () => {
    budget.earn();
    return budget.spend();
  });
  expect(spent.flatMap((isSpent, index) => (isSpent ? [index + 1] : []))).toEqual([10, 20]);
});

test('of a long good time ten repetitions are left, not more', () => {
  const budget = new RetryBudget(10);
  for (let calls = 0; calls < 10_000; calls += 1) budget.earn();
  expect(Array.from({ length: 12 }, () => budget.spend())).toEqual([
    ...Array.from({ length: 10 }, () => true),
    false,
    false,
  ]);
});

test('with a budget of nothing nothing is repeated', () => {
  const budget = new RetryBudget(0);
  for (let calls = 0; calls < 1000; calls += 1) budget.earn();
  expect(budget.spend()).toBe(false);
});

test.each([
  ['timeout', null, 'bad'],
  ['unreachable', null, 'bad'],
  ['garbled', 200, 'bad'],
  ['refused', 500, 'bad'],
  ['refused', 503, 'bad'],
  ['refused', 429, 'bad'],
  ['refused', 401, 'good'],
  ['refused', 302, 'good'],
  ['malformed', 200, 'good'],
  ['aborted', null, 'none'],
  ['overloaded', null, 'none'],
  ['paused', null, 'none'],
] as const)('%s with status %s is %s news of the store', (kind, status, verdict) => {
  expect(verdictOf(failure(kind, status))).toBe(verdict);
});

test('an argument that could not be sent is not tried again', () => {
  expect(retryDelayMs(new TypeError('no id'), 1, 0)).toBeNull();
});

test.each([
  [failure('unreachable'), true],
  [failure('refused', 502), true],
  [failure('refused', 503), true],
  [failure('refused', 504), true],
  [failure('refused', 429, 1000), true],
  [failure('refused', 429), false],
  [failure('refused', 500), false],
  [failure('refused', 401), false],
  [failure('timeout'), false],
  [failure('garbled', 200), false],
  [failure('malformed', 200), false],
  [failure('aborted'), false],
  [failure('overloaded', null, 1000), false],
])('%o can be repeated: %s', (error, isRepeated) => {
  expect(retryDelayMs(error, 1, 0.5) !== null).toBe(isRepeated);
});

test('the delay is at random within 100 ms, then within 200 ms, and never less than the store asks for', () => {
  const [first, last] = [0, 0.999];
  expect([retryDelayMs(failure('unreachable'), 1, first), retryDelayMs(failure('unreachable'), 1, last)]).toEqual([
    0, 99.9,
  ]);
  expect(retryDelayMs(failure('refused', 503), 2, last)).toBeCloseTo(199.8);
  expect(retryDelayMs(failure('refused', 503, 2000), 1, 0.5)).toBe(2050);
});
