/** Makes the applications of both listeners out of a gateway's parts. */
import type { IncomingMessage } from 'node:http';
import type { AdminOptions } from './admin/app.ts';
import type { Metrics } from './admin/metrics/recorders.ts';
import type { Readiness } from './admin/readiness.ts';
import type { MemoryTier } from './cache/memory-tier.ts';
import { broadcast } from './telemetry/events.ts';
import { createReadThrough } from './cache/read-through.ts';
import type { CachingReader, EvaluationReader } from './cache/reader.ts';
import type { TtlPolicy } from './cache/ttl-policy.ts';
import type { CacheWatch } from './cache-watch.ts';
import type { Clock } from './clock.ts';
import type { Siblings } from './cluster/member.ts';
import { redactedConfig } from './config/effective.ts';
import type { LoadedConfig } from './config/load.ts';
import { originOf } from './config/reload.ts';
import type { DependencyWatch } from './dependencies.ts';
import { createPublicApp, type RequestHandler } from './http/app.ts';
import { createResolver } from './http/explain.ts';
import { docsRouter } from './http/openapi/docs.ts';
import type { OpenApiDocument } from './http/openapi/document.ts';
import { Authenticator } from './keys/authenticate.ts';
import { createClientAddress } from './keys/client-address.ts';
import type { Logger } from './log/logger.ts';
import type { Observer } from './observer.ts';
import type { SharedState } from './shared-state.ts';
import { metricsOfAll, readinessOfAll } from './siblings.ts';
import type { StoreSource } from './store-source.ts';
import type { Tracing } from './tracing/tracing.ts';

/** What a gateway is made of; made once, when it starts. */
export interface Parts {
  /** The configuration that it was started with. */
  readonly loaded: LoadedConfig;
  readonly source: StoreSource;
  readonly metrics: Metrics;
  readonly observer: Observer;
  readonly dependencies: DependencyWatch;
  readonly times: TtlPolicy;
  readonly memory: MemoryTier;
  readonly watch: CacheWatch;
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

export function assembleReader(parts: Parts): CachingReader {
  const { source, shared, memory, times, clock, observer, watch, loaded, tracing } = parts;
  return createReadThrough({
    fetch: source.store.fetch,
    memory,
    fleet: shared.fleet,
    purges: shared.purges,
    times,
    clock,
    hooks: tracing.cache(
      broadcast([observer.cache, shared.insight.whatIf.hooks, shared.insight.history.hooks, watch.hooks]),
    ),
    aroundFlights: (flights) => tracing.flights(flights),
    maintenance: shared.maintenance,
    flightDeadlineMs: loaded.config.upstream.timeoutMs + FLIGHT_MARGIN_MS,
  });
}

export function assemblePublicApp(parts: Parts, reader: EvaluationReader, running: Running): RequestHandler {
  const { clock, observer, shared, loaded, tracing } = parts;
  const { keys, quota } = shared;
  const app = createPublicApp({
    clock,
    reader,
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
    hooks: tracing.http(observer.http),
  });
  return tracing.handler(app);
}

export function assembleAdmin(parts: Parts, reader: Pick<CachingReader, 'flightOf'>, running: Running): AdminOptions {
  const { clock, dependencies, logger, metrics, memory, times, shared, watch, loaded, siblings } = parts;
  const { admin, cache } = loaded.config;
  return {
    tokens: admin.tokens,
    wrongTokens: shared.limiter({ name: 'admin-tokens', points: WRONG_ADMIN_TOKENS_PER_MINUTE, windowSeconds: 60 }),
    addressOf: addressReader(loaded),
    allowedHosts: admin.allowedHosts,
    isReady: () => readinessOfAll({ status: running.status(), dependencies: dependencies.list() }, siblings),
    registry: shared.registry,
    memory,
    shared: shared.fleet?.tier ?? null,
    purges: shared.purges,
    times,
    timesControl: shared.timesControl,
    configuredBy: (cacheClass, time) => originOf(running.loaded(), `cache.classes.${cacheClass}.${time}`),
    maxBytes: cache.memoryBytes,
    maintenance: shared.maintenance,
    resolve: createResolver(),
    inspector: shared.inspector,
    flightOf: (key) => reader.flightOf(key),
    lastMissOf: (key) => watch.lastMisses.of(key),
    stats: watch.stats,
    history: shared.insight.history,
    whatIf: shared.insight.whatIf,
    members: shared.members,
    outdatedLimits: () => running.loaded().config.cache.outdatedLimits,
    config: () => redactedConfig(running.loaded()),
    metrics: siblings === null ? metrics : metricsOfAll(metrics, siblings),
    audit: shared.audit,
    clock,
    log: logger,
  };
}

/** Reads the client's address of a request, with trusted proxies taken into account. */
function addressReader({ config }: LoadedConfig): (ctx: { readonly req: IncomingMessage }) => string {
  const clientAddress = createClientAddress(config.server.trustedProxies);
  return ({ req }) =>
    clientAddress({ remoteAddress: req.socket.remoteAddress, forwardedFor: req.headers['x-forwarded-for'] });
}
