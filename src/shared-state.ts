/**
 * What gateway processes share: keys, quotas, purges, cache times and cached answers. In Redis where there is one; else
 * in the memory of this process, which is then alone.
 */
import { hostname } from 'node:os';
import { type Audit, type AuditEntry } from './admin/audit.ts';
import { type MaintenanceControl, type MaintenanceState } from './cache/maintenance.ts';
import type { MemoryTier } from './cache/memory-tier.ts';
import { type PurgeLog } from './cache/purge-log.ts';
import type { SharedCache, SharedCacheAdmin } from './cache/shared-cache.ts';
import type { TtlControl, TtlPolicy } from './cache/ttl-policy.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import { type Insight } from './insight.ts';
import type { KeyDirectory, KeyLookup } from './keys/key.ts';
import type { RequestLimiter, RequestLimiterOptions } from './keys/request-limiter.ts';
import type { Logger } from './log/logger.ts';
import type { QuotaLimiter } from './quota/limiter.ts';
import type { InstanceInfo } from './redis/instances.ts';
import type { Instances } from './redis/instances.ts';
import type { StoreSource } from './store-source.ts';
import type { Health } from './telemetry/health.ts';
import type { Metrics } from './telemetry/metrics.ts';
import type { RedisHealth } from './telemetry/redis-health.ts';
import type { Tracing } from './tracing/tracing.ts';
import { VERSION } from './version.ts';

export interface SharedState {
  /** Finds the keys of requests, wherever they are kept. */
  readonly keys: KeyLookup;
  readonly registry: KeyDirectory;
  /** For keys that must end with this process. */
  readonly transientKeys: KeyDirectory;
  readonly quota: QuotaLimiter;
  /** Makes limits that all processes share. */
  readonly limiter: (options: Omit<RequestLimiterOptions, 'redis'>) => RequestLimiter;
  /** Null for a gateway that is alone. */
  readonly sharedCache: (SharedCache & SharedCacheAdmin) | null;
  readonly purges: PurgeLog;
  readonly timesControl: TtlControl;
  readonly maintenance: MaintenanceControl;
  readonly audit: Audit;
  readonly members: Instances;
  readonly insight: Insight;
  /** How Redis is doing; null where there is none. */
  readonly redis: RedisHealth | null;
  close(): Promise<void>;
}

export interface SharedStateOptions {
  readonly config: Config;
  readonly health: Health;
  readonly metrics: Metrics;
  /** This process's, which a fleet keeps true. */
  readonly memory: MemoryTier;
  readonly times: TtlPolicy;
  /** Of this process. */
  readonly maintenance: MaintenanceState;
  readonly source: StoreSource;
  readonly tracing: Tracing;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What this process tells the others of itself. */
export function aboutSelf({ clock, source }: SharedStateOptions): InstanceInfo {
  const startedAtMs = clock.nowMs();
  const { pid } = process;
  return { host: hostname(), pid, version: VERSION, startedAtMs, status: 'starting', store: source.identity };
}

/** The log has every change as well, for good. */
export function auditLog(logger: Logger): (entry: AuditEntry) => void {
  return (entry) => logger.info({ audit: entry }, 'changed by an operator');
}
