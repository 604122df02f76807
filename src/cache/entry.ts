/** What the cache holds of one question to the store, and what was made from it. */
import type { Absent, Found } from '../upstream/store.ts';

/** One answer of the store as it is kept: a record, or the knowledge that there is none. Never a caller's view. */
export class Entry<T> {
  readonly answer: Found<T> | Absent;
  /** When the fetch that filled it began, Unix milliseconds. Age counts from here. */
  readonly filledAtMs: number;
  #derivedBytes = 0;

  constructor(answer: Found<T> | Absent, filledAtMs: number) {
    this.answer = answer;
    this.filledAtMs = filledAtMs;
  }

  /** Size of what was derived from the record, for the memory budget of whoever keeps the entry. */
  get derivedBytes(): number {
    return this.#derivedBytes;
  }

  addDerivedBytes(bytes: number): void {
    this.#derivedBytes += bytes;
  }
}

/** Something made from an entry's record once and then kept as long as the entry: rendered bytes, a parsed transcript. */
export class Derivation<T, D> {
  readonly #values = new WeakMap<Entry<T>, D>();
  readonly #make: (record: T) => D;
  readonly #weigh: (derived: D) => number;

  /** `weigh` tells the bytes that a derived value holds. */
  constructor(make: (record: T) => D, weigh: (derived: D) => number) {
    this.#make = make;
    this.#weigh = weigh;
  }

  /** `record` is the entry's own; the caller has it at hand because it has looked whether there is one. */
  of(entry: Entry<T>, record: T): D {
    const known = this.#values.get(entry);
    if (known !== undefined) return known;
    const made = this.#make(record);
    this.#values.set(entry, made);
    entry.addDerivedBytes(this.#weigh(made));
    return made;
  }
}
