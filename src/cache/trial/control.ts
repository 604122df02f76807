/** Beginning and ending trials of a time, and seeing how they go, for operators. */
import type { CacheClass } from '../times.ts';
import type { TimesChange } from '../times-control.ts';
import type { ArmTotals } from './counts.ts';
import type { ArmName, Predicted, Trial, TrialPlan } from './trial.ts';

/** What was measured of one arm, in all processes. */
export interface ArmView extends ArmTotals {
  /** What rules its keys; once the trial is over, what ruled them last. */
  readonly freshMs: number;
}

/** A trial as it stands. */
export interface TrialView {
  /** `end` is null while it runs, and nowhere else. */
  readonly trial: Trial;
  /** While it runs: why it can't be judged yet; null once it can. */
  readonly unjudged: string | null;
  readonly arms: Readonly<Record<ArmName, ArmView>>;
  /** Null until the model has seen enough. */
  readonly predicted: Readonly<Record<ArmName, Predicted | null>>;
}

export type StartResult =
  | { readonly kind: 'started'; readonly view: TrialView }
  /** One of that class runs; another can't begin. */
  | { readonly kind: 'running'; readonly trial: Trial };

/** Once a change resolves it is in force here; in every other process of the fleet within a second. */
export interface TrialControl {
  /** Those that run in this process now. */
  running(): readonly Trial[];
  /** Those that run first, then those that are over, newest first. Never rejects. */
  views(): Promise<readonly TrialView[]>;
  /** The one of the class that runs, else the last one; null where there was none. */
  view(cacheClass: CacheClass): Promise<TrialView | null>;
  start(plan: TrialPlan, by: string): Promise<StartResult>;
  /** Back at once to the time in force. Null where none of the class runs. */
  stop(cacheClass: CacheClass, by: string): Promise<TrialView | null>;
  /** Its time for all keys of the class. Null where none runs, and the last one has not ended by its time. */
  adopt(cacheClass: CacheClass, by: string): Promise<{ readonly view: TrialView; readonly times: TimesChange } | null>;
}
