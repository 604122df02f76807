/** The first process's work: so many workers are up, one that ends is replaced, and all are drained together. */
import { Gathering, type Gathered, type Timers } from './gathering.ts';
import type { Standing, ToPrimary } from './messages.ts';
import { RestartDelay } from './restart-delay.ts';
import type { Fork, WorkerEnd, WorkerProcess } from './worker-process.ts';

/** Where the workers are reached; the same for all of them. */
export interface Addresses {
  readonly publicUrl: string;
  readonly adminUrl: string;
}

/** The workers can't start; the message says why, for the operator. */
export class WorkersFailedError extends Error {
  override readonly name = 'WorkersFailedError';
}

export interface SupervisorHooks {
  readonly onReady: (worker: WorkerProcess) => void;
  /** A worker ended by itself; another is started after `delayMs`. */
  readonly onCrashed: (worker: WorkerProcess, end: WorkerEnd, delayMs: number) => void;
  /** A replacement says why it can't start; it is tried again. */
  readonly onFailed: (worker: WorkerProcess, message: string) => void;
  /** A worker's question to all could not be answered. */
  readonly onUnanswered: (topic: string, error: unknown) => void;
  /** It did not end in the time it was given. */
  readonly onKilled: (worker: WorkerProcess) => void;
}

export interface SupervisorOptions {
  readonly workers: number;
  readonly fork: Fork;
  readonly timers: Timers;
  /** Unix milliseconds. */
  readonly nowMs: () => number;
  /** What a worker that starts now is started with. */
  readonly payload: () => unknown;
  /** What a worker that asks about a topic is told, from what all of them answered. */
  readonly summarise: (topic: string, gathered: Gathered) => Promise<unknown>;
  readonly hooks: SupervisorHooks;
}

interface Member {
  readonly worker: WorkerProcess;
  readyAtMs: number | null;
}

/** So many workers may end without a word, before any was ready, until it is taken for lasting. */
const MOST_SILENT_ENDS = 3;

