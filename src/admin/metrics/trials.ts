/** Trials of a time. */
import { Counter, type Registry } from 'prom-client';
import { CACHE_CLASSES } from '../../cache/times.ts';
import { ROLLBACK_CAUSES } from '../../cache/trial/trial.ts';
import { flag, type StateGauge } from './readings.ts';
import type { MetricRecorders } from './recorders.ts';

export function trialRecorders(registry: Registry): Pick<MetricRecorders, 'trialRolledBack'> {
  const rollbacks = new Counter({
    name: 'evalgate_cache_trial_rollbacks_total',
    help: 'Trials of a time that went back by themselves, by why: store-load, arm-errors, store-errors or breaker. Counted once in a fleet.',
    labelNames: ['class', 'reason'],
    registers: [registry],
  });
  // An increase is only seen of what was there before.
  for (const cacheClass of CACHE_CLASSES)
    for (const reason of ROLLBACK_CAUSES) rollbacks.inc({ class: cacheClass, reason }, 0);
  return {
    trialRolledBack: (rollback) => rollbacks.inc({ class: rollback.class, reason: rollback.reason }),
  };
}

export const TRIAL_GAUGES: readonly StateGauge[] = [
  {
    name: 'evalgate_cache_trial_running',
    help: '1 for a class of which another fresh is being tried on a share of its keys; 0 for the others.',
    labelNames: ['class'],
    aggregator: 'max',
    read: ({ trials }) => {
      const running = trials();
      return CACHE_CLASSES.map((cacheClass) => [{ class: cacheClass }, flag(running.includes(cacheClass))]);
    },
  },
];
