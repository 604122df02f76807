/**
 * What gateway processes share: keys, quotas, purges, cache times and cached answers. In Redis where there is one; else
 * in the memory of this process, which is then alone.
 */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { type Audit, AUDIT_CAPACITY, type AuditEntry, createAudit } from './admin/audit.ts';
import type { Metrics } from './admin/metrics/recorders.ts';
import type { FleetInspector } from './cache/explain.ts';
import { maintenanceGate } from './cache/maintenance-gate.ts';
import { LocalMaintenance, type MaintenanceControl, type MaintenanceState } from './cache/maintenance.ts';
import type { MemoryTier } from './cache/memory-tier.ts';
import type { Fleet } from './cache/ports.ts';
import { MemoryPurgeLog, type PurgeLog } from './cache/purge-log.ts';
import { openRedisFleet, type RedisFleet } from './cache/redis-fleet.ts';
import { systemTimers } from './timers.ts';
import { LocalTimesControl, type TimesControl } from './cache/times-control.ts';
import type { AdjustableTimes } from './cache/times.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import { type Insight, openInsight } from './insight.ts';
import type { DependencyWatch } from './dependencies.ts';
import type { KeyDirectory, KeyLookup } from './keys/key.ts';
import { createMemoryRegistry } from './keys/memory-registry.ts';
import { overlayLookup } from './keys/overlay-lookup.ts';
import { createRedisRegistry } from './keys/redis-registry.ts';
import { createUpstreamKeySource } from './keys/upstream-source.ts';
import type { Logger } from './log/logger.ts';
import { createMemoryQuota } from './quota/memory-quota.ts';
import type { Quota } from './quota/quota.ts';
import { openFleetQuota } from './quota/redis-open.ts';
import { openRedis, type RedisLink, type RedisRole } from './redis/link.ts';
import type { AboutMember } from './redis/member.ts';
import { aloneMembers, createMembers, type Members } from './redis/members.ts';
import { createRedisAudit } from './admin/redis-audit.ts';
import { severalRedisFault } from './redis/faults.ts';
import { RedisReadings } from './redis-readings.ts';
import { warnOfOtherStores, warnOfRedis } from './redis-warnings.ts';
import { RedisWatch } from './redis-watch.ts';
import { StartError } from './start-error.ts';
import type { StoreSource } from './store-source.ts';
import { createRedisCallRate } from './upstream/guard/redis-call-rate.ts';
import { VERSION } from './version.ts';

export interface SharedState {
  /** Finds the keys of requests, wherever they are kept. */
  readonly keys: KeyLookup;
  readonly registry: KeyDirectory;
  /** For keys that must end with this process. */
  readonly transientKeys: KeyDirectory;
  readonly quota: Quota;
  /** Null for a gateway that is alone. */
  readonly fleet: Fleet | null;
  readonly purges: PurgeLog;
  readonly timesControl: TimesControl;
  readonly maintenance: MaintenanceControl;
  /** Null for a gateway that is alone. */
  readonly inspector: FleetInspector | null;
  readonly audit: Audit;
  readonly members: Members;
  readonly insight: Insight;
  /** How Redis is doing; null where there is none. */
  readonly redis: RedisReadings | null;
  close(): Promise<void>;
}

