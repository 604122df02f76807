/** The composition root: a configuration in, a running gateway out. Everything is made here and handed to who needs it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createMetrics } from './admin/metrics.ts';
import type { Readiness } from './admin/readiness.ts';
import { startAdminServer } from './admin/server.ts';
import { assembleAdmin, assemblePublicApp, assembleReader, type Parts, type Running } from './assembly.ts';
import { MemoryTier } from './cache/memory-tier.ts';
import { AdjustableTimes } from './cache/times.ts';
import { type Clock, systemClock } from './clock.ts';
import type { LoadedConfig } from './config/load.ts';
import { reload } from './config/reload.ts';
import { announceDemo, type DemoAnnouncement } from './demo.ts';
import type { ReportErrorBody } from './domain/errors.ts';
import { buildOpenApiDocument, type OpenApiDocument } from './http/openapi/document.ts';
import { listen, type Listener } from './listener.ts';
import type { Logger } from './log/logger.ts';
import { createObserver } from './observer.ts';
import { openSharedState } from './shared-state.ts';
import { listening, StartError } from './start-error.ts';
import { openStore } from './store-source.ts';
import { VERSION } from './version.ts';

export interface Gateway {
  /** Where consumers reach it, such as `http://127.0.0.1:8080`. */
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** Null in front of a real store. */
  readonly demo: DemoAnnouncement | null;
  /** Takes over what can be changed while it runs; returns the settings that need a restart to change. */
  reload(loaded: LoadedConfig): readonly string[];
  /**
   * Not ready from now on; goes on accepting for `delayMs`, asking each connection to close; then lets what is in
   * flight finish, 30 s at most. Calling it again while it runs changes nothing.
   */
  stop(delayMs: number): Promise<void>;
}

export interface GatewayOptions {
  readonly logger: Logger;
  readonly clock?: Clock;
}

const IN_FLIGHT_GRACE_MS = 30_000;
const ADMIN_GRACE_MS = 5000;

/** Rejects with a StartError where an address can't be had; nothing is left running then. */
export async function startGateway(loaded: LoadedConfig, options: GatewayOptions): Promise<Gateway> {
  const { clock = systemClock, logger } = options;
  const { config } = loaded;
  if (config.server.workers > 1) {
    throw new StartError(
      `WORKERS=${config.server.workers}: this version runs one process. Start several with the same REDIS_URL instead.`,
    );
  }
  const metrics = createMetrics({ version: VERSION });
  const observer = createObserver(logger, metrics);
  const times = new AdjustableTimes(config.cache.classes);
  const memory = new MemoryTier({ maxBytes: config.cache.memoryBytes });
  const source = await openStore(config.upstream, observer.store);
  const shared = await openSharedState({ config, memory, times, source, clock, logger }).catch(
    async (error: unknown) => {
      await source.close();
      throw error;
    },
  );
  const gateway = new RunningGateway({ loaded, source, metrics, observer, times, memory, shared, clock, logger });
  try {
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
    document: () => this.#document,
    status: () => this.#status,
  };
  #loaded: LoadedConfig;
  #document: OpenApiDocument;
  #status: Readiness['status'] = 'starting';
  #public: Listener | null = null;
  #admin: Listener | null = null;
  #demo: DemoAnnouncement | null = null;
  #stopping: Promise<void> | null = null;

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#loaded = parts.loaded;
    this.#document = documentOf(parts.loaded);
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
    // The admin listener comes first, so that probes are answered while the rest starts.
    this.#admin = await listening('ADMIN_PORT', admin, () =>
      startAdminServer(assembleAdmin(this.#parts, this.#running), admin),
    );
    const app = assemblePublicApp(this.#parts, assembleReader(this.#parts), this.#running);
    const handler = app.callback();
    this.#public = await listening('PORT', server, () => listen(handler, server, { errorBody: plainErrorBody }));
    const { demo } = this.#parts.source;
    if (demo !== null) this.#demo = await announceDemo(this.#parts.shared.transientKeys, demo, this.#public.url);
    this.#status = 'ready';
  }

  reload(loaded: LoadedConfig): readonly string[] {
    const { inForce, needRestart } = reload(this.#loaded, loaded);
    this.#loaded = inForce;
    this.#document = documentOf(inForce);
    this.#parts.times.configure(loaded.config.cache.classes);
    this.#parts.logger.level = loaded.config.log.level;
    return needRestart;
  }

  stop(delayMs: number): Promise<void> {
    this.#stopping ??= this.#drain(delayMs);
    return this.#stopping;
  }

  async #drain(delayMs: number): Promise<void> {
    this.#status = 'draining';
    await sleep(delayMs);
    await this.#public?.close(IN_FLIGHT_GRACE_MS);
    await this.#admin?.close(ADMIN_GRACE_MS);
    await this.#parts.source.close();
    await this.#parts.shared.close();
    this.#parts.metrics.close();
  }
}

function plainErrorBody(error: string): ReportErrorBody {
  return { error };
}

function documentOf({ config }: LoadedConfig): OpenApiDocument {
  return buildOpenApiDocument({ limits: config.rateLimit });
}
