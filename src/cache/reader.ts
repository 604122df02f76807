/**
 * A read of the cache: who reads, what it brings, and who may see what (C4: decided per request; K7: the others learn
 * nothing).
 */
import { createHash } from 'node:crypto';
import type { RedisWait } from '../redis/request-wait.ts';
import type { StoreError } from '../upstream/store-error.ts';
import type { Entry, StoredEntry } from './entry.ts';
import { type CacheRequest, hash32 } from './request.ts';

/**
 * How a read was answered (RFC 9211):
 * - `hit`: from the cache, fresh
 * - `stale-while-revalidate`: from the cache, past its freshness; one refresh runs in the background, except during maintenance
 * - `stale-if-error`: from the cache, longer past its freshness: the store failed, took too long or must not be asked
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
  /** How long the entry is still fresh; 0 or less when it is not. */
  readonly ttlMs: number;
  /** Null if it is unknown: the entry is from the future (C9: its age is unknown). */
  readonly ageMs: number | null;
  /** Whether a tier keeps the store's answer: RFC 9211 `stored`. */
  readonly isKept: boolean;
  /** Why the store was asked (RFC 9211 `fwd`): there was no copy, or a stale one. Missing: there was no copy. */
  readonly forward?: 'uri-miss' | 'stale';
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
   * The workspaces that are asked for, in lower case. A record of any other is absent to this reader, in every way that
   * it could notice (K7). Lists go by those of their query.
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

/**
 * Whether the copy answers the request for this reader: a list, or a record of one of its workspaces. Checked on every
 * read, hits included (C4). A negative entry does not: each set of workspaces has its own.
 */
export function isVisible<T>(
  request: CacheRequest<T>,
  stored: StoredEntry,
  { workspaceIds }: Pick<Reader, 'workspaceIds'>,
): stored is StoredEntry<T> {
  if (!isOfKind(request, stored) || stored.entry.answer.kind === 'absent') return false;
  const workspaceId = request.workspaceOf(stored.entry.answer.record);
  return workspaceId === null || workspaceIds.includes(workspaceId);
}

/** The type of a record follows from its kind. */
export function isOfKind<T>(request: CacheRequest<T>, stored: StoredEntry): stored is StoredEntry<T> {
  return stored.kind === request.kind;
}

/** Whether the reader may learn of a failed call: not if that is about a record of another workspace. */
export function isFailureVisible({ workspaceId }: Pick<StoreError, 'workspaceId'>, { workspaceIds }: Reader): boolean {
  return workspaceId === null || workspaceIds.includes(workspaceId);
}

interface WorkspaceSet {
  /** In order, none twice. */
  readonly sorted: readonly string[];
  readonly name: string;
}

/** By the workspaces of a key's record: a key with many reads again and again. */
const sets = new WeakMap<readonly string[], WorkspaceSet>();

/** Names a reader's set of workspaces, whatever their order: negative entries, and calls for cold reads, are the set's. */
export function workspaceSetOf({ workspaceIds }: Pick<Reader, 'workspaceIds'>): string {
  return workspaceIds.length > 1 ? setOf(workspaceIds).name : (workspaceIds[0] ?? '');
}

/** The workspaces in order, none twice. */
export function sortedWorkspaces(workspaceIds: readonly string[]): readonly string[] {
  return workspaceIds.length > 1 ? setOf(workspaceIds).sorted : workspaceIds;
}

function setOf(workspaceIds: readonly string[]): WorkspaceSet {
  const known = sets.get(workspaceIds);
  if (known !== undefined) return known;
  const sorted = [...new Set(workspaceIds)].toSorted();
  const [only = '', ...others] = sorted;
  const name = others.length === 0 ? only : createHash('sha256').update(sorted.join(',')).digest('base64url');
  sets.set(workspaceIds, { sorted, name });
  return { sorted, name };
}

/**
 * Names a copy as a `hash32`: by its key, and a negative entry also by the set of workspaces that it is kept for (K7a: no
 * other reader learns of it).
 */
export function copyHashOf(
  { key, keyHash }: Pick<CacheRequest<unknown>, 'key' | 'keyHash'>,
  { entry }: StoredEntry,
  reader: Pick<Reader, 'workspaceIds'>,
): number {
  return entry.answer.kind === 'absent' ? hash32(`${key} ${workspaceSetOf(reader)}`) : keyHash;
}
