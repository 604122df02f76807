/** The memory tier: bounded in bytes, and fair to the API keys that read from it (fair-lru.ts). */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../time/clock.ts';
import { RESOURCES } from '../upstream/resources.ts';
import type { Keyed, Measured, StoredEntry, Usage } from './entry.ts';
import { type Evicted, EvictedEntries } from './evicted.ts';
import { FairLru } from './fair-lru.ts';
import type { Tagged } from './purge-log.ts';
import { isVisible, type Reader, workspaceSetOf } from './reader.ts';
import { type CacheRequest, hash32, isSearchKey } from './request.ts';
import type { Inspection, KeptCopy } from './shared-cache.ts';

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
  readonly bytes: number;
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

const NOTHING_ABSENT: AbsentKey = { absent: null, negatives: new Map(), bytes: 0 };

export interface MemoryTierOptions {
  /** For answers, everything derived from them, and their keys. */
  readonly maxBytes: number;
  readonly clock: Pick<Clock, 'nowMicros'>;
}

export class MemoryTier {
  readonly #searched: FairLru<Slot>;
  readonly #rest: FairLru<Slot>;
  readonly #absent: FairLru<AbsentKey>;
  /** Hashes of keys: a collision only makes a report less exact. */
  readonly #dropped = new LRUCache<number, 'evicted' | 'purged'>({ max: MAX_DROPPED });
  /** Entries that were evicted, except searched lists. */
  readonly #evicted = new EvictedEntries();

  constructor({ maxBytes, clock }: MemoryTierOptions) {
    const searchedBytes = Math.floor(maxBytes * SEARCHED_SHARE);
    const absentBytes = Math.floor(maxBytes * ABSENT_SHARE);
    const onEvicted = (key: string, slot: Slot): void => this.#onEvicted(key, slot);
    this.#searched = new FairLru({ maxBytes: searchedBytes, clock, onEvicted });
    this.#rest = new FairLru({ maxBytes: maxBytes - searchedBytes - absentBytes, clock, onEvicted });
    this.#absent = new FairLru({ maxBytes: absentBytes, clock, onEvicted: () => undefined });
  }

  /**
   * The last answer of the store for the key, whoever may see it. A reader who may not is not charged for it (K7a: else its
   * own copies would make room, and show that there is one).
   */
  get<T>(request: CacheRequest<T>, reader: Reader): StoredEntry | null {
    const { key } = request;
    const copies = this.#copiesOf(key);
    const stored = copies.peek(key)?.stored;
    if (stored === undefined) return this.#absent.peek(key)?.absent ?? null;
    if (isVisible(request, stored, reader)) copies.use(key, holderOf(reader));
    return stored;
  }

