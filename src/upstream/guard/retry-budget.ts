/**
 * What may be repeated, as a share of all that is sent: pure. Without it a store in trouble would get several times the
 * load that brought it there.
 */

/** What was earned in good times is not all spent at once in bad ones. */
const MOST_SAVED = 10;

export class RetryBudget {
  readonly #share: number;
  #balance = 0;

  constructor(percent: number) {
    this.#share = percent / 100;
  }

  /** For each call that is sent for the first time. */
  earn(): void {
    this.#balance = Math.min(MOST_SAVED, this.#balance + this.#share);
  }

  /** False where there is nothing left to spend. */
  spend(): boolean {
    // A tenth, ten times, is a little less than one.
    if (this.#balance < 1 - 1e-9) return false;
    this.#balance -= 1;
    return true;
  }
}
