/** A key as the store knows it, turned into one of ours. */
import { createHash } from 'node:crypto';
import type { ApiKeyRecord } from '../domain/records.ts';
import { type ApiKey, type KeyHash, type KeyStatus, type Scope, SCOPES } from './key.ts';

const STATUSES: Readonly<Record<ApiKeyRecord['status'], KeyStatus>> = {
  ACTIVE: 'active',
  DEPRECATED: 'deprecated',
  REVOKED: 'revoked',
};

/**
 * The quota of a store's key. The store and the registry give out ids without knowing of each other; the same id in both
 * must not make two keys share one quota.
 */
function quotaIdOf(keyId: string): string {
  return `upstream_${createHash('sha256').update(keyId).digest('base64url')}`;
}

/** Scopes that the gateway doesn't know are left out: they give no right here. The store doesn't tell times of creation. */
export function upstreamKey(hash: KeyHash, record: ApiKeyRecord): ApiKey {
  const { keyId, name, status, workspaceIds, scopes, expiresAtMs, limits } = record;
  return {
    keyId,
    hash,
    name,
    status: STATUSES[status],
    workspaceIds,
    scopes: SCOPES.filter((scope: Scope) => scopes.includes(scope)),
    createdAtMs: 0,
    expiresAtMs,
    limits: { perMinute: limits?.perMinute ?? null, perHour: limits?.perHour ?? null },
    quotaId: quotaIdOf(keyId),
    lastUsedAtMs: null,
  };
}
