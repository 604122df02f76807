/**
 * One call per key in this process, whoever asks. A caller that comes while it is under way waits for it.
 *
 * Readers who may not see a record must not notice that others read it (K7a: a foreign record looks like none). So what a
 * call brings, and the memory of its failure, are for one set of workspaces. Readers of another set wait for the same call,
 * but unless it brings a record that they may see, they are answered no sooner than by a call of their own.
 */
import type { Clock } from '../clock.ts';
import { FlightSpans } from '../tracing/cache-spans.ts';
import { asStoreError, StoreError } from '../upstream/store.ts';
import { type Learned, learnedOf, negativeEntry } from './entry.ts';
import {
  type FetchResult,
  type FetchTask,
  type OriginFetcher,
  type OriginFetcherOptions,
  type Wanted,
} from './origin-fetch.ts';
import { isPurged } from './purge-log.ts';
import type { FlightView, Reader } from './reader.ts';
import { isFailureVisible, isVisible, workspaceSetOf } from './visibility.ts';

/** The end of a flight for the readers of one set of workspaces: `stored` is a copy that they may see, or a negative entry. */
export interface Fetched extends Omit<FetchResult, 'failure' | 'notBeforeMs'> {
  /** The store has a record of another workspace: to these readers there is none. */
  readonly isForeign: boolean;
}

export type FlightsOptions = Pick<OriginFetcherOptions, 'clock' | 'purges' | 'timers' | 'maxWaitMs'>;

/** For so long readers of the same workspaces get the failure of the last flight. */
const REMEMBER_FAILURES_MS = 1000;

export class Flights {
  readonly #origin: OriginFetcher;
  readonly #options: FlightsOptions;
  /** By key: one fetch at a time, for readers of all workspaces. */
  readonly #fetches: SingleFlight<FetchResult>;
  /** By key and set of workspaces: what the fetch is to those readers. */
  readonly #flights: SingleFlight<Fetched>;
  readonly #spans = new FlightSpans();

