/** Long computations in slices, so that other work can run in between. */

/** A computation of a `T` that yields after every millisecond or so of work. */
export type Slices<T> = Generator<undefined, T, undefined>;

/** How far a computation goes, in UTF-16 units or what costs about the same, between two yields. */
export const STRIDE = 32_768;

/** Runs the computation in one go, where nothing else waits. */
export function runToEnd<T>(slices: Slices<T>): T {
  for (;;) {
    const slice = slices.next();
    if (slice.done === true) return slice.value;
  }
}

/** Says when the next yield is due, from a position that only grows. */
export class Pace {
  #due = STRIDE;

  isDue(position: number): boolean {
    if (position < this.#due) return false;
    this.#due = position + STRIDE;
    return true;
  }
}
