/** A worker as the first process sees it: a process made with node:cluster. */
import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import { type FromWorker, readFromWorker, type ToWorker } from './messages.ts';

/** How a process ended: its exit status or the signal that ended it; neither if it could not be made. */
export interface WorkerEnd {
  readonly code: number | null;
  readonly signal: string | null;
}

/** A worker's answer to a request for its metrics. */
export type MetricsAnswer = { readonly value: unknown } | 'silent' | 'gone';

export interface WorkerListener {
  /** Every message but the worker's own metrics. */
  onMessage(worker: WorkerProcess, message: Exclude<FromWorker, { kind: 'metrics' }>): void;
  /** Called once; no message comes afterwards. */
  onEnd(worker: WorkerProcess, end: WorkerEnd): void;
}

/** The program itself, which finds out from node:cluster that it is a worker. */
const PROGRAM = fileURLToPath(new URL('../cli/evalgate.js', import.meta.url));
const METRICS_TIMEOUT_MS = 1000;

/** Call it once, before the first worker is made. */
export function configureCluster(): void {
  // All workers accept from one queue of the system. Under Node's other policy the first process accepts and hands
  // connections on: one on its way to a worker that is killed is never answered and never closed.
  cluster.schedulingPolicy = cluster.SCHED_NONE;
  // Metrics hold NaN, which JSON cannot express.
  cluster.setupPrimary({ exec: PROGRAM, args: ['serve'], serialization: 'advanced' });
}

export class WorkerProcess {
  /** Unix milliseconds; null before the worker is ready. */
  readyAtMs: number | null = null;
  readonly #worker: Worker;
  readonly #listener: WorkerListener;
  readonly #metricsRequests = new Map<number, (answer: MetricsAnswer) => void>();
  #lastId = 0;
  #hasEnded = false;

  constructor(listener: WorkerListener) {
    this.#listener = listener;
    this.#worker = cluster.fork();
    this.#worker.on('message', (received: unknown) => this.#onMessage(received));
    this.#worker.on('exit', (code: number | null, signal: string | null) => this.#onEnd({ code, signal }));
    // A process that was never made has no exit. Other errors are of messages to one that is ending.
    this.#worker.on('error', () => {
      if (this.#worker.process.pid === undefined) this.#onEnd({ code: null, signal: null });
    });
  }

  /** Never used again for another worker. */
  get id(): number {
    return this.#worker.id;
  }

  /** For log lines. */
  get names() {
    return { worker: this.id, workerPid: this.#worker.process.pid ?? null };
  }

  /** Does nothing if the worker is gone. */
  send(message: ToWorker): void {
    if (this.#worker.isConnected()) this.#worker.process.send(message, () => undefined);
  }

  /** Ends it at once (SIGKILL). */
  kill(): void {
    this.#worker.process.kill('SIGKILL');
  }

  /** Its metrics, after a second at the latest. Never rejects. */
  metrics(): Promise<MetricsAnswer> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve) => {
      const timeout = setTimeout(() => this.#answer(id, 'silent'), METRICS_TIMEOUT_MS);
      this.#metricsRequests.set(id, (answer) => {
        clearTimeout(timeout);
        resolve(answer);
      });
      this.send({ kind: 'send-metrics', id });
    });
  }

  #onMessage(received: unknown): void {
    const message = readFromWorker(received);
    if (message === null || this.#hasEnded) return;
    if (message.kind === 'metrics') this.#answer(message.id, { value: message.value });
    else this.#listener.onMessage(this, message);
  }

  #onEnd(end: WorkerEnd): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const id of this.#metricsRequests.keys()) this.#answer(id, 'gone');
    this.#listener.onEnd(this, end);
  }

  #answer(id: number, answer: MetricsAnswer): void {
    this.#metricsRequests.get(id)?.(answer);
    this.#metricsRequests.delete(id);
  }
}
