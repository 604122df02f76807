/** Gauges: what holds at the moment of a scrape. */
import { Gauge } from 'prom-client';
import type { Readiness } from '../admin/readiness.ts';
import type { Usage } from '../cache/entry.ts';
import type { Connectivity } from '../cache/redis/redis-cache.ts';
import type { GuardStatus } from '../upstream/guard.ts';
import type { Metrics } from './metrics.ts';
import type { RedisHealth, RedisMemory } from './redis-health.ts';

/** The gauges read them at each scrape. None of them may throw. */
export interface GaugeSources {
  readonly readiness: () => Readiness;
  readonly memory: () => Usage;
  readonly memoryLimitBytes: number;
  readonly isMaintenanceOn: () => boolean;
  readonly connections: () => Readonly<Record<'public' | 'admin', number>>;
  readonly guard: () => GuardStatus;
  /** Processes that share this gateway's Redis, itself included. */
  readonly processes: () => number;
  /** Null for a gateway without Redis. */
  readonly redis: Pick<RedisHealth, 'links' | 'memory' | 'isQuotaExact' | 'isCacheOverBudget'> | null;
}

type Sample = readonly [labels: Readonly<Record<string, string>>, value: number];

interface GaugeDeclaration {
  readonly name: string;
  readonly help: string;
  readonly labelNames?: readonly string[];
  /** How the values of several workers are combined. */
  readonly aggregator: 'sum' | 'min' | 'max';
  /** Null or an empty list: no sample. */
  readonly read: (sources: GaugeSources) => number | boolean | null | readonly Sample[] | Promise<readonly Sample[]>;
}

const STATUSES = ['starting', 'ready', 'draining'] as const satisfies readonly Readiness['status'][];
/** The label's values are public. */
const HEARING_STATES = [
  ['hearing', 'connected'],
  ['deaf', 'subscriptionLost'],
  ['alone', 'disconnected'],
] as const satisfies readonly (readonly [label: string, Connectivity])[];

