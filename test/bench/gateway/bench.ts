/** The common parts of all benchmark cases: Redis, the store, and servers that are always stopped again. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { type Evalgate, type EvalgateOptions, startEvalgate, startStore, type Store } from './evalgate.ts';
import type { BenchRequest } from '../../support/load.ts';
import { type Effort, type Measured, measureInTurn, type Subject } from './measure.ts';
import { type NodePeer, type PeerOptions, startPeer } from './node-peers.ts';
import { OTHER_CORE } from './processes.ts';
import type { Server } from './server.ts';

const REDIS = { config: [`server_cpulist ${OTHER_CORE}`] };

export class Bench {
  readonly redis: TestRedis;
  readonly store: Store;
  readonly effort: Effort;
  readonly #folder: string;
  readonly #warm = new WeakSet<Server>();
  readonly #running: { stop(): Promise<void> }[] = [];

  private constructor(redis: TestRedis, store: Store, folder: string, effort: Effort) {
    this.redis = redis;
    this.store = store;
    this.#folder = folder;
    this.effort = effort;
  }

  static async open(effort: Effort): Promise<Bench> {
    const redis = await startRedis(REDIS);
    const folder = await mkdtemp(join(tmpdir(), 'evalgate-bench-bodies-'));
    return new Bench(redis, await startStore(), folder, effort);
  }

  async evalgate(options: Partial<Omit<EvalgateOptions, 'store'>> = {}): Promise<Evalgate> {
    return this.keep(await startEvalgate({ redisUrl: this.redis.url, store: this.store, ...options }));
  }

  /** One more, for a server that shares none with others. */
  async startRedis(): Promise<TestRedis> {
    const redis = await startRedis(REDIS);
    this.keep({ stop: () => redis.close() });
    return redis;
  }

  async peer(kind: NodePeer, options: PeerOptions): Promise<Server> {
    return this.keep(await startPeer(kind, { redisUrl: this.redis.url, ...options }));
  }

  /** To be stopped at the end. */
  keep<S extends { stop(): Promise<void> }>(server: S): S {
    this.#running.push(server);
    return server;
  }

  /** The gateway's answer, in a file for the peers to answer with. */
  async bodyOf(
    gateway: Server,
    { path, headers }: BenchRequest,
  ): Promise<{ readonly file: string; readonly bytes: number }> {
    const response = await fetch(gateway.url + path, { headers });
    const body = Buffer.from(await response.arrayBuffer());
    if (response.status !== 200)
      throw new Error(`${path} answered ${response.status}: ${body.toString().slice(0, 200)}`);
    const file = join(this.#folder, `${body.length}.json`);
    await writeFile(file, body);
    return { file, bytes: body.length };
  }

  measure(subjects: readonly Subject[]): Promise<readonly Measured[]> {
    return measureInTurn(subjects, this.effort, this.#warm);
  }

  /** Ends what was started since, so that the next case has the machine for itself. */
  async stopServers(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((server) => server.stop()));
  }

  async close(): Promise<void> {
    await this.stopServers();
    await this.store.stop();
    await this.redis.close();
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export function bearer(key: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${key}` };
}
