/** Durations in buckets that grow with them, so that a few tell milliseconds and days apart. Pure. */

const FIRST_MS = 16;
const PER_OCTAVE = 4;
const OCTAVES = 28;

/** From 16 ms to 49 days; what is longer is in the last one. */
export const BUCKETS = 1 + PER_OCTAVE * OCTAVES;

/** 0 for less than 16 ms. */
export function bucketOf(durationMs: number): number {
  if (!(durationMs >= FIRST_MS)) return 0;
  return Math.min(BUCKETS - 1, 1 + Math.floor(PER_OCTAVE * Math.log2(durationMs / FIRST_MS)));
}

/** What stands for all durations of a bucket: at most 9.1 % from each of them. 0 for the first one. */
export function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : FIRST_MS * 2 ** ((bucket - 0.5) / PER_OCTAVE);
}
