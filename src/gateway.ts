/** The composition root: a configuration in, a running gateway out. Each room opens itself; here they are given each other. */
import { setTimeout as sleep } from 'node:timers/promises';
import { openAdmin } from './admin/app.ts';
import { loadRedis, openBackend } from './backend/backend.ts';
import type { DemoAnnouncement, SampleAccess, SampleStore } from './backend/demo-store.ts';
import { findStore, identityOf, openStore, type StoreTarget } from './backend/store.ts';
import { cacheSpans } from './cache/flight-spans.ts';
import { openCache } from './cache/open.ts';
import { openChanges } from './changes/open.ts';
import { ConfigInForce } from './config/effective.ts';
import type { ConfigFault } from './config/errors.ts';
import { keptOr, type LoadedConfig } from './config/load.ts';
import type { SecretFault, SecretsLook } from './config/secret-files.ts';
import { openPublic } from './http/app.ts';
import { createResolver } from './http/explain.ts';
import { openKeys } from './keys/open.ts';
import type { Logger } from './log/logger.ts';
import { noteForbiddenAddress } from './operations/key-changes.ts';
import { openOperations } from './operations/open.ts';
import { ttlEndEntry } from './operations/time-changes.ts';
import { openQuota } from './quota/open.ts';
import { ADMIN_GRACE_MS, bothOrNone, IN_FLIGHT_GRACE_MS } from './server/server.ts';
import {
  cacheProtection,
  type ConfigReads,
  createMaintenance,
  trackConfig,
  trackSecrets,
} from './telemetry/dependencies.ts';
import { trackChanges } from './telemetry/changes-health.ts';
import type { Dependency } from './telemetry/health.ts';
import { cacheHooks, cacheListener, httpHooks, keyHooks, storeHooks } from './telemetry/hooks.ts';
import { openTelemetry } from './telemetry/open.ts';
import { OwnReadiness, type WorkerReport, type Workers } from './telemetry/readiness.ts';
import { type Clock, systemClock } from './time/clock.ts';
import { systemTimers, type Timers } from './time/timers.ts';
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

/** Rejects with a StartError if an address can't be used; nothing is left running then. */
export async function startGateway(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { logger, sample = null } = options;
  const closing: Closing = [];
  try {
    // OpenTelemetry is only loaded if tracing is on.
    if (loaded.isTraced) closing.unshift(await (await import('./tracing/sdk.ts')).startTracing(logger));
    const target = await findStore(loaded.config.upstream, sample);
    closing.unshift(async () => target.sample?.close());
    const openRedis = await loadRedis(loaded.config.redis.url);
    const rooms = openRooms(loaded, options, { target, openRedis }, closing);
    const { telemetry, inForce, backend, keys } = rooms;
    await backend.redis?.join(keys.registry, () => cacheProtection(inForce.config));
    const secrets = trackSecrets(telemetry.health, loaded, options.secretFaults ?? []);
    const configReads = trackConfig(telemetry, loaded.file);
    await keys.transient.importKeys((sample ?? target.sample)?.keys ?? []);
    const listeners = await openListeners(rooms, options.workers ?? null, closing);
    return new Gateway(rooms, { listeners, secrets, configReads, closing });
  } catch (error) {
    await closeAll(closing);
    throw error;
  }
}

/** The functions that close the open rooms, in the order of the calls. */
type Closing = (() => unknown)[];

async function closeAll(closing: Closing): Promise<void> {
  for (const close of closing.splice(0)) await close();
}

type Rooms = ReturnType<typeof openRooms>;

/** The store and the Redis that the gateway stands on. */
interface Outside {
  readonly target: StoreTarget;
  /** Null for a gateway without Redis. */
  readonly openRedis: Awaited<ReturnType<typeof loadRedis>>;
}

/**
 * Opens everything behind the listeners, each room with those that it stands on. In one turn of the event loop: afterwards the
 * journal brings what it has.
 */
