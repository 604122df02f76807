import type { AdmissionLog } from './log.ts';

const MIN_CAPACITY = 8;

/**
 * A log of times in a ring of numbers: 8 bytes a time, appended at one end and dropped at the other without moving the
 * rest. It doubles when it is full and halves when it is a quarter full, so it never holds much more than it needs.
 */
export class RingLog implements AdmissionLog {
  #times = new Float64Array(MIN_CAPACITY);
  #start = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** How many times fit without growing. */
  get capacity(): number {
    return this.#times.length;
  }

  /** Throws RangeError for an index outside the log. */
  at(index: number): number {
    const time = index >= 0 && index < this.#length ? this.#times[this.#slot(index)] : undefined;
    if (time === undefined) throw new RangeError(`No entry ${index} in a log of ${this.#length}.`);
    return time;
  }

  /** Appends a time that is not before the newest. The ring grows beyond `mostExpected` only where it must. */
  push(timeMicros: number, mostExpected: number): void {
    if (this.#length === this.capacity) {
      this.#resize(Math.max(this.#length + 1, Math.min(this.capacity * 2, mostExpected)));
    }
    this.#times[this.#slot(this.#length)] = timeMicros;
    this.#length += 1;
  }

  /** Drops the `count` oldest; `count` is at most the length. */
  dropOldest(count: number): void {
    this.#start = this.#slot(count);
    this.#length -= count;
    if (this.#length <= this.capacity / 4 && this.capacity > MIN_CAPACITY) {
      this.#resize(Math.max(MIN_CAPACITY, this.#length * 2));
    }
  }

  #slot(index: number): number {
    const slot = this.#start + index;
    return slot < this.capacity ? slot : slot - this.capacity;
  }

  #resize(capacity: number): void {
    const times = new Float64Array(capacity);
    const untilEnd = this.#times.subarray(this.#start, this.#start + this.#length);
    times.set(untilEnd);
    times.set(this.#times.subarray(0, this.#length - untilEnd.length), untilEnd.length);
    this.#times = times;
    this.#start = 0;
  }
}
