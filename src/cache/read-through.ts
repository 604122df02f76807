/**
 * The read-through cache: memory, then the shared cache, then one flight to the store. Fresh copies are served as they
 * are, stale ones while one refresh runs in the background, older ones when the store fails or takes too long.
 */
import type { MissReason } from './events.ts';
import { withDeadline } from '../time/timers.ts';
import { Batches } from '../time/turns.ts';
import { asStoreError, StoreError } from '../upstream/store-error.ts';
import { assess, visibleCopies, type ReadThroughParts, Copies, newerOf } from './copies.ts';
import { classOf, itemHashesOf, type StoredEntry } from './entry.ts';
import { Flights, type Landing } from './flights.ts';
import { maintenanceError } from '../upstream/maintenance.ts';
import { type CachedCopy, freshnessOf, isAtOnce, isServedAtOnce, isUsable, missReasonOf, plan } from './plan.ts';
import { isPurged } from './purge-log.ts';
import {
  type Cache,
  type CacheRead,
  copyHashOf,
  type FlightView,
  isFailureVisible,
  isOfKind,
  isVisible,
  type Reader,
  type ReadOutcome,
  workspaceSetOf,
} from './reader.ts';
import type { CacheRequest } from './request.ts';
import type { Flight } from './single-flight.ts';

/** How long a reader waits for the store if there is a copy to serve instead (C3: then it gets the copy). */
const PATIENCE_MS = 1000;

interface Read<T> {
  readonly request: CacheRequest<T>;
  readonly reader: Reader;
  readonly startedMicros: number;
}

/** A read that goes to the store. */
interface Miss<T> extends Read<T> {
  readonly previous: CachedCopy<T> | null;
  readonly fallback: CachedCopy<T> | null;
  readonly reason: MissReason;
}

type WaitEnd =
  | { readonly kind: 'landed'; readonly landing: Landing }
  | { readonly kind: 'failed'; readonly error: StoreError }
  | { readonly kind: 'late' };

type Served = Pick<CacheRead<unknown>, 'outcome' | 'tier' | 'isKept' | 'forward'> & {
  /** Null for reads that the cache answered at once. */
  readonly reason: MissReason | null;
};

export class ReadThrough implements Cache {
  readonly #options: ReadThroughParts;
  readonly #copies: Copies;
  readonly #flights: Flights;
  /** Readers whose flight has ended. */
  readonly #landed = new Batches();

  constructor(options: ReadThroughParts) {
    this.#options = options;
    this.#copies = new Copies(options);
    this.#flights = new Flights(options, this.#copies);
  }

  flightOf(key: string, audience: string | null): FlightView {
    return this.#flights.flightOf(key, audience);
  }

  /** How many of the calls to the store that are under way now have not ended within that time. */
  settled(withinMs: number): Promise<number> {
    return this.#flights.settled(withinMs);
  }

