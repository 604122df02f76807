/** An open-loop load generator in a process of its own: it asks when it is time to, whether answers come or not. */
import { join } from 'node:path';
import {
  type Closed,
  closedSchema,
  type LoadCommand,
  type Sample,
  samplesSchema,
  type Target,
} from './load-commands.ts';
import { WorkerProcess } from './worker-calls.ts';

const WORKER = join(import.meta.dirname, 'load-worker.ts');

export class Load {
  readonly #worker: WorkerProcess;

  private constructor(worker: WorkerProcess) {
    this.#worker = worker;
  }

  static async start(): Promise<Load> {
    return new Load(await WorkerProcess.start(WORKER, ''));
  }

  /** Asks the targets in turn from now on, so many times a second in all. */
  async begin(targets: readonly Target[], perSecond: number): Promise<void> {
    await this.#call({ name: 'begin', targets: [...targets], perSecond });
  }

  /** Asks no more, and tells how each request went once all have ended. */
  async end(): Promise<readonly Sample[]> {
    return samplesSchema.parse(await this.#call({ name: 'end' }));
  }

  /** `begin` and `end` after that time. */
  async run(targets: readonly Target[], { perSecond, forMs }: Pace): Promise<readonly Sample[]> {
    await this.begin(targets, perSecond);
    await new Promise<void>((resolve) => setTimeout(resolve, forMs));
    return this.end();
  }

  /** Opens connections that send a request a byte at a time and never end it; resolves once all were closed on them. */
  async slowloris(url: string, sockets: number): Promise<readonly Closed[]> {
    return closedSchema.parse(await this.#call({ name: 'slowloris', url, sockets }));
  }

  async close(): Promise<void> {
    await this.#worker.kill();
  }

  #call(command: LoadCommand): Promise<unknown> {
    return this.#worker.call(command);
  }
}

interface Pace {
  readonly perSecond: number;
  readonly forMs: number;
}
