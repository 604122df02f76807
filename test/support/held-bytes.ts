import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const ROUNDS = 3;

/**
 * How much memory what `make` returns holds: heap and array buffers, measured after collections. The least of a few
 * rounds, because the first ones also pay for code that is compiled meanwhile.
 */
export function heldBytes<T>(make: () => T): { readonly value: T; readonly bytes: number } {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (!isCollector(collect)) throw new Error('there is no garbage collection to be had');
  const measure = (): number => {
    for (let time = 0; time < 3; time++) collect();
    const { heapUsed, arrayBuffers } = process.memoryUsage();
    return heapUsed + arrayBuffers;
  };
  // All are kept until the end: one that goes while the next is made would make that look small.
  const made: { readonly value: T; readonly bytes: number }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const before = measure();
    const value = make();
    made.push({ value, bytes: measure() - before });
  }
  const [least] = made.toSorted((a, b) => a.bytes - b.bytes);
  if (least === undefined) throw new Error('nothing was made');
  return least;
}

function isCollector(value: unknown): value is () => void {
  return typeof value === 'function';
}
