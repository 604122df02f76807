/**
 * How values are spread, in a fixed and small amount of memory: counts in buckets whose width grows with the value, an
 * eighth of a power of two each, so that what is read off is within 7 % of what was recorded.
 */

/** Buckets to a power of two, as a power of two. */
const STEPS_LOG2 = 3;
const STEPS = 2 ** STEPS_LOG2;
const MAX_VALUE = 2 ** 32 - 1;
/** Values below twice the steps have a bucket each. */
const BUCKETS = (32 - STEPS_LOG2 + 1) * STEPS;

export class LogHistogram {
  readonly #counts = new Float64Array(BUCKETS);
  #total = 0;

  /** Rounded to an integer from 0 to 2^32 - 1. */
  record(value: number): void {
    const bucket = bucketOf(Math.min(MAX_VALUE, Math.max(0, Math.round(value))));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#total += 1;
  }

  /** The value that this share of the recorded ones doesn't exceed, from above 0 to 1; null where none was recorded. */
  quantile(share: number): number | null {
    if (this.#total === 0) return null;
    let left = Math.max(1, Math.ceil(share * this.#total));
    for (const [bucket, count] of this.#counts.entries()) {
      left -= count;
      if (left <= 0) return middleOf(bucket);
    }
    return MAX_VALUE;
  }
}

function bucketOf(value: number): number {
  if (value < STEPS) return value;
  const shift = 31 - Math.clz32(value) - STEPS_LOG2;
  return shift * STEPS + (value >>> shift);
}

function middleOf(bucket: number): number {
  if (bucket < 2 * STEPS) return bucket;
  const shift = Math.floor(bucket / STEPS) - 1;
  const lowest = (bucket - shift * STEPS) * 2 ** shift;
  return Math.floor(lowest + (2 ** shift - 1) / 2);
}
