/**
 * The way of a miss, on behalf of all readers of one key and one set of workspaces in this process, and by a lease among all
 * processes (C10: one flight per key and set of workspaces): 1. look or lease, 2. call, 3. complete, which also reports to the
 * other processes what has ended, 4. keep.
 *
 * The set (`flightSet`) is the readers' own, or the workspace of the copy that is renewed. Nothing of another set's flight is
 * ever noticed: no joining, no waking, no failure, no negative entry. So a record of another workspace looks like none (K7a:
 * not by a second try either), because its readers share nothing with those who may not see it.
 *
 * A thousand readers of one set cost one call, readers of n sets up to n, unless a copy is renewed. That fails as follows:
 * - The process that has the lease dies: it lapses 2 s after its last renewal, and one of those who wait takes over.
 * - The process is paused past its lease: another takes over, and the late answer is stored nowhere.
 * - Redis does not answer: each process calls for itself (C8: it goes on without Redis).
 * - The store does not answer: the flight ends after `maxWaitMs`, for all who wait, here and elsewhere.
 *
 * An answer that speaks against a copy ends it in this process, in Redis and, by the journal, everywhere (C4: nothing outlives
 * what the store says), before anybody is given the answer. That fails as follows:
 * - The process dies between Redis and the journal, or the journal cannot be reached: copies in the memory of others are
 *   served until their freshness ends, and then looked for in Redis, where they are gone.
 * - Redis has evicted the note that there is a copy, or was too full to take it: the same.
 * - Redis answers later than the reader waits for it (R6: 250 ms): the reader is given the answer first.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import { SingleFlight } from '../time/single-flight.ts';
import { withDeadline } from '../time/timers.ts';
import { unrecorded } from '../tracing/spans.ts';
import { asStoreError, StoreError } from '../upstream/store-error.ts';
import type { WorkspaceSet } from './address.ts';
import { adopt, attempt, copyInMemory, type ReadThroughParts } from './copies.ts';
import type { StoredEntry } from './entry.ts';
import type { LeaseWaitEnd } from './events.ts';
import { FlightSpans } from './flight-spans.ts';
import { backfill, dropIfRefused, endMoved, keep } from './keep.ts';
import { isOfSet, isTelling, reportMisplacedPart } from './part-owner.ts';
import { type CachedCopy, plan } from './plan.ts';
import type { FlightView, Tier } from './reader.ts';
import type { Sighting } from './seen-calls.ts';
import {
  type CompletionStatus,
  type FlightFailure,
  fromFailure,
  type Lease,
  type Looked,
  OWN_LEASE,
  REMEMBER_FAILURES_MS,
  toFailure,
} from './shared-cache.ts';
import {
  type Answer,
  beginStamp,
  callStore,
  type FetchTask,
  foreignAnswer,
  isOfStore,
  nameOf,
  seenBy,
  withinWait,
} from './store-call.ts';
import { OWN_TURN, Turn } from './turn.ts';
import { type Flight, WaitedFlights } from './waited-flights.ts';

/** How a flight ended, unless it rejects. */
export interface Landing {
  readonly served: StoredEntry;
  /**
   * `store`: this flight called it. `elsewhere`: another process did, while this one waited. A tier: the copy was there
   * before the flight began. The values are public, in spans.
   */
  readonly from: 'store' | 'elsewhere' | Tier;
  /** Whether a tier keeps the answer for later readers. */
  readonly isKept: boolean;
}

/**
 * How a look ended:
 * - `found`: with a newer answer than the reader has seen, which it has to judge; `seenAtMs` is for its next look
 * - `failed`: the last call of the set has just failed
 * - `call`: a flight is to be joined. It begins with `turn`, if it is not under way.
 */
export type LookEnd<T> =
  | { readonly kind: 'found'; readonly copy: CachedCopy<T>; readonly seenAtMs: number }
  | { readonly kind: 'failed'; readonly error: StoreError }
  | { readonly kind: 'call'; readonly turn: Turn | null };

