/**
 * Advice from the simulations of all processes: one curve per class, and which fresh time to set. No advice makes the store
 * work more than it may, all classes together. Pure.
 */
import { z } from 'zod';
import { durationText, formatDuration } from '../time/duration.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../cache/ttl-policy.ts';
import { NO_REFRESHES, type Refreshes, unannouncedOf } from '../cache/what-if/announced.ts';
import { bandOf, type BandRow, learn } from '../cache/what-if/change-rate.ts';
import { basisOf, type Forecast, forecastOf, type Point, rowsOf } from '../cache/what-if/forecast.ts';
import { sum, type WhatIfReport } from '../cache/what-if/tally.ts';
import {
  announcementsSchema,
  type CurvePoint,
  curvePointSchema,
  type Limit,
  none,
  percent,
  rate,
  recommend,
  recommendationSchema,
  recommendIfAnnounced,
} from './recommendation.ts';

const number = z.number();
const orNull = number.nullable();

export const classAdviceSchema = z.object({
  class: z.string(),
  reads: number,
  /** ISO 8601; null without reads. */
  since: z.string().nullable(),
  /** Whether the start of a process is among these reads, when the first read of each record was a miss. */
  includesStart: z.boolean(),
  /** The share of outdated answers that is accepted. */
  outdatedLimit: number,
  /** The point of the TTL in force, which is in `curve` too; null without reads. */
  current: curvePointSchema.nullable(),
  /** The true figures of the processes that run; null without reads. */
  measured: curvePointSchema.pick({ hitRatio: true, storeCallsPerRead: true, upstreamRps: true }).nullable(),
  /** In order of TTL; empty without reads. */
  curve: z.array(curvePointSchema),
  /** How many records change within that time, by how long they had been unchanged; `unchangedToMs` is null for any longer. */
  changes: z.array(
    z.object({
      unchangedFromMs: number,
      unchangedToMs: orNull,
      withinMs: number,
      changedRatio: number,
      changedRatioError: number,
      comparisons: number,
    }),
  ),
  /** One sentence, if it is `stale` that makes answers old: by how much. */
  staleness: z.string().nullable(),
  /**
   * `freshMs` is null if no TTL can be recommended; `why` is one plain sentence. `warning` is set for one that only `force` gives.
   */
  recommendation: recommendationSchema,
  /** All null for lists. */
  announcements: announcementsSchema,
});
export type ClassAdvice = Readonly<z.output<typeof classAdviceSchema>>;

/** The load of all classes together on the store, in calls per second. */
export const loadSchema = z.object({
  /** With the times in force. */
  upstreamRps: number,
  upstreamRpsError: number,
  /** If all recommendations are followed. */
  recommendedRps: number,
  recommendedRpsError: number,
  /** No recommendation goes beyond this. */
  limitRps: number,
  /** The source of the limit, in words. */
  limit: z.string(),
  /** Set if the times in force are beyond the limit already, or `force` gave a recommendation that is. */
  warning: z.string().nullable(),
});
export type StoreLoad = Readonly<z.output<typeof loadSchema>>;

export interface AdviceOptions {
  readonly ttl: Pick<TtlPolicy, 'of'>;
  /** The share of outdated answers that is accepted. */
  readonly outdatedLimitOf: (cacheClass: CacheClass) => number;
  readonly nowMs: number;
  /** As if these fresh times were in force. */
  readonly freshMs?: { readonly [C in CacheClass]?: number | undefined };
  /** Calls a second that the store may be asked for: by the configuration, and by the operator. */
  readonly maxRequestsPerSecond?: number | null;
  readonly budgetRps?: number | null;
  /** Whether recommendations may go beyond the limit, with a warning. */
  readonly force?: boolean;
  /** The findings of the refreshes of each class; null if the store announces no changes. */
  readonly refreshes?: readonly (Refreshes & { readonly class: string })[] | null;
}

export interface Advice {
  readonly load: StoreLoad;
  /** In the order of the classes. */
  readonly classes: readonly ClassAdvice[];
}

const UNREAD: Omit<ClassAdvice, 'class' | 'outdatedLimit' | 'changes' | 'measured'> = {
  reads: 0,
  since: null,
  includesStart: false,
  current: null,
  curve: [],
  staleness: null,
  recommendation: none('No reads were seen yet.'),
  announcements: { unannouncedRatio: null, freshMs: null, why: null },
};

