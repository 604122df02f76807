/** The composition root: a configuration in, a running gateway out. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AdminOptions } from './admin/app.ts';
import type { Readiness } from './admin/readiness.ts';
import { startAdminServer } from './admin/server.ts';
import { CacheStats } from './admin/stats/cache-stats.ts';
import type { Backend, BackendOptions } from './backend/backend.ts';
import { memoryBackend } from './backend/memory.ts';
import { openRedisBackend } from './backend/redis.ts';
import { maintenanceGate } from './cache/maintenance.ts';
import { MemoryTier } from './cache/memory-tier.ts';
import { ReadThrough } from './cache/read-through.ts';
import { UnsharedCache } from './cache/shared-cache.ts';
import { TtlPolicy } from './cache/ttl-policy.ts';
import { type Clock, systemClock } from './clock.ts';
import { originOf, redactedConfig, reload } from './config/effective.ts';
import type { LoadedConfig } from './config/load.ts';
import type { DemoAnnouncement, StoreAddress } from './demo.ts';
import { createPublicApp, type RequestHandler } from './http/app.ts';
import { createResolver } from './http/explain.ts';
import { docsRouter } from './http/openapi/docs.ts';
import type { OpenApiDocument } from './http/openapi/document.ts';
import { errorBody } from './http/problem.ts';
import { Authenticator } from './keys/authenticate.ts';
import { createClientAddress } from './keys/client-address.ts';
import type { ImportedKey, KeyLookup } from './keys/key.ts';
import { StoreLookup } from './keys/store-lookup.ts';
import type { Logger } from './log/logger.ts';
import { ADMIN_GRACE_MS, IN_FLIGHT_GRACE_MS, listen, type Listener, StartError } from './server.ts';
import { openStore } from './store.ts';
import { trackMaintenance } from './telemetry/dependencies.ts';
import { broadcast } from './telemetry/events.ts';
import { registerGauges } from './telemetry/gauges.ts';
import { Health } from './telemetry/health.ts';
import { cacheListener, type HttpHooks, httpHooks, storeHooks } from './telemetry/hooks.ts';
import { Metrics } from './telemetry/metrics.ts';
import { systemTimers } from './timers.ts';
import { type Tracing, UNTRACED } from './tracing/tracing.ts';
import { apiKey } from './upstream/resources.ts';
import { VERSION } from './version.ts';

export interface Gateway {
  /** The address for consumers, such as `http://127.0.0.1:8080`. */
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** Null in front of a real store, and in a worker. */
  readonly demo: DemoAnnouncement | null;
  /** Takes over what can be changed while it runs; returns the settings that need a restart to change. */
  reload(loaded: LoadedConfig): readonly string[];
  /** Counts a new configuration that is invalid: the old one stays in force. */
  reloadFailed(): void;
  /** The metrics of this process, for the process that adds up those of all workers. */
  ownMetrics(): Promise<unknown>;
  /**
   * Not ready from now on; goes on accepting for `delayMs`, asking each connection to close; then lets requests in flight
   * finish, 30 s at most. A second call waits for the first one's end.
   */
  stop(delayMs: number): Promise<void>;
}

export interface GatewayOptions {
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Set for one of several workers. */
  readonly worker?: WorkerOptions;
}

export interface WorkerOptions {
  readonly workers: Workers;
  /** The sample store that all workers share, and the keys to it; null in front of a real store. */
  readonly sample: (StoreAddress & { readonly keys: readonly ImportedKey[] }) | null;
}

/** How all workers of a gateway are doing, for each of them. */
export interface Workers {
  /** How many are ready, of how many there are to be, since when (Unix milliseconds). */
  status(): { readonly ready: number; readonly wanted: number; readonly sinceMs: number };
  /** The metrics of all as one Prometheus text. Rejects if the first process does not answer in time. */
  metrics(): Promise<string>;
}

/** Failed authentications per address (K9). */
const AUTHENTICATION_LIMIT = { name: 'failed-authentications', points: 60, windowSeconds: 60 };
/** Requests of one key for its own description (K8a). */
const CURRENT_KEY_LIMIT = { name: 'current-key', points: 60, windowSeconds: 60 };
/** Requests per address without a valid admin token. */
const ADMIN_TOKEN_LIMIT = { name: 'admin-tokens', points: 60, windowSeconds: 60 };
/** How much longer than the store client's own deadline a flight may take. */
const FLIGHT_MARGIN_MS = 5000;

