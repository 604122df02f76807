/** /api/cache: what the cache holds and does, its times, purging, maintenance. Every change goes into the audit. */
import { purgeEndpoint, type PurgeEndpointOptions } from './cache-purge-endpoint.ts';
import { statsEndpoint, type StatsEndpointOptions } from './cache-stats-endpoint.ts';
import { ttlEndpoints, type TtlEndpointsOptions } from './cache-ttl-endpoints.ts';
import type { Endpoint } from './endpoint.ts';
import { explainEndpoint, type ExplainEndpointOptions } from './explain-endpoint.ts';
import { maintenanceEndpoints, type MaintenanceEndpointOptions } from './maintenance-endpoint.ts';
import { topEndpoint, type TopEndpointOptions } from './top-endpoint.ts';

/** What operators can see and do of the cache. */
export interface CacheControls
  extends
    Omit<PurgeEndpointOptions, 'audit'>,
    Omit<TtlEndpointsOptions, 'audit' | 'clock'>,
    Omit<MaintenanceEndpointOptions, 'audit' | 'clock'>,
    Pick<ExplainEndpointOptions, 'resolve' | 'explain'>,
    TopEndpointOptions {
  readonly stats: StatsEndpointOptions;
}

export interface CacheEndpointsOptions
  extends Pick<MaintenanceEndpointOptions, 'audit' | 'clock'>, Pick<ExplainEndpointOptions, 'registry'> {
  readonly cache: CacheControls;
}

export function cacheEndpoints({ cache, audit, clock, registry }: CacheEndpointsOptions): readonly Endpoint[] {
  return [
    statsEndpoint(cache.stats),
    topEndpoint(cache),
    explainEndpoint({ ...cache, audit, registry }),
    ...ttlEndpoints({ ...cache, audit, clock }),
    purgeEndpoint({ ...cache, audit }),
    ...maintenanceEndpoints({ ...cache, audit, clock }),
  ];
}
