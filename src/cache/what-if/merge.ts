/** Adds up what the models of all processes have learned of one class. Each key is followed by one of them. Pure. */
import type { CacheClass } from '../ttl-policy.ts';
import { type Comparisons, learnChanges, type OutdatedAt } from './change-rate.ts';
import { BUCKETS, middleOf } from './log-scale.ts';
import type { ClassSnapshot, PointSnapshot, WhatIfSnapshot } from './snapshot.ts';

/** What one ghost did in all processes. */
export interface MergedPoint {
  readonly freshMs: number;
  readonly reads: number;
  readonly hitRatio: number;
  readonly ageP90Ms: number;
  /** Null where too little is known of how fast records change. */
  readonly outdatedRatio: number | null;
  /** For how long it was watched: of processes that came later only as much as they have read. */
  readonly watchedMs: number;
}

export interface MergedClass {
  readonly reads: number;
  /** Unix milliseconds; null without reads. */
  readonly sinceMs: number | null;
  readonly readsPerSecond: number;
  /** Refreshes that were compared with the copy before. What is older counts less, so it need be no whole number. */
  readonly refreshes: number;
  /** In order of time. */
  readonly points: readonly MergedPoint[];
}

/** Rates over less than this would be of chance. */
const SHORTEST_MS = 1000;

interface Dated<T> {
  readonly atMs: number;
  readonly of: T;
}

export function mergeClass(snapshots: readonly WhatIfSnapshot[], cacheClass: CacheClass): MergedClass {
  const own = snapshots.flatMap(({ atMs, classes }) =>
    classes.filter((each) => each.class === cacheClass).map((each) => ({ atMs, of: each })),
  );
  const comparisons = comparisonsOf(own.map((each) => each.of));
  const outdatedAt = learnChanges(comparisons);
  const byTime = Map.groupBy(
    own.flatMap(({ atMs, of }) => of.points.filter(({ reads }) => reads > 0).map((point) => ({ atMs, of: point }))),
    (point) => point.of.freshMs,
  );
  const points = [...byTime.values()].map((same) => mergePoint(same, outdatedAt));
  // All candidates count the same reads; the time in force may count for a shorter while.
  const whole = [...byTime.values()].toSorted((a, b) => readsOf(b) - readsOf(a))[0] ?? [];
  return {
    reads: readsOf(whole),
    sinceMs: whole.length === 0 ? null : Math.min(...whole.map((each) => each.of.sinceMs)),
    refreshes: sum(comparisons, ({ seen }) => seen),
    readsPerSecond: sum(whole, ({ atMs, of }) => (1000 * of.reads) / Math.max(SHORTEST_MS, atMs - of.sinceMs)),
    points: points.toSorted((a, b) => a.freshMs - b.freshMs),
  };
}

function comparisonsOf(own: readonly ClassSnapshot[]): readonly Comparisons[] {
  return own.flatMap(({ refreshes }) =>
    refreshes.map(([bucket, seen, changed]) => ({ sinceMs: middleOf(bucket), seen, changed })),
  );
}

function mergePoint(same: readonly Dated<PointSnapshot>[], outdatedAt: OutdatedAt | null): MergedPoint {
  const reads = readsOf(same);
  const ages = agesOf(same);
  return {
    freshMs: same[0]?.of.freshMs ?? 0,
    reads,
    hitRatio: Math.max(0, 1 - sum(same, ({ of }) => of.calls) / reads),
    ageP90Ms: percentileOf(ages, 0.9),
    outdatedRatio: outdatedAt === null ? null : outdatedOf(ages, outdatedAt),
    watchedMs: sum(same, ({ atMs, of }) => of.reads * (atMs - of.startedMs)) / reads,
  };
}

/** By bucket: how many answers were that old, up to a common factor. */
function agesOf(same: readonly Dated<PointSnapshot>[]): Float64Array {
  const ages = new Float64Array(BUCKETS);
  for (const { of } of same) {
    const whole = of.ages.reduce((total, share) => total + share, 0);
    if (whole === 0) continue;
    for (const [index, share] of of.ages.entries()) {
      const bucket = Math.min(BUCKETS - 1, of.firstAge + index);
      ages[bucket] = (ages[bucket] ?? 0) + (of.reads * share) / whole;
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

function readsOf(same: readonly Dated<PointSnapshot>[]): number {
  return sum(same, ({ of }) => of.reads);
}

function sum<T>(all: readonly T[], amountOf: (one: T) => number): number {
  return all.reduce((total, one) => total + amountOf(one), 0);
}
