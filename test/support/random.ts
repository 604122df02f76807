/** A seeded source of random numbers (mulberry32), so that a failed run can be run again. */
export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 to below 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** An integer, both ends included. */
  integer(from: number, to: number): number {
    return from + Math.floor(this.next() * (to - from + 1));
  }

  /** Throws if there is none. */
  oneOf<T>(all: readonly T[]): T {
    const one = all[this.integer(0, all.length - 1)];
    if (one === undefined) throw new RangeError('There is nothing to choose from.');
    return one;
  }

  pick<T>(first: T, ...others: readonly T[]): T {
    return others[this.integer(0, others.length) - 1] ?? first;
  }
}
