/**
 * A flight asks the store for one key and one audience, on behalf of all their readers in this process, and by a lease among
 * all processes (C10: one flight per key and set of workspaces): 1. look, 2. lease, 3. call, 4. complete, 5. keep.
 *
 * An audience (`audienceOf`) is a set of workspaces, or all who may see the copy that is renewed. Nothing of another
 * audience's flight is ever noticed: no joining, no waking, no failure, no negative entry. So a record of another workspace
 * looks like none (K7a: not by a second try either), because its readers share nothing with those who may not see it.
 *
 * A thousand readers of one set cost one call, and readers of n sets up to n, unless a copy is renewed. That fails as
 * follows:
 * - The process that has the lease dies: it lapses 2 s after its last renewal, and one of those who wait takes over.
 * - The process is paused past its lease: another takes over, and the late answer is stored nowhere.
 * - Redis does not answer: each process calls for itself (C8: it goes on without Redis).
 * - The store does not answer: the flight ends after `maxWaitMs`, for all who wait, here and elsewhere.
 */
import { LRUCache } from 'lru-cache';
import { withDeadline } from '../time/timers.ts';
import { unrecorded } from '../tracing/spans.ts';
import { asStoreError, StoreError } from '../upstream/store-error.ts';
import { type Copies, type FoundCopies, isNewer, newerOf, type ReadThroughParts, visibleCopies } from './copies.ts';
import { type Backfill, backfillsOf, classOf } from './entry.ts';
import type { LeaseWaitEnd } from './events.ts';
import { FlightSpans } from './flight-spans.ts';
import { audienceOf, type CachedCopy, plan } from './plan.ts';
import { isPurged, mayBeKept } from './purge-log.ts';
import { type FlightView, isFailureVisible, isVisible, type Reader, type Tier, workspaceSetOf } from './reader.ts';
import { evaluationOf } from './request.ts';
import { type Completion, fromFailure, type Lease, type LeaseAttempt, OWN_LEASE, toFailure } from './shared-cache.ts';
import { type Flight, SingleFlight } from './single-flight.ts';
import { type Answer, beginStamp, callStore, type FetchTask, foreignAnswer, isOfStore } from './store-call.ts';
import { isCacheable } from './ttl-policy.ts';

/** How a flight ended, unless it rejects. */
export interface Landing extends Pick<Answer, 'served'> {
  /**
   * `store`: this flight called it. `elsewhere`: another process did, while this one waited. A tier: the copy was there
   * before the flight began. The values are public, in spans.
   */
  readonly from: 'store' | 'elsewhere' | Tier;
  /** Whether a tier keeps the answer for later readers. */
  readonly isKept: boolean;
  /**
   * The set of workspaces of the reader who began the flight. Others of its audience may use only a record that they may
   * see.
   */
  readonly workspaceSet: string;
}

/** For so long the readers of an audience get the failure of its last flight instead of trying anew. */
const REMEMBER_FAILURES_MS = 1000;
const MAX_FAILURES = 10_000;
/** How long a waiter trusts to be woken before it asks for the lease again. */
const LOOK_EVERY_MS = 250;
/** So that a lease that was not renewed has lapsed when it is asked for. */
const LAPSE_MARGIN_MS = 5;

export class Flights {
  readonly #options: ReadThroughParts;
  readonly #copies: Copies;
  /** By key and audience. */
  readonly #underWay: SingleFlight<Landing>;
  /** By the same: flights that have failed. */
  readonly #failures = new LRUCache<string, { readonly error: unknown; readonly atMs: number }>({ max: MAX_FAILURES });
  readonly #spans = new FlightSpans();

  constructor(options: ReadThroughParts, copies: Copies) {
    const { clock, timers, maxWaitMs } = options;
    this.#options = options;
    this.#copies = copies;
    const late = () => new StoreError('timeout', `the call to the store took longer than ${maxWaitMs} ms`);
    this.#underWay = new SingleFlight({ clock, timers, timeoutMs: maxWaitMs, late });
  }

  /** Joins the flight that is under way, or begins one. Rejects with a StoreError and nothing else. */
  join<T>(task: FetchTask<T>, caller?: AbortSignal): Flight<Landing> {
    const name = nameOf(task.request.key, audienceOf(task.request, task.reader, task.previous));
    const flight =
      this.#lastFailure(name) ??
      this.#underWay.join(name, caller, (signal, lateness) =>
        this.#spans.run(name, () => this.#fetch(task, signal, lateness)),
      );
    this.#spans.joined({ name, kind: task.request.kind, isBackground: task.isBackground, ...flight });
    if (flight.startedByCaller) flight.result.catch((error: unknown) => this.#onFailed(name, task, error));
    return flight;
  }

