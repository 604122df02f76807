/** GET /api/cache: what each class of answers holds and what the cache has done for it. */
import type { Tagged, Usage } from '../cache/entry.ts';
import type { MemoryTier } from '../cache/memory-tier.ts';
import type { PurgeLog } from '../cache/purge-log.ts';
import { CACHE_CLASSES, type CacheClass } from '../cache/ttl-policy.ts';
import type { ClassCounts } from './cache-counts.ts';
import type { Endpoint } from './endpoint.ts';

export type UsageByClass = ReadonlyMap<CacheClass, Usage>;

export interface StatsEndpointOptions {
  /** When the counts began, Unix milliseconds. */
  readonly sinceMs: number;
  readonly countsOf: (cacheClass: CacheClass) => ClassCounts;
  /** What this process's memory holds in all, what can't be used any more included, and the most it may. */
  readonly memory: () => Usage & { readonly maxBytes: number };
  /** What of it can still be used, by class. */
  readonly usage: () => UsageByClass;
}

export function statsEndpoint(options: StatsEndpointOptions): Endpoint {
  return {
    method: 'GET',
    path: '/api/cache',
    what: 'a class a row: reads by outcome, misses by reason, store calls, ages and latencies, entries and bytes, of this process since it began',
    handle: async (ctx) => {
      const { sinceMs, memory, usage, countsOf } = options;
      const held = usage();
      ctx.body = {
        since: new Date(sinceMs).toISOString(),
        memory: memory(),
        classes: CACHE_CLASSES.map((cacheClass) => {
          const counts = countsOf(cacheClass);
          const reads = Object.values(counts.outcomes).reduce((sum, count) => sum + count, 0);
          const inMemory = held.get(cacheClass) ?? { entries: 0, bytes: 0 };
          return { class: cacheClass, reads, ...counts, memory: inMemory };
        }),
      };
    },
  };
}

/** What a tier holds of each class, without what a hard purge has ended. Looks at every entry once a class. */
export function usageByClass(tier: Pick<MemoryTier, 'measure'>, purges: PurgeLog): UsageByClass {
  const byClass = new Map<CacheClass, Usage>();
  for (const cacheClass of CACHE_CLASSES) {
    const isHeld = (stored: Tagged): boolean =>
      isOf(cacheClass, stored) && purges.since(stored.position, stored.tags) !== 'hard';
    const { entries, bytes } = tier.measure(isHeld);
    byClass.set(cacheClass, { entries, bytes });
  }
  return byClass;
}

/** What is known to be absent bears the tag of the resource's class too, and counts as `notFound` alone. */
function isOf(cacheClass: CacheClass, { tags }: Tagged): boolean {
  return tags.includes(`class:${cacheClass}`) && (cacheClass === 'notFound' || !tags.includes('class:notFound'));
}
