/**
 * Which keys of a class stand for the others: those whose hash is below a threshold, which falls as keys become too many
 * and may rise when they are few again. Pure.
 */

const ALL_HASHES = 2 ** 32;
/** What is kept when there is no more room. */
const KEPT = 7 / 8;

export class Sample {
  #followedBelow = ALL_HASHES;
  /** Lower than that of those followed, where it has risen: what keys did before that isn't known yet. */
  #countedBelow = ALL_HASHES;
  #turnsToWait = 0;

  /** Whether every key counts. */
  get isWhole(): boolean {
    return this.#countedBelow === ALL_HASHES;
  }

  /** How many keys one that counts stands for. */
  get weight(): number {
    return ALL_HASHES / this.#countedBelow;
  }

  follows(hash: number): boolean {
    return hash < this.#followedBelow;
  }

  counts(hash: number): boolean {
    return hash < this.#countedBelow;
  }

  /** Fewer keys: first those that don't count yet. */
  narrow(): void {
    if (this.#followedBelow === this.#countedBelow) this.#countedBelow = Math.floor(this.#countedBelow * KEPT);
    this.#followedBelow = this.#countedBelow;
  }

  /** So many times as many keys, which count from the given number of `turn`s on, once it is known what they do. */
  widen(factor: number, turns: number): void {
    if (this.#followedBelow !== this.#countedBelow) return;
    this.#followedBelow = Math.min(ALL_HASHES, Math.floor(this.#followedBelow * factor));
    this.#turnsToWait = turns;
  }

  turn(): void {
    if (this.#turnsToWait > 0) this.#turnsToWait -= 1;
    if (this.#turnsToWait === 0) this.#countedBelow = this.#followedBelow;
  }
}
