/** Reads through the cache. */
import { Counter, Histogram, type Registry } from 'prom-client';
import { NONE, SECONDS_BUCKETS } from './buckets.ts';
import type { MetricRecorders } from './recorders.ts';

/** From a second to the week for which the longest-lived answers may stand in for a store that fails. */
const AGE_BUCKETS = [1, 5, 15, 30, 60, 300, 900, 3600, 21_600, 86_400, 259_200, 604_800];

type CacheRecorders = Pick<MetricRecorders, 'cacheRead' | 'cacheMiss' | 'leaseWait'>;

export function cacheRecorders(registry: Registry): CacheRecorders {
  const registers = [registry];
  const reads = new Counter({
    name: 'evalgate_cache_reads_total',
    help: 'Reads through the cache, by how they were answered and where the entry was found.',
    labelNames: ['class', 'outcome', 'tier'],
    registers,
  });
  const misses = new Counter({
    name: 'evalgate_cache_misses_total',
    help: 'Reads that the cache could not answer, by why.',
    labelNames: ['class', 'reason'],
    registers,
  });
  const ages = new Histogram({
    name: 'evalgate_cache_entry_age_seconds',
    help: 'Age of the answers that were served, since the store was asked for them, near 0 for those that were just fetched.',
    labelNames: ['class'],
    buckets: AGE_BUCKETS,
    registers,
  });
  const waits = new Histogram({
    name: 'evalgate_cache_lease_wait_seconds',
    help: "Time that reads waited for another process's call to the store, by how the wait ended: stored (its answer came), failed (its failure came), taken-over (it came to nothing), timeout.",
    labelNames: ['class', 'end'],
    buckets: SECONDS_BUCKETS,
    registers,
  });
  return {
    cacheRead: ({ class: cacheClass, outcome, tier, ageSeconds }) => {
      reads.inc({ class: cacheClass, outcome, tier: tier ?? NONE });
      if (ageSeconds !== null) ages.observe({ class: cacheClass }, ageSeconds);
    },
    cacheMiss: (miss) => misses.inc({ class: miss.class, reason: miss.reason }),
    leaseWait: (wait) => waits.observe({ class: wait.class, end: wait.end }, wait.seconds),
  };
}