  async read<T>(request: CacheRequest<T>, reader: Reader): Promise<CacheRead<T>> {
    const read = { request, reader, startedMicros: this.#options.clock.nowMicros() };
    for (;;) {
      const served = await this.#readOnce(read);
      if (served !== null) return served;
    }
  }

  /** Null if the read has waited for a flight that is no answer to it, and has to look again. */
  async #readOnce<T>(read: Read<T>): Promise<CacheRead<T> | null> {
    const { request, reader } = read;
    // Before anything in memory is looked at.
    const proof = this.#options.purges.prove();
    if (proof !== null) await (reader.redisWait?.within(proof).catch(() => undefined) ?? proof);
    const maintenance = this.#options.maintenance.current();
    let found = this.#copies.inMemory(request, reader);
    let next = plan(visibleCopies(found, request, reader), maintenance);
    if (!isAtOnce(next) || !this.#options.sharedCache.isHeard()) {
      found = newerOf(found, await this.#copies.inSharedCache(request, reader));
      next = plan(visibleCopies(found, request, reader), maintenance);
    }
    switch (next.action) {
      case 'serve':
        return this.#serveCopy(read, next.copy, null);
      case 'serve-and-refresh':
        this.#refreshInBackground(read, next.copy);
        return this.#serveCopy(read, next.copy, null);
      case 'serve-fallback':
        return this.#serveCopy(read, next.copy, this.#missReason(request, next.copy));
      case 'fetch':
        if (next.previous === null) this.#reportEvicted(request);
        return await this.#fetchOrFallBack({ ...read, ...next, reason: this.#missReason(request, next.previous) });
      case 'refuse':
        break;
    }
    this.#reportFailed(read, this.#missReason(request, next.previous));
    throw maintenanceError(next.maintenance, this.#options.clock);
  }

  /** One refresh, which nobody waits for. If the last one has just failed, none is begun. */
  #refreshInBackground<T>({ request, reader }: Read<T>, previous: CachedCopy<T>): void {
    // The flight reports its failure. The reader has been served a copy.
    this.#flights.join({ request, reader, previous, isBackground: true }).result.catch(() => undefined);
  }

  async #fetchOrFallBack<T>(miss: Miss<T>): Promise<CacheRead<T> | null> {
    const { request, reader, previous } = miss;
    if (reader.enterWaitingRoom?.() === false) return this.#fallBack(miss, tooManyWaiting());
    // A call that renews a copy is of use also if the reader that caused it has gone.
    const flight = this.#flights.join(
      { request, reader, previous, isBackground: false },
      previous === null ? reader.signal : undefined,
    );
    let end = await this.#endOf(flight, miss.fallback !== null);
    const fallback = this.#fallbackNow(miss);
    if (end.kind === 'late' && fallback === null) {
      // The copy has become unusable during the wait.
      end = await this.#endOf(flight, false);
    }
    await this.#landed.next();
    if (!flight.startedByCaller && this.#mustLookAgain(miss, end, flight.signal)) return null;
    if (end.kind === 'landed') return this.#serveLanding(miss, end.landing, flight);
    return this.#fallBack(
      miss,
      end.kind === 'failed' ? end.error : new StoreError('timeout', 'the flight did not end'),
    );
  }

  /** Serves the fallback, unless it is over by now. Throws the error if there is none. */
  #fallBack<T>(miss: Miss<T>, error: StoreError): CacheRead<T> {
    const fallback = this.#fallbackNow(miss);
    if (fallback !== null) return this.#serveCopy(miss, fallback, miss.reason);
    this.#reportFailed(miss, miss.reason);
    throw error;
  }

  /**
   * Whether a flight that another reader began is no answer to this one:
   * - It read the store before a purge that this reader has seen.
   * - It renewed a copy for a reader of another set of workspaces, and what it brought is not for this one.
   * - All others left before its call was sent.
   */
  #mustLookAgain<T>({ request, reader }: Miss<T>, end: WaitEnd, signal: AbortSignal): boolean {
    if (end.kind === 'late') return false;
    if (end.kind === 'failed') {
      const { error } = end;
      if (error.kind === 'aborted') return signal.aborted && reader.signal?.aborted !== true;
      return !isFailureVisible(error, reader);
    }
    const { served, workspaceSet } = end.landing;
    if (isPurged(this.#options.purges, served)) return true;
    return workspaceSet !== workspaceSetOf(reader) && !isVisible(request, served, reader);
  }

  /** `isBounded`: whether to stop waiting after `PATIENCE_MS`, because there is a copy to serve instead. */
  async #endOf(flight: Flight<Landing>, isBounded: boolean): Promise<WaitEnd> {
    const landed = flight.result.then(
      (landing): WaitEnd => ({ kind: 'landed', landing }),
      (error: unknown): WaitEnd => ({ kind: 'failed', error: asStoreError(error) }),
    );
    if (!isBounded) return await landed;
    const { clock, timers } = this.#options;
    // A reader that comes later needn't find out anew that the store is slow.
    const waitedMs = Math.max(0, clock.nowMs() - flight.startedAtMs);
    const leftMs = Math.max(0, PATIENCE_MS - waitedMs);
    return await withDeadline(landed, leftMs, timers, (): WaitEnd => ({ kind: 'late' }));
  }

  /** The fallback, unless it is over by now. */
  #fallbackNow<T>({ request, fallback }: Miss<T>): CachedCopy<T> | null {
    const copy = fallback === null ? null : assess(request, fallback.stored, fallback.tier, this.#options);
    return copy !== null && isUsable(copy) ? copy : null;
  }

  #serveLanding<T>(miss: Miss<T>, { served, from, isKept }: Landing, flight: Flight<Landing>): CacheRead<T> {
    const { request, reason } = miss;
    if (from === 'memory' || from === 'redis') {
      const copy = assess(request, served, from, this.#options);
      if (copy !== null) return this.#serveCopy(miss, copy, null);
    }
    if (!isOfKind(request, served))
      throw new Error(`A flight of ${request.key} has brought the answer to another request.`);
    const outcome = from === 'store' && flight.startedByCaller ? 'miss' : 'collapsed';
    const forward = miss.previous === null || miss.previous.state === 'purged' ? 'uri-miss' : 'stale';
    return this.#serve(miss, served, { outcome, tier: null, isKept, reason, forward });
  }

  #serveCopy<T>(read: Read<T>, copy: CachedCopy<T>, reason: MissReason | null): CacheRead<T> {
    const served = { outcome: outcomeOf(copy), tier: copy.tier, isKept: true, reason };
    return this.#serve(read, copy.stored, served, copy);
  }

  #serve<T>(
    { request, reader, startedMicros }: Read<T>,
    stored: StoredEntry<T>,
    { reason, ...served }: Served,
    copy: Pick<CachedCopy, 'ttlMs' | 'ageMs'> | null = null,
  ): CacheRead<T> {
    const { entry, kind } = stored;
    const { clock, events } = this.#options;
    const { ttlMs, ageMs } = copy ?? freshnessOf(request.keyHash, stored, this.#options, clock.nowMs());
    events.onRead?.({
      class: classOf(kind, entry),
      key: request.key,
      keyHash: request.keyHash,
      copyHash: copyHashOf(request, stored, reader),
      items: itemHashesOf(request, stored),
      outcome: served.outcome,
      tier: served.tier,
      missReason: reason,
      ageMs,
      durationMs: this.#sinceMs(startedMicros),
    });
    return { entry, ttlMs, ageMs, ...served };
  }

  /** There is nothing to serve. */
  #reportFailed<T>({ request: { key, keyHash, kind }, startedMicros }: Read<T>, reason: MissReason): void {
    const nothing = { copyHash: keyHash, items: [], outcome: 'failed', tier: null, ageMs: null } as const;
    const durationMs = this.#sinceMs(startedMicros);
    this.#options.events.onRead?.({ class: kind, key, keyHash, ...nothing, missReason: reason, durationMs });
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
  return isServedAtOnce(copy) ? 'stale-while-revalidate' : 'stale-if-error';
}
