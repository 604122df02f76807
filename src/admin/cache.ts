/** Shows operators the cache: counts, costliest keys, advice, the last hour; and the processes that serve. */
import type { Tagged, Usage } from '../cache/entry.ts';
import type { MemoryTier } from '../cache/memory-tier.ts';
import type { PurgeLog } from '../cache/purge-log.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../cache/ttl-policy.ts';
import { adviceOf } from '../cache/what-if/advice.ts';
import type { WhatIf } from '../cache/what-if/what-if.ts';
import type { Clock } from '../clock.ts';
import type { Instances } from '../redis/instances.ts';
import { iso } from './api.ts';
import { endpoint, type Endpoint } from './endpoint.ts';
import { limitParameter, queryOf } from './input.ts';
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

const TOP = limitParameter(100, 20);

export function cacheStatsEndpoints(options: CacheViewOptions): readonly Endpoint[] {
  return [
    endpoint(
      'GET',
      '/api/cache',
      'a class a row: reads by outcome, misses by reason, store calls, ages and latencies, entries and bytes, of this process since it began',
      async (ctx) => {
        ctx.body = statsView(options);
      },
    ),
    endpoint(
      'GET',
      '/api/cache/top',
      'the keys and routes for which this process made the store work most, of the last hour at most',
      async (ctx) => {
        const limit = TOP.read(queryOf(ctx, { limit: TOP.allowed })('limit')[0]);
        const { sinceMs, keys, routes } = options.stats.top.view(limit);
        ctx.body = { since: iso(sinceMs), scope: 'process', keys: keys.map(rounded), routes: routes.map(rounded) };
      },
    ),
  ];
}

/** Advice and activity from recent traffic, and the processes that serve it. */
export function trafficEndpoints(options: CacheViewOptions): readonly Endpoint[] {
  const { stats, history, members } = options;
  return [
    endpoint(
      'GET',
      '/api/cache/advice',
      'for each class what other times would do to hit ratio, store load and staleness, and which one to set',
      async (ctx) => {
        ctx.body = await adviceView(options);
      },
    ),
    endpoint(
      'GET',
      '/api/cache/history',
      'reads, hits, store calls and failures by class over the last hour, of the whole fleet',
      async (ctx) => {
        const { scope, points } = await history.view();
        ctx.body = { scope, stepMs: STEP_MS, points: points.map(historyPointView) };
      },
    ),
    endpoint('GET', '/api/fleet', 'the processes that serve together, and how each of them is', async (ctx) => {
      ctx.body = { members: members.list().map((member) => memberView(member, members.id)) };
    }),
    endpoint(
      'GET',
      '/api/cache/pulse',
      'how long reads took and how many copies stood in for a failing store over the last hour, of this process',
      async (ctx) => {
        const points = stats.pulse().map(({ atMs, ...point }) => ({ at: iso(atMs), ...point }));
        // The id tells the instances apart for callers that reach one after the other.
        ctx.body = { process: members.id, stepMs: STEP_MS, points };
      },
    ),
  ];
}

function rounded<T extends Load>(load: T): T {
  return { ...load, storeMs: Math.round(load.storeMs) };
}

function statsView({ stats, memory, maxBytes, purges }: CacheViewOptions): object {
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

async function adviceView({ whatIf, times, outdatedLimits, clock }: CacheViewOptions): Promise<object> {
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
function historyPointView({ atMs, classes }: HistoryPoint): object {
  const entries = CACHE_CLASSES.map((cacheClass) => [cacheClass, classes.get(cacheClass) ?? NOTHING] as const);
  return { at: iso(atMs), classes: Object.fromEntries(entries) };
}

function memberView(member: ReturnType<Instances['list']>[number], self: string): object {
  const { id, host, pid, version, startedAtMs, status } = member;
  return { id, host, pid, version, startedAt: iso(startedAtMs), status, self: id === self };
}
