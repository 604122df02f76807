import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import { growthPercent, lendHeapRoom } from '../../src/heap-room.ts';

const MB = 1e6;
const often = { sinceLastMs: 700, allowedBytes: 184 * MB, heapBytes: 40 * MB };

function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  runInNewContext('gc()');
}

test.each([
  ['room for a quarter of the heap is lent', { residentBytes: 174 * MB }, 40],
  ['room for more than the heap is not lent whole', { residentBytes: 110 * MB }, 100],
  ['where there is none, it grows as little as it did', { residentBytes: 184 * MB }, 15],
  ['nor is it less beyond what is allowed', { residentBytes: 250 * MB }, 15],
  ['who collects seldom needs none', { residentBytes: 110 * MB, sinceLastMs: 5000 }, 15],
])('%s', (_what, given, percent) => {
  expect(growthPercent({ ...often, ...given })).toBe(percent);
});

test('what is lent fits beside what is resident', () => {
  const bytes = fc.integer({ min: 20 * MB, max: 4000 * MB });
  fc.assert(
    fc.property(bytes, bytes, bytes, (residentBytes, allowedBytes, heapBytes) => {
      const percent = growthPercent({ sinceLastMs: 700, residentBytes, allowedBytes, heapBytes });
      const lentBytes = ((percent - 15) / 100) * heapBytes;
      // Percents are whole.
      expect(lentBytes).toBeLessThanOrEqual(Math.max(0, allowedBytes - residentBytes) + heapBytes / 200);
      expect(percent).toBeGreaterThanOrEqual(15);
      expect(percent).toBeLessThanOrEqual(100);
    }),
  );
});

test('each full collection is looked at, with the time since the one before', async () => {
  let nowMs = 0;
  let residentBytes = 90 * MB;
  /** The first at each time: V8 may collect by itself too. */
  const percents = new Map<number, number>();
  lendHeapRoom(64 * MB, {
    clock: { nowMicros: () => 1000 * nowMs },
    residentBytes: () => residentBytes,
    heapBytes: () => 100 * MB,
    setGrowthPercent: (percent) => percents.set(nowMs, percents.get(nowMs) ?? percent),
  });
  const collectAfter = async (ms: number): Promise<void> => {
    nowMs += ms;
    collectGarbage();
    await vi.waitFor(() => expect(percents.has(nowMs)).toBe(true));
  };
  await collectAfter(6000);
  await collectAfter(700);
  residentBytes = 150 * MB;
  await collectAfter(700);
  await collectAfter(6000);
  expect([...percents.values()]).toEqual([15, 89, 29, 15]);
});

test('it begins with what V8 is told at the start', () => {
  const engine = readFileSync(join(import.meta.dirname, '../../src/cli/engine.js'), 'utf8');
  const atStart = Number(/--heap-growing-percent=(\d+)/.exec(engine)?.[1]);
  expect(growthPercent({ ...often, residentBytes: often.allowedBytes })).toBe(atStart);
});
