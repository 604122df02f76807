/** A read of the cache: who reads, and what it brings. */
import type { RedisWait } from '../redis/request-wait.ts';
import type { StoreErrorKind } from '../upstream/store-error.ts';
import type { Entry } from './entry.ts';
import type { CacheRequest } from './request.ts';

/**
 * How a read was answered (RFC 9211):
 * - `hit`: from the cache, fresh
 * - `stale-while-revalidate`: from the cache, past its freshness; one refresh runs in the background, except during maintenance
 * - `stale-if-error`: from the cache, longer past its freshness: the store failed, took too long or must not be asked
 * - `changed`: from the cache, from before a change of the record: renewing it failed, or the store must not be asked
 * - `miss`: the store was asked for this reader
 * - `collapsed`: the reader waited for a call to the store that another had begun
 */
export type ReadOutcome = 'hit' | 'stale-while-revalidate' | 'stale-if-error' | 'changed' | 'miss' | 'collapsed';

export type Tier = 'memory' | 'redis';

export interface CacheRead<T> {
  readonly entry: Entry<T>;
  readonly outcome: ReadOutcome;
  /** Where the entry was found; null on a miss. */
  readonly tier: Tier | null;
  /** How long the entry is still fresh; 0 or less when it is not. */
  readonly ttlMs: number;
  /** Null if it is unknown: the entry is from the future (C9: its age is unknown). */
  readonly ageMs: number | null;
  /** Whether the store has announced another answer, and does not give it yet (a replica lags). */
  readonly isAwaited: boolean;
  /** Whether a tier keeps the store's answer: RFC 9211 `stored`. */
  readonly isKept: boolean;
  /** Why the store was asked (RFC 9211 `fwd`): there was no copy, or a stale one. Missing: there was no copy. */
  readonly forward?: 'uri-miss' | 'stale';
  /** Why the store has not renewed an old copy that is served instead; null if none is. */
  readonly failure: StoreErrorKind | null;
}

export interface Reader {
  readonly requestId: string;
  readonly traceparent?: string | undefined;
  /** The API key that reads: keys share the store fairly. */
  readonly keyId?: string;
  /** How long the reader waits for Redis; without it as long as each command may take (R6: 250 ms in all). */
  readonly redisWait?: RedisWait;
  /** The template of the route that the request came by, for reports of what costs the store most. */
  readonly route?: string;
  /**
   * The workspaces that are asked for, in lower case. A record of any other is absent to this reader, in every way that it
   * could notice. Lists go by those of their query.
   */
  readonly workspaceIds: readonly string[];
  /** Aborted when the reader leaves: a call to the store whose turn comes when nobody waits is not made. */
  readonly signal?: AbortSignal;
  /** Called before the reader waits for a call to the store. False if too many wait: there is no call for this one. */
  readonly enterWaitingRoom?: () => boolean;
}

export interface Cache {
  /** Never answers with a record of other workspaces. Rejects with a StoreError, but for a fault of the gateway. */
  read<T>(request: CacheRequest<T>, reader: Reader): Promise<CacheRead<T>>;
}

/** The flights of a key in this process, for operators. */
export interface FlightView {
  /** When the first of them began, Unix milliseconds; null if there is none. */
  readonly sinceMs: number | null;
  /** Whether one has failed so lately that none is begun yet. */
  readonly hasJustFailed: boolean;
}
