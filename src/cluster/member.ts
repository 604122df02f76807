/** A worker's line to the first process: what it is told, what it asks, and what it answers. */
import cluster from 'node:cluster';
import { readToWorker, type Standing, type ToPrimary, type ToWorker } from './messages.ts';
import type { Addresses } from './supervisor.ts';

/** Gives what this worker knows of a topic. */
export type Answer = () => Promise<unknown>;

/** What a gateway that is one of several has of the others. */
export interface Siblings {
  standing(): Standing;
  /** What all workers together know of the topic. Rejects where the first process doesn't answer in time. */
  ask(topic: string): Promise<unknown>;
  /** How this worker answers questions about the topic. */
  answer(topic: string, give: Answer): void;
}

export interface Member extends Siblings {
  /** Asks what to start with. Never resolves where the first process wants no worker any more: it then ends this one. */
  payload(): Promise<unknown>;
  ready(addresses: Addresses): void;
  /** Resolves when it is told. */
  failed(message: string): Promise<void>;
  /** Every new configuration, one that came before this was called too. */
  onReload(take: (payload: unknown) => void): void;
  /** Every new configuration that is invalid and that this worker is to count. */
  onReloadFailed(take: () => void): void;
  /** Resolves when this worker is to drain, with how long it is to go on accepting. */
  readonly drain: Promise<number>;
}

const ASK_TIMEOUT_MS = 3000;

/** Null in a process that is no worker. */
export function joinSupervisor(): Member | null {
  return cluster.isWorker ? new ProcessMember() : null;
}

class ProcessMember implements Member {
  readonly #start = Promise.withResolvers<unknown>();
  readonly #drain = Promise.withResolvers<number>();
  readonly #answers = new Map<string, Answer>();
  readonly #asked = new Map<number, (value: unknown) => void>();
  #standing: Standing = { ready: 0, wanted: 0, sinceMs: Date.now() };
  #lastId = 0;
  #takeReload: ((payload: unknown) => void) | null = null;
  #takeReloadFailed: () => void = () => undefined;
  #untakenReload: { readonly payload: unknown } | null = null;

  constructor() {
    process.on('message', (received: unknown) => {
      const message = readToWorker(received);
      if (message !== null) this.#heard(message);
    });
  }

  get drain(): Promise<number> {
    return this.#drain.promise;
  }

  payload(): Promise<unknown> {
    void tell({ kind: 'hello' });
    return this.#start.promise;
  }

  ready(addresses: Addresses): void {
    void tell({ kind: 'ready', ...addresses });
  }

  failed(message: string): Promise<void> {
    return tell({ kind: 'failed', message });
  }

  onReload(take: (payload: unknown) => void): void {
    this.#takeReload = take;
    if (this.#untakenReload !== null) take(this.#untakenReload.payload);
    this.#untakenReload = null;
  }

  onReloadFailed(take: () => void): void {
    this.#takeReloadFailed = take;
  }

  standing(): Standing {
    return this.#standing;
  }

  answer(topic: string, give: Answer): void {
    this.#answers.set(topic, give);
  }

  ask(topic: string): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#asked.delete(id);
        reject(new Error(`The first process did not tell about ${topic} in time.`));
      }, ASK_TIMEOUT_MS);
      this.#asked.set(id, (value) => {
        clearTimeout(timer);
        this.#asked.delete(id);
        resolve(value);
      });
      void tell({ kind: 'ask', id, topic });
    });
  }

  #heard(message: ToWorker): void {
    switch (message.kind) {
      case 'start':
        this.#start.resolve(message.payload);
        break;
      case 'reload':
        if (this.#takeReload === null) this.#untakenReload = { payload: message.payload };
        else this.#takeReload(message.payload);
        break;
      case 'reload-failed':
        this.#takeReloadFailed();
        break;
      case 'drain':
        this.#drain.resolve(message.delayMs);
        break;
      case 'standing':
        this.#standing = message.standing;
        break;
      case 'question':
        void this.#give(message.id, message.topic);
        break;
      case 'summary':
        this.#asked.get(message.id)?.(message.value);
        break;
    }
  }

  /** What can't be answered stays without an answer: the first process waits for none. */
  async #give(id: number, topic: string): Promise<void> {
    const give = this.#answers.get(topic);
    if (give === undefined) return;
    const value = await give().catch(() => undefined);
    if (value !== undefined) await tell({ kind: 'answer', id, value });
  }
}

/** Resolves when the message is on its way, or can't be sent: then the first process is gone, and so is this one soon. */
function tell(message: ToPrimary): Promise<void> {
  return new Promise((resolve) => {
    if (process.send === undefined || !process.connected) resolve();
    else process.send(message, undefined, {}, () => resolve());
  });
}
