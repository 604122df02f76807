/** Which time to set, and why, in a sentence. Pure. */
import type { CurvePoint, Recommendation } from './advice.ts';

export interface Case {
  readonly reads: number;
  /** How long these reads took to come. */
  readonly watchedMs: number;
  /** How many of them the records' changes were learned from; see `MergedClass`. */
  readonly refreshes: number;
  readonly curve: readonly CurvePoint[];
  readonly current: CurvePoint;
  readonly outdatedLimit: number;
}

/** Fewer tell nothing. */
const MIN_READS = 1000;
/** How far above the lowest store load a shorter time may lie. */
const TOLERANCE = 1.1;

/**
 * The shortest time whose store load is within 10 % of the lowest among those that keep the share of outdated answers
 * within the limit and were watched for as long as they last.
 */
export function recommend(given: Case): Recommendation {
  const { reads, watchedMs, refreshes, curve, current, outdatedLimit } = given;
  if (reads < MIN_READS) {
    return none(`Only ${whole(reads)} reads were seen in ${span(watchedMs)}: too few to judge by.`);
  }
  const watched = curve.filter(({ extrapolated }) => !extrapolated);
  if (watched.length === 0) return none(`Traffic was watched for only ${span(watchedMs)}: no time can be judged yet.`);
  if (watched.every(({ outdatedRatio }) => outdatedRatio === null)) {
    return none(unlearned(refreshes));
  }
  const allowed = watched.filter(({ outdatedRatio }) => outdatedRatio !== null && outdatedRatio <= outdatedLimit);
  if (allowed.length === 0) {
    const [least] = watched.toSorted((a, b) => (a.outdatedRatio ?? 1) - (b.outdatedRatio ?? 1));
    const at = least === undefined ? '' : ` (${percent(least.outdatedRatio ?? 1)} at ${span(least.freshMs)})`;
    return none(`Every time would serve more outdated answers${at} than the limit of ${percent(outdatedLimit)}.`);
  }
  const lowest = Math.min(...allowed.map(({ upstreamRps }) => upstreamRps));
  const best = allowed.find(({ upstreamRps }) => upstreamRps <= TOLERANCE * lowest) ?? current;
  return { freshMs: best.freshMs, why: reasonFor(best, current, outdatedLimit) };
}

function unlearned(refreshes: number): string {
  if (refreshes === 0) return 'No refresh was seen yet, so how fast the records change is unknown.';
  // What is left of a few old ones is still more than none.
  const count = Math.max(1, Math.round(refreshes));
  const seen = count === 1 ? '1 refresh was' : `${count} refreshes were`;
  return `Only ${seen} seen: too few to tell how fast the records change.`;
}

function none(why: string): Recommendation {
  return { freshMs: null, why };
}

function reasonFor(best: CurvePoint, current: CurvePoint, outdatedLimit: number): string {
  const load = `${rate(best.upstreamRps)} store calls a second`;
  if (best.freshMs === current.freshMs) {
    return `${span(best.freshMs)}, the time in force, is the shortest that comes within 10 % of the lowest store load (${load}) that the limit of ${percent(outdatedLimit)} outdated answers allows.`;
  }
  return (
    `${span(best.freshMs)} instead of ${span(current.freshMs)} would take the hit ratio from ${percent(current.hitRatio)} to ` +
    `${percent(best.hitRatio)} and the store from ${rate(current.upstreamRps)} to ${rate(best.upstreamRps)} calls a second, ` +
    `with ${percent(best.outdatedRatio ?? 0)} of the answers outdated${instead(current)} (limit ${percent(outdatedLimit)}).`
  );
}

function instead({ outdatedRatio }: CurvePoint): string {
  return outdatedRatio === null ? '' : ` instead of ${percent(outdatedRatio)}`;
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

/** Two digits that count, where there are no more before the point. */
function rate(perSecond: number): string {
  return perSecond >= 100 ? whole(perSecond) : String(Number(perSecond.toPrecision(2)));
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
