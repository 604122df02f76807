/** Messages of Redis, on a connection of their own. Channels are asked for again after each loss, with failures noticed. */
import type { Redis } from 'ioredis';
import { ConnectionHealth } from './health.ts';

export type MessageListener = (message: string) => void;

export class RedisSubscriber {
  readonly #client: Redis;
  readonly #health: ConnectionHealth;
  readonly #listeners = new Map<string, Set<MessageListener>>();
  readonly #upListeners = new Set<() => void>();
  readonly #downListeners = new Set<(reason: Error) => void>();
  #isUp = false;

  /** Takes over the connection, which must not resubscribe by itself. */
  constructor(client: Redis) {
    this.#client = client;
    this.#health = new ConnectionHealth(client);
    this.#health.onUp(() => void this.#resubscribe());
    this.#health.onDown((reason) => this.#setDown(reason));
    client.on('message', (channel: string, message: string) => {
      for (const listener of this.#listeners.get(channel) ?? []) listener(message);
    });
  }

  /** Whether every message published from now on on the channels listened to arrives. */
  isUp(): boolean {
    return this.#isUp;
  }

  /** Calls back once all channels are subscribed to again; what was published in between is lost. */
  onUp(listener: () => void): () => void {
    this.#upListeners.add(listener);
    return () => this.#upListeners.delete(listener);
  }

  /** Calls back once messages may have been lost. */
  onDown(listener: (reason: Error) => void): () => void {
    this.#downListeners.add(listener);
    return () => this.#downListeners.delete(listener);
  }

  /**
   * Listens to a channel. Once it resolves no message is missed while `isUp()`; rejects where Redis doesn't confirm it,
   * and is then not listening. Returns a function that ends this; the last listener of a channel unsubscribes.
   */
  async subscribe(channel: string, listener: MessageListener): Promise<() => void> {
    const end = this.listen(channel, listener);
    try {
      await this.#client.subscribe(channel);
      return end;
    } catch (error) {
      end();
      throw error;
    }
  }

  /**
   * The same without waiting, for channels that are listened to as long as the process runs: where Redis is down, it
   * begins with the next `onUp`.
   */
  listen(channel: string, listener: MessageListener): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set();
    this.#listeners.set(channel, listeners.add(listener));
    if (listeners.size === 1 && this.#client.status === 'ready') {
      // A failure here drops the connection, whose return subscribes to all channels.
      this.#client.subscribe(channel).catch(() => this.#client.disconnect(true));
    }
    return () => this.#unlisten(channel, listener);
  }

  /**
   * Drops the connection, which comes back by itself: for when messages don't arrive although it stands. Behind a name that
   * has moved on it may lead to a server that is none of ours any more.
   */
  renew(): void {
    if (this.#isUp) this.#client.disconnect(true);
  }

  close(): void {
    this.#health.close();
    this.#listeners.clear();
    this.#upListeners.clear();
    this.#downListeners.clear();
    this.#isUp = false;
    this.#client.disconnect();
  }

  #unlisten(channel: string, listener: MessageListener): void {
    const listeners = this.#listeners.get(channel);
    if (listeners === undefined || !listeners.delete(listener) || listeners.size > 0) return;
    this.#listeners.delete(channel);
    // Left subscribed, it would only cost messages that nobody hears.
    if (this.#client.status === 'ready') this.#client.unsubscribe(channel).catch(() => undefined);
  }

  async #resubscribe(): Promise<void> {
    try {
      const channels = [...this.#listeners.keys()];
      if (channels.length > 0) await this.#client.subscribe(...channels);
      if (!this.#health.isUp()) return;
      this.#isUp = true;
      for (const listener of this.#upListeners) listener();
    } catch {
      this.#client.disconnect(true);
    }
  }

  #setDown(reason: Error): void {
    this.#isUp = false;
    for (const listener of this.#downListeners) listener(reason);
  }
}
