/**
 * The read-through cache: memory, then the shared cache, then one flight to the store. Fresh copies are served as they
 * are, stale ones while one refresh runs behind, older ones when the store fails or takes too long.
 */
import type { Listener, MissReason } from '../telemetry/events.ts';
import { systemTimers } from '../timers.ts';
import { StoreError } from '../upstream/store.ts';
import { concernsOthers, isOfKind, isVisible, notFoundEntry, workspaceSetOf } from './access.ts';
import { authorize, Copies, newerOf } from './copies.ts';
import { classOf, type StoredEntry } from './entry.ts';
import { type MaintenanceWatch, NO_MAINTENANCE, maintenanceError } from './maintenance.ts';
import { type FetchResult, OriginFetcher, type OriginFetcherOptions } from './origin-fetch.ts';
import { type CachedCopy, freshnessOf, isAtOnce, isServedAtOnce, isUsable, missReasonOf, plan } from './plan.ts';
import type { Cache, CacheRead, FlightView, Reader, ReadOutcome } from './reader.ts';
import type { CacheRequest } from './request.ts';
import { UnsharedCache } from './shared-cache.ts';
import type { Flight } from './single-flight.ts';

type Optional = 'sharedCache' | 'timers' | 'events' | 'deadlineMs';

export interface ReadThroughOptions
  extends Omit<OriginFetcherOptions, Optional | 'copies'>, Partial<Pick<OriginFetcherOptions, Optional>> {
  /** While it is on, nothing is begun that would ask the store. */
  readonly maintenance?: MaintenanceWatch;
}

/** How long a reader waits for the store if there is a copy to serve instead (C3). */
const PATIENCE_MS = 1000;
const DEFAULT_DEADLINE_MS = 15_000;

interface Read<T> {
  readonly request: CacheRequest<T>;
  readonly reader: Reader;
  /** When the read began, Unix microseconds. */
  readonly startedMicros: number;
}

/** A read that goes to the store. */
interface Miss<T> extends Read<T> {
  readonly held: CachedCopy<T> | null;
  readonly fallback: CachedCopy<T> | null;
  readonly reason: MissReason;
}

type End =
  | { readonly kind: 'landed'; readonly result: FetchResult }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'late' };

type Served = Pick<CacheRead<unknown>, 'outcome' | 'tier' | 'stored' | 'forward'> & {
  /** Null for reads that the cache answered at once. */
  readonly reason: MissReason | null;
};

export class ReadThrough implements Cache {
  readonly #options: OriginFetcherOptions;
  readonly #maintenance: MaintenanceWatch;
  readonly #copies: Copies;
  readonly #origin: OriginFetcher;
  readonly #events: Listener;

  constructor({ maintenance = NO_MAINTENANCE, ...given }: ReadThroughOptions) {
    const defaults = {
      sharedCache: new UnsharedCache(),
      timers: systemTimers,
      events: {},
      deadlineMs: DEFAULT_DEADLINE_MS,
    };
    const options = { ...defaults, ...given };
    this.#copies = new Copies(options);
    this.#options = { ...options, copies: this.#copies };
    this.#origin = new OriginFetcher(this.#options);
    this.#maintenance = maintenance;
    this.#events = options.events;
  }

  /** The flight of a key in this process, for operators. */
  flightOf(key: string): FlightView {
    return this.#origin.flightOf(key);
  }

