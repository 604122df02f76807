/**
 * Counts of what simulated caches did over the last day. They are kept in parts of twelve hours, of which the last is
 * under way, so that they cover 24 to 36 hours. Ages are weighted instead: each twelve hours count half of the next.
 */
import { z } from 'zod';

/**
 * The TTLs that are tried out beside the one in force: half a second to a day, each about three times the one before, so
 * evenly spread on a logarithmic scale, but round figures.
 */
export const CANDIDATE_FRESH_MS: readonly number[] = [
  500, 1500, 5000, 15_000, 45_000, 120_000, 360_000, 1_200_000, 3_600_000, 10_800_000, 28_800_000, 86_400_000,
];

const FIRST_MS = 16;
const PER_OCTAVE = 4;
const OCTAVES = 28;
/** Durations are counted in buckets that grow with them: 16 ms to 49 days; the last holds all that is longer. */
export const BUCKETS = 1 + PER_OCTAVE * OCTAVES;

/** 0 for less than 16 ms. */
export function bucketOf(durationMs: number): number {
  if (!(durationMs >= FIRST_MS)) return 0;
  return Math.min(BUCKETS - 1, 1 + Math.floor(PER_OCTAVE * Math.log2(durationMs / FIRST_MS)));
}

/** Stands for all durations of a bucket: at most 9.1 % from each of them. 0 for the first bucket. */
export function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : FIRST_MS * 2 ** ((bucket - 0.5) / PER_OCTAVE);
}

const amount = z.number().nonnegative();
export const bucketSchema = z
  .int()
  .min(0)
  .max(BUCKETS - 1);

/** Sums of one process, to be added to those of the others. */
export const countsSchema = z.strictObject({
  /** Since when the simulation runs, and since when its figures were counted, Unix milliseconds. */
  startedMs: amount,
  sinceMs: amount,
  /** Reads of keys whose every read is simulated. */
  exactReads: amount,
  /** All other reads of this process, for which the sampled ones stand. */
  otherReads: amount,
  /** Reads of sampled keys, and how many reads they stand for. */
  sampledReads: amount,
  sampledWeight: amount,
  /** The sampled reads once more, each times how often its key was read before. */
  repeatReads: amount,
  points: z
    .array(
      z.strictObject({
        freshMs: amount,
        /** Calls to the store at `exactReads`, and at the reads for which the sampled ones stand. */
        exactCalls: amount,
        sampledCalls: amount,
        repeatCalls: amount,
        /** Ages of the answers: the first bucket that holds any, and shares of 10,000 from there on. */
        firstAge: bucketSchema,
        ages: z.array(amount).max(BUCKETS),
      }),
    )
    .max(CANDIDATE_FRESH_MS.length),
});
export type Counts = z.output<typeof countsSchema>;

/** A read of a key whose every read is simulated; of a sampled key; of a key that is neither. */
export type ReadKind = 'exact' | 'sampled' | 'unsampled';

/** The deeds of each TTL's cache at a read: 1 for a call to the store, and how old the answer was. */
export interface Outcomes {
  readonly calls: Uint8Array;
  readonly agesMs: Float64Array;
}

const PART_MS = 12 * 3_600_000;
const PARTS = 3;
const SHARES = 10_000;

interface Part {
  readonly sinceMs: number;
  readonly reads: Record<ReadKind, number>;
  sampledWeight: number;
  repeatReads: number;
  readonly exactCalls: Float64Array;
  readonly sampledCalls: Float64Array;
  readonly repeatCalls: Float64Array;
}

export class Tally {
  /** Which of a simulator's TTLs are counted here. */
  readonly #columns: readonly number[];
  readonly #startedMs: number;
  #parts: readonly Part[];
  #part: Part;
  readonly #ages: Float64Array;

  constructor(columns: readonly number[], startedMs: number) {
    this.#columns = columns;
    this.#startedMs = startedMs;
    this.#part = createPart(columns.length, startedMs);
    this.#parts = [this.#part];
    this.#ages = new Float64Array(columns.length * BUCKETS);
  }

  get bytes(): number {
    return this.#ages.byteLength + PARTS * this.#columns.length * 24;
  }

