/** Adds up what the simulators of all processes counted for one class. Each key is followed by one of them. Pure. */
import { z } from 'zod';
import { CACHE_CLASSES, type CacheClass } from '../ttl-policy.ts';
import { type Comparisons, learnChanges, type OutdatedAt } from './change-rate.ts';
import { BUCKETS, bucketSchema, CANDIDATE_FRESH_MS, type Counts, countsSchema, middleOf } from './tally.ts';

const amount = z.number().nonnegative();

/** The knowledge of one process: sums, to be added to those of the others. */
export const whatIfReportSchema = z.strictObject({
  version: z.literal(2),
  /** Unix milliseconds. */
  atMs: amount,
  classes: z
    .array(
      z.strictObject({
        class: z.enum(CACHE_CLASSES),
        /** The process's own true figures since then; failed reads don't count. Null if nothing was read there. */
        measured: z.strictObject({ reads: amount, storeCalls: amount, sinceMs: amount }).nullable(),
        /** The candidates; and the TTL in force, if it is none of them. */
        counts: z.array(countsSchema).max(2),
        /** Refreshes, by the age of the old copy: its bucket, how many there were, how many brought a change. */
        refreshes: z.array(z.tuple([bucketSchema, amount, amount])).max(BUCKETS),
      }),
    )
    .max(CACHE_CLASSES.length),
});
export type WhatIfReport = z.output<typeof whatIfReportSchema>;

/** One TTL's simulation in all processes. */
export interface MergedPoint {
  readonly freshMs: number;
  readonly reads: number;
  /** 1 − calls to the store / reads. */
  readonly hitRatio: number;
  /** Two standard errors of the hit ratio. */
  readonly uncertainty: number;
  /** Nine of ten answers are at most this old. */
  readonly ageP90Ms: number;
  /** Null until enough is known of how fast records change. */
  readonly outdatedRatio: number | null;
  /** How long it was watched; processes that came later count by their share of the reads. */
  readonly watchedMs: number;
}

export interface MergedClass {
  readonly reads: number;
  /** Unix milliseconds; null without reads. */
  readonly sinceMs: number | null;
  readonly readsPerSecond: number;
  /** Refreshes that were compared with the copy before. Older ones count less, so it may be a fraction. */
  readonly refreshes: number;
  /** In order of TTL. */
  readonly points: readonly MergedPoint[];
}

/** A shorter time makes a rate a matter of chance. */
export const SHORTEST_MS = 1000;
/** The TTL in force has its own figures once it has seen as many reads, or as many as the candidates. */
const MIN_READS = 1000;

interface Simulated {
  readonly atMs: number;
  readonly counts: Counts;
  readonly point: Counts['points'][number];
}

export function mergeClass(reports: readonly WhatIfReport[], cacheClass: CacheClass): MergedClass {
  const own = reports.flatMap(({ atMs, classes }) =>
    classes.filter((each) => each.class === cacheClass).map((each) => ({ atMs, ...each })),
  );
  const comparisons: Comparisons[] = own.flatMap(({ refreshes }) =>
    refreshes.map(([bucket, seen, changed]) => ({ sinceMs: middleOf(bucket), seen, changed })),
  );
  const outdatedAt = learnChanges(comparisons);
  const simulated = own.flatMap(({ atMs, counts }) =>
    counts
      .filter((each) => readsOf(each) > 0)
      .flatMap((each) => each.points.map((point): Simulated => ({ atMs, counts: each, point }))),
  );
  const byFreshMs = Map.groupBy(simulated, ({ point }) => point.freshMs);
  const points = [...byFreshMs.values()].map((same) => mergePoint(same, outdatedAt));
  // All candidates count the same reads; the TTL in force may count for a shorter while.
  const whole = byFreshMs.get(CANDIDATE_FRESH_MS[0] ?? 0) ?? [];
  return {
    reads: sum(whole, ({ counts }) => readsOf(counts)),
    sinceMs: whole.length === 0 ? null : Math.min(...whole.map(({ counts }) => counts.sinceMs)),
    refreshes: sum(comparisons, ({ seen }) => seen),
    readsPerSecond: sum(whole, ({ atMs, counts }) => {
      return (1000 * readsOf(counts)) / Math.max(SHORTEST_MS, atMs - counts.sinceMs);
    }),
    points: points.toSorted((a, b) => a.freshMs - b.freshMs),
  };
}

/**
 * The figures of a TTL that may have been set a moment ago: its own once it was simulated for long enough. Until then they
 * lie between those of the candidates next to it, and beyond the last one they are its. Null without reads.
 */
export function pointAt(points: readonly MergedPoint[], freshMs: number): MergedPoint | null {
  const own = points.find((point) => point.freshMs === freshMs);
  const candidates = points.filter((point) => CANDIDATE_FRESH_MS.includes(point.freshMs));
  if (own !== undefined) {
    const hasSeenEnough = own.reads >= MIN_READS && own.watchedMs >= freshMs;
    if (hasSeenEnough || own.reads >= (candidates[0]?.reads ?? 0)) return own;
  }
  const above = candidates.find((point) => point.freshMs > freshMs);
  if (above === undefined) {
    const last = candidates.at(-1);
    return own ?? (last === undefined ? null : { ...last, freshMs });
  }
  return between(candidates.findLast((point) => point.freshMs < freshMs) ?? alwaysCalling(above), above, freshMs);
}

