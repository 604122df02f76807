/** A read of the cache: who reads, and what it brings. */
import type { RedisWait } from '../redis/request-wait.ts';
import type { Entry } from './entry.ts';
import type { CacheRequest } from './request.ts';

/**
 * How a read was answered (RFC 9211):
 * - `hit`: from the cache, fresh
 * - `stale-while-revalidate`: from the cache, past its freshness, while one refresh runs in the background
 * - `stale-if-error`: from the cache, past its freshness, because the store failed or took too long
 * - `miss`: the store was asked for this reader
 * - `collapsed`: the reader waited for a call to the store that another had begun
 */
export type ReadOutcome = 'hit' | 'stale-while-revalidate' | 'stale-if-error' | 'miss' | 'collapsed';

export type Tier = 'memory' | 'redis';

export interface CacheRead<T> {
  readonly entry: Entry<T>;
  readonly outcome: ReadOutcome;
  /** Where the entry was found; null on a miss. */
  readonly tier: Tier | null;
  /** How long the entry is still fresh; negative since when it is not. */
  readonly ttlMs: number;
  readonly ageMs: number;
  /** Whether the store's answer was kept: RFC 9211 `stored`. */
  readonly stored: boolean;
  /** Why the store was asked (RFC 9211 `fwd`): there was no copy, or a stale one. Missing: there was no copy. */
  readonly forward?: 'uri-miss' | 'stale';
}

export interface Reader {
  readonly requestId: string;
  readonly traceparent?: string;
  /** The API key that reads: keys share the store fairly. */
  readonly keyId?: string;
  /** How long the reader waits for Redis; without it as long as each command may take (R6). */
  readonly redisWait?: RedisWait;
  /** The template of the route that the request came by, for reports of what costs the store most. */
  readonly route?: string;
  /**
   * The workspaces that are asked for, in lower case. A record of any other is absent to this reader, in every way that
   * it could notice (K7). Lists go by those of their query.
   */
  readonly workspaceIds: readonly string[];
  /** Whether the reader still waits: a call to the store whose turn comes when nobody does is not made. */
  readonly isWaiting?: () => boolean;
}

export interface Cache {
  /** Never answers with a record of other workspaces. Rejects with a StoreError and nothing else. */
  read<T>(request: CacheRequest<T>, reader: Reader): Promise<CacheRead<T>>;
}

/** The flight of a key in this process, for operators. */
export interface FlightView {
  /** When the flight began, Unix milliseconds; null if there is none. */
  readonly sinceMs: number | null;
  /** Whether the last one has failed so lately that none is begun yet. */
  readonly hasJustFailed: boolean;
}
