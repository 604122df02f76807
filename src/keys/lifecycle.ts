/** The life of a key (K3: its status, expiry and rotation): pure rules, the same wherever keys are stored. */
import { isDeepStrictEqual } from 'node:util';
import {
  type ApiKey,
  type ImportedKey,
  isActive,
  type IssuedKey,
  type KeyEdit,
  KeyStateError,
  type NewKey,
} from './key.ts';
import { hashToken, newToken, randomBase62 } from './token.ts';

/** Makes a key with a quota of its own. */
export function issueKey(request: NewKey, nowMs: number): IssuedKey {
  const token = newToken();
  const keyId = `key_${randomBase62(12)}`;
  const key: ApiKey = {
    ...request,
    keyId,
    hash: hashToken(token),
    status: 'active',
    createdAtMs: nowMs,
    quotaId: keyId,
    lastUsedAtMs: null,
  };
  return { key, token };
}

/**
 * The key as the edit makes it; the same object if nothing changes. A deprecated key may become active again. Throws
 * KeyStateError for a revoked key, which stays as it is.
 */
export function editKey(key: ApiKey, edit: KeyEdit): ApiKey {
  const edited: ApiKey = {
    ...withExpiry(boundTo(key, edit.from), edit.expiresAtMs),
    name: edit.name ?? key.name,
    status: edit.status ?? key.status,
    workspaceIds: edit.workspaceIds ?? key.workspaceIds,
    scopes: edit.scopes ?? key.scopes,
    // Null is a value here: the gateway's limit applies.
    limits: {
      perMinute: edit.perMinute === undefined ? key.limits.perMinute : edit.perMinute,
      perHour: edit.perHour === undefined ? key.limits.perHour : edit.perHour,
    },
  };
  if (isDeepStrictEqual(edited, key)) return key;
  if (key.status === 'revoked') throw staysRevoked(key);
  return edited;
}

/** The key, bound to other addresses, or to none if `from` is null. */
function boundTo(key: ApiKey, from: readonly string[] | null | undefined): ApiKey {
  if (from === undefined) return key;
  const { from: _, ...unbound } = key;
  return from === null ? unbound : { ...unbound, from };
}

/** An expiry that is set now is the key's own, and no end of an overlap. */
function withExpiry(key: ApiKey, expiresAtMs: number | null | undefined): ApiKey {
  if (expiresAtMs === undefined) return key;
  const { ownExpiresAtMs: _, ...withoutRotation } = key;
  return { ...withoutRotation, expiresAtMs };
}

function staysRevoked({ keyId }: ApiKey): KeyStateError {
  return new KeyStateError(`Key ${keyId} is revoked, and a revoked key stays revoked. Create a new key instead.`);
}

/**
 * Makes the successor of a key, and the key as it is from then on. The successor has the same name, workspaces, scopes,
 * limits, addresses and quota, and the expiry that the key had before its first rotation: a rotation never adds rights, in kind
 * or in time. The key itself ends after the overlap, or when it would have ended anyway if that is earlier.
 *
 * Throws KeyStateError if the key is not active, and RangeError if `overlapMs` is no whole number from 0.
 */
export function rotateKey(
  key: ApiKey,
  nowMs: number,
  overlapMs: number,
): { readonly successor: IssuedKey; readonly retired: ApiKey } {
  if (!Number.isSafeInteger(overlapMs) || overlapMs < 0) {
    throw new RangeError(`The overlap of a rotation must be a whole number of milliseconds from 0, not ${overlapMs}.`);
  }
  if (!isActive(key, nowMs)) {
    const state = key.status === 'active' ? 'expired' : key.status;
    throw new KeyStateError(
      `Key ${key.keyId} is ${state}; only an active key can be rotated. Create a new key instead.`,
    );
  }
  const { name, workspaceIds, scopes, expiresAtMs, limits, quotaId, from } = key;
  const ownExpiresAtMs = key.ownExpiresAtMs === undefined ? expiresAtMs : key.ownExpiresAtMs;
  const bound = from === undefined ? {} : { from };
  const issued = issueKey({ name, workspaceIds, scopes, expiresAtMs: ownExpiresAtMs, limits, ...bound }, nowMs);
  return {
    successor: { key: { ...issued.key, quotaId }, token: issued.token },
    retired: { ...key, expiresAtMs: Math.min(expiresAtMs ?? Infinity, nowMs + overlapMs), ownExpiresAtMs },
  };
}

/**
 * The key that an imported one becomes. `existing` is the key that has the same id or the same hash already: if both are the
 * same, it is changed as an edit changes it, and keeps what the import leaves out: an import that is made twice undoes no
 * change of an operator. Null if a revoked key would come back to life: it stays revoked. Throws KeyStateError if only one of
 * the two is the same.
 */
export function adoptKey(
  { from, ...imported }: ImportedKey,
  existing: ApiKey | undefined,
  nowMs: number,
): ApiKey | null {
  if (existing === undefined) {
    const key: ApiKey = {
      status: 'active',
      createdAtMs: nowMs,
      expiresAtMs: null,
      limits: { perMinute: null, perHour: null },
      quotaId: imported.keyId,
      lastUsedAtMs: null,
      ...imported,
    };
    return boundTo(key, from);
  }
  if (existing.keyId !== imported.keyId) {
    throw new KeyStateError(`The hash of key ${imported.keyId} is already that of key ${existing.keyId}.`);
  }
  if (existing.hash !== imported.hash) {
    throw new KeyStateError(
      `There is already a key ${imported.keyId} with another hash. Import it under another keyId.`,
    );
  }
  const adopted = { ...withExpiry(boundTo(existing, from), imported.expiresAtMs), ...imported };
  return existing.status === 'revoked' && adopted.status !== 'revoked' ? null : adopted;
}
