/**
 * Whether a Redis answers. An open socket says little: a frozen server keeps it open, and a lost network keeps it for
 * minutes. So each connection is probed in the background, and nothing else has to wait to find out.
 */
import { EventEmitter } from 'node:events';
import type { Cluster, Redis } from 'ioredis';
import { HandshakeError, RedisTimeoutError, replyCode } from './errors.ts';
import { trialKeys } from './names.ts';

/** While Redis answers. Each answer puts the next probe off, so a connection in use is not probed. */
const PROBE_EVERY_MS = 1000;
/** While it does not: so soon it is noticed that it does again. */
const RETRY_EVERY_MS = 250;
/** After so long without an answer the connection is dropped and a new one tried. */
const DROP_AFTER_MS = 3000;

/** A Redis, a Cluster or the present one of several connections: up or down, and who is notified of a change. */
export class ConnectionHealth {
  readonly #events = new EventEmitter<{ up: []; down: [reason: Error] }>().setMaxListeners(0);
  protected readonly timeoutMs: number;
  #connection: FollowedConnection | null = null;
  /** Unknown until Redis answers, or fails to, for the first time. */
  #state: 'unknown' | 'up' | 'down' = 'unknown';
  #timer: NodeJS.Timeout | undefined;
  #probing: Promise<void> | null = null;
  /** Null once it has answered: the next loss of the connection then says only that. */
  #downReason: Error | null = new Error('Redis did not answer yet.');

