/** Shows operators the cache: counts, costliest keys, advice, the last hour; and the processes that serve. */
import type { Tagged, Usage } from '../cache/entry.ts';
import type { MemoryTier } from '../cache/memory-tier.ts';
import type { PurgeLog } from '../cache/purge-log.ts';
import type { CacheClass, TtlPolicy } from '../cache/ttl-policy.ts';
import { adviceOf } from '../cache/what-if/advice.ts';
import type { WhatIf } from '../cache/what-if/what-if.ts';
import type { Clock } from '../clock.ts';
import { ALIVE_FOR_MS, type Instance, type Instances } from '../redis/instances.ts';
import type { Counted } from './answers.ts';
import { type AnswerOf, iso, ROUTES } from './api.ts';
import { endpoint, type Endpoint } from './endpoint.ts';
import { limitOf, queryOf } from './input.ts';
import { type ClassCounts, HISTORY_STEP_MS, type Stats } from './stats/stats.ts';
import type { Whose } from './stats/steps.ts';

export interface CacheViewOptions {
  readonly stats: Stats;
  readonly memory: MemoryTier;
  /** The most that the memory tier may hold. */
  readonly maxBytes: number;
  readonly purges: PurgeLog;
  readonly whatIf: Pick<WhatIf, 'reports'>;
  readonly ttl: Pick<TtlPolicy, 'of'>;
  /** The share of outdated answers that is acceptable; it may change while the gateway runs. */
  readonly outdatedLimits: () => Readonly<Record<CacheClass, number>>;
  readonly members: Instances;
  readonly clock: Clock;
}

/** What the cache has done and holds, what recent traffic advises, and the processes that serve it. */
export function cacheViewEndpoints(options: CacheViewOptions): readonly Endpoint[] {
  const { stats, members } = options;
  return [
    endpoint(ROUTES.cacheStats, () => statsView(options)),
    endpoint(ROUTES.cacheTop, async (ctx) => {
      const limit = limitOf(queryOf(ctx, ROUTES.cacheTop)('limit')[0], 100, 20);
      const { whose, sinceMs, value } = await stats.top(limit);
      const { keys, routes } = value;
      return {
        ...countedOf(whose, members),
        since: iso(sinceMs),
        keys: keys.map(rounded),
        routes: routes.map(rounded),
      };
    }),
    endpoint(ROUTES.advice, () => adviceView(options)),
    endpoint(ROUTES.history, async () => {
      const { whose, points } = await stats.history();
      const views = points.map(({ atMs, ...point }) => ({ at: iso(atMs), ...point }));
      return { ...countedOf(whose, members), stepMs: HISTORY_STEP_MS, points: views };
    }),
    endpoint(ROUTES.fleet, () => fleetView(members)),
  ];
}

/** For an answer: whose counts it holds. */
export function countedOf(whose: Whose, members: Instances): Omit<Counted, 'since'> {
  const silence = members.problem();
  if (whose === 'fleet') {
    // It can be read, and the others cannot write to it.
    const problem = silence === null ? null : `${silence}; what the other processes have counted since is left out`;
    return { scope: 'fleet', processes: members.peers().length, problem };
  }
  const problem =
    whose === 'cut-off'
      ? `${silence ?? 'Redis does not answer'}; the others are left out, of ${members.count()} known`
      : null;
  return { scope: 'process', processes: 1, problem };
}

function rounded<T extends { readonly storeMs: number }>(load: T): T {
  return { ...load, storeMs: Math.round(load.storeMs) };
}

async function statsView({
  stats,
  memory,
  maxBytes,
  purges,
  members,
}: CacheViewOptions): Promise<AnswerOf<typeof ROUTES.cacheStats>> {
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
    (stored) => isOfClass(stored) && purges.since(stored.epoch, stored.tags) !== 'hard',
  );
  return { entries, bytes };
}

async function adviceView({
  whatIf,
  ttl,
  outdatedLimits,
  clock,
}: CacheViewOptions): Promise<AnswerOf<typeof ROUTES.advice>> {
  const reports = await whatIf.reports();
  const nowMs = clock.nowMs();
  return {
    at: iso(nowMs),
    processes: reports.length,
    classes: adviceOf(reports, { ttl, maxStaleRatio: outdatedLimits(), nowMs }),
  };
}

/** A process that is silent for longer than several heartbeats is left out. */
function fleetView(members: Instances): AnswerOf<typeof ROUTES.fleet> {
  const silence = members.problem();
  const heard = members.list().filter(({ heardMsAgo }) => heardMsAgo <= ALIVE_FOR_MS);
  return {
    problem:
      silence === null ? null : `${silence}, so nothing is heard of other processes (${members.count()} known in all)`,
    members: heard.map((member) => memberView(member, members.id)),
  };
}

function memberView(member: Instance, self: string) {
  const { id, host, pid, version, startedAtMs, status, heardMsAgo } = member;
  return { id, host, pid, version, startedAt: iso(startedAtMs), status, heardMsAgo, self: id === self };
}
