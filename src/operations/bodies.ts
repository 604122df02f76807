/**
 * The bodies that the endpoints of the admin listener take. The description of a member says what it may hold: refusals
 * quote it, and so does the reference. `writeOnly` members are never repeated, since a secret may be put there by mistake.
 * `nowMs` is when the request came, in Unix milliseconds; null for the reference.
 */
import { z } from 'zod';
import type { PurgeRequest } from '../cache/purge.ts';
import { parseTag, type Tag } from '../cache/purge-log.ts';
import { SCOPES, UUID_PATTERN } from '../domain/vocabulary.ts';
import { CACHE_CLASSES, type CacheClass, type CacheTtl, type TtlOverride } from '../cache/ttl-policy.ts';
import { parseDuration } from '../time/duration.ts';
import {
  type ImportedKey,
  KEY_STATUSES,
  type KeyEdit,
  keyMembers,
  MAX_TIMESTAMP_MS,
  type NewKey,
} from '../keys/key.ts';
import type { Maintenance } from '../journal/journal.ts';
import type { KeptEntry } from './answers.ts';

const DAY_MS = 86_400_000;

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

function future(nowMs: number | null) {
  const after = nowMs === null ? 'now' : new Date(nowMs).toISOString();
  return time
    .refine((ms) => nowMs === null || ms > nowMs)
    .nullable()
    .describe(`a time in ISO 8601 with its offset, after ${after} and at most in the year 9999, or null for never`);
}

const ID = 'a text of 1 to 64 characters of A-Z, a-z, 0-9, _ and -';
const TIME = 'a time in ISO 8601 with its offset, in the years 1970 to 9999';

const name = keyMembers.name.describe('a text of 1 to 100 characters that is not blank and has no control characters');
const scopes = keyMembers.scopes.describe(`an array of at least one of ${SCOPES.join(', ')}`);
const workspaceIds = keyMembers.workspaceIds.describe('an array of 1 to 50 UUIDs');
const limit = keyMembers.limit.describe("an integer from 1 to 10^9, or null for the gateway's own");

const from = keyMembers.from
  .nullable()
  .describe(
    'an array of 1 to 50 subnets or addresses, such as 203.0.113.0/24, 2001:db8::/32 or 203.0.113.7, or null for any address',
  );

const keyBody = (nowMs: number | null) =>
  z.strictObject({
    name,
    workspaceIds,
    scopes,
    perMinute: limit.optional(),
    perHour: limit.optional(),
    expiresAt: future(nowMs).optional(),
    from: from.optional(),
  });

export const newKeyBody = (nowMs: number | null) =>
  keyBody(nowMs).transform(
    ({ perMinute = null, perHour = null, expiresAt = null, from: bound = null, ...rest }): NewKey => ({
      ...rest,
      limits: { perMinute, perHour },
      expiresAtMs: expiresAt,
      ...(bound === null ? {} : { from: bound }),
    }),
  );

/** `PATCH /api/keys/{keyId}`: members that are left out stay as they are. */
export const keyEditBody = (nowMs: number | null) =>
  keyBody(nowMs)
    .extend({ status: z.enum(['active', 'deprecated']).describe('active or deprecated (to revoke a key, DELETE it)') })
    .partial()
    .refine((edit) => Object.keys(edit).length > 0)
    .transform(({ expiresAt, ...rest }): KeyEdit => ({ ...rest, expiresAtMs: expiresAt }))
    .describe(
      'a JSON object with at least one of name, status, workspaceIds, scopes, perMinute, perHour, expiresAt and from',
    );

export const rotateBody = () =>
  z
    .strictObject({
      overlap: duration(0, 365 * DAY_MS)
        .prefault('1d')
        .describe('a duration from 0s to 365d, such as 250ms, 30s, 5m, 24h or 7d'),
    })
    .transform(({ overlap }) => ({ overlapMs: overlap }));

const trial = z.boolean().default(false).describe('true (only count) or false (the default)');

/** An import of 1 MB has room for about this many keys; more can only be junk. */
const MAX_IMPORTED_KEYS = 5000;
export const IMPORT_LIMIT_BYTES = 1024 * 1024;

/** `POST /api/keys/import`, as a whole; each key is checked by `importedKeyBody`, so that a refusal lists the faults of all. */
export const importBody = (nowMs: number | null) =>
  z.strictObject({
    keys: z
      .array(nowMs === null ? importedKeyBody : z.unknown())
      .min(1)
      .max(MAX_IMPORTED_KEYS)
      .describe(`an array of 1 to ${MAX_IMPORTED_KEYS} keys`),
    dryRun: trial,
  });

/**
 * One key of an import, or line of `evalgate keys import`. It may have expired already (K4: the holder of an issued key gets
 * 403, not 401).
 */
