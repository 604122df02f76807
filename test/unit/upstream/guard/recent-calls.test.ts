import { array, assert, boolean, integer, property, tuple } from 'fast-check';
import { expect, test } from 'vitest';
import { RecentCalls } from '../../../../src/upstream/guard/recent-calls.ts';

const COUNTED_FOR_MS = 10_000;
const MOST_CALLS = 80;

test('the last 80 calls count, of these no one from more than 10 s before the last', () => {
  const call = tuple(integer({ min: 0, max: 400 }), boolean());
  assert(
    property(array(call, { maxLength: 200, size: 'max' }), (calls) => {
      const recent = new RecentCalls();
      const all: { readonly atMs: number; readonly hasFailed: boolean }[] = [];
      let nowMs = 0;
      for (const [pauseMs, hasFailed] of calls) {
        nowMs += pauseMs;
        all.push({ atMs: nowMs, hasFailed });
        recent.add(hasFailed, nowMs);
        const counted = all.filter(({ atMs }) => nowMs - atMs < COUNTED_FOR_MS).slice(-MOST_CALLS);
        const failed = counted.filter((one) => one.hasFailed).length;
        expect(recent.count).toBe(counted.length);
        expect(recent.failedPercent).toBe((100 * failed) / counted.length);
      }
      recent.clear();
      expect([recent.count, recent.failedPercent]).toEqual([0, 0]);
    }),
  );
});
