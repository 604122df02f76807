/** What comes of looking at a trial. */
import type { Predicted, RollbackCause, Trial } from './trial.ts';

export interface Harm {
  readonly kind: 'harm';
  readonly cause: RollbackCause;
  readonly reason: string;
}

export type Verdict =
  | { readonly kind: 'well' }
  /** Of store load nothing can be said yet. */
  | { readonly kind: 'unjudged'; readonly why: string }
  | Harm;

/** What a trial is judged by besides counts. */
export interface Case {
  readonly trial: Trial;
  /** The time in force. */
  readonly controlFreshMs: number;
  readonly predicted: { readonly trial: Predicted | null; readonly control: Predicted | null };
}

/** By how many standard errors a limit must be exceeded: it is looked again and again, for days. */
export const CERTAIN_ERRORS = 4;
