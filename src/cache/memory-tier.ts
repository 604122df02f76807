/** The memory tier: bounded in bytes; the least recently used entry makes room first. */
import { LRUCache } from 'lru-cache';
import { RESOURCES } from '../upstream/resources.ts';
import type { Keyed, Measured, StoredEntry, Usage } from './entry.ts';
import { type Evicted, EvictedEntries } from './evicted.ts';
import type { Tagged } from './purge-log.ts';
import { hash32, isSearchKey } from './request.ts';
import type { Inspection, KeptCopy } from './shared-cache.ts';
import { type Reader, workspaceSetOf } from './reader.ts';

interface Slot {
  readonly stored: StoredEntry;
  readonly bytes: number;
  /** Ends the watch over the bytes derived from the entry. */
  readonly unwatch: () => void;
}

/** A key without a record: the store's answer, and the negative entries of those who asked for it. */
interface AbsentKey {
  /**
   * The store's answer. It keeps an older copy from coming back, and answers nobody: each set of workspaces asks for itself,
   * so that nobody notices what others learned (K7a: a foreign record looks like none).
   */
  readonly absent: StoredEntry | null;
  /** By set of workspaces. */
  readonly negatives: ReadonlyMap<string, Negative>;
}

interface Negative {
  readonly stored: StoredEntry;
  /** The set. */
  readonly workspaceIds: readonly string[];
}

/** What another process has stored: copies of the key that were requested before that time were replaced. */
export interface Replacement {
  /** Unix milliseconds; 0 if none was replaced. */
  readonly filledAtMs: number;
  /** Whose record was stored; null for a list, and for no record. */
  readonly workspaceId: string | null;
}

/** Searched lists get at most a tenth, so that made-up searches can't push out the rest. */
const SEARCHED_SHARE = 0.1;
/** For absent records: probing for made-up or foreign ids can't push out what is there. */
const ABSENT_SHARE = 0.05;
/** The size of an entry beside its answer and its key: objects, tags, its place in the order. */
const OVERHEAD_BYTES = 1200;
const NEGATIVE_OVERHEAD_BYTES = 1000;
/** Keys that were dropped are remembered, to tell why a read missed. */
const MAX_DROPPED = 16_384;

const NOTHING_ABSENT: AbsentKey = { absent: null, negatives: new Map() };

export class MemoryTier {
  readonly #searched: LRUCache<string, Slot>;
  readonly #rest: LRUCache<string, Slot>;
  readonly #absent: LRUCache<string, AbsentKey>;
  /** Hashes of keys: a collision only makes a report less exact. */
  readonly #dropped = new LRUCache<number, 'evicted' | 'purged'>({ max: MAX_DROPPED });
  /** Entries that were evicted, except searched lists. */
  readonly #evicted = new EvictedEntries();
  #isSuspended = false;

