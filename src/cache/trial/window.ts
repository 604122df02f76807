/** What was counted in the last while, out of counts that only grow. */
import { since, type TrialCounts } from './counts.ts';

/** What was counted in a time. */
export interface Counted {
  readonly counts: TrialCounts;
  readonly lengthMs: number;
}

/** Counts as they stood then. */
export interface Noted {
  readonly atMs: number;
  readonly counts: TrialCounts;
}

/** A while begins at one of so many moments, or one more. */
const STEPS = 12;

export class RecentWindow {
  readonly #lengthMs: number;
  /** Oldest first; one or none of them is older than the while. */
  #noted: readonly Noted[] = [];

  constructor(lengthMs: number) {
    this.#lengthMs = lengthMs;
  }

  /** `counts` are not changed any more. */
  note(noted: Noted): void {
    const last = this.#noted.at(-1);
    if (last !== undefined && noted.atMs - last.atMs < this.#lengthMs / STEPS) return;
    const isOld = ({ atMs }: Noted): boolean => noted.atMs - atMs >= this.#lengthMs;
    const firstOfUse = this.#noted.findLastIndex(isOld);
    this.#noted = [...this.#noted.slice(Math.max(0, firstOfUse)), noted];
  }

  /** Null until counts were noted for so long. */
  upTo(now: Noted): Counted | null {
    const then = this.#noted.findLast(({ atMs }) => now.atMs - atMs >= this.#lengthMs);
    if (then === undefined) return null;
    return { counts: since(now.counts, then.counts), lengthMs: now.atMs - then.atMs };
  }
}
