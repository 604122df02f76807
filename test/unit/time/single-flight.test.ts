/** Work that is done once for all who want it at the same time. */
import { setImmediate } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { oneAtATime, SingleFlight } from '../../../src/time/single-flight.ts';

test('all who ask while a run is under way share it; a later one begins anew, also after a failure', async () => {
  const flights = new SingleFlight<number>();
  let runs = 0;
  const run = async (): Promise<number> => {
    runs += 1;
    await setImmediate();
    if (runs === 2) throw new Error('the second');
    return runs;
  };
  expect(await Promise.all([flights.join('a', run), flights.join('a', run)])).toEqual([1, 1]);
  await expect(Promise.all([flights.join('a', run), flights.join('a', run)])).rejects.toThrow('the second');
  expect(await Promise.all([flights.join('a', run), flights.join('b', async () => 10)])).toEqual([3, 10]);
});

test('a run that is forgotten goes on, and learns of it; the next one begins beside it', async () => {
  const flights = new SingleFlight<string>();
  const begin = (name: string): Promise<string> =>
    flights.join('key', async (isCurrent) => {
      await setImmediate();
      return `${name} ${isCurrent()}`;
    });
  const first = begin('first');
  flights.forget('key');
  const second = begin('second');
  expect(await Promise.all([first, second, begin('third')])).toEqual(['first false', 'second true', 'second true']);
  const fourth = begin('fourth');
  flights.forgetAll();
  expect(await fourth).toBe('fourth false');
});

test('calls while one runs get one run after it, which begins after all of them', async () => {
  const [begun, ends]: [string[], (() => void)[]] = [[], []];
  let asked = 0;
  const call = oneAtATime(() => {
    begun.push(`after ${asked} calls`);
    return new Promise((resolve) => void ends.push(resolve));
  });
  const ask = (): Promise<void> => {
    asked += 1;
    return call();
  };
  const [first, second, third] = [ask(), ask(), ask()];
  ends[0]?.();
  await first;
  await setImmediate();
  expect(begun).toEqual(['after 1 calls', 'after 3 calls']);
  ends[1]?.();
  await Promise.all([second, third]);
  expect(begun).toHaveLength(2);
});
