/** Runs a fleet by its seed, or by a plan of one's own, and reports what is against the rules. */
import { Bounds, type Violation } from './bounds.ts';
import { type Plan, planOf } from './plan.ts';
import { feedOracles } from './feed-oracles.ts';
import { recordOracles } from './record-oracles.ts';
import { serviceOracles } from './service-oracles.ts';
import { live } from './world.ts';

export interface Outcome {
  /** All that is against a rule, in order; none if all rules held. */
  readonly violations: readonly Violation[];
  /** A line per event. */
  readonly trace: string;
}

/** The same seed gives the same. */
export function simulate(seed: number): Promise<Outcome> {
  return run(planOf(seed));
}

export async function run(plan: Plan): Promise<Outcome> {
  const life = await live(plan);
  const violations = [...recordOracles(life), ...serviceOracles(life), ...feedOracles(life)];
  return { violations: violations.toSorted((one, other) => one.atMs - other.atMs), trace: life.history.trace() };
}

/** For a person; empty if all rules held. Times are milliseconds from the start. */
export function reportOf({ violations, trace }: Outcome, seed: number): string {
  if (violations.length === 0) return '';
  const found = violations.map(({ rule, atMs, text }) => `  ${rule}, at ${Bounds.shown(atMs)}: ${text}`);
  return [trace, `Seed ${seed} is against the rules:`, ...found, `Again: npm run simulate -- --seed ${seed}`].join(
    '\n',
  );
}
