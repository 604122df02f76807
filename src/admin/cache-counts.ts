/** What the cache has done since the process began, by class. The hooks of the other rooms feed it. */
import type { MissReason, ReadReport } from '../telemetry/events.ts';
import { CACHE_CLASSES, type CacheClass } from '../cache/ttl-policy.ts';
import { LogHistogram } from './log-histogram.ts';

/** What half, nine tenths and all but a hundredth of the reads don't exceed. Milliseconds, within 7 %. */
export interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

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
  /** How old the answers were that were served; null where none was. */
  readonly ageMs: Percentiles | null;
  /** How long reads took in the cache, waiting for the store included; null where there were none. */
  readonly latencyMs: Percentiles | null;
}

type CountedRead = Omit<ReadReport, 'key' | 'keyHash'>;

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
      if (read.ageMs !== null) counts.agesMs.record(read.ageMs);
      counts.latenciesMicros.record(read.durationMs * 1000);
    },
    countStoreCall: (cacheClass) => {
      countsOf(cacheClass).storeCalls += 1;
    },
    of: (cacheClass) => {
      const { agesMs, latenciesMicros, ...counts } = countsOf(cacheClass);
      return {
        ...structuredClone(counts),
        ageMs: percentiles(agesMs, 1),
        latencyMs: percentiles(latenciesMicros, 1000),
      };
    },
  };
}

type Counts = ReturnType<typeof zeros>;

function zeros() {
  return {
    outcomes: { hit: 0, 'stale-while-revalidate': 0, 'stale-if-error': 0, collapsed: 0, miss: 0, failed: 0 },
    tiers: { memory: 0, redis: 0 },
    misses: { 'never-seen': 0, expired: 0, evicted: 0, purged: 0, 'not-cacheable': 0 },
    storeCalls: 0,
    agesMs: new LogHistogram(),
    latenciesMicros: new LogHistogram(),
  };
}

/** `unit`: how much of what was recorded a millisecond is. */
function percentiles(histogram: LogHistogram, unit: number): Percentiles | null {
  const [p50, p90, p99] = [histogram.quantile(0.5), histogram.quantile(0.9), histogram.quantile(0.99)];
  if (p50 === null || p90 === null || p99 === null) return null;
  return { p50: p50 / unit, p90: p90 / unit, p99: p99 / unit };
}
