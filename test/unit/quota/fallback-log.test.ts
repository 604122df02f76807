import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { RunLog } from '../../../src/quota/fallback-log.ts';

function entriesOf(log: RunLog): number[] {
  return Array.from({ length: log.length }, (_, index) => log.at(index));
}

test('a log gives back what was pushed, in order, until it holds too many times', () => {
  const log = new RunLog();
  const times = Array.from({ length: 256 }, (_, i) => 1000 + i * 7);
  for (const time of times) log.push(time, 1);
  expect(entriesOf(log)).toEqual(times);
  expect(log.runCount).toBe(256);
});

test('entries of one time take the space of one', () => {
  const log = new RunLog();
  log.push(5, 1_000_000);
  log.push(5, 2);
  log.push(6, 1);
  expect(log.runCount).toBe(2);
  expect(log.length).toBe(1_000_003);
  expect(log.at(1_000_001)).toBe(5);
  expect(log.at(1_000_002)).toBe(6);
  expect(log.runs()).toEqual([
    [5, 1_000_002],
    [6, 1],
  ]);
});

test('what is put in between is where it belongs', () => {
  const change = fc.record({
    kind: fc.constantFrom('push', 'insert', 'drop', 'dropBefore'),
    time: fc.integer({ min: 0, max: 20 }),
    count: fc.integer({ min: 1, max: 4 }),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 40 }), (changes) => {
      const log = new RunLog();
      let expected: number[] = [];
      for (const { kind, time, count } of changes) {
        if (kind === 'drop') {
          log.dropOldest(Math.min(count, expected.length));
          expected = expected.slice(count);
          continue;
        }
        if (kind === 'dropBefore') {
          log.dropBefore(time);
          expected = expected.filter((entry) => entry >= time);
          continue;
        }
        const at = kind === 'push' ? Math.max(time, expected.at(-1) ?? 0) : time;
        log[kind](at, count);
        expected = [...expected, ...Array.from({ length: count }, () => at)].toSorted((a, b) => a - b);
      }
      expect(entriesOf(log)).toEqual(expected);
      expect(log.runs().map(([time]) => time)).toEqual([...new Set(expected)]);
    }),
  );
});

test('one time too many puts the older half together in pairs, each at its later time', () => {
  const log = new RunLog();
  for (let time = 1; time <= 257; time += 1) log.push(time, 1);
  const entries = entriesOf(log);
  expect(log.runCount).toBe(192);
  expect(entries.slice(0, 4)).toEqual([2, 2, 4, 4]);
  expect(entries.slice(-128)).toEqual(Array.from({ length: 128 }, (_, i) => 130 + i));
});

test('dropping within a run leaves the rest of it', () => {
  const log = new RunLog();
  log.push(1, 3);
  log.push(2, 3);
  log.dropOldest(4);
  expect(entriesOf(log)).toEqual([2, 2]);
  log.dropOldest(2);
  expect(log.length).toBe(0);
  expect(log.runCount).toBe(0);
  log.push(9, 2);
  expect(entriesOf(log)).toEqual([9, 9]);
});

test.each([-1, 2])('an entry %i that is not in a log of two is a RangeError', (index) => {
  const log = new RunLog();
  log.push(1, 1);
  log.push(2, 1);
  expect(() => log.at(index)).toThrow(RangeError);
});

test('R5: a log in bounded space never takes an entry for older than it is, nor loses one', () => {
  const step = fc.record({
    gap: fc.integer({ min: 0, max: 5 }),
    count: fc.integer({ min: 1, max: 4 }),
    drop: fc.nat(6),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 1, maxLength: 900 }), (steps) => {
      const log = new RunLog();
      const exact: number[] = [];
      let time = 0;
      for (const { gap, count, drop } of steps) {
        time += gap;
        log.push(time, count);
        exact.push(...Array.from({ length: count }, () => time));
        const dropped = Math.min(drop, exact.length - 1);
        log.dropOldest(dropped);
        exact.splice(0, dropped);
      }
      const entries = entriesOf(log);
      expect(entries.length).toBe(exact.length);
      expect(entries.every((entry, index) => entry >= (exact[index] ?? 0))).toBe(true);
      expect(entries.slice(-100)).toEqual(exact.slice(-100));
      expect(entries).toEqual(entries.toSorted((a, b) => a - b));
      expect(log.runCount).toBeLessThanOrEqual(256);
      expect(log.runs().reduce((sum, [, count]) => sum + count, 0)).toBe(exact.length);
    }),
    { numRuns: 60 },
  );
});
