/**
 * The cache that several processes share. Every method may reject: each process then goes on without it, and a reader
 * notices nothing but a miss.
 */
import { StoreError } from '../upstream/store-error.ts';
import type { WorkspaceSet } from './address.ts';
import type { Keyed, Measured, StoredEntry } from './entry.ts';
import type { LastSeen } from './digest.ts';
import type { Tagged } from './purge-log.ts';
import type { Sighting } from './seen-calls.ts';
import type { CacheRequest } from './request.ts';

/** For so long the readers of a set get the failure of its last flight instead of trying anew, in every process. */
export const REMEMBER_FAILURES_MS = 1000;

/** Why a call ended without an answer, for those who waited for it in other processes. */
export type FlightFailure = Pick<StoreError, 'kind' | 'message' | 'retryAfterMs' | 'status' | 'workspaceId'>;

/**
 * - `stored`: what was given is kept for all
 * - `unshared`: the copy is not kept for others, but may be kept in memory
 * - `overtaken`: an answer that was fetched later is there, or has ended the copy: nobody may keep this one
 * - `lost`: the lease had ended: nothing is kept, and nobody may keep it
 */
export const COMPLETION_STATUSES = ['stored', 'unshared', 'overtaken', 'lost'] as const;
export type CompletionStatus = (typeof COMPLETION_STATUSES)[number];

export interface Completion {
  readonly status: CompletionStatus;
  /** The workspaces of the set whose copies the answer has ended (C4: nothing outlives what the store says). */
  readonly ended: readonly string[];
}

/** The last sighting of a call per workspace; a workspace without one is left out. */
export type LastSeenOf = ReadonlyMap<string, LastSeen>;

/** The right to ask the store for one key and one set of workspaces. It is renewed until it ends, and lapses if the process does. */
export interface Lease {
  /** The last sightings of the evaluation that is asked for. Null for other kinds, and if the lease does not know. */
  readonly lastSeen: LastSeenOf | null;
  /**
   * Files the answer, a copy or a negative entry, ends the older copies of the set that it speaks against, notes what it has
   * shown of a call unless a later answer was noted, ends the lease and wakes all who wait, in one step.
   */
  complete(answer: StoredEntry, sighting?: Sighting | null): Promise<Completion>;
  /** Ends the lease. For 1 s nobody of the same set gets it, but this failure. */
  fail(failure: FlightFailure): Promise<void>;
  /** Ends the lease, because the call was not sent. */
  release(): Promise<void>;
}

/** Whom what is kept is for, and the API key that is charged for it; undefined for a change that no reader has asked for. */
export interface KeptFor {
  readonly set: WorkspaceSet;
  readonly keyId: string | undefined;
}

/** The subject of a look: all answers that there are for readers of that set. */
export interface Look extends Pick<CacheRequest<unknown>, 'kind' | 'key'>, KeptFor {
  /**
   * When the newest answer was requested that the process has seen, Unix milliseconds: only newer ones are found. Null if it
   * has seen none.
   */
  readonly seenAtMs: number | null;
  /** Whether the lease is wanted if nothing is found. */
  readonly isLeaseWanted: boolean;
}

export type Looked =
  /**
   * There is a newer answer than the process has seen; the process has to judge it before it looks again, with that
   * `seenAtMs`. Null if it cannot be read.
   */
  | { readonly status: 'found'; readonly answer: StoredEntry | null; readonly seenAtMs: number }
  | { readonly status: 'leased'; readonly lease: Lease }
  /** Another process has the lease, for at most `leaseLeftMs` more unless it renews it. */
  | { readonly status: 'taken'; readonly leaseLeftMs: number }
  /** The last call of the set has failed within 1 s. */
  | { readonly status: 'failed'; readonly failure: FlightFailure }
  /** There is nothing, and no lease was wanted. */
  | { readonly status: 'nothing' };

/** A subscription to the ends of calls of other processes. */
export interface Following {
  /** Resolves once one has ended, at the last `next` or since, or after that time. */
  next(timeoutMs: number): Promise<void>;
  close(): void;
}

/** The end of a backfill: whether it was too late to be kept, and the workspaces whose copies it has ended. */
export interface Backfilled extends Pick<Completion, 'ended'> {
  readonly isTooLate: boolean;
}

