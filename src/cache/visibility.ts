/** Who may see what: copies, failures, and the sets of workspaces that negative entries are kept for (C4, K7). */
import { createHash } from 'node:crypto';
import type { StoreError } from '../upstream/store.ts';
import type { StoredEntry } from './entry.ts';
import type { Reader } from './reader.ts';
import type { CacheRequest } from './request.ts';

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