  /** `audience`: null for any. */
  flightOf(key: string, audience: string | null): FlightView {
    const isOfKey = (name: string): boolean =>
      audience === null ? name.startsWith(`${key} `) : name === nameOf(key, audience);
    const since = [...this.#underWay.underWay()].filter(([name]) => isOfKey(name)).map(([, atMs]) => atMs);
    const failed = [...this.#failures.keys()].filter((name) => isOfKey(name) && this.#lastFailure(name) !== undefined);
    return { sinceMs: since.length === 0 ? null : Math.min(...since), hasJustFailed: failed.length > 0 };
  }

  /** How many of the flights of now have not ended within that time. */
  async settled(withinMs: number): Promise<number> {
    const left = new Set([...this.#underWay.underWay()].map(([, , result]) => result));
    const ends = Promise.allSettled([...left].map((result) => result.finally(() => left.delete(result))));
    return await withDeadline(
      ends.then(() => 0),
      withinMs,
      this.#options.timers,
      () => left.size,
    );
  }

  /** For others who may come within a second. A reader who left says nothing of the store, and a maintenance may end now. */
  #onFailed(name: string, { request, previous }: FetchTask, error: unknown): void {
    const failure = asStoreError(error);
    if (failure.kind === 'maintenance') return;
    if (previous !== null)
      this.#options.events.onRefreshFailed?.({ class: request.kind, key: request.key, error: failure });
    if (failure.kind !== 'aborted') this.#failures.set(name, { error, atMs: this.#options.clock.nowMs() });
  }

  #lastFailure(name: string): Flight<Landing> | undefined {
    const failure = this.#failures.get(name);
    if (failure === undefined) return undefined;
    const { error, atMs: startedAtMs } = failure;
    const agoMs = this.#options.clock.nowMs() - startedAtMs;
    // A clock that was set back must not make it last (C9: a time in the future is unknown).
    if (agoMs < 0 || agoMs >= REMEMBER_FAILURES_MS) return undefined;
    const result = Promise.reject(asStoreError(error));
    result.catch(() => undefined);
    return { result, startedByCaller: false, startedAtMs, signal: NEVER };
  }

  async #fetch<T>(wanted: FetchTask<T>, signal: AbortSignal, lateness: Promise<never>): Promise<Landing> {
    const reserved: (() => void)[] = [];
    const task = { ...wanted, onReserved: (release: () => void) => void reserved.push(release) };
    try {
      // 1. Look: since the reader looked, another flight or a page may have brought the copy.
      const local = this.#copies.inMemory(task.request, task.reader);
      const copy = sufficientCopy(local, task);
      if (copy !== null) return landingOn(copy, copy.tier, task);
      // 2. The audience's lease, or what another process has brought.
      const attempt = await this.#acquire(task, local, signal);
      if ('landing' in attempt) return attempt.landing;
      const { lease } = attempt;
      // 3. Call.
      const answer = await this.#call(task, lease, { signal, lateness });
      // 4. Complete: in Redis first, so that no process keeps what Redis refuses.
      const completion = await this.#try('complete', () => withinWait(task, lease.complete(answer)));
      // 5. Keep, in memory.
      const isKept = this.#keep(task, answer, completion ?? 'unshared');
      return { served: answer.served, isKept, from: 'store', workspaceSet: workspaceSetOf(task.reader) };
    } catch (error) {
      throw asStoreError(error);
    } finally {
      // A turn later: by then each request that waits has taken its part of the memory (`Slot.use`).
      if (reserved.length > 0) setImmediate(() => reserved.forEach((release) => release()));
    }
  }

  /**
   * Asks for the lease until it is had. While another process has it:
   * 1. This process follows the audience's calls before it asks, so that it notices every end after its question.
   * 2. The other process stores its answer, ends its lease and publishes that, in one step.
   * 3. This process asks again, and finds the answer. It takes over if there is none, or once the lease has lapsed.
   */
  async #acquire<T>(
    task: FetchTask<T>,
    local: FoundCopies<T>,
    signal: AbortSignal,
  ): Promise<{ readonly lease: Lease } | { readonly landing: Landing }> {
    const { clock, sharedCache, events } = this.#options;
    const { request, reader } = task;
    const { key, kind } = request;
    const audience = audienceOf(request, reader, task.previous);
    const following = sharedCache.follow(key, audience);
    let waitsSinceMs: number | null = null;
    const report = (end: LeaseWaitEnd): void => {
      if (waitsSinceMs === null) return;
      events.onLeaseWait?.({ class: kind, key, end, durationMs: clock.nowMs() - waitsSinceMs });
    };
    let found = local;
    let newerThanMs = seenAtMs(task, local);
    try {
      while (!signal.aborted) {
        const ask = () => this.#ask(task, sharedCache.acquire({ key, audience, reader, newerThanMs }));
        // Asking several times a second would hide all other spans.
        const attempt: LeaseAttempt = await (waitsSinceMs === null ? ask() : unrecorded(ask));
        if (attempt.status === 'taken') {
          waitsSinceMs ??= clock.nowMs();
          await following.next(Math.min(LOOK_EVERY_MS, attempt.leaseLeftMs + LAPSE_MARGIN_MS));
        } else if (attempt.status === 'found') {
          const news = this.#copies.adopt(request, reader, attempt.found);
          found = newerOf(found, news);
          newerThanMs = attempt.newestMs;
          const copy = sufficientCopy(found, task) ?? (waitsSinceMs === null ? null : newsOf(news, task));
          if (copy === null) continue;
          report('stored');
          return { landing: landingOn(copy, waitsSinceMs === null ? copy.tier : 'elsewhere', task) };
        } else {
          report(attempt.status === 'failed' ? 'failed' : 'taken-over');
          if (attempt.status === 'failed') throw fromFailure(attempt.failure);
          return { lease: attempt.lease };
        }
      }
    } finally {
      following.close();
    }
    if (!(signal.reason instanceof StoreError)) throw new StoreError('aborted', 'nobody waits for the call any more');
    report('timeout');
    throw signal.reason;
  }

