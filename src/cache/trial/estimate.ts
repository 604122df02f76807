/**
 * How often the trial's keys would have asked the store by the time of the others, and how far chance goes. Pure.
 *
 * Keys are not alike: a few are read most, and in which arm these happen to be shifts every figure, however long the trial
 * runs; counting calls alone would take that for certain. So the others are counted in groups, by the hash of their keys.
 * A line through the groups tells what calls go with: with first reads (of each key, in each stretch of time as long as
 * the one in force), with reads, or with the number of keys. How far the groups lie from the line is how far chance goes,
 * both in the counts and in which keys fell where.
 */
import { type ArmCounts, total } from './counts.ts';
import { GROUPS } from './keys.ts';

/** What the trial's keys would have asked. */
export interface Expected {
  readonly calls: number;
  /** Their standard error. */
  readonly error: number;
}

/** A handful of calls is no measure: the others are taken to have made so many at least. */
export const LEAST_CALLS = 25;

/**
 * Of the time in which `trial` and `control` were counted, in three ways: by first reads, by reads, and by keys. Each sees
 * what another doesn't. `share` is that of the trial's keys.
 */
export function expectedCalls(trial: ArmCounts, control: ArmCounts, share: number): readonly Expected[] {
  const calls = answeredCalls(control);
  const more = Math.max(0, LEAST_CALLS - total(calls)) / GROUPS;
  const others = calls.map((each) => each + more);
  /** How many groups of the others have as many keys as the trial. */
  const groups = (share / (1 - share)) * GROUPS;
  const by = (xs: readonly number[], x: number): Expected => {
    const { at0, slope, variance } = lineThrough(xs, others);
    return {
      calls: Math.max(1, at0 * groups + slope * x),
      error: Math.sqrt(variance * groups * (1 + groups / GROUPS)),
    };
  };
  const nothing = others.map(() => 0);
  return [by(control.firstReads, total(trial.firstReads)), by(control.reads, total(trial.reads)), by(nothing, 0)];
}

/** By group: those that failed are repeated as often as they are read for, and say nothing of times. */
export function answeredCalls({ storeCalls, storeFailures }: ArmCounts): readonly number[] {
  return storeCalls.map((calls, group) => calls - (storeFailures[group] ?? 0));
}

interface Line {
  readonly at0: number;
  readonly slope: number;
  /** Of what lies beside it. Chance in the counts is the least that there is. */
  readonly variance: number;
}

/** Least squares; flat where nothing differs. That more reads go with fewer calls is chance. */
function lineThrough(xs: readonly number[], ys: readonly number[]): Line {
  const [meanX, meanY] = [total(xs) / GROUPS, total(ys) / GROUPS];
  const spread = total(xs.map((x) => (x - meanX) ** 2));
  const common = total(xs.map((x, group) => (x - meanX) * ((ys[group] ?? 0) - meanY)));
  const slope = spread === 0 ? 0 : Math.max(0, common / spread);
  const at0 = meanY - slope * meanX;
  const beside = total(xs.map((x, group) => ((ys[group] ?? 0) - at0 - slope * x) ** 2));
  return { at0, slope, variance: Math.max(meanY, beside / (GROUPS - 2)) };
}

/** A share of calls that failed. */
export interface FailureShare {
  readonly ratio: number;
  /** Its standard error. */
  readonly error: number;
}

/** Of calls that fail each for itself. */
export function failureShare(failures: number, calls: number): FailureShare {
  return { ratio: calls === 0 ? 0 : failures / calls, error: chanceIn(failures, calls) };
}

/** Of an arm: where a few keys are most of what fails, little is known. */
export function failureShareOf({ storeCalls, storeFailures }: ArmCounts): FailureShare {
  const calls = total(storeCalls);
  const { ratio, error } = failureShare(total(storeFailures), calls);
  const squares = storeFailures.map((failed, group) => (failed - ratio * (storeCalls[group] ?? 0)) ** 2);
  const spread = calls === 0 ? 0 : Math.sqrt((total(squares) * GROUPS) / (GROUPS - 1)) / calls;
  return { ratio, error: Math.max(spread, error) };
}

/** As if one more had failed and one had not: of few calls nothing is certain. */
function chanceIn(failures: number, calls: number): number {
  const ratio = (failures + 1) / (calls + 2);
  return Math.sqrt((ratio * (1 - ratio)) / (calls + 2));
}
