/**
 * Access to copies, checked on every read (C4, K7). A record of a workspace that the reader does not ask for is absent to
 * it, exactly as one that the store does not have (K7a): both leave a negative entry, kept for the id and the reader's set
 * of workspaces. It is made here, with the same tags and times for both.
 */
import { createHash } from 'node:crypto';
import type { StoreError } from '../upstream/store.ts';
import { Entry, type StoredEntry, tagsOf } from './entry.ts';
import type { Reader } from './reader.ts';
import type { CacheRequest } from './request.ts';

/**
 * Whether the copy answers the request for this reader: a list, or a record of one of its workspaces. Absence that was
 * learned for somebody else does not: each set of workspaces learns it anew.
 */
export function isVisible<T>(
  request: CacheRequest<T>,
  stored: StoredEntry,
  workspaceIds: Reader['workspaceIds'],
): stored is StoredEntry<T> {
  if (!isOfKind(request, stored) || stored.entry.answer.kind === 'absent') return false;
  const workspaceId = request.workspaceOf(stored.entry.answer.record);
  return workspaceId === null || workspaceIds.includes(workspaceId);
}

/** The type of a record follows from its kind. */
export function isOfKind<T>(request: CacheRequest<T>, stored: StoredEntry): stored is StoredEntry<T> {
  return stored.kind === request.kind;
}

/** Whether a failed call is about a record that the reader may not see, so that it must not learn of the failure. */
export function concernsOthers({ workspaceId }: StoreError, { workspaceIds }: Reader): boolean {
  return workspaceId !== null && !workspaceIds.includes(workspaceId);
}

/** When an absence was learned. */
export interface Learned extends Pick<StoredEntry, 'position' | 'fetchedAtMs'> {
  readonly filledAtMs: number;
}

/** The negative entry of a request. */
export function notFoundEntry<T>(request: CacheRequest<T>, learned: Learned): StoredEntry<T> {
  const { filledAtMs, position, fetchedAtMs } = learned;
  const entry = new Entry<T>({ kind: 'absent', code: 'NOT_FOUND' }, filledAtMs);
  return { kind: request.kind, entry, tags: tagsOf(request, entry), position, fetchedAtMs };
}

const names = new WeakMap<readonly string[], string>();

/** Names a reader's set of workspaces, whatever their order: what negative entries are kept for. */
export function workspaceSetOf({ workspaceIds }: Pick<Reader, 'workspaceIds'>): string {
  const [only = '', ...others] = workspaceIds;
  if (others.length === 0) return only;
  const known = names.get(workspaceIds);
  if (known !== undefined) return known;
  const sorted = [...new Set(workspaceIds)].toSorted();
  const name = sorted.length === 1 ? only : createHash('sha256').update(sorted.join(',')).digest('base64url');
  names.set(workspaceIds, name);
  return name;
}
