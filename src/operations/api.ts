/**
 * The admin listener's interface, each endpoint declared once: the router, the command line, the OpenAPI document, the
 * reference and the dashboard's list are made from these declarations. Times are ISO 8601 in UTC, with milliseconds.
 */
import { z } from 'zod';
import { type Role, ROLES } from '../config/admin-tokens.ts';
import { keyMembers } from '../keys/key.ts';
import {
  type ReadonlyDeep,
  adviceSchema,
  announcedSchema,
  auditSchema,
  cacheStatsSchema,
  changesSchema,
  deletionSchema,
  explanationSchema,
  fleetSchema,
  healthSchema,
  historySchema,
  importSchema,
  issuedKeySchema,
  keyPageSchema,
  keyUseSchema,
  maintenanceSchema,
  oneKeySchema,
  purgeSchema,
  readinessSchema,
  receiptSchema,
  shownKeySchema,
  stateCountsSchema,
  topSchema,
  ttlSchema,
} from './answers.ts';
import { announcementBody } from '../changes/announcement.ts';
import {
  eraseBody,
  importBody,
  keyEditBody,
  maintenanceBody,
  newKeyBody,
  purgeBody,
  rotateBody,
  stateBody,
  ttlBody,
} from './bodies.ts';
import { freshTime, limit, placeInJournal, placeInList } from './queries.ts';

export interface AdminRoute {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** With `{name}` for a parameter. */
  readonly path: string;
  /** The roles of tokens that may call it; null if it needs no token. */
  readonly roles: readonly Role[] | null;
  readonly summary: string;
  /** Its members are texts; one that may be repeated is an array. The descriptions say what they may hold. */
  readonly query?: z.ZodObject;
  readonly body?: (nowMs: number | null) => z.ZodType;
  /** 200 by default. */
  readonly status?: 200 | 201;
  /** Null if the answer is a text or a file, of that media type. */
  readonly answer: z.ZodType | null;
  readonly mediaType?: string;
}

export type AnswerOf<R extends AdminRoute> = ReadonlyDeep<z.output<NonNullable<R['answer']>>>;

const text = z.string();
/** One JSON document per line, in UTF-8. */
export const JSON_LINES = 'application/x-ndjson';

const READERS: readonly Role[] = ['viewer', 'operator', 'admin'];
const OPERATORS: readonly Role[] = ['operator', 'admin'];
const KEY_READERS: readonly Role[] = ['viewer', 'operator', 'keys', 'admin'];
const ANNOUNCERS: readonly Role[] = ['changes', 'admin'];
/** Everybody but the store, which only announces. */
const PEOPLE: readonly Role[] = KEY_READERS;
const KEY_CHANGERS: readonly Role[] = ['keys', 'admin'];

export function iso(timeMs: number): string {
  return new Date(timeMs).toISOString();
}

export function isoOrNull(timeMs: number | null): string | null {
  return timeMs === null ? null : iso(timeMs);
}

const TTL_PATH = '/api/cache/ttl';
const MAINTENANCE_PATH = '/api/cache/maintenance';
const KEY_PATH = '/api/keys/{keyId}';

/** For whoever looks whether the process lives: without a token, under any `Host` or none, in HTTP/1.0 too, by OPTIONS too. */
export const PROBES = {
  livez: {
    method: 'GET',
    path: '/livez',
    roles: null,
    summary: '200 while the process runs; answers anyone, under any Host or none, and OPTIONS as GET',
    answer: z.object({ status: text }),
  },
  readyz: {
    method: 'GET',
    path: '/readyz',
    roles: null,
    summary:
      'whether requests can be served, and how each dependency is doing; 503 while starting or draining; answers anyone, as /livez does',
    answer: readinessSchema,
  },
} as const satisfies Readonly<Record<string, AdminRoute>>;

