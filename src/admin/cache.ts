/** Shows operators the cache: counts, costliest keys, advice, the last hour; and the processes that serve. */
import type { Tagged, Usage } from '../cache/entry.ts';
import type { MemoryTier } from '../cache/memory-tier.ts';
import type { PurgeLog } from '../cache/purge-log.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../cache/ttl-policy.ts';
import { adviceOf } from '../cache/what-if/advice.ts';
import type { WhatIf } from '../cache/what-if/what-if.ts';
import type { Clock } from '../clock.ts';
import type { Instances } from '../redis/instances.ts';
import { type AnswerOf, iso, ROUTES } from './api.ts';
import { endpoint, type Endpoint } from './endpoint.ts';
import { limitOf, queryOf } from './input.ts';
import type { CacheStats } from './stats/cache-stats.ts';
import { type History, type HistoryPoint, STEP_MS } from './stats/history.ts';
import type { Load } from './stats/top-loads.ts';

export interface CacheViewOptions {
  readonly stats: CacheStats;
  readonly history: Pick<History, 'view'>;
  readonly memory: MemoryTier;
  /** The most that the memory tier may hold. */
  readonly maxBytes: number;
  readonly purges: PurgeLog;
  readonly whatIf: Pick<WhatIf, 'reports'>;
  readonly times: Pick<TtlPolicy, 'of'>;
  /** The share of outdated answers that is acceptable; it may change while the gateway runs. */
  readonly outdatedLimits: () => Readonly<Record<CacheClass, number>>;
  readonly members: Pick<Instances, 'id' | 'list'>;
  readonly clock: Clock;
}

/** What the cache has done and holds, what recent traffic advises, and the processes that serve it. */
export function cacheViewEndpoints(options: CacheViewOptions): readonly Endpoint[] {
  const { stats, history, members } = options;
  return [
    endpoint(ROUTES.cacheStats, () => statsView(options)),
    endpoint(ROUTES.cacheTop, (ctx) => {
      const limit = limitOf(queryOf(ctx, ROUTES.cacheTop)('limit')[0], 100, 20);
      const { sinceMs, keys, routes } = stats.top.view(limit);
      return { since: iso(sinceMs), scope: 'process', keys: keys.map(rounded), routes: routes.map(rounded) };
    }),
    endpoint(ROUTES.advice, () => adviceView(options)),
    endpoint(ROUTES.history, async () => {
      const { scope, points } = await history.view();
      return { scope, stepMs: STEP_MS, points: points.map(historyPointView) };
    }),
    endpoint(ROUTES.fleet, () => ({ members: members.list().map((member) => memberView(member, members.id)) })),
    endpoint(ROUTES.pulse, () => {
      const points = stats.pulse().map(({ atMs, ...point }) => ({ at: iso(atMs), ...point }));
      // The id tells the instances apart for callers that reach one after the other.
      return { process: members.id, stepMs: STEP_MS, points };
    }),
  ];
}

function rounded<T extends Load>(load: T): T {
  return { ...load, storeMs: Math.round(load.storeMs) };
}

function statsView({ stats, memory, maxBytes, purges }: CacheViewOptions): AnswerOf<typeof ROUTES.cacheStats> {
  const classes = CACHE_CLASSES.map((cacheClass) => {
    const counts = stats.of(cacheClass);
    const reads = Object.values(counts.outcomes).reduce((sum, count) => sum + count, 0);
    return { class: cacheClass, reads, ...counts, memory: usageOf(cacheClass, memory, purges) };
  });
  return { since: iso(stats.sinceMs), memory: { ...memory.usage(), maxBytes }, classes };
}

/** The entries of a class in the memory tier, without those that a hard purge has ended. Looks at every entry. */
function usageOf(cacheClass: CacheClass, memory: MemoryTier, purges: PurgeLog): Usage {
  // A negative entry also has the tag of the resource's class, and counts as `notFound` only.
  const isOfClass = ({ tags }: Tagged): boolean =>
    tags.includes(`class:${cacheClass}`) && (cacheClass === 'notFound' || !tags.includes('class:notFound'));
  const { entries, bytes } = memory.measure(
    (stored) => isOfClass(stored) && purges.since(stored.epoch, stored.tags) !== 'hard',
  );
  return { entries, bytes };
}

async function adviceView({
  whatIf,
  times,
  outdatedLimits,
  clock,
}: CacheViewOptions): Promise<AnswerOf<typeof ROUTES.advice>> {
  const reports = await whatIf.reports();
  const nowMs = clock.nowMs();
  return {
    at: iso(nowMs),
    processes: reports.length,
    classes: adviceOf(reports, { ttl: times, maxStaleRatio: outdatedLimits(), nowMs }),
  };
}

const NOTHING = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };

/** Every point has all classes, which is easier to draw. */
function historyPointView({ atMs, classes }: HistoryPoint) {
  const entries = CACHE_CLASSES.map((cacheClass) => [cacheClass, classes.get(cacheClass) ?? NOTHING] as const);
  return { at: iso(atMs), classes: Object.fromEntries(entries) };
}

function memberView(member: ReturnType<Instances['list']>[number], self: string) {
  const { id, host, pid, version, startedAtMs, status } = member;
  return { id, host, pid, version, startedAt: iso(startedAtMs), status, self: id === self };
}
