import { afterEach, beforeEach, expect, test } from 'vitest';
import { createMetrics } from '../../../src/admin/metrics/metrics.ts';
import type { StateReadings } from '../../../src/admin/metrics/readings.ts';
import type { Dependency } from '../../../src/admin/readiness.ts';
import type { Metrics } from '../../../src/admin/metrics/recorders.ts';

let metrics: Metrics;
beforeEach(() => {
  metrics = createMetrics({ version: '1.2.3' });
});
afterEach(() => metrics.close());

const since = '2026-01-15T12:00:00.000Z';

function readings(overrides: Partial<StateReadings> = {}): StateReadings {
  return {
    readiness: () => ({ status: 'ready', dependencies: [] }),
    memory: () => ({ entries: 3, bytes: 4096 }),
    memoryLimitBytes: 64_000_000,
    maintenance: () => false,
    connections: () => ({ public: 12, admin: 1 }),
    guard: () => ({ isOpen: true, inFlight: 2, queued: 5 }),
    processes: () => 4,
    redis: null,
    ...overrides,
  };
}

/** The samples whose names begin so, as they are written. */
async function samples(...prefixes: readonly string[]): Promise<readonly string[]> {
  const lines = (await metrics.render()).split('\n');
  return lines.filter((line) => prefixes.some((prefix) => line.startsWith(prefix)));
}

const of = (name: string, status: Dependency['status']): Dependency => ({ name, status, since, detail: 'x' });

const GUARD = ['evalgate_store_breaker', 'evalgate_store_calls_in_flight', 'evalgate_store_calls_queued'];
const GAUGES = [
  'evalgate_readiness',
  'evalgate_dependency',
  'evalgate_maintenance',
  'evalgate_fleet',
  'evalgate_redis',
];
const CACHE = ['evalgate_cache_entries', 'evalgate_cache_bytes', 'evalgate_cache_limit'];

test('before there is anything to read, nothing is said of it', async () => {
  expect(await samples(...GAUGES, 'evalgate_http_connections{', ...CACHE, 'evalgate_quota_exact')).toEqual([]);
});

test('what holds at the moment of the scrape is told', async () => {
  metrics.watch(readings({ maintenance: () => true }));
  expect(await samples(...GAUGES, 'evalgate_http_connections{', ...CACHE, ...GUARD)).toEqual([
    'evalgate_readiness{status="starting"} 0',
    'evalgate_readiness{status="ready"} 1',
    'evalgate_readiness{status="draining"} 0',
    'evalgate_maintenance_active 1',
    'evalgate_fleet_processes 4',
    'evalgate_http_connections{listener="public"} 12',
    'evalgate_http_connections{listener="admin"} 1',
    'evalgate_cache_entries{tier="memory"} 3',
    'evalgate_cache_bytes{tier="memory"} 4096',
    'evalgate_cache_limit_bytes{tier="memory"} 64000000',
    'evalgate_store_breaker_open 1',
    'evalgate_store_calls_in_flight 2',
    'evalgate_store_calls_queued 5',
  ]);
});

test('a dependency is up, down, or unknown and then absent', async () => {
  let dependencies = [of('store', 'unknown'), of('redis-state', 'ok'), of('quota', 'degraded')];
  metrics.watch(readings({ readiness: () => ({ status: 'ready', dependencies }) }));
  expect(await samples('evalgate_dependency_up')).toEqual([
    'evalgate_dependency_up{dependency="redis-state"} 1',
    'evalgate_dependency_up{dependency="quota"} 0',
  ]);
  dependencies = [of('store', 'ok')];
  expect(await samples('evalgate_dependency_up')).toEqual(['evalgate_dependency_up{dependency="store"} 1']);
});

test('with Redis: whether it answers and is heard, and what it uses, which is absent while it does not answer', async () => {
  let isUp = true;
  const redis: NonNullable<StateReadings['redis']> = {
    now: () => [{ role: 'state', isUp, hearing: isUp ? 'deaf' : 'alone' }],
    memory: async () => (isUp ? [{ role: 'state', usedBytes: 2_000_000, maxBytes: null, keys: 7 }] : []),
    isQuotaExact: false,
  };
  metrics.watch(readings({ redis }));
  expect(await samples('evalgate_redis_', 'evalgate_quota_exact')).toEqual([
    'evalgate_redis_up{role="state"} 1',
    'evalgate_redis_hearing{role="state",state="hearing"} 0',
    'evalgate_redis_hearing{role="state",state="deaf"} 1',
    'evalgate_redis_hearing{role="state",state="alone"} 0',
    'evalgate_quota_exact 0',
    'evalgate_redis_memory_used_bytes{role="state"} 2000000',
    'evalgate_redis_keys{role="state"} 7',
  ]);
  isUp = false;
  expect(await samples('evalgate_redis_up', 'evalgate_redis_memory', 'evalgate_redis_keys')).toEqual([
    'evalgate_redis_up{role="state"} 0',
  ]);
});
