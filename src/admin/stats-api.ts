/** The answers of the admin interface that hold counts: of the last hour, and of whom they are. */
import { z } from 'zod';
import { keyViewSchema } from './api.ts';

const string = z.string();
const count = z.number();

/** Whose counts an answer holds: of all processes in front of the store, or only of the one that answers. */
const counted = {
  scope: z.enum(['fleet', 'process']),
  processes: count,
  /** Why the other processes are left out; null if none is. */
  problem: string.nullable(),
};
/** The same with the time from which on it counts, at most an hour ago. */
const countedSince = z.object({ ...counted, since: string });
export type Counted = z.output<typeof countedSince>;

/** What became of the requests of one key in the last hour, whatever the answer; `refused`: those with 429. */
const keyUse = z.object({ requests: count, refused: count });

/** The answer of `GET /api/key-use`: keys that sent requests in the last hour. */
export const keyUseSchema = countedSince.extend({ keys: z.array(keyUse.extend({ keyId: string })) });
export type KeyUseView = z.output<typeof keyUseSchema>;

/** The answer of `GET /api/keys/{keyId}`. */
export const shownKeySchema = z.object({
  key: keyViewSchema,
  lastHour: countedSince.extend(keyUse.shape),
});
export type ShownKeyView = z.output<typeof shownKeySchema>;

const usage = z.object({ entries: count, bytes: count });
const percentiles = z.object({ p50: count, p90: count, p99: count }).nullable();

/** The answer of `GET /api/cache`: counts of the last hour. `memory` is always that of the process that answers. */
export const cacheStatsSchema = z.object({
  ...countedSince.shape,
  memory: usage.extend({ maxBytes: count }),
  classes: z.array(
    z.object({
      class: string,
      reads: count,
      outcomes: z.object({
        hit: count,
        'stale-while-revalidate': count,
        'stale-if-error': count,
        collapsed: count,
        miss: count,
        failed: count,
      }),
      tiers: z.object({ memory: count, redis: count }),
      misses: z.record(z.string(), count),
      /** Reads that were served without waiting for the store, of all reads; null without reads. */
      hitRatio: count.nullable(),
      storeCalls: count,
      storeCallsPerRead: count.nullable(),
      ageMs: percentiles,
      latencyMs: percentiles,
      memory: usage,
    }),
  ),
});
export type CacheStatsView = z.output<typeof cacheStatsSchema>;

const load = { storeCalls: count, storeMs: count };

/** The answer of `GET /api/cache/top`: the costliest of the last hour first. A route is null if no request is known. */
export const topSchema = z.object({
  ...countedSince.shape,
  keys: z.array(z.object({ key: string, class: string, ...load })),
  routes: z.array(z.object({ route: string.nullable(), ...load })),
});
export type TopAnswer = z.output<typeof topSchema>;

/** The answer of `GET /api/cache/history`: the last hour in steps, oldest first; the last step is under way. */
export const historySchema = z.object({
  ...counted,
  stepMs: count,
  points: z.array(
    z.object({
      at: string,
      p99Ms: count.nullable(),
      staleOnError: count,
      /** Requests by the status of the answer. */
      statuses: z.record(string, count),
      classes: z.record(string, z.object({ reads: count, hits: count, storeCalls: count, failed: count })),
    }),
  ),
});
export type HistoryAnswer = z.output<typeof historySchema>;

/** The answer of `GET /api/fleet`: the processes that were heard of within ten seconds. */
export const fleetSchema = z.object({
  problem: counted.problem,
  members: z.array(
    z.object({
      id: string,
      host: string,
      pid: z.int(),
      version: string,
      startedAt: string,
      status: string,
      heardMsAgo: count,
      self: z.boolean(),
    }),
  ),
});
export type FleetView = z.output<typeof fleetSchema>;