export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #members = new Map<number, Member>();
  readonly #cancelRestarts = new Set<() => void>();
  readonly #delay = new RestartDelay();
  readonly #gathering: Gathering;
  readonly #started = Promise.withResolvers<Addresses | null>();
  readonly #ended = Promise.withResolvers<void>();
  #state: 'starting' | 'running' | 'stopping' = 'starting';
  #standing: Standing;
  #silentEnds = 0;
  #killed = 0;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#gathering = new Gathering(options.timers);
    this.#standing = { ready: 0, wanted: options.workers, sinceMs: options.nowMs() };
  }

  /**
   * Resolves when all are ready; with null where they were stopped before. Rejects with WorkersFailedError where one
   * can't start, or none stays; no worker is left then.
   */
  start(): Promise<Addresses | null> {
    for (let i = 0; this.#state === 'starting' && i < this.#options.workers; i += 1) this.#fork();
    return this.#started.promise;
  }

  reload(payload: unknown): void {
    for (const { worker } of this.#members.values()) worker.send({ kind: 'reload', payload });
  }

  /** One worker counts it for all of them: the metrics are their sum. */
  reloadFailed(): void {
    const { worker } = [...this.#members.values()].find(({ readyAtMs }) => readyAtMs !== null) ?? {};
    worker?.send({ kind: 'reload-failed' });
  }

  /** Drains all; those that have not ended after `killAfterMs` are killed. Resolves with how many had to be. */
  async stop(delayMs: number, killAfterMs: number): Promise<number> {
    if (this.#state !== 'stopping') {
      this.#state = 'stopping';
      this.#started.resolve(null);
      for (const { worker } of this.#members.values()) worker.send({ kind: 'drain', delayMs });
      const { timers, hooks } = this.#options;
      const cancel = timers.after(killAfterMs, () => this.#killAll((worker) => hooks.onKilled(worker)));
      void this.#ended.promise.then(cancel);
      this.#endIfAlone();
    }
    await this.#ended.promise;
    return this.#killed;
  }

  #fork(): void {
    const member: Member = {
      readyAtMs: null,
      worker: this.#options.fork({
        onMessage: (message) => void this.#heard(member, message),
        onEnd: (end) => this.#gone(member, end),
      }),
    };
    this.#members.set(member.worker.id, member);
  }

  async #heard(member: Member, message: ToPrimary): Promise<void> {
    const { worker } = member;
    switch (message.kind) {
      case 'hello':
        // One that has not begun has nothing to finish.
        if (this.#state === 'stopping') worker.kill();
        else worker.send({ kind: 'start', payload: this.#options.payload() });
        worker.send({ kind: 'standing', standing: this.#standing });
        break;
      case 'ready':
        this.#isReady(member, message);
        break;
      case 'failed':
        if (this.#state === 'starting') this.#giveUp(message.message);
        else this.#options.hooks.onFailed(worker, message.message);
        break;
      case 'ask':
        await this.#summarise(worker, message);
        break;
      case 'answer':
        this.#gathering.answered(worker.id, message.id, message.value);
        break;
    }
  }

  #isReady(member: Member, { publicUrl, adminUrl }: Addresses): void {
    member.readyAtMs = this.#options.nowMs();
    this.#options.hooks.onReady(member.worker);
    this.#tellStanding();
    if (this.#state !== 'starting' || this.#ready().length < this.#options.workers) return;
    this.#state = 'running';
    this.#started.resolve({ publicUrl, adminUrl });
  }

  #gone(member: Member, end: WorkerEnd): void {
    const { worker, readyAtMs } = member;
    const { hooks, timers, nowMs } = this.#options;
    this.#members.delete(worker.id);
    this.#gathering.ended(worker.id);
    if (this.#state === 'stopping') {
      this.#endIfAlone();
      return;
    }
    if (this.#state === 'starting' && readyAtMs === null) this.#silentEnds += 1;
    const delayMs = this.#delay.afterEnd(readyAtMs === null ? null : nowMs() - readyAtMs);
    hooks.onCrashed(worker, end, delayMs);
    if (this.#silentEnds >= MOST_SILENT_ENDS) {
      this.#giveUp(
        `Worker processes end before they are ready, ${this.#silentEnds} of them by now (${describe(end)}).`,
      );
      return;
    }
    this.#tellStanding();
    const cancel = timers.after(delayMs, () => {
      this.#cancelRestarts.delete(cancel);
      this.#fork();
    });
    this.#cancelRestarts.add(cancel);
  }

  /** Once it is stopping, no worker is made any more. */
  #endIfAlone(): void {
    for (const cancel of this.#cancelRestarts) cancel();
    this.#cancelRestarts.clear();
    if (this.#members.size === 0) this.#ended.resolve();
  }

  #giveUp(message: string): void {
    this.#state = 'stopping';
    this.#killAll(() => undefined);
    this.#endIfAlone();
    void this.#ended.promise.then(() => this.#started.reject(new WorkersFailedError(message)));
  }

  #killAll(tell: (worker: WorkerProcess) => void): void {
    for (const { worker } of this.#members.values()) {
      this.#killed += 1;
      tell(worker);
      worker.kill();
    }
  }

  async #summarise(asker: WorkerProcess, { id, topic }: Extract<ToPrimary, { kind: 'ask' }>): Promise<void> {
    const { summarise, hooks } = this.#options;
    try {
      const value = await summarise(topic, await this.#gathering.ask(this.#ready(), topic));
      asker.send({ kind: 'summary', id, value });
    } catch (error) {
      hooks.onUnanswered(topic, error);
    }
  }

  #tellStanding(): void {
    const ready = this.#ready().length;
    if (ready !== this.#standing.ready) this.#standing = { ...this.#standing, ready, sinceMs: this.#options.nowMs() };
    for (const { worker } of this.#members.values()) worker.send({ kind: 'standing', standing: this.#standing });
  }

  #ready(): readonly WorkerProcess[] {
    return [...this.#members.values()].filter(({ readyAtMs }) => readyAtMs !== null).map(({ worker }) => worker);
  }
}

/** How it ended, in words. */
export function describe({ code, signal }: WorkerEnd): string {
  if (signal !== null) return `ended by ${signal}`;
  return code === null ? 'it could not be started' : `exit status ${code}`;
}