/** Rejects with a StartError if an address can't be used; nothing is left running then. */
export async function startGateway(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { clock = systemClock, logger, worker = null } = options;
  const { config } = loaded;
  const metrics = new Metrics(VERSION);
  const health = new Health({ clock, logger });
  const stats = new CacheStats(clock);
  const reporting = { metrics, health, clock, logger };
  const hooks = { ...storeHooks(reporting), ...httpHooks(reporting) };
  const ttl = new TtlPolicy(clock, config.cache.classes);
  const maintenance = trackMaintenance(health, clock, systemTimers);
  const memory = new MemoryTier({ maxBytes: config.cache.memoryBytes });
  const tracing = await openTracing(loaded, logger);
  const sample = worker?.sample ?? null;
  const store = await openStore({ upstream: config.upstream, hooks, tracing, sample, maintenance, clock });
  const parts = { config, health, metrics, memory, ttl, maintenance, store, tracing, clock, logger };
  const backend = await openBackend(parts).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  const gateway = new RunningGateway({ ...parts, loaded, hooks, stats, backend, workers: worker?.workers ?? null });
  try {
    await backend.transientKeys.importKeys(sample?.keys ?? []);
    await gateway.start();
  } catch (error) {
    await gateway.stop(0);
    throw error;
  }
  return gateway;
}

/** The parts of a gateway; made once, when it starts. */
interface Parts extends BackendOptions {
  /** The configuration that it was started with. */
  readonly loaded: LoadedConfig;
  readonly hooks: HttpHooks;
  readonly stats: CacheStats;
  readonly backend: Backend;
  /** Null in a gateway of one process. */
  readonly workers: Workers | null;
}

class RunningGateway implements Gateway {
  readonly #parts: Parts;
  #loaded: LoadedConfig;
  /** Made at the first request for it. */
  #document: Promise<OpenApiDocument> | null = null;
  #status: Readiness['status'] = 'starting';
  #public: Listener | null = null;
  #admin: Listener | null = null;
  #demo: DemoAnnouncement | null = null;
  #stopping: Promise<void> | null = null;

