/** API keys: their form, what each may do, and how the rest of the gateway finds and changes them. */

/** Lower-case hex SHA-256 of the whole token: the only form in which a key is ever stored (K2). */
export type KeyHash = string;

export const SCOPES = ['reports.read', 'calls.read', 'coaching.read'] as const;
export type Scope = (typeof SCOPES)[number];

export const KEY_STATUSES = ['active', 'deprecated', 'revoked'] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

/** The members of a key that an operator decides on (K3). Workspaces and scopes hold nothing twice. */
export interface NewKey {
  readonly name: string;
  /** 1 to 50 lower-case UUIDs. */
  readonly workspaceIds: readonly string[];
  readonly scopes: readonly Scope[];
  readonly expiresAtMs: number | null;
  /** The key's own limits; if one is null, the gateway's applies. */
  readonly limits: { readonly perMinute: number | null; readonly perHour: number | null };
}

/** Changes of a key: members that are undefined stay as they are. */
export interface KeyEdit {
  readonly name?: string | undefined;
  readonly status?: KeyStatus | undefined;
  readonly workspaceIds?: readonly string[] | undefined;
  readonly scopes?: readonly Scope[] | undefined;
  readonly expiresAtMs?: number | null | undefined;
  readonly perMinute?: number | null | undefined;
  readonly perHour?: number | null | undefined;
}

export interface ApiKey extends NewKey {
  /** `[A-Za-z0-9_-]{1,64}`; safe to log. */
  readonly keyId: string;
  readonly hash: KeyHash;
  readonly status: KeyStatus;
  readonly createdAtMs: number;
  /** Names the quota that the key draws on. A rotated key and its successor have the same one. */
  readonly quotaId: string;
  readonly lastUsedAtMs: number | null;
}

/** A key just made. The token is shown to its owner once and stored nowhere. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly token: string;
}

/** A key from elsewhere, already hashed. */
export type ImportedKey = Omit<ApiKey, 'lastUsedAtMs' | 'quotaId'> & { readonly quotaId?: string };

/** The keys of an import: new ones, those that it changed, and those that were stored just so. */
export interface ImportedCounts {
  readonly added: number;
  readonly replaced: number;
  readonly unchanged: number;
}

/** Whether the key may be used at that time: neither deprecated nor revoked, and not yet expired. */
export function isActive(key: ApiKey, nowMs: number): boolean {
  return key.status === 'active' && (key.expiresAtMs === null || nowMs < key.expiresAtMs);
}

export function hasScope(key: ApiKey, scope: Scope): boolean {
  return key.scopes.includes(scope);
}

/** Whether the key may read the reports of that workspace (K5). UUIDs are compared in any case (RFC 9562, section 4). */
export function mayReadReports(key: ApiKey, workspaceId: string): boolean {
  return hasScope(key, 'reports.read') && key.workspaceIds.includes(workspaceId.toLowerCase());
}

export type PlaceInList = Pick<ApiKey, 'createdAtMs' | 'keyId'>;

/** Compares keys for lists: by creation, keys of the same millisecond by id. */
export function byCreation(a: PlaceInList, b: PlaceInList): number {
  if (a.createdAtMs !== b.createdAtMs) return a.createdAtMs - b.createdAtMs;
  if (a.keyId === b.keyId) return 0;
  return a.keyId < b.keyId ? -1 : 1;
}

/** The registry does not answer, so a key can be neither accepted nor refused. The message is private. */
export class RegistryUnavailableError extends Error {
  override readonly name = 'RegistryUnavailableError';
}

/** The key's state forbids the change. The message says why and what is possible, and may be shown to an operator. */
export class KeyStateError extends Error {
  override readonly name = 'KeyStateError';
}

/** Finds keys for requests. */
export interface KeyLookup {
  /** The key with that hash, whatever its status; null if none was issued. Rejects with RegistryUnavailableError. */
  find(hash: KeyHash): Promise<ApiKey | null>;
  /** The key if this process holds a copy that it may use without a look-up; else undefined. */
  peek(hash: KeyHash): ApiKey | undefined;
  /**
   * Whether this process knows the hash as one of an issued key, even if the key itself must be looked up. A hint: it may
   * be false for an issued key. Absent if `peek` knows every key.
   */
  isIssued?(hash: KeyHash): boolean;
  /** Notes that the key was used now. Never throws, never waits. */
  touch(key: ApiKey): void;
}

export interface EditedKey {
  readonly before: ApiKey;
  readonly after: ApiKey;
}

/** Shows and changes keys for operators. Every method may reject with RegistryUnavailableError. */
export interface KeyDirectory {
  /** All keys, in the order of `byCreation`. */
  list(): Promise<readonly ApiKey[]>;
  get(keyId: string): Promise<ApiKey | null>;
  create(key: NewKey): Promise<IssuedKey>;
  /**
   * The key before and after the change; null if there is no such key. Rejects with KeyStateError if the key is revoked:
   * it stays as it is.
   */
  edit(keyId: string, edit: KeyEdit): Promise<EditedKey | null>;
  /**
   * Issues a successor with the same rights and the same quota; the old key ends after the overlap. Null if there is no
   * such key. Rejects with KeyStateError if it is not active.
   */
  rotate(keyId: string, overlapMs: number): Promise<IssuedKey | null>;
  /**
   * Stores all of the keys or none. A key that is stored already is replaced if id and hash are the same, else it rejects
   * with KeyStateError. Rejects with InvalidKeyError if there are more than 10,000.
   */
  importKeys(keys: readonly ImportedKey[]): Promise<ImportedCounts>;
}
