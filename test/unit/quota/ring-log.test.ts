import { expect, test } from 'vitest';
import { RingLog } from '../../../src/quota/ring-log.ts';
import { SeededRandom } from '../../support/random.ts';

const NO_LIMIT = 1_000_000_000;

function contentsOf(log: RingLog): number[] {
  return Array.from({ length: log.length }, (_, index) => log.at(index));
}

function filled(length: number, mostExpected = NO_LIMIT): RingLog {
  const log = new RingLog();
  for (let i = 0; i < length; i += 1) log.push(i, mostExpected);
  return log;
}

test('a ring holds what a plain list would, through any order of appending and dropping', () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const random = new SeededRandom(seed);
    const log = new RingLog();
    let list: number[] = [];
    for (let step = 0; step < 200; step += 1) {
      if (random.next() < 0.1) {
        const count = random.integer(0, list.length);
        log.dropOldest(count);
        list = list.slice(count);
      } else {
        log.push(step, NO_LIMIT);
        list.push(step);
      }
      expect({ seed, step, contents: contentsOf(log) }).toEqual({ seed, step, contents: list });
    }
  }
});

test('it holds microseconds of today without rounding', () => {
  const log = new RingLog();
  log.push(1_768_478_400_000_001, NO_LIMIT);
  expect(log.at(0)).toBe(1_768_478_400_000_001);
});

test('it doubles when it is full, up to what is expected at most', () => {
  expect(filled(0).capacity).toBe(8);
  expect(filled(9).capacity).toBe(16);
  expect(filled(100).capacity).toBe(128);
  expect(filled(65, 100).capacity).toBe(100);
  expect(filled(100, 100).capacity).toBe(100);
});

test('it gives memory back when most of what it held is gone', () => {
  const log = filled(1000);
  expect(log.capacity).toBe(1024);
  log.dropOldest(740);
  expect(log.capacity).toBe(1024);
  log.dropOldest(10);
  expect(log.capacity).toBe(500);
  log.dropOldest(250);
  expect([log.capacity, log.length]).toEqual([8, 0]);
});

test.each([-1, 3, 8, Number.NaN])('there is no entry at %s in a log of 3', (index) => {
  expect(() => filled(3).at(index)).toThrow(new RangeError(`No entry ${index} in a log of 3.`));
});
