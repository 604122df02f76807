/** The composition root: a configuration in, a running gateway out. */
import { setTimeout as sleep } from 'node:timers/promises';
import { startAdminServer } from './admin/app.ts';
import type { AdminOptions } from './admin/endpoint.ts';
import type { Backend, BackendOptions } from './backend/backend.ts';
import { memoryBackend } from './backend/memory.ts';
import { openRedisBackend } from './backend/redis.ts';
import { holdingOf } from './cache/erase.ts';
import { MemoryTier } from './cache/memory-tier.ts';
import { noteForbiddenAddress } from './operations/key-changes.ts';
import { ReadThrough } from './cache/read-through.ts';
import { UNSHARED } from './cache/shared-cache.ts';
import { TtlPolicy } from './cache/ttl-policy.ts';
import { type Clock, systemClock } from './time/clock.ts';
import { originOf, redactedConfig, reload } from './config/effective.ts';
import type { ConfigFault } from './config/errors.ts';
import { keptOr, type LoadedConfig } from './config/load.ts';
import type { SecretFault, SecretsLook } from './config/secret-files.ts';
import { createPublicApp } from './http/app.ts';
import { createResolver } from './http/explain.ts';
import type { OpenApiDocument } from './http/openapi/document.ts';
import { errorBody } from './http/problem.ts';
import { Authenticator } from './keys/authenticate.ts';
import { createClientAddress } from './keys/client-address.ts';
import type { Logger } from './log/logger.ts';
import {
  ADMIN_GRACE_MS,
  IN_FLIGHT_GRACE_MS,
  listen,
  type Listener,
  type RequestHandler,
  throwIfFailed,
} from './server/server.ts';
import { defaultUnsentBytes, Unsent } from './server/unsent.ts';
import { openStore } from './backend/open-store.ts';
import type { DemoAnnouncement, SampleAccess } from './backend/demo-store.ts';
import { createMaintenance, trackConfig, trackSecrets } from './telemetry/dependencies.ts';
import { broadcast } from './cache/events.ts';
import { type Dependency, Health } from './telemetry/health.ts';
import { cacheListener, httpHooks, storeHooks } from './telemetry/hooks.ts';
import { Metrics } from './telemetry/metrics.ts';
import { type Readiness, readinessOf, type WorkersHealth } from './telemetry/readiness.ts';
import type { Siblings } from './telemetry/redis-health.ts';
import { RequestLog } from './telemetry/request-report.ts';
import { systemTimers, type Timers } from './time/timers.ts';
import { cacheSpans } from './cache/flight-spans.ts';
import { traced } from './http/request-span.ts';
import { AnswerMemory, defaultAnswerBytes } from './upstream/answer-memory.ts';
import type { Listed } from './upstream/resources.ts';
import { VERSION } from './version.ts';

export interface GatewayOptions {
  readonly logger: Logger;
  /** How many lines of the log were dropped. */
  readonly droppedLines?: () => number;
  readonly clock?: Clock;
  readonly timers?: Timers;
  /** All workers, if this gateway is one of several. */
  readonly workers?: Workers;
  /** The sample store that all workers share, and the keys to it; null in front of a real store. */
  readonly sample?: SampleAccess | null;
  /** Reads the files of secrets again; resolves once the gateway has had what was found (`onSecrets`). */
  readonly lookAtSecrets?: () => Promise<void>;
  /** Whether the store is connected to at the start, so that a wrong address is reported before the first read. */
  readonly isStoreLookedFor?: boolean;
  /** Secrets that could not be read again before this gateway started. */
  readonly secretFaults?: readonly SecretFault[];
}

/** What a worker reports of itself: its metrics, or what it has counted for operators. */
export type WorkerReport = 'metrics' | 'counts';

/** How all workers of a gateway are doing, for each of them. */
export interface Workers extends Siblings {
  status(): WorkersHealth;
  /** The metrics of all as one Prometheus text. Rejects if the first process does not answer in time. */
  metrics(): Promise<string>;
}

/** K9: failed authentications are limited per address. */
const AUTHENTICATION_LIMIT = { name: 'failed-authentications', points: 60, windowSeconds: 60 };
/** K8a: a look at one's own key costs no quota, and has this limit. */
const CURRENT_KEY_LIMIT = { name: 'current-key', points: 60, windowSeconds: 60 };
/** Requests per address without a valid admin token. */
const ADMIN_TOKEN_LIMIT = { name: 'admin-tokens', points: 60, windowSeconds: 60 };
/** How much longer than a call to the store (`upstream.timeout`) a wait for its end may take, here or elsewhere. */
const FLIGHT_MARGIN_MS = 5000;

