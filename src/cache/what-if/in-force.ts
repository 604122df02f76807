/** The figures of the time in force, which may have been set a moment ago. Pure. */
import { CANDIDATE_FRESH_MS } from './candidates.ts';
import type { MergedPoint } from './merge.ts';

/** A ghost with fewer reads has nothing to say yet. */
const MIN_READS = 1000;

/**
 * Those of its own ghost, once that has seen enough, or as much as the candidates have. Until then what lies between the
 * candidates next to it, and beyond the last one, what that says. Null where nothing was read.
 */
export function pointInForce(points: readonly MergedPoint[], freshMs: number): MergedPoint | null {
  const own = points.find((point) => point.freshMs === freshMs);
  const candidates = points.filter((point) => CANDIDATE_FRESH_MS.includes(point.freshMs));
  const isOld = own !== undefined && own.reads >= (candidates[0]?.reads ?? 0);
  if (own !== undefined && (isOld || hasSeenEnough(own))) return own;
  const above = candidates.find((point) => point.freshMs > freshMs);
  if (above === undefined) {
    const last = candidates.at(-1);
    // Beyond the last candidate nothing better is known than the ghost's own beginnings.
    return own ?? (last === undefined ? null : { ...last, freshMs });
  }
  return between(candidates.findLast((point) => point.freshMs < freshMs) ?? nothingKept(above), above, freshMs);
}

function hasSeenEnough({ reads, watchedMs, freshMs }: MergedPoint): boolean {
  return reads >= MIN_READS && watchedMs >= freshMs;
}

/** With no time at all every read is a call to the store. */
function nothingKept(above: MergedPoint): MergedPoint {
  return { ...above, freshMs: 0, hitRatio: 0, ageP90Ms: 0, outdatedRatio: above.outdatedRatio === null ? null : 0 };
}

/** Hits grow with the logarithm of time, ages and what they bring with time itself. */
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
