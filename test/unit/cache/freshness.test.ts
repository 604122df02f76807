import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { classify, jitterOf } from '../../../src/cache/classify.ts';
import { hash32 } from '../../../src/cache/hash.ts';

const times = { freshMs: 30_000, staleMs: 300_000, errorMs: 3_600_000 };
const plain = { jitter: 0, isOutdated: false };

test.each([
  [0, 'fresh', 30_000],
  [29_999, 'fresh', 1],
  [30_000, 'stale', 0],
  [329_999, 'stale', -299_999],
  [330_000, 'usable-on-error', -300_000],
  [3_629_999, 'usable-on-error', -3_599_999],
  [3_630_000, 'gone', -3_600_000],
] as const)('C1, C2: at the age of %d ms an entry is %s, with %d ms left', (ageMs, usability, ttlMs) => {
  expect(classify(ageMs, times, plain)).toEqual({ usability, ttlMs });
});

test('C2: stale and error times both count from the end of freshness, so a shorter error time ends nothing that is stale', () => {
  expect(classify(100_000, { ...times, errorMs: 0 }, plain).usability).toBe('stale');
  expect(classify(330_000, { ...times, errorMs: 0 }, plain).usability).toBe('gone');
});

test('C1: what has neither stale nor error time is gone when its freshness ends', () => {
  expect(classify(15_000, { freshMs: 15_000, staleMs: 0, errorMs: 0 }, plain).usability).toBe('gone');
});

test('C2: jitter shortens freshness by a tenth at most, and stale and error time begin earlier by as much', () => {
  expect(classify(0, times, { ...plain, jitter: 0.5 }).ttlMs).toBe(28_500);
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (jitter) => {
      const { ttlMs } = classify(0, times, { ...plain, jitter });
      expect(ttlMs).toBeGreaterThanOrEqual(27_000);
      expect(ttlMs).toBeLessThanOrEqual(30_000);
    }),
  );
});

test('a soft purge makes a fresh entry stale at once, and an old one no younger', () => {
  expect(classify(1, times, { ...plain, isOutdated: true })).toEqual({ usability: 'stale', ttlMs: 0 });
  expect(classify(40_000, times, { ...plain, isOutdated: true })).toEqual({ usability: 'stale', ttlMs: -10_000 });
});

test('jitter is spread evenly over keys that differ by one character and over fills a millisecond apart', () => {
  const buckets = Array.from({ length: 10 }, () => 0);
  for (let index = 0; index < 10_000; index++) {
    const bucket = Math.floor(
      10 * jitterOf(hash32(`v1:{evaluation:ev_${index % 100}}`), 1_772_600_000_000 + Math.floor(index / 100)),
    );
    buckets[bucket] = (buckets[bucket] ?? 0) + 1;
  }
  for (const count of buckets) {
    expect(count).toBeGreaterThan(850);
    expect(count).toBeLessThan(1150);
  }
});
