/** The composition root: a configuration in, a running gateway out. Everything is made here and handed to who needs it. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Readiness } from './admin/readiness.ts';
import { startAdminServer } from './admin/server.ts';
import { CacheStats } from './admin/stats/cache-stats.ts';
import { assembleAdmin, assembleCache, assemblePublicApp, type Parts, readinessOf, type Running } from './assembly.ts';
import { MemoryTier } from './cache/memory-tier.ts';
import { TtlPolicy } from './cache/ttl-policy.ts';
import { type Clock, systemClock } from './clock.ts';
import type { Siblings } from './cluster/member.ts';
import { reload } from './config/effective.ts';
import type { LoadedConfig } from './config/load.ts';
import { announceDemo, type DemoAnnouncement, issueDemoKeys } from './demo.ts';
import { errorBody } from './http/problem.ts';
import type { OpenApiDocument } from './http/openapi/document.ts';
import type { ImportedKey } from './keys/key.ts';
import type { Logger } from './log/logger.ts';
import type { SampleAddress } from './sample-store.ts';
import { openSharedState } from './open-shared-state.ts';
import { ADMIN_GRACE_MS, IN_FLIGHT_GRACE_MS, listen, type Listener, StartError } from './server.ts';
import { openStore } from './store-source.ts';
import { trackMaintenance } from './telemetry/dependencies.ts';
import { registerGauges } from './telemetry/gauges.ts';
import { Health } from './telemetry/health.ts';
import { httpHooks, storeHooks } from './telemetry/hooks.ts';
import { Metrics } from './telemetry/metrics.ts';
import { systemTimers } from './timers.ts';
import { type Tracing, UNTRACED } from './tracing/tracing.ts';
import { VERSION } from './version.ts';

export interface Gateway {
  /** Where consumers reach it, such as `http://127.0.0.1:8080`. */
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** Null in front of a real store. */
  readonly demo: DemoAnnouncement | null;
  /** Takes over what can be changed while it runs; returns the settings that need a restart to change. */
  reload(loaded: LoadedConfig): readonly string[];
  /** The configuration was read again and is invalid: the old one stays in force. */
  reloadFailed(): void;
  /**
   * Not ready from now on; goes on accepting for `delayMs`, asking each connection to close; then lets what is in
   * flight finish, 30 s at most. Calling it again while it runs changes nothing.
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
  readonly siblings: Siblings;
  /** The sample store that all of them share, and the keys to it; null in front of a real store. */
  readonly sample: SharedSample | null;
}

export interface SharedSample extends SampleAddress {
  readonly keys: readonly ImportedKey[];
}

/** Rejects with a StartError where an address can't be had; nothing is left running then. */
export async function startGateway(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { clock = systemClock, logger, worker = null } = options;
  const { config } = loaded;
  const metrics = new Metrics(VERSION);
  const health = new Health({ clock, logger });
  const stats = new CacheStats(clock);
  const reporting = { metrics, health, clock, logger };
  const hooks = { ...storeHooks(reporting), ...httpHooks(reporting) };
  const times = new TtlPolicy(clock, config.cache.classes);
  const maintenance = trackMaintenance(health, clock, systemTimers);
  const memory = new MemoryTier({ maxBytes: config.cache.memoryBytes });
  const tracing = await openTracing(loaded, logger);
  const source = await openStore({
    upstream: config.upstream,
    hooks,
    tracing,
    running: worker?.sample ?? null,
    maintenance,
    clock,
  });
  const parts = { health, metrics, memory, source, tracing, clock, logger };
  const shared = await openSharedState({ ...parts, times, maintenance, config }).catch(async (error: unknown) => {
    await source.close();
    throw error;
  });
  const siblings = worker?.siblings ?? null;
  const gateway = new RunningGateway({ ...parts, loaded, hooks, stats, times, shared, siblings });
  try {
    await shared.transientKeys.importKeys(worker?.sample?.keys ?? []);
    await gateway.start();
  } catch (error) {
    await gateway.stop(0);
    throw error;
  }
  return gateway;
}

