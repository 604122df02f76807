/**
 * Fetches from the store: one call per key in this process (flights.ts), and one among all processes, by a lease. It goes
 * acquire → fetch → complete → memory, in that order. If the process that holds the lease dies, the lease lapses (2 s after
 * its last renewal), one of those that wait takes over in `#follow`, and the others follow that one.
 */
import type { LeaseWaitEnd } from './events.ts';
import { withDeadline } from '../time/timers.ts';
import { unrecorded } from '../tracing/spans.ts';
import { asStoreError, StoreError, type StoreErrorKind } from '../upstream/store-error.ts';
import { visibleCopies, type ReadThroughParts, type Copies, type FoundCopies, newerOf } from './copies.ts';
import {
  type Answered,
  type Backfill,
  backfillsOf,
  classOf,
  entryOfAnswer,
  type Learned,
  learnedOf,
  negativeEntry,
  newItemsOf,
  type StoredEntry,
} from './entry.ts';
import type { CacheRequest } from './request.ts';
import { type CachedCopy, plan } from './plan.ts';
import { isPurged } from './purge-log.ts';
import { copyHashOf, isFailureVisible, isVisible, type Reader, type Tier, workspaceSetOf } from './reader.ts';
import {
  type Completion,
  type FailedCall,
  fromFailure,
  type Lease,
  type LeaseAttempt,
  NOTHING,
  OWN_LEASE,
  toFailure,
} from './shared-cache.ts';
import { isCacheable } from './ttl-policy.ts';

export interface FetchTask<T = unknown> {
  readonly request: CacheRequest<T>;
  /** The reader that caused it. */
  readonly reader: Reader;
  /** The copy that is not good enough: its validator makes the call conditional. */
  readonly previous: StoredEntry<T> | null;
  /** A background refresh of a copy that was served: no reader waits for it. */
  readonly isBackground: boolean;
  /** Whether anybody still waits for it: asked right before the call is sent. */
  readonly isWanted: () => boolean;
}

/** How a flight ended, unless it rejects. */
export interface FetchResult {
  /** The store's answer, or the copy that made asking the store needless. */
  readonly stored: StoredEntry;
  /**
   * `store`: this flight called it. `elsewhere`: another flight did, here or in another process. A tier: the copy was there
   * before the flight began. The values are public, in spans.
   */
  readonly from: 'store' | 'elsewhere' | Tier;
  /** Whether a tier keeps the answer for later readers. */
  readonly isStored: boolean;
  /**
   * Set if the call failed, but the reader who caused it may not learn of that, or has not caused it. `stored` is a negative
   * entry then; a reader who may learn of it gets the failure.
   */
  readonly failure: StoreError | null;
  /**
   * Set if another process made the call, for other workspaces: `stored` and `failure` are nobody's answer here as they are,
   * and a reader who has waited is answered no sooner, Unix milliseconds.
   */
  readonly notBeforeMs?: number;
}

type Called<T> = Answered<T> & Pick<FetchResult, 'failure'>;

/** How long a waiter trusts to be woken before it asks for the lease again. */
const LOOK_EVERY_MS = 250;
/** The call was never sent. */
const NOT_SENT: ReadonlySet<StoreErrorKind> = new Set(['overloaded', 'circuitOpen', 'maintenance'] as const);

export class OriginFetcher {
  readonly #options: ReadThroughParts;
  readonly #copies: Copies;

  constructor(options: ReadThroughParts, copies: Copies) {
    this.#options = options;
    this.#copies = copies;
  }

  /** Rejects with a StoreError and nothing else. */
  async fetch<T>(task: FetchTask<T>): Promise<FetchResult> {
    try {
      return await this.#fly(task);
    } catch (error) {
      const storeError = asStoreError(error);
      const isRefresh = task.previous !== null && storeError.kind !== 'maintenance';
      if (isRefresh) this.#reportRefreshFailed(task, storeError);
      throw storeError;
    }
  }

  /** For readers who have waited for a call that others had caused. False if it is kept nowhere. */
  keepNegative<T>({ request: { key }, reader }: FetchTask<T>, negative: StoredEntry<T>): boolean {
    const { memory, sharedCache, purges } = this.#options;
    if (isPurged(purges, negative)) return false;
    void this.#try('set', () => sharedCache.setNegative(key, workspaceSetOf(reader), negative));
    return memory.setNegative(key, workspaceSetOf(reader), negative);
  }

