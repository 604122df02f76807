/** Gateway processes' caches, as child processes over one Redis and one store. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { z } from 'zod';
import {
  type Command,
  doneSchema,
  hammeredSchema,
  readsSchema,
  readySchema,
  replySchema,
  seenSchema,
  type WorkerSettings,
} from './cache-commands.ts';
import { anEvaluation } from './records.ts';
import { startRedis, type TestRedis } from './redis.ts';
import { createStoreServer, sendJson, type StoreServer } from './store-server.ts';

const WORKER = join(import.meta.dirname, 'cache-worker.ts');

export type Reads = z.output<typeof readsSchema>['reads'];
export type Hammered = z.output<typeof hammeredSchema>;

type Args<N extends Command['name']> = Omit<Extract<Command, { name: N }>, 'name'>;

export class CacheWorker {
  /** Where it serves over HTTP. */
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #calls = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>();
  #lastCall = 0;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
    child.on('message', (message) => {
      const { call, result, error } = replySchema.parse(message);
      const awaited = this.#calls.get(call);
      this.#calls.delete(call);
      if (error === undefined) awaited?.resolve(result);
      else awaited?.reject(new Error(error));
    });
    child.on('exit', () => {
      for (const { reject } of this.#calls.values()) reject(new Error('The worker has ended.'));
      this.#calls.clear();
    });
  }

  /** Resolves once its cache is open. */
  static async start(settings: WorkerSettings): Promise<CacheWorker> {
    const child = fork(WORKER, [JSON.stringify(settings)], {
      execArgv: [],
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const { promise: first, resolve, reject } = Promise.withResolvers<unknown>();
    child.once('message', resolve);
    child.once('exit', () => reject(new Error('The worker ended before it was ready.')));
    return new CacheWorker(child, readySchema.parse(await first).url);
  }

  async read(args: Args<'read'>): Promise<Reads> {
    return readsSchema.parse(await this.#call({ name: 'read', ...args })).reads;
  }

  async hammer(args: Args<'hammer'>): Promise<Hammered> {
    return hammeredSchema.parse(await this.#call({ name: 'hammer', ...args }));
  }

  /** When it was seen, Unix milliseconds. */
  async watch(args: Args<'watch'>): Promise<number> {
    return seenSchema.parse(await this.#call({ name: 'watch', ...args })).seenAtMs;
  }

  async purge(id: string): Promise<void> {
    doneSchema.parse(await this.#call({ name: 'purge', id }));
  }

  pause(): void {
    this.#child.kill('SIGSTOP');
  }

  resume(): void {
    this.#child.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }

  async #call(command: Command): Promise<unknown> {
    this.#lastCall += 1;
    const call = this.#lastCall;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    this.#calls.set(call, { resolve, reject });
    this.#child.send({ call, command });
    return await promise;
  }
}

export interface Held {
  /** Holds no more of them; those that are held stay so. */
  letThrough(): void;
  /** Sends them, and holds no more. */
  release(): void;
}

export interface CacheWorldOptions {
  readonly processes: number;
  readonly times: WorkerSettings['times'];
}

/** A fleet, its Redis and its store, whose evaluations are all there, whatever their id. */
export class CacheWorld {
  readonly redis: TestRedis;
  readonly store: StoreServer;
  readonly workers: CacheWorker[] = [];
  /** Of every evaluation, from now on. */
  title = 'Discovery call';
  /** Held answers are sent when this is called; they tell what was true when they were asked for. */
  #held: (() => void)[] | null = null;
  #delayMs = 0;
  #failWith: number | null = null;
  /** When the store last answered, Unix milliseconds. */
  answeredAtMs = 0;
  readonly #settings: WorkerSettings;

  private constructor(redis: TestRedis, store: StoreServer, times: WorkerSettings['times']) {
    this.redis = redis;
    this.store = store;
    this.#settings = { redisUrl: redis.url, storeUrl: store.url, storeToken: store.token, times };
    store.override(/^/, (request, response) => {
      const id = request.url?.split('/').at(-1) ?? '';
      const record = anEvaluation({ _id: id, title: this.title });
      const failure = this.#failWith;
      const answer = (): void => {
        this.answeredAtMs = Date.now();
        if (failure === null) sendJson(request, response, record);
        else response.writeHead(failure).end('{}');
      };
      if (this.#held !== null) this.#held.push(answer);
      else if (this.#delayMs > 0) setTimeout(answer, this.#delayMs);
      else answer();
    });
  }

  static async start({ processes, times }: CacheWorldOptions): Promise<CacheWorld> {
    const world = new CacheWorld(await startRedis(), await createStoreServer(), times);
    try {
      await Promise.all(Array.from({ length: processes }, () => world.addWorker()));
      return world;
    } catch (error) {
      await world.close();
      throw error;
    }
  }

  async addWorker(): Promise<CacheWorker> {
    const worker = await CacheWorker.start(this.#settings);
    this.workers.push(worker);
    return worker;
  }

  /** The worker of that place, round and round. */
  worker(index: number): CacheWorker {
    const worker = this.workers[index % this.workers.length];
    if (worker === undefined) throw new RangeError('There is no worker.');
    return worker;
  }

  /** How the store answers from now on: after that time, with that status if it is a failure. */
  answerAfter(delayMs: number, failWith: number | null = null): void {
    this.#delayMs = delayMs;
    this.#failWith = failWith;
  }

  /** Holds all answers from now on. */
  hold(): Held {
    const held: (() => void)[] = [];
    this.#held = held;
    const letThrough = (): void => {
      if (this.#held === held) this.#held = null;
    };
    return {
      letThrough,
      release: () => {
        letThrough();
        for (const answer of held.splice(0)) answer();
      },
    };
  }

  /** How often the store was asked for that evaluation. */
  calls(id: string): number {
    return this.store.requests.filter((request) => request.id === id).length;
  }

  async close(): Promise<void> {
    await Promise.all(this.workers.map((worker) => worker.kill()));
    await this.store.close();
    await this.redis.close();
  }
}

export async function withCacheWorld<R>(
  options: CacheWorldOptions,
  run: (world: CacheWorld) => Promise<R>,
): Promise<R> {
  const world = await CacheWorld.start(options);
  try {
    return await run(world);
  } finally {
    await world.close();
  }
}
