/** The memory tier: bounded in bytes, the least recently used goes first. */
import { LRUCache } from 'lru-cache';
import { isSearchKey } from './cache-key.ts';
import { hash32 } from './hash.ts';
import type { CacheTier, Keyed, Measured, Tagged, Usage } from './ports.ts';
import type { StoredEntry } from './stored.ts';
import { type Verdict, Verdicts } from './verdicts.ts';

export interface MemoryTierOptions {
  /** Of answers, of what is derived from them, and of their keys. */
  readonly maxBytes: number;
  /** Told of every entry that had to make room. */
  readonly onEvict?: (key: string, stored: StoredEntry, bytes: number) => void;
}

interface Slot {
  readonly stored: StoredEntry;
  readonly bytes: number;
  /** Ends the watch over what is derived from the entry. */
  readonly unwatch: () => void;
}

/** Searched lists get at most a tenth, so that made-up searches can't push out the rest. */
const SEARCHED_SHARE = 0.1;
/** Of what is absent to some readers only: probing for other workspaces' records can't push out what is there. */
const VERDICTS_SHARE = 0.05;
/** What an entry takes beside its answer and its key: objects, tags, its place in the order. */
const OVERHEAD_BYTES = 1200;
/**
 * What a record takes as objects, by the size of its text; a transcript is one string. Both are well above what the heap
 * holds: the collector and the allocator need room around it, and what is bounded is the memory of the process.
 */
const OBJECTS_FACTOR = 2;
/** Keys remembered as evicted, to tell why a read missed. */
const MAX_EVICTED = 16_384;

export class MemoryTier implements CacheTier {
  readonly #searched: LRUCache<string, Slot>;
  readonly #rest: LRUCache<string, Slot>;
  readonly #verdicts: Verdicts;
  readonly #onEvict: MemoryTierOptions['onEvict'];
  /** Hashes of keys: one that collides only makes a report less exact. */
  readonly #evicted = new LRUCache<number, true>({ max: MAX_EVICTED });
  #isSuspended = false;

  constructor({ maxBytes, onEvict }: MemoryTierOptions) {
    const searchedBytes = Math.floor(maxBytes * SEARCHED_SHARE);
    this.#onEvict = onEvict;
    this.#searched = this.#createCache(searchedBytes);
    const verdictsBytes = Math.floor(maxBytes * VERDICTS_SHARE);
    this.#verdicts = new Verdicts(verdictsBytes);
    this.#rest = this.#createCache(maxBytes - searchedBytes - verdictsBytes);
  }

  get(key: string): StoredEntry | undefined {
    return this.#cacheOf(key).get(key)?.stored;
  }

  set(key: string, stored: StoredEntry): boolean {
    this.delete(key);
    if (this.#isSuspended) return false;
    const unwatch = stored.entry.onGrowth(() => this.#weighAgain(key));
    const isKept = this.#put(key, { stored, bytes: weigh(key, stored), unwatch });
    if (isKept) this.#evicted.delete(hash32(key));
    this.#verdicts.compare(key, stored);
    return isKept;
  }

  /** That there is nothing for who asks for these workspaces, where it is known that the record is of another one. */
  absenceTo(workspaceIds: readonly string[], key: string): StoredEntry | undefined {
    return this.#verdicts.absenceTo(workspaceIds, key);
  }

  /** Beside what is held of the key, until something else is stored under it. False where it doesn't fit. */
  setVerdict(key: string, verdict: Verdict): boolean {
    return !this.#isSuspended && this.#verdicts.set(key, verdict);
  }

  seed(seeds: readonly Keyed[]): void {
    for (const { key, stored } of seeds) {
      const present = this.#cacheOf(key).peek(key);
      if (present === undefined || present.stored.fetchedAtMs < stored.entry.filledAtMs) this.set(key, stored);
    }
  }

  delete(key: string): void {
    this.#cacheOf(key).delete(key);
  }

  /** Drops a copy whose fetch began earlier than that: another process has stored a newer one. */
  deleteOlder(key: string, filledAtMs: number): void {
    const present = this.#cacheOf(key).peek(key);
    if (present !== undefined && present.stored.entry.filledAtMs < filledAtMs) this.delete(key);
  }

  /** What is held of the key and what it weighs, for operators: looking at it is no use of it. */
  peek(key: string): { readonly stored: StoredEntry; readonly bytes: number } | undefined {
    return this.#cacheOf(key).peek(key);
  }

  /** `absenceTo` without using what it finds. */
  peekAbsenceTo(workspaceIds: readonly string[], key: string): StoredEntry | undefined {
    return this.#verdicts.absenceTo(workspaceIds, key, 'peek');
  }

  /** Of everything that is held now. */
  keys(): readonly string[] {
    return [...this.#searched.keys(), ...this.#rest.keys()];
  }

  /** Whether the key's last entry had to make room. */
  wasEvicted(key: string): boolean {
    return this.#evicted.has(hash32(key));
  }

  /** Drops everything and keeps nothing until resumed: for a process that doesn't hear of changes any more. */
  suspend(): void {
    this.#isSuspended = true;
    this.clear();
  }

  resume(): void {
    this.#isSuspended = false;
  }

  clear(): void {
    this.#searched.clear();
    this.#rest.clear();
    this.#verdicts.clear();
  }

  /** What is held now, entries included that a purge has made unusable and that nothing has replaced yet. */
  usage(): Usage {
    const verdicts = this.#verdicts.usage();
    return {
      entries: this.#searched.size + this.#rest.size + verdicts.entries,
      bytes: this.#searched.calculatedSize + this.#rest.calculatedSize + verdicts.bytes,
    };
  }

  measure(matches: (stored: Tagged) => boolean): Measured {
    let entries = 0;
    let bytes = 0;
    for (const slot of [...this.#searched.values(), ...this.#rest.values()]) {
      if (!matches(slot.stored)) continue;
      entries += 1;
      bytes += slot.bytes;
    }
    return { entries, bytes, isComplete: true };
  }

  #createCache(maxBytes: number): LRUCache<string, Slot> {
    return new LRUCache<string, Slot>({
      // lru-cache takes a maximum of 0 for none at all.
      maxSize: Math.max(1, maxBytes),
      sizeCalculation: (slot) => slot.bytes,
      dispose: (slot, key, reason) => {
        // A slot that is set anew is the same entry, weighed again: it stays under watch.
        if (reason === 'set') return;
        slot.unwatch();
        if (reason === 'evict') this.#noteEviction(key, slot);
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
    this.#noteEviction(key, slot);
    return false;
  }

  #weighAgain(key: string): void {
    const slot = this.#cacheOf(key).peek(key);
    if (slot !== undefined) this.#put(key, { ...slot, bytes: weigh(key, slot.stored) });
  }

  #noteEviction(key: string, { stored, bytes }: Slot): void {
    this.#evicted.set(hash32(key), true);
    this.#onEvict?.(key, stored, bytes);
  }
}

/** An estimate of the memory that an entry takes, the room around it included. */
function weigh(key: string, { kind, entry, tags }: StoredEntry): number {
  const textBytes = entry.answer.kind === 'found' ? entry.answer.bytes : 0;
  const answerBytes = kind === 'transcript' ? textBytes : OBJECTS_FACTOR * textBytes;
  const tagBytes = tags.reduce((sum, tag) => sum + tag.length, 0);
  return Math.ceil(OVERHEAD_BYTES + 2 * (key.length + tagBytes) + answerBytes + entry.derivedBytes);
}
