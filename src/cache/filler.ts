/** What happens inside a flight: look again, ask the store, keep the answer, seed what it holds. */
import type { Clock } from '../clock.ts';
import { type Fetch, StoreError, type StoreErrorKind } from '../upstream/store.ts';
import { fetchEntry, type Fetched, type FetchTask, seedsOf } from './fetch-entry.ts';
import { FleetFlights } from './fleet-flight.ts';
import { asStoreError } from './flight-failure.ts';
import type { Listener } from '../telemetry/events.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { Fleet, Keyed } from './ports.ts';
import type { CacheRead } from './reader.ts';
import { answers, classOf, judge, type Judgement, type Law, type StoredEntry } from './stored.ts';
import { type CacheClass, isCacheable } from './ttl-policy.ts';
import type { Timers } from '../timers.ts';
import { foreignRecord, isVisible } from './visibility.ts';

export interface FillerOptions extends Law {
  readonly fetch: Fetch;
  readonly memory: MemoryTier;
  readonly fleet: Fleet | null;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly hooks: Listener;
  /** How long one flight may take in all; longer than the store client's own limit. */
  readonly flightDeadlineMs: number;
}

/** How a flight ended. */
export interface Landing {
  readonly stored: StoredEntry;
  /** `store`: by this process's call. `elsewhere`: by another process's. A tier: there was one before the flight began. */
  readonly from: 'store' | 'elsewhere' | NonNullable<CacheRead<unknown>['tier']>;
  /** Whether a tier has it for those who come later; never where it is none of what its leader asked for. */
  readonly isKept: boolean;
}

/** What reads are filled by. */
export interface Flights {
  /** Rejects with a StoreError and nothing else. */
  run<T>(task: FetchTask<T>): Promise<Landing>;
  /** What the fleet holds of the key; null where it holds nothing, or can't be asked. */
  findInFleet(key: string): Promise<StoredEntry | null>;
}

export class Filler implements Flights {
  readonly #options: FillerOptions;
  readonly #fleetFlights: FleetFlights | null;

  constructor(options: FillerOptions) {
    this.#options = options;
    const { fleet, clock, timers, hooks, flightDeadlineMs: deadlineMs } = options;
    const onFailed = (operation: string, error: unknown): void => hooks.onFleetFailed?.({ operation, error });
    this.#fleetFlights = fleet === null ? null : new FleetFlights({ fleet, clock, timers, deadlineMs, onFailed });
  }

