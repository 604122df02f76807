/** What the cache has done since the process began, by class. The hooks of the other rooms feed it. */
import type { MissReason, ReadReport } from '../cache/hooks.ts';
import { CACHE_CLASSES, type CacheClass } from '../cache/times.ts';

/** The names are those of the metrics' labels. */
export interface ClassCounts {
  /** Reads by how they were answered; together they are all reads. `failed`: there was nothing to serve. */
  readonly outcomes: Readonly<Record<ReadReport['outcome'], number>>;
  /** Those of them that were served from a copy, by where it was found. */
  readonly tiers: Readonly<Record<NonNullable<ReadReport['tier']>, number>>;
  /** Those of them that the cache could not answer at once, by why. */
  readonly misses: Readonly<Record<MissReason, number>>;
  /** Calls to the store, whatever came of them. */
  readonly storeCalls: number;
}

type CountedRead = Pick<ReadReport, 'class' | 'outcome' | 'tier' | 'missReason'>;

export interface CacheCounters {
  countRead(read: CountedRead): void;
  countStoreCall(cacheClass: CacheClass): void;
  /** As they stand now. */
  of(cacheClass: CacheClass): ClassCounts;
}

export function createCacheCounters(): CacheCounters {
  const byClass = new Map(CACHE_CLASSES.map((cacheClass) => [cacheClass, zeros()]));
  const countsOf = (cacheClass: CacheClass): Counts => {
    const counts = byClass.get(cacheClass);
    if (counts === undefined) throw new Error(`the class ${cacheClass} is not one of CACHE_CLASSES`);
    return counts;
  };
  return {
    countRead: (read) => {
      const counts = countsOf(read.class);
      counts.outcomes[read.outcome] += 1;
      if (read.tier !== null) counts.tiers[read.tier] += 1;
      if (read.missReason !== null) counts.misses[read.missReason] += 1;
    },
    countStoreCall: (cacheClass) => {
      countsOf(cacheClass).storeCalls += 1;
    },
    of: (cacheClass) => structuredClone(countsOf(cacheClass)),
  };
}

type Counts = ReturnType<typeof zeros>;

function zeros() {
  return {
    outcomes: { hit: 0, 'stale-while-revalidate': 0, 'stale-if-error': 0, collapsed: 0, miss: 0, failed: 0 },
    tiers: { memory: 0, redis: 0 },
    misses: { 'never-seen': 0, expired: 0, evicted: 0, purged: 0, 'not-cacheable': 0 },
    storeCalls: 0,
  };
}
