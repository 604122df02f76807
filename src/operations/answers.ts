/** The answers of the admin listener. Times are ISO 8601 in UTC, with milliseconds. */
import { z } from 'zod';
import { classAdviceSchema, loadSchema } from './advice.ts';
import { KEY_STATUSES } from '../keys/key.ts';

/** Nothing of an answer is changed by who reads it. */
export type ReadonlyDeep<T> = T extends readonly (infer E)[]
  ? readonly ReadonlyDeep<E>[]
  : T extends object
    ? { readonly [K in keyof T]: ReadonlyDeep<T[K]> }
    : T;
type View<S extends z.ZodType> = ReadonlyDeep<z.output<S>>;

const text = z.string();
const number = z.number();
const textOrNull = text.nullable();

/** Every refusal and failure. */
export const errorSchema = z.object({ error: z.object({ message: text }) }).meta({ id: 'Error' });

const dependencySchema = z.object({
  name: text,
  /** By the outcome of real calls; `unknown` before the first. */
  status: z.enum(['ok', 'degraded', 'unknown']),
  since: text,
  /** For an operator. Holds no secret: probes need no token. */
  detail: text,
});
export const readinessSchema = z.object({
  status: z.enum(['ready', 'starting', 'draining']),
  dependencies: z.array(dependencySchema),
});

/** More about the dependencies in /readyz, of the process that answers. */
export const healthSchema = z.object({
  /** Those that are degraded. `critical`: most consumers get no answers. `deadline`: when it is over, or becomes worse. */
  troubles: z.array(z.object({ name: text, severity: z.enum(['warning', 'critical']), deadline: textOrNull })),
  /** The last changes of state, the newest first. */
  changes: z.array(z.object({ at: text, name: text, from: text, to: text, detail: text })),
  /** Calls to the store: how many may be under way, are, and wait. */
  storeCalls: z.object({
    limit: number,
    underWay: number,
    waiting: number,
    /** How much the store bears; null until it has shown that. */
    capacity: textOrNull,
  }),
});

/** One change that was made. Never holds a token or a key's hash. */
export const auditEntrySchema = z.object({
  at: text,
  /** The name of the token that made the change; `anonymous` if the listener has no tokens. */
  who: text,
  /** The kind of change: `key.create`, `key.revoke`, ... */
  action: text,
  /** The subject of the change: the id of a key, for instance. */
  target: text,
  /** The changed members as they were; null if there was nothing before. */
  from: z.unknown(),
  /** The changed members as they are now; null if nothing is left. */
  to: z.unknown(),
});
/** As it is kept. By its id an entry that is there twice is known; entries of earlier releases have none. */
export const keptEntrySchema = auditEntrySchema.extend({ id: text.optional() });
export type KeptEntry = z.output<typeof keptEntrySchema>;
export const auditSchema = z.object({
  /** Why entries are left out; null if none is. */
  problem: textOrNull,
  entries: z.array(auditEntrySchema),
});

/** A key with everything but its hash. A newer gateway may know more scopes. */
const keySchema = z
  .object({
    keyId: text,
    name: text,
    status: z.enum(KEY_STATUSES),
    workspaceIds: z.array(text),
    scopes: z.array(text),
    createdAt: text,
    expiresAt: textOrNull,
    limits: z.object({ perMinute: number.nullable(), perHour: number.nullable() }),
    /** The subnets that the key may be used from; null for any address. */
    from: z.array(text).nullable(),
    quotaId: text,
    lastUsedAt: textOrNull,
  })
  .meta({ id: 'Key' });
export type KeyView = View<typeof keySchema>;

/** `warning`: what an operator has to know of the change, and to do; null if nothing. */
export const oneKeySchema = z.object({ key: keySchema, warning: textOrNull });
export type ChangedKeyView = View<typeof oneKeySchema>;

/** Whose counts an answer holds: of all processes in front of the store, or only of the one that answers. */
const counted = {
  scope: z.enum(['fleet', 'process']),
  processes: number,
  /** Why the other processes are left out; null if none is. */
  problem: textOrNull,
};
/** The same with the time from which on it counts, at most an hour ago. */
const countedSince = z.object({ ...counted, since: text });
export type Counted = View<typeof countedSince>;

/** Requests of one key in the last hour, whatever the answer; `refused`: those with 429. */
const keyUse = { requests: number, refused: number };
export const shownKeySchema = z.object({ key: keySchema, lastHour: countedSince.extend(keyUse) });
/** Keys that sent requests in the last hour. */
export const keyUseSchema = countedSince.extend({ keys: z.array(z.object({ keyId: text, ...keyUse })) });
export const keyPageSchema = z.object({ keys: z.array(keySchema), nextCursor: textOrNull });
/** The token is shown only this once. */
export const issuedKeySchema = z.object({ key: keySchema, token: text });
export type IssuedKeyView = View<typeof issuedKeySchema>;

