/**
 * The read-through cache: memory, then the shared cache, then one flight to the store. Fresh copies are served as they
 * are, stale ones while one refresh runs in the background, older ones when the store fails or takes too long.
 */
import { randomUUID } from 'node:crypto';
import { withDeadline } from '../time/timers.ts';
import { Batches } from '../time/turns.ts';
import { maintenanceError } from '../upstream/maintenance.ts';
import { asStoreError, StoreError, type StoreErrorKind } from '../upstream/store-error.ts';
import { workspaceSetOf, type WorkspaceSet } from './address.ts';
import { assess, copyInMemory, type ReadThroughParts } from './copies.ts';
import { EarlyRenewal } from './early-renewal.ts';
import { classOf, copyHashOf, isFor, isOfKind, itemHashesOf, type StoredEntry } from './entry.ts';
import type { MissReason } from './events.ts';
import { Flights, type Landing } from './flights.ts';
import {
  type CachedCopy,
  flightSet,
  freshnessOf,
  isAtOnce,
  isServedAtOnce,
  isUsable,
  missReasonOf,
  newerCopy,
  plan,
} from './plan.ts';
import { isPurged } from './purge-log.ts';
import type { Cache, CacheRead, FlightView, Reader, ReadOutcome } from './reader.ts';
import type { CacheRequest } from './request.ts';
import type { Flight } from './waited-flights.ts';

/** How long a reader waits for the store if there is a copy to serve instead (C3: then it gets the copy). */
const PATIENCE_MS = 1000;

interface Read<T> {
  readonly request: CacheRequest<T>;
  readonly reader: Reader;
  readonly set: WorkspaceSet;
  readonly startedMicros: number;
}

/** The answer that a read has found so far, beside the copy in memory. */
interface Known<T> {
  readonly found: CachedCopy<T> | null;
  /** When the newest answer was requested that the reader has seen in the shared cache, Unix milliseconds; null for none. */
  readonly seenAtMs: number | null;
}

const NOTHING_KNOWN = { found: null, seenAtMs: null };

/** A read that goes to the store. */
interface Miss<T> extends Read<T> {
  readonly previous: CachedCopy<T> | null;
  readonly fallback: CachedCopy<T> | null;
  readonly seenAtMs: number | null;
  readonly reason: MissReason;
}

type WaitEnd =
  | { readonly kind: 'landed'; readonly landing: Landing }
  | { readonly kind: 'failed'; readonly error: StoreError }
  | { readonly kind: 'late' };

type Served = Pick<CacheRead<unknown>, 'outcome' | 'tier' | 'isKept' | 'forward' | 'failure'> & {
  /** Null for reads that the cache answered at once. */
  readonly reason: MissReason | null;
};

export class ReadThrough implements Cache {
  readonly #options: ReadThroughParts;
  readonly #flights: Flights;
  readonly #early: EarlyRenewal;
  /** Readers whose flight has ended. */
  readonly #landed = new Batches();

  constructor(options: ReadThroughParts) {
    this.#options = options;
    this.#flights = new Flights(options);
    this.#early = new EarlyRenewal(options);
  }

  flightOf(key: string, set: WorkspaceSet | null): FlightView {
    return this.#flights.flightOf(key, set);
  }

  /** How many of the calls to the store that are under way now have not ended within that time. */
  settled(withinMs: number): Promise<number> {
    return this.#flights.settled(withinMs);
  }

  async read<T>(request: CacheRequest<T>, reader: Reader): Promise<CacheRead<T>> {
    const startedMicros = this.#options.clock.nowMicros();
    const read = { request, reader, set: workspaceSetOf(reader), startedMicros };
    let known: Known<T> = NOTHING_KNOWN;
    for (;;) {
      const next = await this.#readOnce(read, known);
      if ('entry' in next) return next;
      known = next;
    }
  }