  /** `maxBytes`: for answers, everything derived from them, and their keys. */
  constructor({ maxBytes }: { readonly maxBytes: number }) {
    const searchedBytes = Math.floor(maxBytes * SEARCHED_SHARE);
    const absentBytes = Math.floor(maxBytes * ABSENT_SHARE);
    this.#searched = this.#createCache(searchedBytes);
    this.#rest = this.#createCache(maxBytes - searchedBytes - absentBytes);
    this.#absent = new LRUCache({
      // lru-cache takes a maximum of 0 for none at all.
      maxSize: Math.max(1, absentBytes),
      // An absent answer beside negative entries weighs nothing, so that made-up and foreign ids make room alike.
      sizeCalculation: ({ negatives }, key) => Math.max(1, negatives.size) * (NEGATIVE_OVERHEAD_BYTES + 2 * key.length),
    });
  }

  /** The last answer of the store for the key, whoever may see it. */
  get(key: string): StoredEntry | null {
    return this.#cacheOf(key).get(key)?.stored ?? this.#absent.get(key)?.absent ?? null;
  }

  /** False if it doesn't fit. */
  set(key: string, stored: StoredEntry): boolean {
    this.#cacheOf(key).delete(key);
    if (this.#isSuspended) return false;
    const known = this.#absent.peek(key) ?? NOTHING_ABSENT;
    if (stored.entry.answer.kind === 'absent') return this.#setAbsent(key, { ...known, absent: stored });
    if (known.absent !== null) this.#setAbsent(key, { ...known, absent: null });
    const unwatch = stored.entry.onGrowth(() => this.#weighAgain(key));
    const isKept = this.#put(key, { stored, bytes: weigh(key, stored), unwatch });
    if (isKept) {
      this.#dropped.delete(hash32(key));
      this.#evicted.delete(hash32(key));
    }
    return isKept;
  }

  negative(key: string, reader: Pick<Reader, 'workspaceIds'>): StoredEntry | null {
    return this.#absent.get(key)?.negatives.get(workspaceSetOf(reader))?.stored ?? null;
  }

  /** False if it doesn't fit. */
  setNegative(key: string, { workspaceIds }: Pick<Reader, 'workspaceIds'>, stored: StoredEntry): boolean {
    if (this.#isSuspended) return false;
    const known = this.#absent.peek(key) ?? NOTHING_ABSENT;
    const negatives = new Map(known.negatives).set(workspaceSetOf({ workspaceIds }), { stored, workspaceIds });
    return this.#setAbsent(key, { ...known, negatives });
  }

  /** Sets each one only if there is nothing, or something whose fetch was over before the new one's began. */
  backfill(entries: readonly Keyed[]): void {
    for (const { key, stored } of entries) {
      const present = this.peek(key);
      if (present === undefined || present.receivedAtMs < stored.entry.requestedAtMs) this.set(key, stored);
    }
  }

  /**
   * Drops the copy that was replaced, and the negative entries of those who may see the record that was stored. Those of
   * other sets of workspaces stay: what others store is none of their business (K7a).
   */
  deleteOlder(key: string, { filledAtMs, workspaceId }: Replacement): void {
    const isOlder = (stored: StoredEntry): boolean => stored.entry.requestedAtMs < filledAtMs;
    const present = this.#cacheOf(key).peek(key);
    if (present !== undefined && isOlder(present.stored)) this.#cacheOf(key).delete(key);
    const known = this.#absent.peek(key);
    if (known === undefined || workspaceId === null) return;
    const left = [...known.negatives].filter(
      ([, { stored, workspaceIds }]) => !(isOlder(stored) && workspaceIds.includes(workspaceId)),
    );
    if (left.length < known.negatives.size) this.#setAbsent(key, { ...known, negatives: new Map(left) });
  }

  /** The last answer for the key: to look at it is no use of it. */
  peek(key: string): StoredEntry | undefined {
    return this.#cacheOf(key).peek(key)?.stored ?? this.#absent.peek(key)?.absent ?? undefined;
  }

  /** The same with what it weighs, and the negative entry of those workspaces (null for nobody's), for operators. */
  inspect(key: string, workspaceSet: string | null): Pick<Inspection, 'entry' | 'negative'> {
    const negative = workspaceSet === null ? undefined : this.#absent.peek(key)?.negatives.get(workspaceSet)?.stored;
    return {
      entry: kept(this.peek(key), this.#cacheOf(key).peek(key)?.bytes ?? weighNegative(key)),
      negative: kept(negative, weighNegative(key)),
    };
  }

  keys(): readonly string[] {
    return [...this.#searched.keys(), ...this.#rest.keys(), ...this.#absent.keys()];
  }

  /** Why the copy of the key is not here any more; null if there was none, or another process replaced it. */
  droppedFor(key: string): 'evicted' | 'purged' | null {
    return this.#dropped.get(hash32(key)) ?? null;
  }

  /**
   * Forgets the copy that was evicted, and says how much more memory, all in all, would have kept it. Null for keys that are
   * not among the sample, and for those that were evicted too long ago.
   */
  takeEvicted(key: string): (Evicted & { readonly moreBytes: number }) | null {
    const evicted = this.#evicted.take(hash32(key));
    return evicted && { ...evicted, moreBytes: evicted.moreBytes / (1 - SEARCHED_SHARE - ABSENT_SHARE) };
  }

  /** Drops the copies that match, of those keys or of all, for good. Returns how many there were. */
  purge(matches: (stored: Tagged) => boolean, keys: readonly string[] = this.keys()): number {
    let dropped = 0;
    for (const key of keys) {
      this.#evicted.delete(hash32(key));
      const slot = this.#cacheOf(key).peek(key);
      if (slot !== undefined && matches(slot.stored)) {
        this.#cacheOf(key).delete(key);
        this.#dropped.set(hash32(key), 'purged');
        dropped += 1;
      }
      const known = this.#absent.peek(key);
      if (known === undefined) continue;
      const absent = known.absent !== null && matches(known.absent) ? null : known.absent;
      const left = [...known.negatives].filter(([, { stored }]) => !matches(stored));
      if (absent === known.absent && left.length === known.negatives.size) continue;
      this.#setAbsent(key, { absent, negatives: new Map(left) });
      this.#dropped.set(hash32(key), 'purged');
      dropped += known.negatives.size - left.length;
    }
    return dropped;
  }

  /**
   * Drops everything and keeps nothing until resumed: for a process that may miss changes (C8: then nothing in memory is
   * trusted).
   */
  suspend(): void {
    this.#isSuspended = true;
    this.clear();
  }

  resume(): void {
    this.#isSuspended = false;
  }

  clear(): void {
    this.#evicted.clear();
    this.#searched.clear();
    this.#rest.clear();
    this.#absent.clear();
  }

  /** Everything that is held. */
  usage(): Usage {
    return {
      entries: this.#searched.size + this.#rest.size + this.#absent.size,
      bytes: this.#searched.calculatedSize + this.#rest.calculatedSize + this.#absent.calculatedSize,
    };
  }

  /** Whether some record matches. Looks at every entry. */
  holds(matches: (stored: StoredEntry) => boolean): boolean {
    return [...this.#searched.values(), ...this.#rest.values()].some(({ stored }) => matches(stored));
  }

  /** How much of it matches. Looks at every entry. */
  measure(matches: (stored: Tagged) => boolean): Measured {
    let entries = 0;
    let bytes = 0;
    for (const slot of [...this.#searched.values(), ...this.#rest.values()]) {
      if (!matches(slot.stored)) continue;
      entries += 1;
      bytes += slot.bytes;
    }
    for (const [key, { negatives }] of this.#absent.entries()) {
      const matching = [...negatives.values()].filter(({ stored }) => matches(stored)).length;
      entries += matching;
      bytes += matching * weighNegative(key);
    }
    return { entries, bytes, isComplete: true };
  }

  #createCache(maxBytes: number): LRUCache<string, Slot> {
    return new LRUCache<string, Slot>({
      maxSize: Math.max(1, maxBytes),
      sizeCalculation: (slot) => slot.bytes,
      dispose: (slot, key, reason) => {
        // A slot that is set anew is the same entry, weighed again: it stays under watch.
        if (reason === 'set') return;
        slot.unwatch();
        if (reason !== 'evict') return;
        this.#dropped.set(hash32(key), 'evicted');
        const { bytes, stored } = slot;
        if (!isSearchKey(key)) this.#evicted.add(hash32(key), { bytes, requestedAtMs: stored.entry.requestedAtMs });
      },
    });
  }

  #cacheOf(key: string): LRUCache<string, Slot> {
    return isSearchKey(key) ? this.#searched : this.#rest;
  }

  #put(key: string, slot: Slot): boolean {
    const cache = this.#cacheOf(key);
    if (slot.bytes <= cache.maxSize) {
      cache.set(key, slot);
      return true;
    }
    cache.delete(key);
    slot.unwatch();
    this.#dropped.set(hash32(key), 'evicted');
    return false;
  }

  #setAbsent(key: string, known: AbsentKey): boolean {
    if (known.absent === null && known.negatives.size === 0) this.#absent.delete(key);
    else this.#absent.set(key, known);
    return this.#absent.has(key);
  }

  #weighAgain(key: string): void {
    const slot = this.#cacheOf(key).peek(key);
    if (slot !== undefined) this.#put(key, { ...slot, bytes: weigh(key, slot.stored) });
  }
}

function kept(stored: StoredEntry | undefined, bytes: number): KeptCopy | null {
  return stored === undefined ? null : { stored, bytes, keptForMs: null };
}

/** An estimate of the memory that an entry takes, the room around it included. */
function weigh(key: string, { kind, entry, tags }: StoredEntry): number {
  const textBytes = entry.answer.kind === 'found' ? entry.answer.bytes : 0;
  const tagBytes = tags.reduce((sum, tag) => sum + tag.length, 0);
  return Math.ceil(
    OVERHEAD_BYTES + 2 * (key.length + tagBytes) + RESOURCES[kind].memoryFactor * textBytes + entry.derivedBytes,
  );
}

function weighNegative(key: string): number {
  return NEGATIVE_OVERHEAD_BYTES + 2 * key.length;
}
