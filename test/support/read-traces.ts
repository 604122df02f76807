/** Made-up reads, for what-if models to be judged by: which key is read when. */
import { SeededRandom } from './random.ts';

/** In order of time. */
export interface ReadTrace {
  /** The number of the key of each read. */
  readonly keys: Uint32Array;
  /** When each comes, milliseconds from the beginning. */
  readonly atMs: Float64Array;
}

export interface TraceShape {
  readonly seed: number;
  readonly reads: number;
  readonly hours: number;
  readonly keys: number;
  /** How much busier the busiest keys are: the nth gets n^-exponent of the reads. */
  readonly exponent: number;
}

/** Reads that come at random, of keys whose popularity follows Zipf's law. */
export function zipfTrace({ seed, reads, hours, keys, exponent }: TraceShape): ReadTrace {
  const random = new SeededRandom(seed);
  const pick = zipfPicker(keys, exponent, random);
  return fill(reads, {
    gapMs: () => (-Math.log(1 - random.next()) * hours * 3_600_000) / reads,
    pick: () => pick(),
  });
}

const CYCLE_MS = 1_200_000;
const BUSY_MS = 300_000;
const CROWD_EVERY_MS = 2_400_000;
const CROWD_MS = 600_000;
const CROWD_KEYS = 400;
/** How many of a crowd's keys the next one has not. */
const CROWD_NEW_KEYS = 300;

/**
 * The same, but in bursts: five busy minutes in twenty, with nine times the reads of the others; and every forty minutes
 * a crowd that for ten minutes makes most of the reads, of a few hundred keys that hardly anybody has read before.
 */
export function burstyTrace({ seed, reads, hours, keys, exponent }: TraceShape): ReadTrace {
  const random = new SeededRandom(seed);
  const pick = zipfPicker(keys, exponent, random);
  const pickOfCrowd = zipfPicker(CROWD_KEYS, 0.8, random);
  return fill(reads, {
    gapMs: (atMs) => {
      const pace = atMs % CYCLE_MS < BUSY_MS ? 3 : 1 / 3;
      return (-Math.log(1 - random.next()) * hours * 3_600_000) / reads / pace;
    },
    pick: (atMs) => {
      const isCrowd = atMs % CROWD_EVERY_MS < CROWD_MS && random.next() < 0.6;
      if (!isCrowd) return pick();
      return keys + Math.floor(atMs / CROWD_EVERY_MS) * CROWD_NEW_KEYS + pickOfCrowd();
    },
  });
}

interface Source {
  readonly gapMs: (atMs: number) => number;
  readonly pick: (atMs: number) => number;
}

function fill(reads: number, { gapMs, pick }: Source): ReadTrace {
  const keys = new Uint32Array(reads);
  const atMs = new Float64Array(reads);
  let nowMs = 0;
  for (let index = 0; index < reads; index++) {
    nowMs += gapMs(nowMs);
    atMs[index] = Math.round(nowMs);
    keys[index] = pick(nowMs);
  }
  return { keys, atMs };
}

/** Picks 0 most often. */
function zipfPicker(keys: number, exponent: number, random: SeededRandom): () => number {
  const sums = new Float64Array(keys);
  let total = 0;
  for (let rank = 0; rank < keys; rank++) {
    total += (rank + 1) ** -exponent;
    sums[rank] = total;
  }
  return () => firstAbove(sums, random.next() * total);
}

function firstAbove(sums: Float64Array, wanted: number): number {
  let [low, high] = [0, sums.length - 1];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sums[middle] ?? 0) <= wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