  /** The answer, or what is known by now: then the read has to be planned anew. */
  async #readOnce<T>(read: Read<T>, { found, seenAtMs }: Known<T>): Promise<CacheRead<T> | Known<T>> {
    const { request, reader } = read;
    // Before anything in memory is looked at.
    const proof = this.#options.purges.prove();
    if (proof !== null) await (reader.redisWait?.within(proof).catch(() => undefined) ?? proof);
    const copy = this.#newest(read, copyInMemory(read, this.#options), found);
    const maintenance = this.#options.store.maintenance.current();
    const next = plan(copy, maintenance);
    if (isAtOnce(next) && seenAtMs === null && !this.#options.sharedCache.isHeard()) return this.#lookOnly(read, copy);
    switch (next.action) {
      case 'serve':
        if (this.#early.isDue(next.copy) && maintenance === null) this.#refreshInBackground(read, next.copy, true);
        return this.#serveCopy(read, next.copy, null);
      case 'serve-and-refresh':
        this.#refreshInBackground(read, next.copy, false);
        return this.#serveCopy(read, next.copy, null);
      case 'fetch':
        return await this.#fetchOrFallBack({ ...read, ...next, seenAtMs, reason: this.#missReason(request, copy) });
      // During maintenance: the shared cache may have something better all the same.
      case 'serve-fallback':
        if (seenAtMs === null) return await this.#lookOnly(read, copy);
        return this.#serveCopy(read, next.copy, this.#missReason(request, copy), 'paused');
      case 'refuse':
        break;
    }
    if (seenAtMs === null) return await this.#lookOnly(read, copy);
    this.#reportFailed(read, this.#missReason(request, copy), 'paused');
    throw maintenanceError(next.maintenance, this.#options.clock);
  }

  async #lookOnly<T>(read: Read<T>, previous: CachedCopy<T> | null): Promise<Known<T>> {
    const found = await this.#flights.lookOnly({ ...read, previous, seenAtMs: null, isBackground: false });
    return { found: found?.copy ?? null, seenAtMs: found?.seenAtMs ?? 0 };
  }

  /** The answer that was found may be in memory by now. */
  #newest<T>(read: Read<T>, local: CachedCopy<T> | null, found: CachedCopy<T> | null): CachedCopy<T> | null {
    if (found === null) return local;
    const now = assess(read, found.stored, found.tier, this.#options);
    return local?.stored === found.stored ? now : newerCopy(local, now);
  }

  /** One refresh, which nobody waits for. */
  #refreshInBackground<T>({ request, reader, set }: Read<T>, previous: CachedCopy<T>, isEarly: boolean): void {
    const how = { isBackground: true, isEarly, readers: () => this.#early.readsOf(previous) };
    const task = { request, reader, set: flightSet(set, previous), previous, seenAtMs: null, ...how };
    void this.#flights.refresh(task);
  }

  /**
   * Renews the copy of that workspace in memory, which no reader waits for, if it is from before a change; null if there is
   * none such. Never rejects.
   */
  renewChanged(request: CacheRequest<unknown>, owner: string, keyId: string | undefined): Promise<void> | null {
    const { memory, purges, clock } = this.#options;
    const set = { ids: [owner], name: owner };
    const stored = memory.peek({ key: request.key, owner }) ?? null;
    if (stored === null || purges.changeOf(stored, clock.nowMs()) === null) return null;
    const previous = assess({ request, set }, stored, 'memory', this.#options);
    if (previous === null) return null;
    const reader = { requestId: randomUUID(), workspaceIds: [owner], ...(keyId !== undefined && { keyId }) };
    const how = { isBackground: true, readers: () => this.#early.readsOf(previous) };
    // After a hard change, too, a copy that is no newer is no answer.
    const seenAtMs = stored.entry.requestedAtMs;
    return this.#flights.refresh({ request, reader, set, previous, seenAtMs, ...how });
  }

  async #fetchOrFallBack<T>(miss: Miss<T>): Promise<CacheRead<T> | Known<T>> {
    const { request, reader, previous, seenAtMs } = miss;
    const set = flightSet(miss.set, previous);
    const task = { request, reader, set, previous, seenAtMs, isBackground: false };
    const looked = await this.#flights.look(task);
    if (looked.kind === 'found') return this.#knownBy(miss, looked.copy, looked.seenAtMs);
    if (previous === null) this.#reportEvicted(request);
    if (looked.kind === 'failed') return this.#fallBack(miss, looked.error);
    if (reader.enterWaitingRoom?.() === false) return this.#fallBack(miss, tooManyWaiting());
    // A call that renews a copy is of use also if the reader that caused it has gone.
    const flight = this.#flights.join(task, looked.turn, previous === null ? reader.signal : undefined);
    // A copy from before a change is served only if it cannot be renewed, however long that takes.
    let end = await this.#endOf(flight, miss.fallback !== null && miss.fallback.state !== 'changed');
    if (end.kind === 'late' && this.#fallbackNow(miss) === null) {
      // The copy has become unusable during the wait.
      end = await this.#endOf(flight, false);
    }
    await this.#landed.next();
    if (this.#mustLookAgain(miss, end, flight)) return NOTHING_KNOWN;
    if (end.kind === 'landed') return this.#serveLanding(miss, end.landing, flight);
    return this.#fallBack(
      miss,
      end.kind === 'failed' ? end.error : new StoreError('timeout', 'the flight did not end'),
    );
  }

  /** The answer that was found for the set of a flight, which may be another than the reader's. */
  #knownBy<T>(miss: Miss<T>, found: CachedCopy<T>, seenAtMs: number): Known<T> {
    return isFor(found.stored, miss.set) ? { found, seenAtMs } : NOTHING_KNOWN;
  }

  /** Serves the fallback, unless it is over by now. Throws the error if there is none. */
  #fallBack<T>(miss: Miss<T>, error: StoreError): CacheRead<T> {
    const fallback = this.#fallbackNow(miss);
    if (fallback !== null) return this.#serveCopy(miss, fallback, miss.reason, error.kind);
    this.#reportFailed(miss, miss.reason, error.kind);
    throw error;
  }