  constructor(origin: OriginFetcher, options: FlightsOptions) {
    const { clock } = options;
    this.#origin = origin;
    this.#options = options;
    this.#fetches = new SingleFlight({ clock, rememberFailuresMs: 0, isToRemember: () => false });
    this.#flights = new SingleFlight({
      clock,
      rememberFailuresMs: REMEMBER_FAILURES_MS,
      // A call that maintenance kept from being sent is no failure of the store, and the maintenance may end at any moment.
      isToRemember: (error) => !(error instanceof StoreError && error.kind === 'maintenance'),
    });
  }

  /** `reader`: for whom a failure is remembered; null for anybody. */
  flightOf(key: string, reader: Pick<Reader, 'workspaceIds'> | null): FlightView {
    const name = nameOf(key, reader);
    return { sinceMs: this.#fetches.underWaySinceMs(key), hasJustFailed: this.#flights.hasJustFailed(name) };
  }

  /**
   * Begins a flight or joins the one that is under way. Rejects with a StoreError and nothing else. `isWaiting`: set if
   * the flight is of use only to readers who wait for it.
   */
  fetch<T>(task: FetchTask<T>, isWaiting?: () => boolean): Flight<Fetched> {
    const name = nameOf(task.request.key, task.reader);
    const flight = this.#flights.join(name, (isWanted) => this.#callOrJoin({ ...task, isWanted }), isWaiting);
    if (!flight.startedByCaller) this.#spans.joined(task, flight);
    return flight;
  }

  async #callOrJoin<T>(task: Wanted<T>): Promise<Fetched> {
    const { clock, purges } = this.#options;
    const { key } = task.request;
    const joinedAt = { requestedAtMs: clock.nowMs(), epoch: purges.epoch() };
    for (;;) {
      const call = this.#fetches.join(
        key,
        (isWanted) => this.#spans.fly(key, () => this.#origin.fetch({ ...task, isWanted })),
        task.isWanted,
      );
      this.#spans.joined(task, call);
      if (call.startedByCaller) {
        const { notBeforeMs = 0, ...result } = await call.result;
        await this.#pause(notBeforeMs - clock.nowMs());
        return fetchedFor(task, result);
      }
      const fetched = await this.#join(task, call, joinedAt);
      if (fetched !== null) return fetched;
    }
  }

  /**
   * Waits for the call that readers of other workspaces have caused. Null if it brought nothing for these: it began before
   * a purge, or only found what is kept for the others.
   */
  async #join<T>(
    task: FetchTask<T>,
    call: Flight<FetchResult>,
    joinedAt: Pick<Learned, 'requestedAtMs' | 'epoch'>,
  ): Promise<Fetched | null> {
    const { request, reader, previous } = task;
    const { clock, purges } = this.#options;
    const end = await call.result.catch(asStoreError);
    const result = end instanceof StoreError ? null : end;
    if (result !== null && isVisible(request, result.stored, reader)) {
      return isPurged(purges, result.stored) ? null : { ...result, from: 'elsewhere', isForeign: false };
    }
    const isFound = result?.stored.entry.answer.kind === 'found';
    if (result !== null && result.from !== 'store' && !isFound) return null;
    const failure = end instanceof StoreError ? end : end.failure;
    const isOwnFailure = failure !== null && isFailureVisible(failure, reader);
    const isKnownToBeOwn = previous?.entry.answer.kind === 'found' || failure?.workspaceId !== null;
    if (isOwnFailure && isKnownToBeOwn) throw failure;
    const nowMs = clock.nowMs();
    const learned = result === null ? { ...joinedAt, receivedAtMs: nowMs } : learnedOf(result.stored);
    const negative = negativeEntry(request, learned);
    if (isPurged(purges, negative)) return null;
    // The call may have been another process's, which had begun before this one waited for it.
    const tookMs = Math.max(nowMs - call.startedAtMs, learned.receivedAtMs - learned.requestedAtMs);
    await this.#pause(joinedAt.requestedAtMs + tookMs - nowMs);
    if (isOwnFailure) {
      this.#origin.keepFailure(task, failure);
      throw failure;
    }
    const isForeign = failure !== null || isFound;
    return { stored: negative, from: 'elsewhere', isStored: this.#origin.keepNegative(task, negative), isForeign };
  }

  async #pause(forMs: number): Promise<void> {
    const { timers, maxWaitMs } = this.#options;
    if (forMs > 0) await new Promise<void>((resolve) => void timers.after(Math.min(forMs, maxWaitMs), resolve));
  }
}

/** Names the flights of a key for a set of workspaces; for null, all of the key begin so. */
function nameOf(key: string, reader: Pick<Reader, 'workspaceIds'> | null): string {
  return `${key} ${reader === null ? '' : workspaceSetOf(reader)}`;
}

/** What the answer is to the readers whose flight it was. */
function fetchedFor<T>({ request, reader }: FetchTask<T>, { failure, ...result }: FetchResult): Fetched {
  const { stored, from } = result;
  if (from !== 'store' || isVisible(request, stored, reader)) return { ...result, isForeign: false };
  const isForeign = failure !== null || stored.entry.answer.kind === 'found';
  return { ...result, stored: negativeEntry(request, learnedOf(stored)), isForeign };
}

export interface Flight<T> {
  readonly result: Promise<T>;
  /** Whether this caller began it, and did not join one that was under way. */
  readonly startedByCaller: boolean;
  /** When it began, Unix milliseconds. */
  readonly startedAtMs: number;
}

/** Whether a caller still waits. */
type IsWaiting = () => boolean;

interface UnderWay<T> {
  readonly flight: Flight<T>;
  readonly waiters: IsWaiting[];
}

interface Failure<T> {
  readonly flight: Flight<T>;
  readonly atMs: number;
}