function openRooms(loaded: LoadedConfig, options: GatewayOptions, { target, openRedis }: Outside, closing: Closing) {
  const { clock = systemClock, timers = systemTimers, logger, workers = null, droppedLines } = options;
  const { config, isTraced } = loaded;
  const { upstream } = config;
  const inForce = new ConfigInForce(loaded);
  const telemetry = openTelemetry({ config, droppedLines, logger, clock });
  const { health, metrics } = telemetry;
  const identity = identityOf(upstream);
  const readFile = keptOr(loaded.files);
  const ofBackend = { config, readFile, store: identity, siblings: workers, reporting: telemetry, timers };
  const backend = openBackend(ofBackend, openRedis);
  const { journal, instances, redis } = backend;
  const link = redis?.state ?? null;
  const ofProcess = { self: instances.id, store: identity, siblings: workers && (() => workers.counts()) };
  const ofOperators = { journal, maintenance: createMaintenance(health, clock, timers) };
  const operations = openOperations({ link, ...ofProcess, ...ofOperators, logger, clock, timers });
  const { maintenance } = operations;
  const store = openStore({
    upstream,
    target,
    shared: link && { link, processes: () => instances.count() },
    hooks: storeHooks(telemetry, (listed) => operations.stats.countListed(listed)),
    maintenance,
    refreshToken: options.lookAtSecrets ?? (async () => {}),
    isLookedFor: options.isStoreLookedFor ?? false,
    clock,
    timers,
  });
  const keys = openKeys({ redis, graceMs: config.keys.graceMs, hooks: keyHooks(telemetry), clock, timers });
  const ofQuota = redis && { state: redis.state, hooks: redis.health.quotaHooks };
  const quota = openQuota({ redis: ofQuota, instances, clock });
  const cache = openCache({
    config,
    store: { identity, fetch: store.guard.fetch, hasRoom: () => store.guard.hasRoom() },
    journal,
    links: redis,
    instances,
    maintenance,
    listeners: [cacheListener(telemetry), operations.stats.listener, ...(isTraced ? [cacheSpans] : [])],
    hooks: {
      ...cacheHooks(telemetry),
      onBudget: (excess) => redis?.health.onBudget(excess),
      onTtlEnd: (end) => void operations.audit.record(ttlEndEntry(end)),
    },
    clock,
    timers,
  });
  const ofChanges = {
    changes: cache.changes,
    config: config.changes,
    unannouncedShare: () => telemetry.consumers.unannouncedShare(),
  };
  const changes = openChanges({ ...ofChanges, journal, redis, instances, clock, timers });
  trackChanges(telemetry, changes);
  const closed = [store, cache, keys, quota, operations, backend, metrics];
  closing.unshift(...closed.map((room) => () => room.close()));
  const readiness = new OwnReadiness(health, instances, redis?.health ?? null);
  return { target, inForce, telemetry, readiness, backend, operations, store, keys, quota, cache, changes };
}

type Listeners = Awaited<ReturnType<typeof openListeners>>;

/** Rejects with a StartError that names every address that can't be used. */
async function openListeners(rooms: Rooms, workers: Workers | null, closing: Closing) {
  const { inForce, telemetry: reporting, readiness, backend, operations, store, keys, quota, cache, changes } = rooms;
  const { metrics, health, clock, logger } = reporting;
  const { instances } = backend;
  const { guard, answerMemory } = store;
  const redis = backend.redis?.health ?? null;
  const hooks = httpHooks(reporting, (report) => {
    operations.stats.countRequest(report);
    noteForbiddenAddress(operations.audit, report);
  });
  const telemetry = { instances, logger, health, metrics, readiness, workers, guard, redis };
  const resolve = createResolver(changes.feed !== null);
  const ofPublic = { cache: cache.reads, feed: changes.feed, quota: quota.limiter, answerMemory, readiness, hooks };
  const [admin, open] = await bothOrNone(
    openAdmin({ inForce, keys, operations, cache, resolve, changes, telemetry, clock }),
    openPublic({ inForce, keys, ...ofPublic, clock }),
  );
  closing.unshift(
    () => open.close(IN_FLIGHT_GRACE_MS),
    () => admin.close(ADMIN_GRACE_MS),
  );
  const listeners = { public: open, admin };
  const limits = inForce.config.cache;
  const { maintenance } = operations;
  metrics.addGauges({ readiness, listeners, maintenance, cache, store, instances, keys, redis, limits });
  return listeners;
}

