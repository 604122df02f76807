/**
 * Which fresh time of a class to set, from its curve; and which one announcements of changes would allow. Pure. No recommendation
 * makes the store work more than it may.
 */
import { z } from 'zod';
import { durationText, formatDuration } from '../time/duration.ts';
import { changesFound, type Refreshes, unannouncedOf } from '../cache/what-if/announced.ts';
import { MIN_COMPARISONS } from '../cache/what-if/change-rate.ts';
import type { Forecast } from '../cache/what-if/forecast.ts';

const number = z.number();
const orNull = number.nullable();

/** The members are those of `Point`. */
export const curvePointSchema = z.object({
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
  /** If the store announces its changes, with at most so many calls; null if it is not known, and for lists. */
  announced: z.object({ outdatedRatio: number, storeCallsPerRead: number, upstreamRps: number }).nullable(),
  extrapolated: z.boolean(),
});
export type CurvePoint = Readonly<z.output<typeof curvePointSchema>>;

export const recommendationSchema = z.object({ freshMs: orNull, why: z.string(), warning: z.string().nullable() });
export type Recommendation = Readonly<z.output<typeof recommendationSchema>>;

export const announcementsSchema = z.object({
  /** The share of changes that nobody announces: as was measured, or 0 if the store announces none yet. Null if it is not known. */
  unannouncedRatio: orNull,
  /** The time that announcements would allow, longer than the one recommended, or else in force; null if there is none. */
  freshMs: orNull,
  /** One sentence on that time, or on what is not known; null if there is nothing to say. */
  why: z.string().nullable(),
});
export type AnnouncementAdvice = Readonly<z.output<typeof announcementsSchema>>;

export interface Limit {
  readonly rps: number;
  readonly name: string;
}

export interface Case extends Pick<Forecast, 'reads' | 'comparisons'> {
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
export function recommend(given: Case, isForced: boolean): Recommendation {
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

/**
 * The shortest time within 10 % of the lowest store load with announcements, if it is longer than what is recommended without,
 * and saves more calls than chance may explain. `refreshes`: what was found of the class; null if the store announces no changes.
 */
export function recommendIfAnnounced(
  { reads, curve, current, outdatedLimit }: Pick<Case, 'reads' | 'curve' | 'current' | 'outdatedLimit'>,
  { freshMs: recommendedMs }: Recommendation,
  refreshes: Refreshes | null,
): AnnouncementAdvice {
  const unannouncedRatio = unannouncedOf(refreshes);
  const nothing = { unannouncedRatio, freshMs: null, why: null };
  if (reads < MIN_READS || curve.every(({ outdatedRatio }) => outdatedRatio === null)) return nothing;
  if (refreshes !== null && unannouncedRatio === null) {
    const why = `Too few changes were found in the last hour to tell how many of them the store announces: ${changesFound(refreshes)}; it takes ${MIN_COMPARISONS}.`;
    return { ...nothing, why };
  }
  const allowed = curve.flatMap(({ announced, ...point }) =>
    !point.extrapolated && announced !== null && announced.outdatedRatio <= outdatedLimit
      ? [{ ...point, announced }]
      : [],
  );
  const lowest = Math.min(...allowed.map(({ announced }) => announced.upstreamRps));
  const best = allowed.find(({ announced }) => announced.upstreamRps <= TOLERANCE * lowest);
  const base = curve.find(({ freshMs }) => freshMs === recommendedMs) ?? current;
  if (best === undefined || best.freshMs <= base.freshMs) return nothing;
  const { announced, freshMs } = best;
  const error = Math.hypot(best.upstreamRpsError, base.upstreamRpsError);
  if (base.upstreamRps - announced.upstreamRps <= error) return nothing;
  const condition =
    refreshes === null
      ? 'If the store announced its changes'
      : `As the store announces ${percent(1 - (unannouncedRatio ?? 0))} of its changes`;
  const outdated = announced.outdatedRatio < 0.001 ? 'less than 0.1 %' : percent(announced.outdatedRatio);
  const why =
    `${condition}, ${formatDuration(freshMs)} instead of ${formatDuration(base.freshMs)} would take this class ` +
    `from ${rate(base.upstreamRps)} to at most ${rate(announced.upstreamRps)} store calls a second, ` +
    `with ${outdated} of the answers outdated (limit ${percent(outdatedLimit)}).`;
  return { unannouncedRatio, freshMs, why };
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

export function none(why: string): Recommendation {
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

export function percent(ratio: number): string {
  return `${Number((100 * ratio).toFixed(1))} %`;
}

/** Two significant digits, or all before the point. */
export function rate(perSecond: number): string {
  return perSecond >= 100 ? whole(perSecond) : String(Number(perSecond.toPrecision(2)));
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
