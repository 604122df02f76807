/** Whether calls to the store fail too often. Pure. */
import { type StoreCounts, total, type TrialCounts } from './counts.ts';
import { type FailureShare, failureShare, failureShareOf, LEAST_CALLS } from './estimate.ts';
import { partOf, percent, span } from './text.ts';
import { type Case, CERTAIN_ERRORS, type Harm } from './verdict.ts';
import type { Counted } from './window.ts';

type Limits = Pick<Case['trial'], 'limits'>;

/** Those of the trial's keys above those of the others, or all together above what was before the trial. */
export function errorHarm({ counts, lengthMs }: Counted, { trial }: { readonly trial: Limits }): Harm | null {
  return ofArms(counts.arms, lengthMs, trial) ?? ofStore(counts.store, lengthMs, trial);
}

function ofArms({ trial, control }: TrialCounts['arms'], lengthMs: number, { limits }: Limits): Harm | null {
  const [tried, others] = [countsOf(trial), countsOf(control)];
  if (tried.calls < LEAST_CALLS || others.calls < LEAST_CALLS) return null;
  if (!isAbove(failureShareOf(trial), failureShareOf(control), limits)) return null;
  const reason = `${written(tried)} store calls of the trial's keys failed in ${span(lengthMs)}, and ${written(others)} of the others; ${limitText(limits)}.`;
  return { kind: 'harm', cause: 'arm-errors', reason };
}

function ofStore({ before, since }: TrialCounts['store'], lengthMs: number, { limits }: Limits): Harm | null {
  if (since.calls < LEAST_CALLS) return null;
  // Without a call before there is nothing to be unsure of.
  const usual = before.calls === 0 ? { ratio: 0, error: 0 } : failureShare(before.failures, before.calls);
  if (!isAbove(failureShare(since.failures, since.calls), usual, limits)) return null;
  const earlier = before.calls === 0 ? 'of none that was made before the trial' : `${written(before)} before the trial`;
  const reason = `${written(since)} of all store calls failed in ${span(lengthMs)}, and ${earlier}; ${limitText(limits)}.`;
  return { kind: 'harm', cause: 'store-errors', reason };
}

function isAbove(now: FailureShare, usual: FailureShare, { maxErrors }: Limits['limits']): boolean {
  return now.ratio - usual.ratio - maxErrors > CERTAIN_ERRORS * Math.hypot(now.error, usual.error);
}

function countsOf({ storeCalls, storeFailures }: TrialCounts['arms']['trial']): StoreCounts {
  return { calls: total(storeCalls), failures: total(storeFailures) };
}

function written({ calls, failures }: StoreCounts): string {
  return partOf(failures, calls);
}

function limitText({ maxErrors }: Limits['limits']): string {
  return `the limit is ${percent(maxErrors)} more`;
}
