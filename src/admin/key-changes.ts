/** Changes of keys as the audit has them, made through the admin listener or the command line. */
import { isDeepStrictEqual } from 'node:util';
import type { ApiKey, EditedKey, ImportedKey, KeyEdit, KeyStatus, NewKey } from '../keys/key.ts';
import type { AuditedChange } from './audit.ts';
import { auditedKey, isoOrNull } from './key-view.ts';

/** An import may hold thousands; the audit is bounded. */
const MAX_AUDITED_KEY_IDS = 100;

const STATUS_ACTIONS: Readonly<Record<KeyStatus, string>> = {
  active: 'key.activate',
  deprecated: 'key.deprecate',
  revoked: 'key.revoke',
};

export function keyCreated(who: string, key: ApiKey): AuditedChange {
  return { who, action: 'key.create', target: key.keyId, from: null, to: auditedKey(key) };
}

/** The action of an edit: a change of the status alone has a name of its own. */
export function editAction(edit: KeyEdit): string {
  const members = Object.entries(edit).filter(([, value]) => value !== undefined);
  return edit.status !== undefined && members.length === 1 ? STATUS_ACTIONS[edit.status] : 'key.edit';
}

/** The members that differ; null if none does: that is no change. */
export function keyEdited(who: string, edit: KeyEdit, { before, after }: EditedKey): AuditedChange | null {
  const [from, to] = [Object.entries(auditedKey(before)), new Map(Object.entries(auditedKey(after)))];
  const changed = from.filter(([name, value]) => !isDeepStrictEqual(value, to.get(name)));
  if (changed.length === 0) return null;
  return {
    who,
    action: editAction(edit),
    target: after.keyId,
    from: Object.fromEntries(changed),
    to: Object.fromEntries(changed.map(([name]) => [name, to.get(name)])),
  };
}

export function keyRotated(
  who: string,
  keys: Readonly<Record<'before' | 'after' | 'successor', ApiKey>>,
): AuditedChange {
  const { before, after, successor } = keys;
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

/** An edit as it was asked for, if it is not known whether it was made. */
export function askedEdit({ expiresAtMs, ...edit }: KeyEdit): object {
  return { ...edit, ...(expiresAtMs === undefined ? {} : { expiresAt: isoOrNull(expiresAtMs) }) };
}

/** A key that was asked for, if it is not known whether it was made. */
export function askedKey({ name, workspaceIds, scopes, limits, expiresAtMs }: NewKey): object {
  return { name, workspaceIds, scopes, limits, expiresAt: isoOrNull(expiresAtMs) };
}

/** The same of an import. */
export function askedImport(keys: readonly Pick<ImportedKey, 'keyId'>[]): object {
  return { keys: keys.length, keyIds: keyIdsOf(keys) };
}

function keyIdsOf(keys: readonly Pick<ImportedKey, 'keyId'>[]): readonly string[] {
  return keys.slice(0, MAX_AUDITED_KEY_IDS).map((key) => key.keyId);
}
