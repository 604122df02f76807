import type { AdmissionLog } from './log.ts';

/** What is exact: more than the minute's default limit of the newest entries. */
const MOST_RUNS = 256;

/**
 * A log in bounded space: runs of entries at one time. Where they become too many, older neighbours are put together at
 * the later one's time. So an entry is never taken for older than it is, and nothing is admitted for that.
 */
export class RunLog implements AdmissionLog {
  readonly #times: number[] = [];
  /** How many entries were ever pushed up to the end of each run. */
  readonly #ends: number[] = [];
  #dropped = 0;

  get length(): number {
    return (this.#ends.at(-1) ?? this.#dropped) - this.#dropped;
  }

  get runCount(): number {
    return this.#times.length;
  }

  /** Throws RangeError for an index outside the log. */
  at(index: number): number {
    const target = this.#dropped + index;
    let low = 0;
    let high = this.#ends.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#ends[middle] ?? Infinity) <= target) low = middle + 1;
      else high = middle;
    }
    const time = index >= 0 ? this.#times[low] : undefined;
    if (time === undefined) throw new RangeError(`No entry ${index} in a log of ${this.length}.`);
    return time;
  }

  /** Appends `count` entries, from 1, at a time that is not before the newest. */
  push(timeMicros: number, count: number): void {
    const end = this.#dropped + this.length + count;
    if (this.#times.at(-1) === timeMicros) this.#ends[this.#ends.length - 1] = end;
    else {
      this.#times.push(timeMicros);
      this.#ends.push(end);
    }
    if (this.runCount > MOST_RUNS) this.#coarsen();
  }

  /** Adds `count` entries, from 1, at a time that may be before newer ones. */
  insert(timeMicros: number, count: number): void {
    const later = this.#times.findIndex((time) => time > timeMicros);
    if (later === -1) {
      this.push(timeMicros, count);
      return;
    }
    const isKnown = this.#times[later - 1] === timeMicros;
    const first = isKnown ? later - 1 : later;
    if (!isKnown) {
      this.#times.splice(later, 0, timeMicros);
      this.#ends.splice(later, 0, this.#ends[later - 1] ?? this.#dropped);
    }
    for (let run = first; run < this.#ends.length; run += 1) this.#ends[run] = (this.#ends[run] ?? 0) + count;
    if (this.runCount > MOST_RUNS) this.#coarsen();
  }

  /** Drops all entries before that time. */
  dropBefore(timeMicros: number): void {
    const first = this.#times.findIndex((time) => time >= timeMicros);
    // Most often there is none.
    if (first !== 0) this.dropOldest(first === -1 ? this.length : (this.#ends[first - 1] ?? 0) - this.#dropped);
  }

  /** Drops the `count` oldest; `count` is at most the length. */
  dropOldest(count: number): void {
    if (count === 0) return;
    this.#dropped += count;
    const gone = this.#ends.findIndex((end) => end > this.#dropped);
    const runs = gone === -1 ? this.runCount : gone;
    this.#times.splice(0, runs);
    this.#ends.splice(0, runs);
  }

  /** The entries as pairs of time and count, oldest first. */
  runs(): (readonly [timeMicros: number, count: number])[] {
    return this.#times.map((time, run) => {
      const before = run === 0 ? this.#dropped : (this.#ends[run - 1] ?? 0);
      return [time, (this.#ends[run] ?? 0) - before] as const;
    });
  }

  /** A run that is taken out leaves its entries to the next, for ends count from the beginning. */
  #coarsen(): void {
    const half = Math.floor(this.runCount / 2);
    for (let run = half - (half % 2); run >= 0; run -= 2) {
      this.#times.splice(run, 1);
      this.#ends.splice(run, 1);
    }
  }
}
