import { expect, test } from 'vitest';
import { DEFAULT_TIMES } from '../../../../src/cache/times.ts';
import { ClassWatch } from '../../../../src/cache/what-if/class-watch.ts';
import { FrequencySketch } from '../../../../src/cache/what-if/frequency-sketch.ts';
import { mix32 } from '../../../../src/cache/hash.ts';
import { placeOf, SlotPool } from '../../../../src/cache/what-if/slot-pool.ts';

const HOUR_MS = 3_600_000;

/** One class with room for 1,024 keys. */
function createWatch() {
  const pool = new SlotPool(1);
  const sketch = new FrequencySketch(0, () => {});
  const watch = new ClassWatch(0, { pool, sketch: () => sketch, makeRoom: () => watch.shrink() }, 0);
  const read = (key: number, atMs: number): void => watch.read(mix32(key), atMs, DEFAULT_TIMES.list);
  const isHead = (key: number): boolean => {
    const slot = pool.find(0, mix32(key));
    return slot >= 0 && pool.blockOf(slot).heads[placeOf(slot)] === 1;
  };
  return { watch, pool, read, isHead };
}

test('as long as there is room every key is followed, and none is a head', () => {
  const { watch, pool, read, isHead } = createWatch();
  for (let key = 0; key < 1024; key++) read(key, key);
  expect([watch.sampled, pool.free, isHead(1)]).toEqual([1024, 0, false]);
});

test('when there is none any more, the busiest are heads, and a sample of the others stays', () => {
  const { watch, pool, read, isHead } = createWatch();
  for (let key = 0; key < 1024; key++) for (let time = 0; time < (key < 100 ? 5 : 1); time++) read(key, key);
  for (let key = 1024; key < 20_000; key++) read(key, key);
  expect(Array.from({ length: 100 }, (_, key) => isHead(key))).not.toContain(false);
  // Half of the keys are heads; of the rest some 5 % of 20,000 had to do.
  expect(watch.sampled).toBeLessThanOrEqual(512);
  expect(watch.sampled).toBeGreaterThan(300);
  expect(pool.size - pool.free - watch.sampled).toBe(512);
});

test('a key that becomes busy takes the place of a head that is not, whether it was sampled or not', () => {
  const { read, isHead } = createWatch();
  for (let key = 0; key < 5000; key++) read(key, key);
  const risen = Array.from({ length: 50 }, (_, index) => 10_000 + index);
  expect(risen.some(isHead)).toBe(false);
  for (let time = 0; time < 10; time++) for (const key of risen) read(key, 10_000 + time);
  expect(risen.every(isHead)).toBe(true);
});

test('one that is read as rarely as the heads are displaces none', () => {
  const { read, isHead } = createWatch();
  for (let key = 0; key < 1024; key++) for (let time = 0; time < 3; time++) read(key, key);
  for (let key = 1024; key < 3000; key++) for (let time = 0; time < 3; time++) read(key, key);
  expect(Array.from({ length: 1976 }, (_, index) => isHead(1024 + index)).filter(Boolean).length).toBeLessThan(30);
});

test('a flood of keys leaves a small sample; when it is over, all keys are followed again within days', () => {
  const { watch, pool, read } = createWatch();
  for (let key = 0; key < 50_000; key++) read(key, key);
  const usual = Array.from({ length: 300 }, (_, index) => 100_000 + index);
  const follow = (): number => usual.filter((key) => pool.find(0, mix32(key)) >= 0).length;
  for (const key of usual) read(key, HOUR_MS);
  expect(follow()).toBeLessThan(50);
  for (let hour = 2; hour < 140; hour++) for (const key of usual) read(key, hour * HOUR_MS);
  expect(follow()).toBe(300);
  const [half] = watch.points(0);
  expect(half).toMatchObject({ freshMs: 500, calls: half?.reads });
  const day = watch.points(0).find(({ freshMs }) => freshMs === 86_400_000);
  // Each key once a day or a little less: 32 to 36 hours hold one or two calls of each.
  expect((day?.calls ?? 0) / (day?.reads ?? 1)).toBeGreaterThan(0.035);
  expect((day?.calls ?? 0) / (day?.reads ?? 1)).toBeLessThan(0.055);
});
