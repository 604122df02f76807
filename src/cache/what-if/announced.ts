/**
 * The second curve of a class: calls and outdated answers if the store announces its changes. Pure.
 *
 * An announced change is in force in every process within a second, and then the next reader of the copy gets it renewed
 * (C11: a reader that has seen a change gets no older part). The model, for a fresh time T:
 * - An answer is outdated by the changes of the last second, and by those that nobody announces.
 * - A read is a call if it is one without announcements, or if it is the first since a change: then it would otherwise be served
 *   an outdated copy. So there are at most as many such reads as outdated answers, and as changes while copies live.
 * - A longer time never costs more calls: the first reads since a change are the same with any time.
 *
 * So calls are an upper bound, and outdated answers are as certain as those without announcements. Lists have neither: each change
 * of a call also renews the lists of its workspace, whether it is on them or not.
 */
import { MIN_COMPARISONS } from './change-rate.ts';
import { bucketOf, middleOf } from './tally.ts';

/** A prediction with announcements. Calls are an upper bound. */
export interface Announced {
  readonly outdatedRatio: number;
  readonly storeCallsPerRead: number;
  /** Calls to the store a second. */
  readonly upstreamRps: number;
}

/** A prediction without announcements. */
export interface Unannounced {
  readonly freshMs: number;
  readonly outdatedRatio: number;
  readonly storeCallsPerRead: number;
  /** Calls if lists bring nothing along: a copy of a list lives no longer than one that was fetched without lists. */
  readonly storeCallsPerReadAlone: number;
  readonly readsPerSecond: number;
  /** The share of outdated answers if those of each age, as a bucket, had another one. */
  readonly outdatedIf: (ageOf: (bucket: number) => number) => number;
}

/** Announced changes are in force everywhere after this long, at most. */
const IN_FORCE_AFTER_MS = 1000;
/** A copy's life is judged in so many parts: in each of them the record changes once, or not at all. */
const PARTS = 64;

/** `unannouncedRatio`: the share of changes that nobody announces. */
export function announcedOf(today: Unannounced, unannouncedRatio: number): Announced {
  const { freshMs, outdatedRatio, readsPerSecond, outdatedIf } = today;
  const part = Math.max(1, bucketOf(freshMs / PARTS));
  const changesPerCopy = (freshMs / middleOf(part)) * outdatedIf(() => part);
  const renewalsPerRead = Math.min(outdatedRatio, today.storeCallsPerReadAlone * changesPerCopy);
  const atOnce = outdatedIf((bucket) => Math.min(bucket, bucketOf(IN_FORCE_AFTER_MS)));
  const storeCallsPerRead = Math.min(1, today.storeCallsPerRead + (1 - unannouncedRatio) * renewalsPerRead);
  return {
    outdatedRatio: atOnce + unannouncedRatio * (outdatedRatio - atOnce),
    storeCallsPerRead,
    upstreamRps: storeCallsPerRead * readsPerSecond,
  };
}

/** A longer time costs at most what a shorter one does. The points are in order of time. */
export function withFallingCalls<P extends { readonly announced: Announced | null }>(
  curve: readonly P[],
): readonly P[] {
  let [storeCallsPerRead, upstreamRps] = [1, Number.POSITIVE_INFINITY];
  return curve.map((point) => {
    const { announced } = point;
    if (announced === null) return point;
    storeCallsPerRead = Math.min(storeCallsPerRead, announced.storeCallsPerRead);
    upstreamRps = Math.min(upstreamRps, announced.upstreamRps);
    return { ...point, announced: { ...announced, storeCallsPerRead, upstreamRps } };
  });
}

/** Refreshes of a class, and the shares of them that found a change, and one that nobody had announced; null without any. */
export interface Refreshes {
  readonly refreshes: number;
  readonly changedRatio: number | null;
  readonly unannouncedRatio: number | null;
}
export const NO_REFRESHES: Refreshes = { refreshes: 0, changedRatio: null, unannouncedRatio: null };

export function changesFound({ refreshes, changedRatio }: Refreshes): number {
  return Math.round(refreshes * (changedRatio ?? 0));
}

/**
 * The share of changes that nobody announces; null if too few were found. One more is added, half of it announced. `found` is
 * null if the store announces none: then it is the share if it announced all of them.
 */
export function unannouncedOf(found: Refreshes | null): number | null {
  if (found === null) return 0;
  const changes = changesFound(found);
  if (changes < MIN_COMPARISONS) return null;
  return (found.refreshes * (found.unannouncedRatio ?? 0) + 0.5) / (changes + 1);
}