function mergePoint(same: readonly Simulated[], outdatedAt: OutdatedAt | null): MergedPoint {
  const total = (of: (counts: Counts) => number): number => sum(same, ({ counts }) => of(counts));
  const reads = total(readsOf);
  const others = total(({ otherReads }) => otherReads);
  const exactCalls = sum(same, ({ point }) => point.exactCalls);
  const weight = total(({ sampledWeight }) => sampledWeight);
  const sampledCalls = sum(same, ({ point }) => point.sampledCalls);
  const tailCalls = weight === 0 ? others : tailCallsOf(same, { sampledCalls, missing: others - weight });
  const calls = exactCalls + Math.min(others, Math.max(0, tailCalls));
  // The number of calls varies as in a Poisson process, and each sampled call stands for several.
  const perSample =
    others /
    Math.max(
      1,
      total(({ sampledReads }) => sampledReads),
    );
  const variance = exactCalls + sampledCalls * perSample;
  const ages = agesOf(same);
  return {
    freshMs: same[0]?.point.freshMs ?? 0,
    reads,
    hitRatio: Math.max(0, 1 - calls / reads),
    uncertainty: (2 * Math.sqrt(variance)) / reads,
    ageP90Ms: percentileOf(ages, 0.9),
    outdatedRatio: outdatedAt === null ? null : outdatedOf(ages, outdatedAt),
    watchedMs: sum(same, ({ atMs, counts }) => readsOf(counts) * (atMs - counts.startedMs)) / reads,
  };
}

/**
 * The calls at all reads for which the sampled ones stand. If those stand for too few reads, busy keys are `missing` from
 * the sample; if for too many, it has more than its share of them. A read of a busy key is rarely a call, so the
 * difference counts with the share of calls among repeated reads (a regression estimate).
 */
function tailCallsOf(
  same: readonly Simulated[],
  { sampledCalls, missing }: { readonly sampledCalls: number; readonly missing: number },
): number {
  const repeatReads = sum(same, ({ counts }) => counts.repeatReads);
  const share = repeatReads === 0 ? 1 : sum(same, ({ point }) => point.repeatCalls) / repeatReads;
  return sampledCalls + share * missing;
}

/** By bucket: how many answers were that old, up to a common factor. */
function agesOf(same: readonly Simulated[]): Float64Array {
  const ages = new Float64Array(BUCKETS);
  for (const { counts, point } of same) {
    const followed = counts.exactReads + counts.sampledWeight;
    const whole = sum(point.ages, (share) => share);
    if (whole === 0) continue;
    for (const [index, share] of point.ages.entries()) {
      const bucket = Math.min(BUCKETS - 1, point.firstAge + index);
      ages[bucket] = (ages[bucket] ?? 0) + (followed * share) / whole;
    }
  }
  return ages;
}

function percentileOf(ages: Float64Array, share: number): number {
  const whole = ages.reduce((total, count) => total + count, 0);
  let below = 0;
  const found = ages.findIndex((count) => (below += count) >= share * whole);
  return Math.round(middleOf(Math.max(0, found)));
}

function outdatedOf(ages: Float64Array, outdatedAt: OutdatedAt): number {
  const whole = ages.reduce((total, count) => total + count, 0);
  const outdated = ages.reduce(
    (total, count, bucket) => total + (count === 0 ? 0 : count * outdatedAt(middleOf(bucket))),
    0,
  );
  return whole === 0 ? 0 : Math.min(1, outdated / whole);
}

/** With no TTL every read is a call to the store. */
function alwaysCalling(above: MergedPoint): MergedPoint {
  return { ...above, freshMs: 0, hitRatio: 0, ageP90Ms: 0, outdatedRatio: above.outdatedRatio === null ? null : 0 };
}

/** Hits grow with the logarithm of the TTL, ages and what they bring with the TTL itself. */
function between(below: MergedPoint, above: MergedPoint, freshMs: number): MergedPoint {
  const share = (freshMs - below.freshMs) / (above.freshMs - below.freshMs);
  const ratio =
    below.freshMs === 0 ? share : Math.log(freshMs / below.freshMs) / Math.log(above.freshMs / below.freshMs);
  const isLearned = below.outdatedRatio !== null && above.outdatedRatio !== null;
  return {
    ...above,
    freshMs,
    hitRatio: mix(below.hitRatio, above.hitRatio, ratio),
    ageP90Ms: Math.round(mix(below.ageP90Ms, above.ageP90Ms, share)),
    outdatedRatio: isLearned ? mix(below.outdatedRatio, above.outdatedRatio, share) : null,
  };
}

function mix(from: number, to: number, share: number): number {
  return from + share * (to - from);
}

function readsOf({ exactReads, otherReads }: Counts): number {
  return exactReads + otherReads;
}

export function sum<T>(all: readonly T[], amountOf: (one: T) => number): number {
  return all.reduce((total, one) => total + amountOf(one), 0);
}
