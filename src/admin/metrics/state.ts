/** Gauges: what holds at the moment when the metrics are asked for. */
import { Gauge, type Registry } from 'prom-client';
import type { Readiness } from '../readiness.ts';
import { flag, type StateGauge, type StateReadings } from './readings.ts';
import { GUARD_GAUGES } from './guard.ts';
import { REDIS_GAUGES } from './redis-gauges.ts';

const STATUSES = ['starting', 'ready', 'draining'] as const satisfies readonly Readiness['status'][];

const GAUGES: readonly StateGauge[] = [
  {
    name: 'evalgate_readiness',
    help: '1 for the status of the process, as GET /readyz tells it; 0 for the others.',
    labelNames: ['status'],
    aggregator: 'sum',
    read: ({ readiness }) => {
      const { status: now } = readiness();
      return STATUSES.map((status) => [{ status }, flag(status === now)]);
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
        .map(({ name, status }) => [{ dependency: name }, flag(status === 'ok')]),
  },
  {
    name: 'evalgate_maintenance_active',
    help: '1 while the maintenance switch keeps the gateway from asking the store.',
    aggregator: 'max',
    read: ({ maintenance }) => [[{}, flag(maintenance())]],
  },
  {
    name: 'evalgate_fleet_processes',
    help: 'Gateway processes that share the limits, this one included, as far as was last known.',
    aggregator: 'max',
    read: ({ processes }) => [[{}, processes()]],
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
];

const ALL_GAUGES = [...GAUGES, ...GUARD_GAUGES, ...REDIS_GAUGES];

/** Registers the gauges. They have no samples before there is something to read. */
export function stateGauges(registry: Registry): { watch(readings: StateReadings): void } {
  let readings: StateReadings | null = null;
  for (const { name, help, labelNames = [], aggregator, read } of ALL_GAUGES) {
    const gauge = new Gauge({
      name,
      help,
      labelNames: [...labelNames],
      aggregator,
      registers: [registry],
      collect: async () => {
        const samples = readings === null ? [] : await read(readings);
        gauge.reset();
        // One without labels would else stand at 0.
        if (labelNames.length === 0) gauge.remove();
        for (const [labels, value] of samples) gauge.set(labels, value);
      },
    });
  }
  return {
    watch: (given) => {
      readings = given;
    },
  };
}
