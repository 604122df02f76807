/** Keys as the interface shows them, and their changes as the audit has them; for the admin listener and the command line. */
import { isDeepStrictEqual } from 'node:util';
import type { ApiKey, EditedKey, ImportedKey, KeyEdit, KeyStatus, NewKey } from '../keys/key.ts';
import type { KeyView } from './answers.ts';
import { iso, isoOrNull } from './api.ts';
import type { AuditedChange } from './audit.ts';

/** An import may hold thousands; the audit is bounded. */
const MAX_AUDITED_KEY_IDS = 100;

const STATUS_ACTIONS: Readonly<Record<KeyStatus, string>> = {
  active: 'key.activate',
  deprecated: 'key.deprecate',
  revoked: 'key.revoke',
};

/** Member by member, so that one added to ApiKey is never shown by accident. */
export function keyView(key: ApiKey): KeyView {
  return {
    keyId: key.keyId,
    name: key.name,
    status: key.status,
    workspaceIds: key.workspaceIds,
    scopes: key.scopes,
    createdAt: iso(key.createdAtMs),
    expiresAt: isoOrNull(key.expiresAtMs),
    limits: { perMinute: key.limits.perMinute, perHour: key.limits.perHour },
    quotaId: key.quotaId,
    lastUsedAt: isoOrNull(key.lastUsedAtMs),
  };
}

/** The members of a key that an operator decides on. */
function auditedKey(key: ApiKey): Readonly<Record<string, unknown>> {
  const { name, status, workspaceIds, scopes, limits, expiresAt } = keyView(key);
  return { name, status, workspaceIds, scopes, limits, expiresAt };
}

export function keyCreated(who: string, key: ApiKey): AuditedChange {
  return { who, action: 'key.create', target: key.keyId, from: null, to: auditedKey(key) };
}

/** The action of an edit: a change of only the status has a name of its own. */
export function editAction(edit: KeyEdit): string {
  const members = Object.entries(edit).filter(([, value]) => value !== undefined);
  return edit.status !== undefined && members.length === 1 ? STATUS_ACTIONS[edit.status] : 'key.edit';
}

/** The members that differ; null if none does: that is no change. */
export function keyEdited(who: string, edit: KeyEdit, { before, after }: EditedKey): AuditedChange | null {
  const [from, to] = [auditedKey(before), auditedKey(after)];
  const changed = Object.keys(from).filter((name) => !isDeepStrictEqual(from[name], to[name]));
  if (changed.length === 0) return null;
  const only = (members: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(changed.map((name) => [name, members[name]]));
  return { who, action: editAction(edit), target: after.keyId, from: only(from), to: only(to) };
}

export function keyRotated(
  who: string,
  { before, after, successor }: Readonly<Record<'before' | 'after' | 'successor', ApiKey>>,
): AuditedChange {
  return {
    who,
    action: 'key.rotate',
    target: before.keyId,
    from: { expiresAt: isoOrNull(before.expiresAtMs) },
    to: { expiresAt: isoOrNull(after.expiresAtMs), successor: successor.keyId },
  };
}

export function keysImported(
  who: string,
  keys: readonly Pick<ImportedKey, 'keyId'>[],
  { added, replaced }: { readonly added: number; readonly replaced: number },
): AuditedChange {
  return { who, action: 'key.import', target: 'keys', from: null, to: { added, replaced, keyIds: keyIdsOf(keys) } };
}

/** A key or an edit as it was asked for, if it is not known whether it was made. */
export function askedKey({ expiresAtMs, ...members }: NewKey | KeyEdit): object {
  return { ...members, ...(expiresAtMs === undefined ? {} : { expiresAt: isoOrNull(expiresAtMs) }) };
}

/** The same for an import. */
export function askedImport(keys: readonly Pick<ImportedKey, 'keyId'>[]): object {
  return { keys: keys.length, keyIds: keyIdsOf(keys) };
}

function keyIdsOf(keys: readonly Pick<ImportedKey, 'keyId'>[]): readonly string[] {
  return keys.slice(0, MAX_AUDITED_KEY_IDS).map((key) => key.keyId);
}
