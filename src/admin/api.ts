/** The bodies of the admin interface: what its endpoints take, with what each member may hold, and what they answer. */
import { z } from 'zod';
import type { PurgeRequest } from '../cache/purge.ts';
import { parseTag, type Tag } from '../cache/purge-log.ts';
import { CACHE_CLASSES, type CacheTtl } from '../cache/ttl-policy.ts';
import { parseDuration } from '../duration.ts';
import {
  type ImportedKey,
  KEY_STATUSES,
  type KeyEdit,
  keyMembers,
  MAX_TIMESTAMP_MS,
  type NewKey,
  SCOPES,
} from '../keys/key.ts';

export interface BodyRules<T> {
  readonly schema: z.ZodType<T>;
  /**
   * The allowed values of members, for messages: `name` for a member, `workspaceIds[]` for an element of an array,
   * `limits.perMinute` for a member within another, the empty name for the body.
   */
  readonly allowed: Readonly<Record<string, string>>;
  /** Members whose value is never repeated, since a secret may have been put there by mistake. */
  readonly secret?: ReadonlySet<string>;
}

const DAY_MS = 86_400_000;
const string = z.string();

export function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

export function isoOrNull(timeMs: number | null): string | null {
  return timeMs === null ? null : iso(timeMs);
}

/** A duration such as `30s`, read as milliseconds. */
function duration(fromMs: number, toMs: number) {
  return z
    .string()
    .transform((text) => parseDuration(text) ?? Number.NaN)
    .refine((ms) => ms >= fromMs && ms <= toMs);
}

/** A time, read as Unix milliseconds. */
const anyTime = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const time = anyTime.refine((ms) => ms >= 0 && ms <= MAX_TIMESTAMP_MS);

/** A key as the interface shows it: everything but its hash. Times are ISO 8601 in UTC, with milliseconds. */
export const keyViewSchema = z.object({
  keyId: string,
  name: string,
  status: z.enum(KEY_STATUSES),
  workspaceIds: z.array(string).readonly(),
  scopes: z.array(string).readonly(),
  createdAt: string,
  expiresAt: string.nullable(),
  limits: z.object({ perMinute: z.number().nullable(), perHour: z.number().nullable() }),
  quotaId: string,
  lastUsedAt: string.nullable(),
});
export type KeyView = z.output<typeof keyViewSchema>;

/** An import of 1 MB has room for about this many keys; more can only be junk. */
const MAX_IMPORTED_KEYS = 5000;
/** The largest body of an import of keys, in bytes. */
export const IMPORT_LIMIT_BYTES = 1024 * 1024;

const { id, name, workspaceIds, scopes } = keyMembers;
const limit = keyMembers.limit.optional().default(null);
const ALLOWED_LIMIT = "an integer from 1 to 10^9, or null for the gateway's own";
const ALLOWED_TIME = 'a time in ISO 8601 with its offset, in the years 1970 to 9999';
const ALLOWED_RIGHTS = {
  name: 'a text of 1 to 100 characters that is not blank and has no control characters',
  workspaceIds: 'an array of 1 to 50 UUIDs',
  'workspaceIds[]': 'a UUID',
  scopes: `an array of at least one of ${SCOPES.join(', ')}`,
  'scopes[]': `one of ${SCOPES.join(', ')}`,
};

/** The body of `POST /api/keys`. */
export function newKeyRules(nowMs: number): BodyRules<NewKey> {
  const expiresAt = time.refine((ms) => ms > nowMs).nullish();
  return {
    schema: z
      .strictObject({
        name,
        workspaceIds,
        scopes,
        perMinute: limit,
        perHour: limit,
        expiresAt: expiresAt.default(null),
      })
      .transform(({ perMinute, perHour, expiresAt: expiresAtMs, ...rest }) => ({
        ...rest,
        limits: { perMinute, perHour },
        expiresAtMs,
      })),
    allowed: {
      ...ALLOWED_RIGHTS,
      perMinute: ALLOWED_LIMIT,
      perHour: ALLOWED_LIMIT,
      expiresAt: `a time in ISO 8601 with its offset, after ${iso(nowMs)} and at most in the year 9999, or null for never`,
    },
  };
}

/** The body of `PATCH /api/keys/{keyId}`: any of the members; those that are left out stay as they are. */
export function keyEditRules(nowMs: number): BodyRules<KeyEdit> {
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
      ...newKeyRules(nowMs).allowed,
      '': 'a JSON object with at least one of name, status, workspaceIds, scopes, perMinute, perHour and expiresAt',
      status: 'active or deprecated (to revoke a key, DELETE it)',
    },
  };
}

