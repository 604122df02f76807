/**
 * The read-through cache: the memory tier, then the fleet's, then one flight to the store. Fresh copies are served as
 * they are, stale ones while one refresh runs behind, older ones when the store fails or takes too long.
 */
import { StoreError } from '../upstream/store.ts';
import { Filler, type FillerOptions, type Landing } from './filler.ts';
import type { CacheHooks, MissReason } from './hooks.ts';
import { type Question, readerOf } from './question.ts';
import type { CacheRead, EvaluationReader, ReadContext, ReadOutcome } from './reader.ts';
import { type Flight, SingleFlight } from './single-flight.ts';
import { answers, classOf, judge, type Judgement, type StoredEntry } from './stored.ts';
import { type CacheClass, isKept } from './times.ts';
import { systemTimers } from './timers.ts';

type Optional = 'fleet' | 'timers' | 'hooks' | 'flightDeadlineMs';
export type ReadThroughOptions = Omit<FillerOptions, Optional> & Partial<Pick<FillerOptions, Optional>>;

/** How long a reader waits for the store where there is a copy to serve instead. */
const PATIENCE_MS = 1000;
const REMEMBER_FAILURES_MS = 1000;
const DEFAULT_DEADLINE_MS = 15_000;

export function createReadThrough(options: ReadThroughOptions): EvaluationReader {
  const cache = new ReadThrough({
    fleet: null,
    timers: systemTimers,
    hooks: {},
    flightDeadlineMs: DEFAULT_DEADLINE_MS,
    ...options,
  });
  return readerOf((question, context) => cache.read(question, context));
}

type Tier = NonNullable<CacheRead<unknown>['tier']>;

/** A copy that was found, and what it was good for then. */
interface Held<T> extends Judgement {
  readonly stored: StoredEntry<T>;
  readonly tier: Tier;
}

/** A read that goes to the store, with the copy that didn't do. */
interface Miss<T> {
  readonly question: Question<T>;
  readonly context: ReadContext;
  readonly held: Held<T> | null;
  readonly reason: MissReason;
}

type Settled =
  | { readonly kind: 'landed'; readonly landing: Landing }
  | { readonly kind: 'failed'; readonly error: unknown }
  | { readonly kind: 'late' };

interface Served {
  readonly outcome: ReadOutcome;
  readonly tier: Tier | null;
  readonly isKept: boolean;
  /** Null for reads that the cache answered at once. */
  readonly reason: MissReason | null;
}

class ReadThrough {
  readonly #options: FillerOptions;
  readonly #hooks: CacheHooks;
  readonly #filler: Filler;
  readonly #flights: SingleFlight<Landing>;
  readonly #lookups: SingleFlight<StoredEntry | null>;

  constructor(options: FillerOptions) {
    this.#options = options;
    this.#hooks = options.hooks;
    this.#filler = new Filler(options);
    this.#flights = new SingleFlight(options.clock, REMEMBER_FAILURES_MS);
    this.#lookups = new SingleFlight(options.clock, 0);
    options.fleet?.onStored((key, filledAtMs) => options.memory.deleteOlder(key, filledAtMs));
  }

  async read<T>(question: Question<T>, context: ReadContext): Promise<CacheRead<T>> {
    const local = this.#hold(question, this.#options.memory.get(question.key), 'memory');
    if (local !== null && isServedAtOnce(local)) return this.#serveHeld(question, local, context);
    const shared = this.#options.fleet === null ? null : await this.#findInFleet(question);
    const held = newer(local, shared);
    if (held !== null && isServedAtOnce(held)) return this.#serveHeld(question, held, context);
    return await this.#forward({ question, context, held, reason: this.#missReason(question, held) });
  }

  /** What was found, unless it is no answer to the question. */
  #hold<T>(question: Question<T>, stored: StoredEntry | null | undefined, tier: Tier): Held<T> | null {
    if (stored === null || stored === undefined || !answers(question, stored)) return null;
    return { stored, tier, ...judge(question.key, stored, this.#options.clock.nowMs(), this.#options) };
  }

  async #findInFleet<T>(question: Question<T>): Promise<Held<T> | null> {
    const { key } = question;
    const found = await this.#lookups.join(key, () => this.#filler.findInFleet(key)).landing;
    return this.#hold(question, found, 'redis');
  }

