/** The text in which a registry keeps a key outside of this process. */
import { type ApiKey, RegistryUnavailableError } from './key.ts';
import { parseStoredKey } from './schema.ts';

/** JSON without the time of the last use, which changes too often to be part of the record. */
export function serializeKey(key: ApiKey): string {
  const { keyId, hash, name, status, workspaceIds, scopes, createdAtMs, expiresAtMs, limits, quotaId } = key;
  return JSON.stringify({
    keyId,
    hash,
    name,
    status,
    workspaceIds,
    scopes,
    createdAtMs,
    expiresAtMs,
    limits: { perMinute: limits.perMinute, perHour: limits.perHour },
    quotaId,
  });
}

/**
 * The key of a text that was kept under that hash. Throws RegistryUnavailableError where it isn't one: a record that is
 * broken says neither that its holder may come in nor that the key was never issued.
 */
export function deserializeKey(text: string, hash: string, lastUsedAtMs: number | null): ApiKey {
  try {
    const input: unknown = JSON.parse(text);
    const key = parseStoredKey(input);
    if (key.hash !== hash) throw new Error('it holds another hash than it is kept under');
    return { ...key, lastUsedAtMs };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RegistryUnavailableError(`The record of the key with the hash ${hash} is broken: ${reason}`, {
      cause: error,
    });
  }
}
