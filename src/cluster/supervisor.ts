/**
 * The first process of a gateway of several workers (WORKERS). It serves nothing itself: it keeps as many workers running
 * as configured, replaces those that end, adds up their metrics, and drains all together.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { systemClock } from '../clock.ts';
import type { Config } from '../config/config.ts';
import type { KeptConfig } from '../config/load.ts';
import { reload } from '../config/effective.ts';
import {
  announceDemo,
  type DemoAnnouncement,
  type DemoKeys,
  issueDemoKeys,
  type SampleStore,
  startSampleStore,
} from '../demo.ts';
import type { ImportedKey } from '../keys/key.ts';
import { MemoryRegistry } from '../keys/memory-registry.ts';
import type { Logger } from '../log/logger.ts';
import { ADMIN_GRACE_MS, IN_FLIGHT_GRACE_MS, StartError, TRACES_GRACE_MS } from '../server.ts';
import { WorkerMetrics } from '../telemetry/worker-metrics.ts';
import type { FromWorker, StartPayload, WorkersStatus } from './messages.ts';
import { configureCluster, type WorkerEnd, WorkerProcess } from './worker-process.ts';

/** The same for all workers. */
interface Addresses {
  readonly publicUrl: string;
  readonly adminUrl: string;
}

export interface SupervisedGateway extends Addresses {
  /** Null in front of a real store. */
  readonly demo: DemoAnnouncement | null;
}

/** Added to the longest time that a worker takes to stop by itself. */
const KILL_MARGIN_MS = 5000;
/** If so many workers end without a message before any start has succeeded, none is started again. */
const MAX_SILENT_ENDS = 3;
/** A worker that was ready for less than this ended "at once": starting it again will hardly help. */
const EARLY_END_MS = 2000;
const FIRST_RESTART_DELAY_MS = 100;
const LAST_RESTART_DELAY_MS = 10_000;

export class Supervisor {
  readonly #logger: Logger;
  /** How many workers there are to be. */
  readonly #wanted: number;
  readonly #started: KeptConfig;
  readonly #workers = new Set<WorkerProcess>();
  /** They hold the process: after all workers have crashed, nothing else does until the next ones are made. */
  readonly #restarts = new Set<NodeJS.Timeout>();
  readonly #metrics: WorkerMetrics;
  readonly #allReady = Promise.withResolvers<Addresses | null>();
  readonly #allEnded = Promise.withResolvers<void>();
  #latest: KeptConfig;
  #env: StartPayload['env'] = {};
  #sample: { readonly store: SampleStore; readonly keys: DemoKeys } | null = null;
  #state: 'starting' | 'running' | 'stopping' = 'starting';
  #status: WorkersStatus;
  #silentEnds = 0;
  /** Workers in a row that ended at once. */
  #earlyEnds = 0;
  #killed = 0;

  constructor(kept: KeptConfig, logger: Logger) {
    const { workers } = kept.loaded.config.server;
    this.#logger = logger;
    this.#wanted = workers;
    this.#started = kept;
    this.#latest = kept;
    this.#metrics = new WorkerMetrics(workers);
    this.#status = { ready: 0, wanted: workers, sinceMs: systemClock.nowMs(), hasRedisAnswered: false };
    configureCluster();
  }

