/** One flight a key in the whole fleet: a lease says who asks the store; the others wait for what it stores. */
import type { Clock } from '../clock.ts';
import { StoreError, type StoreErrorKind } from '../upstream/store.ts';
import { asStoreError, fromFailure, toFailure } from './flight-failure.ts';
import type { LeaseWaitEnd } from '../telemetry/events.ts';
import type { Fleet, FlightFailure, Following, Lease, LeaseAttempt } from './ports.ts';
import type { StoredEntry } from './stored.ts';
import type { Timers } from '../timers.ts';

export interface FleetJob {
  /** What another flight has stored by now: a fresh entry; with `isAnyNew`, also one that is merely newer than what was held. */
  look(isAnyNew: boolean): Promise<StoredEntry | null>;
  /** What was there as the lease began, where it makes asking the store needless; else null. */
  findFresh(stored: StoredEntry): StoredEntry | null;
  /** Asks the store. Bounded in time by itself. */
  fetch(): Promise<StoredEntry>;
  /** The same answer of Redis, or a rejection once those who wait for this flight have waited long enough for Redis. */
  inTime<R>(answer: Promise<R>): Promise<R>;
  /** Whether what was fetched is to be stored for all; else the others look and ask for themselves. */
  isForAll(stored: StoredEntry): boolean;
  /** Told of each wait for another process's flight. */
  onWaited?(end: LeaseWaitEnd, durationMs: number): void;
}

/**
 * - `found`: another flight had stored it before this one got to ask
 * - `awaited`: it was asked for by another process while this one waited
 * - `fetched`: this process asked the store; `isStored` unless the lease was lost, the fleet is out of reach, or it is not
 *   for all
 */
export interface FleetLanding {
  readonly stored: StoredEntry;
  readonly by: 'found' | 'awaited' | 'fetched';
  readonly isStored: boolean;
  /** The lease was lost meanwhile: another process may hold something newer, so nobody may keep this. */
  readonly isOverruled: boolean;
}

type Acquired = Extract<LeaseAttempt, { kind: 'acquired' }>;

type Waited =
  | { readonly end: 'stored'; readonly stored: StoredEntry }
  | { readonly end: 'failed'; readonly failure: FlightFailure }
  | { readonly end: 'taken-over'; readonly attempt: Acquired | undefined }
  | { readonly end: Extract<LeaseWaitEnd, 'timeout'> };

export interface FleetFlightsOptions {
  readonly fleet: Fleet;
  readonly clock: Clock;
  readonly timers: Timers;
  /** How long other processes are waited for. */
  readonly deadlineMs: number;
  readonly onFailed: (operation: string, error: unknown) => void;
}

/** A third of the shortest lease, so that one lost renewal is no lost lease. */
const RENEW_EVERY_MS = 600;
/** How long a waiter trusts to be woken before it looks by itself. */
const LOOK_EVERY_MS = 250;

/**
 * What ended without a word from the store is no failure to those who wait elsewhere: one of them takes over. It was given
 * up because nobody waits here any more; or held back by this process's own guard, where another's may let it through;
 * or the store is under maintenance, which must not be remembered beyond its end.
 */
const OF_NO_CONCERN_ELSEWHERE: ReadonlySet<StoreErrorKind> = new Set<StoreErrorKind>([
  'aborted',
  'overloaded',
  'circuitOpen',
  'maintenance',
]);

export class FleetFlights {
  readonly #options: FleetFlightsOptions;

  constructor(options: FleetFlightsOptions) {
    this.#options = options;
  }

  /** Rejects with a StoreError: the store's own, or the one that the leader met. */
  async fly(key: string, job: FleetJob): Promise<FleetLanding> {
    const attempt = await this.#acquire(key, job);
    if (attempt?.kind !== 'taken') return this.#go(attempt, job);
    const following = await this.#try('follow', () => this.#options.fleet.leases.follow(key));
    if (following === undefined) return this.#go(undefined, job);
    try {
      return await this.#wait(key, following, job);
    } finally {
      following.close();
    }
  }

