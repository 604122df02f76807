/**
 * The read-through cache: the memory tier, then the fleet's, then one flight to the store. Fresh copies are served as
 * they are, stale ones while one refresh runs behind, older ones when the store fails or takes too long.
 */
import type { MaybePromise } from '../maybe-promise.ts';
import { StoreError } from '../upstream/store.ts';
import { Filler, type FillerOptions, type Flights, type Landing } from './filler.ts';
import { type Held, isServedAtOnce, isServedOnError, newer, type Tier } from './held.ts';
import type { MissReason } from '../telemetry/events.ts';
import { type Maintenance, type MaintenanceWatch, NO_MAINTENANCE, maintenanceError } from './maintenance.ts';
import type { PurgeEpoch } from './purge-log.ts';
import { type Question, readerOf } from './question.ts';
import type { CacheRead, CachingReader, FlightView, ReadContext } from './reader.ts';
import { type Asked, type Miss, Serving } from './serving.ts';
import { type Flight, SingleFlight } from './single-flight.ts';
import { answers, judge, type Judgement, type StoredEntry } from './stored.ts';
import { systemTimers } from '../timers.ts';
import { absence, foreignWorkspaceOf, foreignWorkspaceOfFailure, isVisible } from './visibility.ts';

type Optional = 'fleet' | 'timers' | 'hooks' | 'flightDeadlineMs';
export interface ReadThroughOptions extends Omit<FillerOptions, Optional>, Partial<Pick<FillerOptions, Optional>> {
  /** While it is on, nothing is begun that would ask the store. */
  readonly maintenance?: MaintenanceWatch;
  /** Puts something around the flights, once; by default nothing. */
  readonly aroundFlights?: (flights: Flights) => Flights;
}

/** How long a reader waits for the store where there is a copy to serve instead. */
const PATIENCE_MS = 1000;
const REMEMBER_FAILURES_MS = 1000;
const DEFAULT_DEADLINE_MS = 15_000;

export function createReadThrough(options: ReadThroughOptions): CachingReader {
  const cache = new ReadThrough({
    fleet: null,
    timers: systemTimers,
    hooks: {},
    flightDeadlineMs: DEFAULT_DEADLINE_MS,
    maintenance: NO_MAINTENANCE,
    aroundFlights: (flights) => flights,
    ...options,
  });
  return {
    ...readerOf((question, context) => cache.read(question, context)),
    flightOf: (key) => cache.flightOf(key),
  };
}

/** What a flight is begun for. */
type Begun<T> = Omit<Miss<T>, 'reason' | 'startedMicros'> & { readonly isBackground?: boolean };

type Settled<T> =
  | { readonly kind: 'landed'; readonly landing: Landing }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'late' }
  /** With a record of a workspace that the reader doesn't ask for, or with what can't be used of such a one. */
  | { readonly kind: 'foreign'; readonly verdict: StoredEntry<T>; readonly isKept: boolean };

type Options = FillerOptions & Required<Pick<ReadThroughOptions, 'maintenance' | 'aroundFlights'>>;

class ReadThrough {
  readonly #options: Options;
  readonly #serving: Serving;
  readonly #filler: Flights;
  readonly #flights: SingleFlight<Landing>;
  readonly #lookups: SingleFlight<StoredEntry | null>;
  /** Where the purge log stood before each flight. */
  readonly #positions = new WeakMap<Promise<Landing>, PurgeEpoch>();

  constructor(options: Options) {
    this.#options = options;
    this.#serving = new Serving(options);
    this.#filler = options.aroundFlights(new Filler(options));
    this.#flights = new SingleFlight(options.clock, REMEMBER_FAILURES_MS, isOfTheStore);
    this.#lookups = new SingleFlight(options.clock, 0);
    options.fleet?.onStored((key, filledAtMs) => options.memory.deleteOlder(key, filledAtMs));
  }

