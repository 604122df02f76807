/**
 * Where a copy is filed: under its key, and under its owner. A reader looks only under owners of its own, so a record of
 * another workspace is not hidden from it: it is not there (C4: a reader is served only from under its own workspaces; K7a: a
 * foreign record looks like none). Nothing has to be asked or compared, and size, time and messages of what others hold show
 * nowhere. Pure.
 */
import { createHash } from 'node:crypto';
import type { ResourceKind } from '../upstream/resources.ts';

export interface Address {
  readonly key: string;
  /**
   * The workspace of a record; the name of the set of workspaces that a list was asked for; the name of the set of readers of a
   * negative entry.
   */
  readonly owner: string;
}

/** A set of workspaces that readers ask for: flights, failures and negative entries are a set's (C10: one flight per set). */
export interface WorkspaceSet {
  /** In order, none twice. */
  readonly ids: readonly string[];
  /** The same for the same workspaces in any order; of a single workspace, its id. */
  readonly name: string;
}

/** By the workspaces of a key's record: a key with many reads again and again. */
const sets = new WeakMap<readonly string[], WorkspaceSet>();

export function workspaceSetOf({ workspaceIds }: { readonly workspaceIds: readonly string[] }): WorkspaceSet {
  if (workspaceIds.length < 2) return { ids: workspaceIds, name: workspaceIds[0] ?? '' };
  const known = sets.get(workspaceIds);
  if (known !== undefined) return known;
  const ids = [...new Set(workspaceIds)].toSorted();
  const [only = '', ...others] = ids;
  const name = others.length === 0 ? only : createHash('sha256').update(ids.join(',')).digest('base64url');
  const set = { ids, name };
  sets.set(workspaceIds, set);
  return set;
}

/** The owners of the copies that readers of that set look for. A list is of all its workspaces together. */
export function ownersIn(kind: ResourceKind, { ids, name }: WorkspaceSet): readonly string[] {
  return kind === 'list' ? [name] : ids;
}

/** The set that a renewal of a copy of that owner is made for: all who may see the copy. `readers`: the set of one of them. */
export function setOfOwner(owner: string, readers: WorkspaceSet): WorkspaceSet {
  return owner === readers.name ? readers : { ids: [owner], name: owner };
}

/** The workspaces of the set that a record of that owner is none of; none for a list. */
export function othersThan(owner: string, { ids }: WorkspaceSet): readonly string[] {
  return ids.includes(owner) ? ids.filter((id) => id !== owner) : [];
}

/** An address as one text: keys have no spaces. */
export function addressText({ key, owner }: Address): string {
  return `${key} ${owner}`;
}
