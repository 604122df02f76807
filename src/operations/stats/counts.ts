/** Counters by name, and distributions of values as counters: made to be written as JSON and added up over processes. */
import { z } from 'zod';

/** Counters as they are written: 0 for a name that is not there. */
export const writtenCountsSchema = z.record(z.string(), z.int().min(0));

export class Counts {
  readonly #counts = new Map<string, number>();

  /** The sums of those that several processes have counted, or in several steps. */
  constructor(all: readonly Readonly<Record<string, number>>[] = []) {
    for (const counts of all) for (const [name, count] of Object.entries(counts)) this.add(name, count);
  }

  add(name: string, count: number = 1): void {
    this.#counts.set(name, this.of(name) + count);
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }

  toJSON(): Record<string, number> {
    return Object.fromEntries(this.#counts);
  }

  /** The counters whose names begin so, without that beginning. */
  under(prefix: string): readonly (readonly [name: string, count: number])[] {
    return [...this.#counts]
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, count]) => [name.slice(prefix.length), count]);
  }
}

/** Each bucket of a distribution is 14 % wider than the one before, so that its middle is within 7 % of all values in it. */
const GROWTH = Math.log(1.14);

/** The number of the bucket for a value of at least 0. */
export function bucketOf(value: number): number {
  return Math.round(Math.log1p(Math.max(0, value)) / GROWTH);
}

/**
 * Half, nine tenths and all but a hundredth of the values don't exceed these, give or take 7 %; null if there are none.
 * `buckets`: how many values each bucket has. `unit`: one of the shown units in the recorded ones.
 */
export function percentiles(buckets: readonly (readonly [bucket: string, count: number])[], unit: number) {
  const ascending = buckets.map(([bucket, count]) => [Number(bucket), count] as const).toSorted(([a], [b]) => a - b);
  const total = ascending.reduce((sum, [, count]) => sum + count, 0);
  if (total === 0) return null;
  const at = (share: number): number => {
    let left = Math.ceil(total * share);
    const [bucket] = ascending.find(([, count]) => (left -= count) <= 0) ?? [0];
    return Number((Math.expm1(bucket * GROWTH) / unit).toPrecision(3));
  };
  return { p50: at(0.5), p90: at(0.9), p99: at(0.99) };
}
