/**
 * One call per key in this process, whoever asks. A caller that comes while it is under way waits for it.
 *
 * Readers who may not see a record must not notice that others read it (K7a: a foreign record looks like none). So what a
 * call brings, and the memory of its failure, are for one set of workspaces. Readers of another set wait for the same call,
 * but unless it brings a record that they may see, they are answered no sooner than by a call of their own.
 */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../time/clock.ts';
import { FlightSpans } from './flight-spans.ts';
import { asStoreError, StoreError, type StoreErrorKind } from '../upstream/store-error.ts';
import type { ReadThroughParts } from './copies.ts';
import { type Learned, learnedOf, negativeEntry } from './entry.ts';
import { type FetchResult, type FetchTask, type OriginFetcher } from './origin-fetch.ts';
import { isPurged } from './purge-log.ts';
import { type FlightView, isFailureVisible, isVisible, type Reader, workspaceSetOf } from './reader.ts';

/** The end of a flight for the readers of one set of workspaces: `stored` is a copy that they may see, or a negative entry. */
export interface FlightResult extends Omit<FetchResult, 'failure' | 'notBeforeMs'> {
  /** The store has a record of another workspace: to these readers there is none. */
  readonly isForeign: boolean;
}

/** For so long readers of the same workspaces get the failure of the last flight instead of trying anew. */
const REMEMBER_FAILURES_MS = 1000;
const MAX_FAILURES = 10_000;
/** These failures are not the store's: nobody waited for the call any more, or a maintenance, which may end at any moment, stopped it. */
const NOT_REMEMBERED: ReadonlySet<StoreErrorKind> = new Set(['aborted', 'maintenance'] as const);