  /**
   * Whether the end of a flight is no answer to this reader:
   * - It was a renewal for all who may see the copy, and has brought nothing for the reader's own set of workspaces.
   * - Another reader began it, and it read the store before a purge or a change that this reader has seen.
   * - All others left before its call was sent.
   * - Those who began it could do with what they had, so its call left the queue early. This reader's copy is from before a
   *   change.
   */
  #mustLookAgain<T>(miss: Miss<T>, end: WaitEnd, { startedByCaller, signal }: Flight<Landing>): boolean {
    const { reader, set, fallback } = miss;
    if (end.kind === 'late') return false;
    if (end.kind === 'failed') {
      const { kind, isGivenUp } = end.error;
      const isAbandoned = kind === 'aborted' && signal.aborted && reader.signal?.aborted !== true;
      return !startedByCaller && (isAbandoned || (isGivenUp && fallback?.state === 'changed'));
    }
    const { served } = end.landing;
    const { purges, clock } = this.#options;
    if (startedByCaller) return !isFor(served, set);
    return !isFor(served, set) || isPurged(purges, served) || purges.changeOf(served, clock.nowMs(), set.ids) !== null;
  }

  /** `isBounded`: whether to stop waiting after `PATIENCE_MS`, because there is a copy to serve instead. */
  async #endOf(flight: Flight<Landing>, isBounded: boolean): Promise<WaitEnd> {
    const landed = flight.result.then(
      (landing): WaitEnd => ({ kind: 'landed', landing }),
      (error: unknown): WaitEnd => ({ kind: 'failed', error: asStoreError(error) }),
    );
    if (!isBounded) return await landed;
    // A reader that comes later needn't find out anew that the store is slow.
    const waitedMs = this.#sinceMs(flight.startedMicros);
    const leftMs = Math.max(0, PATIENCE_MS - waitedMs);
    return await withDeadline(landed, leftMs, this.#options.timers, (): WaitEnd => ({ kind: 'late' }));
  }

  /** The fallback, unless it is over by now. */
  #fallbackNow<T>({ fallback, ...read }: Miss<T>): CachedCopy<T> | null {
    const copy = fallback === null ? null : assess(read, fallback.stored, fallback.tier, this.#options);
    return copy !== null && isUsable(copy) ? copy : null;
  }

  #serveLanding<T>(miss: Miss<T>, { served, from, isKept }: Landing, flight: Flight<Landing>): CacheRead<T> | Known<T> {
    const { request, reason } = miss;
    const tier = from === 'elsewhere' && this.#wasThere(miss, served) ? 'redis' : from;
    if (tier === 'memory' || tier === 'redis') {
      const copy = assess(miss, served, tier, this.#options);
      if (copy !== null) return this.#knownBy(miss, copy, Math.max(miss.seenAtMs ?? 0, served.entry.requestedAtMs));
    }
    if (!isOfKind(request, served))
      throw new Error(`A flight of ${request.key} has brought the answer to another request.`);
    const outcome = from === 'store' && flight.startedByCaller ? 'miss' : 'collapsed';
    const forward = miss.previous === null || miss.previous.state === 'purged' ? 'uri-miss' : 'stale';
    return this.#serve(miss, served, { outcome, tier: null, isKept, reason, failure: null, forward });
  }

  /**
   * Whether another process had brought the answer before this read began: it joined a flight that was about to find it in
   * Redis, and has not waited for the store. By the clocks of two processes: it only decides how the read is reported.
   */
  #wasThere<T>({ startedMicros }: Miss<T>, { receivedAtMs }: StoredEntry): boolean {
    return receivedAtMs < this.#options.clock.nowMs() - this.#sinceMs(startedMicros);
  }

  /** `failure`: of an old copy, why the store has not renewed it. */
  #serveCopy<T>(
    read: Read<T>,
    copy: CachedCopy<T>,
    reason: MissReason | null,
    failure: StoreErrorKind | null = null,
  ): CacheRead<T> {
    const served = { outcome: outcomeOf(copy), tier: copy.tier, isKept: true, failure, reason };
    return this.#serve(read, copy.stored, served, copy);
  }

  #serve<T>(
    { request, reader, set, startedMicros }: Read<T>,
    stored: StoredEntry<T>,
    { reason, ...served }: Served,
    copy: Pick<CachedCopy, 'ttlMs' | 'ageMs'> | null = null,
  ): CacheRead<T> {
    const { entry, kind } = stored;
    const { clock, events, purges } = this.#options;
    const { ttlMs, ageMs } = copy ?? freshnessOf({ request, set }, stored, this.#options, clock.nowMs());
    events.onRead?.({
      class: classOf(kind, entry),
      key: request.key,
      keyId: reader.keyId,
      keyHash: request.keyHash,
      copyHash: copyHashOf(request, stored),
      items: itemHashesOf(request, stored),
      outcome: served.outcome,
      tier: served.tier,
      missReason: reason,
      failure: served.failure,
      ageMs,
      durationMs: this.#sinceMs(startedMicros),
    });
    const isAwaited = purges.changeTable.lagOf(stored, clock.nowMs()) !== null;
    return { entry, ttlMs: isAwaited ? Math.min(0, ttlMs) : ttlMs, ageMs, isAwaited, ...served };
  }

  /** There is nothing to serve. */
  #reportFailed<T>(
    { request: { key, keyHash, kind }, startedMicros }: Read<T>,
    reason: MissReason,
    failure: StoreErrorKind,
  ): void {
    const nothing = { copyHash: keyHash, items: [], outcome: 'failed', tier: null, ageMs: null } as const;
    const durationMs = this.#sinceMs(startedMicros);
    this.#options.events.onRead?.({ class: kind, key, keyHash, ...nothing, missReason: reason, failure, durationMs });
  }

  #missReason<T>({ kind, key }: CacheRequest<T>, previous: CachedCopy<T> | null): MissReason {
    const cacheClass = previous === null ? kind : classOf(kind, previous.stored.entry);
    const { ttl, memory } = this.#options;
    return missReasonOf(previous, ttl.of(cacheClass), memory.droppedFor(key));
  }

  #reportEvicted<T>({ kind, key }: CacheRequest<T>): void {
    const { ttl, memory, clock, events } = this.#options;
    const evicted = memory.takeEvicted(key);
    if (evicted === null || clock.nowMs() - evicted.requestedAtMs >= ttl.of(kind).freshMs) return;
    events.onEvicted?.({ moreBytes: evicted.moreBytes });
  }

  #sinceMs(startedMicros: number): number {
    return (this.#options.clock.nowMicros() - startedMicros) / 1000;
  }
}

function tooManyWaiting(): StoreError {
  const details = { retryAfterMs: 1000 };
  return new StoreError('overloaded', 'as many readers wait for the store as may, or as may of one key', details);
}

function outcomeOf(copy: CachedCopy): ReadOutcome {
  if (copy.state === 'fresh') return 'hit';
  if (copy.state === 'changed') return 'changed';
  return isServedAtOnce(copy) ? 'stale-while-revalidate' : 'stale-if-error';
}
