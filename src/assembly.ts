/** Makes the applications of both listeners out of a gateway's parts. */
import type { IncomingMessage } from 'node:http';
import type { AdminOptions } from './admin/app.ts';
import type { Readiness } from './admin/readiness.ts';
import type { CacheStats } from './admin/stats/cache-stats.ts';
import type { MemoryTier } from './cache/memory-tier.ts';
import { ReadThrough } from './cache/read-through.ts';
import type { Cache } from './cache/reader.ts';
import { UnsharedCache } from './cache/shared-cache.ts';
import type { TtlPolicy } from './cache/ttl-policy.ts';
import type { Clock } from './clock.ts';
import type { Siblings } from './cluster/member.ts';
import { originOf, redactedConfig } from './config/effective.ts';
import type { LoadedConfig } from './config/load.ts';
import { createPublicApp, type RequestHandler } from './http/app.ts';
import { createResolver } from './http/explain.ts';
import { docsRouter } from './http/openapi/docs.ts';
import type { OpenApiDocument } from './http/openapi/document.ts';
import { Authenticator } from './keys/authenticate.ts';
import { createClientAddress } from './keys/client-address.ts';
import type { Logger } from './log/logger.ts';
import type { SharedState } from './shared-state.ts';
import { metricsOfAll, readinessOfAll } from './siblings.ts';
import type { StoreSource } from './store-source.ts';
import { broadcast } from './telemetry/events.ts';
import type { Health } from './telemetry/health.ts';
import { cacheListener, type HttpHooks } from './telemetry/hooks.ts';
import type { Metrics } from './telemetry/metrics.ts';
import type { Tracing } from './tracing/tracing.ts';

/** What a gateway is made of; made once, when it starts. */
export interface Parts {
  /** The configuration that it was started with. */
  readonly loaded: LoadedConfig;
  readonly source: StoreSource;
  readonly metrics: Metrics;
  readonly health: Health;
  readonly hooks: HttpHooks;
  readonly stats: CacheStats;
  readonly times: TtlPolicy;
  readonly memory: MemoryTier;
  readonly shared: SharedState;
  readonly clock: Clock;
  readonly logger: Logger;
  /** The other workers of this gateway; null where it is one process. */
  readonly siblings: Siblings | null;
  readonly tracing: Tracing;
}

/** What changes while it runs. */
export interface Running {
  readonly loaded: () => LoadedConfig;
  readonly document: () => Promise<OpenApiDocument>;
  readonly status: () => Readiness['status'];
}

/** Per address (K9). */
const FAILURES_PER_MINUTE = 60;
/** Requests of one key for its own description (K8a). */
const CURRENT_KEY_PER_MINUTE = 60;
/** Requests per address without a valid admin token. */
const WRONG_ADMIN_TOKENS_PER_MINUTE = 60;
/** How much longer than the store client's own deadline a flight may take. */
const FLIGHT_MARGIN_MS = 5000;

export function assembleCache(parts: Parts): ReadThrough {
  const { source, shared, memory, times, clock, stats, loaded, tracing } = parts;
  return new ReadThrough({
    fetch: source.store.fetch,
    memory,
    sharedCache: shared.sharedCache === null ? new UnsharedCache() : tracing.sharedCache(shared.sharedCache),
    purges: shared.purges,
    times,
    clock,
    events: tracing.cache(
      broadcast([cacheListener(parts), stats.listener, shared.insight.whatIf.hooks, shared.insight.history.hooks]),
    ),
    around: tracing.flight,
    maintenance: shared.maintenance,
    deadlineMs: loaded.config.upstream.timeoutMs + FLIGHT_MARGIN_MS,
  });
}

export function assemblePublicApp(parts: Parts, cache: Cache, running: Running): RequestHandler {
  const { clock, hooks, shared, loaded, tracing } = parts;
  const { keys, quota } = shared;
  const app = createPublicApp({
    clock,
    cache,
    authenticator: new Authenticator({
      registry: keys,
      clock,
      failures: shared.limiter({ name: 'failed-authentications', points: FAILURES_PER_MINUTE, windowSeconds: 60 }),
    }),
    quota,
    currentKeyLimit: shared.limiter({ name: 'current-key', points: CURRENT_KEY_PER_MINUTE, windowSeconds: 60 }),
    defaultLimits: () => running.loaded().config.rateLimit,
    addressOf: addressReader(loaded),
    docs: docsRouter(running.document),
    isDraining: () => running.status() === 'draining',
    deprecations: loaded.config.api.deprecations,
    maxInFlight: loaded.config.server.maxInFlight,
    redisTimeoutMs: loaded.config.redis.timeoutMs,
    hooks: tracing.http(hooks.http),
  });
  return tracing.handler(app);
}

export function assembleAdmin(parts: Parts, reader: Pick<ReadThrough, 'flightOf'>, running: Running): AdminOptions {
  const { clock, logger, metrics, stats, memory, times, shared, loaded, siblings } = parts;
  const { admin, cache } = loaded.config;
  return {
    tokens: admin.tokens,
    wrongTokens: shared.limiter({ name: 'admin-tokens', points: WRONG_ADMIN_TOKENS_PER_MINUTE, windowSeconds: 60 }),
    addressOf: addressReader(loaded),
    allowedHosts: admin.allowedHosts,
    isReady: () => readinessOf(parts, running, siblings),
    registry: shared.registry,
    memory,
    maxBytes: cache.memoryBytes,
    shared: shared.sharedCache,
    purges: shared.purges,
    times,
    timesControl: shared.timesControl,
    configuredBy: (cacheClass, time) => originOf(running.loaded(), `cache.classes.${cacheClass}.${time}`),
    maintenance: shared.maintenance,
    resolve: createResolver(),
    flightOf: (key) => reader.flightOf(key),
    lastMissOf: (key) => stats.lastMisses.of(key),
    stats,
    history: shared.insight.history,
    whatIf: shared.insight.whatIf,
    outdatedLimits: () => running.loaded().config.cache.outdatedLimits,
    members: shared.members,
    config: () => redactedConfig(running.loaded()),
    metrics: siblings === null ? metrics.source : metricsOfAll(metrics, siblings),
    audit: shared.audit,
    clock,
    log: logger,
  };
}

/**
 * How this process is, or with `siblings` how all workers are. Nothing is ready before this process has had an answer from
 * Redis, if there is one, so that a wrong password stops a rollout. Later outages change nothing: they would take all
 * processes out of service at once.
 */
export function readinessOf(
  { health, shared }: Pick<Parts, 'health' | 'shared'>,
  running: Running,
  siblings: Siblings | null,
): Readiness {
  const readiness = readinessOfAll({ status: running.status(), dependencies: health.list() }, siblings);
  const isWaiting = readiness.status === 'ready' && shared.redis?.hasAnswered === false;
  return isWaiting ? { ...readiness, status: 'starting' } : readiness;
}

/** Reads the client's address of a request, with trusted proxies taken into account. */
function addressReader({ config }: LoadedConfig): (ctx: { readonly req: IncomingMessage }) => string {
  const clientAddress = createClientAddress(config.server.trustedProxies);
  return ({ req }) =>
    clientAddress({ remoteAddress: req.socket.remoteAddress, forwardedFor: req.headers['x-forwarded-for'] });
}