/** The members of a running gateway beside its rooms. */
interface Running {
  readonly listeners: Listeners;
  /** Takes the faults of secrets that hold from now on. */
  readonly secrets: (faults: readonly SecretFault[]) => void;
  readonly configReads: ConfigReads;
  readonly closing: Closing;
}

/** A running gateway, made by `startGateway`. */
export class Gateway {
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** Null in front of a real store, and in a worker. */
  readonly demo: DemoAnnouncement | null;
  /** As `demo`. */
  readonly sample: Pick<SampleStore, 'change'> | null;
  readonly #rooms: Rooms;
  readonly #running: Running;
  #stopping: Promise<void> | null = null;

  constructor(rooms: Rooms, running: Running) {
    this.#rooms = rooms;
    this.#running = running;
    this.publicUrl = running.listeners.public.url;
    this.adminUrl = running.listeners.admin.url;
    const { target, inForce, telemetry, readiness, backend } = rooms;
    this.sample = target.sample;
    this.demo = target.sample?.announcement(this.publicUrl) ?? null;
    readiness.become('ready');
    const { config } = inForce;
    const redis = backend.redis?.isOne === true ? 'one for all' : 'one for state, one for the cache';
    // The addresses of this process's own listeners are no secret; those of the store and of Redis are.
    telemetry.logger.info(
      {
        version: VERSION,
        node: process.versions.node,
        public: this.publicUrl,
        admin: this.adminUrl,
        workers: config.server.workers,
        store: config.upstream.url === null ? 'bundled sample' : 'configured',
        redis: backend.redis === null ? 'none' : redis,
      },
      'started',
    );
  }

  /** Takes over what can be changed while it runs; returns the settings that need a restart to change. */
  reload(loaded: LoadedConfig): readonly string[] {
    this.#running.configReads.succeeded();
    return this.#use(loaded);
  }

  /** Counts and reports a new configuration that is invalid: the old one stays in force. */
  reloadFailed(faults: readonly ConfigFault[]): void {
    this.#running.configReads.failed(faults);
  }

  /** Takes over what a look at the files of secrets has found. The audit has which have changed. */
  onSecrets({ loaded, changed, faults }: SecretsLook): void {
    const { audit } = this.#rooms.operations;
    if (loaded !== null) this.#use(loaded);
    this.#running.secrets(faults);
    for (const target of changed) {
      void audit.record({ who: 'evalgate', action: 'secret.change', target, from: null, to: null });
    }
  }

  #use(loaded: LoadedConfig): readonly string[] {
    const { inForce, telemetry, backend, store, cache } = this.#rooms;
    const needRestart = inForce.reload(loaded);
    const { config } = inForce;
    cache.configure(config.cache);
    telemetry.logger.level = config.log.level;
    telemetry.requestLog.requests = config.log.requests;
    store.useToken(config.upstream.token);
    backend.redis?.useAddresses(inForce.loaded);
    return needRestart;
  }

  /** How all that this process depends on is doing, for the first process, which passes it on to all workers. */
  dependencies(): readonly Dependency[] {
    return this.#rooms.telemetry.health.list();
  }

  /** The metrics or counts of this process, for the first process, which collects those of all workers. */
  async report(what: WorkerReport): Promise<unknown> {
    const { telemetry, operations } = this.#rooms;
    return what === 'metrics' ? await telemetry.metrics.registry.getMetricsAsJSON() : operations.stats.own();
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
    // `/readyz` is 503 from now on, and every response closes its connection.
    this.#rooms.readiness.become('draining');
    await sleep(delayMs);
    await closeAll(this.#running.closing);
  }
}
