/** Trials of a time as tests make them. */
import { noCounts, type StoreCounts, type TrialCounts } from '../../src/cache/trial/counts.ts';
import { GROUPS } from '../../src/cache/trial/keys.ts';
import type { EndedTrial, Trial, TrialEnd } from '../../src/cache/trial/trial.ts';
import { ManualClock } from './manual-clock.ts';

export const BEGAN_MS = new ManualClock().nowMs();

/** Of lists: a minute on a tenth of the keys, for an hour, where 30 s are in force. */
export function aTrial(given: Partial<Trial> = {}): Trial {
  return {
    id: 'trial-1',
    class: 'list',
    freshMs: 60_000,
    controlFreshMs: 30_000,
    share: 0.1,
    limits: { maxStoreLoad: 1.5, maxErrors: 0.05 },
    startedAtMs: BEGAN_MS,
    startedBy: 'anna',
    untilMs: BEGAN_MS + 3_600_000,
    end: null,
    ...given,
  };
}

export function ended(trial: Trial, state: TrialEnd['state'], given: Partial<TrialEnd> = {}): EndedTrial {
  const predicted = { trial: null, control: null };
  const about = { cause: null, reason: null, atMs: BEGAN_MS + 1000, writer: 'process-1', controlFreshMs: 30_000 };
  return { ...trial, end: { state, ...about, predicted, ...given } };
}

export interface ArmOfGroups {
  readonly reads: number;
  /** As many as reads where left out. */
  readonly firstReads?: number;
  readonly storeCalls: number;
  readonly storeFailures?: number;
  readonly hits?: number;
}

/** Each group of an arm has so much of it. */
export function countsOf(given: {
  readonly trial?: ArmOfGroups;
  readonly control?: ArmOfGroups;
  readonly before?: StoreCounts;
  readonly since?: StoreCounts;
}): TrialCounts {
  const counts = noCounts(given.before);
  const arm = ({ reads, firstReads = reads, storeCalls, storeFailures = 0, hits = 0 }: ArmOfGroups) => ({
    hits,
    reads: each(reads),
    firstReads: each(firstReads),
    storeCalls: each(storeCalls),
    storeFailures: each(storeFailures),
  });
  return {
    arms: {
      trial: given.trial === undefined ? counts.arms.trial : arm(given.trial),
      control: given.control === undefined ? counts.arms.control : arm(given.control),
    },
    store: { before: counts.store.before, since: given.since ?? counts.store.since },
  };
}

function each(value: number): number[] {
  return Array.from({ length: GROUPS }, () => value);
}
