/**
 * Whether Redis has lost keys, told from how many there are (keys are never deleted, so the number only grows). Pure.
 *
 * A loss is known by whoever remembers that there were more: this process, the note of the loss in Redis, or the witness.
 * A loss while no process ran is remembered only if there is a witness.
 */
import type { KeyLoss } from './key.ts';

export class KeyCensus {
  #known: number | null = null;
  /** The most that there were, as far as somebody remembers and no operator has acknowledged their loss. */
  #most = 0;
  #loss: KeyLoss | null = null;
  /** The acknowledged loss that this process has taken note of, by its time. */
  #acknowledgedAtMs: number | null = null;

  /** Null before the first count. */
  get known(): number | null {
    return this.#known;
  }

  get loss(): KeyLoss | null {
    return this.#loss;
  }

  /** Somebody else remembers that there were so many. It counts from the next count on. */
  remember(keys: number): void {
    this.#most = Math.max(this.#most, keys);
  }

  /**
   * Takes a count, and the loss that is noted in Redis. Returns what is to be noted there: null to forget it, undefined if the
   * note is right.
   */
  count(known: number, noted: KeyLoss | null, nowMs: number): KeyLoss | null | undefined {
    this.#known = known;
    const last = noted ?? this.#loss;
    if (noted?.isAcknowledged === true && noted.atMs !== this.#acknowledgedAtMs) {
      this.#acknowledgedAtMs = noted.atMs;
      if (this.#most <= noted.keys) this.#most = known;
    } else if (last !== null && last.left === 0 && known > 0) {
      this.#most = known;
    }
    const most = Math.max(this.#most, last === null || last.isAcknowledged || isOver(last, known) ? 0 : last.keys);
    this.#most = Math.max(most, known);
    if (known >= most) {
      this.#loss = noted?.isAcknowledged === true && !isOver(noted, known) ? noted : null;
      return noted !== null && this.#loss === null ? null : undefined;
    }
    const isNoted = noted !== null && !noted.isAcknowledged;
    this.#loss = isNoted
      ? noted
      : isOpen(this.#loss)
        ? this.#loss
        : { atMs: nowMs, keys: most, left: known, isAcknowledged: false };
    return isNoted ? undefined : this.#loss;
  }
}

function isOpen(loss: KeyLoss | null): loss is KeyLoss {
  return loss !== null && !loss.isAcknowledged;
}

/** Whether there are keys again after the loss of all of them, or as many as before. */
function isOver({ keys, left }: KeyLoss, known: number): boolean {
  return left === 0 ? known > 0 : known >= keys;
}
