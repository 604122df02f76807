/**
 * Advice from the simulations of all processes: one curve per class, and which fresh time to set. No advice makes the store
 * work more than it may, all classes together. Pure.
 */
import { z } from 'zod';
import { durationText, formatDuration } from '../time/duration.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../cache/ttl-policy.ts';
import { bandOf, type BandRow, learn, MIN_COMPARISONS } from '../cache/what-if/change-rate.ts';
import { basisOf, type Forecast, forecastOf, type Point, rowsOf } from '../cache/what-if/forecast.ts';
import { sum, type WhatIfReport } from '../cache/what-if/tally.ts';

const number = z.number();
const orNull = number.nullable();

/** The members are those of `Point`. */
const curvePointSchema = z.object({
  freshMs: number,
  hitRatio: number,
  hitRatioError: number,
  staleRatio: number,
  storeCallsPerRead: number,
  storeCallsPerReadError: number,
  upstreamRps: number,
  upstreamRpsError: number,
  /** Calls to the store a second of all classes together, with this time and the others in force. */
  totalRps: number,
  totalRpsError: number,
  ageP90Ms: number,
  ageP90MsError: number,
  outdatedRatio: orNull,
  outdatedRatioError: orNull,
  extrapolated: z.boolean(),
});
export type CurvePoint = Readonly<z.output<typeof curvePointSchema>>;

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
  recommendation: z.object({ freshMs: orNull, why: z.string(), warning: z.string().nullable() }),
});
export type ClassAdvice = Readonly<z.output<typeof classAdviceSchema>>;
type Recommendation = ClassAdvice['recommendation'];

/** What all classes together ask of the store, in calls a second. */
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
};

