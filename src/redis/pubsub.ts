/**
 * Messages of Redis, on a connection of their own. ioredis would subscribe again by itself after a loss, and on a Cluster
 * also choose the node, but reports neither a loss nor a failure to subscribe; here both are noticed.
 */
import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { ConnectionHealth } from './health.ts';

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;

/** The pause before a new connection: doubles up to a second; the random half keeps a fleet from coming back all at once. */
export function retryDelayMs(attempt: number): number {
  const boundMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10));
  return Math.ceil(boundMs * (0.5 + Math.random() / 2));
}

export type MessageListener = (message: string) => void;

export class RedisSubscriber {
  readonly #connect: () => Redis;
  readonly #timeoutMs: number;
  /** By channel. */
  readonly #messages = new EventEmitter<Record<string, [message: string]>>().setMaxListeners(0);
  readonly #changes = new EventEmitter<{ up: []; down: [reason: Error] }>().setMaxListeners(0);
  #client: Redis;
  #health: ConnectionHealth;
  #attempts = 0;
  #reconnection: NodeJS.Timeout | undefined;
  #isUp = false;
  #isClosed = false;

  /**
   * `connect` opens a connection that does not come back by itself: on a Cluster the next one may be to another node.
   * `timeoutMs`: how long it may take to answer a probe.
   */
  constructor(connect: () => Redis, timeoutMs: number) {
    this.#connect = connect;
    this.#timeoutMs = timeoutMs;
    this.#client = connect();
    this.#health = this.#watch();
  }

  /** Whether every message published from now on on the channels listened to arrives. */
  isUp(): boolean {
    return this.#isUp;
  }

  /** Calls back once all channels are subscribed to again; what was published in between is lost. */
  onUp(listener: () => void): () => void {
    this.#changes.on('up', listener);
    return () => this.#changes.off('up', listener);
  }

  /** Calls back once messages may have been lost. */
  onDown(listener: (reason: Error) => void): () => void {
    this.#changes.on('down', listener);
    return () => this.#changes.off('down', listener);
  }

  /**
   * Listens to a channel. Once it resolves no message is missed while `isUp()`; rejects if Redis does not confirm it, and
   * is then not listening. Returns a function that ends this; the last listener of a channel unsubscribes.
   */
  async subscribe(channel: string, listener: MessageListener): Promise<() => void> {
    const end = this.#add(channel, listener);
    try {
      await this.#client.subscribe(channel);
      return end;
    } catch (error) {
      end();
      throw error;
    }
  }

  /** The same without waiting, for channels of the whole run: if Redis is down, it begins with the next `onUp`. */
  listen(channel: string, listener: MessageListener): () => void {
    const isFirst = this.#messages.listenerCount(channel) === 0;
    const end = this.#add(channel, listener);
    const client = this.#client;
    // After a failure the next connection subscribes to all channels.
    if (isFirst && client.status === 'ready') client.subscribe(channel).catch(() => client.disconnect());
    return end;
  }

  /** Makes a new connection if this one is to that node, or is to any node if none is named. */
  renew(node?: { readonly host?: string | undefined; readonly port?: number | undefined }): void {
    const { host, port } = this.#client.options;
    if (node === undefined || (node.host === host && node.port === port)) this.#client.disconnect();
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#reconnection);
    this.#health.close();
    this.#messages.removeAllListeners();
    this.#changes.removeAllListeners();
    this.#isUp = false;
    this.#client.disconnect();
  }

  #watch(): ConnectionHealth {
    const client = this.#client;
    const health = new ConnectionHealth(client, this.#timeoutMs);
    health.onUp(() => void this.#resubscribe());
    health.onDown((reason) => {
      this.#isUp = false;
      this.#changes.emit('down', reason);
    });
    client.on('message', (channel: string, message: string) => this.#messages.emit(channel, message));
    client.once('end', () => {
      health.close();
      if (!this.#isClosed) this.#reconnect();
    });
    return health;
  }

  #reconnect(): void {
    this.#attempts += 1;
    this.#reconnection = setTimeout(() => {
      this.#client = this.#connect();
      this.#health = this.#watch();
    }, retryDelayMs(this.#attempts)).unref();
  }

  async #resubscribe(): Promise<void> {
    const [client, health] = [this.#client, this.#health];
    try {
      const channels = this.#messages.eventNames();
      if (channels.length > 0) await client.subscribe(...channels);
      if (!health.isUp() || this.#isClosed) return;
      this.#attempts = 0;
      this.#isUp = true;
      this.#changes.emit('up');
    } catch {
      client.disconnect();
    }
  }

  #add(channel: string, listener: MessageListener): () => void {
    this.#messages.on(channel, listener);
    return () => {
      this.#messages.off(channel, listener);
      // If it stayed subscribed, it would only cost messages without a listener.
      const isLast = this.#messages.listenerCount(channel) === 0;
      if (isLast && this.#client.status === 'ready') this.#client.unsubscribe(channel).catch(() => undefined);
    };
  }
}