/** By the reports of all processes, those included that have ended since. */
export function adviceOf(reports: readonly WhatIfReport[], options: AdviceOptions): Advice {
  const { ttl, freshMs = {}, refreshes = null } = options;
  const freshOf = (cacheClass: CacheClass): number => freshMs[cacheClass] ?? ttl.of(cacheClass).freshMs;
  const refreshesOf = (cacheClass: CacheClass): Refreshes | null =>
    refreshes === null ? null : (refreshes.find((one) => one.class === cacheClass) ?? NO_REFRESHES);
  const bases = new Map(CACHE_CLASSES.map((each) => [each, basisOf(reports, each, unannouncedOf(refreshesOf(each)))]));
  const forecast = (cacheClass: CacheClass, listFreshMs: number): Forecast | null => {
    const basis = bases.get(cacheClass) ?? null;
    return (
      basis && forecastOf(basis, { freshMs: freshOf(cacheClass), staleMs: ttl.of(cacheClass).staleMs, listFreshMs })
    );
  };
  const forecasts = new Map(CACHE_CLASSES.map((each) => [each, forecast(each, freshOf('list'))]));
  const rpsOf = (cacheClass: CacheClass): number => forecasts.get(cacheClass)?.current.upstreamRps ?? 0;
  const nowRps = sum(CACHE_CLASSES, rpsOf);
  const limit = limitOf(nowRps, options);
  const withTotal = (cacheClass: CacheClass, point: Point): CurvePoint => {
    const others = new Map(CACHE_CLASSES.map((each) => [each, forecasts.get(each)?.current]));
    // Lists bring evaluations along: with other times of lists these cost more or less.
    if (cacheClass === 'list') others.set('evaluation', forecast('evaluation', point.freshMs)?.current);
    const all = [...others.set(cacheClass, point).values()];
    return {
      ...point,
      totalRps: sum(all, (each) => each?.upstreamRps ?? 0),
      totalRpsError: Math.hypot(...all.map((each) => each?.upstreamRpsError ?? 0)),
    };
  };
  let recommendedRps = nowRps;
  const classes = CACHE_CLASSES.map((cacheClass): ClassAdvice => {
    const outdatedLimit = options.outdatedLimitOf(cacheClass);
    const changes = changesOf(rowsOf(reports, cacheClass));
    const measured = measuredOf(reports, cacheClass, options.nowMs);
    const about = { class: cacheClass, outdatedLimit, changes, measured };
    const found = forecasts.get(cacheClass) ?? null;
    if (found === null) return { ...about, ...UNREAD };
    const curve = found.curve.map((point) => withTotal(cacheClass, point));
    const current = curve[found.curve.indexOf(found.current)] ?? withTotal(cacheClass, found.current);
    const watchedMs = options.nowMs - found.sinceMs;
    const given = { ...found, watchedMs, curve, current, outdatedLimit, limit, spareRps: limit.rps - recommendedRps };
    const recommendation = recommend(given, options.force ?? false);
    const advised = curve.find(({ freshMs: each }) => each === recommendation.freshMs);
    if (advised !== undefined) recommendedRps += advised.totalRps - nowRps;
    const since = new Date(found.sinceMs).toISOString();
    const { reads, includesStart } = found;
    const staleness = stalenessOf(current, ttl.of(cacheClass).staleMs);
    const announcements =
      cacheClass === 'list'
        ? UNREAD.announcements
        : recommendIfAnnounced(given, recommendation, refreshesOf(cacheClass));
    return { ...about, reads, since, includesStart, current, curve, staleness, recommendation, announcements };
  });
  const load = {
    upstreamRps: nowRps,
    recommendedRps,
    ...loadErrors(classes),
    ...loadLimit(limit, nowRps, recommendedRps),
  };
  return { load, classes };
}

/** From this share on, answers past their fresh time are what an operator has to know of. */
const MANY_STALE = 0.1;

