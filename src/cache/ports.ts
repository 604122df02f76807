/**
 * What the cache shares with the other processes of a fleet. A gateway that is alone has none of it. Every method may
 * reject: the cache then goes on without the fleet, and a reader never notices more than a miss.
 */
import type { StoreErrorKind } from '../upstream/store.ts';
import type { StoredEntry } from './stored.ts';

export type MaybePromise<T> = T | Promise<T>;

export interface Keyed {
  readonly key: string;
  readonly stored: StoredEntry;
}

/** What of an entry a purge goes by. */
export type Tagged = Pick<StoredEntry, 'tags' | 'position'>;

export interface Usage {
  readonly entries: number;
  readonly bytes: number;
}

export interface Measured extends Usage {
  /** False if counting was cut short: there is more. */
  readonly isComplete: boolean;
}

/** Where entries are kept. Whatever it returns was checked to be an entry. */
export interface CacheTier {
  get(key: string): MaybePromise<StoredEntry | undefined>;
  /** False where it doesn't fit. */
  set(key: string, stored: StoredEntry): MaybePromise<boolean>;
  /** Each one is set only where there is nothing, or something whose fetch was over before the new one's began. */
  seed(seeds: readonly Keyed[]): MaybePromise<void>;
  delete(key: string): MaybePromise<void>;
  /** How much of it matches. Looks at every entry until `deadline` aborts: for operators, not for readers. */
  measure(matches: (stored: Tagged) => boolean, deadline?: AbortSignal): MaybePromise<Measured>;
}

/** Why a flight ended without an answer, for those who waited for it in other processes. */
export interface FlightFailure {
  readonly kind: StoreErrorKind;
  /** Private, for logs. */
  readonly message: string;
  readonly retryAfterMs: number | null;
  readonly status: number | null;
  /** Of a malformed record: the workspace that it says it is of. */
  readonly workspaceId: string | null;
}

/** The right to ask the store one question for the whole fleet. It lapses by itself unless it is renewed. */
export interface Lease {
  /** False once it is lost. */
  renew(): Promise<boolean>;
  /** Stores the entry, ends the lease and wakes all waiters, in one step. False, and nothing done, once it is lost. */
  complete(stored: StoredEntry): Promise<boolean>;
  /** Ends the lease and tells all waiters; for 1 s nobody else gets the lease but this failure. */
  fail(failure: FlightFailure): Promise<void>;
  /** Ends the lease because nothing was to be fetched any more. */
  release(): Promise<void>;
}

export type LeaseAttempt =
  /** `stored`: what the fleet holds of the key as the lease begins, which nobody but its holder changes from then on. */
  | { readonly kind: 'acquired'; readonly lease: Lease; readonly stored: StoredEntry | undefined }
  | { readonly kind: 'taken' }
  | { readonly kind: 'failed'; readonly failure: FlightFailure };

export type FlightEnd = { readonly kind: 'stored' } | { readonly kind: 'failed'; readonly failure: FlightFailure };

/** An ear at another process's flight. */
export interface Following {
  /** How the flight ended, also if that was since the last call; null after that time without an end. */
  next(timeoutMs: number): Promise<FlightEnd | null>;
  close(): void;
}

export interface Leases {
  acquire(key: string): Promise<LeaseAttempt>;
  /** Once it resolves, no end of a flight is missed. */
  follow(key: string): Promise<Following>;
}

export interface Fleet {
  readonly tier: CacheTier;
  readonly leases: Leases;
  /** Told of every entry that another process completed. Returns a function that ends this. */
  onStored(listener: (key: string, filledAtMs: number) => void): () => void;
}
