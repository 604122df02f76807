/** What an API key is, and the registry that knows the issued ones. */

/** Lower-case hex SHA-256 of the whole token: the only form in which a key is ever stored. */
export type KeyHash = string;

export const SCOPES = ['reports.read', 'calls.read', 'coaching.read'] as const;
export type Scope = (typeof SCOPES)[number];

export const KEY_STATUSES = ['active', 'deprecated', 'revoked'] as const;
export type KeyStatus = (typeof KEY_STATUSES)[number];

export interface ApiKey {
  /** `[A-Za-z0-9_-]{1,64}`; safe to log. */
  readonly keyId: string;
  readonly hash: KeyHash;
  readonly name: string;
  readonly status: KeyStatus;
  /** 1 to 50 lower-case UUIDs. */
  readonly workspaceIds: readonly string[];
  readonly scopes: readonly Scope[];
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  /** The key's own limits; what is null follows the gateway's. */
  readonly limits: { readonly perMinute: number | null; readonly perHour: number | null };
  /** Names the quota that the key draws on. A rotated key and its successor have the same one. */
  readonly quotaId: string;
  readonly lastUsedAtMs: number | null;
}

/** The registry cannot be asked at the moment: neither a yes nor a no. */
export class RegistryUnavailableError extends Error {
  override readonly name = 'RegistryUnavailableError';
}

export interface NewKey {
  readonly name: string;
  readonly workspaceIds: readonly string[];
  readonly scopes: readonly Scope[];
  readonly expiresAtMs: number | null;
  readonly limits: { readonly perMinute: number | null; readonly perHour: number | null };
}

/** A key just made. The token is shown to its owner once and kept nowhere. */
export interface IssuedKey {
  readonly key: ApiKey;
  readonly token: string;
}

/** An already hashed key from elsewhere, to be taken over as it is. */
export type ImportedKey = Omit<ApiKey, 'lastUsedAtMs' | 'quotaId'> & { readonly quotaId?: string };

/** Finds keys for requests. Every method may reject with RegistryUnavailableError. */
export interface KeyLookup {
  /** The key with that hash, whatever its status; null where none was ever issued. */
  find(hash: KeyHash): Promise<ApiKey | null>;
  /** The same from what this process already holds and trusts, without any look-up; undefined where it holds nothing. */
  peek(hash: KeyHash): ApiKey | undefined;
  /**
   * Whether that is known here, without any look-up, to be the hash of an issued key, although the key itself may have
   * to be looked up. For a hint: it may be false of a key that was issued. Left out where `peek` knows every key.
   */
  isIssued?(hash: KeyHash): boolean;
  /** Tells that a key was used now. Never throws, never waits. */
  touch(key: ApiKey): void;
}

/** Shows and changes keys for operators. Every method may reject with RegistryUnavailableError. */
export interface KeyDirectory {
  list(): Promise<readonly ApiKey[]>;
  get(keyId: string): Promise<ApiKey | null>;
  create(key: NewKey): Promise<IssuedKey>;
  /** Null where there is no such key. A revoked key stays revoked. */
  setStatus(keyId: string, status: KeyStatus): Promise<ApiKey | null>;
  /**
   * Issues a successor with the same rights and the same quota; the old key ends after the overlap.
   * Null where there is no such key. Throws KeyStateError where it is not active.
   */
  rotate(keyId: string, overlapMs: number): Promise<IssuedKey | null>;
  /** Takes hashed keys over; one that is there already is replaced only where it has the same keyId and hash. */
  importKeys(keys: readonly ImportedKey[]): Promise<{ readonly added: number; readonly replaced: number }>;
}

/** Where keys are kept. */
export interface KeyRegistry extends KeyLookup, KeyDirectory {}

/** The key's state forbids what was asked; the message says why and what is possible, and may be shown to an operator. */
export class KeyStateError extends Error {
  override readonly name = 'KeyStateError';
}
