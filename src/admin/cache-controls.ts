/** Puts together what operators can see and do of the cache. */
import type { MemoryTier } from '../cache/memory-tier.ts';
import { purge, type PurgeDependencies } from '../cache/purge.ts';
import type { Clock } from '../clock.ts';
import type { CacheCounters } from './cache-counts.ts';
import type { CacheControls } from './cache-endpoints.ts';
import { usageByClass } from './cache-stats-endpoint.ts';

export interface CacheControlParts
  extends Pick<CacheControls, 'times' | 'timesControl' | 'configuredBy'>, PurgeDependencies {
  readonly memory: MemoryTier;
  /** The most that the memory tier may hold. */
  readonly maxBytes: number;
  readonly counters: Pick<CacheCounters, 'of'>;
  readonly clock: Clock;
}

export function createCacheControls(parts: CacheControlParts): CacheControls {
  const { memory, purges, maxBytes, counters, clock, times, timesControl, configuredBy } = parts;
  return {
    times,
    timesControl,
    configuredBy,
    purge: (request) => purge(request, parts),
    stats: {
      sinceMs: clock.nowMs(),
      countsOf: (cacheClass) => counters.of(cacheClass),
      memory: () => ({ ...memory.usage(), maxBytes }),
      usage: () => usageByClass(memory, purges),
    },
  };
}