  async read<T>(request: CacheRequest<T>, reader: Reader): Promise<CacheRead<T>> {
    const read = { request, reader, startedMicros: this.#options.clock.nowMicros() };
    const maintenance = this.#maintenance.current();
    let found = this.#copies.inMemory(request, reader);
    let next = plan(authorize(found, request, reader), maintenance);
    if (!isAtOnce(next)) {
      found = newerOf(found, await this.#copies.inSharedCache(request, reader));
      next = plan(authorize(found, request, reader), maintenance);
    }
    switch (next.action) {
      case 'serve':
        return this.#serveCopy(read, next.copy, null);
      case 'serve-and-refresh':
        this.#refreshBehind(read, next.copy);
        return this.#serveCopy(read, next.copy, null);
      case 'serve-fallback':
        return this.#serveCopy(read, next.copy, this.#missReason(request, next.copy));
      case 'fetch':
        return await this.#fetchOrFallBack({ ...read, ...next, reason: this.#missReason(request, next.held) });
      case 'refuse':
        break;
    }
    this.#reportFailed(read, this.#missReason(request, next.held));
    throw maintenanceError(next.maintenance, this.#options.clock);
  }

  /** One refresh, which nobody waits for. If the last one has just failed, none is begun. */
  #refreshBehind<T>({ request, reader }: Read<T>, { stored }: CachedCopy<T>): void {
    const { result } = this.#origin.fetch({ request, reader, held: stored, isBackground: true });
    // The flight reports its failure. The reader has been served a copy.
    result.catch(() => undefined);
  }

  async #fetchOrFallBack<T>(miss: Miss<T>): Promise<CacheRead<T>> {
    const { request, reader, held } = miss;
    const task = { request, reader, held: held?.stored ?? null, isBackground: false };
    // A call that renews a copy is of use also if the reader that caused it has gone.
    const isWaiting = held === null ? reader.isWaiting : undefined;
    let flight: Flight<FetchResult>;
    let end: End;
    do {
      flight = this.#origin.fetch(task, isWaiting);
      end = await this.#endOf(flight, miss.fallback !== null);
    } while (end.kind === 'landed' && !flight.isLed && !this.#isNewsTo(miss, end.result));
    const fallback = this.#fallbackNow(miss);
    if (end.kind === 'late' && fallback === null) {
      // The copy has expired, or was purged, during the wait.
      end = await this.#endOf(flight, false);
    }
    if (end.kind === 'failed' && end.error instanceof StoreError && concernsOthers(end.error, reader)) {
      // A failure of somebody else's record is learned by nobody else: to this reader there is no such record (K7).
      end = { kind: 'landed', result: this.#absentBecause(end.error, request) };
    }
    if (end.kind === 'landed') return this.#serveResult(miss, end.result, { isLed: flight.isLed, fallback });
    if (fallback !== null) return this.#serveCopy(miss, fallback, miss.reason);
    this.#reportFailed(miss, miss.reason);
    throw end.kind === 'failed' ? end.error : new StoreError('timeout', 'the flight did not end');
  }

  /** `isBounded`: with a copy to fall back on, the wait for the store is. */
  async #endOf(flight: Flight<FetchResult>, isBounded: boolean): Promise<End> {
    const landed = flight.result.then(
      (result): End => ({ kind: 'landed', result }),
      (error: unknown): End => ({ kind: 'failed', error }),
    );
    if (!isBounded) return await landed;
    const { clock, timers } = this.#options;
    const { promise: late, resolve } = Promise.withResolvers<End>();
    // A reader that comes later needn't find out anew that the store is slow.
    const leftMs = Math.max(0, flight.startedAtMs + PATIENCE_MS - clock.nowMs());
    const cancel = timers.after(leftMs, () => resolve({ kind: 'late' }));
    return await Promise.race([landed, late]).finally(cancel);
  }

  /**
   * Whether a flight that was under way before this reader came has brought what one of its own would. Not if it began
   * before a purge of what this reader would be served, nor if it only found what is meant for another reader.
   */
  #isNewsTo<T>({ request, reader }: Read<T>, { stored, from }: FetchResult): boolean {
    const isOwn = isVisible(request, stored, reader.workspaceIds);
    const { tags } = isOwn ? stored : this.#negativeOf(request, stored);
    if (this.#options.purges.since(stored.position, tags) === 'hard') return false;
    return from === 'store' || isOwn;
  }

  #absentBecause<T>(failure: StoreError, request: CacheRequest<T>): FetchResult {
    const { clock, purges } = this.#options;
    const nowMs = clock.nowMs();
    const learned = { filledAtMs: nowMs, fetchedAtMs: nowMs, position: purges.position() };
    return { stored: notFoundEntry(request, learned), from: 'store', isStored: false, failure };
  }

  #negativeOf<T>(request: CacheRequest<T>, stored: StoredEntry): StoredEntry<T> {
    return notFoundEntry(request, { ...stored, filledAtMs: stored.entry.filledAtMs });
  }

