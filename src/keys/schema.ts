/** The form of a key: the rules of its members, and the record that a registry stores. */
import { z } from 'zod';
import { ID_PATTERN, UUID_PATTERN } from '../domain/records.ts';
import { type ApiKey, type ImportedKey, KEY_STATUSES, type KeyHash, RegistryUnavailableError, SCOPES } from './key.ts';

/** The input is no key. The message names the members and the rules, and may be shown to an operator. */
export class InvalidKeyError extends Error {
  override readonly name = 'InvalidKeyError';
}

/** The last millisecond that RFC 3339 can write. */
export const MAX_TIMESTAMP_MS = 253_402_300_799_999;
/** Counted in code points. Control characters would let a name rewrite the terminal that lists it. */
const NAME = /^(?=.*\S)[^\p{Cc}\p{Cs}]{1,100}$/u;
const SHA256_HEX = /^[0-9a-f]{64}$/;

function distinct<T>(values: readonly T[]): T[] {
  return [...new Set(values)];
}

/** The rules of single members, for every form in which a key is written. Workspaces become lower case, nothing is double. */
export const keyMembers = {
  id: z.string().regex(ID_PATTERN, 'must be 1 to 64 of the characters A-Z a-z 0-9 _ -'),
  name: z.string().regex(NAME, 'must be 1 to 100 characters, without control characters, and not blank'),
  workspaceIds: z
    .array(z.string().regex(UUID_PATTERN, 'must be a UUID').describe('a UUID'))
    .min(1)
    .max(50)
    .transform((ids) => distinct(ids.map((id) => id.toLowerCase()))),
  scopes: z
    .array(z.enum(SCOPES).describe(`one of ${SCOPES.join(', ')}`))
    .min(1)
    .transform(distinct<(typeof SCOPES)[number]>),
  limit: z.int().min(1).max(1_000_000_000).nullable(),
};
const { id: keyIdSchema, limit: limitSchema, name, workspaceIds, scopes } = keyMembers;
const hashSchema = z.string().regex(SHA256_HEX, 'must be a SHA-256 in lower-case hex');
const timestampSchema = z.int().min(0).max(MAX_TIMESTAMP_MS);

// No defaults here: a record without its status must not become active. Members that a later release adds are ignored.
const recordSchema = z.object({
  name,
  workspaceIds,
  scopes,
  expiresAtMs: timestampSchema.nullable(),
  limits: z.object({ perMinute: limitSchema, perHour: limitSchema }),
  keyId: keyIdSchema,
  hash: hashSchema,
  status: z.enum(KEY_STATUSES),
  createdAtMs: timestampSchema,
  quotaId: keyIdSchema,
});
const importedKeySchema = recordSchema.extend({ quotaId: keyIdSchema.exactOptional() });

/** Checks a hashed key that another process sends. Throws InvalidKeyError. */
export function parseImportedKey(input: unknown): ImportedKey {
  return parse(importedKeySchema, input, 'Invalid imported key');
}

function parse<T>(schema: z.ZodType<T>, input: unknown, what: string): T {
  const parsed = schema.safeParse(input);
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => [...path.map(String), message].join(': '));
  throw new InvalidKeyError(`${what}: ${problems.join('; ')}`);
}

/** The record of a key: JSON without the time of the last use, which changes too often to be part of it. */
export function serializeKey(key: ApiKey): string {
  return JSON.stringify({
    keyId: key.keyId,
    hash: key.hash,
    name: key.name,
    status: key.status,
    workspaceIds: key.workspaceIds,
    scopes: key.scopes,
    createdAtMs: key.createdAtMs,
    expiresAtMs: key.expiresAtMs,
    limits: { perMinute: key.limits.perMinute, perHour: key.limits.perHour },
    quotaId: key.quotaId,
  });
}

/**
 * The key of a record that is stored under that hash. Throws RegistryUnavailableError for a broken record: it says neither
 * that its holder may come in nor that the key was never issued. Only the start of the hash is in the message, which is logged.
 */
export function deserializeKey(record: string, hash: KeyHash, lastUsedAtMs: number | null): ApiKey {
  try {
    const key = parse(recordSchema, JSON.parse(record), 'Invalid record');
    if (key.hash !== hash) throw new Error('it holds another hash than it is stored under');
    return { ...key, lastUsedAtMs };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RegistryUnavailableError(
      `The record of the key with the hash ${hash.slice(0, 12)}... is broken: ${reason}`,
      {
        cause: error,
      },
    );
  }
}
