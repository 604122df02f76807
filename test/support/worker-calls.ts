/** Calls from a test to a child process and their answers, over the channel that `fork` opens between them. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { z } from 'zod';

const callSchema = z.object({ call: z.int(), command: z.unknown() });
const answerSchema = z.object({ call: z.int(), result: z.unknown().optional(), error: z.string().optional() });
const readySchema = z.literal('ready');

interface Awaited {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: Error) => void;
}

/** The test's end. */
export class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #awaited = new Map<number, Awaited>();
  #lastCall = 0;

  private constructor(child: ChildProcess) {
    this.#child = child;
    child.on('message', (message) => {
      const { call, result, error } = answerSchema.parse(message);
      const awaited = this.#awaited.get(call);
      this.#awaited.delete(call);
      if (error === undefined) awaited?.resolve(result);
      else awaited?.reject(new Error(error));
    });
    child.on('exit', () => {
      for (const { reject } of this.#awaited.values()) reject(new Error('The worker has ended.'));
      this.#awaited.clear();
    });
  }

  /** Runs the module in a process of its own, with that argument; resolves once it answers calls. */
  static async start(module: string, argument: string): Promise<WorkerProcess> {
    const child = fork(module, [argument], { execArgv: [], stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    const { promise: first, resolve, reject } = Promise.withResolvers<unknown>();
    child.once('message', resolve);
    child.once('exit', () => reject(new Error('The worker ended before it was ready.')));
    readySchema.parse(await first);
    return new WorkerProcess(child);
  }

  /** Rejects with what the worker says went wrong. */
  async call(command: unknown): Promise<unknown> {
    this.#lastCall += 1;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#awaited.set(this.#lastCall, { resolve, reject });
    this.#child.send({ call: this.#lastCall, command });
    return promise;
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }
}

/** The worker's end: from now on calls are answered by `answer`. The process ends with the test's. */
export function answerCalls(answer: (command: unknown) => Promise<unknown>): void {
  process.on('message', (message) => {
    const { call, command } = callSchema.parse(message);
    void answer(command).then(
      (result) => process.send?.({ call, result }),
      (error: unknown) => process.send?.({ call, error: String(error) }),
    );
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.('ready');
}
