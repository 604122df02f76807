/** What shields the store: calls held back, waits, repetitions. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { SECONDS_BUCKETS } from './buckets.ts';
import { flag, type StateGauge } from './readings.ts';
import type { MetricRecorders } from './recorders.ts';

export function guardRecorders(registry: Registry): Pick<MetricRecorders, 'guard'> {
  const registers = [registry];
  const refused = new Counter({
    name: 'evalgate_store_calls_refused_total',
    help: 'Calls to the evaluation store that were not sent, by why: queue-full, queue-timeout, or store-failing (the breaker is open).',
    labelNames: ['reason'],
    registers,
  });
  const retries = new Counter({
    name: 'evalgate_store_retries_total',
    help: 'Repetitions of calls to the evaluation store, by what came of them; over-budget ones were not sent.',
    labelNames: ['outcome'],
    registers,
  });
  const waits = new Histogram({
    name: 'evalgate_store_queue_seconds',
    help: 'Time that calls to the evaluation store waited for their turn before they were sent.',
    buckets: SECONDS_BUCKETS,
    registers,
  });
  return {
    guard: {
      onRefused: ({ reason }) => refused.inc({ reason }),
      onRetry: ({ outcome }) => retries.inc({ outcome }),
      onTurnTaken: ({ waitedMs }) => waits.observe(waitedMs / 1000),
    },
  };
}

export const GUARD_GAUGES: readonly StateGauge[] = [
  {
    name: 'evalgate_store_breaker_open',
    help: '1 while calls to the evaluation store are held back, but for one a second, because too many have failed.',
    aggregator: 'max',
    read: ({ guard }) => [[{}, flag(guard().isOpen)]],
  },
  {
    name: 'evalgate_store_calls_in_flight',
    help: 'Calls to the evaluation store that are under way.',
    aggregator: 'sum',
    read: ({ guard }) => [[{}, guard().inFlight]],
  },
  {
    name: 'evalgate_store_calls_queued',
    help: 'Calls to the evaluation store that wait for their turn.',
    aggregator: 'sum',
    read: ({ guard }) => [[{}, guard().queued]],
  },
];
