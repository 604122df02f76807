/**
 * The read-through cache: memory, then the shared cache, then one flight to the store. Fresh copies are served as they
 * are, stale ones while one refresh runs in the background, older ones when the store fails or takes too long.
 */
import type { MissReason } from './events.ts';
import { withDeadline } from '../time/timers.ts';
import { StoreError } from '../upstream/store-error.ts';
import { assess, visibleCopies, type ReadThroughParts, Copies, newerOf } from './copies.ts';
import { classOf, itemHashesOf, type StoredEntry } from './entry.ts';
import { type FlightResult, type Flight, Flights } from './flights.ts';
import { maintenanceError } from '../upstream/maintenance.ts';
import { OriginFetcher } from './origin-fetch.ts';
import { type CachedCopy, freshnessOf, isAtOnce, isServedAtOnce, isUsable, missReasonOf, plan } from './plan.ts';
import { isPurged } from './purge-log.ts';
import {
  type Cache,
  type CacheRead,
  copyHashOf,
  type FlightView,
  isOfKind,
  type Reader,
  type ReadOutcome,
} from './reader.ts';
import type { CacheRequest } from './request.ts';

/** How long a reader waits for the store if there is a copy to serve instead (C3). */
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

type End =
  | { readonly kind: 'landed'; readonly result: FlightResult }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'late' };

type Served = Pick<CacheRead<unknown>, 'outcome' | 'tier' | 'stored' | 'forward'> & {
  /** Null for reads that the cache answered at once. */
  readonly reason: MissReason | null;
};

export class ReadThrough implements Cache {
  readonly #options: ReadThroughParts;
  readonly #copies: Copies;
  readonly #flights: Flights;

  constructor(options: ReadThroughParts) {
    this.#options = options;
    this.#copies = new Copies(options);
    this.#flights = new Flights(new OriginFetcher(options, this.#copies), options);
  }

  flightOf(key: string, reader: Pick<Reader, 'workspaceIds'> | null): FlightView {
    return this.#flights.flightOf(key, reader);
  }

  async read<T>(request: CacheRequest<T>, reader: Reader): Promise<CacheRead<T>> {
    const read = { request, reader, startedMicros: this.#options.clock.nowMicros() };
    const maintenance = this.#options.maintenance.current();
    let found = this.#copies.inMemory(request, reader);
    let next = plan(visibleCopies(found, request, reader), maintenance);
    if (!isAtOnce(next)) {
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
        return await this.#fetchOrFallBack({ ...read, ...next, reason: this.#missReason(request, next.previous) });
      case 'refuse':
        break;
    }
    this.#reportFailed(read, this.#missReason(request, next.previous));
    throw maintenanceError(next.maintenance, this.#options.clock);
  }

  /** One refresh, which nobody waits for. If the last one has just failed, none is begun. */
  #refreshInBackground<T>({ request, reader }: Read<T>, { stored }: CachedCopy<T>): void {
    const { result } = this.#flights.join({ request, reader, previous: stored, isBackground: true, isWanted: always });
    // The flight reports its failure. The reader has been served a copy.
    result.catch(() => undefined);
  }

  async #fetchOrFallBack<T>(miss: Miss<T>): Promise<CacheRead<T>> {
    const { request, reader, previous } = miss;
    if (reader.mayWait?.() === false) return this.#fallBack(miss, tooManyWaiting());
    // A call that renews a copy is of use also if the reader that caused it has gone.
    const isWanted = previous === null ? (reader.isWaiting ?? always) : always;
    const task = { request, reader, previous: previous?.stored ?? null, isBackground: false, isWanted };
    let flight: Flight<FlightResult>;
    let end: End;
    // A flight that was under way may have read the store before a purge that this reader has seen: it needs a later one.
    do {
      flight = this.#flights.join(task);
      end = await this.#endOf(flight, miss.fallback !== null);
    } while (end.kind === 'landed' && !flight.startedByCaller && isPurged(this.#options.purges, end.result.stored));
    const fallback = this.#fallbackNow(miss);
    if (end.kind === 'late' && fallback === null) {
      // The copy has become unusable during the wait.
      end = await this.#endOf(flight, false);
    }
    if (end.kind === 'landed')
      return this.#serveResult(miss, end.result, { startedByCaller: flight.startedByCaller, fallback });
    return this.#fallBack(
      miss,
      end.kind === 'failed' ? end.error : new StoreError('timeout', 'the flight did not end'),
    );
  }

  /** Serves the fallback, unless it is over by now. Throws the error if there is none. */
  #fallBack<T>(miss: Miss<T>, error: unknown): CacheRead<T> {
    const fallback = this.#fallbackNow(miss);
    if (fallback !== null) return this.#serveCopy(miss, fallback, miss.reason);
    this.#reportFailed(miss, miss.reason);
    throw error;
  }