/** The body of `POST /api/keys/{keyId}/rotate`. The overlap is a day by default. */
export const ROTATE_RULES: BodyRules<{ readonly overlapMs: number }> = {
  schema: z
    .strictObject({ overlap: duration(0, 365 * DAY_MS).default(DAY_MS) })
    .transform(({ overlap }) => ({ overlapMs: overlap })),
  allowed: { overlap: 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 24h or 7d' },
};

/** The body of `POST /api/keys/import`, as a whole; the keys in it have rules of their own. */
export const IMPORT_RULES: BodyRules<{ readonly keys: readonly unknown[] }> = {
  schema: z.strictObject({ keys: z.array(z.unknown()).min(1).max(MAX_IMPORTED_KEYS) }),
  allowed: { keys: `an array of 1 to ${MAX_IMPORTED_KEYS} keys` },
};

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
      ...ALLOWED_RIGHTS,
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

/** Whether a key itself stands in place of its id. An id is shown and logged; a key must never be. */
export function looksLikeToken(keyId: string): boolean {
  return keyId.startsWith('evg_');
}

/** The configuration allows it too: a TTL that may be written there may be set as well. */
export const LONGEST_TTL_MS = 365 * DAY_MS;
/** How long a TTL may be set for. For longer it belongs into the configuration. */
export const SHORTEST_FOR_MS = 60_000;
export const LONGEST_FOR_MS = 7 * DAY_MS;

const ttl = duration(0, LONGEST_TTL_MS).optional();
export const ALLOWED_TTL = 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 2h or 7d';

const perTtl = z.object({ fresh: string, stale: string, error: string });
const perTtlOrNull = z.object({ fresh: string.nullable(), stale: string.nullable(), error: string.nullable() });

/** A class of `GET /api/cache/ttl`: each TTL as text and in milliseconds. */
export const ttlViewSchema = z.object({
  class: string,
  ...perTtl.shape,
  freshMs: z.number(),
  staleMs: z.number(),
  errorMs: z.number(),
  source: perTtl,
  until: perTtlOrNull,
  afterwards: perTtlOrNull,
  setBy: string.nullable(),
  setAt: string.nullable(),
});
export type TtlView = z.output<typeof ttlViewSchema>;

/** The TTLs that a body sets, and for how long; null for good. */
export interface WantedTtl {
  readonly ttl: Partial<CacheTtl>;
  readonly forMs: number | null;
}

/** The body of `PUT /api/cache/ttl/{class}`. */
export const TTL_RULES: BodyRules<WantedTtl> = {
  schema: z
    .strictObject({ fresh: ttl, stale: ttl, error: ttl, for: duration(SHORTEST_FOR_MS, LONGEST_FOR_MS).optional() })
    .transform(({ fresh, stale, error, for: forMs = null }) => ({
      ttl: {
        ...(fresh === undefined ? {} : { freshMs: fresh }),
        ...(stale === undefined ? {} : { staleMs: stale }),
        ...(error === undefined ? {} : { errorMs: error }),
      },
      forMs,
    })),
  allowed: {
    fresh: ALLOWED_TTL,
    stale: ALLOWED_TTL,
    error: ALLOWED_TTL,
    for: 'a duration from 1m to 7d, such as 30m, 2h or 1d; without it what is set stays until it is reset',
  },
};

/** Far more than anyone lists by hand; beyond it `all` or a class does the same for less. */
const MOST_TAGS = 1000;

/** How a tag is written, for messages and help texts. */
export const TAG_FORM = `all, class:NAME (one of ${CACHE_CLASSES.join(', ')}), workspace:UUID, evaluation:ID or scorecard:ID (an ID is 1 to 64 characters of A-Z, a-z, 0-9, _ and -)`;

const tag = z.string().transform((text, context): Tag => {
  const parsed = parseTag(text);
  if (parsed !== null) return parsed;
  context.addIssue({ code: 'custom' });
  return z.NEVER;
});

/** The body of `POST /api/cache/purge`. */
export const PURGE_RULES: BodyRules<PurgeRequest> = {
  schema: z
    .strictObject({
      tags: z.array(tag).min(1).max(MOST_TAGS),
      mode: z.enum(['soft', 'hard']).default('hard'),
      exact: z.boolean().default(false),
      dryRun: z.boolean().default(false),
    })
    .transform(({ tags, mode, exact, dryRun }) => ({
      tags: [...new Set(tags)],
      mode,
      isExact: exact,
      isDryRun: dryRun,
    })),
  allowed: {
    tags: `an array of 1 to ${MOST_TAGS} tags`,
    'tags[]': TAG_FORM,
    mode: 'hard (the default: what is purged is gone) or soft (it is stale, and served while it is refreshed)',
    exact: 'true (only these tags) or false (the default: also the lists that may hold a purged evaluation)',
    dryRun: 'true or false (the default)',
  },
};

/** The answer to a purge; `complete` is false if a tier could not be counted in time. */
export const purgeViewSchema = z.object({
  entries: z.number(),
  bytes: z.number(),
  complete: z.boolean(),
  /** Lists that a purge of evaluations has taken along; null if it took none. */
  lists: z.object({ entries: z.number(), workspaces: z.number().nullable() }).nullable(),
  tags: z.array(string).readonly(),
  mode: z.enum(['soft', 'hard']),
  exact: z.boolean(),
  dryRun: z.boolean(),
});
export type PurgeView = z.output<typeof purgeViewSchema>;

/** After a longer one copies would have expired, and nobody would remember it. */
export const LONGEST_MAINTENANCE_MS = DAY_MS;

/** The body of `PUT /api/cache/maintenance`: exactly one of the two, which the endpoint checks against its clock. */
export const MAINTENANCE_RULES = {
  schema: z
    .strictObject({ for: duration(1, LONGEST_MAINTENANCE_MS).optional(), until: anyTime.optional() })
    .transform((given) => ({ forMs: given.for ?? null, untilMs: given.until ?? null })),
  allowed: {
    for: 'a duration above 0s and up to 1d, such as 90s, 30m or 2h',
    until: 'a time within the next 24 hours in ISO 8601, such as 2026-01-15T12:00:00Z',
  },
} satisfies BodyRules<{ readonly forMs: number | null; readonly untilMs: number | null }>;

/** The answer of each method of `/api/cache/maintenance`. */
export const maintenanceViewSchema = z.object({
  active: z.boolean(),
  until: string.nullable(),
  leftMs: z.number(),
  by: string.nullable(),
  since: string.nullable(),
});
export type MaintenanceView = z.output<typeof maintenanceViewSchema>;

/** How two refusals of `GET /api/cache/explain` begin: clients without query parameters say in their own words what to do. */
export const VIEWER_NEEDED = 'What this path shows depends on who asks.';
export const UNKNOWN_KEY = 'The registry has no key with that keyId.';
