/** A store of limited strength, as seen from a test. */
import { join } from 'node:path';
import { z } from 'zod';
import { type BusyCommand, type Seen, seenSchema, type Strength } from './busy-store-commands.ts';
import { WorkerProcess } from './worker-calls.ts';

const WORKER = join(import.meta.dirname, 'busy-store-worker.ts');

export class BusyStore {
  readonly url: string;
  readonly #worker: WorkerProcess;

  private constructor(worker: WorkerProcess, url: string) {
    this.#worker = worker;
    this.url = url;
  }

  static async start(strength: Strength): Promise<BusyStore> {
    const worker = await WorkerProcess.start(WORKER, JSON.stringify(strength));
    return new BusyStore(worker, z.string().parse(await worker.call('url')));
  }

  async fail(isFailing: boolean): Promise<void> {
    await this.#call({ name: 'fail', isFailing });
  }

  async look(): Promise<Seen> {
    return seenSchema.parse(await this.#call({ name: 'look' }));
  }

  async close(): Promise<void> {
    await this.#worker.kill();
  }

  #call(command: BusyCommand): Promise<unknown> {
    return this.#worker.call(command);
  }
}
