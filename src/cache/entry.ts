/** What the cache holds of one question to the store, and what was made from it. */
import type { Absent, Found } from '../upstream/store.ts';

/** Told by how many bytes what was derived from an entry has grown. */
export type GrowthListener = (bytes: number) => void;

/** The bytes derived from one answer, shared by all entries that hold that answer. */
class DerivedBytes {
  total = 0;
  readonly listeners = new Set<GrowthListener>();
}

/** One answer of the store as it is kept: a record, or the knowledge that there is none. Never a caller's view. */
export class Entry<T> {
  readonly answer: Found<T> | Absent;
  /** When the fetch that filled it began, Unix milliseconds. Age counts from here. */
  readonly filledAtMs: number;
  readonly #derived: DerivedBytes;

  constructor(answer: Found<T> | Absent, filledAtMs: number, derived?: DerivedBytes) {
    this.answer = answer;
    this.filledAtMs = filledAtMs;
    this.#derived = derived ?? new DerivedBytes();
  }

  /** The same answer, confirmed by a fetch that began at that time. What was derived from it stays with it. */
  renewedAt(filledAtMs: number): Entry<T> {
    return new Entry(this.answer, filledAtMs, this.#derived);
  }

  /** Size of what was derived from the record, for the memory budget of whoever keeps the entry. */
  get derivedBytes(): number {
    return this.#derived.total;
  }

  addDerivedBytes(bytes: number): void {
    this.#derived.total += bytes;
    for (const listener of this.#derived.listeners) listener(bytes);
  }

  /** Tells whoever keeps the entry when more is derived from it. Returns a function that ends this. */
  onGrowth(listener: GrowthListener): () => void {
    this.#derived.listeners.add(listener);
    return () => this.#derived.listeners.delete(listener);
  }
}

/**
 * Something made from an entry's record once and then kept as long as its answer: rendered bytes, a parsed transcript.
 * One Derivation a public form; it must be wholly determined by the answer.
 */
export class Derivation<D extends object> {
  readonly #values = new WeakMap<object, D>();
  readonly #weigh: (derived: D) => number;

  /** `weigh` tells the bytes that a derived value holds. */
  constructor(weigh: (derived: D) => number) {
    this.#weigh = weigh;
  }

  of(entry: Entry<unknown>, make: () => D): D {
    const known = this.#values.get(entry.answer);
    if (known !== undefined) return known;
    const made = make();
    this.#values.set(entry.answer, made);
    entry.addDerivedBytes(this.#weigh(made));
    return made;
  }
}
