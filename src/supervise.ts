/** The composition root of the first of several processes: it serves nothing itself, and keeps the workers that do. */
import { fileURLToPath } from 'node:url';
import { systemClock } from './clock.ts';
import type { Gathered, Timers } from './cluster/gathering.ts';
import { describe, Supervisor, WorkersFailedError } from './cluster/supervisor.ts';
import { createFork, type WorkerProcess } from './cluster/worker-process.ts';
import type { Config } from './config/config.ts';
import { reload } from './config/effective.ts';
import type { KeptConfig } from './config/load.ts';
import { announceDemo, type DemoAnnouncement, type DemoKeys, issueDemoKeys } from './demo.ts';
import { ADMIN_GRACE_MS, freePort, IN_FLIGHT_GRACE_MS, StartError, TRACES_GRACE_MS } from './server.ts';
import { MemoryRegistry } from './keys/memory-registry.ts';
import type { ImportedKey } from './keys/key.ts';
import type { Logger } from './log/logger.ts';
import { type SampleStore, startSampleStore } from './sample-store.ts';
import { METRICS_TOPIC } from './siblings.ts';
import { WorkerMetrics } from './telemetry/worker-metrics.ts';
import type { StartPayload } from './worker-payload.ts';

export interface SupervisedGateway {
  readonly publicUrl: string;
  readonly adminUrl: string;
  /** Null in front of a real store. */
  readonly demo: DemoAnnouncement | null;
}

/** What `node:cluster` starts: the program itself, which finds out that it is a worker. */
const PROGRAM = fileURLToPath(new URL('cli/evalgate.js', import.meta.url));
/** They hold the process: where all workers have crashed, nothing else does until the next ones are made. */
const HOLDING_TIMERS: Timers = {
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};
/** Over what a worker takes at most by itself. */
const KILL_MARGIN_MS = 5000;

export class SupervisedGateways {
  readonly #logger: Logger;
  readonly #started: KeptConfig;
  readonly #supervisor: Supervisor;
  readonly #metrics: WorkerMetrics;
  #latest: KeptConfig;
  #env: StartPayload['env'] = {};
  #sample: { readonly store: SampleStore; readonly keys: DemoKeys } | null = null;

  constructor(kept: KeptConfig, logger: Logger) {
    const { workers } = kept.loaded.config.server;
    this.#started = kept;
    this.#latest = kept;
    this.#logger = logger;
    this.#metrics = new WorkerMetrics(workers);
    this.#supervisor = new Supervisor({
      workers,
      fork: createFork({ exec: PROGRAM, args: ['serve'] }),
      timers: HOLDING_TIMERS,
      nowMs: () => systemClock.nowMs(),
      payload: () => this.#payload(),
      summarise: (topic, gathered) => this.#summarise(topic, gathered),
      hooks: hooksOf(logger),
    });
  }

  /** Resolves when all workers are ready; with null where they were stopped before. Rejects with StartError. */
  async start(): Promise<SupervisedGateway | null> {
    this.#env = await chosenPorts(this.#started.loaded.config);
    if (this.#started.loaded.config.upstream.url === null) {
      const store = await startSampleStore();
      const keys = await issueDemoKeys(new MemoryRegistry(systemClock), store.ids);
      this.#sample = { store, keys };
    }
    try {
      const addresses = await this.#supervisor.start();
      if (addresses === null) {
        await this.#closeSample();
        return null;
      }
      const { publicUrl, adminUrl } = addresses;
      const sample = this.#sample;
      return { publicUrl, adminUrl, demo: sample && announceDemo(sample.keys, sample.store.ids, publicUrl) };
    } catch (error) {
      await this.#closeSample();
      throw error instanceof WorkersFailedError ? new StartError(error.message) : error;
    }
  }

  /** All workers take over what can be changed while they run; returns the settings that need a restart to change. */
  reload(kept: KeptConfig): readonly string[] {
    const { inForce, needRestart } = reload(this.#latest.loaded, kept.loaded);
    this.#latest = { loaded: inForce, files: kept.files };
    this.#logger.level = inForce.config.log.level;
    this.#supervisor.reload(kept.files);
    return needRestart;
  }

  /** A new configuration is invalid: it is counted, and the old one stays in force. */
  reloadFailed(): void {
    this.#supervisor.reloadFailed();
  }

  /** Drains all workers, as a gateway's own `stop`. Resolves with how many of them had to be killed. */
  async stop(delayMs: number): Promise<number> {
    const killAfterMs = delayMs + IN_FLIGHT_GRACE_MS + ADMIN_GRACE_MS + TRACES_GRACE_MS + KILL_MARGIN_MS;
    const killed = await this.#supervisor.stop(delayMs, killAfterMs);
    await this.#closeSample();
    return killed;
  }

  async #closeSample(): Promise<void> {
    const sample = this.#sample;
    this.#sample = null;
    await sample?.store.close();
  }

  #payload(): StartPayload {
    const sample = this.#sample;
    return {
      env: this.#env,
      files: this.#started.files,
      reloaded: this.#latest === this.#started ? null : this.#latest.files,
      sample: sample && { url: sample.store.url, token: sample.store.token, keys: importable(sample.keys) },
    };
  }

  async #summarise(topic: string, gathered: Gathered): Promise<unknown> {
    if (topic !== METRICS_TOPIC) throw new RangeError(`nobody asks about ${topic}`);
    return await this.#metrics.render(gathered);
  }
}

/**
 * Where any free port will do it is chosen here, once: a worker that starts after all others have crashed would else get
 * another one than consumers know.
 */
async function chosenPorts({ server, admin }: Config): Promise<Readonly<Record<string, string>>> {
  const chosen: Record<string, string> = {};
  if (server.port === 0) chosen['PORT'] = String(await freePort(server.host));
  if (admin.port === 0) chosen['ADMIN_PORT'] = String(await freePort(admin.host));
  return chosen;
}

/** As they were issued: each worker lets the same keys in, and counts them as the same. */
function importable({ v1, v2 }: DemoKeys): ImportedKey[] {
  return [v1, v2].map(({ key: { lastUsedAtMs, ...key } }) => {
    if (lastUsedAtMs !== null) throw new Error('A key that was used already is none that was just issued.');
    return key;
  });
}

function named({ id, pid }: WorkerProcess) {
  return { worker: id, workerPid: pid };
}

function hooksOf(logger: Logger) {
  return {
    onReady: (worker: WorkerProcess) => logger.info(named(worker), 'worker ready'),
    onCrashed: (worker: WorkerProcess, end: Parameters<typeof describe>[0], delayMs: number) =>
      logger.error({ ...named(worker), end: describe(end), delayMs }, 'worker ended by itself; another is started'),
    onFailed: (worker: WorkerProcess, reason: string) =>
      logger.error({ ...named(worker), reason }, 'worker cannot start'),
    onUnanswered: (topic: string, error: unknown) =>
      logger.error({ topic, err: error }, 'a question to the workers was not answered'),
    onKilled: (worker: WorkerProcess) => logger.error(named(worker), 'worker did not end in time and is killed'),
  };
}
