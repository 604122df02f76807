/**
 * What gateway processes share: keys, quotas, purges, cache times and cached answers. In Redis where there is one; else
 * in the memory of this process, which is then alone.
 */
import { randomUUID } from 'node:crypto';
import { type Audit, type AuditEntry, createAudit } from './admin/audit.ts';
import type { Dependency } from './admin/readiness.ts';
import type { MemoryTier } from './cache/memory-tier.ts';
import type { Fleet } from './cache/ports.ts';
import { MemoryPurgeLog, type PurgeLog } from './cache/purge-log.ts';
import { openRedisFleet, type RedisFleet } from './cache/redis-fleet.ts';
import { systemTimers } from './cache/timers.ts';
import { LocalTimesControl, type TimesControl } from './cache/times-control.ts';
import type { AdjustableTimes } from './cache/times.ts';
import type { Clock } from './clock.ts';
import type { Config } from './config/config.ts';
import type { KeyDirectory, KeyLookup } from './keys/key.ts';
import { createMemoryRegistry } from './keys/memory-registry.ts';
import { overlayLookup } from './keys/overlay-lookup.ts';
import { createRedisRegistry } from './keys/redis-registry.ts';
import { createUpstreamKeySource } from './keys/upstream-source.ts';
import type { Logger } from './log/logger.ts';
import { createMemoryQuota } from './quota/memory-quota.ts';
import type { Quota } from './quota/quota.ts';
import { type FleetQuota, openFleetQuota } from './quota/redis-open.ts';
import { openRedis, type RedisLink, type RedisRole } from './redis/link.ts';
import { createRedisAudit } from './admin/redis-audit.ts';
import { severalRedisFault } from './redis/faults.ts';
import { warnOfRedisSettings } from './redis/settings.ts';
import { StartError } from './start-error.ts';
import type { StoreSource } from './store-source.ts';

const AUDIT_CAPACITY = 1000;

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
  readonly audit: Audit;
  /** How Redis is doing; nothing where there is none. */
  dependencies(): readonly Dependency[];
  close(): Promise<void>;
}

export interface SharedStateOptions {
  readonly config: Config;
  /** This process's, which a fleet keeps true. */
  readonly memory: MemoryTier;
  readonly times: AdjustableTimes;
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

function openAlone({ clock, times, logger }: SharedStateOptions): SharedState {
  const registry = createMemoryRegistry({ clock });
  return {
    keys: registry,
    registry,
    transientKeys: registry,
    quota: createMemoryQuota({ clock }),
    fleet: null,
    purges: new MemoryPurgeLog(),
    timesControl: new LocalTimesControl(times),
    audit: createAudit({ clock, capacity: AUDIT_CAPACITY, sink: auditLog(logger) }),
    dependencies: () => [],
    close: async () => {},
  };
}

async function openFleet(options: SharedStateOptions, url: string, cacheUrl: string | null): Promise<SharedState> {
  const { config, clock, logger } = options;
  const state = connect('state', url, logger);
  warnOfRedisSettings(state, (warning) => logger.warn(warning), cacheUrl === null ? 'both' : 'state');
  const cache = connect('cache', cacheUrl ?? url, logger);
  const caches = await openCaches(options, { state, cache });
  const registry = createRedisRegistry({
    link: state,
    clock,
    graceMs: config.keys.graceMs,
    hooks: { onBrokenRecord: (error) => logger.error({ err: error }, 'a key in Redis is broken') },
  });
  const transientKeys = createMemoryRegistry({ clock });
  const quota = openQuota(state, options);
  return {
    keys: overlayLookup(transientKeys, registry),
    registry,
    transientKeys,
    quota,
    fleet: caches.fleet,
    purges: caches.purges,
    timesControl: caches.timesControl,
    audit: createRedisAudit({ link: state, clock, capacity: AUDIT_CAPACITY, sink: auditLog(logger) }),
    dependencies: () => caches.health(),
    close: async () => {
      caches.close();
      await registry.close();
      await quota.close();
      await state.close();
      await cache.close();
    },
  };
}

function openCaches(
  { memory, times, source, clock, logger }: SharedStateOptions,
  links: { readonly state: RedisLink; readonly cache: RedisLink },
): Promise<RedisFleet> {
  return openRedisFleet({
    ...links,
    store: source.identity,
    memory,
    times,
    clock,
    timers: systemTimers,
    hooks: {
      onFailed: ({ operation, error }) =>
        logger.warn({ operation, err: error }, 'the cache Redis holds what cannot be read'),
      onHearing: ({ role, hearing }) => {
        if (hearing === 'deaf') logger.warn({ role }, 'messages do not arrive: nothing is served from memory');
        if (hearing === 'hearing') logger.info({ role }, 'messages arrive');
      },
    },
  });
}

function openQuota(link: RedisLink, { config, clock, logger }: SharedStateOptions): FleetQuota {
  return openFleetQuota({
    link,
    clock,
    atLeast: config.server.workers,
    hooks: {
      onAlone: (reason) => logger.warn({ err: reason }, 'quotas: this process goes on with its share of the limits'),
      onShared: () => logger.info('quotas: exact over all processes again'),
    },
  });
}

/** The log has every change as well, for good. */
function auditLog(logger: Logger): (entry: AuditEntry) => void {
  return (entry) => logger.info({ audit: entry }, 'changed by an operator');
}

function connect(role: RedisRole, url: string, logger: Logger): RedisLink {
  const setting = role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL';
  const fault = severalRedisFault(url);
  if (fault !== null) throw new StartError(`${setting}: ${fault}.`);
  return openRedis({
    url,
    role,
    hooks: {
      onUp: () => logger.info({ role }, 'Redis answers'),
      onDown: (_, reason) => logger.warn({ role, err: reason }, 'Redis does not answer'),
    },
  });
}

/** With `KEYS_SOURCE=upstream` a key that the registry doesn't know is asked of the store. */
function withStoreKeys(keys: KeyLookup, { config, source, clock }: SharedStateOptions): KeyLookup {
  if (config.keys.source === 'registry') return keys;
  return createUpstreamKeySource({
    registry: keys,
    clock,
    graceMs: config.keys.graceMs,
    lookUp: async (hash) => {
      const answer = await source.store.apiKey(hash, { requestId: randomUUID() });
      if (answer.kind === 'found') return answer.record;
      return null;
    },
  });
}
