/**
 * Whether Redis has lost keys, told from how many there are (keys are never deleted, so the number only grows). Pure.
 *
 * A loss is known by whoever remembers that there were more: this process, the note of the loss in Redis, or the witness.
 * A loss while no process ran is remembered only if there is a witness. It is over when as many keys are back as were lost, keys
 * created since not counted.
 */
import { expectedKeys, type KeyLoss } from './key.ts';

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
    // Fewer than when the same loss was counted last: another loss.
    const isAnother =
      this.#loss !== null && known < (this.#known ?? 0) && (noted === null || noted.atMs === this.#loss.atMs);
    this.#known = known;
    const last = noted ?? this.#loss;
    if (noted?.isAcknowledged === true && noted.atMs !== this.#acknowledgedAtMs) {
      this.#acknowledgedAtMs = noted.atMs;
      if (this.#most <= expectedKeys(noted)) this.#most = known;
    }
    const most = Math.max(this.#most, isOpen(last) ? expectedKeys(last) : 0);
    this.#most = Math.max(most, known);
    if (known >= most) {
      this.#loss = noted?.isAcknowledged === true && known < expectedKeys(noted) ? noted : null;
      return noted !== null && this.#loss === null ? null : undefined;
    }
    if (isOpen(noted) && !isAnother) {
      const isRight = most <= expectedKeys(noted);
      this.#loss = isRight ? noted : { ...noted, keys: most - noted.created };
      return isRight ? undefined : this.#loss;
    }
    if (!isOpen(this.#loss) || isAnother) {
      this.#loss = { atMs: nowMs, keys: most, left: known, created: 0, isAcknowledged: false };
    }
    return this.#loss;
  }
}

function isOpen(loss: KeyLoss | null): loss is KeyLoss {
  return loss !== null && !loss.isAcknowledged;
}
