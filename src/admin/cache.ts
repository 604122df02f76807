/** Shows operators the cache: counts, costliest keys, advice, the last hour; and the processes that serve. */
import type { Usage } from '../cache/entry.ts';
import type { Tagged } from '../cache/purge-log.ts';
import type { CacheClass } from '../cache/ttl-policy.ts';
import { adviceOf } from '../operations/advice.ts';
import { ALIVE_FOR_MS, type Instances } from '../redis/instances.ts';
import { type AnswerOf, iso, isoOrNull, ROUTES } from '../operations/api.ts';
import type { RedisMemory } from '../redis/memory.ts';
import { type AdminCache, type AdminOptions, endpoint, type Endpoint } from './endpoint.ts';
import { readQuery } from './input.ts';
import { HISTORY } from '../operations/stats/stats.ts';
import type { Whose } from '../operations/stats/time-buckets.ts';

export function cacheViewEndpoints(options: AdminOptions): readonly Endpoint[] {
  const { operations, cache, status, settings, clock } = options;
  const { instances } = status;
  const { stats } = operations;
  const { memory, whatIf } = cache;
  return [
    endpoint(ROUTES.cacheStats, async () => {
      const { whose, since, value } = await stats.classes();
      const classes = value.map((counts) => ({ ...counts, memory: usageOf(counts.class, memory) }));
      const inRedis = (await status.redis?.memory()) ?? [];
      return {
        ...countedOf(whose, instances),
        since,
        memory: { ...memory.usage(), maxBytes: memory.maxBytes },
        redis: oncePerServer(inRedis),
        unstable: [...cache.changes.unstable()],
        classes,
      };
    }),
    endpoint(ROUTES.cacheTop, async (ctx) => {
      const { limit } = readQuery(ctx, ROUTES.cacheTop.query);
      const { whose, since, value } = await stats.top(limit);
      return { ...countedOf(whose, instances), since, ...value };
    }),
    endpoint(ROUTES.advice, async (ctx) => {
      const { budget = null, force, ...freshMs } = readQuery(ctx, ROUTES.advice.query);
      const reports = await whatIf.reports();
      const refreshes = settings.areChangesAnnounced ? (await stats.classes()).value : null;
      const nowMs = clock.nowMs();
      const processes = reports.filter(({ hasEnded }) => !hasEnded).length;
      return {
        at: iso(nowMs),
        processes,
        ...adviceOf(reports, { ttl: cache.ttl, ...settings, nowMs, freshMs, budgetRps: budget, force, refreshes }),
      };
    }),
    endpoint(ROUTES.history, async (ctx) => {
      const { span } = readQuery(ctx, ROUTES.history.query);
      const { whose, ...history } = await stats.history(span);
      return { ...countedOf(whose, instances), stepMs: HISTORY[span].stepMs, ...history };
    }),
    endpoint(ROUTES.fleet, () => fleetView(options)),
  ];
}

/** One Redis with both roles is one row. */
function oncePerServer(all: readonly RedisMemory[]) {
  return all.flatMap(({ runIds, role, ...used }, index) => {
    const isSame = (other: RedisMemory): boolean => other.runIds.some((id) => id !== null && runIds.includes(id));
    if (all.slice(0, index).some(isSame)) return [];
    return [{ role: all.filter(isSame).length > 1 ? 'state and cache' : role, ...used }];
  });
}

/** For an answer: whose counts it holds. While the fleet's can be read, the others may be unable to write to them. */
export function countedOf(whose: Whose, instances: Instances) {
  const silence = instances.problem();
  if (whose === 'fleet') {
    const problem = silence && `${silence}; what the other processes have counted since is left out`;
    return { scope: 'fleet', processes: instances.peers().length, problem } as const;
  }
  if (whose === 'process') return { scope: 'process', processes: 1, problem: null } as const;
  const all = instances.count();
  const others = all > whose.cutOff ? `the others are left out, of ${all} known` : 'no other process is known';
  const problem = `${silence ?? 'Redis does not answer'}; ${others}`;
  return { scope: 'process', processes: whose.cutOff, problem } as const;
}

/** The entries of a class in the memory tier. Looks at every entry. */
function usageOf(cacheClass: CacheClass, memory: AdminCache['memory']): Usage {
  // A negative entry also has the tag of the resource's class, and counts as `notFound` only.
  const isOfClass = ({ tags }: Tagged): boolean =>
    tags.includes(`class:${cacheClass}`) && (cacheClass === 'notFound' || !tags.includes('class:notFound'));
  const { entries, bytes } = memory.measure(isOfClass);
  return { entries, bytes };
}

/** A process that is silent for longer than several heartbeats is left out. */
function fleetView({ status: { instances }, changes }: AdminOptions): AnswerOf<typeof ROUTES.fleet> {
  const silence = instances.problem();
  const { lastAtMs, inLastHour } = changes.recentChanges.rate();
  const heard = instances.list().filter(({ heardMsAgo }) => heardMsAgo <= ALIVE_FOR_MS);
  return {
    problem: silence && `${silence}, so nothing is heard of other processes (${instances.count()} known in all)`,
    changes: { last: isoOrNull(lastAtMs), inLastHour },
    members: heard.map(({ id, host, pid, version, startedAtMs, status, heardMsAgo, clockAheadMs }) => {
      const startedAt = iso(startedAtMs);
      return { id, host, pid, version, startedAt, status, heardMsAgo, clockAheadMs, self: id === instances.id };
    }),
  };
}
