/** Workers that a test plays itself. */
import type { ToPrimary, ToWorker } from '../../../src/cluster/messages.ts';
import type { Fork, WorkerEnd, WorkerListener, WorkerProcess } from '../../../src/cluster/worker-process.ts';

export class FakeWorker implements WorkerProcess {
  readonly id: number;
  readonly pid: number;
  /** What it was told, in order. */
  readonly told: ToWorker[] = [];
  isKilled = false;
  readonly #listener: WorkerListener;

  constructor(id: number, listener: WorkerListener) {
    this.id = id;
    this.pid = 1000 + id;
    this.#listener = listener;
  }

  send(message: ToWorker): void {
    this.told.push(message);
  }

  kill(): void {
    this.isKilled = true;
    this.end({ code: null, signal: 'SIGKILL' });
  }

  say(message: ToPrimary): void {
    this.#listener.onMessage(message);
  }

  become(): void {
    this.say({ kind: 'hello' });
    this.say({ kind: 'ready', publicUrl: 'http://127.0.0.1:1', adminUrl: 'http://127.0.0.1:2' });
  }

  end(end: WorkerEnd = { code: 1, signal: null }): void {
    this.#listener.onEnd(end);
  }

  kinds(): readonly string[] {
    return this.told.map(({ kind }) => kind);
  }
}

export class FakeWorkers {
  /** All that were ever forked. */
  readonly all: FakeWorker[] = [];
  readonly fork: Fork = (listener) => {
    const worker = new FakeWorker(this.all.length + 1, listener);
    this.all.push(worker);
    return worker;
  };

  /** The one with that number, from 1. */
  number(number: number): FakeWorker {
    const worker = this.all[number - 1];
    if (worker === undefined) throw new RangeError(`There is no worker ${number}.`);
    return worker;
  }
}
