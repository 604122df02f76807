/**
 * Whether a trial does harm: since its start, and lately, so that a late rise is seen too. docs/trial.md tells the rule in
 * full, and test/unit/cache/trial/judge.test.ts how often it is wrong.
 */
import { noCounts, since, total, type TrialCounts } from './counts.ts';
import { errorHarm } from './errors.ts';
import { loadAfterMs, loadHarm, loadJudged } from './load.ts';
import type { Trial } from './trial.ts';
import type { Case, Harm, Verdict } from './verdict.ts';
import { type Counted, type Noted, RecentWindow } from './window.ts';

/** What is looked at: counts since the trial's start, which are not changed any more. */
export interface Evidence extends Noted, Pick<Case, 'predicted'> {}

const LATELY_MS = 60_000;

export class TrialJudge {
  readonly #trial: Trial;
  #controlFreshMs: number;
  /** Where the comparison begins: at the trial's start, or when the time of the others was changed. */
  #base: Noted | null;
  #lately: { readonly errors: RecentWindow; readonly load: RecentWindow };
  #last = 0;

  /** `controlFreshMs` is the time in force. */
  constructor(trial: Trial, controlFreshMs: number) {
    this.#trial = trial;
    this.#controlFreshMs = controlFreshMs;
    const isAsAtStart = controlFreshMs === trial.controlFreshMs;
    this.#base = isAsAtStart ? { atMs: trial.startedAtMs, counts: noCounts() } : null;
    this.#lately = this.#windows();
  }

  /** To be told again and again: with another time in force a new comparison begins. */
  noteControl(controlFreshMs: number): void {
    if (controlFreshMs === this.#controlFreshMs) return;
    this.#controlFreshMs = controlFreshMs;
    this.#beginAnew();
  }

  look(evidence: Evidence): Verdict {
    const { atMs, counts } = evidence;
    // Whoever adds them up has lost some.
    if (sizeOf(counts) < this.#last) this.#beginAnew();
    this.#last = sizeOf(counts);
    const base = (this.#base ??= { atMs, counts });
    const sinceBase = { counts: since(counts, base.counts), lengthMs: Math.max(0, atMs - base.atMs) };
    const { errors, load } = this.#lately;
    const windows = { errors: [sinceBase, errors.upTo(evidence)], load: [sinceBase, load.upTo(evidence)] };
    errors.note(evidence);
    load.note(evidence);
    const given = { trial: this.#trial, controlFreshMs: this.#controlFreshMs, predicted: evidence.predicted };
    return (
      firstOf(windows.errors, (window) => errorHarm(window, given)) ??
      firstOf(windows.load, (window) => loadHarm(window, given)) ??
      loadJudged(sinceBase, given)
    );
  }

  #beginAnew(): void {
    this.#base = null;
    this.#lately = this.#windows();
  }

  #windows(): { readonly errors: RecentWindow; readonly load: RecentWindow } {
    const loadMs = Math.max(LATELY_MS, loadAfterMs({ trial: this.#trial, controlFreshMs: this.#controlFreshMs }));
    return { errors: new RecentWindow(LATELY_MS), load: new RecentWindow(loadMs) };
  }
}

/** Grows with all that is counted. */
function sizeOf({ arms, store }: TrialCounts): number {
  return store.since.calls + total(arms.trial.reads) + total(arms.control.reads);
}

function firstOf(windows: readonly (Counted | null)[], look: (window: Counted) => Harm | null): Harm | null {
  for (const window of windows) {
    const harm = window === null ? null : look(window);
    if (harm !== null) return harm;
  }
  return null;
}