  constructor(parts: Parts) {
    const { metrics, memory, store, backend, config, clock } = parts;
    this.#parts = parts;
    this.#loaded = parts.loaded;
    registerGauges(metrics, {
      readiness: () => this.#readiness(null),
      memory: () => memory.usage(),
      memoryLimitBytes: config.cache.memoryBytes,
      isMaintenanceOn: () => backend.maintenance.current() !== null,
      connections: () => ({ public: this.#public?.connections() ?? 0, admin: this.#admin?.connections() ?? 0 }),
      guard: () => store.guard.status(),
      processes: () => backend.instances.count(),
      redis: backend.redis,
    });
    metrics.configReadAt.set(clock.nowMs() / 1000);
  }

  get publicUrl(): string {
    return this.#public?.url ?? '';
  }

  get adminUrl(): string {
    return this.#admin?.url ?? '';
  }

  get demo(): DemoAnnouncement | null {
    return this.#demo;
  }

  async start(): Promise<void> {
    const { config, hooks, store, backend, logger } = this.#parts;
    const { admin, server } = config;
    const cache = this.#createCache();
    const [adminListener, publicListener] = await Promise.allSettled([
      startAdminServer(this.#adminOptions(cache), admin),
      listen(this.#publicApp(cache), server, {
        errorBody: (message, target) => errorBody(target?.split('?')[0] ?? '', 400, message),
        maxConnections: server.maxConnections,
        maxConnectionsPerAddress: server.maxConnectionsPerAddress,
        hooks: hooks.listener,
      }),
    ]);
    if (adminListener.status === 'fulfilled') this.#admin = adminListener.value;
    if (publicListener.status === 'fulfilled') this.#public = publicListener.value;
    throwIfFailed([publicListener, adminListener]);
    this.#demo = (await store.demo?.(backend.transientKeys, this.publicUrl)) ?? null;
    this.#become('ready');
    logger.info(this.#startedLine(), 'started');
  }

  reload(loaded: LoadedConfig): readonly string[] {
    const { ttl, metrics, backend, clock, logger } = this.#parts;
    const { inForce, needRestart } = reload(this.#loaded, loaded);
    this.#loaded = inForce;
    this.#document = null;
    if (ttl.configure(loaded.config.cache.classes)) backend.onTtlsConfigured();
    logger.level = loaded.config.log.level;
    metrics.configReloads.inc({ result: 'success' });
    metrics.configReadAt.set(clock.nowMs() / 1000);
    return needRestart;
  }

  reloadFailed(): void {
    this.#parts.metrics.configReloads.inc({ result: 'failure' });
  }

  ownMetrics(): Promise<unknown> {
    return this.#parts.metrics.registry.getMetricsAsJSON();
  }

  stop(delayMs: number): Promise<void> {
    this.#stopping ??= this.#drain(delayMs);
    return this.#stopping;
  }

  async #drain(delayMs: number): Promise<void> {
    const { store, backend, tracing, metrics } = this.#parts;
    this.#become('draining');
    await sleep(delayMs);
    await this.#public?.close(IN_FLIGHT_GRACE_MS);
    await this.#admin?.close(ADMIN_GRACE_MS);
    await store.close();
    await backend.close();
    await tracing.close();
    metrics.close();
  }

  #become(status: 'ready' | 'draining'): void {
    this.#status = status;
    this.#parts.backend.instances.setStatus(status);
  }

  #createCache(): ReadThrough {
    const { config, memory, ttl, tracing, store, backend, stats, clock } = this.#parts;
    const { sharedCache, purges, maintenance, whatIf, history } = backend;
    return new ReadThrough({
      fetch: store.guard.fetch,
      memory,
      sharedCache: sharedCache === null ? new UnsharedCache() : tracing.sharedCache(sharedCache),
      purges,
      times: ttl,
      clock,
      events: tracing.cache(broadcast([cacheListener(this.#parts), stats.listener, whatIf.hooks, history.hooks])),
      around: tracing.flight,
      maintenance,
      deadlineMs: config.upstream.timeoutMs + FLIGHT_MARGIN_MS,
    });
  }

  #publicApp(cache: ReadThrough): RequestHandler {
    const { config, tracing, backend, hooks, clock } = this.#parts;
    const failures = backend.limiter(AUTHENTICATION_LIMIT);
    const app = createPublicApp({
      clock,
      cache,
      authenticator: new Authenticator({ registry: keyLookup(this.#parts), clock, failures }),
      quota: backend.quota,
      currentKeyLimit: backend.limiter(CURRENT_KEY_LIMIT),
      defaultLimits: () => this.#loaded.config.rateLimit,
      addressOf: addressReader(config.server.trustedProxies),
      docs: docsRouter(() => (this.#document ??= openApiDocument(this.#loaded))),
      isDraining: () => this.#status === 'draining',
      deprecations: config.api.deprecations,
      maxInFlight: config.server.maxInFlight,
      redisTimeoutMs: config.redis.timeoutMs,
      hooks: tracing.http(hooks.http),
    });
    return tracing.handler(app);
  }

  #adminOptions(cache: ReadThrough): AdminOptions {
    const { config, memory, ttl, backend, metrics, workers, stats, clock, logger } = this.#parts;
    const { registry, audit, sharedCache, purges, ttlControl, maintenance, whatIf, history, instances } = backend;
    const ownMetrics = metrics.source;
    return {
      tokens: config.admin.tokens,
      wrongTokens: backend.limiter(ADMIN_TOKEN_LIMIT),
      addressOf: addressReader(config.server.trustedProxies),
      allowedHosts: config.admin.allowedHosts,
      isReady: () => this.#readiness(workers),
      registry,
      memory,
      maxBytes: config.cache.memoryBytes,
      shared: sharedCache,
      purges,
      times: ttl,
      timesControl: ttlControl,
      configuredBy: (cacheClass, name) => originOf(this.#loaded, `cache.classes.${cacheClass}.${name}`),
      maintenance,
      resolve: createResolver(),
      flightOf: (key) => cache.flightOf(key),
      lastMissOf: (key) => stats.lastMisses.of(key),
      stats,
      history,
      whatIf,
      outdatedLimits: () => this.#loaded.config.cache.outdatedLimits,
      members: instances,
      config: () => redactedConfig(this.#loaded),
      metrics: workers === null ? ownMetrics : { contentType: ownMetrics.contentType, render: () => workers.metrics() },
      audit,
      clock,
      log: logger,
    };
  }

  /**
   * The readiness of this process, or with `workers` of the whole gateway: requests can be served as soon as one worker
   * is ready. Nothing is ready before this process has had an answer from Redis, if there is one, so that a wrong password
   * stops a rollout. Later outages change nothing: they would take all processes out of service at once.
   */
  #readiness(workers: Workers | null): Readiness {
    const { health, backend } = this.#parts;
    let status = this.#status;
    if (status === 'starting' && workers !== null && workers.status().ready > 0) status = 'ready';
    if (status === 'ready' && backend.redis?.hasAnswered === false) status = 'starting';
    return { status, dependencies: [...health.list(), ...(workers === null ? [] : [workersDependency(workers)])] };
  }

  /** For the log. The addresses of this process's own listeners are no secret; those of the store and of Redis are. */
  #startedLine() {
    const { redis, server, upstream } = this.#parts.config;
    const separateCache = redis.cacheUrl === null ? 'one for all' : 'one for state, one for the cache';
    return {
      version: VERSION,
      node: process.versions.node,
      public: this.publicUrl,
      admin: this.adminUrl,
      workers: server.workers,
      store: upstream.url === null ? 'bundled sample' : 'configured',
      redis: redis.url === null ? 'none' : separateCache,
    };
  }
}

/** OpenTelemetry is only loaded if tracing is on. */
async function openTracing({ tracing: settings }: LoadedConfig, logger: Logger): Promise<Tracing> {
  if (settings === null) return UNTRACED;
  const { startTracing } = await import('./tracing/start.ts');
  return startTracing(settings, { logger, version: VERSION });
}

async function openBackend(options: BackendOptions): Promise<Backend> {
  const { url } = options.config.redis;
  return url === null ? memoryBackend(options) : openRedisBackend(options, url);
}

/** Finds the keys of requests. With `KEYS_SOURCE=upstream` the store is asked for a key that the registry doesn't know. */
function keyLookup({ config, store, maintenance, backend, clock }: Parts): KeyLookup {
  if (config.keys.source === 'registry') return backend.keys;
  const gate = maintenanceGate(maintenance, clock);
  return new StoreLookup({
    registry: backend.keys,
    clock,
    timers: systemTimers,
    graceMs: config.keys.graceMs,
    lookUp: async (hash) => {
      const answer = await gate(() => store.guard.fetch(apiKey, { hash }, { requestId: randomUUID() }));
      return answer.kind === 'found' ? answer.record : null;
    },
  });
}

/** Reads the client's address of a request, with trusted proxies taken into account. */
function addressReader(trustedProxies: readonly string[]): (ctx: { readonly req: IncomingMessage }) => string {
  const clientAddress = createClientAddress(trustedProxies);
  return ({ req }) =>
    clientAddress({ remoteAddress: req.socket.remoteAddress, forwardedFor: req.headers['x-forwarded-for'] });
}

async function openApiDocument({ config }: LoadedConfig): Promise<OpenApiDocument> {
  const { buildOpenApiDocument } = await import('./http/openapi/document.ts');
  return buildOpenApiDocument({ limits: config.rateLimit, deprecations: config.api.deprecations });
}

/** How many workers there are is one of the dependencies. */
function workersDependency(workers: Workers): Readiness['dependencies'][number] {
  const { ready, wanted, sinceMs } = workers.status();
  return {
    name: 'workers',
    status: ready < wanted ? 'degraded' : 'ok',
    since: new Date(sinceMs).toISOString(),
    detail: `${ready} of ${wanted} are ready`,
  };
}

/** Throws one StartError that names every address that cannot be used. */
function throwIfFailed(listeners: readonly PromiseSettledResult<Listener>[]): void {
  const errors = listeners.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  const startErrors = errors.filter((error) => error instanceof StartError);
  if (startErrors.length < errors.length) throw errors.find((error) => !(error instanceof StartError));
  if (startErrors.length > 0) throw new StartError(startErrors.map(({ message }) => message).join('\n'));
}
