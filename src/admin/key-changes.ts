/** Changes of keys as the audit has them, whoever made them and on whichever way. */
import type { ApiKey, ImportedKey, KeyStatus, NewKey } from '../keys/key.ts';
import type { AuditedChange } from './audit.ts';
import { auditedKey, isoOrNull } from './key-view.ts';

/** An import may hold thousands; the audit is bounded. */
const MOST_AUDITED_KEY_IDS = 100;

export const STATUS_ACTIONS: Readonly<Record<KeyStatus, string>> = {
  active: 'key.activate',
  deprecated: 'key.deprecate',
  revoked: 'key.revoke',
};

export function keyCreated(who: string, key: ApiKey): AuditedChange {
  return { who, action: 'key.create', target: key.keyId, from: null, to: auditedKey(key) };
}

/** Null where it was so already: that is no change. */
export function keyStatusChanged(who: string, before: ApiKey, after: ApiKey): AuditedChange | null {
  if (before.status === after.status) return null;
  const action = STATUS_ACTIONS[after.status];
  return { who, action, target: after.keyId, from: { status: before.status }, to: { status: after.status } };
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

/** A key that was asked for, where it is not known whether there is one. */
export function askedKey({ name, workspaceIds, scopes, limits, expiresAtMs }: NewKey): object {
  return { name, workspaceIds, scopes, limits, expiresAt: isoOrNull(expiresAtMs) };
}

/** The same of an import. */
export function askedImport(keys: readonly Pick<ImportedKey, 'keyId'>[]): object {
  return { keys: keys.length, keyIds: keyIdsOf(keys) };
}

function keyIdsOf(keys: readonly Pick<ImportedKey, 'keyId'>[]): readonly string[] {
  return keys.slice(0, MOST_AUDITED_KEY_IDS).map((key) => key.keyId);
}
