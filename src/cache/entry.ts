/** The unit of the cache: one answer of the store, the data derived from it, and the tags that it can be purged by. */
import type { ResourceKind } from '../upstream/resources.ts';
import type { Absent, Found } from '../upstream/store.ts';
import type { PurgeEpoch } from './purge-log.ts';
import type { CacheRequest } from './request.ts';
import type { Tag } from './tags.ts';
import type { CacheClass } from './ttl-policy.ts';

/** Notified of the bytes by which the data derived from an entry has grown. */
type GrowthListener = (bytes: number) => void;

/** The bytes derived from one answer, shared by all entries that hold that answer. */
class DerivedBytes {
  total = 0;
  readonly listeners = new Set<GrowthListener>();
}

/** One answer of the store: a record, or that there is none. Never a caller's view. */
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

  /** The same answer, confirmed by a fetch that began at that time. Derived data stays with it. */
  renewedAt(filledAtMs: number): Entry<T> {
    return new Entry(this.answer, filledAtMs, this.#derived);
  }

  /** Size of everything derived from the record, for the memory budget of the tier that keeps the entry. */
  get derivedBytes(): number {
    return this.#derived.total;
  }

  addDerivedBytes(bytes: number): void {
    this.#derived.total += bytes;
    for (const listener of this.#derived.listeners) listener(bytes);
  }

  /** Calls back when more is derived from the entry. Returns a function that ends this. */
  onGrowth(listener: GrowthListener): () => void {
    this.#derived.listeners.add(listener);
    return () => this.#derived.listeners.delete(listener);
  }
}

/**
 * Something made from an entry's record once and kept as long as its answer: rendered bytes, a parsed transcript. One
 * Derivation per public form; the result must depend on nothing but the answer.
 */
export class Derivation<D extends object> {
  readonly #values = new WeakMap<object, D>();
  readonly #weigh: (derived: D) => number;

  /** `weigh` returns the bytes that a derived value holds. */
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

/** An entry as a tier keeps it. `kind` decides the type of the record: the code that makes one has checked it. */
export interface StoredEntry<T = unknown> {
  readonly kind: ResourceKind;
  readonly entry: Entry<T>;
  readonly tags: readonly Tag[];
  /** Where the purge log stood before the fetch began. */
  readonly position: PurgeEpoch;
  /** When the answer had arrived, Unix milliseconds; the fetch began at `entry.filledAtMs`. */
  readonly fetchedAtMs: number;
}

/** The part of an entry that purges go by. */
export type Tagged = Pick<StoredEntry, 'tags' | 'position'>;

export interface Keyed {
  readonly key: string;
  readonly stored: StoredEntry;
}

export interface Usage {
  readonly entries: number;
  readonly bytes: number;
}

export interface Measured extends Usage {
  /** False if counting was cut short: there is more. */
  readonly isComplete: boolean;
}

/** The class whose times rule an answer. */
export function classOf(kind: ResourceKind, { answer }: Entry<unknown>): CacheClass {
  return answer.kind === 'absent' ? 'notFound' : kind;
}

/** All tags of an answer: of its record, of its kind and of its class. */
export function tagsOf<T>(request: CacheRequest<T>, entry: Entry<T>): readonly Tag[] {
  const { kind } = request;
  const own = request.tags(entry.answer.kind === 'found' ? entry.answer.record : null);
  if (entry.answer.kind === 'found') return ['all', `class:${kind}`, ...own];
  return ['all', `class:${kind}`, 'class:notFound', ...own];
}
