/** The form of what is asked to become a key. Every registry checks with it before it keeps anything. */
import { z } from 'zod';
import { ID_PATTERN, UUID_PATTERN } from '../domain/records.ts';
import { type ApiKey, type ImportedKey, KEY_STATUSES, type NewKey, SCOPES } from './key.ts';

/** What was asked for is no key. `problems` name the member and the rule, and may be shown to an operator. */
export class InvalidKeyError extends Error {
  override readonly name = 'InvalidKeyError';
  readonly problems: readonly string[];

  constructor(what: string, problems: readonly string[]) {
    super(`${what}: ${problems.join('; ')}`);
    this.problems = problems;
  }
}

/** The last millisecond that RFC 3339 can write. */
const MAX_TIMESTAMP_MS = 253_402_300_799_999;
const NAME = /^(?=.*\S)[^\p{Cc}\p{Cs}]{1,100}$/u;
const SHA256_HEX = /^[0-9a-f]{64}$/;

const id = z.string().regex(ID_PATTERN, 'must be 1 to 64 of the characters A-Z a-z 0-9 _ -');
const timestampMs = z.int().min(0).max(MAX_TIMESTAMP_MS);
const limit = z.int().min(1).max(1_000_000_000).nullable();

const shape = {
  name: z.string().regex(NAME, 'must be 1 to 100 characters, without control characters, and not blank'),
  workspaceIds: z
    .array(z.string().regex(UUID_PATTERN, 'must be a UUID'))
    .min(1)
    .max(50)
    .transform((ids) => [...new Set(ids.map((workspaceId) => workspaceId.toLowerCase()))]),
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .transform((scopes) => [...new Set(scopes)]),
  expiresAtMs: timestampMs.nullable().default(null),
  limits: z
    .strictObject({ perMinute: limit.default(null), perHour: limit.default(null) })
    .default({ perMinute: null, perHour: null }),
};

// Strict, because a mistyped member must not be lost: without its `expiresAtMs` a key would never expire.
const newKeySchema = z.strictObject(shape);
const importedKeySchema = z.strictObject({
  ...shape,
  keyId: id,
  hash: z.string().regex(SHA256_HEX, 'must be a SHA-256 in lower-case hex'),
  status: z.enum(KEY_STATUSES).default('active'),
  createdAtMs: timestampMs,
  quotaId: id.exactOptional(),
});

// Nothing has a default here: a record without its status must not become active. What a later release adds is let be.
const storedKeySchema = z.object({
  name: shape.name,
  workspaceIds: shape.workspaceIds,
  scopes: shape.scopes,
  expiresAtMs: timestampMs.nullable(),
  limits: z.object({ perMinute: limit, perHour: limit }),
  keyId: id,
  hash: z.string().regex(SHA256_HEX, 'must be a SHA-256 in lower-case hex'),
  status: z.enum(KEY_STATUSES),
  createdAtMs: timestampMs,
  quotaId: id,
});

function problemsOf(error: z.ZodError): string[] {
  return error.issues.map((issue) => {
    const path = issue.path.map(String).join('.');
    return path === '' ? issue.message : `${path}: ${issue.message}`;
  });
}

/**
 * Checks and normalises the request for a new key: workspaces in lower case, nothing twice, what is left out null.
 * Throws InvalidKeyError.
 */
export function parseNewKey(input: unknown): NewKey {
  const parsed = newKeySchema.safeParse(input);
  if (!parsed.success) throw new InvalidKeyError('Invalid key', problemsOf(parsed.error));
  return parsed.data;
}

/** The same for a hashed key from elsewhere; `status` is `active` where it is left out. Throws InvalidKeyError. */
export function parseImportedKey(input: unknown): ImportedKey {
  const parsed = importedKeySchema.safeParse(input);
  if (!parsed.success) throw new InvalidKeyError('Invalid imported key', problemsOf(parsed.error));
  return parsed.data;
}

/** Checks a key as a registry kept it; the time of its last use is kept apart. Throws InvalidKeyError. */
export function parseStoredKey(input: unknown): Omit<ApiKey, 'lastUsedAtMs'> {
  const parsed = storedKeySchema.safeParse(input);
  if (!parsed.success) throw new InvalidKeyError('Invalid stored key', problemsOf(parsed.error));
  return parsed.data;
}