  /** Rejects with a StoreError and nothing else. */
  run<T>(task: FetchTask<T>): Promise<Landing> {
    return this.#land(task).catch((error: unknown) => {
      const storeError = asStoreError(error);
      const { key, kind } = task.question;
      const isTold = task.held !== null && storeError.kind !== 'paused';
      if (isTold) this.#options.hooks.onRefreshFailed?.({ class: kind, key, error: storeError });
      throw storeError;
    });
  }

  /** What the fleet holds of the key, taken into memory where it is newer than what is there. */
  async findInFleet(key: string): Promise<StoredEntry | null> {
    const { fleet, hooks } = this.#options;
    try {
      const found = await fleet?.tier.get(key);
      return found === undefined ? null : this.#adopt(key, found);
    } catch (error) {
      hooks.onFleetFailed?.({ operation: 'get', error });
      return null;
    }
  }

  /** Into memory, where it is newer than what is there. */
  #adopt(key: string, found: StoredEntry): StoredEntry {
    const { memory } = this.#options;
    const local = memory.get(key);
    if (local === undefined || found.entry.filledAtMs > local.entry.filledAtMs) memory.set(key, found);
    return found;
  }

  async #land<T>(task: FetchTask<T>): Promise<Landing> {
    const { question, held } = task;
    // Between a reader's look and its flight another flight of the key may have landed.
    const local = this.#options.memory.get(question.key);
    if (local !== undefined && this.#isFreshFor(task, local)) return { stored: local, from: 'memory', isKept: true };
    const seenAtMs = Math.max(...[held, local].map((seen) => seen?.entry.filledAtMs ?? Number.NEGATIVE_INFINITY));
    if (this.#fleetFlights === null) {
      const stored = await this.#fetch(task);
      return { stored, from: 'store', isKept: this.#keep(task, stored, false) };
    }
    const judged = (found: StoredEntry | null, isAnyNew: boolean): StoredEntry | null => {
      if (found === null || !answers(question, found)) return null;
      const isOfUse = this.#isFreshFor(task, found) || (isAnyNew && this.#isNews(question.keyHash, found, seenAtMs));
      return isOfUse ? found : null;
    };
    const landing = await this.#fleetFlights.fly(question.key, {
      look: async (isAnyNew) => judged(await this.findInFleet(question.key), isAnyNew),
      findFresh: (found) => judged(this.#adopt(question.key, found), false),
      fetch: () => this.#fetch(task),
      isForAll: (stored) => isVisible(question, stored, task.context.workspaceIds),
      onWaited: (end, durationMs) => {
        this.#options.hooks.onLeaseWait?.({ class: question.kind, key: question.key, end, durationMs });
      },
    });
    const { stored, by, isStored, isOverruled } = landing;
    if (by === 'found') return { stored, from: 'redis', isKept: true };
    if (by === 'awaited') return { stored, from: 'elsewhere', isKept: true };
    if (isOverruled || !answers(question, stored)) return { stored, from: 'store', isKept: false };
    return { stored, from: 'store', isKept: this.#keep(task, stored, isStored) };
  }

  async #fetch<T>(task: FetchTask<T>): Promise<StoredEntry<T>> {
    const { clock, hooks } = this.#options;
    const { question, held } = task;
    const beganAtMs = clock.nowMs();
    const { stored, isChanged } = await this.#ask(task);
    const { entry, kind, fetchedAtMs } = stored;
    const about = { class: classOf(kind, entry), key: question.key };
    const bytes = entry.answer.kind === 'found' ? entry.answer.bytes : 0;
    hooks.onFill?.({ ...about, bytes, durationMs: fetchedAtMs - beganAtMs });
    if (!isVisible(question, stored, task.context.workspaceIds)) {
      if (held?.entry.answer.kind === 'found') hooks.onRefreshFailed?.({ ...about, error: foreignRecord(kind) });
    } else if (held !== null && isChanged !== null) {
      hooks.onRefresh?.({ ...about, changed: isChanged, sinceMs: entry.filledAtMs - held.entry.filledAtMs });
    }
    return stored;
  }

  /** The call itself, reported whatever comes of it, unless it was held back. */
  #ask<T>(task: FetchTask<T>): Promise<Fetched<T>> {
    const { clock, hooks, flightDeadlineMs, timers } = this.#options;
    const { question, context } = task;
    const beganMicros = clock.nowMicros();
    const report = (cacheClass: CacheClass): void => {
      const durationMs = (clock.nowMicros() - beganMicros) / 1000;
      hooks.onStoreCall?.({ class: cacheClass, key: question.key, route: context.route ?? null, durationMs });
    };
    return inTime(fetchEntry(task, this.#options), flightDeadlineMs, timers).then(
      (fetched) => {
        report(classOf(fetched.stored.kind, fetched.stored.entry));
        return fetched;
      },
      (error: unknown) => {
        if (!isHeldBack(error)) report(question.kind);
        throw error;
      },
    );
  }

  /** Keeps the answer and what it seeds, unless a purge has come since the fetch began, or it is of another workspace. */
  #keep<T>({ question, context }: FetchTask<T>, stored: StoredEntry<T>, isInFleet: boolean): boolean {
    const { memory, purges, times } = this.#options;
    if (!isVisible(question, stored, context.workspaceIds)) return false;
    if (purges.since(stored.position, stored.tags) === 'hard') return false;
    const isInMemory = memory.set(question.key, stored);
    const seeds = seedsOf(question, stored, (key) => memory.get(key));
    if (seeds.length > 0) {
      memory.seed(seeds);
      void this.#seedFleet(seeds);
    }
    return (isInMemory || isInFleet) && isCacheable(times.of(classOf(stored.kind, stored.entry)));
  }

  async #seedFleet(seeds: readonly Keyed[]): Promise<void> {
    try {
      await this.#options.fleet?.tier.seed(seeds);
    } catch (error) {
      this.#options.hooks.onFleetFailed?.({ operation: 'seed', error });
    }
  }

  #isFreshFor<T>({ question, context }: FetchTask<T>, stored: StoredEntry): boolean {
    return isVisible(question, stored, context.workspaceIds) && this.#judge(question.keyHash, stored) === 'fresh';
  }

  /**
   * Where a class has no freshness, what another process has just stored is still news to those who waited for it; and
   * also to those whom it tells that it is not theirs.
   */
  #isNews(keyHash: number, found: StoredEntry, seenAtMs: number): boolean {
    return found.entry.filledAtMs > seenAtMs && this.#judge(keyHash, found) !== 'purged';
  }

  #judge(keyHash: number, stored: StoredEntry): Judgement['usability'] {
    return judge(keyHash, stored, this.#options.clock.nowMs(), this.#options).usability;
  }
}

const HELD_BACK: ReadonlySet<StoreErrorKind> = new Set(['overloaded', 'suspended', 'paused'] as const);

/** Whether the call never reached the store. */
function isHeldBack(error: unknown): boolean {
  return error instanceof StoreError && HELD_BACK.has(error.kind);
}

/** The same answer, or a StoreError after that time: whatever becomes of a call, those who wait for it don't for ever. */
function inTime<R>(answer: Promise<R>, deadlineMs: number, timers: Timers): Promise<R> {
  const { promise, resolve, reject } = Promise.withResolvers<R>();
  const cancel = timers.after(deadlineMs, () => {
    reject(new StoreError('timeout', `the store did not answer within ${deadlineMs} ms`));
  });
  const settle = <V>(how: (value: V) => void): ((value: V) => void) => {
    return (value) => {
      cancel();
      how(value);
    };
  };
  answer.then(settle(resolve), settle(reject));
  return promise;
}