  /**
   * Resolves when all workers are ready; with null if they were stopped before. Rejects with a StartError if a worker
   * can't start, or none stays; no worker is left then.
   */
  async start(): Promise<SupervisedGateway | null> {
    const { config } = this.#started.loaded;
    this.#env = await chosenPorts(config);
    if (config.upstream.url === null) {
      const store = await startSampleStore();
      this.#sample = { store, keys: await issueDemoKeys(new MemoryRegistry(systemClock), store.ids) };
    }
    for (let i = 0; this.#state === 'starting' && i < this.#wanted; i += 1) this.#startWorker();
    try {
      const addresses = await this.#allReady.promise;
      const sample = this.#sample;
      if (addresses === null) await this.#closeSample();
      return (
        addresses && { ...addresses, demo: sample && announceDemo(sample.keys, sample.store.ids, addresses.publicUrl) }
      );
    } catch (error) {
      await this.#closeSample();
      throw error;
    }
  }

  /** All workers take over what can be changed while they run; returns the settings that need a restart to change. */
  reload(kept: KeptConfig): readonly string[] {
    const { inForce, needRestart } = reload(this.#latest.loaded, kept.loaded);
    this.#latest = { loaded: inForce, files: kept.files };
    this.#logger.level = inForce.config.log.level;
    for (const worker of this.#workers) worker.send({ kind: 'reload', files: kept.files });
    return needRestart;
  }

  /** A new configuration is invalid: the old one stays in force. One worker counts it, since metrics are their sum. */
  reloadFailed(): void {
    this.#ready()[0]?.send({ kind: 'reload-failed' });
  }

  /** Drains all workers as `Gateway.stop` does. Resolves with how many of them had to be killed. */
  async stop(delayMs: number): Promise<number> {
    if (this.#state !== 'stopping') {
      this.#state = 'stopping';
      this.#allReady.resolve(null);
      for (const worker of this.#workers) worker.send({ kind: 'drain', delayMs });
      const killAfterMs = delayMs + IN_FLIGHT_GRACE_MS + ADMIN_GRACE_MS + TRACES_GRACE_MS + KILL_MARGIN_MS;
      const timeout = setTimeout(() => {
        for (const worker of this.#workers)
          this.#logger.error(worker.names, 'worker did not end in time and is killed');
        this.#killAll();
      }, killAfterMs);
      void this.#allEnded.promise.then(() => clearTimeout(timeout));
      this.#startNoMore();
    }
    await this.#allEnded.promise;
    await this.#closeSample();
    return this.#killed;
  }

  #startWorker(): void {
    const worker = new WorkerProcess({
      onMessage: (sender, message) => this.#onMessage(sender, message),
      onEnd: (ended, end) => this.#onEnd(ended, end),
    });
    this.#workers.add(worker);
  }

  #onMessage(worker: WorkerProcess, message: Exclude<FromWorker, { kind: 'metrics' }>): void {
    switch (message.kind) {
      case 'hello':
        // One that has not begun has nothing to finish.
        worker.send({ kind: 'status', status: this.#status });
        if (this.#state === 'stopping') worker.kill();
        else worker.send({ kind: 'start', payload: this.#startPayload() });
        break;
      case 'ready':
        this.#onReady(worker, message);
        break;
      case 'redis-answered':
        this.#status = { ...this.#status, hasRedisAnswered: true };
        this.#sendStatus();
        break;
      case 'failed':
        if (this.#state === 'starting') this.#giveUp(message.message);
        else this.#logger.error({ ...worker.names, reason: message.message }, 'worker cannot start');
        break;
      case 'request-metrics':
        void this.#sendMetrics(worker, message.id);
        break;
    }
  }

  #onReady(worker: WorkerProcess, { publicUrl, adminUrl }: Addresses): void {
    worker.readyAtMs = systemClock.nowMs();
    this.#logger.info(worker.names, 'worker ready');
    this.#sendStatus();
    if (this.#state !== 'starting' || this.#ready().length < this.#wanted) return;
    this.#state = 'running';
    this.#allReady.resolve({ publicUrl, adminUrl });
  }

  #onEnd(worker: WorkerProcess, end: WorkerEnd): void {
    this.#workers.delete(worker);
    if (this.#state === 'stopping') {
      this.#startNoMore();
      return;
    }
    if (this.#state === 'starting' && worker.readyAtMs === null) this.#silentEnds += 1;
    const delayMs = this.#restartDelayMs(worker.readyAtMs);
    const reason = describeEnd(end);
    this.#logger.error({ ...worker.names, end: reason, delayMs }, 'worker ended by itself; another is started');
    if (this.#silentEnds >= MAX_SILENT_ENDS) {
      this.#giveUp(`Worker processes end before they are ready, ${this.#silentEnds} of them by now (${reason}).`);
      return;
    }
    this.#sendStatus();
    const restart = setTimeout(() => {
      this.#restarts.delete(restart);
      this.#startWorker();
    }, delayMs);
    this.#restarts.add(restart);
  }

  /** None, or twice as long for each worker in a row that ended at once. */
  #restartDelayMs(readyAtMs: number | null): number {
    if (readyAtMs !== null && systemClock.nowMs() - readyAtMs >= EARLY_END_MS) {
      this.#earlyEnds = 0;
      return 0;
    }
    this.#earlyEnds += 1;
    return Math.min(LAST_RESTART_DELAY_MS, FIRST_RESTART_DELAY_MS * 2 ** Math.min(this.#earlyEnds - 1, 20));
  }

  #giveUp(reason: string): void {
    this.#state = 'stopping';
    this.#killAll();
    this.#startNoMore();
    void this.#allEnded.promise.then(() => this.#allReady.reject(new StartError(reason)));
  }

  #killAll(): void {
    this.#killed += this.#workers.size;
    for (const worker of this.#workers) worker.kill();
  }

  /** While it is stopping. */
  #startNoMore(): void {
    for (const restart of this.#restarts) clearTimeout(restart);
    this.#restarts.clear();
    if (this.#workers.size === 0) this.#allEnded.resolve();
  }

  /** Any worker that is scraped sends the metrics of all. */
  async #sendMetrics(to: WorkerProcess, id: number): Promise<void> {
    try {
      const all = await Promise.all(
        this.#ready().map(async (worker) => ({ worker: worker.id, answer: await worker.metrics() })),
      );
      const answers = all.flatMap(({ worker, answer }) =>
        typeof answer === 'string' ? [] : [{ worker, value: answer.value }],
      );
      const silent = all.filter(({ answer }) => answer === 'silent').map(({ worker }) => worker);
      to.send({ kind: 'all-metrics', id, text: await this.#metrics.render({ answers, silent }) });
    } catch (error) {
      this.#logger.error({ err: error }, 'the metrics of the workers cannot be added up');
    }
  }

  #sendStatus(): void {
    const ready = this.#ready().length;
    if (ready !== this.#status.ready) this.#status = { ...this.#status, ready, sinceMs: systemClock.nowMs() };
    for (const worker of this.#workers) worker.send({ kind: 'status', status: this.#status });
  }

  #ready(): readonly WorkerProcess[] {
    return [...this.#workers].filter(({ readyAtMs }) => readyAtMs !== null);
  }

  #startPayload(): StartPayload {
    const sample = this.#sample;
    return {
      env: this.#env,
      files: this.#started.files,
      reloaded: this.#latest === this.#started ? null : this.#latest.files,
      sample: sample && { url: sample.store.url, token: sample.store.token, keys: importable(sample.keys) },
    };
  }

  async #closeSample(): Promise<void> {
    const sample = this.#sample;
    this.#sample = null;
    await sample?.store.close();
  }
}

/**
 * If any free port will do, one is chosen here, once: otherwise a worker that starts after all others have crashed would
 * get another port than consumers know.
 */
async function chosenPorts({ server, admin }: Config): Promise<Readonly<Record<string, string>>> {
  const chosen: Record<string, string> = {};
  if (server.port === 0) chosen['PORT'] = String(await freePort(server.host));
  if (admin.port === 0) chosen['ADMIN_PORT'] = String(await freePort(admin.host));
  return chosen;
}

/** A port that was free just now; 0 if the host is not of this machine, which the worker will report. */
async function freePort(host: string): Promise<number> {
  const server = createServer();
  try {
    server.listen(0, host);
    await once(server, 'listening');
    const address = server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  } catch {
    return 0;
  } finally {
    server.close();
  }
}

/** The keys as they were issued: each worker accepts the same ones, and counts them as the same. */
function importable({ v1, v2 }: DemoKeys): ImportedKey[] {
  return [v1, v2].map(({ key: { lastUsedAtMs, ...key } }) => {
    if (lastUsedAtMs !== null) throw new Error('A key that was just issued has been used already.');
    return key;
  });
}

function describeEnd({ code, signal }: WorkerEnd): string {
  if (signal !== null) return `ended by ${signal}`;
  return code === null ? 'it could not be started' : `exit status ${code}`;
}
