/**
 * The cache that several processes share. Every method may reject: each process then goes on without it, and a reader
 * notices nothing but a miss.
 */
import { StoreError } from '../upstream/store-error.ts';
import type { Keyed, Measured, StoredEntry } from './entry.ts';
import type { Tagged } from './purge-log.ts';
import type { Reader } from './reader.ts';

/** The shared entries of a key, for one reader. Each was checked to be one. */
export interface Shared {
  /** The last answer of the store, if it is a record that the reader may see. */
  readonly entry: StoredEntry | null;
  /**
   * When the last answer was fetched if the reader gets no copy of it, Unix milliseconds: a record of another workspace, or
   * that there is none. Both are the same here, and neither is sent: its size would show in the time of a 404 (K7a: a
   * foreign record looks like none).
   */
  readonly replacedAtMs: number | null;
  /** The negative entry of the reader's set of workspaces. */
  readonly negative: StoredEntry | null;
}

/** Why a call ended without an answer, for those who waited for it in other processes. */
export type FlightFailure = Pick<StoreError, 'kind' | 'message' | 'retryAfterMs' | 'status' | 'workspaceId'>;

/**
 * - `stored`: what was given is kept for all
 * - `unshared`: the entry is not kept for others, but may be kept in memory
 * - `overtaken`: the key holds an entry that was fetched later: nobody may keep this one. A negative entry is kept.
 * - `lost`: the lease had ended: nothing is kept, and nobody may keep it
 */
export type Completion = 'stored' | 'unshared' | 'overtaken' | 'lost';

/** The answer to be stored for all, and the negative entry for the reader's set of workspaces. At least one is there. */
export type Completed = Omit<Shared, 'replacedAtMs'>;

/**
 * The right to ask the store for one key, among all processes and for one audience (`audienceOf`). It is renewed until it
 * ends, and lapses if the process does.
 */
export interface Lease {
  /** Stores what is given, ends the lease and wakes all who wait, in one step. */
  complete(completed: Completed): Promise<Completion>;
  /** Ends the lease. For 1 s nobody of the same audience gets it, but this failure. */
  fail(failure: FlightFailure): Promise<void>;
  /** Ends the lease, because the call was not sent. */
  release(): Promise<void>;
}

export interface LeaseRequest {
  readonly key: string;
  readonly audience: string;
  /** Decides which entries are found. */
  readonly reader: Pick<Reader, 'workspaceIds'>;
  /** When what the process has already seen was requested, Unix milliseconds: only newer entries are found. Null for any. */
  readonly newerThanMs: number | null;
}

export type LeaseAttempt =
  | { readonly status: 'acquired'; readonly lease: Lease }
  /** There are newer entries than the process has seen, the newest of `newestMs`. It has to judge them before it asks again. */
  | { readonly status: 'found'; readonly found: Shared; readonly newestMs: number }
  /** Another process has it, for at most `leaseLeftMs` more unless it renews it. */
  | { readonly status: 'taken'; readonly leaseLeftMs: number }
  | { readonly status: 'failed'; readonly failure: FlightFailure };

/** A subscription to the ends of calls of other processes. */
export interface Following {
  /** Resolves once one has ended, at the last `next` or since, or after that time. */
  next(timeoutMs: number): Promise<void>;
  close(): void;
}

/** Everything that is shared of a key, for operators. */
export interface Inspection {
  readonly entry: KeptCopy | null;
  readonly negative: KeptCopy | null;
  /** Something is there that is no entry. It counts as nothing. */
  readonly isBroken: boolean;
}

export interface FlightInspection {
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
  /**
   * Whether this process hears of what others store, unless nothing can be asked anyway. If not, reads look here although
   * there is a copy in memory: else another process's newer one would go unnoticed until the end of its freshness.
   */
  isHeard(): boolean;
  lookUp(key: string, reader: Pick<Reader, 'workspaceIds'>): Promise<Shared>;
  /** Sets each one only if there is nothing, or something whose fetch was over before the new one's began. */
  backfill(entries: readonly Keyed[]): Promise<void>;
  acquire(request: LeaseRequest): Promise<LeaseAttempt>;
  /** Follows the calls for that audience: every end that comes after `follow` has returned is noticed. */
  follow(key: string, audience: string): Following;
}

/** A pass over all entries. */
export interface Pass {
  /** Ends it when it aborts. */
  readonly deadline?: AbortSignal;
  /** Whether to delete every entry that a hard purge has ended. */
  readonly isDeleting?: boolean;
  /** These are looked at first. */
  readonly first?: readonly string[];
  /** Called with the number of names passed so far. The pass goes on when it resolves. */
  readonly onBatch?: (passed: number) => Promise<void>;
}

/** The part that operators use. */
export interface SharedCacheAdmin {
  /** Whether it can be asked now. */
  isUp(): boolean;
  get(key: string): Promise<StoredEntry | null>;
  /** How much of it matches. */
  measure(matches: (stored: Tagged) => boolean, pass?: Pass): Promise<Measured>;
  /** `workspaceSet`: for whom it is explained; null for nobody. Only looks. */
  inspect(key: string, workspaceSet: string | null): Promise<Inspection>;
  inspectFlight(key: string, audience: string): Promise<FlightInspection>;
}

export const NOTHING: Shared = { entry: null, replacedAtMs: null, negative: null };

/** The lease of a process that shares nothing, or cannot now: it asks the store for itself. */
export const OWN_LEASE: Lease = {
  complete: async () => 'unshared',
  fail: async () => {},
  release: async () => {},
};

/** For a gateway that is alone: nothing is shared, and every lease request succeeds. */
export const UNSHARED: SharedCache = {
  isHeard: () => true,
  lookUp: async () => NOTHING,
  backfill: async () => {},
  acquire: async () => ({ status: 'acquired', lease: OWN_LEASE }),
  follow: () => ({ next: async () => {}, close: () => {} }),
};

export function toFailure({ kind, message, retryAfterMs, status, workspaceId }: StoreError): FlightFailure {
  return { kind, message, retryAfterMs, status, workspaceId };
}

export function fromFailure({ kind, message, ...details }: FlightFailure): StoreError {
  return new StoreError(kind, message, details);
}