  flightOf(key: string): FlightView {
    return { sinceMs: this.#flights.underWaySinceMs(key), hasJustFailed: this.#flights.hasJustFailed(key) };
  }

  read<T>(question: Question<T>, context: ReadContext): MaybePromise<CacheRead<T>> {
    const asked = { question, context, startedMicros: this.#options.clock.nowMicros() };
    const local = this.#hold(question, this.#options.memory.get(question.key), 'memory');
    const own = visibleOnly(asked, local);
    if (own !== null && isServedAtOnce(own)) return this.#serveHeld(asked, own, own);
    return this.#readFurther(asked, local, own);
  }

  /** What the memory tier could not answer with a copy of the reader's own. */
  async #readFurther<T>(asked: Asked<T>, local: Held<T> | null, own: Held<T> | null): Promise<CacheRead<T>> {
    const { question } = asked;
    const verdict = this.#verdict(asked);
    const isOwnOfUse = own !== null && isServedOnError(own);
    if (verdict !== null && isServedAtOnce(verdict) && !isOwnOfUse) return this.#serveHeld(asked, verdict);
    const shared = this.#options.fleet === null ? null : await this.#findInFleet(question);
    const held = visibleOnly(asked, newer(local, shared)) ?? verdict;
    if (held !== null && isServedAtOnce(held)) return this.#serveHeld(asked, held);
    const reason = this.#serving.missReason(question, held);
    if (verdict?.usability === 'fresh') {
      // The store was asked a moment ago, and had nothing of this reader's.
      const isOfUse = held !== null && isServedOnError(held);
      return isOfUse ? this.#serveOnError(asked, held, reason) : this.#serveHeld(asked, verdict);
    }
    return this.#forward({ ...asked, held, reason });
  }

  /** What was found, unless it is no answer to the question. */
  #hold<T>(question: Question<T>, stored: StoredEntry | null | undefined, tier: Tier): Held<T> | null {
    if (stored === null || stored === undefined || !answers(question, stored)) return null;
    return { stored, tier, ...judge(question.keyHash, stored, this.#options.clock.nowMs(), this.#options) };
  }

  #verdict<T>({ question, context }: Asked<T>): Held<T> | null {
    return this.#hold(question, this.#options.memory.absenceTo(context.workspaceIds, question.key), 'memory');
  }

  async #findInFleet<T>(question: Question<T>): Promise<Held<T> | null> {
    const { key } = question;
    const found = await this.#lookups.join(key, () => this.#filler.findInFleet(key)).landing;
    return this.#hold(question, found, 'redis');
  }

  #serveHeld<T>(asked: Asked<T>, held: Held<T>, judgement?: Judgement): CacheRead<T> {
    const isFresh = held.usability === 'fresh';
    if (!isFresh && this.#verdict(asked)?.usability !== 'fresh') this.#refresh(asked, held);
    const outcome = isFresh ? 'hit' : 'stale-while-revalidate';
    const served = { outcome, tier: held.tier, isKept: true, reason: null } as const;
    return this.#serving.serve(asked, held.stored, judgement === undefined ? served : { ...served, judgement });
  }