  /** Charges the reader for it, unless another is charged for the key. False if it doesn't fit. */
  set(key: string, stored: StoredEntry, reader: Pick<Reader, 'keyId'>): boolean {
    const copies = this.#copiesOf(key);
    const known = this.#absent.peek(key) ?? NOTHING_ABSENT;
    if (stored.entry.answer.kind === 'absent') {
      this.#delete(key);
      return this.#setAbsent(key, { ...known, absent: stored }, reader);
    }
    if (known.absent !== null) this.#setAbsent(key, { ...known, absent: null });
    copies.peek(key)?.unwatch();
    const unwatch = stored.entry.onGrowth(() => this.#weighAgain(key));
    const isKept = copies.set(key, { stored, bytes: weigh(key, stored), unwatch }, holderOf(reader));
    if (isKept) {
      this.#dropped.delete(hash32(key));
      this.#evicted.delete(hash32(key));
    }
    return isKept;
  }

  negative(key: string, reader: Pick<Reader, 'workspaceIds' | 'keyId'>): StoredEntry | null {
    const stored = this.#absent.peek(key)?.negatives.get(workspaceSetOf(reader))?.stored;
    if (stored === undefined) return null;
    this.#absent.use(key, holderOf(reader));
    return stored;
  }

  /** False if it doesn't fit. */
  setNegative(key: string, reader: Pick<Reader, 'workspaceIds' | 'keyId'>, stored: StoredEntry): boolean {
    const known = this.#absent.peek(key) ?? NOTHING_ABSENT;
    const { workspaceIds } = reader;
    const negatives = new Map(known.negatives).set(workspaceSetOf(reader), { stored, workspaceIds });
    return this.#setAbsent(key, { ...known, negatives }, reader);
  }

  /** Sets each one only if there is nothing, or something whose fetch was over before the new one's began. */
  backfill(entries: readonly Keyed[], reader: Pick<Reader, 'keyId'>): void {
    for (const { key, stored } of entries) {
      const present = this.peek(key);
      if (present === undefined || present.receivedAtMs < stored.entry.requestedAtMs) this.set(key, stored, reader);
    }
  }

  /**
   * Drops the copy that was replaced, and the negative entries of those who may see the record that was stored. Those of
   * other sets of workspaces stay: what others store is none of their business (K7a).
   */
  deleteOlder(key: string, { filledAtMs, workspaceId }: Replacement): void {
    const isOlder = (stored: StoredEntry): boolean => stored.entry.requestedAtMs < filledAtMs;
    const present = this.#copiesOf(key).peek(key);
    if (present !== undefined && isOlder(present.stored)) this.#delete(key);
    const known = this.#absent.peek(key);
    if (known === undefined || workspaceId === null) return;
    const left = [...known.negatives].filter(
      ([, { stored, workspaceIds }]) => !(isOlder(stored) && workspaceIds.includes(workspaceId)),
    );
    if (left.length < known.negatives.size) this.#setAbsent(key, { ...known, negatives: new Map(left) });
  }

  /** The last answer for the key: to look at it is no use of it. */
  peek(key: string): StoredEntry | undefined {
    return this.#copiesOf(key).peek(key)?.stored ?? this.#absent.peek(key)?.absent ?? undefined;
  }

  /** The same with what it weighs, and the negative entry of those workspaces (null for nobody's), for operators. */
  inspect(key: string, workspaceSet: string | null): Pick<Inspection, 'entry' | 'negative'> {
    const negative = workspaceSet === null ? undefined : this.#absent.peek(key)?.negatives.get(workspaceSet)?.stored;
    return {
      entry: kept(this.peek(key), this.#copiesOf(key).peek(key)?.bytes ?? weighNegative(key)),
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
      const slot = this.#copiesOf(key).peek(key);
      if (slot !== undefined && matches(slot.stored)) {
        this.#delete(key);
        this.#dropped.set(hash32(key), 'purged');
        dropped += 1;
      }
      const known = this.#absent.peek(key);
      if (known === undefined) continue;
      const absent = known.absent !== null && matches(known.absent) ? null : known.absent;
      const left = [...known.negatives].filter(([, { stored }]) => !matches(stored));
      if (absent === known.absent && left.length === known.negatives.size) continue;
      this.#setAbsent(key, { ...known, absent, negatives: new Map(left) });
      this.#dropped.set(hash32(key), 'purged');
      dropped += known.negatives.size - left.length;
    }
    return dropped;
  }

  clear(): void {
    this.#evicted.clear();
    for (const copies of [this.#searched, this.#rest]) {
      for (const { unwatch } of copies.values()) unwatch();
      copies.clear();
    }
    this.#absent.clear();
  }

  /** Everything that is held. */
  usage(): Usage {
    return {
      entries: this.#searched.size + this.#rest.size + this.#absent.size,
      bytes: this.#searched.bytes + this.#rest.bytes + this.#absent.bytes,
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

  #onEvicted(key: string, { stored, bytes, unwatch }: Slot): void {
    unwatch();
    this.#dropped.set(hash32(key), 'evicted');
    // One that never fits stands for no memory that would have kept others.
    if (!isSearchKey(key) && bytes <= this.#rest.maxBytes) {
      this.#evicted.add(hash32(key), { bytes, requestedAtMs: stored.entry.requestedAtMs });
    }
  }

  #copiesOf(key: string): FairLru<Slot> {
    return isSearchKey(key) ? this.#searched : this.#rest;
  }

  #delete(key: string): void {
    const copies = this.#copiesOf(key);
    copies.peek(key)?.unwatch();
    copies.delete(key);
  }

  /** Without a reader: for a change that nobody has asked for. */
  #setAbsent(key: string, { absent, negatives }: AbsentKey, reader?: Pick<Reader, 'keyId'>): boolean {
    if (absent === null && negatives.size === 0) {
      this.#absent.delete(key);
      return false;
    }
    // An absent answer beside negative entries weighs nothing, so that made-up and foreign ids make room alike.
    const bytes = Math.max(1, negatives.size) * weighNegative(key);
    return this.#absent.set(key, { absent, negatives, bytes }, reader === undefined ? null : holderOf(reader));
  }

  #weighAgain(key: string): void {
    const copies = this.#copiesOf(key);
    const slot = copies.peek(key);
    // The same entry stays under watch.
    if (slot !== undefined) copies.set(key, { ...slot, bytes: weigh(key, slot.stored) }, null);
  }
}

/** Who is charged for a copy that the reader brings. */
function holderOf({ keyId = '' }: Pick<Reader, 'keyId'>): string {
  return keyId;
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