  /** `timeoutMs`: how long a command may take. */
  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
  }

  /** Whether Redis answered lately. False until the first connection stands. */
  isUp(): boolean {
    return this.#state === 'up';
  }

  /** Why it is down: the last error, which can be another one than that which `onDown` was called with. */
  get downReason(): Error {
    return this.#downReason ?? connectionClosed();
  }

  protected set downReason(reason: Error) {
    this.#downReason = reason;
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

  /** Resolves if Redis answers; rejects if it does not, in bounded time. Calls at the same time share one probe. */
  ping(): Promise<void> {
    if (this.#probing !== null) return this.#probing;
    const probing = this.#probe().finally(() => {
      if (this.#probing !== probing) return;
      this.#probing = null;
      this.#probeLater();
    });
    this.#probing = probing;
    return probing;
  }

  /** Redis has answered something else in time: no probe is needed so soon. */
  protected answered(): void {
    if (this.#state === 'up') this.#timer?.refresh();
  }

  /** Ends the probes and notifies nobody any more. */
  protected stop(): void {
    clearTimeout(this.#timer);
    this.#events.removeAllListeners();
    this.#connection = null;
    this.#state = 'down';
  }

  /** Whether commands can be sent. */
  protected isReady(): boolean {
    return this.#connection?.client.status === 'ready';
  }

  /** Goes by what it reports from now on, and no more by the connection before. */
  protected follow(connection: FollowedConnection): void {
    const { client } = connection;
    this.#connection = connection;
    // A probe of the connection before says nothing of this one, and may wait for its answer in vain.
    this.#probing = null;
    const isFollowed = (): boolean => this.#connection === connection;
    const probe = (): void => this.#probeNow();
    const onClose = (): void => {
      if (isFollowed()) this.setDown(this.downReason);
    };
    this.#probeLater();
    client.on('error', (error: Error) => {
      if (!isFollowed()) return;
      // If all nodes fail at once, the last node's error says more.
      const isOfNode = 'lastNodeError' in error && error.lastNodeError instanceof Error;
      this.#downReason = isOfNode ? reasonOf(error.lastNodeError) : error;
      // There is no connection yet that could close: Sentinels cannot name the primary, or no node of a Cluster answers.
      if (client.status === 'connecting') this.setDown(this.downReason);
    });
    client.on('node error', (error: Error) => {
      if (isFollowed()) this.#downReason = error;
    });
    for (const event of ['ready', '-node']) client.on(event, probe);
    for (const event of ['close', 'end']) client.on(event, onClose);
  }

  protected setDown(reason: Error): void {
    this.#downReason = reason;
    if (this.#state === 'down') return;
    this.#state = 'down';
    this.#probeLater();
    this.#events.emit('down', reason);
  }

  #probeLater(): void {
    clearTimeout(this.#timer);
    if (this.#connection === null) return;
    const delayMs = this.#state === 'up' ? PROBE_EVERY_MS : RETRY_EVERY_MS;
    this.#timer = setTimeout(() => this.#probeNow(), delayMs).unref();
  }

  #probeNow(): void {
    // A failure is reported by the change to down.
    this.ping().catch(() => undefined);
  }

  async #probe(): Promise<void> {
    const connection = this.#connection;
    // How a connection attempt ends is reported by its events.
    if (connection === null || !this.isReady()) throw this.downReason;
    const sentAtMs = performance.now();
    const isLate = (): boolean => performance.now() - sentAtMs > this.timeoutMs;
    try {
      await connection.ask();
    } catch (error) {
      let reason = reasonOf(error);
      // The error of a connection says more than that of a command that was given up with it.
      if (isOfClient(error)) reason = isLate() ? new RedisTimeoutError(this.timeoutMs) : this.downReason;
      // Another connection may have taken its place.
      if (this.#connection === connection) this.setDown(reason);
      throw reason;
    }
    this.#downReason = null;
    if (!this.isReady()) throw this.downReason;
    // It stays down as long as each command would time out once more (R6: no request waits for a Redis that was late once).
    if (this.#state === 'down' && isLate()) {
      this.#downReason = new RedisTimeoutError(this.timeoutMs);
      throw this.#downReason;
    }
    if (this.#state === 'up') return;
    this.#state = 'up';
    this.#events.emit('up');
  }
}

/** Whether a connection answers that is to take the place of another one. */
export class ConnectionTrial extends ConnectionHealth {
  constructor(connection: FollowedConnection, timeoutMs: number) {
    super(timeoutMs);
    this.follow(connection);
  }

  /** Ends the trial; the connection goes on. */
  end(): void {
    this.stop();
  }
}

export interface FollowedConnection {
  readonly client: Pick<EventEmitter, 'on'> & { readonly status: string };
  /** Resolves if Redis answers, all of it; rejects, in bounded time, if it does not. */
  readonly ask: () => Promise<void>;
}

/** Asks one connection, and drops it when it has not answered for too long. */
export function droppedIfSilent(
  client: Pick<Redis, 'disconnect'> & FollowedConnection['client'],
  ask: () => Promise<unknown>,
): () => Promise<void> {
  /** When the first question was sent that has had no answer; null if the last one was answered. */
  let silentSinceMs: number | null = null;
  client.on('ready', () => {
    silentSinceMs = null;
  });
  return async () => {
    const sentAtMs = performance.now();
    try {
      await ask();
      silentSinceMs = null;
    } catch (error) {
      silentSinceMs ??= sentAtMs;
      // A refusal is an answer too.
      if (replyCode(error) !== null || error instanceof HandshakeError) silentSinceMs = null;
      const isSilent = silentSinceMs !== null && performance.now() - silentSinceMs > DROP_AFTER_MS;
      if (client.status === 'ready' && isSilent) client.disconnect(true);
      throw error;
    }
  };
}

/**
 * Asks every primary, and whether all slots are served: what is shared lies in all of them. Then it asks for keys in slots
 * spread over all nodes: a node that has taken over slots is found by its MOVED, as for any command. `greet` is the
 * handshake with a node. `onFailure` is called with the first failure at once.
 */
export function clusterProbe(
  cluster: Cluster,
  greet: (node: Redis) => Promise<void>,
  onFailure: (reason: Error) => void,
): () => Promise<void> {
  /** When each node last answered. */
  const answeredAtMs = new WeakMap<Redis, number>();
  const probeNode = async (node: Redis): Promise<void> => {
    try {
      await greet(node);
      const info = await node.cluster('INFO');
      answeredAtMs.set(node, performance.now());
      if (!info.includes('cluster_state:ok')) throw new ClusterIncompleteError();
    } catch (error) {
      const lastMs = answeredAtMs.get(node);
      if (lastMs === undefined) answeredAtMs.set(node, performance.now());
      // The Cluster then asks another node who has its slots; without any node it begins again with those of the address.
      else if (performance.now() - lastMs > DROP_AFTER_MS) node.disconnect();
      onFailure(reasonOf(error));
      throw error;
    }
  };
  return async () => {
    // First, since a node that was just found is connected by it.
    const nodes = await Promise.allSettled(cluster.nodes('master').map(probeNode));
    const keys = await Promise.allSettled(trialKeys('probe').map((key) => cluster.exists(key)));
    for (const result of [...nodes, ...keys]) if (result.status === 'rejected') throw result.reason;
  };
}

class ClusterIncompleteError extends Error {
  override readonly name = 'ClusterIncompleteError';
  override readonly message = 'The Cluster does not serve all of its slots.';
}

/** The error, without the texts of ioredis's own errors, which are about its options. */
export function reasonOf(error: unknown): Error {
  if (isOfClient(error)) return connectionClosed();
  return error instanceof Error ? error : new Error(String(error));
}

/** Neither Redis, nor the system, nor evalgate: ioredis itself gave a command up, as its connection was lost. */
function isOfClient(error: unknown): boolean {
  if (!(error instanceof Error) || 'code' in error) return false;
  return error.name === 'Error' || error.name === 'MaxRetriesPerRequestError';
}

function connectionClosed(): Error {
  return new Error('The connection to Redis is closed.');
}