export const importedKeyBody = z
  .strictObject({
    keyId: keyMembers.id
      .refine((text) => !looksLikeToken(text))
      .meta({ description: `${ID}, and never a key itself`, writeOnly: true }),
    hash: z
      .string()
      .regex(/^[0-9a-f]{64}$/i)
      .transform((hash) => hash.toLowerCase())
      .meta({ description: 'the SHA-256 of the key as 64 hexadecimal digits', writeOnly: true }),
    name,
    status: z.enum(KEY_STATUSES).exactOptional().describe(KEY_STATUSES.join(', ')),
    workspaceIds,
    scopes,
    expiresAt: time.nullish().describe(`${TIME}, or null for never`),
    createdAt: time.optional().describe(TIME),
    limits: z
      .strictObject({ perMinute: limit.optional(), perHour: limit.optional() })
      .nullish()
      .describe('an object of perMinute and perHour'),
    from: from.exactOptional(),
    quotaId: keyMembers.id.exactOptional().describe(ID),
    ownExpiresAt: time
      .nullish()
      .describe(`only of a key that was rotated: when it would have ended without: ${TIME}, or null for never`),
  })
  .transform(({ expiresAt, createdAt, limits, ownExpiresAt, ...rest }): ImportedKey => ({
    ...rest,
    ...(expiresAt !== undefined && { expiresAtMs: expiresAt }),
    ...(createdAt !== undefined && { createdAtMs: createdAt }),
    ...(limits !== undefined && {
      limits: { perMinute: limits?.perMinute ?? null, perHour: limits?.perHour ?? null },
    }),
    ...(ownExpiresAt !== undefined && { ownExpiresAtMs: ownExpiresAt }),
  }));

/** Whether a key itself stands in place of its id. An id is shown and logged; a key must never be. */
export function looksLikeToken(text: string): boolean {
  return text.startsWith('evg_');
}

/** The configuration allows it too: a TTL that may be written there may be set as well. */
export const MAX_TTL_MS = 365 * DAY_MS;
/** How long a TTL may be set for. For longer it belongs into the configuration. */
export const SHORTEST_FOR_MS = 60_000;
export const MAX_FOR_MS = 7 * DAY_MS;

export const ALLOWED_TTL = 'a duration from 0s to 365d, such as 250ms, 30s, 5m, 2h or 7d';
const ttl = duration(0, MAX_TTL_MS).optional().describe(ALLOWED_TTL);

/** The TTLs that a body sets, and for how long; null for good. */
export interface WantedTtl {
  readonly ttl: Partial<CacheTtl>;
  readonly forMs: number | null;
}

export const ttlBody = () =>
  z
    .strictObject({
      fresh: ttl,
      stale: ttl,
      error: ttl,
      for: duration(SHORTEST_FOR_MS, MAX_FOR_MS)
        .optional()
        .describe('a duration from 1m to 7d, such as 30m, 2h or 1d; without it the times stay until they are reset'),
    })
    .transform(({ fresh, stale, error, for: forMs = null }): WantedTtl => ({
      ttl: {
        ...(fresh === undefined ? {} : { freshMs: fresh }),
        ...(stale === undefined ? {} : { staleMs: stale }),
        ...(error === undefined ? {} : { errorMs: error }),
      },
      forMs,
    }));

/** Far more than anyone lists by hand; beyond it `all` or a class does the same for less. */
const MAX_TAGS = 1000;

/** How a tag is written, for messages and help texts. */
export const TAG_FORM = `all, class:NAME (one of ${CACHE_CLASSES.join(', ')}), workspace:UUID, evaluation:ID or scorecard:ID (an ID is 1 to 64 characters of A-Z, a-z, 0-9, _ and -)`;

const tag = z.string().transform((text, context): Tag => {
  const parsed = parseTag(text);
  if (parsed !== null) return parsed;
  context.addIssue({ code: 'custom' });
  return z.NEVER;
});

export const purgeBody = () =>
  z
    .strictObject({
      tags: z.array(tag.describe(TAG_FORM)).min(1).max(MAX_TAGS).describe(`an array of 1 to ${MAX_TAGS} tags`),
      mode: z
        .enum(['hard', 'soft'])
        .default('hard')
        .describe('hard (the default: it is removed) or soft (it is stale, and served while it is refreshed)'),
      exact: z
        .boolean()
        .default(false)
        .describe('true (only these tags) or false (the default: also the lists that may hold a purged evaluation)'),
      dryRun: z.boolean().default(false).describe('true or false (the default)'),
    })
    .transform(({ tags, mode, exact, dryRun }): PurgeRequest => ({
      tags: [...new Set(tags)],
      mode,
      isExact: exact,
      isDryRun: dryRun,
    }));

