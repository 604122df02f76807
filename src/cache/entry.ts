/**
 * The unit of the cache: one answer of the store, the data derived from it, and the tags that it can be purged by.
 *
 * A record that a reader does not get has one of three names. It is `absent` if the store has answered that it has none. It
 * is `foreign` if the store has one, of a workspace that the reader may not see. To the reader both are the same: a
 * `negative` entry, which is kept for one set of workspaces (K7a: a foreign record looks like none). `notFound` is the class
 * of TTLs of both.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Position } from '../journal/journal.ts';
import { CLOCK_TOLERANCE_MS } from '../time/clock.ts';
import type { ResourceKind } from '../upstream/resources.ts';
import type { Absent, Found, StoreAnswer } from '../upstream/store.ts';
import { StoreError } from '../upstream/store-error.ts';
import { type Address, ownersIn, type WorkspaceSet } from './address.ts';
import type { ChangeOrigin } from './change-table.ts';
import type { Tag, Tagged } from './purge-log.ts';
import { type CacheRequest, hash32, recordRequest } from './request.ts';
import type { CacheClass } from './ttl-policy.ts';

/** Notified of the bytes by which the data derived from an entry has grown. */
type GrowthListener = (bytes: number) => void;

/** The bytes derived from one answer, shared by all entries that hold that answer. */
class DerivedBytes {
  total = 0;
  readonly listeners = new Set<GrowthListener>();
}

/** One answer of the store: a record, or that there is none. Never the public form of one. */
export class Entry<T> {
  readonly answer: Found<T> | Absent;
  /** When the fetch that brought it began, Unix milliseconds. Age counts from here. */
  readonly requestedAtMs: number;
  readonly #derived: DerivedBytes;

  constructor(answer: Found<T> | Absent, requestedAtMs: number, derived?: DerivedBytes) {
    this.answer = answer;
    this.requestedAtMs = requestedAtMs;
    this.#derived = derived ?? new DerivedBytes();
  }

