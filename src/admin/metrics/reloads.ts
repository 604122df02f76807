/** Reloads of the configuration. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { MetricRecorders } from './recorders.ts';

export function reloadRecorders(registry: Registry): Pick<MetricRecorders, 'configRead'> {
  const registers = [registry];
  const reloads = new Counter({
    name: 'evalgate_config_reloads_total',
    help: 'Times that the configuration was read again, by result: success, or failure, which leaves the old one in force.',
    labelNames: ['result'],
    registers,
  });
  for (const result of ['success', 'failure']) reloads.inc({ result }, 0);
  const lastSuccess = new Gauge({
    name: 'evalgate_config_last_success_timestamp_seconds',
    help: 'When the configuration in force was read, Unix time.',
    aggregator: 'min',
    registers,
  });
  lastSuccess.remove();
  return {
    configRead: ({ result, atMs }) => {
      if (result !== 'start') reloads.inc({ result });
      if (result !== 'failure') lastSuccess.set(atMs / 1000);
    },
  };
}