  #serveHeld<T>(question: Question<T>, held: Held<T>, context: ReadContext): CacheRead<T> {
    const isFresh = held.usability === 'fresh';
    if (!isFresh) this.#refresh(question, held, context);
    const outcome = isFresh ? 'hit' : 'stale-while-revalidate';
    return this.#serve(question, held.stored, { outcome, tier: held.tier, isKept: true, reason: null });
  }

  /** One refresh, which nobody waits for; where the last try has just failed, that is joined, and there is none. */
  #refresh<T>(question: Question<T>, held: Held<T>, context: ReadContext): void {
    // The filler has reported the failure; those who were served a copy have no use for it.
    this.#begin({ question, context, held }).landing.catch(() => {});
  }

  #begin<T>({ question, context, held }: Omit<Miss<T>, 'reason'>): Flight<Landing> {
    const task = { question, context, held: held?.stored ?? null };
    return this.#flights.join(question.key, () => this.#filler.run(task));
  }

  async #forward<T>(miss: Miss<T>): Promise<CacheRead<T>> {
    let flight = this.#begin(miss);
    let settled = await this.#settle(flight, miss.held);
    if (settled.kind === 'landed' && !flight.isLed && this.#isPurged(settled.landing)) {
      // It was under way before this reader came, and before a purge that may have come before this reader too. A
      // flight that begins now is later than both.
      flight = this.#begin(miss);
      settled = await this.#settle(flight, miss.held);
    }
    if (settled.kind !== 'landed') {
      const copy = this.#hold(miss.question, miss.held?.stored, miss.held?.tier ?? 'memory');
      if (copy !== null && isServedOnError(copy)) {
        const served = { outcome: 'stale-if-error', tier: copy.tier, isKept: true, reason: miss.reason } as const;
        return this.#serve(miss.question, copy.stored, served);
      }
      // The copy has expired, or was purged, while it was waited.
      if (settled.kind === 'late') settled = await this.#settle(flight, null);
    }
    if (settled.kind === 'landed') return this.#serveLanding(miss, settled.landing, flight.isLed);
    throw this.#fail(miss, settled);
  }

  /** With a copy that is usable on error, the wait for the store is bounded. */
  async #settle(flight: Flight<Landing>, held: Held<unknown> | null): Promise<Settled> {
    const settled = flight.landing.then(
      (landing): Settled => ({ kind: 'landed', landing }),
      (error: unknown): Settled => ({ kind: 'failed', error }),
    );
    if (held === null || !isServedOnError(held)) return await settled;
    const { clock, timers } = this.#options;
    const { promise: lateness, resolve } = Promise.withResolvers<Settled>();
    // Who comes later needn't find out anew that the store is slow.
    const leftMs = Math.max(0, flight.startedAtMs + PATIENCE_MS - clock.nowMs());
    const cancel = timers.after(leftMs, () => resolve({ kind: 'late' }));
    try {
      return await Promise.race([settled, lateness]);
    } finally {
      cancel();
    }
  }

  #isPurged({ stored }: Landing): boolean {
    return this.#options.purges.since(stored.position, stored.tags) === 'hard';
  }

  #serveLanding<T>(
    { question, held, reason }: Miss<T>,
    { stored, from, isKept: kept }: Landing,
    isLed: boolean,
  ): CacheRead<T> {
    if (!answers(question, stored))
      throw new StoreError('malformed', `a ${stored.kind} was kept as a ${question.kind}`);
    if (from === 'memory' || from === 'redis') {
      return this.#serve(question, stored, { outcome: 'hit', tier: from, isKept: kept, reason: null });
    }
    const outcome = from === 'store' && isLed ? 'miss' : 'collapsed';
    const read = this.#serve(question, stored, { outcome, tier: null, isKept: kept, reason });
    return { ...read, forward: held === null || held.usability === 'purged' ? 'uri-miss' : 'stale' };
  }

  #serve<T>(
    question: Question<T>,
    stored: StoredEntry<T>,
    { outcome, tier, isKept: kept, reason }: Served,
  ): CacheRead<T> {
    const { entry, kind } = stored;
    const { ttlMs, ageMs } = judge(question.key, stored, this.#options.clock.nowMs(), this.#options);
    this.#hooks.onRead?.({ class: classOf(kind, entry), key: question.key, outcome, tier, missReason: reason, ageMs });
    return { entry, outcome, tier, ttlMs, ageMs, stored: kept };
  }

  #fail<T>({ question, reason }: Miss<T>, settled: Settled): unknown {
    const { key, kind } = question;
    this.#hooks.onRead?.({ class: kind, key, outcome: 'failed', tier: null, missReason: reason, ageMs: null });
    return settled.kind === 'failed' ? settled.error : new StoreError('timeout', 'the flight did not land');
  }

  #missReason<T>({ kind, key }: Question<T>, held: Held<T> | null): MissReason {
    const cacheClass: CacheClass = held === null ? kind : classOf(kind, held.stored.entry);
    if (!isKept(this.#options.times.of(cacheClass))) return 'not-cacheable';
    if (held !== null) return held.usability === 'purged' ? 'purged' : 'expired';
    return this.#options.memory.wasEvicted(key) ? 'evicted' : 'never-seen';
  }
}

function isServedAtOnce({ usability }: Judgement): boolean {
  return usability === 'fresh' || usability === 'stale';
}

function isServedOnError({ usability }: Judgement): boolean {
  return usability !== 'purged' && usability !== 'gone';
}

/** The newer one, whatever it is worth: what has replaced a copy must not be passed over for it. */
function newer<T>(local: Held<T> | null, shared: Held<T> | null): Held<T> | null {
  if (shared === null || local === null) return shared ?? local;
  return shared.ageMs < local.ageMs ? shared : local;
}