/** `leftOut`: a revoked key, which stays revoked; what has ended since; what is older than all that the audit keeps. */
export const importSchema = z.object({ added: number, replaced: number, unchanged: number, leftOut: number });
export type ImportedCount = z.output<typeof importSchema>;
export const stateCountsSchema = z.object({
  keys: importSchema,
  times: importSchema,
  maintenance: importSchema,
  audit: importSchema,
});
export type StateCounts = View<typeof stateCountsSchema>;

const eachTtl = <T extends z.ZodType>(value: T) => z.object({ fresh: value, stale: value, error: value });

/** The TTLs of a class in force, each as text and in milliseconds; where each comes from; its end, and what follows. */
export const ttlSchema = z
  .object({
    class: text,
    ...eachTtl(text).shape,
    freshMs: number,
    staleMs: number,
    errorMs: number,
    source: eachTtl(text),
    until: eachTtl(textOrNull),
    afterwards: eachTtl(textOrNull),
    setBy: textOrNull,
    setAt: textOrNull,
  })
  .meta({ id: 'Ttl' });
export type TtlView = View<typeof ttlSchema>;

/** `complete` is false if a tier could not be counted in time. `entries` include those of `lists`. */
export const purgeSchema = z.object({
  entries: number,
  bytes: number,
  complete: z.boolean(),
  /** Lists that purged evaluations take along: those of all workspaces if no copy shows the owner. Null if they take none. */
  lists: z.object({ entries: number, workspaces: number, ownerKnown: z.boolean() }).nullable(),
  tags: z.array(text),
  mode: z.enum(['soft', 'hard']),
  exact: z.boolean(),
  dryRun: z.boolean(),
  /** Whether the bytes are deleted already; false: they are being deleted. Null if the purge deletes none. */
  deleted: z.boolean().nullable(),
  /** The refusal of Redis, because of which nothing was counted or deleted there; null if there was none. */
  problem: textOrNull,
  /** The number of the purge among all, or of the last one. */
  purge: number,
});
export type PurgeView = View<typeof purgeSchema>;

/** How far the bytes of purged copies are deleted: those of purges up to `deletedUpTo`, of `purges` in all. */
export const deletionSchema = z.object({
  purges: number,
  deletedUpTo: number,
  /** Names of Redis that the pass under way has looked at, of how many; 0 if none is under way. */
  passed: number,
  of: number,
});
export type DeletionView = View<typeof deletionSchema>;

/** Without content. `erased` only if nothing is left anywhere and all could be asked. */
export const receiptSchema = z.object({
  erased: z.boolean(),
  /** Somebody has read it since, and the store still has it. */
  refetched: z.boolean(),
  unknownGone: z.array(z.string()),
  /**
   * `complete`: Redis was looked through to its end after all processes had answered. `problem`: what it refused; null if nothing.
   */
  redis: z.object({ deleted: number, complete: z.boolean(), problem: textOrNull }),
  /** Lists that held it, or may have. */
  lists: number,
  /** `dropped`: copies in its memory; null if it did not say. A process that vanished without a goodbye is not reached. */
  processes: z.array(z.object({ id: text, reached: z.boolean(), dropped: number.nullable() })),
  at: text,
});
export type ReceiptView = View<typeof receiptSchema>;

export const maintenanceSchema = z
  .object({ active: z.boolean(), until: textOrNull, leftMs: number, by: textOrNull, since: textOrNull })
  .meta({ id: 'Maintenance' });
export type MaintenanceView = View<typeof maintenanceSchema>;

const usageSchema = z.object({ entries: number, bytes: number });
/** Milliseconds; null if nothing was read. */
const percentilesSchema = z.object({ p50: number, p90: number, p99: number }).nullable();
/** Counts of the last hour. `memory` is always that of the process that answers. */
export const cacheStatsSchema = z.object({
  ...countedSince.shape,
  memory: usageSchema.extend({ maxBytes: number }),
  /** The memory of Redis, by what it is used for; no limit is 0, what it does not say null. Empty while it does not answer. */
  redis: z.array(z.object({ role: text, usedBytes: number, maxBytes: number.nullable(), keys: number })),
  /** Calls that differ in each of their last answers to the process that answers, by id: their parts go by their times. */
  unstable: z.array(text),
  classes: z.array(
    z.object({
      class: text,
      reads: number,
      outcomes: z.object({
        hit: number,
        'stale-while-revalidate': number,
        'stale-if-error': number,
        changed: number,
        collapsed: number,
        miss: number,
        failed: number,
      }),
      tiers: z.object({ memory: number, redis: number }),
      misses: z.record(text, number),
      /** Reads that were served without waiting for the store, of all reads; null without reads. */
      hitRatio: number.nullable(),
      storeCalls: number,
      /** How many of these renewed an often-read copy before it was stale. */
      earlyRenewals: number,
      storeCallsPerRead: number.nullable(),
      /** Copies that were compared with a newer answer; the share of them that had changed, and without an announcement. */
      refreshes: number,
      changedRatio: number.nullable(),
      unannouncedRatio: number.nullable(),
      ageMs: percentilesSchema,
      latencyMs: percentilesSchema,
      memory: usageSchema,
    }),
  ),
});

