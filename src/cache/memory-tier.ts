/** The memory tier: bounded in bytes, and fair to the API keys that read from it (fair-lru.ts). */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import type { Clock } from '../time/clock.ts';
import { RESOURCES } from '../upstream/resources.ts';
import { type Address, addressText, othersThan, ownersIn, type WorkspaceSet } from './address.ts';
import {
  ageOf,
  type Entry,
  isLater,
  isNewer,
  type Keyed,
  type Measured,
  type StoredEntry,
  type Usage,
} from './entry.ts';
import { type Evicted, EvictedEntries } from './evicted.ts';
import { FairLru } from './fair-lru.ts';
import type { Tagged } from './purge-log.ts';
import { type CacheRequest, hash32, isSearchKey } from './request.ts';
import type { Inspected, KeptCopy, KeptFor } from './shared-cache.ts';

/** A copy, and where it is filed. */
interface Slot extends Address {
  /** The address as one text. */
  readonly name: string;
  readonly stored: StoredEntry;
  readonly bytes: number;
  /** Ends the watch over the bytes derived from the entry. */
  readonly unwatch: () => void;
}

/** A negative entry. Its owner is the set of workspaces that it is kept for. */
interface Negative extends Omit<Slot, 'unwatch'> {
  readonly workspaceIds: readonly string[];
}

/** All that is filed under one key, by owner. Purges, moves and operators take all of it, a reader only what is its own. */
interface Filed {
  readonly copies: Map<string, Slot>;
  readonly negatives: Map<string, Negative>;
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
/** Addresses at which copies have ended: older answers that come later are not kept there. */
const MAX_ENDED = 16_384;

const MAX_DEFAULT_BYTES = 64_000_000;
const CONTAINER_SHARE = 1 / 8;

/**
 * `cache.memory` unless it is set. The defaults that follow from the heap's limit (`server.maxUnsent`,
 * `upstream.answerMemory`) follow the container too: Node.js sets that limit by it.
 *
 * @param constrainedBytes - The memory that the system allows this process; 0 if it sets no limit.
 */
export function defaultMemoryBytes(constrainedBytes: number = process.constrainedMemory()): number {
  if (constrainedBytes === 0) return MAX_DEFAULT_BYTES;
  return Math.min(MAX_DEFAULT_BYTES, Math.floor(constrainedBytes * CONTAINER_SHARE));
}

export interface MemoryTierOptions {
  /** For answers, everything derived from them, and their keys. */
  readonly maxBytes: number;
  readonly clock: Pick<Clock, 'nowMicros' | 'nowMs'>;
}

export class MemoryTier {
  readonly maxBytes: number;
  readonly #searched: FairLru<Slot>;
  readonly #rest: FairLru<Slot>;
  readonly #absent: FairLru<Negative>;
  /** As the hash of a key's owners lists the copies in Redis: each tier evicts by itself, so each lists its own. */
  readonly #filed = new Map<string, Filed>();
  /** By address: when the fetch began whose answer has ended the copy there, Unix milliseconds. */
  readonly #ended = new LRUCache<string, number>(atMost(MAX_ENDED));
  /** Hashes of keys: a collision only makes a report less exact. */
  readonly #dropped = new LRUCache<number, 'evicted' | 'purged'>(atMost(MAX_DROPPED));
  /** Entries that were evicted, except searched lists. */
  readonly #evicted = new EvictedEntries();
  readonly #clock: MemoryTierOptions['clock'];

  constructor({ maxBytes, clock }: MemoryTierOptions) {
    this.maxBytes = maxBytes;
    const searchedBytes = Math.floor(maxBytes * SEARCHED_SHARE);
    const absentBytes = Math.floor(maxBytes * ABSENT_SHARE);
    const onEvicted = (_name: string, slot: Slot): void => this.#onEvicted(slot);
    this.#clock = clock;
    this.#searched = new FairLru({ maxBytes: searchedBytes, clock, onEvicted });
    this.#rest = new FairLru({ maxBytes: maxBytes - searchedBytes - absentBytes, clock, onEvicted });
    const onNegativeEvicted = (_name: string, { key, owner }: Negative): void => this.#unfile(key, 'negatives', owner);
    this.#absent = new FairLru({ maxBytes: absentBytes, clock, onEvicted: onNegativeEvicted });
  }

