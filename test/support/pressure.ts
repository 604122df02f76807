/** Load by ids that are never repeated, from a process of its own. */
import { join } from 'node:path';
import { z } from 'zod';
import { type Answered, answeredListSchema, type PressureCommand } from './pressure-commands.ts';
import { WorkerProcess } from './worker-calls.ts';

const WORKER = join(import.meta.dirname, 'pressure-worker.ts');

export type OpenLoad = Omit<Extract<PressureCommand, { name: 'open' }>, 'name'>;
export type ClosedLoad = Omit<Extract<PressureCommand, { name: 'closed' }>, 'name'>;

export class Pressure {
  readonly #worker: WorkerProcess;

  private constructor(worker: WorkerProcess) {
    this.#worker = worker;
  }

  static async start(): Promise<Pressure> {
    return new Pressure(await WorkerProcess.start(WORKER, ''));
  }

  /** Several at once are one load. Resolves once all were answered, in the order in which they were due. */
  async open(load: OpenLoad): Promise<readonly Answered[]> {
    return answeredListSchema.parse(await this.#call({ name: 'open', ...load }));
  }

  /** How many answers a second came. */
  async closed(load: ClosedLoad): Promise<number> {
    return (1000 * z.int().parse(await this.#call({ name: 'closed', ...load }))) / load.forMs;
  }

  async close(): Promise<void> {
    await this.#worker.kill();
  }

  #call(command: PressureCommand): Promise<unknown> {
    return this.#worker.call(command);
  }
}
