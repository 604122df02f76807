/** The report of one process to the others on its what-if: sums, to be added to those of the others. */
import { z } from 'zod';
import { CACHE_CLASSES } from '../ttl-policy.ts';

/**
 * The TTLs that are tried out beside the one in force: half a second to a day, each about three times the one before, so
 * evenly spread on a logarithmic scale, but round figures.
 */
export const CANDIDATE_FRESH_MS: readonly number[] = [
  500, 1500, 5000, 15_000, 45_000, 120_000, 360_000, 1_200_000, 3_600_000, 10_800_000, 28_800_000, 86_400_000,
];

const FIRST_MS = 16;
const PER_OCTAVE = 4;
/** Durations are counted in buckets that grow with them: 16 ms to 49 days; the last holds all that is longer. */
export const BUCKETS = 1 + PER_OCTAVE * 28;

/** 0 for less than 16 ms. */
export function bucketOf(durationMs: number): number {
  if (!(durationMs >= FIRST_MS)) return 0;
  return Math.min(BUCKETS - 1, 1 + Math.floor(PER_OCTAVE * Math.log2(durationMs / FIRST_MS)));
}

/** Stands for all durations of a bucket: at most 9.1 % from each of them. 0 for the first bucket. */
export function middleOf(bucket: number): number {
  return bucket === 0 ? 0 : FIRST_MS * 2 ** ((bucket - 0.5) / PER_OCTAVE);
}

/** The shortest duration of a bucket. */
export function leastOf(bucket: number): number {
  return bucket === 0 ? 0 : FIRST_MS * 2 ** ((bucket - 1) / PER_OCTAVE);
}

/** Four digits after the point: sums of weights are not whole numbers. */
export function rounded(count: number): number {
  return Math.round(count * 10_000) / 10_000;
}

export function sum<T>(all: readonly T[], amountOf: (one: T) => number): number {
  return all.reduce((total, one) => total + amountOf(one), 0);
}

const amount = z.number().nonnegative();
const wholeBelow = (end: number) => z.int().nonnegative().lt(end);

/**
 * Counted at exact reads; at sampled ones, as so many as they stand for; and those again, each times how often its key was
 * read before.
 */
const sumsSchema = z.tuple([amount, amount, amount]);

const MAX_BANDS = 16;
/** Ages of answers: `band * BUCKETS + bucket`, and a share of all answers. */
const agesSchema = z.array(z.tuple([wholeBelow(MAX_BANDS * BUCKETS), amount])).max(MAX_BANDS * BUCKETS);
export type Ages = z.output<typeof agesSchema>;

const countsSchema = z.strictObject({
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
        /** Calls to the store, and reads that wait for one. */
        calls: sumsSchema,
        waits: sumsSchema,
        ages: agesSchema,
      }),
    )
    .max(CANDIDATE_FRESH_MS.length),
});
export type Counts = z.output<typeof countsSchema>;

const perCandidate = z.array(amount).length(CANDIDATE_FRESH_MS.length);
const callsSchema = z.strictObject({ calls: perCandidate, waits: perCandidate });

/** The costs of evaluations beside lists, which bring them along: of some keys, with some fresh times of lists. */
const togetherSchema = z.strictObject({
  /** The fresh time of lists that was in force. */
  inForceMs: amount,
  /** Without lists, since that time has been in force. */
  beside: callsSchema,
  /** In the order of `LIST_FRESH_MS`; then with the time in force, and without lists. */
  worlds: z.array(callsSchema.extend({ ages: z.array(agesSchema).length(CANDIDATE_FRESH_MS.length) })).max(16),
  /** Records on lists that were read, by the band of their time unchanged. */
  items: z.array(amount).max(MAX_BANDS),
});
export type TogetherReport = z.output<typeof togetherSchema>;

/** Another one for every other form: processes of other releases leave the report out. */
const REPORT_VERSION = 4;
const versionedSchema = z.looseObject({ version: z.int() });

/** Whether a report has the form of another release, which runs beside this one during a rollout, or has ended. */
export function isOfOtherRelease(report: unknown): boolean {
  const { success, data } = versionedSchema.safeParse(report);
  return success && data.version !== REPORT_VERSION;
}

export const whatIfReportSchema = z.strictObject({
  version: z.literal(REPORT_VERSION),
  atMs: amount,
  /** Whether the process has handed it over at its end. */
  hasEnded: z.boolean(),
  classes: z
    .array(
      z.strictObject({
        class: z.enum(CACHE_CLASSES),
        /** The process's own true figures since then; failed reads don't count. Null if nothing was read there. */
        measured: z.strictObject({ reads: amount, hits: amount, storeCalls: amount, sinceMs: amount }).nullable(),
        /** Null if nothing was simulated there. */
        counts: countsSchema.nullable(),
        /** Copies that were compared: the band of the record, the bucket of their age, how many, how many had changed. */
        comparisons: z
          .array(z.tuple([wholeBelow(MAX_BANDS), wholeBelow(BUCKETS), amount, amount]))
          .max(MAX_BANDS * BUCKETS),
      }),
    )
    .max(CACHE_CLASSES.length),
  /** Null until a list was read. */
  together: togetherSchema.nullable(),
});
export type WhatIfReport = z.output<typeof whatIfReportSchema>;

/** The outcome of a read for each candidate's cache. */
export interface Outcomes {
  /** 1 for a call to the store. */
  readonly calls: Uint8Array;
  /** 1 if the reader waits for that call. */
  readonly waits: Uint8Array;
  readonly agesMs: Float64Array;
}

