/** How the last calls went: pure. What is long past, or followed by many others, counts no more. */

/** So many that a third of failures among them hardly ever looks like half of them. */
const MOST_CALLS = 80;
const COUNTED_FOR_MS = 10_000;

interface Ended {
  readonly atMs: number;
  readonly hasFailed: boolean;
}

export class RecentCalls {
  /** In order of time. */
  readonly #calls: Ended[] = [];
  #failed = 0;

  add(hasFailed: boolean, nowMs: number): void {
    this.#calls.push({ atMs: nowMs, hasFailed });
    if (hasFailed) this.#failed += 1;
    for (;;) {
      const [oldest] = this.#calls;
      if (oldest === undefined || (this.#calls.length <= MOST_CALLS && nowMs - oldest.atMs < COUNTED_FOR_MS)) return;
      this.#calls.shift();
      if (oldest.hasFailed) this.#failed -= 1;
    }
  }

  /** How many are counted, as of the last one that was added. */
  get count(): number {
    return this.#calls.length;
  }

  /** In percent of those that are counted; 0 of none. */
  get failedPercent(): number {
    return this.#calls.length === 0 ? 0 : (100 * this.#failed) / this.#calls.length;
  }

  clear(): void {
    this.#calls.length = 0;
    this.#failed = 0;
  }
}