  /** The fallback, unless it is over by now. */
  #fallbackNow<T>({ request, fallback }: Miss<T>): CachedCopy<T> | null {
    const copy = fallback === null ? null : this.#copies.assess(request, fallback.stored, fallback.tier);
    return copy !== null && isUsable(copy) ? copy : null;
  }

  /** Authorizes the result for this reader: several may have waited for it. */
  #serveResult<T>(
    miss: Miss<T>,
    result: FetchResult,
    { isLed, fallback }: { readonly isLed: boolean; readonly fallback: CachedCopy<T> | null },
  ): CacheRead<T> {
    const { request, reader, reason } = miss;
    const { stored, from, failure } = result;
    if (from === 'memory' || from === 'redis') {
      const copy = this.#copies.assess(request, stored, from);
      if (copy !== null) return this.#serveCopy(miss, copy, null);
    }
    const outcome = from === 'store' && isLed ? 'miss' : 'collapsed';
    const forward = miss.held === null || miss.held.state === 'purged' ? 'uri-miss' : 'stale';
    const served = { outcome, tier: null, stored: result.isStored, reason, forward } as const;
    const isOwn = from !== 'store' || isVisible(request, stored, reader.workspaceIds);
    if (isOwn && isOfKind(request, stored)) return this.#serve(miss, stored, served);
    if (failure !== null && !concernsOthers(failure, reader)) {
      if (fallback !== null) return this.#serveCopy(miss, fallback, reason);
      this.#reportFailed(miss, reason);
      throw failure;
    }
    // To this reader the record is absent. A good copy stays unless the store itself says that there is none (Q9).
    const negative = this.#negativeOf(request, stored);
    const isStored = isLed ? result.isStored : this.#keepNegative(miss, negative);
    const isForeign = stored.entry.answer.kind === 'found' || failure !== null;
    const isCopy = fallback?.stored.entry.answer.kind === 'found';
    if (fallback !== null && isForeign && isCopy) return this.#serveCopy(miss, fallback, reason);
    return this.#serve(miss, negative, { ...served, stored: isStored });
  }

  /** For a reader who has waited for another's flight. */
  #keepNegative<T>({ request: { key }, reader }: Read<T>, negative: StoredEntry<T>): boolean {
    const { memory, sharedCache, purges } = this.#options;
    if (purges.since(negative.position, negative.tags) === 'hard') return false;
    sharedCache.setNegative(key, workspaceSetOf(reader), negative).catch((error: unknown) => {
      this.#events.onFleetFailed?.({ operation: 'set', error });
    });
    return memory.setNegative(key, workspaceSetOf(reader), negative);
  }

  #serveCopy<T>(read: Read<T>, copy: CachedCopy<T>, reason: MissReason | null): CacheRead<T> {
    const served = { outcome: outcomeOf(copy), tier: copy.tier, stored: true, reason };
    return this.#serve(read, copy.stored, served, copy);
  }

  #serve<T>(
    { request, startedMicros }: Read<T>,
    stored: StoredEntry<T>,
    { reason, ...served }: Served,
    freshness: Pick<CachedCopy, 'ttlMs' | 'ageMs'> = this.#freshnessOf(request, stored),
  ): CacheRead<T> {
    const { entry, kind } = stored;
    const { ttlMs, ageMs } = freshness;
    this.#events.onRead?.({
      class: classOf(kind, entry),
      key: request.key,
      keyHash: request.keyHash,
      outcome: served.outcome,
      tier: served.tier,
      missReason: reason,
      ageMs,
      durationMs: this.#sinceMs(startedMicros),
    });
    return { entry, ttlMs, ageMs, ...served };
  }

  #freshnessOf<T>({ keyHash }: CacheRequest<T>, stored: StoredEntry<T>): Pick<CachedCopy, 'ttlMs' | 'ageMs'> {
    return freshnessOf(keyHash, stored, this.#options, this.#options.clock.nowMs());
  }

  /** There is nothing to serve. */
  #reportFailed<T>({ request: { key, keyHash, kind }, startedMicros }: Read<T>, reason: MissReason): void {
    const nothing = { outcome: 'failed', tier: null, ageMs: null } as const;
    const durationMs = this.#sinceMs(startedMicros);
    this.#events.onRead?.({ class: kind, key, keyHash, ...nothing, missReason: reason, durationMs });
  }

  #missReason<T>({ kind, key }: CacheRequest<T>, held: CachedCopy<T> | null): MissReason {
    const cacheClass = held === null ? kind : classOf(kind, held.stored.entry);
    const { times, memory } = this.#options;
    return missReasonOf(held, times.of(cacheClass), held === null && memory.wasEvicted(key));
  }

  #sinceMs(startedMicros: number): number {
    return (this.#options.clock.nowMicros() - startedMicros) / 1000;
  }
}

function outcomeOf(copy: CachedCopy): ReadOutcome {
  if (copy.state === 'fresh') return 'hit';
  return isServedAtOnce(copy) ? 'stale-while-revalidate' : 'stale-if-error';
}
