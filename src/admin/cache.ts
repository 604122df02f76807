/** Shows operators the cache: counts, costliest keys, advice, the last hour; and the processes that serve. */
import type { Tagged, Usage } from '../cache/entry.ts';
import type { MemoryTier } from '../cache/memory-tier.ts';
import type { PurgeLog } from '../cache/purge-log.ts';
import type { CacheClass, TtlPolicy } from '../cache/ttl-policy.ts';
import { adviceOf } from '../cache/what-if/advice.ts';
import type { WhatIf } from '../cache/what-if/what-if.ts';
import type { Clock } from '../clock.ts';
import { ALIVE_FOR_MS, type Instance, type Instances } from '../redis/instances.ts';
import { iso } from './api.ts';
import { endpoint, type Endpoint } from './endpoint.ts';
import { limitParameter, queryOf } from './input.ts';
import { type ClassCounts, HISTORY_STEP_MS, type Stats } from './stats/stats.ts';
import type { Whose } from './stats/steps.ts';
import type { CacheStatsView, FleetView, HistoryAnswer, TopAnswer } from './stats-api.ts';

export interface CacheViewOptions {
  readonly stats: Stats;
  readonly memory: MemoryTier;
  /** The most that the memory tier may hold. */
  readonly maxBytes: number;
  readonly purges: PurgeLog;
  readonly whatIf: Pick<WhatIf, 'reports'>;
  readonly times: Pick<TtlPolicy, 'of'>;
  /** The share of outdated answers that is acceptable; it may change while the gateway runs. */
  readonly outdatedLimits: () => Readonly<Record<CacheClass, number>>;
  readonly members: Instances;
  readonly clock: Clock;
}

const TOP = limitParameter(100, 20);

export function cacheStatsEndpoints(options: CacheViewOptions): readonly Endpoint[] {
  return [
    endpoint(
      'GET',
      '/api/cache',
      'a class a row: reads by outcome, misses by reason, store calls, ages and latencies of all processes in the last hour; and what the memory of this one holds',
      async (ctx) => {
        ctx.body = await statsView(options);
      },
    ),
    endpoint(
      'GET',
      '/api/cache/top',
      'the keys and routes for which all processes made the store work most in the last hour',
      async (ctx) => {
        const limit = TOP.read(queryOf(ctx, { limit: TOP.allowed })('limit')[0]);
        const { whose, sinceMs, value } = await options.stats.top(limit);
        const answer: TopAnswer = {
          ...countedOf(whose, options.members),
          since: iso(sinceMs),
          keys: value.keys.map(rounded),
          routes: value.routes.map(rounded),
        };
        ctx.body = answer;
      },
    ),
  ];
}

/** For an answer: whose counts it holds. */
export function countedOf(whose: Whose, members: Instances) {
  const problem =
    whose === 'cut-off'
      ? `Redis does not answer: this is what one process has seen, of ${members.count()} when Redis last did`
      : null;
  if (whose !== 'fleet') return { scope: 'process' as const, processes: 1, problem };
  return { scope: 'fleet' as const, processes: members.peers().length, problem };
}

/** Advice and activity from recent traffic, and the processes that serve it. */
export function trafficEndpoints(options: CacheViewOptions): readonly Endpoint[] {
  const { stats, members } = options;
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
      'the last hour of all processes: requests by status, read times, and reads, hits, store calls and failures by class',
      async (ctx) => {
        const { whose, points } = await stats.history();
        const answer: HistoryAnswer = {
          ...countedOf(whose, members),
          stepMs: HISTORY_STEP_MS,
          points: points.map(({ atMs, ...point }) => ({ at: iso(atMs), ...point })),
        };
        ctx.body = answer;
      },
    ),
    endpoint(
      'GET',
      '/api/fleet',
      'the processes that serve together, how each is, and when it was last heard of',
      async (ctx) => {
        ctx.body = fleetView(members);
      },
    ),
  ];
}

function rounded<T extends { readonly storeMs: number }>(load: T): T {
  return { ...load, storeMs: Math.round(load.storeMs) };
}

async function statsView({ stats, memory, maxBytes, purges, members }: CacheViewOptions): Promise<CacheStatsView> {
  const { whose, sinceMs, value } = await stats.classes();
  return {
    ...countedOf(whose, members),
    since: iso(sinceMs),
    memory: { ...memory.usage(), maxBytes },
    classes: value.map((counts) => ({ ...classView(counts), memory: usageOf(counts.class, memory, purges) })),
  };
}

function classView(counts: ClassCounts) {
  const { reads, outcomes, storeCalls } = counts;
  const hits = outcomes.hit + outcomes['stale-while-revalidate'];
  return {
    ...counts,
    hitRatio: reads === 0 ? null : hits / reads,
    storeCallsPerRead: reads === 0 ? null : storeCalls / reads,
  };
}

/** The entries of a class in the memory tier, without those that a hard purge has ended. Looks at every entry. */
function usageOf(cacheClass: CacheClass, memory: MemoryTier, purges: PurgeLog): Usage {
  // A negative entry also has the tag of the resource's class, and counts as `notFound` only.
  const isOfClass = ({ tags }: Tagged): boolean =>
    tags.includes(`class:${cacheClass}`) && (cacheClass === 'notFound' || !tags.includes('class:notFound'));
  const { entries, bytes } = memory.measure(
    (stored) => isOfClass(stored) && purges.since(stored.position, stored.tags) !== 'hard',
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

/** A process that is silent for longer than several heartbeats is left out. */
function fleetView(members: Instances): FleetView {
  const heard = members.list().filter(({ heardMsAgo }) => heardMsAgo <= ALIVE_FOR_MS);
  return {
    problem: members.isConnected()
      ? null
      : `Redis does not answer, so nothing is heard of other processes; there were ${members.count()} when it last did`,
    members: heard.map((member) => memberView(member, members.id)),
  };
}

function memberView(member: Instance, self: string): FleetView['members'][number] {
  const { id, host, pid, version, startedAtMs, status, heardMsAgo } = member;
  return { id, host, pid, version, startedAt: iso(startedAtMs), status, heardMsAgo, self: id === self };
}
