/** The bodies of /api/keys, and what they are parsed into. Pure: the time is handed in. */
import { z } from 'zod';
import { type ImportedKey, KEY_STATUSES, type KeyEdit, type NewKey, SCOPES } from '../keys/key.ts';
import { keyMembers, MAX_TIMESTAMP_MS } from '../keys/schema.ts';
import { parseDuration } from '../duration.ts';
import type { AllowedValues, BodyRules } from './faults.ts';

const LONGEST_OVERLAP_MS = 365 * 86_400_000;
/** An import of 1 MB has room for about this many; more can only be junk. */
const MAX_IMPORTED_KEYS = 5000;

const { id, name, workspaceIds, scopes } = keyMembers;
const limit = keyMembers.limit.optional().default(null);
const time = z.iso
  .datetime({ offset: true })
  .transform((text) => Date.parse(text))
  .refine((ms) => ms >= 0 && ms <= MAX_TIMESTAMP_MS);

const ALLOWED_LIMIT = "an integer from 1 to 10^9, or null for the gateway's own";
const ALLOWED_ALIKE: AllowedValues = {
  name: 'a text of 1 to 100 characters that is not blank and has no control characters',
  workspaceIds: 'an array of 1 to 50 UUIDs',
  'workspaceIds[]': 'a UUID',
  scopes: `an array of at least one of ${SCOPES.join(', ')}`,
  'scopes[]': `one of ${SCOPES.join(', ')}`,
};

/** The body of `POST /api/keys`. */
export function newKeyRules(nowMs: number): BodyRules<NewKey> {
  return {
    schema: z
      .strictObject({
        name,
        workspaceIds,
        scopes,
        perMinute: limit,
        perHour: limit,
        expiresAt: time
          .refine((ms) => ms > nowMs)
          .nullish()
          .default(null),
      })
      .transform(({ perMinute, perHour, expiresAt, ...rest }) => ({
        ...rest,
        limits: { perMinute, perHour },
        expiresAtMs: expiresAt,
      })),
    allowed: {
      ...ALLOWED_ALIKE,
      perMinute: ALLOWED_LIMIT,
      perHour: ALLOWED_LIMIT,
      expiresAt: `a time in ISO 8601 with its offset, after ${iso(nowMs)} and at most in the year 9999, or null for never`,
    },
  };
}

/** The body of `PATCH /api/keys/{keyId}`: any of the members; those that are left out stay as they are. */
export function keyEditRules(nowMs: number): BodyRules<KeyEdit> {
  const { allowed } = newKeyRules(nowMs);
  return {
    schema: z
      .strictObject({
        name,
        status: z.enum(['active', 'deprecated']),
        workspaceIds,
        scopes,
        perMinute: keyMembers.limit,
        perHour: keyMembers.limit,
        expiresAt: time.refine((ms) => ms > nowMs).nullable(),
      })
      .partial()
      .refine((edit) => Object.keys(edit).length > 0)
      .transform(({ expiresAt, ...rest }) => ({ ...rest, expiresAtMs: expiresAt })),
    allowed: {
      ...allowed,
      '': 'a JSON object with at least one of name, status, workspaceIds, scopes, perMinute, perHour and expiresAt',
      status: 'active or deprecated (to revoke a key, DELETE it)',
    },
  };
}

/** The body of `POST /api/keys/{keyId}/rotate`. The overlap is a day by default. */
export const ROTATE_RULES: BodyRules<{ readonly overlapMs: number }> = {
  schema: z
    .strictObject({
      overlap: z
        .string()
        .transform((text) => parseDuration(text) ?? Number.NaN)
        .refine((ms) => ms >= 0 && ms <= LONGEST_OVERLAP_MS)
        .default(86_400_000),
    })
    .transform(({ overlap }) => ({ overlapMs: overlap })),
  allowed: { overlap: 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 24h or 7d' },
};

/** The body of `POST /api/keys/import`, as a whole; the keys in it have rules of their own. */
export const IMPORT_RULES: BodyRules<{ readonly keys: readonly unknown[] }> = {
  schema: z.strictObject({ keys: z.array(z.unknown()).min(1).max(MAX_IMPORTED_KEYS) }),
  allowed: { keys: `an array of 1 to ${MAX_IMPORTED_KEYS} keys` },
};

const ALLOWED_TIME = 'a time in ISO 8601 with its offset, in the years 1970 to 9999';

/** One key of an import. It may have expired already: its holder then gets 403 and not 401 (K4). */
export function importedKeyRules(nowMs: number): BodyRules<ImportedKey> {
  return {
    schema: z
      .strictObject({
        keyId: id.refine((text) => !looksLikeToken(text)),
        hash: z
          .string()
          .regex(/^[0-9a-f]{64}$/i)
          .transform((hash) => hash.toLowerCase()),
        name,
        status: z.enum(KEY_STATUSES).default('active'),
        workspaceIds,
        scopes,
        expiresAt: time.nullish().default(null),
        createdAt: time.default(nowMs),
        limits: z.strictObject({ perMinute: limit, perHour: limit }).nullish(),
        quotaId: id.optional(),
      })
      .transform(({ expiresAt, createdAt, limits, quotaId, ...rest }) => ({
        ...rest,
        expiresAtMs: expiresAt,
        createdAtMs: createdAt,
        limits: limits ?? { perMinute: null, perHour: null },
        ...(quotaId === undefined ? {} : { quotaId }),
      })),
    allowed: {
      ...ALLOWED_ALIKE,
      keyId: 'a text of 1 to 64 characters of A-Z, a-z, 0-9, _ and -, and never a key itself',
      hash: 'the SHA-256 of the key as 64 hexadecimal digits',
      status: KEY_STATUSES.join(', '),
      expiresAt: `${ALLOWED_TIME}, or null for never`,
      createdAt: ALLOWED_TIME,
      limits: 'an object of perMinute and perHour',
      'limits.perMinute': ALLOWED_LIMIT,
      'limits.perHour': ALLOWED_LIMIT,
      quotaId: 'a text of 1 to 64 characters of A-Z, a-z, 0-9, _ and -',
    },
    secret: new Set(['hash', 'keyId']),
  };
}

/** Whether a key itself stands where its id belongs. An id is shown and logged; a key must never be. */
export function looksLikeToken(keyId: string): boolean {
  return keyId.startsWith('evg_');
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