export interface SharedStateOptions {
  readonly config: Config;
  readonly dependencies: DependencyWatch;
  readonly metrics: Metrics;
  /** This process's, which a fleet keeps true. */
  readonly memory: MemoryTier;
  readonly times: AdjustableTimes;
  /** Of this process. */
  readonly maintenance: MaintenanceState;
  readonly source: StoreSource;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A Redis that can't be reached keeps no gateway from starting: it is joined when it comes. Throws a StartError. */
export async function openSharedState(options: SharedStateOptions): Promise<SharedState> {
  const { redis } = options.config;
  const state = redis.url === null ? openAlone(options) : await openFleet(options, redis.url, redis.cacheUrl);
  return { ...state, keys: withStoreKeys(state.keys, options) };
}

function openAlone(options: SharedStateOptions): SharedState {
  const { clock, times, maintenance, logger } = options;
  const registry = createMemoryRegistry({ clock });
  return {
    keys: registry,
    registry,
    transientKeys: registry,
    quota: createMemoryQuota({ clock }),
    fleet: null,
    purges: new MemoryPurgeLog(),
    timesControl: new LocalTimesControl(times),
    maintenance: new LocalMaintenance(maintenance),
    inspector: null,
    audit: createAudit({ clock, capacity: AUDIT_CAPACITY, sink: auditLog(logger) }),
    members: aloneMembers(aboutSelf(options)),
    insight: openInsight({ ...options, timers: systemTimers }, null),
    redis: null,
    close: async () => {},
  };
}

async function openFleet(options: SharedStateOptions, url: string, cacheUrl: string | null): Promise<SharedState> {
  const { config, clock, logger } = options;
  const isOne = cacheUrl === null || cacheUrl === url;
  const watch = new RedisWatch({ ...options, isOne });
  const state = connect('state', url, watch);
  const cache = connect('cache', cacheUrl ?? url, watch);
  warnOfRedis({ state, cache: isOne ? null : cache, logger });
  const caches = await openCaches(options, watch, { state, cache });
  const registry = createRedisRegistry({
    link: state,
    clock,
    graceMs: config.keys.graceMs,
    hooks: {
      onBrokenRecord: (error) => logger.error({ err: error }, 'a key in Redis is broken'),
      onTrust: watch.onTrust,
    },
  });
  const transientKeys = createMemoryRegistry({ clock });
  const members = createMembers({ link: state, about: aboutSelf(options), atLeast: config.server.workers });
  warnOfOtherStores({ members, store: options.source.identity, logger, timers: systemTimers });
  const together = { link: state, members, store: options.source.identity };
  const insight = openInsight({ ...options, timers: systemTimers }, together);
  limitStoreCalls(options, state, members);
  const quota = openFleetQuota({ link: state, clock, members, hooks: watch.quotaHooks });
  watch.watch({ caches, processes: () => members.count(), graceMs: config.keys.graceMs });
  return {
    keys: overlayLookup(transientKeys, registry),
    registry,
    transientKeys,
    quota,
    fleet: caches.fleet,
    purges: caches.purges,
    timesControl: caches.timesControl,
    maintenance: caches.maintenance,
    inspector: caches.inspector,
    audit: createRedisAudit({ link: state, clock, capacity: AUDIT_CAPACITY, sink: auditLog(logger) }),
    members,
    insight,
    redis: new RedisReadings([state, cache], watch),
    close: async () => {
      caches.close();
      await registry.close();
      quota.close();
      await insight.close();
      await members.close();
      await state.close();
      await cache.close();
    },
  };
}

/** Without Redis a process limits its own calls alone. */
function limitStoreCalls({ config, source, clock }: SharedStateOptions, link: RedisLink, members: Members): void {
  const { maxRequestsPerSecond } = config.upstream;
  if (maxRequestsPerSecond === null) return;
  const rate = createRedisCallRate({
    link,
    store: source.identity,
    perSecond: maxRequestsPerSecond,
    processes: () => members.count(),
    clock,
    timers: systemTimers,
  });
  source.store.limitBy(rate);
}

function openCaches(
  { memory, times, maintenance, source, clock, logger }: SharedStateOptions,
  watch: RedisWatch,
  links: { readonly state: RedisLink; readonly cache: RedisLink },
): Promise<RedisFleet> {
  return openRedisFleet({
    ...links,
    store: source.identity,
    memory,
    times,
    maintenance,
    clock,
    timers: systemTimers,
    hooks: {
      onFailed: ({ operation, error }) =>
        logger.warn({ operation, err: error }, 'the cache Redis holds what cannot be read'),
      onHearing: watch.onHearing,
    },
  });
}

function aboutSelf({ clock, source }: SharedStateOptions): AboutMember {
  const startedAtMs = clock.nowMs();
  const { pid } = process;
  return { host: hostname(), pid, version: VERSION, startedAtMs, status: 'starting', store: source.identity };
}

/** The log has every change as well, for good. */
function auditLog(logger: Logger): (entry: AuditEntry) => void {
  return (entry) => logger.info({ audit: entry }, 'changed by an operator');
}

function connect(role: RedisRole, url: string, watch: RedisWatch): RedisLink {
  const setting = role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL';
  const fault = severalRedisFault(url);
  if (fault !== null) throw new StartError(`${setting}: ${fault}.`);
  return openRedis({ url, role, hooks: watch.linkHooks });
}

/** With `KEYS_SOURCE=upstream` a key that the registry doesn't know is asked of the store. */
function withStoreKeys(keys: KeyLookup, { config, source, maintenance, clock }: SharedStateOptions): KeyLookup {
  if (config.keys.source === 'registry') return keys;
  const gate = maintenanceGate(maintenance, clock);
  return createUpstreamKeySource({
    registry: keys,
    clock,
    graceMs: config.keys.graceMs,
    lookUp: async (hash) => {
      const answer = await gate(() => source.store.apiKey(hash, { requestId: randomUUID() }));
      if (answer.kind === 'found') return answer.record;
      return null;
    },
  });
}
