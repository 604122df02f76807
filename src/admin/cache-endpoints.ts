/** /api/cache: what the cache holds and does, the times in force, and purging. Every change goes into the audit. */
import type { Audit } from './audit.ts';
import { purgeEndpoint, type PurgeEndpointOptions } from './cache-purge-endpoint.ts';
import { statsEndpoint, type StatsEndpointOptions } from './cache-stats-endpoint.ts';
import { timesEndpoints, type TimesEndpointOptions } from './cache-times-endpoints.ts';
import type { Endpoint } from './endpoint.ts';

/** What operators can see and do of the cache. */
export interface CacheControls extends Omit<PurgeEndpointOptions, 'audit'>, Omit<TimesEndpointOptions, 'audit'> {
  readonly stats: StatsEndpointOptions;
}

export function cacheEndpoints({
  cache,
  audit,
}: {
  readonly cache: CacheControls;
  readonly audit: Audit;
}): readonly Endpoint[] {
  return [statsEndpoint(cache.stats), ...timesEndpoints({ ...cache, audit }), purgeEndpoint({ ...cache, audit })];
}
