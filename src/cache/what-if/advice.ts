/** What the models of all processes say together: a curve a class, and which time to set. Pure. */
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
import { CANDIDATE_FRESH_MS } from './candidates.ts';
import { pointInForce } from './in-force.ts';
import { mergeClass, type MergedClass, type MergedPoint } from './merge.ts';
import { recommend } from './recommend.ts';
import type { WhatIfSnapshot } from './snapshot.ts';

/** What would be with this time. Ratios are 0 to 1. */
export interface CurvePoint {
  readonly freshMs: number;
  /** 1 − calls to the store / reads. */
  readonly hitRatio: number;
  /** Calls to the store a second. */
  readonly upstreamRps: number;
  /** The age that 90 % of the answers would not exceed. */
  readonly ageP90Ms: number;
  /** The share of answers that would be out of date; null until enough refreshes have taught how fast records change. */
  readonly outdatedRatio: number | null;
  /** Traffic was not watched for as long as this time: the figures are a guess. */
  readonly extrapolated: boolean;
}

export interface Recommendation {
  /** Null where no time can be recommended. */
  readonly freshMs: number | null;
  /** One plain sentence. */
  readonly why: string;
}

export interface ClassAdvice {
  readonly class: CacheClass;
  readonly reads: number;
  /** ISO 8601; null without reads. */
  readonly since: string | null;
  readonly outdatedLimit: number;
  /** The point of the time in force, which is in `curve` too; null without reads. */
  readonly current: CurvePoint | null;
  /** In order of time; empty without reads. */
  readonly curve: readonly CurvePoint[];
  readonly recommendation: Recommendation;
}

export interface AdviceOptions {
  readonly times: Pick<TtlPolicy, 'of'>;
  /** The share of outdated answers that is put up with, a class. */
  readonly outdatedLimits: Readonly<Record<CacheClass, number>>;
  readonly nowMs: number;
}

/** Of all classes, in their order. Each snapshot is another process's. */
export function adviceOf(snapshots: readonly WhatIfSnapshot[], options: AdviceOptions): readonly ClassAdvice[] {
  return CACHE_CLASSES.map((cacheClass) => classAdvice(cacheClass, mergeClass(snapshots, cacheClass), options));
}

function classAdvice(cacheClass: CacheClass, merged: MergedClass, options: AdviceOptions): ClassAdvice {
  const { reads, sinceMs, refreshes } = merged;
  const outdatedLimit = options.outdatedLimits[cacheClass];
  const about = { class: cacheClass, reads, since: sinceMs === null ? null : new Date(sinceMs).toISOString() };
  const inForce = pointInForce(merged.points, options.times.of(cacheClass).freshMs);
  if (sinceMs === null || inForce === null) {
    const why = 'No reads were seen yet.';
    return { ...about, outdatedLimit, current: null, curve: [], recommendation: { freshMs: null, why } };
  }
  const current = curvePoint(inForce, merged.readsPerSecond);
  const others = merged.points.filter(({ freshMs }) => isCandidate(freshMs) && freshMs !== current.freshMs);
  const curve = [...others.map((point) => curvePoint(point, merged.readsPerSecond)), current];
  curve.sort((a, b) => a.freshMs - b.freshMs);
  const watchedMs = options.nowMs - sinceMs;
  const recommendation = recommend({ reads, watchedMs, refreshes, curve, current, outdatedLimit });
  return { ...about, outdatedLimit, current, curve, recommendation };
}

function isCandidate(freshMs: number): boolean {
  return CANDIDATE_FRESH_MS.includes(freshMs);
}

function curvePoint(
  { freshMs, hitRatio, ageP90Ms, outdatedRatio, watchedMs }: MergedPoint,
  readsPerSecond: number,
): CurvePoint {
  const upstreamRps = (1 - hitRatio) * readsPerSecond;
  return { freshMs, hitRatio, upstreamRps, ageP90Ms, outdatedRatio, extrapolated: watchedMs < freshMs };
}
