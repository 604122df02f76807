/** How soon a worker that ended is replaced. Pure. */

/** A worker that was ready for less than this ended "at once": starting it again will hardly help. */
const EARLY_MS = 2000;
const FIRST_DELAY_MS = 100;
const LAST_DELAY_MS = 10_000;

export class RestartDelay {
  /** Workers in a row that ended at once. */
  #early = 0;

  /** Milliseconds to wait: none, or twice as long for each one in a row that ended at once. `readyForMs`: null for never. */
  afterEnd(readyForMs: number | null): number {
    if (readyForMs !== null && readyForMs >= EARLY_MS) {
      this.#early = 0;
      return 0;
    }
    this.#early += 1;
    return Math.min(LAST_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(this.#early - 1, 20));
  }
}