/** Rejects with a StartError if an address can't be used; nothing is left running then. */
export async function startGateway(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { clock = systemClock, timers = systemTimers, logger, workers = null, sample = null } = options;
  const { config } = loaded;
  const { upstream } = config;
  const metrics = new Metrics(VERSION, options.droppedLines);
  const health = new Health({ clock, logger });
  const requestLog = new RequestLog(logger, config.log.requests);
  const reporting = { metrics, health, clock, logger };
  const onListed = (listed: Listed): void => {
    backend.stats.countListed(listed);
    hooks.http.onListed(listed);
  };
  const hooks = {
    store: storeHooks(reporting, upstream.degradedPercent, onListed),
    http: httpHooks(reporting, requestLog, config.objectives, (report) => {
      backend.stats.countRequest(report);
      noteForbiddenAddress(backend.audit, report);
    }),
  };
  const ttl = new TtlPolicy(clock, config.cache.classes);
  const maintenance = createMaintenance(health, clock, timers);
  const memory = new MemoryTier({ maxBytes: config.cache.memoryBytes, clock });
  const answerMemory = new AnswerMemory(upstream.answerMemoryBytes ?? defaultAnswerBytes(), timers);
  const stopTracing = await openTracing(loaded, logger);
  const { lookAtSecrets: refreshToken = async () => {}, secretFaults = [] } = options;
  const access = { upstream, sample, refreshToken, isLookedFor: options.isStoreLookedFor ?? false, maintenance };
  const store = await openStore({ ...access, memory: answerMemory, hooks: hooks.store, clock, timers });
  const readFile = keptOr(loaded.files);
  const parts = { ...reporting, config, readFile, memory, answerMemory, ttl, maintenance, store, workers, timers };
  const backend = await openBackend(parts).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
  const unsent = new Unsent({
    maxBytes: config.server.maxUnsentBytes ?? defaultUnsentBytes(),
    nowMs: () => clock.nowMicros() / 1000,
    onCut: hooks.http.onCut,
  });
  const secrets = trackSecrets(health, loaded, secretFaults);
  const configFaults = trackConfig(health, loaded.file);
  const gateway = new Gateway({
    ...parts,
    unsent,
    loaded,
    hooks: hooks.http,
    requestLog,
    backend,
    secrets,
    configFaults,
    stopTracing,
  });
  try {
    await backend.transientKeys.importKeys((sample ?? store.sample)?.keys ?? []);
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
  readonly hooks: ReturnType<typeof httpHooks>;
  readonly answerMemory: AnswerMemory;
  readonly unsent: Unsent;
  readonly requestLog: RequestLog;
  readonly backend: Backend;
  /** Takes the faults that hold from now on. */
  readonly secrets: (faults: readonly SecretFault[]) => void;
  readonly configFaults: (faults: readonly ConfigFault[]) => void;
  /** Sends the spans that wait. Never rejects. */
  readonly stopTracing: () => Promise<void>;
  readonly workers: Workers | null;
}

/** A running gateway, made by `startGateway`. */
export class Gateway {
  readonly #parts: Parts;
  #loaded: LoadedConfig;
  /** Made at the first request for it. */
  #document: Promise<OpenApiDocument> | null = null;
  #status: Readiness['status'] = 'starting';
  #public: Listener | null = null;
  #admin: Listener | null = null;
  #stopping: Promise<void> | null = null;
  /** Null in front of a real store, and in a worker. */
  demo: DemoAnnouncement | null = null;

  constructor(parts: Parts) {
    const { metrics, memory, answerMemory, unsent, store, backend, config, clock } = parts;
    this.#parts = parts;
    this.#loaded = parts.loaded;
    metrics.addGauges({
      readiness: () => this.#readiness(null),
      memory: () => memory.usage(),
      memoryLimitBytes: config.cache.memoryBytes,
      isMaintenanceOn: () => backend.maintenance.current() !== null,
      connections: () => ({ public: this.#public?.connections() ?? 0, admin: this.#admin?.connections() ?? 0 }),
      guard: () => store.guard.status(),
      answers: () => answerMemory.load(),
      unsentBytes: () => unsent.bytes,
      processes: () => backend.instances.count(),
      keys: () => {
        const { known, loss } = backend.registry.census();
        return { known, lost: loss === null || loss.isAcknowledged ? 0 : loss.keys - (known ?? 0) };
      },
      redis: backend.redis,
      redisCacheBytes: config.cache.redisBytes,
    });
    metrics.configReadAt.set(clock.nowMs() / 1000);
    metrics.configIsRead.set(1);
    void backend.redis?.answered.then(() => this.#announce());
  }

  get publicUrl(): string {
    return this.#public?.url ?? '';
  }

  get adminUrl(): string {
    return this.#admin?.url ?? '';
  }

  /** Called once. Rejects with a StartError that names every address that can't be used. */
  async start(): Promise<void> {
    const { config, hooks, unsent, store, logger } = this.#parts;
    const { admin, server, upstream, redis } = config;
    const cache = this.#createCache();
    const [adminListener, publicListener] = await Promise.allSettled([
      startAdminServer(this.#adminOptions(cache), admin),
      listen(this.#publicApp(cache), server, {
        errorBody: (message, target) => errorBody(target?.split('?')[0] ?? '', 400, message),
        keepAliveTimeoutMs: server.keepAliveMs,
        unsent,
        maxConnections: server.maxConnections,
        maxConnectionsPerAddress: server.maxConnectionsPerAddress,
        hooks,
      }),
    ]);
    if (adminListener.status === 'fulfilled') this.#admin = adminListener.value;
    if (publicListener.status === 'fulfilled') this.#public = publicListener.value;
    throwIfFailed([publicListener, adminListener]);
    this.demo = store.sample?.announcement(this.publicUrl) ?? null;
    this.#become('ready');
    const caches = redis.cacheUrl === null ? 'one for all' : 'one for state, one for the cache';
    // The addresses of this process's own listeners are no secret; those of the store and of Redis are.
    logger.info(
      {
        version: VERSION,
        node: process.versions.node,
        public: this.publicUrl,
        admin: this.adminUrl,
        workers: server.workers,
        store: upstream.url === null ? 'bundled sample' : 'configured',
        redis: redis.url === null ? 'none' : caches,
      },
      'started',
    );
  }

  /** Takes over what can be changed while it runs; returns the settings that need a restart to change. */
  reload(loaded: LoadedConfig): readonly string[] {
    const { metrics, clock, configFaults } = this.#parts;
    configFaults([]);
    metrics.configReloads.inc({ result: 'success' });
    metrics.configReadAt.set(clock.nowMs() / 1000);
    metrics.configIsRead.set(1);
    return this.#use(loaded);
  }

  /** Takes over what a look at the files of secrets has found. The audit has which have changed. */
  onSecrets({ loaded, changed, faults }: SecretsLook): void {
    const { backend, secrets } = this.#parts;
    if (loaded !== null) this.#use(loaded);
    secrets(faults);
    for (const target of changed) {
      void backend.audit.record({ who: 'evalgate', action: 'secret.change', target, from: null, to: null });
    }
  }

  #use(loaded: LoadedConfig): readonly string[] {
    const { ttl, requestLog, backend, store, logger } = this.#parts;
    const { inForce, needRestart } = reload(this.#loaded, loaded);
    const { cache, log, upstream } = inForce.config;
    this.#loaded = inForce;
    this.#document = null;
    if (ttl.configure(cache.classes)) backend.onTtlsConfigured();
    logger.level = log.level;
    requestLog.requests = log.requests;
    store.useToken(upstream.token);
    backend.useSecrets(inForce);
    return needRestart;
  }

  /** Counts and reports a new configuration that is invalid: the old one stays in force. */
  reloadFailed(faults: readonly ConfigFault[]): void {
    this.#parts.configFaults(faults);
    this.#parts.metrics.configReloads.inc({ result: 'failure' });
    this.#parts.metrics.configIsRead.set(0);
  }

  /** How all that this process depends on is doing, for the first process, which tells all workers. */
  dependencies(): readonly Dependency[] {
    return this.#parts.health.list();
  }

  /** The metrics or counts of this process, for the first process, which collects those of all workers. */
  async report(what: WorkerReport): Promise<unknown> {
    const { metrics, backend } = this.#parts;
    return what === 'metrics' ? await metrics.registry.getMetricsAsJSON() : backend.stats.own();
  }

  /**
   * Not ready from now on; goes on accepting for `delayMs`, asking each connection to close. Then, in this order: the public
   * listener closes idle connections one by one and lets requests in flight finish, 32 s at most; the admin listener does the
   * same, 7 s at most; calls to the store are aborted; the last uses of keys and what was seen for what-if are written, and
   * the links to Redis close; the last spans are sent. A second call waits for the first one's end.
   */
  stop(delayMs: number): Promise<void> {
    this.#stopping ??= this.#drain(delayMs);
    return this.#stopping;
  }

  async #drain(delayMs: number): Promise<void> {
    const { store, backend, stopTracing, metrics } = this.#parts;
    // `/readyz` is 503 from now on, and every response closes its connection.
    this.#become('draining');
    await sleep(delayMs);
    await this.#public?.close(IN_FLIGHT_GRACE_MS);
    await this.#admin?.close(ADMIN_GRACE_MS);
    await store.close();
    await backend.close();
    await stopTracing();
    metrics.close();
  }

  #become(status: 'ready' | 'draining'): void {
    this.#status = status;
    this.#announce();
  }

  /** The other processes show this one as `/readyz` does. */
  #announce(): void {
    this.#parts.backend.instances.setStatus(this.#readiness(null).status);
  }

  #createCache(): ReadThrough {
    const { loaded, config, store, backend } = this.#parts;
    const listeners = [cacheListener(this.#parts), backend.stats.listener, backend.whatIf.hooks];
    return new ReadThrough({
      ...this.#parts,
      fetch: store.guard.fetch,
      hasRoom: () => store.guard.hasRoom(),
      sharedCache: backend.sharedCache ?? UNSHARED,
      announceMoved: (moved) => backend.journal.append({ kind: 'moved', ...moved }),
      purges: backend.purges,
      maintenance: backend.maintenance,
      events: broadcast(loaded.isTraced ? [...listeners, cacheSpans] : listeners),
      maxWaitMs: config.upstream.timeoutMs + FLIGHT_MARGIN_MS,
    });
  }

  #publicApp(cache: ReadThrough): RequestHandler {
    const { loaded, config, backend, hooks, clock, timers, answerMemory, unsent } = this.#parts;
    const failures = backend.limiter(AUTHENTICATION_LIMIT);
    const app = createPublicApp({
      clock,
      cache,
      feed: backend.feed,
      authenticator: new Authenticator({ registry: backend.keys, clock, timers, failures }),
      quota: backend.quota,
      currentKeyLimit: backend.limiter(CURRENT_KEY_LIMIT),
      defaultLimits: () => this.#loaded.config.rateLimit,
      addressOf: createClientAddress(config.server.trustedProxies),
      document: () => (this.#document ??= openApiDocument(this.#loaded)),
      isDraining: () => this.#status === 'draining',
      deprecations: config.api.deprecations,
      maxInFlight: config.server.maxInFlight,
      answerMemory,
      unsent,
      redisTimeoutMs: config.redis.timeoutMs,
      hooks,
    });
    return loaded.isTraced ? traced(app) : app;
  }

  #adminOptions(cache: ReadThrough): AdminOptions {
    const { config, memory, ttl, store, backend, metrics, health, workers, clock, logger } = this.#parts;
    const own = { memory, purges: backend.purges, cache };
    return {
      ...backend,
      fleet: backend.fleet((question) => holdingOf(question, own)),
      tokens: () => this.#loaded.config.admin.tokens,
      wrongTokens: backend.limiter(ADMIN_TOKEN_LIMIT),
      changesSecrets: () => this.#loaded.config.changes.secrets,
      addressOf: createClientAddress(config.server.trustedProxies),
      allowedHosts: config.admin.allowedHosts,
      trustedProxies: config.server.trustedProxies,
      readiness: () => this.#readiness(workers),
      stateChanges: () => health.changes(),
      storeLoad: () => store.guard.status(),
      runbook: config.admin.runbook,
      memory,
      maxBytes: config.cache.memoryBytes,
      shared: backend.sharedCache,
      ttl,
      configuredBy: (cacheClass, name) => originOf(this.#loaded, `cache.classes.${cacheClass}.${name}`),
      resolve: createResolver(config.changes.announced),
      flightOf: (key, set) => cache.flightOf(key, set),
      lastMissOf: (key) => backend.stats.lastMisses.of(key),
      outdatedLimitOf: (cacheClass) => this.#loaded.config.cache.classes[cacheClass].outdatedLimit,
      maxRequestsPerSecond: config.upstream.maxRequestsPerSecond,
      config: () => redactedConfig(this.#loaded),
      metrics: {
        contentType: metrics.registry.contentType,
        render: () => workers?.metrics() ?? metrics.registry.metrics(),
      },
      clock,
      log: logger,
    };
  }

  /** The readiness of this process; with `workers`, that of the whole gateway. */
  #readiness(workers: Workers | null): Readiness {
    const { health, backend } = this.#parts;
    return readinessOf({
      status: this.#status,
      dependencies: health.list(),
      workers: workers?.status() ?? null,
      hasRedisAnswered: backend.redis?.hasAnswered ?? true,
    });
  }
}

/** OpenTelemetry is only loaded if tracing is on. */
async function openTracing({ isTraced }: LoadedConfig, logger: Logger): Promise<() => Promise<void>> {
  if (!isTraced) return async () => {};
  const { startTracing } = await import('./tracing/sdk.ts');
  return await startTracing(logger);
}

async function openBackend(options: BackendOptions): Promise<Backend> {
  const { url } = options.config.redis;
  return url === null ? memoryBackend(options) : openRedisBackend(options, url);
}

async function openApiDocument({ config }: LoadedConfig): Promise<OpenApiDocument> {
  const { buildOpenApiDocument } = await import('./http/openapi/document.ts');
  const { rateLimit: limits, api, changes } = config;
  return buildOpenApiDocument({ limits, deprecations: api.deprecations, hasFeed: changes.announced });
}