  /** The same answer, confirmed by a fetch that began at that time. Derived data stays with it. */
  renewedAt(requestedAtMs: number): Entry<T> {
    return new Entry(this.answer, requestedAtMs, this.#derived);
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

/** When an answer was fetched, by the clock and by the journal. */
export interface FetchStamp {
  /** Where the journal stood before the fetch began. */
  readonly position: Position;
  /** When the fetch began, Unix milliseconds. */
  readonly requestedAtMs: number;
  /** When the answer had arrived, Unix milliseconds. */
  readonly receivedAtMs: number;
}

/** An entry as a tier keeps it. `kind` decides the type of the record: the code that makes one has checked it. */
export interface StoredEntry<T = unknown> extends Tagged, Pick<FetchStamp, 'receivedAtMs'> {
  readonly kind: ResourceKind;
  /** Whose it is (`Address`). */
  readonly owner: string;
  readonly entry: Entry<T>;
  /** Set once a change is forgotten that it is from before: the store has announced it, or an answer has shown it. */
  changed?: ChangeOrigin;
}

export interface Keyed {
  readonly key: string;
  readonly stored: StoredEntry;
}

/** When each entry was first seen to be from the future. Whatever the clock says later, its age stays unknown. */
const seenInFutureAtMs = new WeakMap<Entry<unknown>, number>();

/**
 * How old the entry is; null if it is from the future (C9: such a copy is stale, never fresh): then the clock of this
 * machine, or of the one that fetched it, is or was wrong. Counted on from when that was seen, its freshness has just ended.
 */
export function ageOf(entry: Entry<unknown>, nowMs: number): number | null {
  if (nowMs - entry.requestedAtMs < -CLOCK_TOLERANCE_MS && !seenInFutureAtMs.has(entry)) {
    seenInFutureAtMs.set(entry, nowMs);
  }
  return seenInFutureAtMs.has(entry) ? null : Math.max(0, nowMs - entry.requestedAtMs);
}

/** For how long the entry has been known to be from the future, milliseconds; 0 if it is not. */
export function sinceFutureMs(entry: Entry<unknown>, nowMs: number): number {
  return Math.max(0, nowMs - (seenInFutureAtMs.get(entry) ?? nowMs));
}

/**
 * Whether that time of a request is later than the other, and not from the future (C9: that beats nothing). Its twin in Lua judges
 * by Redis's clock (redis/entry-format.ts). Unix milliseconds.
 */
export function isLater(atMs: number, thanMs: number, nowMs: number): boolean {
  return atMs > thanMs && atMs <= nowMs + CLOCK_TOLERANCE_MS;
}

/** Whether its fetch began later. Any answer beats none; one from the future beats no other (C9: its age is unknown). */
export function isNewer(one: StoredEntry, other: StoredEntry | null, nowMs: number): boolean {
  if (other === null) return true;
  const [oneAgeMs, otherAgeMs] = [one, other].map(({ entry }) => ageOf(entry, nowMs));
  if (oneAgeMs === null) return false;
  return otherAgeMs === null || one.entry.requestedAtMs > other.entry.requestedAtMs;
}

export interface Usage {
  readonly entries: number;
  readonly bytes: number;
}

export interface Measured extends Usage {
  /** False if counting was cut short: there is more. */
  readonly isComplete: boolean;
}

/** The class whose TTLs rule an answer. */
export function classOf(kind: ResourceKind, { answer }: Entry<unknown>): CacheClass {
  return answer.kind === 'absent' ? 'notFound' : kind;
}

/** The type of a record follows from its kind. */
export function isOfKind<T>(request: CacheRequest<T>, stored: StoredEntry): stored is StoredEntry<T> {
  return stored.kind === request.kind;
}

/** Whether it answers readers of that set: a copy of theirs, or their own negative entry. */
export function isFor({ owner, kind, entry }: StoredEntry, set: WorkspaceSet): boolean {
  return owner === set.name || (entry.answer.kind === 'found' && ownersIn(kind, set).includes(owner));
}

/**
 * Names a copy as a `hash32`: by its key, and a negative entry also by the set of workspaces that it is kept for (K7a: no
 * other reader learns of it).
 */
export function copyHashOf(
  { key, keyHash }: Pick<CacheRequest<unknown>, 'key' | 'keyHash'>,
  { owner, entry }: StoredEntry,
): number {
  return entry.answer.kind === 'absent' ? hash32(`${key} ${owner}`) : keyHash;
}

/** All tags of an answer: of its record, of its kind and of its class. */
export function tagsOf<T>(request: CacheRequest<T>, entry: Entry<T>): readonly Tag[] {
  const { kind } = request;
  const own = request.tags(entry.answer.kind === 'found' ? entry.answer.record : null);
  if (entry.answer.kind === 'found') return ['all', `class:${kind}`, ...own];
  return ['all', `class:${kind}`, 'class:notFound', ...own];
}

/** The entry of an answer of the store. */
export interface Answered<T> {
  readonly stored: StoredEntry<T>;
  /** Whether the answer differs from the previous copy; null if there was none. */
  readonly isChanged: boolean | null;
}

/**
 * The entry of an answer to readers of that set; `previous` is the copy whose validator made the call conditional. Throws a
 * StoreError if it is no answer to the request.
 */
export function entryOfAnswer<T>(
  request: CacheRequest<T>,
  previous: StoredEntry<T> | null,
  answer: StoreAnswer<T>,
  { set, stamp }: { readonly set: WorkspaceSet; readonly stamp: FetchStamp },
): Answered<T> {
  const { requestedAtMs } = stamp;
  const known = previous?.entry ?? null;
  const answered = (entry: Entry<T>, isChanged: boolean): Answered<T> => ({
    stored: storedEntry(request, entry, stamp, set),
    isChanged: known === null ? null : isChanged,
  });
  if (answer.kind === 'not-modified') {
    if (known !== null) return answered(known.renewedAt(requestedAtMs), false);
    throw new StoreError('garbled', `not-modified was answered to an unconditional call (${request.kind})`);
  }
  if (answer.kind === 'found' && !request.isAnsweredBy(answer.record)) {
    throw new StoreError('garbled', `the answer is not the ${request.kind} that was asked for`);
  }
  if (answer.kind === 'absent' || known?.answer.kind !== 'found') {
    return answered(new Entry<T>(answer, requestedAtMs), answer.kind !== known?.answer.kind);
  }
  const isEqual = isDeepStrictEqual(answer.record, known.answer.record);
  // An answer that is the previous one again keeps its record and everything derived from it.
  const isRenewal = isEqual && answer.etag === known.answer.etag;
  return answered(isRenewal ? known.renewedAt(requestedAtMs) : new Entry<T>(answer, requestedAtMs), !isEqual);
}

/** The negative entry of a request: the same for an id that the store does not have and for a foreign record (K7a). */
export function negativeEntry<T>(request: CacheRequest<T>, stamp: FetchStamp, set: WorkspaceSet): StoredEntry<T> {
  return storedEntry(request, new Entry<T>({ kind: 'absent', code: 'NOT_FOUND' }, stamp.requestedAtMs), stamp, set);
}

export function stampOf({ entry, position, receivedAtMs }: StoredEntry): FetchStamp {
  return { requestedAtMs: entry.requestedAtMs, position, receivedAtMs };
}

function storedEntry<T>(
  request: CacheRequest<T>,
  entry: Entry<T>,
  { position, receivedAtMs }: FetchStamp,
  { name }: WorkspaceSet,
): StoredEntry<T> {
  const { answer } = entry;
  const workspaceId = answer.kind === 'found' ? request.workspaceOf(answer.record) : null;
  return {
    kind: request.kind,
    owner: workspaceId ?? name,
    entry,
    tags: tagsOf(request, entry),
    position,
    receivedAtMs,
  };
}

/** A copy compared with the answer that takes its place. */
export interface Refresh {
  /** The class of the previous copy. */
  readonly class: CacheClass;
  /** `copyHashOf` the previous copy. */
  readonly copyHash: number;
  /** The share of the answer that is out of date in the copy: 0 or 1 of a record, of a list its records that are new there. */
  readonly changed: number;
  /** Between the fetch of the copy and this one. */
  readonly sinceMs: number;
  /** When the record was made, Unix milliseconds; null if it does not say. */
  readonly createdAtMs: number | null;
  /** Whether the store has announced a change since the copy. */
  readonly isAnnounced: boolean;
}

/** A single record that came in a list, as an entry of its own. */
export interface Backfill extends Keyed {
  /** How it differs from the copy that was there; null if there was none. */
  readonly refresh: Refresh | null;
}

/** The copies that an answer is compared with, and whether a change was announced since. */
export interface KnownCopies {
  readonly present: (address: Address) => StoredEntry | null;
  readonly isAnnouncedSince: (copy: StoredEntry) => boolean;
}

/**
 * The single records that an answer to that set holds, as entries of their own. If `present` returns an equal one, that is
 * renewed: it keeps its validator and everything derived from it.
 */
export function backfillsOf<T>(
  request: CacheRequest<T>,
  stored: StoredEntry<T>,
  set: WorkspaceSet,
  { present, isAnnouncedSince }: KnownCopies,
): readonly Backfill[] {
  const { answer, requestedAtMs } = stored.entry;
  if (answer.kind === 'absent') return [];
  const backfills = request.backfills(answer.record);
  const bytes = Math.ceil(answer.bytes / Math.max(1, backfills.length));
  return backfills.map(({ kind, id, record }) => {
    const single = recordRequest(kind, id);
    const copy = present({ key: single.key, owner: single.workspaceOf(record) ?? set.name });
    const existing = copy?.entry;
    const isSame = existing?.answer.kind === 'found' && isDeepStrictEqual(existing.answer.record, record);
    const entry = isSame
      ? existing.renewedAt(requestedAtMs)
      : new Entry<unknown>({ kind: 'found', record, etag: null, bytes }, requestedAtMs);
    const refresh =
      existing?.answer.kind !== 'found'
        ? null
        : {
            class: kind,
            copyHash: single.keyHash,
            changed: isSame ? 0 : 1,
            sinceMs: requestedAtMs - existing.requestedAtMs,
            createdAtMs: single.createdAtMs(record),
            isAnnounced: copy !== null && isAnnouncedSince(copy),
          };
    return { key: single.key, stored: storedEntry(single, entry, stampOf(stored), set), refresh };
  });
}

const itemHashes = new Derivation<readonly number[]>((hashes) => 8 * hashes.length);
const NO_ITEMS: readonly number[] = [];

/** `hash32` of the keys of the single records that an answer holds. */
export function itemHashesOf<T>(request: CacheRequest<T>, { kind, entry }: StoredEntry<T>): readonly number[] {
  const { answer } = entry;
  if (kind !== 'list' || answer.kind === 'absent') return NO_ITEMS;
  return itemHashes.of(entry, () =>
    request.backfills(answer.record).map((item) => recordRequest(item.kind, item.id).keyHash),
  );
}

/** The share of a list's records that the earlier copy did not have; null if it is no list. */
export function newItemsOf<T>(request: CacheRequest<T>, previous: Entry<T>, entry: Entry<T>): number | null {
  if (request.kind !== 'list' || previous.answer.kind === 'absent' || entry.answer.kind === 'absent') return null;
  const known = new Set(request.itemIds(previous.answer.record));
  const items = request.itemIds(entry.answer.record);
  return items.filter((id) => !known.has(id)).length / Math.max(1, items.length);
}
