/** Advice from the simulations of all processes: one curve per class, and which TTL to set. Pure. */
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
import {
  mergeClass,
  type MergedClass,
  type MergedPoint,
  pointAt,
  SHORTEST_MS,
  sum,
  type WhatIfReport,
} from './curve.ts';
import { CANDIDATE_FRESH_MS } from './tally.ts';

/** A prediction for one TTL. Ratios are 0 to 1. */
export interface CurvePoint {
  readonly freshMs: number;
  /** 1 − calls to the store / reads. */
  readonly hitRatio: number;
  /** Calls to the store a second. */
  readonly upstreamRps: number;
  /** Nine of ten answers would be at most this old. */
  readonly ageP90Ms: number;
  /** The share of answers that would be out of date; null until enough refreshes show how fast records change. */
  readonly outdatedRatio: number | null;
  /** Traffic was not watched for as long as this TTL: the figures are a guess. */
  readonly extrapolated: boolean;
}

export interface Recommendation {
  /** Null if no TTL can be recommended. */
  readonly freshMs: number | null;
  /** One plain sentence. */
  readonly why: string;
}

export interface ClassAdvice {
  readonly class: CacheClass;
  readonly reads: number;
  /** ISO 8601; null without reads. */
  readonly since: string | null;
  /** The share of outdated answers that is accepted. */
  readonly outdatedLimit: number;
  /** The point of the TTL in force, which is in `curve` too; null without reads. */
  readonly current: CurvePoint | null;
  /** The true figures; null without reads. */
  readonly measured: { readonly hitRatio: number; readonly upstreamRps: number } | null;
  /** In order of TTL; empty without reads. */
  readonly curve: readonly CurvePoint[];
  readonly recommendation: Recommendation;
}

export interface AdviceOptions {
  readonly ttl: Pick<TtlPolicy, 'of'>;
  /** The share of outdated answers that is accepted, by class. */
  readonly maxStaleRatio: Readonly<Record<CacheClass, number>>;
  readonly nowMs: number;
}

/** Advice on every class, in their order, from one report per process. */
export function adviceOf(reports: readonly WhatIfReport[], options: AdviceOptions): readonly ClassAdvice[] {
  return CACHE_CLASSES.map((cacheClass) => {
    const merged = mergeClass(reports, cacheClass);
    const measured = measuredOf(reports, cacheClass, options.nowMs);
    return { class: cacheClass, ...adviceOn(merged, measured, cacheClass, options) };
  });
}

function adviceOn(
  merged: MergedClass,
  measured: ClassAdvice['measured'],
  cacheClass: CacheClass,
  { ttl, maxStaleRatio, nowMs }: AdviceOptions,
): Omit<ClassAdvice, 'class'> {
  const { reads, sinceMs, refreshes, readsPerSecond, points } = merged;
  const outdatedLimit = maxStaleRatio[cacheClass];
  const current = pointAt(points, ttl.of(cacheClass).freshMs);
  if (sinceMs === null || current === null) {
    const recommendation = none('No reads were seen yet.');
    return { reads, since: null, outdatedLimit, current: null, measured, curve: [], recommendation };
  }
  const others = points.filter(({ freshMs }) => CANDIDATE_FRESH_MS.includes(freshMs) && freshMs !== current.freshMs);
  const curve = [...others, current].toSorted((a, b) => a.freshMs - b.freshMs);
  const watchedMs = nowMs - sinceMs;
  return {
    reads,
    since: new Date(sinceMs).toISOString(),
    outdatedLimit,
    current: curvePoint(current, readsPerSecond),
    measured,
    curve: curve.map((point) => curvePoint(point, readsPerSecond)),
    recommendation: recommend({
      reads,
      watchedMs,
      refreshes,
      readsPerSecond,
      curve,
      current,
      maxStaleRatio: outdatedLimit,
    }),
  };
}

function curvePoint(point: MergedPoint, readsPerSecond: number): CurvePoint {
  const { freshMs, hitRatio, ageP90Ms, outdatedRatio } = point;
  const upstreamRps = (1 - hitRatio) * readsPerSecond;
  return { freshMs, hitRatio, upstreamRps, ageP90Ms, outdatedRatio, extrapolated: isExtrapolated(point) };
}

function isExtrapolated({ watchedMs, freshMs }: MergedPoint): boolean {
  return watchedMs < freshMs;
}

/** Each process has its own time: one that joined a minute ago adds its rate, not its share of an hour. */
function measuredOf(reports: readonly WhatIfReport[], cacheClass: CacheClass, nowMs: number): ClassAdvice['measured'] {
  const all = reports.flatMap(({ classes }) =>
    classes.filter((each) => each.class === cacheClass).flatMap(({ measured }) => measured ?? []),
  );
  const reads = sum(all, (one) => one.reads);
  if (reads === 0) return null;
  // A read that a purge overtakes calls again: there may be more calls than reads.
  return {
    hitRatio: Math.max(0, 1 - sum(all, (one) => one.storeCalls) / reads),
    upstreamRps: sum(all, (one) => (1000 * one.storeCalls) / Math.max(SHORTEST_MS, nowMs - one.sinceMs)),
  };
}