/** The staleness that a shorter fresh time does not change, in words; null if few answers are stale. */
function stalenessOf({ freshMs, staleRatio, ageP90Ms }: CurvePoint, staleMs: number): string | null {
  if (staleRatio < MANY_STALE || ageP90Ms <= freshMs) return null;
  return (
    `${percent(staleRatio)} of the answers are older than the ${formatDuration(freshMs)} for which they are fresh, by up to ${durationText(ageP90Ms - freshMs)} in nine of ten: ` +
    `they are served while a newer one is fetched, because \`stale\` is ${formatDuration(staleMs)}. A shorter \`stale\` makes them younger, and readers wait more often; another fresh time hardly changes it.`
  );
}

/** The classes are predicted one by one, so their errors are independent. */
function loadErrors(classes: readonly ClassAdvice[]): Pick<StoreLoad, 'upstreamRpsError' | 'recommendedRpsError'> {
  const advised = classes.map(({ curve, current, recommendation }) => {
    return curve.find(({ freshMs }) => freshMs === recommendation.freshMs) ?? current;
  });
  return {
    upstreamRpsError: Math.hypot(...classes.map(({ current }) => current?.upstreamRpsError ?? 0)),
    recommendedRpsError: Math.hypot(...advised.map((point) => point?.upstreamRpsError ?? 0)),
  };
}

const [HOUR_MS, DAY_MS] = [3_600_000, 86_400_000];
/** Where the bands of time unchanged end that operators are shown. */
const SHOWN_ENDS_MS = [HOUR_MS, DAY_MS, 7 * DAY_MS, Number.POSITIVE_INFINITY];

/** By how long records had been unchanged, how many of them change; bands with too few comparisons are left out. */
function changesOf(rows: readonly BandRow[]): ClassAdvice['changes'] {
  return SHOWN_ENDS_MS.flatMap((endMs, index) => {
    const beginMs = SHOWN_ENDS_MS[index - 1] ?? 0;
    const learned = learn(rows.filter(([band]) => band >= bandOf(beginMs) && band <= bandOf(endMs - 1)));
    if (learned === null) return [];
    const withinMs = endMs === HOUR_MS ? HOUR_MS : DAY_MS;
    const changedRatio = learned.outdatedAt(withinMs);
    return {
      unchangedFromMs: beginMs,
      unchangedToMs: Number.isFinite(endMs) ? endMs : null,
      withinMs,
      changedRatio,
      changedRatioError: (2 * changedRatio) / Math.sqrt(learned.changed + 1),
      comparisons: Math.floor(learned.seen),
    };
  });
}

/** How much harder the store may be made to work. */
const MOST_GROWTH = 2;

function limitOf(nowRps: number, { maxRequestsPerSecond = null, budgetRps = null }: AdviceOptions): Limit {
  const limits: Limit[] = [{ rps: MOST_GROWTH * nowRps, name: 'twice what the times in force cost' }];
  if (maxRequestsPerSecond !== null) limits.push({ rps: maxRequestsPerSecond, name: 'upstream.maxRequestsPerSecond' });
  if (budgetRps !== null) limits.push({ rps: budgetRps, name: 'the budget' });
  return limits.reduce((least, each) => (each.rps < least.rps ? each : least));
}

function loadLimit({ rps, name }: Limit, nowRps: number, recommendedRps: number) {
  const most = Math.max(recommendedRps, nowRps);
  const whose = nowRps > rps ? 'the times in force cost' : 'the recommended times would cost';
  const warning =
    most > rps * (1 + 1e-9)
      ? `WARNING: ${whose} the store ${rate(recommendedRps > rps ? recommendedRps : nowRps)} calls a second, more than ${name} (${rate(rps)}).`
      : null;
  return { limitRps: rps, limit: name, warning };
}

/** Each process has its own time: one that joined a minute ago adds its rate, not its share of an hour. */
function measuredOf(reports: readonly WhatIfReport[], cacheClass: CacheClass, nowMs: number): ClassAdvice['measured'] {
  const all = reports
    .filter(({ hasEnded }) => !hasEnded)
    .flatMap(({ classes }) => classes.flatMap((each) => (each.class === cacheClass ? (each.measured ?? []) : [])));
  const reads = sum(all, (one) => one.reads);
  if (reads === 0) return null;
  return {
    hitRatio: sum(all, (one) => one.hits) / reads,
    storeCallsPerRead: sum(all, (one) => one.storeCalls) / reads,
    upstreamRps: sum(all, (one) => (1000 * one.storeCalls) / Math.max(1000, nowMs - one.sinceMs)),
  };
}