interface SingleFlightOptions {
  readonly clock: Clock;
  /** For so long callers get the failure of the last flight instead of trying anew. */
  readonly rememberFailuresMs: number;
  /** Whether a failure means that trying again soon is of no use. */
  readonly isToRemember: (error: unknown) => boolean;
}

/** One flight per key: a caller that comes while it is under way waits for it. */
class SingleFlight<T> {
  readonly #options: SingleFlightOptions;
  readonly #underWay = new Map<string, UnderWay<T>>();
  /** In order of time. */
  readonly #failures = new Map<string, Failure<T>>();

  constructor(options: SingleFlightOptions) {
    this.#options = options;
  }

  /** When the key's flight that is under way began, Unix milliseconds; null if there is none. */
  underWaySinceMs(key: string): number | null {
    return this.#underWay.get(key)?.flight.startedAtMs ?? null;
  }

  /** Whether a flight has just failed whose key begins so: a caller that comes now gets its failure. Looks at all of them. */
  hasJustFailed(prefix: string): boolean {
    return [...this.#failures.keys()].some((key) => key.startsWith(prefix) && this.#lastFailure(key) !== undefined);
  }

  /**
   * Joins the key's flight, or begins it by calling `fly`. A flight belongs to nobody: a caller that leaves aborts
   * nothing. A failure reaches all who wait at once, and for a while all who come after. `fly` may ask whether anyone
   * still waits: once nobody does, nobody joins the flight any more, and it has to end.
   */
  join(key: string, fly: (isWanted: () => boolean) => Promise<T>, isWaiting: IsWaiting = always): Flight<T> {
    const underWay = this.#underWay.get(key);
    underWay?.waiters.push(isWaiting);
    const known = underWay?.flight ?? this.#lastFailure(key);
    if (known !== undefined) return { ...known, startedByCaller: false };
    const waiters = [isWaiting];
    const flight = {
      result: this.#run(key, waiters, fly),
      startedByCaller: true,
      startedAtMs: this.#options.clock.nowMs(),
    };
    this.#underWay.set(key, { flight, waiters });
    return flight;
  }

  async #run(key: string, waiters: readonly IsWaiting[], fly: (isWanted: () => boolean) => Promise<T>): Promise<T> {
    const isWanted = (): boolean => {
      const isStillWanted = this.#current(key, waiters) !== null && waiters.some((isWaiting) => isWaiting());
      if (!isStillWanted) this.#end(key, waiters);
      return isStillWanted;
    };
    // `fly` may end at once, and the flight has to be known before that.
    await Promise.resolve();
    try {
      return await fly(isWanted);
    } catch (error) {
      const flight = this.#current(key, waiters);
      if (flight !== null && this.#options.isToRemember(error)) this.#remember(key, flight);
      throw error;
    } finally {
      this.#end(key, waiters);
    }
  }

  /** The flight of these waiters; null once it was abandoned, and may have been followed by another of its key. */
  #current(key: string, waiters: readonly IsWaiting[]): Flight<T> | null {
    const underWay = this.#underWay.get(key);
    return underWay?.waiters === waiters ? underWay.flight : null;
  }

  #end(key: string, waiters: readonly IsWaiting[]): void {
    if (this.#current(key, waiters) !== null) this.#underWay.delete(key);
  }

  #lastFailure(key: string): Flight<T> | undefined {
    const failure = this.#failures.get(key);
    return failure !== undefined && this.#isRemembered(failure) ? failure.flight : undefined;
  }

  #remember(key: string, flight: Flight<T>): void {
    this.#failures.delete(key);
    this.#failures.set(key, { flight, atMs: this.#options.clock.nowMs() });
    for (const [oldKey, old] of this.#failures) {
      if (this.#isRemembered(old)) break;
      this.#failures.delete(oldKey);
    }
  }

  #isRemembered({ atMs }: Failure<T>): boolean {
    return this.#options.clock.nowMs() - atMs < this.#options.rememberFailuresMs;
  }
}

function always(): boolean {
  return true;
}