  /** The same of a failure: for a while these readers do not ask again, wherever they come (K7a). */
  keepFailure<T>({ request: { key }, reader }: FetchTask<T>, failure: StoreError): void {
    if (!isForOthers(failure)) return;
    void this.#try('fail', () => this.#options.sharedCache.setFailure(key, workspaceSetOf(reader), toFailure(failure)));
  }

  async #fly<T>(task: FetchTask<T>): Promise<FetchResult> {
    // Between a reader's look and its flight another flight of the key may have ended.
    const local = this.#copies.inMemory(task.request, task.reader);
    const copy = sufficientCopy(local, task);
    if (copy !== null) return foundIn(copy.tier, copy);
    const attempt = await this.#acquire(task, local);
    return attempt.status === 'taken' ? this.#follow(task, local) : this.#proceed(task, local, attempt);
  }

  async #proceed<T>(
    task: FetchTask<T>,
    local: FoundCopies<T>,
    attempt: Exclude<LeaseAttempt, { status: 'taken' }>,
  ): Promise<FetchResult> {
    if (attempt.status === 'failed') throw fromFailure(attempt.failure);
    const { lease, found } = attempt;
    // Another process may have stored and left between this reader's look and its lease.
    const shared = this.#copies.adopt(task.request, task.reader, found);
    const copy = sufficientCopy(newerOf(local, shared), task);
    if (copy === null) return this.#lead(task, lease);
    void this.#try('release', () => lease.release());
    return foundIn(copy.tier, copy);
  }

  /** Asks the store, for all processes. */
  async #lead<T>(task: FetchTask<T>, lease: Lease): Promise<FetchResult> {
    const { request, reader } = task;
    const { stored, failure } = await this.#callUnder(lease, task);
    const isOwn = isVisible(request, stored, reader);
    const isAbsent = stored.entry.answer.kind === 'absent' && failure === null;
    const negative = isOwn ? null : negativeEntry(request, learnedOf(stored));
    // A record of another workspace is never stored on behalf of this reader: its owner's copy stays (C4).
    const entry = isOwn || isAbsent ? stored : null;
    const completion = await this.#try('complete', () => withinWait(task, lease.complete({ entry, negative })));
    const isStored = this.#keep(task, { entry, negative }, completion ?? 'unshared');
    return { stored, from: 'store', isStored, failure };
  }

  /** Keeps what the store has answered, unless a purge has come since the call began. */
  #keep<T>(
    { request, reader }: FetchTask<T>,
    { entry, negative }: { readonly entry: StoredEntry<T> | null; readonly negative: StoredEntry<T> | null },
    completion: Completion,
  ): boolean {
    const { memory, purges, ttl } = this.#options;
    const served = negative ?? entry;
    if (completion === 'lost' || served === null || isPurged(purges, served)) return false;
    let isInMemory = entry !== null && memory.set(request.key, entry);
    if (negative !== null) isInMemory = memory.setNegative(request.key, workspaceSetOf(reader), negative);
    if (entry !== null) this.#backfill(backfillsOf(request, entry, (key) => memory.get(key)));
    return (isInMemory || completion === 'stored') && isCacheable(ttl.of(classOf(request.kind, served.entry)));
  }

  #backfill(entries: readonly Backfill[]): void {
    if (entries.length === 0) return;
    this.#options.memory.backfill(entries);
    const { events } = this.#options;
    for (const { refresh } of entries) if (refresh !== null) events.onRefresh?.(refresh);
    void this.#try('backfill', () => this.#options.sharedCache.backfill(entries));
  }

  /**
   * Waits for the process that has the lease. It subscribes before it looks, so that it hears of every call that ends, and
   * takes over when the lease lapses.
   */
  async #follow<T>(task: FetchTask<T>, local: FoundCopies<T>): Promise<FetchResult> {
    const { clock, purges, sharedCache, events, maxWaitMs } = this.#options;
    const { kind, key } = task.request;
    const [epoch, beganAtMs] = [purges.epoch(), clock.nowMs()];
    const endForOthers = (learned: Learned, failure: StoreError | null): FetchResult => {
      const notBeforeMs = beganAtMs + learned.receivedAtMs - learned.requestedAtMs;
      return { stored: negativeEntry(task.request, learned), from: 'elsewhere', isStored: false, failure, notBeforeMs };
    };
    const report = (end: LeaseWaitEnd): void =>
      events.onLeaseWait?.({ class: kind, key, end, durationMs: clock.nowMs() - beganAtMs });
    const following = sharedCache.follow(key);
    let found = local;
    let mustLook = true;
    try {
      while (clock.nowMs() - beganAtMs < maxWaitMs) {
        // Looks several times a second would hide all other spans.
        const look = () => this.#copies.inSharedCache(task.request, task.reader);
        if (mustLook) found = newerOf(local, await unrecorded(look));
        const copy = mustLook ? (sufficientCopy(found, task) ?? newsOf(found, local, task)) : null;
        if (copy !== null) {
          report('stored');
          return foundIn('elsewhere', copy);
        }
        if (mustLook && found.foreign !== null && found.foreign.receivedAtMs >= beganAtMs) {
          report('stored');
          return endForOthers(found.foreign, null);
        }
        const newest = found;
        const attempt = await unrecorded(() => this.#acquire(task, newest));
        if (attempt.status !== 'taken') {
          report(attempt.status === 'failed' ? 'failed' : 'taken-over');
          return await this.#proceed(task, found, attempt);
        }
        const end = await following.next(LOOK_EVERY_MS);
        // A failure of a call for the same workspaces needs no case here: `#acquire` returns it in the next turn.
        if (end?.kind === 'failed' && isOfOthers(end, task)) {
          report('failed');
          const receivedAtMs = beganAtMs + end.tookMs;
          return endForOthers({ epoch, requestedAtMs: beganAtMs, receivedAtMs }, fromFailure(end.failure));
        }
        mustLook = end?.kind === 'stored';
      }
      report('timeout');
      throw new StoreError('timeout', `another process's call to the store took longer than ${maxWaitMs} ms`);
    } finally {
      following.close();
    }
  }

  async #acquire<T>(task: FetchTask<T>, { newest }: FoundCopies<T>): Promise<LeaseAttempt> {
    const { request, reader } = task;
    const attempt = await this.#try('acquire', () => {
      const answer = this.#options.sharedCache.acquire({
        key: request.key,
        workspaceIds: reader.workspaceIds,
        // After a purge a copy of the same millisecond may have taken its place.
        newerThanMs: newest === null || newest.state === 'purged' ? null : newest.stored.entry.requestedAtMs,
      });
      return withinWait(task, answer);
    });
    // If the shared cache can't be asked, each process asks the store for itself.
    return attempt ?? { status: 'acquired', lease: OWN_LEASE, found: NOTHING };
  }

  /** Makes the call, and reports its failure to the other processes. */
  async #callUnder<T>(lease: Lease, task: FetchTask<T>): Promise<Called<T>> {
    const beganAtMs = this.#options.clock.nowMs();
    try {
      return await this.#call(task);
    } catch (error) {
      const failure = asStoreError(error);
      const tookMs = this.#options.clock.nowMs() - beganAtMs;
      if (isForOthers(failure)) void this.#try('fail', () => lease.fail(toFailure(failure), tookMs));
      else void this.#try('release', () => lease.release());
      throw error;
    }
  }

  async #call<T>(task: FetchTask<T>): Promise<Called<T>> {
    const { fetch, purges, clock, timers, events, maxWaitMs } = this.#options;
    const { request, reader, isWanted, isBackground } = task;
    const { key, kind } = request;
    // A copy that was purged while this flight waited for its turn is no base to renew anything on.
    const previous = task.previous !== null && isPurged(purges, task.previous) ? null : task.previous;
    // Read before the call: a purge or a change that comes while it is under way is later than the answer.
    const [epoch, requestedAtMs, beganMicros] = [purges.epoch(), clock.nowMs(), clock.nowMicros()];
    const reportCall = (cacheClass: ReturnType<typeof classOf>): void => {
      const durationMs = (clock.nowMicros() - beganMicros) / 1000;
      events.onStoreCall?.({ class: cacheClass, key, route: reader.route ?? null, durationMs });
    };
    try {
      const call = request.send(fetch, { ...fetchOptions(previous, reader), isWanted, isBackground });
      const answer = await withDeadline(call, maxWaitMs, timers, () => {
        throw new StoreError('timeout', `the store did not answer within ${maxWaitMs} ms`);
      });
      const fetched = entryOfAnswer(request, previous, answer, { requestedAtMs, epoch, receivedAtMs: clock.nowMs() });
      reportCall(classOf(kind, fetched.stored.entry));
      this.#reportFill(task, fetched);
      return { ...fetched, failure: null };
    } catch (error) {
      if (!(error instanceof StoreError && NOT_SENT.has(error.kind))) reportCall(kind);
      if (!(error instanceof StoreError && !isFailureVisible(error, reader))) throw error;
      // To this reader there is no such record, whatever is wrong with it.
      if (previous !== null) this.#reportRefreshFailed(task, error);
      const learned = { requestedAtMs, epoch, receivedAtMs: clock.nowMs() };
      return { stored: negativeEntry(request, learned), isChanged: null, failure: error };
    }
  }

  #reportFill<T>({ request, reader, previous }: FetchTask<T>, { stored, isChanged }: Answered<T>): void {
    const { events } = this.#options;
    const { entry, kind } = stored;
    if (previous === null || isChanged === null) return;
    const isOthers = entry.answer.kind === 'found' && !isVisible(request, stored, reader);
    if (isOthers && previous.entry.answer.kind === 'found') {
      const message = `the answer (${kind}) is of another workspace than the one that was asked for`;
      const error = new StoreError('malformed', message);
      events.onRefreshFailed?.({ class: classOf(kind, entry), key: request.key, error });
      return;
    }
    // To these readers a foreign record is as absent as before (K7a).
    const isNews = isChanged && !isOthers;
    events.onRefresh?.({
      class: classOf(kind, previous.entry),
      copyHash: copyHashOf(request, previous, reader),
      changed: newItemsOf(request, previous.entry, entry) ?? (isNews ? 1 : 0),
      sinceMs: entry.requestedAtMs - previous.entry.requestedAtMs,
      createdAtMs: entry.answer.kind === 'found' && !isOthers ? request.createdAtMs(entry.answer.record) : null,
    });
  }

  #reportRefreshFailed<T>({ request: { kind, key } }: FetchTask<T>, error: StoreError): void {
    this.#options.events.onRefreshFailed?.({ class: kind, key, error });
  }

  /** Undefined if the shared cache fails: that is reported, and never a reader's trouble. */
  async #try<R>(operation: string, run: () => Promise<R>): Promise<R | undefined> {
    try {
      return await run();
    } catch (error) {
      this.#options.events.onSharedCacheFailed?.({ operation, error });
      return undefined;
    }
  }
}