  /** `isBounded`: whether to stop waiting after `PATIENCE_MS`, because there is a copy to serve instead. */
  async #endOf(flight: Flight<FlightResult>, isBounded: boolean): Promise<End> {
    const landed = flight.result.then(
      (result): End => ({ kind: 'landed', result }),
      (error: unknown): End => ({ kind: 'failed', error }),
    );
    if (!isBounded) return await landed;
    const { clock, timers } = this.#options;
    // A reader that comes later needn't find out anew that the store is slow.
    const leftMs = Math.max(0, flight.startedAtMs + PATIENCE_MS - clock.nowMs());
    return await withDeadline(landed, leftMs, timers, (): End => ({ kind: 'late' }));
  }

  /** The fallback, unless it is over by now. */
  #fallbackNow<T>({ request, fallback }: Miss<T>): CachedCopy<T> | null {
    const copy = fallback === null ? null : assess(request, fallback.stored, fallback.tier, this.#options);
    return copy !== null && isUsable(copy) ? copy : null;
  }

  #serveResult<T>(
    miss: Miss<T>,
    { stored, from, isStored, isForeign }: FlightResult,
    { startedByCaller, fallback }: { readonly startedByCaller: boolean; readonly fallback: CachedCopy<T> | null },
  ): CacheRead<T> {
    const { request, reason } = miss;
    if (from === 'memory' || from === 'redis') {
      const copy = assess(request, stored, from, this.#options);
      if (copy !== null) return this.#serveCopy(miss, copy, null);
    }
    // A good copy stays unless the store itself says that there is no record (Q9): it may name a wrong workspace by mistake.
    const isCopy = fallback?.stored.entry.answer.kind === 'found';
    if (isForeign && isCopy) return this.#serveCopy(miss, fallback, reason);
    if (!isOfKind(request, stored))
      throw new Error(`A flight of ${request.key} has brought the answer to another request.`);
    const outcome = from === 'store' && startedByCaller ? 'miss' : 'collapsed';
    const forward = miss.previous === null || miss.previous.state === 'purged' ? 'uri-miss' : 'stale';
    return this.#serve(miss, stored, { outcome, tier: null, stored: isStored, reason, forward });
  }

  #serveCopy<T>(read: Read<T>, copy: CachedCopy<T>, reason: MissReason | null): CacheRead<T> {
    const served = { outcome: outcomeOf(copy), tier: copy.tier, stored: true, reason };
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
    return missReasonOf(previous, ttl.of(cacheClass), previous === null && memory.wasEvicted(key));
  }

  #sinceMs(startedMicros: number): number {
    return (this.#options.clock.nowMicros() - startedMicros) / 1000;
  }
}

function tooManyWaiting(): StoreError {
  const details = { retryAfterMs: 1000 };
  return new StoreError('overloaded', 'as many readers wait for the store as may, or as may of one key', details);
}

function always(): boolean {
  return true;
}

function outcomeOf(copy: CachedCopy): ReadOutcome {
  if (copy.state === 'fresh') return 'hit';
  return isServedAtOnce(copy) ? 'stale-while-revalidate' : 'stale-if-error';
}