export class Flights {
  readonly #origin: OriginFetcher;
  readonly #options: ReadThroughParts;
  /** By key: one call at a time, for readers of all workspaces. */
  readonly #calls: SingleFlight<FetchResult>;
  /** By key and set of workspaces: what the call is to those readers. */
  readonly #flights: SingleFlight<FlightResult>;
  /** By the same: flights that have failed. */
  readonly #failures = new LRUCache<string, { readonly flight: Flight<FlightResult>; readonly atMs: number }>({
    max: MAX_FAILURES,
  });
  readonly #spans = new FlightSpans();

  constructor(origin: OriginFetcher, options: ReadThroughParts) {
    this.#origin = origin;
    this.#options = options;
    this.#calls = new SingleFlight(options.clock);
    this.#flights = new SingleFlight(options.clock);
  }

  /** `reader`: for whom a failure is remembered; null for anybody. */
  flightOf(key: string, reader: Pick<Reader, 'workspaceIds'> | null): FlightView {
    const names =
      reader === null ? [...this.#failures.keys()].filter((name) => name.startsWith(`${key} `)) : [nameOf(key, reader)];
    const hasJustFailed = names.some((name) => this.#lastFailure(name) !== undefined);
    return { sinceMs: this.#calls.underWaySinceMs(key), hasJustFailed };
  }

  /**
   * Joins the flight that is under way, or begins one. Rejects with a StoreError and nothing else. `isWanted` of the task:
   * whether this caller still waits.
   */
  join<T>(task: FetchTask<T>): Flight<FlightResult> {
    const name = nameOf(task.request.key, task.reader);
    // `join` calls it in a later turn, when `flight` is set.
    const fly = (isWanted: () => boolean): Promise<FlightResult> =>
      this.#callOrJoin({ ...task, isWanted }).catch((error: unknown) => {
        this.#remember(name, flight, error);
        throw error;
      });
    const flight = this.#lastFailure(name) ?? this.#flights.join(name, fly, task.isWanted);
    if (!flight.startedByCaller) this.#spans.joined({ ...task.request, ...flight, isBackground: task.isBackground });
    return flight;
  }

  #remember(name: string, flight: Flight<FlightResult>, error: unknown): void {
    if (error instanceof StoreError && NOT_REMEMBERED.has(error.kind)) return;
    this.#failures.set(name, { flight: { ...flight, startedByCaller: false }, atMs: this.#options.clock.nowMs() });
  }

  #lastFailure(name: string): Flight<FlightResult> | undefined {
    const failure = this.#failures.get(name);
    const isOver = failure === undefined || this.#options.clock.nowMs() - failure.atMs >= REMEMBER_FAILURES_MS;
    return isOver ? undefined : failure.flight;
  }

  async #callOrJoin<T>(task: FetchTask<T>): Promise<FlightResult> {
    const { clock, purges } = this.#options;
    const { key } = task.request;
    const joinedAt = { requestedAtMs: clock.nowMs(), epoch: purges.epoch() };
    for (;;) {
      const call = this.#calls.join(
        key,
        (isWanted) => this.#spans.run(key, () => this.#origin.fetch({ ...task, isWanted })),
        task.isWanted,
      );
      this.#spans.joined({ ...task.request, ...call, isBackground: task.isBackground });
      if (call.startedByCaller) {
        const result = await call.result;
        if (result.notBeforeMs === undefined) return resultFor(task, result);
      }
      const result = await this.#answerWaiter(task, call, joinedAt);
      if (result !== null) return result;
    }
  }

  /**
   * What readers get who have waited for a call that others had caused, here or in another process. Null if it brought
   * nothing for these: it began before a purge, or only found what is kept for the others.
   */
  async #answerWaiter<T>(
    task: FetchTask<T>,
    call: Flight<FetchResult>,
    joinedAt: Pick<Learned, 'requestedAtMs' | 'epoch'>,
  ): Promise<FlightResult | null> {
    const { request, reader, previous } = task;
    const { clock, purges } = this.#options;
    const end = await call.result.catch(asStoreError);
    const [result, failure] = end instanceof StoreError ? [null, end] : [end, end.failure];
    if (result !== null && isVisible(request, result.stored, reader)) {
      return isPurged(purges, result.stored) ? null : { ...result, from: 'elsewhere', isForeign: false };
    }
    const isFound = result?.stored.entry.answer.kind === 'found';
    // A negative entry that was found for the reader who began the flight says nothing of what these may see.
    const isOfCaller = !call.startedByCaller && failure === null && result?.from !== 'store';
    if (isOfCaller && !isFound) return null;
    const nowMs = clock.nowMs();
    const learned = result === null ? { ...joinedAt, receivedAtMs: nowMs } : learnedOf(result.stored);
    const negative = negativeEntry(request, learned);
    if (isPurged(purges, negative)) return null;
    const isOwnFailure = failure !== null && isFailureVisible(failure, reader);
    const isKnownToBeOwn = isOwnFailure && (previous?.entry.answer.kind === 'found' || failure.workspaceId !== null);
    // Another process's call may have begun before this process waited for it.
    const tookMs = Math.max(nowMs - call.startedAtMs, learned.receivedAtMs - learned.requestedAtMs);
    const notBeforeMs = Math.max(joinedAt.requestedAtMs + tookMs, result?.notBeforeMs ?? 0);
    if (!isKnownToBeOwn) await pauseUntil(notBeforeMs, this.#options);
    if (isOwnFailure) {
      this.#origin.keepFailure(task, failure);
      throw failure;
    }
    const isForeign = failure !== null || isFound;
    return { stored: negative, from: 'elsewhere', isStored: this.#origin.keepNegative(task, negative), isForeign };
  }
}

function nameOf(key: string, reader: Pick<Reader, 'workspaceIds'>): string {
  return `${key} ${workspaceSetOf(reader)}`;
}

function resultFor<T>({ request, reader }: FetchTask<T>, { failure, ...result }: FetchResult): FlightResult {
  const { stored, from } = result;
  if (from !== 'store' || isVisible(request, stored, reader)) return { ...result, isForeign: false };
  const isForeign = failure !== null || stored.entry.answer.kind === 'found';
  return { ...result, stored: negativeEntry(request, learnedOf(stored)), isForeign };
}

/** A reader who waits for a time looks at the clock this often: it may be set meanwhile. */
const LOOK_AT_CLOCK_MS = 100;

/** Waits until that time, Unix milliseconds, but no longer than `maxWaitMs`. */
async function pauseUntil(untilMs: number, { clock, timers, maxWaitMs }: ReadThroughParts): Promise<void> {
  let leftMs = Math.min(untilMs - clock.nowMs(), maxWaitMs);
  while (leftMs > 0 && clock.nowMs() < untilMs) {
    const waitMs = Math.min(leftMs, LOOK_AT_CLOCK_MS);
    await new Promise<void>((resolve) => void timers.after(waitMs, resolve));
    leftMs -= waitMs;
  }
}

export interface Flight<T> {
  readonly result: Promise<T>;
  /** Whether this caller began it, and did not join one that was under way. */
  readonly startedByCaller: boolean;
  /** When it began, Unix milliseconds. */
  readonly startedAtMs: number;
}

type IsWaiting = () => boolean;

interface UnderWay<T> {
  readonly flight: Flight<T>;
  readonly waiters: IsWaiting[];
}

/** One flight per key: a caller that comes while it is under way waits for it. */
class SingleFlight<T> {
  readonly #clock: Clock;
  readonly #underWay = new Map<string, UnderWay<T>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** When the key's flight that is under way began, Unix milliseconds; null if there is none. */
  underWaySinceMs(key: string): number | null {
    return this.#underWay.get(key)?.flight.startedAtMs ?? null;
  }

  /**
   * Joins the key's flight, or begins it by calling `fly`. A flight belongs to nobody: a caller that leaves aborts
   * nothing. `fly` may ask whether anyone still waits: once nobody does, nobody joins the flight any more, and it has to end.
   */
  join(key: string, fly: (isWanted: () => boolean) => Promise<T>, isWaiting: IsWaiting): Flight<T> {
    const underWay = this.#underWay.get(key);
    if (underWay !== undefined) {
      underWay.waiters.push(isWaiting);
      return { ...underWay.flight, startedByCaller: false };
    }
    const waiters = [isWaiting];
    const flight = { result: this.#run(key, waiters, fly), startedByCaller: true, startedAtMs: this.#clock.nowMs() };
    this.#underWay.set(key, { flight, waiters });
    return flight;
  }

  async #run(key: string, waiters: readonly IsWaiting[], fly: (isWanted: () => boolean) => Promise<T>): Promise<T> {
    // An abandoned flight may have been followed by another of its key.
    const isCurrent = (): boolean => this.#underWay.get(key)?.waiters === waiters;
    const end = (): void => {
      if (isCurrent()) this.#underWay.delete(key);
    };
    const isWanted = (): boolean => {
      const isStillWanted = isCurrent() && waiters.some((isWaiting) => isWaiting());
      if (!isStillWanted) end();
      return isStillWanted;
    };
    // `fly` may end at once, and the flight has to be known before that.
    await Promise.resolve();
    return await fly(isWanted).finally(end);
  }
}