/**
 * Some failures say nothing of the store: nobody here waited for the call any more, or this process did not send it. Other
 * processes do not get those, since their own call may go through, and a maintenance may end at any moment.
 */
function isForOthers({ kind }: StoreError): boolean {
  return kind !== 'aborted' && !NOT_SENT.has(kind);
}

/** Whether the failed call was for other workspaces, and the reader holds no copy by which the record is known to be its own. */
function isOfOthers<T>({ workspaceSet }: FailedCall, { reader, previous }: FetchTask<T>): boolean {
  return workspaceSet !== null && workspaceSet !== workspaceSetOf(reader) && previous?.entry.answer.kind !== 'found';
}

/** The copy that the reader can be served without asking the store; null if the store has to be asked. */
function sufficientCopy<T>(found: FoundCopies<T>, { request, reader }: FetchTask<T>): CachedCopy<T> | null {
  const next = plan(visibleCopies(found, request, reader), null);
  return next.action === 'serve' || next.action === 'serve-fallback' ? next.copy : null;
}

/** If a class is never fresh, an answer that another process has just stored is still news to those who waited for it. */
function newsOf<T>(
  found: FoundCopies<T>,
  local: FoundCopies<T>,
  { request, reader, previous }: FetchTask<T>,
): CachedCopy<T> | null {
  const seen = [previous, local.newest?.stored, local.negative?.stored];
  const seenAtMs = Math.max(...seen.map((stored) => stored?.entry.requestedAtMs ?? Number.NEGATIVE_INFINITY));
  const { copy, negative } = visibleCopies(found, request, reader);
  return [copy, negative].find((each) => each !== null && each.state !== 'purged' && isAfter(each, seenAtMs)) ?? null;
}

function isAfter({ stored }: CachedCopy, atMs: number): boolean {
  return stored.entry.requestedAtMs > atMs;
}

function foundIn(from: FetchResult['from'], { stored }: CachedCopy): FetchResult {
  return { stored, from, isStored: true, failure: null };
}

function fetchOptions(previous: StoredEntry | null, { requestId, traceparent, keyId }: Reader) {
  const etag = previous?.entry.answer.kind === 'found' ? previous.entry.answer.etag : null;
  return {
    requestId,
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(keyId === undefined ? {} : { keyId }),
    ...(etag === null ? {} : { ifNoneMatch: etag }),
  };
}

/** The same answer of Redis; rejects once the reader has waited for Redis long enough (R6). No reader waits for a background refresh. */
function withinWait<T, R>({ reader, isBackground }: FetchTask<T>, answer: Promise<R>): Promise<R> {
  return isBackground || reader.redisWait === undefined ? answer : reader.redisWait.within(answer);
}