/** By the reports of all processes, those included that have ended since. */
export function adviceOf(reports: readonly WhatIfReport[], options: AdviceOptions): Advice {
  const { ttl, freshMs = {} } = options;
  const freshOf = (cacheClass: CacheClass): number => freshMs[cacheClass] ?? ttl.of(cacheClass).freshMs;
  const bases = new Map(CACHE_CLASSES.map((each) => [each, basisOf(reports, each)]));
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
    return { ...about, reads, since, includesStart, current, curve, staleness, recommendation };
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

/** What a shorter fresh time does not change; null if few answers are stale. */
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

interface Limit {
  readonly rps: number;
  readonly name: string;
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

interface Case extends Pick<Forecast, 'reads' | 'comparisons'> {
  /** How long these reads took to come. */
  readonly watchedMs: number;
  readonly curve: readonly CurvePoint[];
  readonly current: CurvePoint;
  readonly outdatedLimit: number;
  readonly limit: Limit;
  /** How many more calls a second this class may cost. */
  readonly spareRps: number;
}

/** Fewer reads show nothing. */
const MIN_READS = 1000;
/** How far above the lowest store load a shorter TTL may lie. */
const TOLERANCE = 1.1;

/**
 * The shortest TTL whose store load is within 10 % of the lowest among those that keep the share of outdated answers
 * within the limit and were watched for as long as they last. The TTL in force stays if it keeps the limit too and the
 * change would gain no more than the predictions may be wrong by, or if it was not watched for as long itself. A TTL that
 * makes the store work more than it may needs `isForced`.
 */
function recommend(given: Case, isForced: boolean): Recommendation {
  const { reads, watchedMs: ms, comparisons, curve, current, outdatedLimit, spareRps, limit } = given;
  if (reads < MIN_READS) {
    return none(
      `Too few reads for a recommendation: ${whole(reads)} in ${durationText(ms)}; it takes ${whole(MIN_READS)}.`,
    );
  }
  const watched = curve.filter((point) => !point.extrapolated);
  if (watched.length === 0) return none(`Traffic was watched for only ${durationText(ms)}: no time can be judged yet.`);
  if (watched.every(({ outdatedRatio }) => outdatedRatio === null)) {
    return none(
      `Too few refreshes to tell how fast the records change: ${Math.floor(comparisons)}; it takes ${MIN_COMPARISONS}.`,
    );
  }
  const isAllowed = ({ outdatedRatio }: CurvePoint): boolean =>
    outdatedRatio !== null && outdatedRatio <= outdatedLimit;
  const allowed = watched.filter(isAllowed);
  if (allowed.length === 0) {
    const [least] = watched.toSorted((a, b) => (a.outdatedRatio ?? 1) - (b.outdatedRatio ?? 1));
    const at = least === undefined ? '' : ` (${percent(least.outdatedRatio ?? 1)} at ${formatDuration(least.freshMs)})`;
    return none(`Every time would serve more outdated answers${at} than the limit of ${percent(outdatedLimit)}.`);
  }
  if (current.extrapolated && isAllowed(current)) {
    return none(
      `${formatDuration(current.freshMs)}, the time in force, is longer than traffic was watched (${durationText(ms)}).`,
    );
  }
  const isAffordable = ({ totalRps }: CurvePoint): boolean => totalRps - current.totalRps <= Math.max(0, spareRps);
  const affordable = allowed.filter(isAffordable);
  const best = cheapest(affordable.length === 0 ? allowed : affordable, current);
  if (!isAffordable(best)) {
    const cost = `from ${rate(current.totalRps)} to ${rate(best.totalRps)} calls a second, all classes together, more than ${limit.name} (${rate(limit.rps)})`;
    if (isForced)
      return { freshMs: best.freshMs, why: reasonFor(best, given), warning: `WARNING: this takes the store ${cost}.` };
    return none(
      `The times that keep the limit of ${percent(outdatedLimit)} outdated answers (${formatDuration(best.freshMs)} or less) would take the store ${cost}. They are only recommended with --force.`,
    );
  }
  if (best !== current && isAllowed(current) && !isWorthIt(best, current, comparisons)) {
    return {
      freshMs: current.freshMs,
      why: `${formatDuration(current.freshMs)}, the time in force, is as good as ${formatDuration(best.freshMs)} as far as can be told: the difference is less than the predictions may be wrong by.`,
      warning: null,
    };
  }
  return { freshMs: best.freshMs, why: reasonFor(best, given), warning: null };
}

/** By what the class costs, together with what depends on it. */
function cheapest(points: readonly CurvePoint[], current: CurvePoint): CurvePoint {
  const costOf = ({ totalRps }: CurvePoint): number => totalRps - current.totalRps + current.upstreamRps;
  const lowest = Math.min(...points.map(costOf));
  return points.find((point) => costOf(point) <= lowest + (TOLERANCE - 1) * Math.abs(lowest)) ?? current;
}

/** Whether a change gains more, in store load or in fresh answers, than chance may explain. */
function isWorthIt(best: CurvePoint, current: CurvePoint, comparisons: number): boolean {
  const [before, after] = [current.outdatedRatio ?? 0, best.outdatedRatio ?? 0];
  const doubt = 2 * Math.sqrt(Math.max(before, after) / Math.max(1, comparisons));
  const error = Math.hypot(best.upstreamRpsError, current.upstreamRpsError);
  return current.totalRps - best.totalRps > error || before - after > doubt;
}

function none(why: string): Recommendation {
  return { freshMs: null, why, warning: null };
}

function reasonFor(best: CurvePoint, { current, outdatedLimit }: Case): string {
  if (best.freshMs === current.freshMs) {
    return `${formatDuration(best.freshMs)}, the time in force, is the shortest that comes within 10 % of the lowest store load (${rate(best.upstreamRps)} store calls a second) that the limit of ${percent(outdatedLimit)} outdated answers allows.`;
  }
  const instead = current.outdatedRatio === null ? '' : ` instead of ${percent(current.outdatedRatio)}`;
  const [before, after] = [percent(current.hitRatio), percent(best.hitRatio)];
  const hits = before === after ? '' : `the hit ratio from ${before} to ${after} and `;
  return (
    `${formatDuration(best.freshMs)} instead of ${formatDuration(current.freshMs)} would take ${hits}` +
    `the store from ${rate(current.totalRps)} to ${rate(best.totalRps)} calls a second, all classes together, ` +
    `with ${percent(best.outdatedRatio ?? 0)} of the answers outdated${instead} (limit ${percent(outdatedLimit)}).`
  );
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