const PART_MS = 12 * 3_600_000;
const PARTS = 3;
const CANDIDATES = CANDIDATE_FRESH_MS.length;
/** The sums of a part: other reads, sampled reads, three of all reads, then three each of every TTL's calls and waits. */
const [OTHER_READS, SAMPLED_READS, READS, POINTS] = [0, 1, 2, 5];
const [CALLS, WAITS, POINT_SUMS] = [0, 3, 6];

/**
 * Counts of what simulated caches did over the last day. They are kept in parts of twelve hours, of which the last is
 * under way, so that they cover 24 to 36 hours. Ages are weighted instead: each twelve hours count half of the next.
 */
export class Tally {
  readonly startedMs: number;
  readonly #ages = new AgeTally(CANDIDATES);
  #sinceMs: number;
  /** The sums of the part under way. */
  #sums = new Float64Array(POINTS + POINT_SUMS * CANDIDATES);
  #earlier: readonly { readonly sinceMs: number; readonly sums: Float64Array }[] = [];

  constructor(startedMs: number) {
    this.startedMs = startedMs;
    this.#sinceMs = startedMs;
  }

  /** Brings the parts up to date. True if a new one has begun. */
  turn(atMs: number): boolean {
    const passed = Math.floor((atMs - this.#sinceMs) / PART_MS);
    if (passed < 1) return false;
    const parts = [...this.#earlier, { sinceMs: this.#sinceMs, sums: this.#sums }];
    this.#sinceMs += passed * PART_MS;
    this.#sums = new Float64Array(this.#sums.length);
    this.#earlier = parts.filter(({ sinceMs }) => sinceMs > this.#sinceMs - PARTS * PART_MS);
    this.#ages.weaken(2 ** passed);
    return true;
  }

  countUnsampled(): void {
    this.#add(OTHER_READS, 1);
  }

  /** A read that stands for so many, null for an exact one, of a key that was read so often before. */
  count(sampleWeight: number | null, before: number, band: number, { calls, waits, agesMs }: Outcomes): void {
    const ages = this.#ages.of(band);
    if (sampleWeight !== null) {
      this.#add(OTHER_READS, 1);
      this.#add(SAMPLED_READS, 1);
    }
    this.#addThree(READS, sampleWeight, before);
    for (let candidate = 0; candidate < CANDIDATES; candidate++) {
      const sums = POINTS + POINT_SUMS * candidate;
      if (calls[candidate] === 1) this.#addThree(sums + CALLS, sampleWeight, before);
      if (waits[candidate] === 1) this.#addThree(sums + WAITS, sampleWeight, before);
      const age = candidate * BUCKETS + bucketOf(agesMs[candidate] ?? 0);
      ages[age] = (ages[age] ?? 0) + (sampleWeight ?? 1);
    }
  }

  counts(): Counts {
    const sumAt = (at: number): number =>
      rounded(this.#earlier.reduce((all, { sums }) => all + (sums[at] ?? 0), this.#sums[at] ?? 0));
    const three = (at: number): [number, number, number] => [sumAt(at), sumAt(at + 1), sumAt(at + 2)];
    const [exactReads, sampledWeight, repeatReads] = three(READS);
    return {
      startedMs: this.startedMs,
      sinceMs: this.#earlier[0]?.sinceMs ?? this.#sinceMs,
      exactReads,
      otherReads: sumAt(OTHER_READS),
      sampledReads: sumAt(SAMPLED_READS),
      sampledWeight,
      repeatReads,
      points: CANDIDATE_FRESH_MS.map((freshMs, index) => ({
        freshMs,
        calls: three(POINTS + POINT_SUMS * index + CALLS),
        waits: three(POINTS + POINT_SUMS * index + WAITS),
        ages: this.#ages.sharesOf(index, 4),
      })),
    };
  }

  /** The sums of `sumsSchema`. */
  #addThree(at: number, sampleWeight: number | null, before: number): void {
    if (sampleWeight === null) {
      this.#add(at, 1);
    } else {
      this.#add(at + 1, sampleWeight);
      this.#add(at + 2, sampleWeight * before);
    }
  }

  #add(at: number, more: number): void {
    this.#sums[at] = (this.#sums[at] ?? 0) + more;
  }
}

/** Ages of answers for several caches side by side, by the band of the record's time unchanged. */
export class AgeTally {
  readonly #columns: number;
  /** For each band the buckets of all columns, one column after another. */
  readonly #bands = new Map<number, Float32Array>();

  constructor(columns: number) {
    this.#columns = columns;
  }

  /** The buckets of a band, to be added to: the first of a column is at `column * BUCKETS`. */
  of(band: number): Float32Array {
    const known = this.#bands.get(band);
    if (known !== undefined) return known;
    const counts = new Float32Array(this.#columns * BUCKETS);
    this.#bands.set(band, counts);
    return counts;
  }

  weaken(divisor: number): void {
    for (const counts of this.#bands.values()) counts.set(counts.map((count) => count / divisor));
  }

  clear(column: number): void {
    for (const counts of this.#bands.values()) counts.fill(0, column * BUCKETS, (column + 1) * BUCKETS);
  }

  /** Without shares that come to nothing in that many digits. */
  sharesOf(column: number, digits: number): Ages {
    const first = column * BUCKETS;
    const counts = [...this.#bands].flatMap(([band, all]) =>
      Array.from(all.subarray(first, first + BUCKETS), (count, bucket) => [band * BUCKETS + bucket, count] as const),
    );
    const whole = sum(counts, ([, count]) => count);
    return counts
      .map(([place, count]): Ages[number] => [place, whole === 0 ? 0 : Number((count / whole).toFixed(digits))])
      .filter(([, share]) => share > 0);
  }
}
