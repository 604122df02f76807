import { describe, expect, test } from 'vitest';
import { ChangeTally, type Comparisons, learnChanges } from '../../../../src/cache/what-if/change-rate.ts';
import { middleOf } from '../../../../src/cache/what-if/tally.ts';
import { SeededRandom } from '../../../support/random.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** Refreshes at random times of records that change at random times, each at one of those rates a millisecond. */
function refreshes(count: number, rates: readonly number[], longestMs: number): readonly Comparisons[] {
  const random = new SeededRandom(count);
  const tally = new ChangeTally(0);
  for (let refresh = 0; refresh < count; refresh++) {
    const sinceMs = longestMs ** random.next() * 1000 ** 0.5;
    const isChanged = random.next() < -Math.expm1(-(rates[refresh % rates.length] ?? 0) * sinceMs);
    tally.add({ band: 0, changed: isChanged ? 1 : 0, sinceMs, weight: 1 }, 0);
  }
  return comparisonsOf(tally);
}

function comparisonsOf(tally: ChangeTally): readonly Comparisons[] {
  return tally.rows().map(([, bucket, seen, changed]) => ({ sinceMs: middleOf(bucket), seen, changed }));
}

test('nothing is known without a refresh, nor of fewer than thirty', () => {
  expect(learnChanges([])).toBeNull();
  for (const changed of [0, 1, 29]) expect(learnChanges([{ sinceMs: MINUTE_MS, seen: 29, changed }])).toBeNull();
  const two = [
    { sinceMs: MINUTE_MS, seen: 15, changed: 1 },
    { sinceMs: HOUR_MS, seen: 15, changed: 1 },
  ];
  expect(learnChanges(two)).not.toBeNull();
});

describe('the share that is out of date, learned from refreshes, is the true one', () => {
  const ages = [MINUTE_MS, 10 * MINUTE_MS, HOUR_MS, 6 * HOUR_MS];

  test('if all records change alike', () => {
    const rate = 1 / (3 * HOUR_MS);
    const outdatedAt = learnChanges(refreshes(20_000, [rate], DAY_MS));
    for (const ageMs of ages) {
      const truth = -Math.expm1(-rate * ageMs);
      expect(Math.abs((outdatedAt?.(ageMs) ?? 1) / truth - 1)).toBeLessThan(0.15);
    }
  });

  test('at the age of the refreshes, if a few records change all the time and most never do', () => {
    const rates = [1 / (2 * MINUTE_MS), 0, 0, 0, 0, 0, 0, 0, 0, 0];
    const share = (ageMs: number): number => 0.1 * -Math.expm1(-ageMs / (2 * MINUTE_MS));
    const random = new SeededRandom(7);
    const tally = new ChangeTally(0);
    for (let refresh = 0; refresh < 20_000; refresh++) {
      const rate = rates[refresh % rates.length] ?? 0;
      const changed = random.next() < -Math.expm1(-rate * 10 * MINUTE_MS) ? 1 : 0;
      tally.add({ band: 0, changed, sinceMs: 10 * MINUTE_MS, weight: 1 }, 0);
    }
    const outdatedAt = learnChanges(comparisonsOf(tally));
    expect(Math.abs((outdatedAt?.(10 * MINUTE_MS) ?? 1) - share(10 * MINUTE_MS))).toBeLessThan(0.015);
    // One rate for all shows too few outdated answers at younger ages, and too many at older ones.
    expect(outdatedAt?.(MINUTE_MS)).toBeLessThan(share(MINUTE_MS));
    expect(outdatedAt?.(HOUR_MS)).toBeGreaterThan(share(HOUR_MS));
  });

  test('at ages far below those of the refreshes, as long as records are alike', () => {
    const rate = 1 / HOUR_MS;
    const same = [{ sinceMs: 30 * MINUTE_MS, seen: 10_000, changed: 10_000 * -Math.expm1(-0.5) }];
    const outdatedAt = learnChanges(same);
    expect(Math.abs((outdatedAt?.(MINUTE_MS) ?? 1) / -Math.expm1(-rate * MINUTE_MS) - 1)).toBeLessThan(0.3);
  });
});

function unchanged(seen: number) {
  return learnChanges([{ sinceMs: MINUTE_MS, seen, changed: 0 }]);
}

describe('refreshes without a change', () => {
  test('are no proof that nothing changes', () => {
    expect(unchanged(30)?.(MINUTE_MS)).toBeCloseTo(0.5 / 31, 4);
    expect(unchanged(99)?.(MINUTE_MS)).toBeCloseTo(0.5 / 100, 4);
  });

  test('become one as they grow in number, for their own age and less than for longer ones', () => {
    expect(unchanged(1000)?.(MINUTE_MS)).toBeLessThan(0.001);
    expect(unchanged(1000)?.(DAY_MS)).toBeGreaterThan(0.3);
  });
});

test('if every refresh brought a change, nearly all copies of that age are out of date', () => {
  expect(learnChanges([{ sinceMs: MINUTE_MS, seen: 1000, changed: 1000 }])?.(MINUTE_MS)).toBeGreaterThan(0.99);
});

test('a copy of no age is never out of date, and an older one never less than a younger', () => {
  const outdatedAt = learnChanges(refreshes(500, [1 / HOUR_MS, 1 / DAY_MS], DAY_MS));
  const shares = [0, 1, 1000, MINUTE_MS, HOUR_MS, DAY_MS, 30 * DAY_MS].map((ageMs) => outdatedAt?.(ageMs) ?? -1);
  expect(shares[0]).toBe(0);
  expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  expect(shares.at(-1)).toBeLessThanOrEqual(1);
});

test('changes seen a day ago count half', () => {
  const tally = new ChangeTally(0);
  for (let time = 0; time < 8; time++) tally.add({ band: 0, changed: 1, sinceMs: MINUTE_MS, weight: 1 }, 0);
  tally.add({ band: 0, changed: 0, sinceMs: MINUTE_MS, weight: 1 }, DAY_MS);
  expect(comparisonsOf(tally)).toMatchObject([{ seen: 5, changed: 4 }]);
});
