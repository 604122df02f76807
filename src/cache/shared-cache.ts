/**
 * The cache that several processes share. Every method may reject: each process then goes on without it, and a reader
 * notices nothing but a miss.
 */
import { StoreError } from '../upstream/store-error.ts';
import type { Keyed, Learned, Measured, StoredEntry } from './entry.ts';
import type { Tagged } from './purge-log.ts';
import type { Reader } from './reader.ts';

/** The shared entries of a key. Each was checked to be one. */
export interface Shared {
  /** The last answer of the store, unless it is a record that the reader may not see. */
  readonly entry: StoredEntry | null;
  /** When such a record was fetched. It is not sent itself: its size would show in the time that a 404 takes (K7a). */
  readonly foreign: Learned | null;
  /** The negative entry of the set of workspaces that was asked about. */
  readonly negative: StoredEntry | null;
}

/** Why a call ended without an answer, for those who waited for it in other processes. */
export type FlightFailure = Pick<StoreError, 'kind' | 'message' | 'retryAfterMs' | 'status' | 'workspaceId'>;

/** - `lost`: the lease had ended, or the key holds something newer: the answer is not stored, and nobody may keep it. */
export type Completion = 'stored' | 'unshared' | 'lost';

/** The answer to be stored for all, and the negative entry for the workspaces that the lease was taken for. */
export type Completed = Omit<Shared, 'foreign'>;

/** The right to ask the store for one key, for all processes. It is renewed until it ends, and lapses if the process does. */
export interface Lease {
  /** Stores what is given, ends the lease and wakes all who wait, in one step. */
  complete(completed: Completed): Promise<Completion>;
  /**
   * Ends the lease and reports the failure to all who wait; for 1 s nobody of the same workspaces gets the lease but this
   * failure. `tookMs`: how long the call has taken.
   */
  fail(failure: FlightFailure, tookMs: number): Promise<void>;
  /** Ends the lease because nothing was to be fetched any more. */
  release(): Promise<void>;
}

export interface LeaseRequest {
  readonly key: string;
  /** The reader's: the failure of a call for others is not for it. */
  readonly workspaceIds: readonly string[];
  /** When the copy that the process holds was requested, Unix milliseconds: an older one is not sent. Null if it has none. */
  readonly newerThanMs: number | null;
}

export type LeaseAttempt =
  /** `found`: the entries of the key if they are newer than this process's; only the holder of the lease changes them from now on. */
  | { readonly status: 'acquired'; readonly lease: Lease; readonly found: Shared }
  | { readonly status: 'taken' }
  | { readonly status: 'failed'; readonly failure: FlightFailure };

/** `failed`: why is remembered for a while, and returned to those of the same workspaces who ask for the lease. */
export type FlightEnd = { readonly kind: 'stored' } | ({ readonly kind: 'failed' } & FailedCall);

export interface FailedCall {
  readonly failure: FlightFailure;
  /** For whom the call was made; null if an older release has made it. */
  readonly workspaceSet: string | null;
  readonly tookMs: number;
}

/** A subscription to the end of another process's call. */
export interface Following {
  /** How the call ended, at the last `next` or since; null after that time, or once the lease may have lapsed. */
  next(timeoutMs: number): Promise<FlightEnd | null>;
  close(): void;
}

/** Everything that is shared of a key, for operators. */
export interface Inspection {
  readonly entry: KeptCopy | null;
  readonly negative: KeptCopy | null;
  /** Something is there that is no entry. It counts as nothing. */
  readonly isBroken: boolean;
  /** How long the lease is still held by some process; null if nobody has it. */
  readonly leaseLeftMs: number | null;
  /** Whether a call has failed so lately that no process asks again yet. */
  readonly hasJustFailed: boolean;
}

/** A copy as operators are shown it; `keptForMs` is null if it is not known. */
export interface KeptCopy {
  readonly stored: StoredEntry;
  readonly bytes: number;
  readonly keptForMs: number | null;
}

/** The part that reads use. */
export interface SharedCache {
  lookUp(key: string, reader: Pick<Reader, 'workspaceIds'>): Promise<Shared>;
  /** Sets each one only if there is nothing, or something whose fetch was over before the new one's began. */
  backfill(entries: readonly Keyed[]): Promise<void>;
  /** Keeps a negative entry for those workspaces. */
  setNegative(key: string, workspaceSet: string, negative: StoredEntry): Promise<void>;
  /** Remembers a failure for those workspaces too, as after a call of their own. */
  setFailure(key: string, workspaceSet: string, failure: FlightFailure): Promise<void>;
  acquire(request: LeaseRequest): Promise<LeaseAttempt>;
  /** Follows the call of the process that has the lease: every end that comes after `follow` has returned is reported. */
  follow(key: string): Following;
}

/** The part that operators use. */
export interface SharedCacheAdmin {
  get(key: string): Promise<StoredEntry | null>;
  /** How much of it matches. Looks at every entry, until `deadline` aborts. */
  measure(matches: (stored: Tagged) => boolean, deadline?: AbortSignal): Promise<Measured>;
  /** `workspaceSet`: for whom it is explained; null for nobody. Only looks. */
  inspect(key: string, workspaceSet: string | null): Promise<Inspection>;
}

export const NOTHING: Shared = { entry: null, foreign: null, negative: null };

/** The lease of a process that shares nothing, or cannot now: it asks the store for itself. */
export const OWN_LEASE: Lease = {
  complete: async () => 'unshared',
  fail: async () => {},
  release: async () => {},
};

/** For a gateway that is alone: nothing is shared, and a lease is always had. */
export const UNSHARED: SharedCache = {
  lookUp: async () => NOTHING,
  backfill: async () => {},
  setNegative: async () => {},
  setFailure: async () => {},
  acquire: async () => ({ status: 'acquired', lease: OWN_LEASE, found: NOTHING }),
  follow: () => ({ next: async () => null, close: () => {} }),
};

export function toFailure({ kind, message, retryAfterMs, status, workspaceId }: StoreError): FlightFailure {
  return { kind, message, retryAfterMs, status, workspaceId };
}

export function fromFailure({ kind, message, ...details }: FlightFailure): StoreError {
  return new StoreError(kind, message, details);
}
