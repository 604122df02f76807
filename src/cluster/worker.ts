/** A worker: a gateway that the first process starts, reloads and drains. */
import { on } from 'node:events';
import { reload } from '../config/effective.ts';
import type { Environment } from '../config/variable.ts';
import { type KeptFiles, type LoadedConfig, loadKept } from '../config/load.ts';
import { z } from 'zod';
import type { Gateway } from '../gateway.ts';
import { openProcessLog } from '../log/logger.ts';
import { StartError } from '../server/server.ts';
import type { WorkerReport, Workers } from '../telemetry/readiness.ts';
import { systemTimers, withDeadline } from '../time/timers.ts';
import {
  filesSchema,
  type FromWorker,
  type StartPayload,
  startSchema,
  type ToWorker,
  toWorkerSchema,
  type WorkersStatus,
} from './messages.ts';

/** Resolves when the gateway has stopped, with the status to exit with. */
export async function runWorker(env: Environment): Promise<number> {
  // A terminal and a service manager signal all processes at once; the first process says what is to be done.
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const supervisor = new SupervisorLink();
  const { files, reloaded, secretFaults, sample } = await supervisor.start();
  const load = (from: KeptFiles): LoadedConfig => loadKept(env, from);
  const started = load(files);
  const loaded = reloaded === null ? started : reload(started, load(reloaded)).inForce;
  const log = await openProcessLog(loaded.config.log.level);
  const { startGateway } = await import('../gateway.ts');
  let gateway: Gateway;
  try {
    const lookAtSecrets = (): Promise<void> => supervisor.lookAtSecrets();
    const outside = { workers: supervisor, sample, lookAtSecrets, secretFaults, isStoreLookedFor: true };
    gateway = await startGateway(loaded, { ...log, ...outside });
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    await send({ kind: 'failed', message: error.message });
    await log.flush();
    return 1;
  }
  supervisor.connect(gateway, load);
  void send({ kind: 'ready', publicUrl: gateway.publicUrl, adminUrl: gateway.adminUrl });
  await gateway.stop(await supervisor.drain);
  await log.flush();
  return 0;
}

const REPORTS_TIMEOUT_MS = 3000;
const LOOK_TIMEOUT_MS = 1000;

/** The worker's end of the line to the first process. */
class SupervisorLink implements Workers {
  readonly #start = Promise.withResolvers<unknown>();
  readonly #drain = Promise.withResolvers<number>();
  /** Resolves with how long the worker is to go on accepting, when it is to drain. */
  readonly drain = this.#drain.promise;
  #status: WorkersStatus = {
    ready: 0,
    wanted: 0,
    sinceMs: Date.now(),
    silent: [],
    dependencies: [],
    hasRedisAnswered: false,
  };
  /** Messages that come before the gateway has started wait for it. */
  readonly #gateway = Promise.withResolvers<{ gateway: Gateway; load: (files: KeptFiles) => LoadedConfig }>();
  /** Under way. */
  #look: PromiseWithResolvers<void> | null = null;
  #lastId = 0;

  constructor() {
    process.on('message', (received: unknown) => {
      const { data: message } = toWorkerSchema.safeParse(received);
      if (message !== undefined) this.#onMessage(message);
    });
  }

  /** Asks what to start with. Never resolves if no worker is wanted any more: the first process then ends this one. */
  async start(): Promise<StartPayload> {
    void send({ kind: 'hello' });
    return startSchema.parse(await this.#start.promise);
  }

  /** From now on the gateway gets each new configuration, one that came earlier too, and reports its metrics. */
  connect(gateway: Gateway, load: (files: KeptFiles) => LoadedConfig): void {
    this.#gateway.resolve({ gateway, load });
  }

  /** Resolves once the gateway has the secrets that the first process reads now, or if it does not answer in time. */
  async lookAtSecrets(): Promise<void> {
    if (this.#look === null) {
      this.#look = Promise.withResolvers();
      void send({ kind: 'look-at-secrets' });
    }
    await withDeadline(this.#look.promise, LOOK_TIMEOUT_MS, systemTimers, () => {
      this.#look = null;
    });
  }

  status(): WorkersStatus {
    return this.#status;
  }

  hasRedisAnswered(): boolean {
    return this.#status.hasRedisAnswered;
  }

  redisAnswered(): void {
    void send({ kind: 'redis-answered' });
  }

  async metrics(): Promise<string> {
    return z.string().parse(await this.#reports('metrics'));
  }

  async counts(): Promise<readonly unknown[]> {
    return z.array(z.unknown()).parse(await this.#reports('counts'));
  }

  async #reports(what: WorkerReport): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    const messages = on(process, 'message', { signal: AbortSignal.timeout(REPORTS_TIMEOUT_MS) });
    void send({ kind: 'request-reports', id, what });
    try {
      for await (const [received] of messages) {
        const { data: message } = toWorkerSchema.safeParse(received);
        if (message?.kind === 'all-reports' && message.id === id) return message.value;
      }
    } catch {
      // Timed out.
    }
    throw new Error(`The first process did not send the ${what} of all workers in time.`);
  }

  #onMessage(message: ToWorker): void {
    switch (message.kind) {
      case 'start':
        this.#start.resolve(message.payload);
        break;
      case 'reload':
        void this.#gateway.promise.then(({ gateway, load }) => gateway.reload(load(filesSchema.parse(message.files))));
        break;
      case 'secrets':
        void this.#takeSecrets(message);
        break;
      case 'reload-failed':
        void this.#gateway.promise.then(({ gateway }) => gateway.reloadFailed(message.faults));
        break;
      case 'drain':
        this.#drain.resolve(message.delayMs);
        break;
      case 'status':
        this.#status = message.status;
        break;
      case 'ping':
        void this.#gateway.promise.then(({ gateway }) =>
          send({ kind: 'pong', dependencies: [...gateway.dependencies()] }),
        );
        break;
      case 'report':
        void this.#report(message.id, message.what);
        break;
      // Read by `#reports`.
      case 'all-reports':
        break;
    }
  }

  async #takeSecrets({ files, changed, faults }: Extract<ToWorker, { kind: 'secrets' }>): Promise<void> {
    const { gateway, load } = await this.#gateway.promise;
    gateway.onSecrets({ loaded: files === null ? null : load(filesSchema.parse(files)), changed, faults });
    this.#look?.resolve();
    this.#look = null;
  }

  /** A report that can't be made is not sent: the first process waits only for a moment. */
  async #report(id: number, what: WorkerReport): Promise<void> {
    const { gateway } = await this.#gateway.promise;
    const value = await gateway.report(what).catch(() => undefined);
    if (value !== undefined) await send({ kind: 'report', id, value });
  }
}

/** Resolves when the message is on its way, or can't be sent: then the first process is gone, and so is this one soon. */
function send(message: FromWorker): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, {}, () => resolve());
  });
}