type Failed = FlightFailure & Pick<StoreError, 'isGivenUp'> & { readonly atMicros: number };
const MAX_FAILURES = 10_000;
/** How long a waiter trusts to be woken before it asks for the lease again. */
const LOOK_EVERY_MS = 250;
/** So that a lease that was not renewed has lapsed when it is asked for. */
const LAPSE_MARGIN_MS = 5;

export class Flights {
  readonly #options: ReadThroughParts;
  /** Looks that are under way: readers who miss at once look together. */
  readonly #looks = new SingleFlight<Turn>();
  /** By key and set. */
  readonly #underWay: WaitedFlights<Landing>;
  /** Why flights have failed, by key and set. Not the errors themselves: each would hold on to all that its flight had. */
  readonly #failures = new LRUCache<string, Failed>(atMost(MAX_FAILURES));
  readonly #spans = new FlightSpans();

  constructor(options: ReadThroughParts) {
    const { clock, timers, store } = options;
    const { maxWaitMs } = store;
    this.#options = options;
    const late = () => new StoreError('timeout', `the call to the store took longer than ${maxWaitMs} ms`);
    this.#underWay = new WaitedFlights({ clock, timers, timeoutMs: maxWaitMs, late });
  }

  /**
   * Looks in the shared cache, and takes the lease if there is nothing. A reader whose flight is under way has nothing to look
   * for. Never rejects: without the shared cache this process calls for itself.
   */
  async look<T>(task: FetchTask<T>): Promise<LookEnd<T>> {
    const name = nameOf(task);
    if (this.#underWay.has(name)) return { kind: 'call', turn: null };
    const lastFailure = this.#lastFailure(name, task.previous?.state === 'changed');
    const turn = await attempt(this.#options.events, 'look', () =>
      withinWait(task, this.#lookTogether(task, lastFailure === null)),
    );
    if (turn?.looked.status === 'found') {
      const { answer, seenAtMs } = turn.looked;
      const copy = answer === null ? null : adopt(task, answer, this.#options);
      return copy === null ? await this.look({ ...task, seenAtMs }) : { kind: 'found', copy, seenAtMs };
    }
    if (lastFailure !== null) return { kind: 'failed', error: lastFailure };
    if (turn?.looked.status === 'failed') return { kind: 'failed', error: fromFailure(turn.looked.failure) };
    return { kind: 'call', turn: turn ?? OWN_TURN };
  }

  /** Looks without taking the lease, while no call may be made. Null if there is nothing newer than the reader has seen. */
  async lookOnly<T>(task: FetchTask<T>): Promise<{ readonly copy: CachedCopy<T>; readonly seenAtMs: number } | null> {
    const turn = await attempt(this.#options.events, 'look', () => withinWait(task, this.#lookTogether(task, false)));
    if (turn?.looked.status !== 'found' || turn.looked.answer === null) return null;
    const copy = adopt(task, turn.looked.answer, this.#options);
    return copy === null ? null : { copy, seenAtMs: turn.looked.seenAtMs };
  }

  /** Joins the flight that is under way, or begins one. Rejects with a StoreError and nothing else. */
  join<T>(task: FetchTask<T>, turn: Turn | null, caller?: AbortSignal): Flight<Landing> {
    const name = nameOf(task);
    const flight = this.#underWay.join(name, caller, (signal, lateness, waiting) =>
      this.#spans.run(name, () => this.#fly({ readers: waiting, ...task }, turn, { signal, lateness })),
    );
    this.#spans.joined({ name, kind: task.request.kind, isBackground: task.isBackground, ...flight });
    if (flight.startedByCaller) flight.result.catch((error: unknown) => this.#onFailed(name, task, error));
    return flight;
  }

  /** Renews a copy behind a reader that was served it. If the last renewal has just failed, none is begun. Never rejects. */
  async refresh(task: FetchTask): Promise<void> {
    if (this.#lastFailure(nameOf(task)) !== null) return;
    // The flight reports its failure.
    await this.join(task, null).result.catch(() => undefined);
  }

  /** `set`: null for any. */
  flightOf(key: string, set: WorkspaceSet | null): FlightView {
    const isOfKey = (name: string): boolean =>
      set === null ? name.startsWith(`${key} `) : name === nameOf({ request: { key }, set });
    const since = [...this.#underWay.underWay()].filter(([name]) => isOfKey(name)).map(([, atMs]) => atMs);
    const failed = [...this.#failures.keys()].filter((name) => isOfKey(name) && this.#lastFailure(name) !== null);
    return { sinceMs: since.length === 0 ? null : Math.min(...since), hasJustFailed: failed.length > 0 };
  }

  /** How many of the flights of now have not ended within that time. */
  async settled(withinMs: number): Promise<number> {
    const left = new Set([...this.#underWay.underWay()].map(([, , result]) => result));
    const ends = [...left].map((result) => result.finally(() => left.delete(result)));
    const ended = Promise.allSettled(ends).then(() => 0);
    return await withDeadline(ended, withinMs, this.#options.timers, () => left.size);
  }

  /** One look for all who look for the same. A turn that it has brought is given back if no flight begins with it. */
  #lookTogether(task: FetchTask, isLeaseWanted: boolean): Promise<Turn> {
    const { sharedCache } = this.#options;
    const { request, set, reader } = task;
    const { kind, key } = request;
    const seenAtMs = seenBy(task, task.previous);
    const name = `${nameOf(task)} ${seenAtMs} ${isLeaseWanted}`;
    return this.#looks.join(name, async () => {
      // Before it asks, so that it notices every end that comes after the answer.
      const following = sharedCache.follow(key, set);
      try {
        const looked = await sharedCache.look({ kind, key, set, keyId: reader.keyId, seenAtMs, isLeaseWanted });
        const turn = new Turn(looked, following);
        // A reader joins a flight at once.
        setImmediate(() => turn.giveBack());
        return turn;
      } catch (error) {
        following.close();
        throw error;
      }
    });
  }

  /** For others who may come within a second. A reader who left says nothing of the store, and a maintenance may end now. */
  #onFailed(name: string, { request, previous }: FetchTask, error: unknown): void {
    const { events, clock } = this.#options;
    const failure = asStoreError(error);
    const { kind, isGivenUp } = failure;
    if (kind === 'paused') return;
    if (previous !== null) events.onRefreshFailed?.({ class: request.kind, key: request.key, error: failure });
    if (kind !== 'aborted') this.#failures.set(name, { ...toFailure(failure), isGivenUp, atMicros: clock.nowMicros() });
  }

  /** `isUrgent`: a call that was given up in the queue says nothing to the reader of a copy that has changed. */
  #lastFailure(name: string, isUrgent = false): StoreError | null {
    const failure = this.#failures.get(name);
    if (failure === undefined || (isUrgent && failure.isGivenUp)) return null;
    const agoMs = (this.#options.clock.nowMicros() - failure.atMicros) / 1000;
    return agoMs >= REMEMBER_FAILURES_MS ? null : fromFailure(failure);
  }

  async #fly<T>(wanted: FetchTask<T>, turn: Turn | null, limits: FlightLimits): Promise<Landing> {
    const reserved: (() => void)[] = [];
    const task = { ...wanted, onReserved: (release: () => void) => void reserved.push(release) };
    try {
      // 1. The lease of the set, or what somebody else has brought since the reader looked.
      const claim = await this.#claim(task, turn, limits.signal);
      if ('landing' in claim) return claim.landing;
      const { lease } = claim;
      // 2. Call.
      const { changes } = this.#options;
      const lastSeen = changes.lastSeenOf(task, lease.lastSeen);
      const { stored } = await this.#call(task, lease, limits);
      // C11: what it shows to have changed is in the journal before anybody gets it.
      const sightings = await changes.compare(task, stored, lastSeen, (answer) => withinWait(task, answer));
      backfill(task, stored, this.#options);
      // 3. Complete: in Redis first, so that the process keeps nothing that Redis refuses.
      const completing = this.#complete(task, lease, { stored, sightings });
      const status = await attempt(this.#options.events, 'complete', () => withinWait(task, completing));
      // 4. Keep, in memory.
      const isKept = keep(task, stored, status ?? 'unshared', this.#options);
      if (status === undefined) void dropIfRefused(task, stored, completing, this.#options);
      return { served: stored, from: 'store', isKept };
    } catch (error) {
      throw asStoreError(error);
    } finally {
      // A turn later: by then each request that waits has taken its part of the memory (`Slot.use`).
      if (reserved.length > 0) setImmediate(() => reserved.forEach((release) => release()));
    }
  }

  /**
   * Asks for the lease until it is had. While another process has it:
   * 1. This process follows the set's calls before it asks, so that it notices every end after its question.
   * 2. The other process files its answer, ends its lease and publishes that, in one step.
   * 3. This process asks again, and finds the answer. It takes over if there is none, or once the lease has lapsed.
   *
   * A reader has looked before (`look`), and judged by its own plan what there was; this look is for all who wait.
   */
  async #claim<T>(
    task: FetchTask<T>,
    turn: Turn | null,
    signal: AbortSignal,
  ): Promise<{ readonly lease: Lease } | { readonly landing: Landing }> {
    const { clock, sharedCache, events } = this.#options;
    const { request, set, reader } = task;
    const { key, kind } = request;
    const local = turn === null ? copyInMemory(task, this.#options) : null;
    if (local !== null && isInstead(task, local)) return { landing: landingOn(local, local.tier) };
    let seenAtMs = seenBy(task, local, task.previous);
    let waitsSinceMicros: number | null = null;
    const report = (end: LeaseWaitEnd): void => {
      if (waitsSinceMicros === null) return;
      const durationMs = (clock.nowMicros() - waitsSinceMicros) / 1000;
      events.onLeaseWait?.({ class: kind, key, end, durationMs });
    };
    const look = { kind, key, set, keyId: reader.keyId, isLeaseWanted: true };
    const ask = () => this.#ask(task, sharedCache.look({ ...look, seenAtMs }), waitsSinceMicros !== null);
    const following = turn?.take() ?? sharedCache.follow(key, set);
    try {
      let looked = turn?.looked ?? (await ask());
      while (!signal.aborted) {
        if (looked.status === 'leased') {
          const brought = copyInMemory(task, this.#options);
          if (brought !== null && isInstead(task, brought)) {
            await looked.lease.release().catch(() => undefined);
            return { landing: landingOn(brought, brought.tier) };
          }
          report('taken-over');
          return { lease: looked.lease };
        }
        if (looked.status === 'failed') {
          report('failed');
          throw fromFailure(looked.failure);
        }
        if (looked.status === 'found') {
          ({ seenAtMs } = looked);
          const news = looked.answer === null ? null : adopt(task, looked.answer, this.#options);
          if (news !== null) {
            report('stored');
            return { landing: landingOn(news, waitsSinceMicros === null || isOver(news) ? news.tier : 'elsewhere') };
          }
        }
        if (looked.status === 'taken') {
          waitsSinceMicros ??= clock.nowMicros();
          await following.next(Math.min(LOOK_EVERY_MS, looked.leaseLeftMs + LAPSE_MARGIN_MS));
          if (signal.aborted) break;
        }
        // Asking several times a second would hide all other spans.
        looked = await (waitsSinceMicros === null ? ask() : unrecorded(ask));
      }
      if (looked.status === 'leased') await looked.lease.release().catch(() => undefined);
    } finally {
      following.close();
    }
    if (!(signal.reason instanceof StoreError)) throw new StoreError('aborted', 'nobody waits for the call any more');
    report('timeout');
    throw signal.reason;
  }

  /** If the shared cache can't be asked, this process asks the store for itself. */
  async #ask(task: FetchTask, asked: Promise<Looked>, isBeside: boolean): Promise<Looked> {
    const looked = await attempt(this.#options.events, 'look', () => withinWait(task, asked, isBeside));
    if (looked !== undefined) return looked;
    // The lease may be granted after the reader's time for Redis is over, and then nobody else would end it.
    asked
      .then(
        (late) => (late.status === 'leased' ? late.lease.release() : undefined),
        () => undefined,
      )
      .catch(() => undefined);
    return { status: 'leased', lease: OWN_LEASE };
  }

  /** Calls the store, and ends the lease if that fails. */
  async #call<T>(task: FetchTask<T>, lease: Lease, { signal, lateness }: FlightLimits): Promise<Answer<T>> {
    const stamp = beginStamp(this.#options);
    try {
      const answer = await Promise.race([this.#callOrAskOwner(task, stamp, signal), lateness]);
      if (answer.isForeign) reportMisplacedPart(task, this.#options);
      return answer;
    } catch (error) {
      const failure = asStoreError(error);
      // The calls of other processes may go through if this one was not sent.
      void attempt(this.#options.events, 'fail', () =>
        isOfStore(failure) ? lease.fail(toFailure(failure)) : lease.release(),
      );
      throw failure;
    }
  }

  /** A record that is at fault, and another workspace's, is as foreign as one that can be read. */
  async #callOrAskOwner<T>(
    task: FetchTask<T>,
    stamp: ReturnType<typeof beginStamp>,
    signal: AbortSignal,
  ): Promise<Answer<T>> {
    const { request, set } = task;
    try {
      return await callStore(task, stamp, signal, this.#options);
    } catch (error) {
      const failure = asStoreError(error);
      if (failure.kind !== 'malformed') throw failure;
      const { workspaceId } = failure;
      const isOwn =
        workspaceId === null
          ? await isOfSet(task, (asked) => this.#answerTo(asked), this.#options)
          : set.ids.includes(workspaceId);
      if (isOwn) throw failure;
      const { clock, events } = this.#options;
      if (task.previous !== null) {
        events.onRefreshFailed?.({ class: request.kind, key: request.key, error: failure });
      }
      return foreignAnswer(task, { ...stamp, receivedAtMs: clock.nowMs() });
    }
  }

  /** The answer that is known for the set, or that of a call. Rejects as `join` does. */
  async #answerTo(task: FetchTask): Promise<StoredEntry> {
    const looked = await this.look(task);
    if (looked.kind === 'failed') throw looked.error;
    if (looked.kind === 'call') return (await this.join(task, looked.turn).result).served;
    return isTelling(looked.copy)
      ? looked.copy.stored
      : await this.#answerTo({ ...task, previous: looked.copy, seenAtMs: looked.seenAtMs });
  }

  /**
   * Goes on when no reader waits for Redis any more, so that the other processes learn which copies have ended. The sighting of
   * an evaluation is noted in the same step, if the lease knew the last sightings.
   */
  async #complete(
    { request: { key } }: FetchTask,
    lease: Lease,
    { stored, sightings }: { readonly stored: StoredEntry; readonly sightings: readonly Sighting[] },
  ): Promise<CompletionStatus> {
    const isNotedBeside = lease.lastSeen === null;
    if (isNotedBeside) this.#options.changes.note(sightings);
    const { status, ended } = await lease.complete(stored, isNotedBeside ? null : sightings[0]);
    if (status === 'lost' && !isNotedBeside) this.#options.changes.note(sightings);
    await endMoved({ key, workspaces: ended, stored }, this.#options);
    return status;
  }
}

/** Aborted once nobody waits any more, and what rejects when the flight is late. */
interface FlightLimits {
  readonly signal: AbortSignal;
  readonly lateness: Promise<never>;
}

/** Whether a call would bring nothing better. An early renewal is of a copy that would do. */
function isInstead(task: FetchTask, copy: CachedCopy): boolean {
  const isOther = task.isEarly !== true || copy.stored !== task.previous?.stored;
  return isOther && plan(copy, null).action === 'serve';
}

/** Whether what another process has just brought is no answer to those who waited for it, even if its class is never fresh. */
function isOver({ state }: CachedCopy): boolean {
  return state === 'purged' || state === 'changed';
}

function landingOn({ stored }: CachedCopy, from: Landing['from']): Landing {
  return { served: stored, from, isKept: true };
}