class RunningGateway implements Gateway {
  readonly #parts: Parts;
  readonly #running: Running = {
    loaded: () => this.#loaded,
    document: () => (this.#document ??= documentOf(this.#loaded)),
    status: () => this.#status,
  };
  #loaded: LoadedConfig;
  /** Made when it is first asked for. */
  #document: Promise<OpenApiDocument> | null = null;
  #status: Readiness['status'] = 'starting';
  #public: Listener | null = null;
  #admin: Listener | null = null;
  #demo: DemoAnnouncement | null = null;
  #stopping: Promise<void> | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#loaded = parts.loaded;
    const connections = () => ({
      public: this.#public?.connections() ?? 0,
      admin: this.#admin?.connections() ?? 0,
    });
    registerGauges(parts.metrics, {
      readiness: () => readinessOf(parts, this.#running, null),
      memory: () => parts.memory.usage(),
      memoryLimitBytes: parts.loaded.config.cache.memoryBytes,
      isMaintenanceOn: () => parts.shared.maintenance.current() !== null,
      connections,
      guard: () => parts.source.store.status(),
      processes: () => parts.shared.members.count(),
      redis: parts.shared.redis,
    });
    parts.metrics.configReadAt.set(parts.clock.nowMs() / 1000);
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
    const { admin, server } = this.#parts.loaded.config;
    const cache = assembleCache(this.#parts);
    const [adminListener, publicListener] = await Promise.allSettled([
      startAdminServer(assembleAdmin(this.#parts, cache, this.#running), admin),
      listen(assemblePublicApp(this.#parts, cache, this.#running), server, {
        errorBody: (message, target) => errorBody(target?.split('?')[0] ?? '', 400, message),
        maxConnections: server.maxConnections,
        maxConnectionsPerAddress: server.maxConnectionsPerAddress,
        hooks: this.#parts.hooks.listener,
      }),
    ]);
    if (adminListener.status === 'fulfilled') this.#admin = adminListener.value;
    if (publicListener.status === 'fulfilled') this.#public = publicListener.value;
    throwIfRefused([publicListener, adminListener]);
    const { demo } = this.#parts.source;
    if (demo !== null) {
      const keys = await issueDemoKeys(this.#parts.shared.transientKeys, demo);
      this.#demo = announceDemo(keys, demo, this.publicUrl);
    }
    this.#become('ready');
    this.#parts.logger.info(startedLine(this.#parts.loaded, this), 'started');
  }

  reload(loaded: LoadedConfig): readonly string[] {
    const { inForce, needRestart } = reload(this.#loaded, loaded);
    this.#loaded = inForce;
    this.#document = null;
    this.#parts.times.configure(loaded.config.cache.classes);
    this.#parts.logger.level = loaded.config.log.level;
    this.#parts.metrics.configReloads.inc({ result: 'success' });
    this.#parts.metrics.configReadAt.set(this.#parts.clock.nowMs() / 1000);
    return needRestart;
  }

  reloadFailed(): void {
    this.#parts.metrics.configReloads.inc({ result: 'failure' });
  }

  stop(delayMs: number): Promise<void> {
    this.#stopping ??= this.#drain(delayMs);
    return this.#stopping;
  }

  #become(status: Exclude<Readiness['status'], 'starting'>): void {
    this.#status = status;
    this.#parts.shared.members.setStatus(status);
  }

  async #drain(delayMs: number): Promise<void> {
    this.#become('draining');
    await sleep(delayMs);
    await this.#public?.close(IN_FLIGHT_GRACE_MS);
    await this.#admin?.close(ADMIN_GRACE_MS);
    await this.#parts.source.close();
    await this.#parts.shared.close();
    await this.#parts.tracing.close();
    this.#parts.metrics.close();
  }
}

/** Throws one StartError that names every address that cannot be used. */
function throwIfRefused(opened: readonly PromiseSettledResult<Listener>[]): void {
  const errors = opened.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []));
  const refusals = errors.filter((error) => error instanceof StartError);
  if (refusals.length < errors.length) throw errors.find((error) => !(error instanceof StartError));
  if (refusals.length > 0) throw new StartError(refusals.map(({ message }) => message).join('\n'));
}

/** For the log. Addresses of this process's own listeners are no secret; those of the store and of Redis are left out. */
function startedLine(
  { config: { redis, server, upstream } }: LoadedConfig,
  { publicUrl, adminUrl }: Pick<Gateway, 'publicUrl' | 'adminUrl'>,
) {
  const separateCache = redis.cacheUrl === null ? 'one for all' : 'one for state, one for the cache';
  return {
    version: VERSION,
    node: process.versions.node,
    public: publicUrl,
    admin: adminUrl,
    workers: server.workers,
    store: upstream.url === null ? 'bundled sample' : 'configured',
    redis: redis.url === null ? 'none' : separateCache,
  };
}

/** What tracing needs is only loaded where it is on. */
async function openTracing({ tracing: settings }: LoadedConfig, logger: Logger): Promise<Tracing> {
  if (settings === null) return UNTRACED;
  const { startTracing } = await import('./tracing/start.ts');
  return startTracing(settings, { logger, version: VERSION });
}

async function documentOf({ config }: LoadedConfig): Promise<OpenApiDocument> {
  const { buildOpenApiDocument } = await import('./http/openapi/document.ts');
  return buildOpenApiDocument({ limits: config.rateLimit, deprecations: config.api.deprecations });
}
