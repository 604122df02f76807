/** A trial of a time as the interface shows it. Pure. */
import type { ArmView, TrialView } from '../cache/trial/control.ts';
import type { Predicted } from '../cache/trial/trial.ts';
import { formatDuration } from '../duration.ts';

export function viewOfTrial({ trial, unjudged, arms, predicted }: TrialView): object {
  const { id, class: cacheClass, freshMs, share, limits, end } = trial;
  return {
    id,
    class: cacheClass,
    state: end?.state ?? 'running',
    reason: end === null ? unjudged : end.reason,
    fresh: formatDuration(freshMs),
    freshMs,
    share,
    startedAt: iso(trial.startedAtMs),
    startedBy: trial.startedBy,
    until: iso(trial.untilMs),
    endedAt: end === null ? null : iso(end.atMs),
    limits: { maxStoreLoad: limits.maxStoreLoad, maxErrors: limits.maxErrors },
    arms: { trial: viewOfArm(arms.trial), control: viewOfArm(arms.control) },
    predicted: { trial: viewOfPredicted(predicted.trial), control: viewOfPredicted(predicted.control) },
  };
}

/** What `/api/cache/ttl` says of a trial of the class. */
export function briefOfTrial({ trial }: Pick<TrialView, 'trial'>): object {
  const { id, freshMs, share, untilMs } = trial;
  return { id, fresh: formatDuration(freshMs), freshMs, share, until: iso(untilMs) };
}

function viewOfArm({ freshMs, reads, hits, storeCalls, storeFailures }: ArmView): object {
  return {
    fresh: formatDuration(freshMs),
    freshMs,
    reads,
    hits,
    // As everywhere else: the share of reads that cost the store nothing. Several calls may be behind one that was tried again.
    hitRatio: reads === 0 ? null : Math.max(0, 1 - storeCalls / reads),
    storeCalls,
    storeFailures,
    storeCallsPerRead: ratio(storeCalls, reads),
    storeFailureRatio: ratio(storeFailures, storeCalls),
  };
}

function viewOfPredicted(predicted: Predicted | null): object | null {
  return predicted === null ? null : { hitRatio: predicted.hitRatio, storeCallsPerRead: predicted.storeCallsPerRead };
}

function ratio(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}

function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}