const load = { storeCalls: number, storeMs: number };
/** The costliest of the last hour first. A route or API key is null if no request is known; a workspace if it had several. */
export const topSchema = z.object({
  ...countedSince.shape,
  keys: z.array(z.object({ key: text, class: text, ...load })),
  routes: z.array(z.object({ route: textOrNull, ...load })),
  apiKeys: z.array(z.object({ keyId: textOrNull, ...load })),
  workspaces: z.array(z.object({ workspaceId: textOrNull, ...load })),
  /**
   * The share of misses whose copy was evicted, and how many calls a second the store would have got less if each process had
   * so much more memory; estimated from one record in eight, of which so many were `seen`.
   */
  moreMemory: z.object({
    evictedRatio: number.nullable(),
    savings: z.array(z.object({ bytes: number, storeRps: number, seen: number })),
  }),
});

const copySchema = z
  .object({
    state: text,
    answer: z.enum(['found', 'absent']),
    owner: text,
    ageMs: number.nullable(),
    ttlMs: number,
    filledAt: text,
    fetchedAt: text,
    freshUntil: textOrNull,
    staleUntil: textOrNull,
    errorUntil: textOrNull,
    jitterMs: number,
    softPurged: z.boolean(),
    /** Who has said that the record has changed since: the store, or another answer of it; null if it has not. */
    changed: z.enum(['announced', 'shown']).nullable(),
    tags: z.array(text),
    bytes: number,
  })
  .meta({ id: 'CachedCopy' });
export type CopyView = View<typeof copySchema>;

export const explanationSchema = z.object({
  path: text,
  route: text,
  workspaces: z.array(text).nullable(),
  at: text,
  key: text,
  owners: z.array(text),
  class: text,
  next: z.object({ text, from: textOrNull, store: text, miss: textOrNull }),
  memory: copySchema.nullable(),
  redis: z.object({ state: text, entry: copySchema.extend({ keptForMs: number.nullable() }).nullable() }),
  flight: z.object({ since: textOrNull, leaseLeftMs: number.nullable(), justFailed: z.boolean() }),
  lastMiss: z.object({ reason: text, at: text }).nullable(),
  evicted: z.boolean(),
  times: ttlSchema,
  maintenance: z.object({ until: text, by: text }).nullable(),
});
export type ExplanationView = View<typeof explanationSchema>;

export const adviceSchema = z.object({
  at: text,
  processes: number,
  /** All classes together. */
  load: loadSchema,
  classes: z.array(classAdviceSchema),
});

const activitySchema = z.object({ reads: number, hits: number, storeCalls: number, failed: number });
/** The last hour or day in steps, oldest first; the last step is under way. */
export const historySchema = z.object({
  ...countedSince.shape,
  stepMs: number,
  points: z.array(
    z.object({
      at: text,
      p50Ms: number.nullable(),
      p99Ms: number.nullable(),
      /** Nine of ten answers were at most so old. */
      ageP90Ms: number.nullable(),
      /** Reads that got a copy past its fresh time, and those of them that got it because the store failed. */
      stale: number,
      staleOnError: number,
      /** Records in lists of the store, and how many of them are left out of answers. */
      records: z.object({ listed: number, leftOut: number }),
      /** Requests by the status of the answer. */
      statuses: z.record(text, number),
      classes: z.record(text, activitySchema),
    }),
  ),
  /** Records that are left out of lists, the most frequent first: the id, if it has a valid one, and the faulty member. */
  leftOut: z.array(z.object({ id: textOrNull, path: text, times: number })),
});

/** The processes that were heard of within ten seconds. */
export const announcedSchema = z.object({
  changes: number,
  repeated: z.boolean(),
  reached: number,
  processes: number,
});

export const changesSchema = z.object({
  changes: z.array(
    z.object({
      at: text,
      announced: z.boolean(),
      mode: text,
      record: text,
      workspace: text,
      kinds: z.array(text),
      created: z.boolean(),
      deleted: z.boolean(),
      previousWorkspace: text.nullable(),
    }),
  ),
  cursor: text,
  hasMore: z.boolean(),
  missing: z.boolean(),
});

export const fleetSchema = z.object({
  problem: counted.problem,
  changes: z.object({ last: text.nullable(), inLastHour: number }),
  members: z.array(
    z.object({
      id: text,
      host: text,
      pid: number,
      version: text,
      startedAt: text,
      status: text,
      heardMsAgo: number,
      clockAheadMs: number,
      self: z.boolean(),
    }),
  ),
});