  /** If the shared cache can't be asked, this process asks the store for itself. */
  async #ask(task: FetchTask, asked: Promise<LeaseAttempt>): Promise<LeaseAttempt> {
    const attempt = await this.#try('acquire', () => withinWait(task, asked));
    if (attempt !== undefined) return attempt;
    // It may be granted after the reader's time for Redis is over. Nobody would end it.
    const release = async (): Promise<void> => {
      const late = await asked;
      if (late.status === 'acquired') await late.lease.release();
    };
    release().catch(() => undefined);
    return { status: 'acquired', lease: OWN_LEASE };
  }

  /** Calls the store, and ends the lease if that fails. */
  async #call<T>(task: FetchTask<T>, lease: Lease, { signal, lateness }: FlightLimits): Promise<Answer<T>> {
    const stamp = beginStamp(this.#options);
    try {
      const answer = await Promise.race([this.#callOrAskOwner(task, stamp, signal), lateness]);
      if (answer.isForeign) this.#reportContradiction(task);
      return answer;
    } catch (error) {
      const failure = asStoreError(error);
      // The calls of other processes may go through if this one was not sent.
      void this.#try('fail', () => (isOfStore(failure) ? lease.fail(toFailure(failure)) : lease.release()));
      throw failure;
    }
  }

  /** A record that is at fault, and another workspace's, is as foreign as one that can be read. */
  async #callOrAskOwner<T>(
    task: FetchTask<T>,
    stamp: ReturnType<typeof beginStamp>,
    signal: AbortSignal,
  ): Promise<Answer<T>> {
    const { request, reader } = task;
    try {
      return await callStore(task, stamp, signal, this.#options);
    } catch (error) {
      const failure = asStoreError(error);
      if (failure.kind !== 'malformed') throw failure;
      const isOwn = failure.workspaceId === null ? await this.#isOfReader(task) : isFailureVisible(failure, reader);
      if (isOwn) throw failure;
      const { clock, events } = this.#options;
      if (task.previous !== null) {
        events.onRefreshFailed?.({ class: request.kind, key: request.key, error: failure });
      }
      return foreignAnswer(request, { ...stamp, receivedAtMs: clock.nowMs() });
    }
  }

  /**
   * Reports a part of another workspace than its evaluation, if a copy shows that this is the reader's: the store is wrong
   * then. An ordinary foreign part is not reported, and nothing else is done for either (K7a).
   */
  #reportContradiction<T>({ request, reader }: FetchTask<T>): void {
    const evaluation = evaluationOf(request);
    if (evaluation === null) return;
    if (visibleCopies(this.#copies.inMemory(evaluation, reader), evaluation, reader).copy === null) return;
    const message = `the store's ${request.kind} is of another workspace than its evaluation (at workspaceId)`;
    const error = new StoreError('malformed', message);
    this.#options.events.onPartMisplaced?.({ class: request.kind, requestId: reader.requestId, error });
  }

  /**
   * Whether a record that cannot be read, and so does not say whose it is, is this reader's to learn of (S2: a record's trouble
   * is a failure, never an absence, which consumers take for a deletion). A list, an evaluation and a rubric are, whoever asks:
   * somebody who knows an id learns that the store cannot deliver it, as of any other failure of the store for one id.
   *
   * A *part* is whose its evaluation is (K7a: a foreign part looks like none). A copy may show that; else the evaluation is
   * asked, by the flight of the reader's own set. Rejects with the failure of that call: if the evaluation cannot be read
   * either, that is 500 for both.
   *
   * What remains: the first, cold read of a part that cannot be read takes longer for a foreign one than for none, by the
   * time of its transfer and of the call for its evaluation, which is then known to be none of the reader's.
   */
  async #isOfReader<T>({ request, reader, previous, isBackground }: FetchTask<T>): Promise<boolean> {
    const evaluation = evaluationOf(request);
    if (evaluation === null || previous?.stored.entry.answer.kind === 'found') return true;
    if (visibleCopies(this.#copies.inMemory(evaluation, reader), evaluation, reader).copy !== null) return true;
    try {
      const { served } = await this.join({ request: evaluation, reader, previous: null, isBackground }).result;
      return served.entry.answer.kind === 'found';
    } catch (error) {
      // It is at fault too, but has named a workspace of the reader's: of another one there would be none.
      if (error instanceof StoreError && error.kind === 'malformed' && error.workspaceId !== null) return true;
      throw error;
    }
  }

  /**
   * Keeps the answer in memory, unless a purge has come since the call began, or one that was fetched later is there:
   * 1. This call begins.
   * 2. A call for another audience begins, and ends first. Without Redis nothing else orders the two.
   * 3. This one ends with the older answer.
   */
  #keep<T>(
    { request, reader }: FetchTask<T>,
    { served, entry, negative, isForeign }: Answer<T>,
    completion: Completion,
  ): boolean {
    const { memory, purges, ttl } = this.#options;
    if (completion === 'lost' || !mayBeKept(purges, served)) return false;
    const present = memory.peek(request.key);
    const isPresentNewer =
      present !== undefined && isNewer(present, served, this.#options.clock.nowMs()) && !isPurged(purges, present);
    // C4: what the store says is no more the reader's ends the copy that this set had.
    const isEnded = isForeign && present !== undefined && !isPresentNewer && isVisible(request, present, reader);
    if (isEnded) memory.set(request.key, served, reader);
    let isInMemory = false;
    if (entry !== null && completion !== 'overtaken' && !isPresentNewer) {
      isInMemory = memory.set(request.key, entry, reader);
      this.#backfill(
        backfillsOf(request, served, (key) => memory.peek(key) ?? null),
        reader,
      );
    }
    if (negative !== null) isInMemory = memory.setNegative(request.key, reader, negative);
    return (isInMemory || completion === 'stored') && isCacheable(ttl.of(classOf(request.kind, served.entry)));
  }

  #backfill(entries: readonly Backfill[], reader: Reader): void {
    if (entries.length === 0) return;
    this.#options.memory.backfill(entries, reader);
    const { events } = this.#options;
    for (const { refresh } of entries) if (refresh !== null) events.onRefresh?.(refresh);
    void this.#try('backfill', () => this.#options.sharedCache.backfill(entries));
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

/** Aborted once nobody waits any more, and what rejects when the flight is late. */
interface FlightLimits {
  readonly signal: AbortSignal;
  readonly lateness: Promise<never>;
}

const NEVER = new AbortController().signal;

function nameOf(key: string, audience: string): string {
  return `${key} ${audience}`;
}

/** The copy that the reader can be served without asking the store; null if the store has to be asked. */
function sufficientCopy<T>(found: FoundCopies<T>, { request, reader }: FetchTask<T>): CachedCopy<T> | null {
  const visible = visibleCopies(found, request, reader);
  if (visible.copy === null && visible.negative === null) return null;
  const next = plan(visible, null);
  return next.action === 'serve' || next.action === 'serve-fallback' ? next.copy : null;
}

/** If a class is never fresh, an answer that another process has just stored is still news to those who waited for it. */
function newsOf<T>(news: FoundCopies<T>, { request, reader }: FetchTask<T>): CachedCopy<T> | null {
  const { copy, negative } = visibleCopies(news, request, reader);
  return [copy, negative].find((each) => each !== null && each.state !== 'purged') ?? null;
}

/**
 * When the newest thing that this process has seen for the reader was requested. After a purge a copy of the same
 * millisecond may have taken its place.
 */
function seenAtMs<T>({ request, reader, previous }: FetchTask<T>, local: FoundCopies<T>): number | null {
  const { copy, negative } = visibleCopies(local, request, reader);
  const seen = [previous, copy, negative].filter((each) => each !== null && each.state !== 'purged');
  return seen.length === 0 ? null : Math.max(...seen.map((each) => each?.stored.entry.requestedAtMs ?? 0));
}

function landingOn<T>({ stored }: CachedCopy<T>, from: Landing['from'], { reader }: FetchTask<T>): Landing {
  return { served: stored, from, isKept: true, workspaceSet: workspaceSetOf(reader) };
}

/**
 * The same answer of Redis; rejects once the reader has waited long enough (R6: 250 ms for Redis in all). No reader waits
 * for a background refresh.
 */
function withinWait<R>({ reader, isBackground }: FetchTask, answer: Promise<R>): Promise<R> {
  return isBackground || reader.redisWait === undefined ? answer : reader.redisWait.within(answer);
}
