/**
 * Whether a Redis answers. An open socket says little: a frozen server keeps it open, and a lost network keeps it for
 * minutes. So each connection is probed in the background, and nothing else has to wait to find out.
 */
import { EventEmitter } from 'node:events';
import type { Cluster, Redis } from 'ioredis';
import { trialKeys } from './names.ts';

const PROBE_EVERY_MS = 250;
/** After so long without an answer the connection is dropped and a new one tried. */
const DROP_AFTER_MS = 3000;

/** No answer came in time: what was asked for may have been done or not. */
export class RedisTimeoutError extends Error {
  override readonly name = 'RedisTimeoutError';
}

/** Up or down, and who is notified of a change. */
export abstract class Health {
  readonly #events = new EventEmitter<{ up: []; down: [reason: Error] }>();
  /** Unknown until Redis answers, or fails to, for the first time. */
  #state: 'unknown' | 'up' | 'down' = 'unknown';
  readonly #timer: NodeJS.Timeout;
  readonly #timeoutMs: number;
  #probing: Promise<void> | null = null;

  /** `timeoutMs`: how long a command may take. */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs;
    this.#events.setMaxListeners(0);
    this.#timer = setInterval(() => this.probeSoon(), PROBE_EVERY_MS).unref();
  }

  /** Resolves if Redis answers, all of it; rejects and sets the state if it does not, in bounded time. */
  protected abstract ask(): Promise<void>;

  /** Why Redis does not answer, as far as is known without asking. */
  lastError = new Error('Redis did not answer yet.');

  isUp(): boolean {
    return this.#state === 'up';
  }

  /** Calls back at each change to up; returns a function that ends this. */
  onUp(listener: () => void): () => void {
    this.#events.on('up', listener);
    return () => this.#events.off('up', listener);
  }

  /** Calls back at each change to down, and once if the first connection fails; returns a function that ends this. */
  onDown(listener: (reason: Error) => void): () => void {
    this.#events.on('down', listener);
    return () => this.#events.off('down', listener);
  }

  setUp(): void {
    if (this.#state === 'up') return;
    this.#state = 'up';
    this.#events.emit('up');
  }

  setDown(reason: Error): void {
    this.lastError = reason;
    if (this.#state === 'down') return;
    this.#state = 'down';
    this.#events.emit('down', reason);
  }

  /** Resolves if Redis answers; rejects if it does not, in bounded time. Calls at the same time share one probe. */
  probe(): Promise<void> {
    this.#probing ??= this.#probeNow().finally(() => {
      this.#probing = null;
    });
    return this.#probing;
  }

  async #probeNow(): Promise<void> {
    const sentAtMs = performance.now();
    await this.ask();
    // It stays down as long as each command would time out once more: no request waits for a Redis that was late once (R6).
    if (this.#state === 'down' && performance.now() - sentAtMs > this.#timeoutMs) {
      throw new RedisTimeoutError(`Redis did not answer within ${this.#timeoutMs} ms`);
    }
    this.setUp();
  }

  protected probeSoon(): void {
    // A failure is reported by the state.
    this.probe().catch(() => undefined);
  }

  /** Ends the probes and notifies nobody any more. */
  close(): void {
    clearInterval(this.#timer);
    this.#events.removeAllListeners();
    this.#state = 'down';
  }
}

/** The health of one connection. */
export class ConnectionHealth extends Health {
  readonly #client: Redis;
  #answeredAtMs = 0;

  constructor(client: Redis, timeoutMs: number) {
    super(timeoutMs);
    this.#client = client;
    client.on('error', (error: Error) => {
      this.lastError = error;
      // Sentinels that cannot name the primary: there is no connection yet that could close.
      if (client.status === 'connecting') this.setDown(error);
    });
    client.on('ready', () => this.probeSoon());
    client.on('close', () => this.setDown(this.lastError));
    client.on('end', () => this.setDown(this.lastError));
  }

  protected override async ask(): Promise<void> {
    // How a connection attempt ends is reported by its events.
    if (this.#client.status !== 'ready') throw this.lastError;
    try {
      await this.#client.ping();
    } catch (error) {
      this.setDown(asError(error));
      const isSilent = performance.now() - this.#answeredAtMs > DROP_AFTER_MS;
      if (this.#client.status === 'ready' && isSilent) this.#client.disconnect(true);
      throw error;
    }
    this.#answeredAtMs = performance.now();
    this.lastError = new Error('The connection to Redis was closed.');
    if (this.#client.status !== 'ready') throw this.lastError;
  }
}

/**
 * The health of a Cluster: up only if every primary answers and all slots are served, since what is shared lies in all of
 * them. Probes go through the Cluster to keys in slots spread over all nodes: a node that has taken over slots is found
 * by its MOVED, as for any command.
 */
export class ClusterHealth extends Health {
  readonly #cluster: Cluster;
  /** When each node last answered. */
  readonly #answeredAtMs = new WeakMap<Redis, number>();

  constructor(cluster: Cluster, timeoutMs: number) {
    super(timeoutMs);
    this.#cluster = cluster;
    cluster.on('error', (error: Error) => {
      // If all nodes fail at once, the last node's error says more.
      const isOfNode = 'lastNodeError' in error && error.lastNodeError instanceof Error;
      this.lastError = isOfNode ? asError(error.lastNodeError) : error;
      this.setDown(this.lastError);
    });
    cluster.on('node error', (error: Error) => {
      this.lastError = error;
    });
    cluster.on('ready', () => this.probeSoon());
    cluster.on('-node', () => this.probeSoon());
    cluster.on('close', () => this.setDown(this.lastError));
  }

  protected override async ask(): Promise<void> {
    if (this.#cluster.status !== 'ready') throw this.lastError;
    try {
      // First, since a node that was just found is connected by it.
      const nodes = await Promise.allSettled(this.#cluster.nodes('master').map((node) => this.#probeNode(node)));
      const keys = await Promise.allSettled(trialKeys('probe').map((key) => this.#cluster.exists(key)));
      for (const result of [...nodes, ...keys]) if (result.status === 'rejected') throw result.reason;
    } catch (error) {
      this.setDown(asError(error));
      throw error;
    }
    this.lastError = new Error('The connection to a node of the Cluster was closed.');
  }

  /** Rejects if the node does not answer, or knows of slots that are not served. */
  async #probeNode(node: Redis): Promise<void> {
    try {
      const info = await node.cluster('INFO');
      this.#answeredAtMs.set(node, performance.now());
      if (!info.includes('cluster_state:ok')) throw new Error('The Cluster does not serve all of its slots.');
    } catch (error) {
      const answeredAtMs = this.#answeredAtMs.get(node);
      if (answeredAtMs === undefined) this.#answeredAtMs.set(node, performance.now());
      // The Cluster then asks another node who has its slots; without any node it begins again with those of the address.
      else if (performance.now() - answeredAtMs > DROP_AFTER_MS) node.disconnect();
      this.setDown(asError(error));
      throw error;
    }
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
