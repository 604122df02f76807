/** What gateway processes share through Redis. */
import { type Audit, RedisAudit } from './admin/audit.ts';
import { ttlEndEntry } from './admin/cache-control.ts';
import { openRedisFleet, type RedisFleet } from './cache/redis-fleet.ts';
import { systemTimers } from './timers.ts';
import { openInsight } from './insight.ts';
import { MemoryRegistry, overlayLookup } from './keys/memory-registry.ts';
import { RedisRegistry } from './keys/redis-registry.ts';
import { createRequestLimiter } from './keys/request-limiter.ts';
import { FailoverLimiter } from './quota/failover.ts';
import { RedisAddressError } from './redis/address.ts';
import { RedisLink, type RedisRole } from './redis/connection.ts';
import { type Instances, RedisInstances } from './redis/instances.ts';
import { RedisReadings } from './redis-readings.ts';
import { warnOfOtherStores, warnOfRedis } from './redis-warnings.ts';
import { RedisWatch } from './redis-watch.ts';
import { StartError } from './server.ts';
import { createRedisCallRate } from './upstream/redis-call-rate.ts';
import { aboutSelf, auditLog, type SharedState, type SharedStateOptions } from './shared-state.ts';

/** What the processes over one Redis share. */
export async function openFleet(
  options: SharedStateOptions,
  url: string,
  cacheUrl: string | null,
): Promise<SharedState> {
  const { config, tracing, clock, logger } = options;
  const isOne = cacheUrl === null || cacheUrl === url;
  const watch = new RedisWatch({ ...options, isOne });
  const { timeoutMs } = config.redis;
  const state = connect('state', { url, timeoutMs }, watch);
  const cache = connect('cache', { url: cacheUrl ?? url, timeoutMs }, watch);
  // A request that waited for one of them does not wait for the other too (R6).
  state.onTimeout(() => void cache.doubt());
  warnOfRedis({ state, cache: isOne ? null : cache, logger });
  const audit = new RedisAudit({ link: state, clock, sink: auditLog(logger) });
  const caches = await openCaches(options, watch, { state, cache, audit });
  const registry = new RedisRegistry({
    link: state,
    clock,
    timers: systemTimers,
    graceMs: config.keys.graceMs,
    onBrokenRecord: (error) => logger.error({ err: error }, 'a key in Redis is broken'),
    onSyncState: watch.onKeySync,
  });
  const transientKeys = new MemoryRegistry(clock);
  const members = new RedisInstances({ link: state, about: aboutSelf(options), atLeast: config.server.workers });
  warnOfOtherStores({ members, store: options.source.identity, logger, timers: systemTimers });
  const together = { link: state, members, store: options.source.identity };
  const insight = openInsight({ ...options, timers: systemTimers }, together);
  limitStoreCalls(options, state, members);
  const quota = tracing.quota(
    new FailoverLimiter({ link: state, clock, processes: () => members.count(), timeoutMs, hooks: watch.quotaHooks }),
  );
  watch.watch({ caches, processes: () => members.count(), graceMs: config.keys.graceMs });
  return {
    keys: overlayLookup(transientKeys, tracing.keys(registry)),
    registry,
    transientKeys,
    quota,
    limiter: (limit) => createRequestLimiter({ ...limit, redis: state }),
    fleet: tracing.fleet(caches.fleet),
    purges: caches.purges,
    timesControl: caches.timesControl,
    maintenance: caches.maintenance,
    inspector: caches.inspector,
    audit,
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
function limitStoreCalls({ config, source, clock }: SharedStateOptions, link: RedisLink, members: Instances): void {
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
  { state, cache, audit }: { readonly state: RedisLink; readonly cache: RedisLink; readonly audit: Audit },
): Promise<RedisFleet> {
  return openRedisFleet({
    state,
    cache,
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
      onTtlEnd: (end) => void audit.record(ttlEndEntry(end)),
    },
  });
}

function connect(
  role: RedisRole,
  redis: { readonly url: string; readonly timeoutMs: number },
  watch: RedisWatch,
): RedisLink {
  try {
    return new RedisLink({ ...redis, role, hooks: watch.linkHooks });
  } catch (error) {
    if (!(error instanceof RedisAddressError)) throw error;
    throw new StartError(`${role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL'}: ${error.message}.`);
  }
}
