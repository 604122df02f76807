/** Calls to the evaluation store. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { SECONDS_BUCKETS } from './buckets.ts';
import type { MetricRecorders } from './recorders.ts';

export function storeRecorders(registry: Registry): Pick<MetricRecorders, 'storeCall' | 'recordLeftOut'> {
  const registers = [registry];
  const calls = new Counter({
    name: 'evalgate_store_calls_total',
    help: 'Calls to the evaluation store, by what came of them.',
    labelNames: ['resource', 'outcome'],
    registers,
  });
  const durations = new Histogram({
    name: 'evalgate_store_call_duration_seconds',
    help: 'Time that calls to the evaluation store took, failed ones too.',
    labelNames: ['resource'],
    buckets: SECONDS_BUCKETS,
    registers,
  });
  const leftOut = new Counter({
    name: 'evalgate_store_records_left_out_total',
    help: 'Records of lists that were left out because the store sent them incomplete or malformed.',
    labelNames: ['resource'],
    registers,
  });
  return {
    storeCall: ({ resource, outcome, seconds }) => {
      calls.inc({ resource, outcome });
      durations.observe({ resource }, seconds);
    },
    recordLeftOut: ({ resource }) => leftOut.inc({ resource }),
  };
}
