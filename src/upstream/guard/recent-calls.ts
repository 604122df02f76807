/** How the last calls went: pure. What is long past, or followed by many others, counts no more. */

/** So many that a third of failures among them hardly ever looks like half of them. */
const MOST_CALLS = 80;
const COUNTED_FOR_MS = 10_000;

interface Ended {
  readonly atMs: number;
  readonly hasFailed: boolean;
}

export class RecentCalls {
  #calls: readonly Ended[] = [];

  add(hasFailed: boolean, nowMs: number): void {
    const counted = this.#calls.filter(({ atMs }) => nowMs - atMs < COUNTED_FOR_MS);
    this.#calls = [...counted, { atMs: nowMs, hasFailed }].slice(-MOST_CALLS);
  }

  /** How many are counted, as of the last one that was added. */
  get count(): number {
    return this.#calls.length;
  }

  /** In percent of those that are counted; 0 of none. */
  get failedPercent(): number {
    if (this.#calls.length === 0) return 0;
    return (100 * this.#calls.filter(({ hasFailed }) => hasFailed).length) / this.#calls.length;
  }

  clear(): void {
    this.#calls = [];
  }
}
