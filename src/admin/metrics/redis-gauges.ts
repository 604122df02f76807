/** Gauges of Redis; a gateway without it has none of them. */
import type { Connectivity } from '../../cache/redis/connectivity.ts';
import { flag, type RedisMemory, type Sample, type StateGauge, type StateReadings } from './readings.ts';

/** The words of the metric are public. */
const HEARINGS = [
  ['hearing', 'connected'],
  ['deaf', 'subscriptionLost'],
  ['alone', 'disconnected'],
] as const satisfies readonly (readonly [string, Connectivity])[];

export const REDIS_GAUGES: readonly StateGauge[] = [
  {
    name: 'evalgate_redis_up',
    help: '1 where Redis answered lately, by what it is used for.',
    labelNames: ['role'],
    aggregator: 'min',
    read: ({ redis }) => (redis?.now() ?? []).map(({ role, isUp }) => [{ role }, flag(isUp)]),
  },
  {
    name: 'evalgate_redis_hearing',
    help: '1 for how the process hears of what others do: hearing; deaf (Redis answers, its messages do not arrive, and the memory tier is not used); alone (Redis does not answer). 0 for the others.',
    labelNames: ['role', 'state'],
    aggregator: 'sum',
    read: ({ redis }) =>
      (redis?.now() ?? []).flatMap(({ role, hearing }) =>
        HEARINGS.map(([state, connectivity]): Sample => [{ role, state }, flag(connectivity === hearing)]),
      ),
  },
  {
    name: 'evalgate_quota_exact',
    help: '1 while Redis decides on the limits of all processes together, 0 while this process goes on with its share.',
    aggregator: 'min',
    read: ({ redis }) => (redis === null ? [] : [[{}, flag(redis.isQuotaExact)]]),
  },
  {
    name: 'evalgate_redis_memory_used_bytes',
    help: 'Memory that the Redis server uses in all; absent while it does not answer.',
    labelNames: ['role'],
    aggregator: 'max',
    read: (readings) => ofMemory(readings, ({ usedBytes }) => usedBytes),
  },
  {
    name: 'evalgate_redis_memory_limit_bytes',
    help: 'Most memory that the Redis server may use (its maxmemory), 0 for no limit; absent while it does not answer.',
    labelNames: ['role'],
    aggregator: 'max',
    read: (readings) => ofMemory(readings, ({ maxBytes }) => maxBytes),
  },
  {
    name: 'evalgate_redis_keys',
    help: 'Keys in the database that is used there; absent while Redis does not answer. In a Redis of its own for the cache: its answers, and a few leases.',
    labelNames: ['role'],
    aggregator: 'max',
    read: (readings) => ofMemory(readings, ({ keys }) => keys),
  },
];

async function ofMemory(
  { redis }: StateReadings,
  valueOf: (memory: RedisMemory) => number | null,
): Promise<readonly Sample[]> {
  const memories = (await redis?.memory()) ?? [];
  return memories.flatMap((memory): Sample[] => {
    const value = valueOf(memory);
    return value === null ? [] : [[{ role: memory.role }, value]];
  });
}
