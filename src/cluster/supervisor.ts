/**
 * The first process of a gateway of several workers (WORKERS). It serves nothing itself: it keeps as many workers running
 * as configured, replaces those that end, adds up their metrics, and drains all together.
 */
import cluster, { type Worker } from 'node:cluster';
import { on } from 'node:events';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { systemClock } from '../time/clock.ts';
import { reload } from '../config/effective.ts';
import type { ConfigFault } from '../config/errors.ts';
import type { LoadedConfig } from '../config/load.ts';
import type { SecretFiles, SecretsLook } from '../config/secret-files.ts';
import type { Logger, ProcessLog } from '../log/logger.ts';
import { ADMIN_GRACE_MS, IN_FLIGHT_GRACE_MS, StartError, TRACES_GRACE_MS } from '../server/server.ts';
import type { DemoAnnouncement, SampleStore } from '../backend/demo-store.ts';
import type { WorkerReport } from '../telemetry/readiness.ts';
import { WorkerMetrics } from '../telemetry/worker-metrics.ts';
import { type FromWorker, fromWorkerSchema, type StartPayload, type ToWorker, type WorkersStatus } from './messages.ts';

/** The program itself, which finds out from node:cluster that it is a worker. */
const PROGRAM = fileURLToPath(new URL('../../src/cli/evalgate.js', import.meta.url));
const REPORT_TIMEOUT_MS = 1000;
/** Each worker is asked so often whether it answers. */
const PING_EVERY_MS = 1000;
/**
 * After so many unanswered pings it counts as silent, and after so many it is killed, and another one started. They are
 * counted, not timed: a first process that was itself held up finds no worker silent for that.
 */
const SILENT_AFTER_PINGS = 3;
const KILLED_AFTER_PINGS = 9;
/** Added to the longest time that a worker takes to stop by itself. */
const KILL_MARGIN_MS = 5000;
/** If so many workers in a row end at once before all have been ready, none is started again. */
const MAX_EARLY_ENDS = 3;
/** A worker that was ready for less than this ended "at once": starting it again will hardly help. */
const EARLY_END_MS = 2000;
const FIRST_RESTART_DELAY_MS = 100;
const LAST_RESTART_DELAY_MS = 10_000;

export class Supervisor {
  /** The addresses of all workers; empty until all are ready. */
  publicUrl = '';
  adminUrl = '';
  demo: DemoAnnouncement | null = null;
  sample: SampleStore | null = null;
  readonly #logger: Logger;
  readonly #relayLog: ProcessLog['relay'];
  readonly #started: LoadedConfig;
  /** Since when each is ready (Unix milliseconds); null before. */
  readonly #workers = new Map<Worker, number | null>();
  /** Unanswered pings. */
  readonly #unanswered = new Map<Worker, number>();
  /** The dependencies that each reported with its last pong. */
  readonly #dependencies = new Map<Worker, WorkersStatus['dependencies'][number]>();
  /** They hold the process: after all workers have crashed, nothing else does until the next ones are made. */
  readonly #restarts = new Set<NodeJS.Timeout>();
  readonly #metrics: WorkerMetrics;
  readonly #allReady = Promise.withResolvers<boolean>();
  readonly #allEnded = Promise.withResolvers<void>();
  readonly #secrets: SecretFiles;
  #latest: LoadedConfig;
  #state: 'starting' | 'running' | 'stopping' = 'starting';
  #status: WorkersStatus;
  /** The status that all workers were sent last. */
  #sentStatus: WorkersStatus | null = null;
  /** Workers in a row that ended at once. */
  #earlyEnds = 0;
  #lastReportId = 0;