/** The part that reads use. */
export interface SharedCache {
  /**
   * Whether this process hears of what others store, unless nothing can be asked anyway. If not, reads look here although
   * there is a copy in memory: else another process's newer one would go unnoticed until the end of its freshness.
   */
  isHeard(): boolean;
  /** Looks, and takes the lease if there is nothing, in one step. */
  look(look: Look): Promise<Looked>;
  /**
   * Files each record of a list over that set, unless there is something whose fetch was not over when the new one's began.
   * Resolves with what became of each, in their order.
   */
  backfill(entries: readonly Keyed[], keptFor: KeptFor): Promise<readonly Backfilled[]>;
  /** Follows the calls for that set: every end that comes after `follow` has returned is noticed. */
  follow(key: string, set: WorkspaceSet): Following;
}

/** A copy as operators are shown it; `keptForMs` is null if it is not known. */
export interface KeptCopy {
  readonly stored: StoredEntry;
  readonly bytes: number;
  readonly keptForMs: number | null;
}

/** All copies of a key in one tier, for operators: the copies of all owners, and the negative entry of one set. */
export interface Inspected {
  readonly copies: readonly KeptCopy[];
  readonly negative: KeptCopy | null;
}

export interface Inspection extends Inspected {
  /** Something is there that is no entry. It counts as nothing. */
  readonly isBroken: boolean;
}

export interface FlightInspection {
  /** How long the lease is still held by some process; null if nobody has it. */
  readonly leaseLeftMs: number | null;
  /** Whether a call has failed so lately that no process asks again yet. */
  readonly hasJustFailed: boolean;
}

/** A pass over all entries. */
export interface Pass {
  /** Ends it when it aborts. */
  readonly deadline?: AbortSignal;
  /** Whether to delete every entry that a hard purge has ended. */
  readonly isDeleting?: boolean;
  /** The copies of these keys are looked at first. */
  readonly first?: readonly string[];
  /** Called with the number of names passed so far. The pass goes on when it resolves. */
  readonly onBatch?: (passed: number) => Promise<void>;
}

/** `passed` of so many names. */
export interface SweepProgress {
  readonly passed: number;
  readonly of: number;
}

/** No pass is under way. */
export const NO_SWEEP: SweepProgress = { passed: 0, of: 0 };

/** The part that operators use. */
export interface SharedCacheAdmin {
  /** Whether it can be asked now. */
  isUp(): boolean;
  /** Whose copies of the key there are. */
  ownersOf(key: string): Promise<readonly string[]>;
  /** How much of it matches. */
  measure(matches: (stored: Tagged) => boolean, pass?: Pass): Promise<Measured>;
  /** How far the pass has come that deletes what was purged, in whichever process. */
  sweepProgress(): Promise<SweepProgress>;
  /** Deletes copies that no process reads any more: of an earlier release, of other settings. */
  deleteLeft(): Promise<void>;
  /** `set`: for whom it is explained; null for nobody. Only looks. */
  inspect(key: string, set: WorkspaceSet | null): Promise<Inspection>;
  inspectFlight(key: string, set: WorkspaceSet): Promise<FlightInspection>;
  /** Counts that something was ended there, for the event that says so. Rejects if it cannot be asked. */
  addEnding(): Promise<readonly number[]>;
}

const KEPT_HERE: Completion = { status: 'unshared', ended: [] };

/** The lease of a process that shares nothing, or cannot now: it asks the store for itself. */
export const OWN_LEASE: Lease = {
  lastSeen: null,
  complete: async () => KEPT_HERE,
  fail: async () => {},
  release: async () => {},
};

export const NOT_FOLLOWING: Following = { next: async () => {}, close: () => {} };

/** For a gateway that is alone: nothing is shared, and every lease is granted. */
export const UNSHARED: SharedCache = {
  isHeard: () => true,
  look: async ({ isLeaseWanted }) => (isLeaseWanted ? { status: 'leased', lease: OWN_LEASE } : { status: 'nothing' }),
  backfill: async () => [],
  follow: () => NOT_FOLLOWING,
};

export function toFailure({ kind, message, retryAfterMs, status, workspaceId }: StoreError): FlightFailure {
  return { kind, message, retryAfterMs, status, workspaceId };
}

export function fromFailure({ kind, message, ...details }: FlightFailure): StoreError {
  return new StoreError(kind, message, details);
}