export const eraseBody = () =>
  z
    .strictObject({
      evaluation: keyMembers.id.optional().describe(ID),
      workspace: z.string().regex(UUID_PATTERN).optional().describe('a UUID'),
      gone: z
        .array(keyMembers.id)
        .max(MAX_TAGS)
        .default([])
        .describe(`an array of ids of processes that have ended without a goodbye, at most ${MAX_TAGS}`),
    })
    .refine(({ evaluation, workspace }) => (evaluation === undefined) !== (workspace === undefined))
    .transform(({ evaluation, workspace = '', gone }): { readonly tag: Tag; readonly gone: readonly string[] } => ({
      tag: evaluation === undefined ? `workspace:${workspace.toLowerCase()}` : `evaluation:${evaluation}`,
      gone,
    }))
    .describe('a JSON object with one of evaluation and workspace, and gone');

/** After a longer one copies would have expired, and nobody would remember it. */
export const MAX_MAINTENANCE_MS = DAY_MS;
export const ALLOWED_MAINTENANCE = {
  for: 'a duration above 0s and up to 1d, such as 90s, 30m or 2h',
  until: 'a time within the next 24 hours in ISO 8601, such as 2026-01-15T12:00:00Z',
};

/** Deeper data cannot be written as JSON again: the engine's recursion ends. */
const MAX_DEPTH = 20;
const isShallow = (value: unknown, levels = MAX_DEPTH): boolean =>
  typeof value !== 'object' ||
  value === null ||
  (levels > 0 && Object.values(value).every((inner) => isShallow(inner, levels - 1)));
const auditedValue = z
  .unknown()
  .refine((value) => isShallow(value))
  .describe(`any JSON of at most ${MAX_DEPTH} levels`);

/** Records of a state are sent in pages of about 1 MB. */
const MAX_STATE_RECORDS = 5000;

/** `POST /api/state/import`, as a whole; each record is checked by the schema of its kind. */
export const stateBody = () =>
  z.strictObject({
    records: z
      .array(z.unknown())
      .min(1)
      .max(MAX_STATE_RECORDS)
      .describe(`an array of 1 to ${MAX_STATE_RECORDS} records, each as a line of \`GET /api/state\` has it`),
    dryRun: trial,
  });

/** A record of a state as it is imported. */
export type StateRecord =
  | { readonly kind: 'key'; readonly key: ImportedKey }
  | { readonly kind: 'time'; readonly cacheClass: CacheClass; readonly override: TtlOverride }
  | { readonly kind: 'maintenance'; readonly maintenance: Maintenance }
  | { readonly kind: 'audit'; readonly entry: KeptEntry };

export const STATE_KINDS = ['key', 'time', 'maintenance', 'audit'] as const;

/** By its kind, the schema of a record without that. */
export const stateRecordBodies = (nowMs: number): Readonly<Record<StateRecord['kind'], z.ZodType<StateRecord>>> => {
  // An end may have passed already. One that comes later than operators may ask for is a mistake.
  const end = (withinMs: number) => time.refine((ms) => ms <= nowMs + withinMs);
  const upTo = (withinMs: number) =>
    `a time in ISO 8601 with its offset, up to ${new Date(nowMs + withinMs).toISOString()}`;
  return {
    key: importedKeyBody.transform((key) => ({ kind: 'key', key })),
    time: z
      .strictObject({
        class: z.enum(CACHE_CLASSES).describe(CACHE_CLASSES.join(', ')),
        name: z.enum(['fresh', 'stale', 'error']).describe('fresh, stale or error'),
        ttl: duration(0, MAX_TTL_MS).describe(ALLOWED_TTL),
        until: end(MAX_FOR_MS)
          .nullable()
          .describe(`${upTo(MAX_FOR_MS)}, or null for good`),
      })
      .transform(({ class: cacheClass, name: ttlName, ttl: ms, until }) => {
        return { kind: 'time', cacheClass, override: { name: `${ttlName}Ms`, ms, untilMs: until } };
      }),
    maintenance: z
      .strictObject({
        since: time.describe(TIME),
        until: end(MAX_MAINTENANCE_MS).describe(upTo(MAX_MAINTENANCE_MS)),
        by: name,
      })
      .transform(({ since, until, by }) => ({
        kind: 'maintenance',
        maintenance: { sinceMs: since, untilMs: until, by },
      })),
    audit: z
      .strictObject({
        id: z.string().max(64).exactOptional().describe('a text of at most 64 characters'),
        at: z.iso.datetime().describe('a time in ISO 8601 in UTC'),
        who: name,
        action: name,
        target: z.string().max(1000).describe('a text of at most 1000 characters'),
        from: auditedValue,
        to: auditedValue,
      })
      .transform((entry) => ({ kind: 'audit', entry })),
  };
};

/** `PUT /api/cache/maintenance`: exactly one of the two, which the endpoint checks against its clock. */
export const maintenanceBody = () =>
  z.strictObject({
    for: duration(1, MAX_MAINTENANCE_MS).optional().describe(ALLOWED_MAINTENANCE.for),
    until: anyTime.optional().describe(ALLOWED_MAINTENANCE.until),
  });