  /**
   * The last answer that there is for the reader: the newest of the copies under its own workspaces, or its negative entry.
   * The reader is charged for what it gets, and for nothing else (K7a: else its own copies would make room for what it may not
   * see, and show that there is one).
   */
  find({ kind, key }: Pick<CacheRequest<unknown>, 'kind' | 'key'>, { set, keyId }: KeptFor): StoredEntry | null {
    const filed = this.#filed.get(key);
    if (filed === undefined) return null;
    let newest: Slot | null = null;
    for (const owner of ownersIn(kind, set)) {
      const slot = filed.copies.get(owner);
      if (slot !== undefined && this.#isNewer(slot, newest)) newest = slot;
    }
    const negative = filed.negatives.get(set.name);
    if (negative !== undefined && this.#isNewer(negative, newest)) {
      this.#absent.use(negative.name, holderOf(keyId));
      return negative.stored;
    }
    if (newest === null) return null;
    this.#copiesOf(key).use(newest.name, holderOf(keyId));
    return newest.stored;
  }

  /** Keeps it, and charges the key for it unless another is charged. False if it does not fit, or came too late. */
  set(key: string, stored: StoredEntry, { set, keyId }: KeptFor): boolean {
    const { owner } = stored;
    const name = addressText({ key, owner });
    if (this.#hasEnded(name, stored)) return false;
    if (stored.entry.answer.kind === 'found') return this.#setCopy({ name, key, owner, stored }, keyId);
    const negative = { name, key, owner, stored, workspaceIds: set.ids, bytes: weighNegative(key) };
    const isKept = this.#absent.set(name, negative, holderOf(keyId));
    if (isKept) this.#filedUnder(key).negatives.set(owner, negative);
    else this.#unfile(key, 'negatives', owner);
    return isKept;
  }

  /**
   * Keeps each one only if there is nothing, or something whose fetch was over before the new one's began, or that is from the
   * future (C9: it beats nothing). Returns those that may be of use to the shared cache: a record that a copy here keeps out is
   * kept out there too, and is only of use if it may end copies of other workspaces.
   */
  backfill<K extends Keyed>(entries: readonly K[], keptFor: KeptFor): readonly K[] {
    const news: K[] = [];
    for (const one of entries) {
      const { key, stored } = one;
      const { requestedAtMs } = stored.entry;
      const present = this.peek({ key, owner: stored.owner });
      const isOver = (other: StoredEntry): boolean =>
        this.#isFromFuture(other.entry) || other.receivedAtMs < requestedAtMs;
      const isInTime = present === undefined || isOver(present);
      if (isInTime) this.set(key, stored, keptFor);
      const others = othersThan(stored.owner, keptFor.set);
      this.end(key, others, requestedAtMs, isOver);
      if (isInTime || others.length > 0) news.push(one);
    }
    return news;
  }

  /**
   * Ends what was filed under these owners by fetches that began up to `requestedAtMs` (Unix milliseconds): the store has said
   * since that the record is none of theirs. Older answers that come later are not kept there. Returns the owners that had a
   * copy.
   */
  end(
    key: string,
    owners: readonly string[],
    requestedAtMs: number,
    isOver: (stored: StoredEntry) => boolean = ({ entry }) =>
      this.#isFromFuture(entry) || entry.requestedAtMs <= requestedAtMs,
  ): readonly string[] {
    return owners.filter((owner) => {
      const name = addressText({ key, owner });
      this.#ended.set(name, Math.max(requestedAtMs, this.#ended.peek(name) ?? 0));
      const slot = this.#filed.get(key)?.copies.get(owner);
      if (slot === undefined || !isOver(slot.stored)) return false;
      this.#delete(slot);
      return true;
    });
  }

  /**
   * Another process has filed a copy there that was requested at `requestedAtMs` (Unix milliseconds): drops an older one, and
   * the negative entries of those who may see it. Those of other sets of workspaces stay (K7a: what others store is none of
   * their business).
   */
  deleteOlder({ key, owner }: Address, requestedAtMs: number): void {
    const filed = this.#filed.get(key);
    const isOlder = ({ stored: { entry } }: Pick<Slot, 'stored'>): boolean =>
      this.#isFromFuture(entry) || entry.requestedAtMs < requestedAtMs;
    const slot = filed?.copies.get(owner);
    if (slot !== undefined && isOlder(slot)) this.#delete(slot);
    for (const negative of filed?.negatives.values() ?? []) {
      if (negative.workspaceIds.includes(owner) && isOlder(negative)) this.#deleteNegative(negative);
    }
  }

  /** Drops just that copy or negative entry, if it is still there. */
  delete(key: string, stored: StoredEntry): void {
    const filed = this.#filed.get(key);
    const slot = filed?.copies.get(stored.owner);
    if (slot?.stored === stored) this.#delete(slot);
    const negative = filed?.negatives.get(stored.owner);
    if (negative?.stored === stored) this.#deleteNegative(negative);
  }

  /** The copy there: to look at it is no use of it. */
  peek({ key, owner }: Address): StoredEntry | undefined {
    return this.#filed.get(key)?.copies.get(owner)?.stored;
  }

  /** All of a key: its copies, and the negative entry of that set (null for nobody's), for operators. */
  inspect(key: string, set: WorkspaceSet | null): Inspected {
    const filed = this.#filed.get(key);
    const negative = set === null ? undefined : filed?.negatives.get(set.name);
    return {
      copies: [...(filed?.copies.values() ?? [])].map(shown),
      negative: negative === undefined ? null : shown(negative),
    };
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

  /** Drops what matches, of those keys or of all, for good. Returns how much there was. */
  purge(matches: (stored: Tagged) => boolean, keys: Iterable<string> = [...this.#filed.keys()]): number {
    let dropped = 0;
    for (const key of keys) {
      this.#evicted.delete(hash32(key));
      const filed = this.#filed.get(key);
      const copies = [...(filed?.copies.values() ?? [])].filter(({ stored }) => matches(stored));
      const negatives = [...(filed?.negatives.values() ?? [])].filter(({ stored }) => matches(stored));
      for (const slot of copies) this.#delete(slot);
      for (const negative of negatives) this.#deleteNegative(negative);
      if (copies.length + negatives.length > 0) this.#dropped.set(hash32(key), 'purged');
      dropped += copies.length + negatives.length;
    }
    return dropped;
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
    for (const negative of this.#absent.values()) {
      if (!matches(negative.stored)) continue;
      entries += 1;
      bytes += negative.bytes;
    }
    return { entries, bytes, isComplete: true };
  }

  #setCopy(copy: Omit<Slot, 'bytes' | 'unwatch'>, keyId: string | undefined): boolean {
    const { name, key, owner, stored } = copy;
    this.#filed.get(key)?.copies.get(owner)?.unwatch();
    const unwatch = stored.entry.onGrowth(() => this.#weighAgain(key, owner));
    const slot = { ...copy, bytes: weigh(key, stored), unwatch };
    if (!this.#copiesOf(key).set(name, slot, holderOf(keyId))) {
      this.#unfile(key, 'copies', owner);
      return false;
    }
    this.#filedUnder(key).copies.set(owner, slot);
    this.#dropped.delete(hash32(key));
    this.#evicted.delete(hash32(key));
    return true;
  }

  /** An ending from the future ends nothing (C9: a clock may have been wrong). */
  #hasEnded(name: string, { entry }: StoredEntry): boolean {
    const endedMs = this.#ended.peek(name);
    return endedMs !== undefined && isLater(endedMs, entry.requestedAtMs, this.#clock.nowMs());
  }

  /** Such a copy beats no other (C9). */
  #isFromFuture(entry: Entry<unknown>): boolean {
    return ageOf(entry, this.#clock.nowMs()) === null;
  }

  #isNewer(one: Pick<Slot, 'stored'>, other: Slot | null): boolean {
    return other === null || isNewer(one.stored, other.stored, this.#clock.nowMs());
  }

  #onEvicted({ key, owner, stored, bytes, unwatch }: Slot): void {
    unwatch();
    this.#unfile(key, 'copies', owner);
    this.#dropped.set(hash32(key), 'evicted');
    // One that never fits stands for no memory that would have kept others.
    if (!isSearchKey(key) && bytes <= this.#rest.maxBytes) {
      this.#evicted.add(hash32(key), { bytes, requestedAtMs: stored.entry.requestedAtMs });
    }
  }

  #copiesOf(key: string): FairLru<Slot> {
    return isSearchKey(key) ? this.#searched : this.#rest;
  }

  #delete({ name, key, owner, unwatch }: Slot): void {
    unwatch();
    this.#copiesOf(key).delete(name);
    this.#unfile(key, 'copies', owner);
  }

  #deleteNegative({ name, key, owner }: Negative): void {
    this.#absent.delete(name);
    this.#unfile(key, 'negatives', owner);
  }

  #filedUnder(key: string): Filed {
    const known = this.#filed.get(key);
    if (known !== undefined) return known;
    const filed = { copies: new Map(), negatives: new Map() };
    this.#filed.set(key, filed);
    return filed;
  }

  #unfile(key: string, kind: keyof Filed, owner: string): void {
    const filed = this.#filed.get(key);
    filed?.[kind].delete(owner);
    if (filed?.copies.size === 0 && filed.negatives.size === 0) this.#filed.delete(key);
  }

  #weighAgain(key: string, owner: string): void {
    const slot = this.#filed.get(key)?.copies.get(owner);
    if (slot === undefined) return;
    // The same entry stays under watch.
    const heavier = { ...slot, bytes: weigh(key, slot.stored) };
    if (this.#copiesOf(key).set(slot.name, heavier, null)) this.#filedUnder(key).copies.set(owner, heavier);
    else this.#unfile(key, 'copies', owner);
  }
}

function shown({ stored, bytes }: Pick<Slot, 'stored' | 'bytes'>): KeptCopy {
  return { stored, bytes, keptForMs: null };
}

/** Who is charged for a copy that readers with that API key bring. */
export function holderOf(keyId: string | undefined): string {
  return keyId ?? '';
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