  constructor(loaded: LoadedConfig, { logger, droppedLines, relay }: ProcessLog, secrets: SecretFiles) {
    const { workers } = loaded.config.server;
    this.#secrets = secrets;
    this.#logger = logger;
    this.#relayLog = relay;
    this.#started = loaded;
    this.#latest = loaded;
    this.#metrics = new WorkerMetrics(workers, droppedLines);
    this.#status = {
      ready: 0,
      wanted: workers,
      sinceMs: systemClock.nowMs(),
      silent: [],
      dependencies: [],
      hasRedisAnswered: false,
    };
    // All workers accept from one queue of the system. Under Node's other policy the first process accepts and hands
    // connections on: one on its way to a worker that is killed is never answered and never closed.
    cluster.schedulingPolicy = cluster.SCHED_NONE;
    cluster.setupPrimary({
      exec: PROGRAM,
      args: ['serve'],
      // Metrics hold NaN, which JSON cannot express.
      serialization: 'advanced',
      // Workers share no pipe with this process: Node makes one that it hands on, or gives back, block its writers again.
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    });
  }

  /**
   * Resolves when all workers are ready; with false if they were stopped before. Rejects with a StartError if a worker
   * can't start, or none stays; no worker is left then.
   */
  async start(): Promise<boolean> {
    const { config } = this.#started;
    if (config.upstream.url === null) {
      const { startSampleStore } = await import('../backend/demo-store.ts');
      this.sample = await startSampleStore();
    }
    setInterval(() => this.#ping(), PING_EVERY_MS).unref();
    for (let i = 0; this.#state === 'starting' && i < this.#status.wanted; i += 1) this.#startWorker();
    return this.#allReady.promise.catch(async (error: unknown) => {
      await this.sample?.close();
      throw error;
    });
  }

  /** All workers take over what can be changed while they run; returns the settings that need a restart to change. */
  reload(loaded: LoadedConfig): readonly string[] {
    const { inForce, needRestart } = reload(this.#latest, loaded);
    this.#latest = inForce;
    this.#logger.level = inForce.config.log.level;
    this.#sendToAll({ kind: 'reload', files: inForce.files });
    return needRestart;
  }

  /** All workers take over what a look at the files of secrets has found. */
  onSecrets({ loaded, changed, faults }: SecretsLook): void {
    if (loaded !== null) this.#latest = reload(this.#latest, loaded).inForce;
    const [auditor] = this.#ready();
    for (const worker of this.#workers.keys()) {
      const files = loaded === null ? null : this.#latest.files;
      send(worker, { kind: 'secrets', files, changed: worker === auditor ? [...changed] : [], faults: [...faults] });
    }
  }

  /** A new configuration is invalid: the old one stays in force. One worker counts and reports it for all. */
  reloadFailed(faults: readonly ConfigFault[]): void {
    const [worker] = this.#ready();
    if (worker !== undefined) send(worker, { kind: 'reload-failed', faults: [...faults] });
  }

  /** Drains all workers as `Gateway.stop` does. If some have to be killed, the exit status of this process will be 1. */
  async stop(delayMs: number): Promise<void> {
    if (this.#state !== 'stopping') {
      this.#state = 'stopping';
      this.#allReady.resolve(false);
      this.#sendToAll({ kind: 'drain', delayMs });
      this.#sendStatus();
      const killAfterMs = delayMs + IN_FLIGHT_GRACE_MS + ADMIN_GRACE_MS + TRACES_GRACE_MS + KILL_MARGIN_MS;
      const timeout = setTimeout(() => {
        const late = [...this.#workers.keys()].map((worker) => logFields(worker));
        this.#logger.error({ workers: late }, 'workers did not end in time and are killed');
        process.exitCode = 1;
        this.#killAll();
      }, killAfterMs);
      void this.#allEnded.promise.then(() => clearTimeout(timeout));
      this.#startNoMore();
    }
    await this.#allEnded.promise;
    await this.sample?.close();
  }

  #startWorker(): void {
    const worker = cluster.fork();
    this.#workers.set(worker, null);
    if (worker.process.stderr !== null) this.#relayLog(worker.process.stderr);
    worker.on('message', (received: unknown) => {
      const { data: message } = fromWorkerSchema.safeParse(received);
      if (message !== undefined && this.#workers.has(worker)) this.#onMessage(worker, message);
    });
    worker.on('exit', (code: number | null, signal: string | null) => {
      this.#onEnd(worker, signal === null ? `exit status ${code}` : `ended by ${signal}`);
    });
    // A process that was never made has no exit. Other errors are of messages to one that is ending.
    worker.on('error', () => {
      if (worker.process.pid === undefined) this.#onEnd(worker, 'it could not be started');
    });
  }

  #onMessage(worker: Worker, message: FromWorker): void {
    switch (message.kind) {
      case 'hello':
        // One that has not begun has nothing to finish.
        send(worker, { kind: 'status', status: this.#status });
        if (this.#state === 'stopping') worker.process.kill('SIGKILL');
        else send(worker, { kind: 'start', payload: this.#startPayload() });
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
        else this.#logger.error({ ...logFields(worker), reason: message.message }, 'worker cannot start');
        break;
      case 'pong':
        this.#unanswered.set(worker, 0);
        this.#dependencies.set(worker, message.dependencies);
        this.#sendStatus();
        break;
      case 'look-at-secrets':
        this.#secrets.look();
        send(worker, { kind: 'secrets', files: null, changed: [], faults: [...this.#secrets.faults] });
        break;
      case 'request-reports':
        void this.#sendReports(worker, message.id, message.what);
        break;
      // Read by `reportOf`.
      case 'report':
        break;
    }
  }

  #onReady(worker: Worker, { publicUrl, adminUrl }: Extract<FromWorker, { kind: 'ready' }>): void {
    this.#workers.set(worker, systemClock.nowMs());
    this.#logger.info(logFields(worker), 'worker ready');
    this.#sendStatus();
    if (this.#state !== 'starting' || this.#ready().length < this.#status.wanted) return;
    this.#state = 'running';
    this.publicUrl = publicUrl;
    this.adminUrl = adminUrl;
    this.demo = this.sample?.announcement(publicUrl) ?? null;
    this.#allReady.resolve(true);
  }

  #ping(): void {
    for (const worker of this.#ready()) {
      const unanswered = this.#unanswered.get(worker) ?? 0;
      this.#unanswered.set(worker, unanswered + 1);
      if (unanswered === SILENT_AFTER_PINGS) this.#logger.error(logFields(worker), 'worker does not answer');
      if (unanswered === KILLED_AFTER_PINGS && this.#state !== 'stopping') {
        this.#logger.error(logFields(worker), 'worker does not answer and is killed');
        worker.process.kill('SIGKILL');
      }
      send(worker, { kind: 'ping' });
    }
    this.#sendStatus();
  }

  #isSilent(worker: Worker): boolean {
    return (this.#unanswered.get(worker) ?? 0) > SILENT_AFTER_PINGS;
  }

  #onEnd(worker: Worker, reason: string): void {
    const readyAtMs = this.#workers.get(worker) ?? null;
    if (!this.#workers.delete(worker)) return;
    this.#unanswered.delete(worker);
    this.#dependencies.delete(worker);
    if (this.#state === 'stopping') {
      this.#startNoMore();
      return;
    }
    const isEarly = readyAtMs === null || systemClock.nowMs() - readyAtMs < EARLY_END_MS;
    this.#earlyEnds = isEarly ? this.#earlyEnds + 1 : 0;
    // Twice as long for each worker in a row that ended at once.
    const delayMs = isEarly ? Math.min(LAST_RESTART_DELAY_MS, FIRST_RESTART_DELAY_MS * 2 ** (this.#earlyEnds - 1)) : 0;
    this.#logger.error({ ...logFields(worker), end: reason, delayMs }, 'worker ended by itself; another is started');
    if (this.#state === 'starting' && this.#earlyEnds >= MAX_EARLY_ENDS) {
      this.#giveUp(`Worker processes end before they are ready, ${this.#earlyEnds} of them by now (${reason}).`);
      return;
    }
    this.#sendStatus();
    const restart = setTimeout(() => {
      this.#restarts.delete(restart);
      this.#startWorker();
    }, delayMs);
    this.#restarts.add(restart);
  }

  #giveUp(reason: string): void {
    this.#state = 'stopping';
    this.#killAll();
    this.#startNoMore();
    void this.#allEnded.promise.then(() => this.#allReady.reject(new StartError(reason)));
  }

  #killAll(): void {
    // At once; `worker.kill()` would disconnect it first.
    for (const worker of this.#workers.keys()) worker.process.kill('SIGKILL');
  }

  /** While it is stopping. */
  #startNoMore(): void {
    for (const restart of this.#restarts) clearTimeout(restart);
    this.#restarts.clear();
    if (this.#workers.size === 0) this.#allEnded.resolve();
  }

  /** Any worker that is asked sends the metrics of all, or their counts. */
  async #sendReports(to: Worker, requestId: number, what: WorkerReport): Promise<void> {
    this.#lastReportId += 1;
    const id = this.#lastReportId;
    const asked = this.#ready();
    try {
      const values = await Promise.all(asked.map((worker) => reportOf(worker, { id, what })));
      if (what === 'counts') {
        send(to, { kind: 'all-reports', id: requestId, value: values.filter((value) => value !== null) });
        return;
      }
      const answers = asked.map(({ id: worker }, i) => ({ worker, value: values[i] ?? null }));
      const text = await this.#metrics.render({
        answers: answers.filter(({ value }) => value !== null),
        silent: asked.filter((worker, i) => values[i] === null && this.#workers.has(worker)).map((worker) => worker.id),
      });
      send(to, { kind: 'all-reports', id: requestId, value: text });
    } catch (error) {
      this.#logger.error({ err: error }, 'the metrics of the workers cannot be added up');
    }
  }

  /** No worker takes requests before Redis has answered one of them, nor while all drain. */
  #sendStatus(): void {
    const isServing = this.#state !== 'stopping' && this.#status.hasRedisAnswered;
    const silent = this.#ready().filter((worker) => this.#isSilent(worker));
    const ready = isServing ? this.#ready().length - silent.length : 0;
    const sinceMs = ready === this.#status.ready ? this.#status.sinceMs : systemClock.nowMs();
    const named = silent.map((worker) => ({ worker: worker.id, pid: worker.process.pid ?? 0 }));
    const answering = this.#ready().filter((worker) => !silent.includes(worker));
    const dependencies = answering.map((worker) => this.#dependencies.get(worker) ?? []);
    const status = { ...this.#status, ready, sinceMs, silent: named, dependencies };
    if (isDeepStrictEqual(status, this.#sentStatus)) return;
    this.#status = status;
    this.#sentStatus = status;
    this.#sendToAll({ kind: 'status', status });
  }

  #sendToAll(message: ToWorker): void {
    for (const worker of this.#workers.keys()) send(worker, message);
  }

  #ready(): readonly Worker[] {
    return [...this.#workers].filter(([, readyAtMs]) => readyAtMs !== null).map(([worker]) => worker);
  }

  #startPayload(): StartPayload {
    const sample = this.sample;
    return {
      files: this.#started.files,
      reloaded: this.#latest === this.#started ? null : this.#latest.files,
      secretFaults: [...this.#secrets.faults],
      sample: sample && { url: sample.url, token: sample.token, keys: [...sample.keys] },
    };
  }
}

/** For log lines. A number is never used again for another worker. */
function logFields(worker: Worker) {
  return { worker: worker.id, workerPid: worker.process.pid ?? null };
}

/** Does nothing if the worker is gone. */
function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.process.send(message, () => undefined);
}

/** A worker's own metrics or counts; null if it is gone, or does not answer within a second. Never rejects. */
async function reportOf(
  worker: Worker,
  report: { readonly id: number; readonly what: WorkerReport },
): Promise<unknown> {
  const messages = on(worker, 'message', { signal: AbortSignal.timeout(REPORT_TIMEOUT_MS), close: ['exit'] });
  send(worker, { kind: 'report', ...report });
  try {
    for await (const [received] of messages) {
      const { data: message } = fromWorkerSchema.safeParse(received);
      if (message?.kind === 'report' && message.id === report.id) return message.value;
    }
  } catch {
    // Timed out.
  }
  return null;
}