const GAUGES: readonly GaugeDeclaration[] = [
  {
    name: 'evalgate_readiness',
    help: '1 for the status of the process, as GET /readyz tells it; 0 for the others.',
    labelNames: ['status'],
    aggregator: 'sum',
    read: ({ readiness }) => {
      const { status: now } = readiness();
      return STATUSES.map((status) => [{ status }, Number(status === now)]);
    },
  },
  {
    name: 'evalgate_dependency_up',
    help: '1 where a dependency of GET /readyz is ok, 0 where it is degraded; absent while it is unknown.',
    labelNames: ['dependency'],
    aggregator: 'min',
    read: ({ readiness }) =>
      readiness()
        .dependencies.filter(({ status }) => status !== 'unknown')
        .map(({ name, status }) => [{ dependency: name }, Number(status === 'ok')]),
  },
  {
    name: 'evalgate_maintenance_active',
    help: '1 while the maintenance switch keeps the gateway from asking the store.',
    aggregator: 'max',
    read: ({ isMaintenanceOn }) => isMaintenanceOn(),
  },
  {
    name: 'evalgate_fleet_processes',
    help: 'Gateway processes that share the limits, this one included, as far as was last known.',
    aggregator: 'max',
    read: ({ processes }) => processes(),
  },
  {
    name: 'evalgate_http_connections',
    help: 'Connections that are open, by listener.',
    labelNames: ['listener'],
    aggregator: 'sum',
    read: ({ connections }) => Object.entries(connections()).map(([listener, open]) => [{ listener }, open]),
  },
  {
    name: 'evalgate_cache_entries',
    help: 'Answers held by the memory tier; what is in Redis is in evalgate_redis_keys.',
    labelNames: ['tier'],
    aggregator: 'sum',
    read: ({ memory }) => [[{ tier: 'memory' }, memory().entries]],
  },
  {
    name: 'evalgate_cache_bytes',
    help: 'Bytes held by the memory tier, as it weighs its entries; what is in Redis is in evalgate_redis_memory_used_bytes.',
    labelNames: ['tier'],
    aggregator: 'sum',
    read: ({ memory }) => [[{ tier: 'memory' }, memory().bytes]],
  },
  {
    name: 'evalgate_cache_limit_bytes',
    help: 'Bytes that the memory tier may hold.',
    labelNames: ['tier'],
    aggregator: 'sum',
    read: ({ memoryLimitBytes }) => [[{ tier: 'memory' }, memoryLimitBytes]],
  },
  {
    name: 'evalgate_store_breaker_open',
    help: '1 while calls to the evaluation store are held back, but for one a second, because too many have failed.',
    aggregator: 'max',
    read: ({ guard }) => guard().isOpen,
  },
  {
    name: 'evalgate_store_calls_in_flight',
    help: 'Calls to the evaluation store that are under way.',
    aggregator: 'sum',
    read: ({ guard }) => guard().inFlight,
  },
  {
    name: 'evalgate_store_calls_queued',
    help: 'Calls to the evaluation store that wait for their turn.',
    aggregator: 'sum',
    read: ({ guard }) => guard().queued,
  },
  {
    name: 'evalgate_redis_up',
    help: '1 where Redis answered lately, by what it is used for.',
    labelNames: ['role'],
    aggregator: 'min',
    read: ({ redis }) => (redis?.links() ?? []).map(({ role, isUp }) => [{ role }, Number(isUp)]),
  },
  {
    name: 'evalgate_redis_hearing',
    help: '1 for how the process hears of what others do: hearing; deaf (Redis answers, its messages do not arrive, and the memory tier is not used); alone (Redis does not answer). 0 for the others.',
    labelNames: ['role', 'state'],
    aggregator: 'sum',
    read: ({ redis }) =>
      (redis?.links() ?? []).flatMap(({ role, connectivity }) =>
        HEARING_STATES.map(([state, value]): Sample => [{ role, state }, Number(value === connectivity)]),
      ),
  },
  {
    name: 'evalgate_quota_exact',
    help: '1 while Redis decides on the limits of all processes together, 0 while this process goes on with its share.',
    aggregator: 'min',
    read: ({ redis }) => redis && redis.isQuotaExact,
  },
  {
    name: 'evalgate_redis_cache_over_budget',
    help: '1 while new answers are not stored in Redis, because the cache has used what it may there (cache.redis, or all but a tenth of maxmemory in a Redis that keys and limits share), 0 while they are.',
    aggregator: 'max',
    read: ({ redis }) => redis && redis.isCacheOverBudget,
  },
  {
    name: 'evalgate_redis_memory_used_bytes',
    help: 'Memory that the Redis server uses in all; absent while it does not answer.',
    labelNames: ['role'],
    aggregator: 'max',
    read: (sources) => redisMemory(sources, ({ usedBytes }) => usedBytes),
  },
  {
    name: 'evalgate_redis_memory_limit_bytes',
    help: 'Most memory that the Redis server may use (its maxmemory), 0 for no limit; absent while it does not answer.',
    labelNames: ['role'],
    aggregator: 'max',
    read: (sources) => redisMemory(sources, ({ maxBytes }) => maxBytes),
  },
  {
    name: 'evalgate_redis_keys',
    help: 'Keys in the database that is used there; absent while Redis does not answer. In a Redis of its own for the cache: its answers, and a few leases.',
    labelNames: ['role'],
    aggregator: 'max',
    read: (sources) => redisMemory(sources, ({ keys }) => keys),
  },
];

/** Adds the gauges to the metrics of a gateway. */
export function registerGauges({ registry }: Pick<Metrics, 'registry'>, sources: GaugeSources): void {
  for (const { read, labelNames = [], ...about } of GAUGES) {
    const gauge = new Gauge({
      ...about,
      labelNames,
      registers: [registry],
      collect: async () => {
        const value = await read(sources);
        gauge.reset();
        // One without labels would else stand at 0.
        if (labelNames.length === 0) gauge.remove();
        if (typeof value === 'number' || typeof value === 'boolean') gauge.set(Number(value));
        else for (const [labels, sample] of value ?? []) gauge.set(labels, sample);
      },
    });
  }
}

async function redisMemory(
  { redis }: GaugeSources,
  valueOf: (memory: RedisMemory) => number | null,
): Promise<readonly Sample[]> {
  const memories = (await redis?.memory()) ?? [];
  return memories.flatMap((memory): Sample[] => {
    const value = valueOf(memory);
    return value === null ? [] : [[{ role: memory.role }, value]];
  });
}
