/** A key as the admin interface shows it. */
import type { ApiKey, KeyStatus, Scope } from '../keys/key.ts';

/** Everything about a key but its hash. Times are ISO 8601 in UTC, with milliseconds. */
export interface KeyView {
  readonly keyId: string;
  readonly name: string;
  readonly status: KeyStatus;
  readonly workspaceIds: readonly string[];
  readonly scopes: readonly Scope[];
  readonly createdAt: string;
  readonly expiresAt: string | null;
  readonly limits: { readonly perMinute: number | null; readonly perHour: number | null };
  readonly quotaId: string;
  readonly lastUsedAt: string | null;
}

/** Member by member, so that one added to ApiKey is never shown by accident. */
export function keyView(key: ApiKey): KeyView {
  return {
    keyId: key.keyId,
    name: key.name,
    status: key.status,
    workspaceIds: key.workspaceIds,
    scopes: key.scopes,
    createdAt: new Date(key.createdAtMs).toISOString(),
    expiresAt: isoOrNull(key.expiresAtMs),
    limits: { perMinute: key.limits.perMinute, perHour: key.limits.perHour },
    quotaId: key.quotaId,
    lastUsedAt: isoOrNull(key.lastUsedAtMs),
  };
}

/** The members of a key that an operator decides on, as the audit keeps them. */
export function auditedKey(
  key: ApiKey,
): Pick<KeyView, 'name' | 'status' | 'workspaceIds' | 'scopes' | 'limits' | 'expiresAt'> {
  const { name, status, workspaceIds, scopes, limits, expiresAt } = keyView(key);
  return { name, status, workspaceIds, scopes, limits, expiresAt };
}

export function isoOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