interface Case {
  readonly reads: number;
  /** How long these reads took to come. */
  readonly watchedMs: number;
  /** How many of them the records' changes were learned from; see `MergedClass`. */
  readonly refreshes: number;
  readonly readsPerSecond: number;
  readonly curve: readonly MergedPoint[];
  readonly current: MergedPoint;
  readonly maxStaleRatio: number;
}

/** Fewer reads show nothing. */
const MIN_READS = 1000;
/** How far above the lowest store load a shorter TTL may lie. */
const TOLERANCE = 1.1;

/**
 * The shortest TTL whose store load is within 10 % of the lowest among those that keep the share of outdated answers
 * within the limit and were watched for as long as they last. The TTL in force stays if it keeps the limit too and the
 * change would gain no more than the predictions may be wrong by.
 */
function recommend(given: Case): Recommendation {
  const { reads, watchedMs, refreshes, curve, current, maxStaleRatio } = given;
  if (reads < MIN_READS) {
    return none(`Only ${whole(reads)} reads were seen in ${span(watchedMs)}: too few to judge by.`);
  }
  const watched = curve.filter((point) => !isExtrapolated(point));
  if (watched.length === 0) return none(`Traffic was watched for only ${span(watchedMs)}: no time can be judged yet.`);
  if (watched.every(({ outdatedRatio }) => outdatedRatio === null)) return none(unlearned(refreshes));
  const allowed = watched.filter(({ outdatedRatio }) => outdatedRatio !== null && outdatedRatio <= maxStaleRatio);
  if (allowed.length === 0) {
    const [least] = watched.toSorted((a, b) => (a.outdatedRatio ?? 1) - (b.outdatedRatio ?? 1));
    const at = least === undefined ? '' : ` (${percent(least.outdatedRatio ?? 1)} at ${span(least.freshMs)})`;
    return none(`Every time would serve more outdated answers${at} than the limit of ${percent(maxStaleRatio)}.`);
  }
  const highest = Math.max(...allowed.map(({ hitRatio }) => hitRatio));
  const best = allowed.find(({ hitRatio }) => 1 - hitRatio <= TOLERANCE * (1 - highest)) ?? current;
  const isKept = best !== current && allowed.includes(current) && !isWorthIt(best, current, refreshes);
  if (isKept) {
    return {
      freshMs: current.freshMs,
      why: `${span(current.freshMs)}, the time in force, is as good as ${span(best.freshMs)} as far as can be told: the difference is less than the predictions may be wrong by.`,
    };
  }
  return { freshMs: best.freshMs, why: reasonFor(best, given) };
}

/** Whether a change gains more, in store load or in fresh answers, than chance may explain. */
function isWorthIt(best: MergedPoint, current: MergedPoint, refreshes: number): boolean {
  const [before, after] = [current.outdatedRatio ?? 0, best.outdatedRatio ?? 0];
  const doubt = 2 * Math.sqrt(Math.max(before, after) / Math.max(1, refreshes));
  const isLessLoad = best.hitRatio - current.hitRatio > Math.hypot(best.uncertainty, current.uncertainty);
  return isLessLoad || before - after > doubt;
}

function unlearned(refreshes: number): string {
  if (refreshes === 0) return 'No refresh was seen yet, so how fast the records change is unknown.';
  // The rest of a few old ones is still more than none.
  const count = Math.max(1, Math.round(refreshes));
  const seen = count === 1 ? '1 refresh was' : `${count} refreshes were`;
  return `Only ${seen} seen: too few to tell how fast the records change.`;
}

function none(why: string): Recommendation {
  return { freshMs: null, why };
}

function reasonFor(best: MergedPoint, { current, readsPerSecond, maxStaleRatio }: Case): string {
  const [load, loadNow] = [best, current].map(({ hitRatio }) => rate((1 - hitRatio) * readsPerSecond));
  if (best.freshMs === current.freshMs) {
    return `${span(best.freshMs)}, the time in force, is the shortest that comes within 10 % of the lowest store load (${load} store calls a second) that the limit of ${percent(maxStaleRatio)} outdated answers allows.`;
  }
  const instead = current.outdatedRatio === null ? '' : ` instead of ${percent(current.outdatedRatio)}`;
  return (
    `${span(best.freshMs)} instead of ${span(current.freshMs)} would take the hit ratio from ${percent(current.hitRatio)} to ` +
    `${percent(best.hitRatio)} and the store from ${loadNow} to ${load} calls a second, ` +
    `with ${percent(best.outdatedRatio ?? 0)} of the answers outdated${instead} (limit ${percent(maxStaleRatio)}).`
  );
}

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
] as const;

/** In the largest unit of which there is at least one: `45 s`, `1.5 h`, `500 ms`. */
function span(durationMs: number): string {
  const [unitMs, unit] = UNITS.find(([each]) => durationMs >= each) ?? ([1, 'ms'] as const);
  return `${Number((durationMs / unitMs).toFixed(1))} ${unit}`;
}

function percent(ratio: number): string {
  return `${Number((100 * ratio).toFixed(1))} %`;
}

/** Two significant digits, or all before the point. */
function rate(perSecond: number): string {
  return perSecond >= 100 ? whole(perSecond) : String(Number(perSecond.toPrecision(2)));
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
