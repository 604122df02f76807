/** Keys as the interface shows them, and their changes, each of which is audited; for the admin listener and the command line. */
import { isDeepStrictEqual } from 'node:util';
import { formatDuration } from '../time/duration.ts';
import type { ApiKey, EditedKey, ImportedCounts, ImportedKey, KeyEdit, KeyStatus, NewKey } from '../keys/key.ts';
import type { KeyDirectory } from '../keys/registry.ts';
import type { ChangedKeyView, IssuedKeyView, KeyView } from './answers.ts';
import { iso, isoOrNull } from './api.ts';
import type { Audit, AuditedChange } from './audit.ts';
import { makeChange } from './audited-change.ts';
import { AdminError } from './errors.ts';

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
    from: key.from ?? null,
    quotaId: key.quotaId,
    lastUsedAt: isoOrNull(key.lastUsedAtMs),
  };
}

function auditedKey(key: ApiKey): Readonly<Record<string, unknown>> {
  const { name, status, workspaceIds, scopes, limits, expiresAt, from } = keyView(key);
  return { name, status, workspaceIds, scopes, limits, expiresAt, from };
}

/** The key with that id. Throws AdminError 404 if there is none. */
export async function existingKey(registry: KeyDirectory, keyId: string): Promise<ApiKey> {
  return (await registry.get(keyId)) ?? noKey(keyId);
}

function noKey(keyId: string): never {
  throw new AdminError(404, `There is no key with the id ${keyId}. GET /api/keys lists the ids.`, {
    privateMessage: 'no such key',
  });
}

/** The registry in the hands of somebody, whom the audit names. */
export interface KeyChanger {
  readonly registry: KeyDirectory;
  readonly audit: Audit;
  readonly who: string;
}

/** Like every change here, it rejects as `makeChange` does, and with what the registry refuses. */
export async function createKey({ registry, audit, who }: KeyChanger, wanted: NewKey): Promise<IssuedKeyView> {
  const { key, token } = await makeChange(audit, {
    who,
    action: 'key.create',
    target: wanted.name,
    asked: askedKey(wanted),
    make: () => registry.create(wanted),
    note: (issued) => ({ target: issued.key.keyId, from: null, to: auditedKey(issued.key) }),
  });
  return { key: keyView(key), token };
}

/** An edit that changes nothing may be repeated: it is not noted. */
export async function editKey(
  { registry, audit, who }: KeyChanger,
  keyId: string,
  wanted: KeyEdit,
): Promise<ChangedKeyView> {
  // Distinguishes a registry that can't be asked from a change whose outcome is unknown.
  await existingKey(registry, keyId);
  const { after, isConfirmed } = await makeChange(audit, {
    who,
    action: editAction(wanted),
    target: keyId,
    asked: askedKey(wanted),
    make: async () => (await registry.edit(keyId, wanted)) ?? noKey(keyId),
    note: differenceOf,
  });
  return { key: keyView(after), warning: isConfirmed === false ? UNCONFIRMED : null };
}

/** A failover may undo it. */
const UNCONFIRMED =
  'No replica of Redis has confirmed it: a failover now may undo it. After a failover look at the key again, and repeat this if it is active.';

export async function rotateKey(
  { registry, audit, who }: KeyChanger,
  keyId: string,
  overlapMs: number,
): Promise<IssuedKeyView> {
  const before = await existingKey(registry, keyId);
  const { key, token } = await makeChange(audit, {
    who,
    action: 'key.rotate',
    target: keyId,
    asked: { overlap: formatDuration(overlapMs) },
    make: async () => (await registry.rotate(keyId, overlapMs)) ?? noKey(keyId),
    note: async ({ key: successor }) => {
      // The successor is shown even if this fails.
      const after = (await registry.get(keyId).catch(() => null)) ?? before;
      return {
        from: { expiresAt: isoOrNull(before.expiresAtMs) },
        to: { expiresAt: isoOrNull(after.expiresAtMs), successor: successor.keyId },
      };
    },
  });
  return { key: keyView(key), token };
}

/** `isDryRun`: only counts. */
export function importKeys(
  { registry, audit, who }: KeyChanger,
  keys: readonly ImportedKey[],
  isDryRun: boolean,
): Promise<ImportedCounts> {
  if (isDryRun) return registry.importKeys(keys, true);
  const keyIds = keys.slice(0, MAX_AUDITED_KEY_IDS).map((key) => key.keyId);
  return makeChange(audit, {
    who,
    action: 'key.import',
    target: 'keys',
    asked: { keys: keys.length, keyIds },
    make: () => registry.importKeys(keys),
    note: ({ added, replaced }) => ({ from: null, to: { added, replaced, keyIds } }),
  });
}

/** Repeated, or without a loss, it is not noted. */
export async function acknowledgeLoss({ registry, audit, who }: KeyChanger) {
  const loss = await makeChange(audit, {
    who,
    action: 'key.loss.acknowledge',
    target: 'keys',
    asked: null,
    make: () => registry.acknowledgeLoss(),
    note: (made) =>
      made === null || made.isAcknowledged ? null : { from: { lostAt: iso(made.atMs), keys: made.keys }, to: null },
  });
  return { lostAt: isoOrNull(loss?.atMs ?? null), keys: loss?.keys ?? 0 };
}

/**
 * Notes that a key which is bound to addresses was used from another (K11: from there it is refused): once an hour per key,
 * whatever the addresses, so that they push nothing else out. Each such request is in the log.
 */
export function noteForbiddenAddress(
  audit: Audit,
  { keyId, refusal }: { readonly keyId: string | null; readonly refusal: { reason: string; address: string } | null },
): void {
  if (keyId === null || refusal?.reason !== 'address-forbidden') return;
  void audit.recordHourly({ who: keyId, action: 'access.refuse', target: 'address', from: null, to: refusal.address });
}

/** A change of only the status has a name of its own. */
function editAction(edit: KeyEdit): string {
  const members = Object.entries(edit).filter(([, value]) => value !== undefined);
  return edit.status !== undefined && members.length === 1 ? STATUS_ACTIONS[edit.status] : 'key.edit';
}

/** The members that differ; null if none does: that is no change. */
function differenceOf({ before, after, isConfirmed }: EditedKey): Pick<AuditedChange, 'from' | 'to'> | null {
  const [from, to] = [auditedKey(before), auditedKey(after)];
  const changed = Object.keys(from).filter((name) => !isDeepStrictEqual(from[name], to[name]));
  if (changed.length === 0) return null;
  const changedOf = (members: Readonly<Record<string, unknown>>) =>
    Object.fromEntries(changed.map((name) => [name, members[name]]));
  const unconfirmed = isConfirmed === false ? { replicas: 'none has confirmed it' } : {};
  return { from: changedOf(from), to: { ...changedOf(to), ...unconfirmed } };
}

/** A key or an edit as it was asked for, if it is not known whether it was made. */
function askedKey({ expiresAtMs, ...members }: NewKey | KeyEdit): object {
  return { ...members, ...(expiresAtMs === undefined ? {} : { expiresAt: isoOrNull(expiresAtMs) }) };
}
