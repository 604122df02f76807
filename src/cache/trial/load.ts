/** Whether the trial's keys ask the store too often. Pure. */
import { total } from './counts.ts';
import { answeredCalls, type Expected, expectedCalls, LEAST_CALLS } from './estimate.ts';
import { span, times, whole } from './text.ts';
import { type Case, CERTAIN_ERRORS, type Harm, type Verdict } from './verdict.ts';
import type { Counted } from './window.ts';

/** Less is none that a model could know. */
const LEAST_PER_READ = 0.001;
const SHORTEST_MS = 30_000;
/** What a time does to load shows only after it has passed several times. */
const TIMES_PASSED = 4;
/** A trial whose load could be so many times the limit before it is told from chance isn't judged yet. */
const MOST_UNSEEN = 2;

/** From how long a time on load is judged: the shorter of both times must have passed several times in it. */
export function loadAfterMs({ trial, controlFreshMs }: Pick<Case, 'trial' | 'controlFreshMs'>): number {
  return Math.max(SHORTEST_MS, TIMES_PASSED * Math.min(trial.freshMs, controlFreshMs));
}

/** Null where the limit is kept, or nothing is certain. */
export function loadHarm({ counts, lengthMs }: Counted, given: Case): Harm | null {
  if (lengthMs < loadAfterMs(given)) return null;
  const { trial, control } = counts.arms;
  const asked = total(answeredCalls(trial));
  const limit = limitOf(given, lengthMs);
  const isExceeded = ({ calls, error }: Expected): boolean => asked > limit * (calls + CERTAIN_ERRORS * error);
  const expected = expectedCalls(trial, control, given.trial.share).find(isExceeded);
  if (asked < LEAST_CALLS || expected === undefined) return null;
  const seen = `${whole(asked)} calls in ${whole(total(trial.reads))} reads, where ${whole(Math.round(expected.calls))} would be expected by what the others asked`;
  const predicted = predictedFactor(given);
  const because = predicted > 1 ? `, where ${times(predicted)} was predicted` : '';
  const reason = `The trial's keys asked the store ${times(asked / expected.calls)} as often as the others in ${span(lengthMs)} (${seen}); the limit is ${times(limit)}${because}.`;
  return { kind: 'harm', cause: 'store-load', reason };
}

/** Whether a rise would be noticed by now, and if not, why. */
export function loadJudged({ counts, lengthMs }: Counted, given: Case): Verdict {
  const { trial, control } = counts.arms;
  const reads = total(trial.reads);
  if (reads === 0) return unjudged("none of the trial's keys was read yet");
  const afterMs = loadAfterMs(given);
  if (lengthMs < afterMs) return unjudged(`store load is judged from ${span(afterMs)} after the start on`);
  const expected = expectedCalls(trial, control, given.trial.share);
  const chance = Math.min(...expected.map(({ calls, error }) => 1 + (CERTAIN_ERRORS * error) / calls));
  const certain = limitOf(given, lengthMs) * chance;
  if (chance <= MOST_UNSEEN) return { kind: 'well' };
  const seen = `${whole(total(trial.storeCalls))} store calls in ${whole(reads)} reads of the trial's keys`;
  return unjudged(`by ${seen}, only ${times(certain)} the load of the others could be told from chance`);
}

function unjudged(why: string): Verdict {
  return { kind: 'unjudged', why: `Not judged yet: ${why}.` };
}

function limitOf(given: Case, lengthMs: number): number {
  return given.trial.limits.maxStoreLoad * predictedFactor(given) * burst(given, lengthMs);
}

/** A shorter time is expected to cost more: what the model says, and no key asks more often than that it is shorter. */
function predictedFactor({ trial: { freshMs }, controlFreshMs, predicted: { trial, control } }: Case): number {
  if (trial === null || control === null || freshMs >= controlFreshMs) return 1;
  const factor = trial.storeCallsPerRead / Math.max(control.storeCallsPerRead, LEAST_PER_READ);
  return Math.max(1, freshMs === 0 ? factor : Math.min(factor, controlFreshMs / freshMs));
}

/**
 * A shorter time ends the freshness of many copies at once: each key may ask once more than it will from then on, and for
 * a while they ask all together.
 */
function burst({ trial: { freshMs }, controlFreshMs }: Case, lengthMs: number): number {
  return freshMs >= controlFreshMs ? 1 : 1 + ((1 - freshMs / controlFreshMs) * freshMs) / lengthMs;
}
