import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FrequencySketch } from '../../../../src/cache/what-if/frequency-sketch.ts';
import { BUCKETS, bucketOf, middleOf } from '../../../../src/cache/what-if/log-scale.ts';
import { mix32 } from '../../../../src/cache/hash.ts';
import { Sample } from '../../../../src/cache/what-if/sample.ts';
import { SlotPool } from '../../../../src/cache/what-if/slot-pool.ts';

describe('the slots', () => {
  const step = fc.record({
    does: fc.constantFrom('take', 'release', 'find'),
    owner: fc.nat(2),
    // Few, so that their places in the index collide and are taken again.
    hash: fc.nat(60),
  });

  test('are found by class and hash, as in a map', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const pool = new SlotPool(1);
        const known = new Map<string, number>();
        for (const { does, owner, hash } of steps) {
          const name = `${owner}:${hash}`;
          const slot = known.get(name);
          expect(pool.find(owner, hash)).toBe(slot ?? -1);
          if (does === 'take' && slot === undefined) known.set(name, pool.take(owner, hash));
          if (does === 'release' && slot !== undefined) {
            pool.release(slot);
            known.delete(name);
          }
        }
        expect(pool.free).toBe(1024 - known.size);
        expect(new Set(known.values()).size).toBe(known.size);
      }),
    );
  });

  test('are as many as there are, and free again when released', () => {
    const pool = new SlotPool(2);
    const slots = Array.from({ length: 2048 }, (_, hash) => pool.take(0, mix32(hash)));
    expect(new Set(slots).size).toBe(2048);
    expect([pool.free, pool.take(0, 1)]).toEqual([0, -1]);
    const bytes = pool.bytes;
    for (const slot of slots) pool.release(slot);
    expect(pool.free).toBe(2048);
    for (let hash = 0; hash < 2048; hash++) expect(pool.find(0, mix32(hash))).toBe(-1);
    for (let hash = 0; hash < 2048; hash++) expect(pool.take(1, hash)).toBeGreaterThanOrEqual(0);
    expect(pool.bytes).toBe(bytes);
  });
});

describe('the frequency sketch', () => {
  test('never counts too few, and hardly ever too many', () => {
    const sketch = new FrequencySketch(0, () => {});
    const counts = Array.from({ length: 5000 }, () => 0);
    for (let read = 0; read < 20_000; read++) {
      const key = read % (1 + (read % 5000));
      counts[key] = (counts[key] ?? 0) + 1;
      sketch.add(mix32(key), read);
    }
    const over = counts.map((count, key) => sketch.add(mix32(key), 20_000) - 1 - Math.min(count, 254));
    expect(Math.min(...over)).toBe(0);
    expect(over.filter((error) => error > 0).length).toBeLessThan(100);
  });

  test('forgets half when it is full, tells so, and still tells rates', () => {
    let halved = 0;
    const sketch = new FrequencySketch(0, () => (halved += 1));
    const before = Array.from({ length: 100 }, (_, read) => sketch.add(7, read)).at(-1);
    expect(before).toBe(100);
    for (let read = 100; read < 131_073; read++) sketch.add(mix32(read), read);
    expect(halved).toBe(1);
    const reads = sketch.add(7, 131_073);
    expect(reads).toBeGreaterThanOrEqual(51);
    expect(reads).toBeLessThan(60);
    expect(sketch.rateOf(65.5, 131_073)).toBeCloseTo(0.001, 5);
  });
});

describe('the sample', () => {
  test('is whole at first; then it loses an eighth at a time, and each key stands for more', () => {
    const sample = new Sample();
    expect([sample.isWhole, sample.weight, sample.counts(2 ** 32 - 1)]).toEqual([true, 1, true]);
    sample.narrow();
    expect([sample.isWhole, sample.weight]).toEqual([false, 8 / 7]);
    expect([sample.follows(0.874 * 2 ** 32), sample.follows(0.876 * 2 ** 32)]).toEqual([true, false]);
  });

  test('counts what is followed anew only once it is known', () => {
    const sample = new Sample();
    sample.narrow();
    sample.widen(100, 2);
    const hash = 2 ** 32 - 1;
    expect([sample.follows(hash), sample.counts(hash)]).toEqual([true, false]);
    sample.turn();
    expect(sample.counts(hash)).toBe(false);
    sample.turn();
    expect([sample.counts(hash), sample.isWhole]).toEqual([true, true]);
  });

  test('gives up first what does not count yet', () => {
    const sample = new Sample();
    sample.narrow();
    const { weight } = sample;
    sample.widen(100, 2);
    sample.narrow();
    expect([sample.follows(2 ** 32 - 1), sample.weight]).toEqual([false, weight]);
  });
});

test('what stands for a duration is at most a tenth from it, from 16 ms to 49 days', () => {
  fc.assert(
    fc.property(fc.double({ min: Math.log(16.001), max: Math.log(4.2e9), noNaN: true }), (logarithm) => {
      const durationMs = Math.exp(logarithm);
      expect(Math.abs(middleOf(bucketOf(durationMs)) / durationMs - 1)).toBeLessThan(0.095);
    }),
  );
  expect([bucketOf(0), bucketOf(15.9), middleOf(0), bucketOf(1e12), bucketOf(Number.NaN)]).toEqual([
    0,
    0,
    0,
    BUCKETS - 1,
    0,
  ]);
});
