/** Gateways in processes of their own over one Redis, in front of a store that a test slows down, holds back and cuts off. */
import { join } from 'node:path';
import { TcpProxy } from './tcp-proxy.ts';
import { Load, type LoadOptions, type Target } from './load.ts';
import { GatewayProcess } from './process.ts';
import { anEvaluation } from './records.ts';
import { startRedis, type TestRedis } from './redis.ts';
import type { ServerOptions } from './redis/server.ts';
import { createStoreServer, sendJson, type StoreServer } from './store-server.ts';

/** Each call is tried once, and the store is never left alone. */
export const PLAIN_STORE_CONFIG = join(import.meta.dirname, 'gateway.yaml');

export interface FleetOptions {
  readonly gateways?: number;
  readonly env?: Readonly<Record<string, string>>;
  /** Without it each gateway stands alone. */
  readonly redis?: ServerOptions;
  readonly isRedisProxied?: boolean;
  readonly clockOffsetsMs?: readonly number[];
  readonly isProbed?: boolean;
}

export class Fleet {
  readonly store: ScriptedStore;
  readonly storeProxy: TcpProxy;
  readonly gateways: GatewayProcess[] = [];
  readonly #stack = new AsyncDisposableStack();
  readonly #redis: TestRedis | null;
  readonly #redisProxy: TcpProxy | null;
  readonly #options: FleetOptions;

  private constructor(parts: {
    readonly store: ScriptedStore;
    readonly storeProxy: TcpProxy;
    readonly redis: TestRedis | null;
    readonly redisProxy: TcpProxy | null;
    readonly options: FleetOptions;
  }) {
    this.store = parts.store;
    this.storeProxy = parts.storeProxy;
    this.#redis = parts.redis;
    this.#redisProxy = parts.redisProxy;
    this.#options = parts.options;
  }

  static async start(options: FleetOptions = {}): Promise<Fleet> {
    const redis = options.redis === undefined ? null : await startRedis(options.redis);
    const redisProxy = redis !== null && options.isRedisProxied === true ? await TcpProxy.start(redis.url) : null;
    const store = await ScriptedStore.start();
    const storeProxy = await TcpProxy.start(store.server.url);
    const fleet = new Fleet({ store, storeProxy, redis, redisProxy, options });
    for (const opened of [redis, redisProxy, store.server, storeProxy]) {
      if (opened !== null) fleet.#stack.defer(() => opened.close());
    }
    try {
      const { gateways = 1, clockOffsetsMs = [] } = options;
      const starting = Array.from({ length: gateways }, (_, index) => fleet.#launch({}, clockOffsetsMs[index] ?? 0));
      fleet.gateways.push(...(await Promise.all(starting)));
      return fleet;
    } catch (error) {
      await fleet.close();
      throw error;
    }
  }

  get redis(): TestRedis {
    if (this.#redis === null) throw new Error('This fleet has no Redis.');
    return this.#redis;
  }

  get redisProxy(): TcpProxy {
    if (this.#redisProxy === null) throw new Error('There is no proxy before Redis.');
    return this.#redisProxy;
  }

  get first(): GatewayProcess {
    return this.gateway(0);
  }

  /** The gateway of that place, round and round. */
  gateway(index: number): GatewayProcess {
    const gateway = this.gateways[index % this.gateways.length];
    if (gateway === undefined) throw new RangeError('There is no gateway.');
    return gateway;
  }

  async add(env: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> {
    const gateway = await this.#launch(env, 0);
    this.gateways.push(gateway);
    return gateway;
  }

  async load(options: LoadOptions = {}): Promise<Load> {
    const load = await Load.start(options);
    this.#stack.defer(() => load.close());
    return load;
  }

  /** Each path at each gateway. */
  targets(paths: readonly string[], key: string, tag = ''): readonly Target[] {
    return paths.flatMap((path) => this.gateways.map(({ publicUrl }) => ({ url: publicUrl + path, key, tag })));
  }

  async close(): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #launch(env: Readonly<Record<string, string>>, clockOffsetMs: number): Promise<GatewayProcess> {
    const { env: common = {}, isProbed = false } = this.#options;
    const redisUrl = this.#redisProxy?.url ?? this.#redis?.url;
    const own = {
      UPSTREAM_URL: this.storeProxy.url,
      UPSTREAM_TOKEN: this.store.server.token,
      LOG_LEVEL: 'warn',
      ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
      ...common,
      ...env,
    };
    const gateway = await GatewayProcess.start({ env: own, clockOffsetMs, isProbed });
    this.#stack.defer(() => gateway.kill());
    return gateway;
  }
}

export interface Held {
  /** Holds no more of them; those that are held stay so. */
  letThrough(): void;
  /** Sends them, and holds no more. */
  release(): void;
}

/** A store whose evaluations are all there, whatever their id. */
export class ScriptedStore {
  readonly server: StoreServer;
  /** The title of every evaluation from now on; null for the time of the answer, in Unix milliseconds. */
  title: string | null = null;
  /** When the store last answered, Unix milliseconds. */
  answeredAtMs = 0;
  #held: (() => void)[] | null = null;
  #delayMs = 0;
  #failWith: number | null = null;

  private constructor(server: StoreServer) {
    this.server = server;
    server.override(/\/evaluations(\/[^/]+)?$/, (request, response) => {
      const { pathname } = new URL(request.url ?? '', 'http://store.invalid');
      const isList = pathname.endsWith('/evaluations');
      const id = isList ? 'listed' : (pathname.split('/').at(-1) ?? '');
      const failure = this.#failWith;
      // It tells what was true when it was asked.
      const { title } = this;
      const answer = (): void => {
        this.answeredAtMs = Date.now();
        const record = anEvaluation({ _id: id, title: title ?? String(Date.now()) });
        if (failure !== null) response.writeHead(failure).end('{}');
        else sendJson(request, response, isList ? { items: [record], total: 1 } : record);
      };
      if (this.#held !== null) this.#held.push(answer);
      else if (this.#delayMs > 0) setTimeout(answer, this.#delayMs);
      else answer();
    });
  }

  static async start(): Promise<ScriptedStore> {
    return new ScriptedStore(await createStoreServer());
  }

  /** How it answers from now on: after that time, with that status if it is a failure. */
  answerAfter(delayMs: number, failWith: number | null = null): void {
    this.#delayMs = delayMs;
    this.#failWith = failWith;
  }

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

  calls(id: string): number {
    return this.server.requests.filter((request) => request.id === id).length;
  }
}
