/** Puts together what operators can see and do of the cache. */
import { explain, type ExplainParts } from '../cache/explain.ts';
import type { MemoryTier } from '../cache/memory-tier.ts';
import { purge, type PurgeDependencies } from '../cache/purge.ts';
import type { SharedCacheAdmin } from '../cache/shared-cache.ts';
import type { TtlPolicy } from '../cache/ttl-policy.ts';
import type { Clock } from '../clock.ts';
import type { CacheCounters } from './cache-counts.ts';
import type { CacheControls } from './cache-endpoints.ts';
import { usageByClass } from './cache-stats-endpoint.ts';

export interface CacheControlParts
  extends
    Pick<CacheControls, 'timesControl' | 'configuredBy' | 'maintenance' | 'resolve' | 'top'>,
    Omit<PurgeDependencies, 'shared' | 'memory'>,
    Omit<ExplainParts, 'maintenance' | 'shared' | 'purges' | 'memory'> {
  /** Null for a gateway that is alone. */
  readonly shared: SharedCacheAdmin | null;
  readonly times: TtlPolicy;
  readonly memory: MemoryTier;
  /** The most that the memory tier may hold. */
  readonly maxBytes: number;
  readonly counters: Pick<CacheCounters, 'of'>;
  readonly clock: Clock;
}

export function createCacheControls(parts: CacheControlParts): CacheControls {
  const { memory, purges, maxBytes, counters, clock, times } = parts;
  const { timesControl, configuredBy, maintenance, resolve, top } = parts;
  return {
    times,
    timesControl,
    configuredBy,
    maintenance,
    resolve,
    top,
    purge: (request) => purge(request, parts),
    explain: (request, workspaceIds) => explain(request, workspaceIds, parts),
    stats: {
      sinceMs: clock.nowMs(),
      countsOf: (cacheClass) => counters.of(cacheClass),
      memory: () => ({ ...memory.usage(), maxBytes }),
      usage: () => usageByClass(memory, purges),
    },
  };
}