  async #wait(key: string, following: Following, job: FleetJob): Promise<FleetLanding> {
    const { clock, deadlineMs } = this.#options;
    const beganMicros = clock.nowMicros();
    const waited = await this.#awaitEnd(key, following, job);
    job.onWaited?.(waited.end, (clock.nowMicros() - beganMicros) / 1000);
    if (waited.end === 'stored') return { stored: waited.stored, by: 'awaited', isStored: true, isOverruled: false };
    if (waited.end === 'taken-over') return this.#go(waited.attempt, job);
    if (waited.end === 'failed') throw fromFailure(waited.failure);
    throw new StoreError('timeout', `other processes did not get an answer within ${deadlineMs} ms`);
  }

  /** Looks only after it has begun to listen: an end between the two would else be missed. */
  async #awaitEnd(key: string, following: Following, job: FleetJob): Promise<Waited> {
    const { clock, deadlineMs } = this.#options;
    const untilMs = clock.nowMs() + deadlineMs;
    let isWoken = false;
    while (clock.nowMs() < untilMs) {
      const stored = await job.look(isWoken);
      if (stored !== null) return { end: 'stored', stored };
      const attempt = await this.#acquire(key, job);
      if (attempt?.kind === 'failed') return { end: 'failed', failure: attempt.failure };
      if (attempt?.kind !== 'taken') return { end: 'taken-over', attempt };
      const end = await this.#try('follow', () => following.next(LOOK_EVERY_MS));
      if (end === undefined) return { end: 'taken-over', attempt: undefined };
      if (end?.kind === 'failed') return { end: 'failed', failure: end.failure };
      isWoken = end?.kind === 'stored';
    }
    return { end: 'timeout' };
  }

  async #go(attempt: Exclude<LeaseAttempt, { kind: 'taken' }> | undefined, job: FleetJob): Promise<FleetLanding> {
    if (attempt?.kind === 'failed') throw fromFailure(attempt.failure);
    if (attempt?.kind === 'acquired') return this.#lead(attempt, job);
    // The fleet is out of reach: each process for itself.
    return { stored: await job.fetch(), by: 'fetched', isStored: false, isOverruled: false };
  }

  async #lead({ lease, stored: found }: Acquired, job: FleetJob): Promise<FleetLanding> {
    // Another leader may have stored and left between this reader's look and its lease.
    const present = found === undefined ? null : job.findFresh(found);
    if (present !== null) {
      void this.#try('release', () => lease.release());
      return { stored: present, by: 'found', isStored: true, isOverruled: false };
    }
    const stored = await this.#fetchUnder(lease, job);
    if (!job.isForAll(stored)) {
      void this.#try('release', () => lease.release());
      return { stored, by: 'fetched', isStored: false, isOverruled: false };
    }
    const isStored = await this.#try('complete', () => job.inTime(lease.complete(stored)));
    return { stored, by: 'fetched', isStored: isStored === true, isOverruled: isStored === false };
  }

  async #fetchUnder(lease: Lease, job: FleetJob): Promise<StoredEntry> {
    const stopRenewing = this.#keepRenewing(lease);
    try {
      return await job.fetch();
    } catch (error) {
      const failure = asStoreError(error);
      // Those who wait here needn't wait until the others have been told.
      if (OF_NO_CONCERN_ELSEWHERE.has(failure.kind)) void this.#try('release', () => lease.release());
      else void this.#try('fail', () => lease.fail(toFailure(failure)));
      throw error;
    } finally {
      stopRenewing();
    }
  }

  #keepRenewing(lease: Lease): () => void {
    let cancel: (() => void) | null = null;
    let isStopped = false;
    const renew = async (): Promise<void> => {
      const isHeld = await this.#try('renew', () => lease.renew());
      if (!isStopped && isHeld !== false) schedule();
    };
    const schedule = (): void => {
      cancel = this.#options.timers.after(RENEW_EVERY_MS, () => void renew());
    };
    schedule();
    return () => {
      isStopped = true;
      cancel?.();
    };
  }

  #acquire(key: string, job: FleetJob): Promise<LeaseAttempt | undefined> {
    return this.#try('acquire', () => job.inTime(this.#options.fleet.leases.acquire(key)));
  }

  /** Undefined where the fleet fails: that is reported and never a reader's trouble. */
  async #try<R>(operation: string, run: () => Promise<R>): Promise<R | undefined> {
    try {
      return await run();
    } catch (error) {
      this.#options.onFailed(operation, error);
      return undefined;
    }
  }
}
