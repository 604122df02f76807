/** What gateway processes share through Redis. */
import { type Audit, RedisAudit } from './admin/audit.ts';
import { ttlEndEntry } from './admin/cache-control.ts';
import { RedisFleet } from './cache/redis-fleet.ts';
import { systemTimers } from './timers.ts';
import { openInsight } from './insight.ts';
import { MemoryRegistry, overlayLookup } from './keys/memory-registry.ts';
import { RedisRegistry } from './keys/redis-registry.ts';
import { createRequestLimiter } from './keys/request-limiter.ts';
import { FailoverLimiter } from './quota/failover.ts';
import { RedisAddressError } from './redis/address.ts';
import { type RedisHooks, RedisLink, type RedisRole } from './redis/connection.ts';
import { type Instances, RedisInstances } from './redis/instances.ts';
import { StartError } from './server.ts';
import { redisCommandHook } from './telemetry/hooks.ts';
import { RedisHealth } from './telemetry/redis-health.ts';
import { logBudget, warnOfOtherStores, warnOfRedis } from './telemetry/redis-warnings.ts';
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
  const redisHealth = new RedisHealth({ ...options, timers: systemTimers, isOne });
  const { state, cache } = openLinks(options, { url, cacheUrl: isOne ? null : cacheUrl }, redisHealth);
  const audit = new RedisAudit({ link: state, clock, sink: auditLog(logger) });
  const caches = await openCaches(options, redisHealth, { state, cache, isOne, audit });
  const registry = new RedisRegistry({
    link: state,
    clock,
    timers: systemTimers,
    graceMs: config.keys.graceMs,
    onBrokenRecord: (error) => logger.error({ err: error }, 'a key in Redis is broken'),
    onSyncState: redisHealth.onKeySync,
  });
  const transientKeys = new MemoryRegistry(clock);
  const members = new RedisInstances({ link: state, about: aboutSelf(options), atLeast: config.server.workers });
  const processes = (): number => members.count();
  warnOfOtherStores({ members, store: options.source.identity, logger, timers: systemTimers });
  const together = { link: state, members, store: options.source.identity };
  const insight = openInsight({ ...options, timers: systemTimers }, together);
  limitStoreCalls(options, state, members);
  const { timeoutMs } = config.redis;
  const limiter = new FailoverLimiter({ link: state, clock, processes, timeoutMs, hooks: redisHealth.quotaHooks });
  const quota = tracing.quota(limiter);
  redisHealth.track({
    links: [state, cache],
    processes,
    graceMs: config.keys.graceMs,
    hasDemoKeys: config.upstream.url === null,
  });
  return {
    keys: overlayLookup(transientKeys, tracing.keys(registry)),
    registry,
    transientKeys,
    quota,
    limiter: (limit) => createRequestLimiter({ ...limit, redis: state }),
    sharedCache: caches.sharedCache,
    purges: caches.purges,
    timesControl: caches.timesControl,
    maintenance: caches.maintenance,
    audit,
    members,
    insight,
    redis: redisHealth,
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

/** The links to both roles. `cacheUrl`: null if one Redis has both. */
function openLinks(
  { config, metrics, logger }: SharedStateOptions,
  { url, cacheUrl }: { readonly url: string; readonly cacheUrl: string | null },
  redisHealth: RedisHealth,
): { readonly state: RedisLink; readonly cache: RedisLink } {
  const hooks = { onDown: redisHealth.onDown, onCommand: redisCommandHook(metrics) };
  const { timeoutMs } = config.redis;
  const state = connect('state', { url, timeoutMs, hooks });
  const cache = connect('cache', { url: cacheUrl ?? url, timeoutMs, hooks });
  // A request that waited for one of them does not wait for the other too (R6).
  state.onTimeout(() => void cache.doubt());
  const hasCacheBudget = config.cache.redisBytes !== null;
  warnOfRedis({ state, cache: cacheUrl === null ? null : cache, hasCacheBudget, logger });
  return { state, cache };
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
  { config, memory, times, maintenance, source, clock, logger }: SharedStateOptions,
  redisHealth: RedisHealth,
  {
    state,
    cache,
    isOne,
    audit,
  }: { readonly state: RedisLink; readonly cache: RedisLink; readonly isOne: boolean; readonly audit: Audit },
): Promise<RedisFleet> {
  return RedisFleet.open({
    state,
    cache,
    isOne,
    maxBytes: config.cache.redisBytes,
    store: source.identity,
    memory,
    times,
    maintenance,
    clock,
    timers: systemTimers,
    hooks: {
      onFailed: ({ operation, error }) =>
        logger.warn({ operation, err: error }, 'the cache Redis holds what cannot be read'),
      onHearing: ({ role, hearing }) => redisHealth.onConnectivity(role, hearing),
      onTtlEnd: (end) => void audit.record(ttlEndEntry(end)),
      onBudget: (excess) => {
        redisHealth.onBudget(excess);
        logBudget(logger, excess);
      },
    },
  });
}

function connect(
  role: RedisRole,
  redis: { readonly url: string; readonly timeoutMs: number; readonly hooks: RedisHooks },
): RedisLink {
  try {
    return new RedisLink({ ...redis, role });
  } catch (error) {
    if (!(error instanceof RedisAddressError)) throw error;
    throw new StartError(`${role === 'state' ? 'REDIS_URL' : 'REDIS_CACHE_URL'}: ${error.message}.`);
  }
}
