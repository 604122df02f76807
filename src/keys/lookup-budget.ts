/** At most so many look-ups in any second, wherever it begins. */
const SECOND_MS = 1000;

export class LookupBudget {
  readonly #perSecond: number;
  /** When the last ones began, oldest first; never more than `perSecond`. */
  readonly #beganAtMs: number[] = [];

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** How many may begin now. */
  left(nowMs: number): number {
    return this.#perSecond - this.#beganAtMs.filter((atMs) => nowMs - atMs < SECOND_MS).length;
  }

  /** Takes one. False where none is left. */
  take(nowMs: number): boolean {
    if (this.left(nowMs) <= 0) return false;
    this.#beganAtMs.push(nowMs);
    if (this.#beganAtMs.length > this.#perSecond) this.#beganAtMs.shift();
    return true;
  }
}
