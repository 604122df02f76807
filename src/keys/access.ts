/** Who may do what: pure rules over a key. They are asked again on every request, never remembered with an answer. */
import type { ApiKey, Scope } from './key.ts';

/** Whether the key may be used at that time: neither deprecated nor revoked, and not yet expired. */
export function isActive(key: ApiKey, nowMs: number): boolean {
  return key.status === 'active' && (key.expiresAtMs === null || nowMs < key.expiresAtMs);
}

export function hasScope(key: ApiKey, scope: Scope): boolean {
  return key.scopes.includes(scope);
}

/**
 * Whether the workspace is one of the key's. UUIDs are compared without regard to case (RFC 9562, section 4); anything
 * that is no UUID is no workspace of any key.
 */
export function maySeeWorkspace(key: ApiKey, workspaceId: string): boolean {
  return key.workspaceIds.includes(workspaceId.toLowerCase());
}

/** Whether the key may read the report surface of that workspace. */
export function mayReadReports(key: ApiKey, workspaceId: string): boolean {
  return hasScope(key, 'reports.read') && maySeeWorkspace(key, workspaceId);
}