  /** Brings the parts up to date. True if a new one has begun. */
  turn(atMs: number): boolean {
    const passed = Math.floor((atMs - this.#part.sinceMs) / PART_MS);
    if (passed < 1) return false;
    this.#part = createPart(this.#columns.length, this.#part.sinceMs + passed * PART_MS);
    const keptSinceMs = this.#part.sinceMs - (PARTS - 1) * PART_MS;
    this.#parts = [...this.#parts.filter(({ sinceMs }) => sinceMs >= keptSinceMs), this.#part];
    for (let at = 0; at < this.#ages.length; at++) this.#ages[at] = (this.#ages[at] ?? 0) / 2 ** passed;
    return true;
  }

  /** A read that is not simulated. */
  countUnsampled(): void {
    this.#part.reads.unsampled += 1;
  }

  /** A read that stands for so many, of a key that was read so often before. */
  count(kind: Exclude<ReadKind, 'unsampled'>, weight: number, before: number, { calls, agesMs }: Outcomes): void {
    const part = this.#part;
    part.reads[kind] += 1;
    if (kind === 'sampled') {
      part.sampledWeight += weight;
      part.repeatReads += weight * before;
    }
    const sums = kind === 'exact' ? part.exactCalls : part.sampledCalls;
    for (let index = 0; index < this.#columns.length; index++) {
      const column = this.#columns[index] ?? 0;
      if (calls[column] === 1) {
        sums[index] = (sums[index] ?? 0) + weight;
        if (kind === 'sampled') part.repeatCalls[index] = (part.repeatCalls[index] ?? 0) + weight * before;
      }
      const at = index * BUCKETS + bucketOf(agesMs[column] ?? 0);
      this.#ages[at] = (this.#ages[at] ?? 0) + weight;
    }
  }

  /** `freshMs` by column; the times of the tally count from `epochMs`. */
  counts(freshMs: ArrayLike<number>, epochMs: number): Counts {
    const sum = (of: (part: Part) => number): number => rounded(this.#parts.reduce((all, part) => all + of(part), 0));
    return {
      startedMs: epochMs + this.#startedMs,
      sinceMs: epochMs + (this.#parts[0]?.sinceMs ?? this.#startedMs),
      exactReads: sum(({ reads }) => reads.exact),
      otherReads: sum(({ reads }) => reads.sampled + reads.unsampled),
      sampledReads: sum(({ reads }) => reads.sampled),
      sampledWeight: sum(({ sampledWeight }) => sampledWeight),
      repeatReads: sum(({ repeatReads }) => repeatReads),
      points: this.#columns.map((column, index) => ({
        freshMs: freshMs[column] ?? 0,
        exactCalls: sum(({ exactCalls }) => exactCalls[index] ?? 0),
        sampledCalls: sum(({ sampledCalls }) => sampledCalls[index] ?? 0),
        repeatCalls: sum(({ repeatCalls }) => repeatCalls[index] ?? 0),
        ...sharesOf(this.#ages.subarray(index * BUCKETS, (index + 1) * BUCKETS)),
      })),
    };
  }
}

/** Without the empty buckets at both ends. */
function sharesOf(ages: Float64Array): { readonly firstAge: number; readonly ages: number[] } {
  const whole = ages.reduce((sum, count) => sum + count, 0);
  const shares = Array.from(ages, (count) => Math.round((SHARES * count) / Math.max(Number.MIN_VALUE, whole)));
  const first = Math.max(
    0,
    shares.findIndex((share) => share > 0),
  );
  return { firstAge: first, ages: shares.slice(first, shares.findLastIndex((share) => share > 0) + 1) };
}

/** Four digits after the point: sums of weights are not whole numbers. */
export function rounded(count: number): number {
  return Math.round(count * 10_000) / 10_000;
}

function createPart(columns: number, sinceMs: number): Part {
  return {
    sinceMs,
    reads: { exact: 0, sampled: 0, unsampled: 0 },
    sampledWeight: 0,
    repeatReads: 0,
    exactCalls: new Float64Array(columns),
    sampledCalls: new Float64Array(columns),
    repeatCalls: new Float64Array(columns),
  };
}
