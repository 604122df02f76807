/**
 * Everything that gateway processes share: keys, quotas, purges, TTLs and cached answers. There are two backends of the
 * same shape: `redis.ts`, and `memory.ts` for a gateway of one process without Redis.
 */
import { hostname } from 'node:os';
import type { Audit, AuditEntry } from '../operations/audit.ts';
import type { Stats } from '../operations/stats/stats.ts';
import type { MaintenanceControl, MaintenanceState } from '../upstream/maintenance.ts';
import type { Erasure, Fleet, Holding } from '../cache/erase.ts';
import type { Changes } from '../cache/changes.ts';
import type { ChangesRoom } from '../changes/open-changes.ts';
import type { MemoryTier } from '../cache/memory-tier.ts';
import type { PurgeLog } from '../cache/purge-log.ts';
import type { SharedCache, SharedCacheAdmin } from '../cache/shared-cache.ts';
import type { TtlControl } from '../cache/ttl-control.ts';
import type { TtlPolicy } from '../cache/ttl-policy.ts';
import type { WhatIf } from '../cache/what-if/what-if.ts';
import type { Clock } from '../time/clock.ts';
import type { Config } from '../config/config.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { Journal } from '../journal/journal.ts';
import type { KeyDirectory, KeyLookup } from '../keys/registry.ts';
import type { RequestLimiter, RequestLimiterOptions } from '../keys/request-limiter.ts';
import type { Logger } from '../log/logger.ts';
import type { QuotaLimiter } from '../quota/limiter.ts';
import type { Store } from './open-store.ts';
import type { InstanceInfo, Instances } from '../redis/instances.ts';
import type { Health } from '../telemetry/health.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import type { RedisHealth, Siblings } from '../telemetry/redis-health.ts';
import type { Timers } from '../time/timers.ts';
import { VERSION } from '../version.ts';

export interface Backend extends ChangesRoom {
  /** Finds the keys of requests: those of the registry and the transient ones. */
  readonly keys: KeyLookup;
  readonly registry: KeyDirectory;
  /** For keys that must end with this process. */
  readonly transientKeys: KeyDirectory;
  readonly quota: QuotaLimiter;
  /** Makes a limit that all processes share. */
  readonly limiter: (options: Omit<RequestLimiterOptions, 'redis'>) => RequestLimiter;
  /** Null without Redis. */
  readonly sharedCache: (SharedCache & SharedCacheAdmin) | null;
  readonly journal: Journal;
  readonly purges: PurgeLog;
  readonly changes: Changes;
  readonly ttlControl: TtlControl;
  /** To be called when other TTLs were configured: stored copies may have to be kept for longer. */
  readonly onTtlsConfigured: () => void;
  /** Goes over to the secrets of that configuration. */
  readonly useSecrets: (loaded: LoadedConfig) => void;
  readonly maintenance: MaintenanceControl;
  readonly audit: Audit;
  readonly whatIf: WhatIf;
  /** For operators, of the last hour. */
  readonly stats: Stats;
  readonly instances: Instances;
  /** The processes that serve together, to be asked what they hold. `answer`: this one's answer. */
  readonly fleet: (answer: (question: Erasure) => Promise<Holding>) => Fleet;
  /** How Redis is doing; null without Redis. */
  readonly redis: RedisHealth | null;
  close(): Promise<void>;
}

export interface BackendOptions {
  readonly config: Config;
  /** Reads the files that a Redis address names, as they were when the configuration was read. */
  readonly readFile: (path: string) => string;
  readonly health: Health;
  readonly metrics: Metrics;
  /** The three parts of this process that the backend keeps up to date with the other processes. */
  readonly memory: MemoryTier;
  readonly ttl: TtlPolicy;
  readonly maintenance: MaintenanceState;
  readonly store: Store;
  /** Null in a gateway of one process. */
  readonly workers: Siblings | null;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly logger: Logger;
}

/** This process's report of itself to the others. */
export function instanceInfo({ clock, store }: Pick<BackendOptions, 'clock' | 'store'>): InstanceInfo {
  return {
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    startedAtMs: clock.nowMs(),
    status: 'starting',
    store: store.identity,
    clockAheadMs: 0,
    forgetsPurges: true,
    usesJournal: true,
  };
}

/** Logs each audited change too: the audit keeps a limited number of them. */
export function auditLog(logger: Logger): (entry: AuditEntry) => void {
  return (entry) =>
    logger.info({ audit: entry }, `changed by ${entry.who === 'evalgate' ? 'evalgate' : 'an operator'}`);
}