  #serveOnError<T>(asked: Asked<T>, { stored, tier }: Held<T>, reason: MissReason): CacheRead<T> {
    return this.#serving.serve(asked, stored, { outcome: 'stale-if-error', tier, isKept: true, reason });
  }

  /** Under maintenance a copy that would do if the store failed does at once, and nothing is begun that would ask it. */
  #serveWithoutStore<T>(miss: Miss<T>, maintenance: Maintenance): CacheRead<T> {
    const copy = this.#hold(miss.question, miss.held?.stored, miss.held?.tier ?? 'memory');
    if (copy !== null && isServedOnError(copy)) return this.#serveOnError(miss, copy, miss.reason);
    throw this.#fail(miss, { kind: 'failed', error: maintenanceError(maintenance, this.#options.clock) });
  }

  /** One refresh, which nobody waits for; where the last try has just failed, that is joined, and there is none. */
  #refresh<T>(asked: Asked<T>, held: Held<T>): void {
    if (this.#options.maintenance.current() !== null) return;
    const flight = this.#begin({ ...asked, held, isBackground: true });
    // The filler has reported the failure; those who were served a copy have no use for it.
    void settled(flight).then((end) => this.#decide(asked, flight, end));
  }

  /** `isWaiting` where the flight is of use only to readers who wait for it. */
  #begin<T>({ question, context, held, isBackground = false }: Begun<T>, isWaiting?: () => boolean): Flight<Landing> {
    const task = { question, context, held: held?.stored ?? null, isBackground };
    const position = this.#options.purges.position();
    const fly = (isWanted: () => boolean): Promise<Landing> => this.#filler.run({ ...task, isWanted });
    const flight = this.#flights.join(question.key, fly, isWaiting);
    if (flight.isLed) this.#positions.set(flight.landing, position);
    return flight;
  }

  async #forward<T>(miss: Miss<T>): Promise<CacheRead<T>> {
    const maintenance = this.#options.maintenance.current();
    if (maintenance !== null) return this.#serveWithoutStore(miss, maintenance);
    // What renews a copy is of use also when the reader that caused it has gone.
    const isWaiting = miss.held === null ? miss.context.isWaiting : undefined;
    let flight = this.#begin(miss, isWaiting);
    let end = await this.#settle(flight, miss.held);
    if (end.kind === 'landed' && !flight.isLed && !this.#isNewsFor(miss, end.landing)) {
      flight = this.#begin(miss, isWaiting);
      end = await this.#settle(flight, miss.held);
    }
    end = this.#decide(miss, flight, end);
    if (end.kind !== 'landed') {
      const copy = this.#hold(miss.question, miss.held?.stored, miss.held?.tier ?? 'memory');
      const isOutdone = end.kind === 'foreign' && copy?.stored.entry.answer.kind === 'absent';
      if (copy !== null && isServedOnError(copy) && !isOutdone) return this.#serveOnError(miss, copy, miss.reason);
      // The copy has expired, or was purged, while it was waited.
      if (end.kind === 'late') end = this.#decide(miss, flight, await this.#settle(flight, null));
    }
    if (end.kind === 'landed') return this.#serveLanding(miss, end.landing, flight.isLed);
    if (end.kind !== 'foreign') throw this.#fail(miss, end);
    const landing = { stored: end.verdict, from: 'store', isKept: end.isKept } as const;
    return this.#serveLanding(miss, landing, flight.isLed);
  }

  /** With a copy that is usable on error, the wait for the store is bounded. */
  #settle<T>(flight: Flight<Landing>, held: Held<T> | null): Promise<Settled<T>> {
    return held === null || !isServedOnError(held) ? settled(flight) : this.#settleInTime(flight);
  }

  async #settleInTime<T>(flight: Flight<Landing>): Promise<Settled<T>> {
    const { clock, timers } = this.#options;
    const { promise: lateness, resolve } = Promise.withResolvers<Settled<T>>();
    // Who comes later needn't find out anew that the store is slow.
    const leftMs = Math.max(0, flight.startedAtMs + PATIENCE_MS - clock.nowMs());
    const cancel = timers.after(leftMs, () => resolve({ kind: 'late' }));
    try {
      return await Promise.race([settled<T>(flight), lateness]);
    } finally {
      cancel();
    }
  }

  /**
   * Whether a flight that was under way before this reader came has brought what one of its own would. Not what it began
   * to fetch before a purge that may have come before this reader too; nor another reader's copy that it only found.
   */
  #isNewsFor<T>({ question, context }: Asked<T>, { stored, from }: Landing): boolean {
    if (this.#options.purges.since(stored.position, stored.tags) === 'hard') return false;
    const isFound = from === 'memory' || from === 'redis';
    return !isFound || isVisible(question, stored, context.workspaceIds);
  }

  /** What the end of a flight is to this reader: others have waited for it too. */
  #decide<T>({ question, context }: Asked<T>, flight: Flight<Landing>, end: Settled<T>): Settled<T> {
    if (end.kind === 'landed') {
      const { stored } = end.landing;
      const workspaceId = answers(question, stored) ? foreignWorkspaceOf(question, stored, context.workspaceIds) : null;
      if (workspaceId === null) return end;
      const learned = { ...stored, filledAtMs: stored.entry.filledAtMs };
      return this.#conclude(question, workspaceId, absence(question, learned));
    }
    const workspaceId = end.kind === 'failed' ? foreignWorkspaceOfFailure(end.error, context.workspaceIds) : null;
    if (workspaceId === null) return end;
    const { purges, clock } = this.#options;
    const position = this.#positions.get(flight.landing) ?? purges.position();
    const learned = { filledAtMs: flight.startedAtMs, position, fetchedAtMs: clock.nowMs() };
    return this.#conclude(question, workspaceId, absence(question, learned));
  }

  #conclude<T>({ key }: Question<T>, workspaceId: string, verdict: StoredEntry<T>): Settled<T> {
    const { memory, purges } = this.#options;
    const isCurrent = purges.since(verdict.position, verdict.tags) !== 'hard';
    const isRemembered = isCurrent && memory.setVerdict(key, { workspaceId, absence: verdict });
    return { kind: 'foreign', verdict, isKept: isRemembered };
  }

  #serveLanding<T>(miss: Miss<T>, { stored, from, isKept: kept }: Landing, isLed: boolean): CacheRead<T> {
    const { question, held, reason } = miss;
    if (!answers(question, stored))
      throw new StoreError('malformed', `a ${stored.kind} was kept as a ${question.kind}`);
    if (from === 'memory' || from === 'redis') {
      return this.#serving.serve(miss, stored, { outcome: 'hit', tier: from, isKept: kept, reason: null });
    }
    const outcome = from === 'store' && isLed ? 'miss' : 'collapsed';
    const read = this.#serving.serve(miss, stored, { outcome, tier: null, isKept: kept, reason });
    return { ...read, forward: held === null || held.usability === 'purged' ? 'uri-miss' : 'stale' };
  }

  #fail<T>(miss: Miss<T>, end: Settled<T>): unknown {
    this.#serving.reportFailed(miss);
    return end.kind === 'failed' ? end.error : new StoreError('timeout', 'the flight did not land');
  }
}

/** What was held back under maintenance is no failure of the store, and over when the maintenance is. */
function isOfTheStore(error: unknown): boolean {
  return !(error instanceof StoreError && error.kind === 'paused');
}

function settled<T>(flight: Flight<Landing>): Promise<Settled<T>> {
  return flight.landing.then(
    (landing) => ({ kind: 'landed', landing }),
    (error: unknown) => ({ kind: 'failed', error }),
  );
}

/** Another reader's copy is none. */
function visibleOnly<T>({ question, context }: Asked<T>, held: Held<T> | null): Held<T> | null {
  return held !== null && isVisible(question, held.stored, context.workspaceIds) ? held : null;
}
