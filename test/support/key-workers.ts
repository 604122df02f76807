/** Gateway processes' key registries, as child processes over one Redis: how long they let revoked keys in. */
import { join } from 'node:path';
import { createdSchema, type KeyCommand, refusedSchema, revokedSchema, statusSchema } from './key-commands.ts';
import { cutSubscribers } from './redis/client.ts';
import type { TestRedis } from './redis.ts';
import { WorkerProcess } from './worker-calls.ts';

const WORKER = join(import.meta.dirname, 'key-worker.ts');

export interface RevocationSample {
  /** How long after the revocation was asked for the last process refused the key for the first time. */
  readonly refusedMs: number;
  /** Of the key afterwards, in each process. */
  readonly statuses: readonly (string | null)[];
}

export class KeyWorkers {
  readonly #workers: readonly WorkerProcess[];

  private constructor(workers: readonly WorkerProcess[]) {
    this.#workers = workers;
  }

  /** Resolves once all of them hear of changes. */
  static async start(url: string, processes: number): Promise<KeyWorkers> {
    const started = await Promise.allSettled(Array.from({ length: processes }, () => WorkerProcess.start(WORKER, url)));
    const workers = new KeyWorkers(started.filter((one) => one.status === 'fulfilled').map(({ value }) => value));
    const failure = started.find((one) => one.status === 'rejected');
    if (failure === undefined) return workers;
    await workers.close();
    throw failure.reason;
  }

  /** One key that all processes know and let in, revoked through the `index`-th of them, round and round. */
  async revocation(index: number): Promise<RevocationSample> {
    return this.#revoke(index, async () => {});
  }

  /** The same while all connections for messages are cut. Rejects where there was not one a process to cut. */
  async revocationWhileCut(index: number, redis: TestRedis): Promise<RevocationSample> {
    return this.#revoke(index, async () => {
      const cuts = await cutSubscribers(redis);
      if (cuts !== this.#workers.length) throw new Error(`${cuts} connections were cut.`);
    });
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.kill()));
  }

  async #revoke(index: number, meanwhile: () => Promise<void>): Promise<RevocationSample> {
    const worker = this.#workers[index % this.#workers.length];
    if (worker === undefined) throw new RangeError('There is no worker.');
    await this.#all({ name: 'hear' });
    const { keyId, hash } = createdSchema.parse(await worker.call({ name: 'create' }));
    await this.#all({ name: 'know', hash });
    await this.#all({ name: 'watch', hash });
    // The revocation reads before it writes, so that it is told when what is cut is cut.
    const [, revoked] = await Promise.all([meanwhile(), worker.call({ name: 'revoke', keyId })]);
    const { sinceMs } = revokedSchema.parse(revoked);
    const refused = (await this.#all({ name: 'refused' })).map((one) => refusedSchema.parse(one).refusedAtMs);
    const statuses = (await this.#all({ name: 'status', hash })).map((one) => statusSchema.parse(one));
    return { refusedMs: Math.max(...refused) - sinceMs, statuses };
  }

  #all(command: KeyCommand): Promise<unknown[]> {
    return Promise.all(this.#workers.map((worker) => worker.call(command)));
  }
}