/** In the order of the lists that are made from them. The names are the operations' ids. */
export const ROUTES = {
  metrics: {
    method: 'GET',
    path: '/metrics',
    roles: READERS,
    summary: 'metrics in the Prometheus text format',
    answer: null,
    mediaType: 'text/plain',
  },
  openApi: {
    method: 'GET',
    path: '/openapi.json',
    roles: PEOPLE,
    summary: 'this interface as an OpenAPI 3.1 document',
    answer: z.record(text, z.unknown()),
  },
  whoAmI: {
    method: 'GET',
    path: '/api/whoami',
    roles: PEOPLE,
    summary: 'the name under which the audit records your changes, and the role of your token',
    answer: z.object({ who: text, role: z.enum(ROLES) }),
  },
  config: {
    method: 'GET',
    path: '/api/config',
    roles: READERS,
    summary: 'the effective configuration, secrets left out',
    answer: z.object({ file: text, settings: z.record(text, z.unknown()) }),
  },
  audit: {
    method: 'GET',
    path: '/api/audit',
    roles: READERS,
    summary: 'changes with person, time, old and new value; newest first',
    answer: auditSchema,
  },
  listKeys: {
    method: 'GET',
    path: '/api/keys',
    roles: KEY_READERS,
    summary: 'the API keys that were issued, in pages, without their secrets',
    query: z.strictObject({
      limit: limit(1000, 100),
      cursor: placeInList.optional().describe('the nextCursor of the page before'),
    }),
    answer: keyPageSchema,
  },
  createKey: {
    method: 'POST',
    path: '/api/keys',
    roles: KEY_CHANGERS,
    summary: 'issue a key; the answer shows it this once',
    body: newKeyBody,
    status: 201,
    answer: issuedKeySchema,
  },
  importKeys: {
    method: 'POST',
    path: '/api/keys/import',
    roles: KEY_CHANGERS,
    summary: 'take over keys that are hashed already, all or none; with dryRun it only counts',
    body: importBody,
    answer: importSchema,
  },
  showKey: {
    method: 'GET',
    path: KEY_PATH,
    roles: KEY_READERS,
    summary: 'one key, and its requests of the last hour',
    answer: shownKeySchema,
  },
  keyUse: {
    method: 'GET',
    path: '/api/key-use',
    roles: KEY_READERS,
    summary: 'requests and 429s of each key in the last hour, of all processes',
    answer: keyUseSchema,
  },
  editKey: {
    method: 'PATCH',
    path: KEY_PATH,
    roles: KEY_CHANGERS,
    summary: 'change a key: its name, status, workspaces, scopes, limits, expiry or addresses',
    body: keyEditBody,
    answer: oneKeySchema,
  },
  revokeKey: {
    method: 'DELETE',
    path: KEY_PATH,
    roles: KEY_CHANGERS,
    summary: 'revoke a key for good; its record stays',
    answer: oneKeySchema,
  },
  rotateKey: {
    method: 'POST',
    path: `${KEY_PATH}/rotate`,
    roles: KEY_CHANGERS,
    summary: 'issue a successor with the same rights and quota; the old key ends after the overlap',
    body: rotateBody,
    status: 201,
    answer: issuedKeySchema,
  },
  exportKeys: {
    method: 'GET',
    path: '/api/key-export',
    roles: KEY_CHANGERS,
    summary: 'all keys with their hashes, as JSON lines, which an import takes',
    answer: null,
    mediaType: JSON_LINES,
  },
  acknowledgeLoss: {
    method: 'DELETE',
    path: '/api/key-loss',
    roles: KEY_CHANGERS,
    summary: 'acknowledge that Redis lost keys: it is no trouble any more',
    answer: z.object({ lostAt: text.nullable(), keys: z.number() }),
  },
  cacheStats: {
    method: 'GET',
    path: '/api/cache',
    roles: READERS,
    summary:
      'one row per class: reads by outcome, misses by reason, store calls, ages and latencies of all processes in the last hour; and what the memory of this one holds',
    answer: cacheStatsSchema,
  },
  cacheTop: {
    method: 'GET',
    path: '/api/cache/top',
    roles: READERS,
    summary:
      'the records, routes, API keys and workspaces for which all processes made the store work most in the last hour',
    query: z.strictObject({ limit: limit(100, 20) }),
    answer: topSchema,
  },
  explain: {
    method: 'GET',
    path: '/api/cache/explain',
    roles: READERS,
    summary: 'which entry answers the public path in the query parameter path, and what its next read would do',
    query: z.strictObject({
      path: text
        .startsWith('/')
        .describe('a path of the public API with its query, URL-encoded, such as %2Fv2%2Fcalls%3Fpage%3D2'),
      keyId: text.optional().describe('the id of a key: what it sees is explained'),
      workspace: keyMembers.workspaceIds
        .optional()
        .describe('a UUID, up to 50 times: what a key of these workspaces sees is explained'),
    }),
    answer: explanationSchema,
  },
  listTtls: {
    method: 'GET',
    path: TTL_PATH,
    roles: READERS,
    summary: 'the TTLs in force of each class of answers, where each comes from, and until when',
    answer: z.object({ classes: z.array(ttlSchema) }),
  },
  setTtl: {
    method: 'PUT',
    path: `${TTL_PATH}/{class}`,
    roles: OPERATORS,
    summary: 'set TTLs of a class, with `for` only for a while; they rule at once, for stored answers too',
    body: ttlBody,
    answer: ttlSchema,
  },
  resetTtl: {
    method: 'DELETE',
    path: `${TTL_PATH}/{class}`,
    roles: OPERATORS,
    summary: 'let the TTLs of a class be those of the configuration again',
    answer: ttlSchema,
  },
  purge: {
    method: 'POST',
    path: '/api/cache/purge',
    roles: OPERATORS,
    summary: 'purge cached answers by tag, at once or softly; with dryRun it only counts what would be purged',
    body: purgeBody,
    answer: purgeSchema,
  },
  showDeletion: {
    method: 'GET',
    path: '/api/cache/purge',
    roles: READERS,
    summary: 'how far the bytes of what hard purges have ended are deleted from Redis',
    answer: deletionSchema,
  },
  erase: {
    method: 'POST',
    path: '/api/cache/erase',
    roles: OPERATORS,
    summary: 'delete all copies of an evaluation or a workspace in every process and in Redis, and prove it',
    body: eraseBody,
    answer: receiptSchema,
  },
  announceChanges: {
    method: 'POST',
    path: '/api/changes',
    roles: ANNOUNCERS,
    summary:
      'announce records that have changed in the store: they are renewed before they are next served; takes signed calls (Standard Webhooks) without a token',
    body: announcementBody,
    answer: announcedSchema,
  },
  listChanges: {
    method: 'GET',
    path: '/api/changes',
    roles: READERS,
    summary: 'the changes that were announced, or found, since a place; the last 1000 announcements',
    query: z.strictObject({
      after: placeInJournal.optional().describe('the cursor of the answer before; without it, the place of now'),
      limit: limit(1000, 100),
    }),
    answer: changesSchema,
  },
  exportState: {
    method: 'GET',
    path: '/api/state',
    roles: ['admin'],
    summary:
      'keys with their hashes, times set by operators, maintenance and the audit, as JSON lines, which an import takes; the last line is {"kind":"end"}',
    answer: null,
    mediaType: JSON_LINES,
  },
  importState: {
    method: 'POST',
    path: '/api/state/import',
    roles: ['admin'],
    summary: 'add the records of an export to what is there, all or none; with dryRun it only counts',
    body: stateBody,
    answer: stateCountsSchema,
  },
  showMaintenance: {
    method: 'GET',
    path: MAINTENANCE_PATH,
    roles: READERS,
    summary: 'whether maintenance keeps calls from the store, until when, and who began it',
    answer: maintenanceSchema,
  },
  beginMaintenance: {
    method: 'PUT',
    path: MAINTENANCE_PATH,
    roles: OPERATORS,
    summary:
      'keep every call from the store for a while, a day at most: copies are served, reads without one fail; it ends by itself',
    body: maintenanceBody,
    answer: maintenanceSchema,
  },
  endMaintenance: {
    method: 'DELETE',
    path: MAINTENANCE_PATH,
    roles: OPERATORS,
    summary: 'end maintenance: the store is called again',
    answer: maintenanceSchema,
  },
  advice: {
    method: 'GET',
    path: '/api/cache/advice',
    roles: READERS,
    summary: 'for each class what other times would do to hit ratio, store load and staleness, and which one to set',
    query: z.strictObject({
      budget: text
        .regex(/^[0-9]{1,6}(?:\.[0-9]{1,3})?$/)
        .transform(Number)
        .optional()
        .describe('the calls a second that the store may be asked for, such as 10'),
      force: text
        .regex(/^(?:true|false)$/)
        .prefault('false')
        .transform((given) => given === 'true')
        .describe('true: also recommend times that make the store work harder than it may, with a warning'),
      list: freshTime,
      evaluation: freshTime,
    }),
    answer: adviceSchema,
  },
  history: {
    method: 'GET',
    path: '/api/cache/history',
    roles: READERS,
    summary:
      'the last hour, or day, of all processes: requests by status, read times, and reads, hits, store calls and failures by class',
    query: z.strictObject({
      span: z
        .enum(['hour', 'day'])
        .prefault('hour')
        .describe('hour (in steps of 30 s; the default) or day (of 10 min)'),
    }),
    answer: historySchema,
  },
  health: {
    method: 'GET',
    path: '/api/health',
    roles: READERS,
    summary:
      'how severe the troubles in /readyz are, until when, the last 20 changes of state, and the calls to the store, of the process that answers',
    answer: healthSchema,
  },
  fleet: {
    method: 'GET',
    path: '/api/fleet',
    roles: READERS,
    summary: 'the processes that serve together, the status of each, and when it was last seen',
    answer: fleetSchema,
  },
} as const satisfies Readonly<Record<string, AdminRoute>>;
