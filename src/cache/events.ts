/**
 * The stream of events: what the cache does, reported once to a list of listeners (metrics, log, what-if, counters). A
 * listener changes nothing, and never throws.
 */
import type { StoreError, StoreErrorKind } from '../upstream/store-error.ts';
import type { Refresh } from './entry.ts';
import type { CacheRead, ReadOutcome } from './reader.ts';
import type { CacheClass } from './ttl-policy.ts';

/**
 * Why a read was not answered by a copy that is fresh or just stale; most such reads go to the store:
 * - `never-seen`: nothing is known of the request
 * - `expired`: there is a copy, past the time in which it is served without asking: `usable-on-error` or `unusable`
 * - `evicted`: there was a copy, and it had to make room
 * - `purged`: there is a copy from before a purge
 * - `changed`: there is a copy from before a change of the record
 * - `not-cacheable`: all TTLs of the class are 0
 *
 * The values are labels of a public metric.
 */
export type MissReason = 'never-seen' | 'expired' | 'evicted' | 'purged' | 'changed' | 'not-cacheable';

export interface ReadReport {
  readonly class: CacheClass;
  readonly key: string;
  /** The API key that reads; missing if none is known. */
  readonly keyId?: string | undefined;
  /** `hash32` of the key. */
  readonly keyHash: number;
  /** `copyHashOf` what was served. */
  readonly copyHash: number;
  /** `hash32` of the keys of the single records that came along in a list, and are kept as entries of their own. */
  readonly items: readonly number[];
  /** `failed`: the store failed and there was nothing to serve. */
  readonly outcome: ReadOutcome | 'failed';
  readonly tier: CacheRead<unknown>['tier'];
  /** Null for reads that a fresh or stale copy answered at once. */
  readonly missReason: MissReason | null;
  /** Why the store gave nothing better: an old copy is served instead, or nothing. Null if it did, or had no need to. */
  readonly failure: StoreErrorKind | null;
  /** The age of what was served; null if nothing was, or if that is from the future (C9: its age is unknown). */
  readonly ageMs: number | null;
  /** From the request to the answer, in fractions of a millisecond. */
  readonly durationMs: number;
}

/** A call was sent to the store, whatever came of it. Calls that were held back to spare the store are not reported. */
export interface StoreCallReport {
  readonly class: CacheClass;
  readonly key: string;
  /** The route's template of the request that caused it; null if none is known. */
  readonly route: string | null;
  /** The API key of that request; null if none is known. */
  readonly keyId: string | null;
  /** The workspace that it was made for; null if the reader has several. */
  readonly workspaceId: string | null;
  readonly durationMs: number;
  /** Whether the call renewed an often-read copy before that was stale. */
  readonly isEarly?: boolean;
}

/**
 * How a wait for another process's call to the store ended:
 * - `stored`: with its answer
 * - `failed`: with its failure
 * - `taken-over`: it came to nothing, or the shared cache went out of reach, and this process has the lease
 * - `timeout`: nothing came of it within `maxWaitMs`
 */
export type LeaseWaitEnd = 'stored' | 'failed' | 'taken-over' | 'timeout';

/** A flight waited for another process that had the lease of the key. */
export interface LeaseWaitReport {
  readonly class: CacheClass;
  readonly key: string;
  readonly end: LeaseWaitEnd;
  readonly durationMs: number;
}

/** A part is not of its evaluation's workspace: to the reader there is none (K7a: a foreign record looks like none). */
export interface PartMisplacedReport {
  readonly class: CacheClass;
  readonly requestId: string;
  readonly error: StoreError;
}

/** A read calls the store for a copy that was evicted while it was fresh, and would be still. Reported for a sample of keys. */
export interface EvictedReport {
  /** How much more memory of this process would have spared the call. */
  readonly moreBytes: number;
}

export interface CacheListener {
  onRead?(report: ReadReport): void;
  onStoreCall?(report: StoreCallReport): void;
  onEvicted?(report: EvictedReport): void;
  onLeaseWait?(report: LeaseWaitReport): void;
  /** The store answered, by itself or as part of a list, and there was a previous copy to compare the answer with. */
  onRefresh?(report: Refresh): void;
  /** A call that would have renewed an earlier copy failed, or brought another workspace's record; the copy stays. */
  onRefreshFailed?(report: { readonly class: CacheClass; readonly key: string; readonly error: StoreError }): void;
  onPartMisplaced?(report: PartMisplacedReport): void;
  /** An operation on the shared cache failed, and the cache went on without it. */
  onSharedCacheFailed?(report: { readonly operation: string; readonly error: unknown }): void;
}

/** One listener that passes each event on to all of them, in their order. The type keeps an event from being left out. */
export function broadcast(listeners: readonly CacheListener[]): Required<CacheListener> {
  const toEach =
    <E>(pass: (listener: CacheListener, event: E) => void) =>
    (event: E): void => {
      for (const listener of listeners) pass(listener, event);
    };
  return {
    onRead: toEach((listener, event) => listener.onRead?.(event)),
    onStoreCall: toEach((listener, event) => listener.onStoreCall?.(event)),
    onEvicted: toEach((listener, event) => listener.onEvicted?.(event)),
    onLeaseWait: toEach((listener, event) => listener.onLeaseWait?.(event)),
    onRefresh: toEach((listener, event) => listener.onRefresh?.(event)),
    onRefreshFailed: toEach((listener, event) => listener.onRefreshFailed?.(event)),
    onPartMisplaced: toEach((listener, event) => listener.onPartMisplaced?.(event)),
    onSharedCacheFailed: toEach((listener, event) => listener.onSharedCacheFailed?.(event)),
  };
}
