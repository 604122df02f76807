/**
 * Messages of Redis, on a connection of their own. ioredis would subscribe again by itself after a loss, and on a Cluster
 * also choose the node, but reports neither a loss nor a failure to subscribe; here both are noticed. So is a connection
 * that stands and delivers nothing, or delivers late: once a second the subscriber sends a heartbeat to itself, along the way
 * of all other messages.
 */
import { randomUUID } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster, Redis } from 'ioredis';
import { ConnectionHealth, droppedIfSilent } from './health.ts';
import { channelName } from './names.ts';
import { beforeDeadline } from './request-wait.ts';

const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;

/** The pause before a new connection: doubles up to a second; the random half keeps a fleet from coming back all at once. */
export function retryDelayMs(attempt: number): number {
  const boundMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10));
  return Math.ceil(boundMs * (0.5 + Math.random() / 2));
}

/** Ends it once the answers still awaited have come. Never rejects. */
export async function endAfterAnswers(client: Redis | Cluster): Promise<void> {
  await client.quit().catch(() => undefined);
  // Also what watches the Sentinels.
  client.disconnect();
}

export type MessageListener = (message: string) => void;

export interface RedisSubscriberOptions {
  /** Opens a connection that does not come back by itself: on a Cluster the next one may be to another node. */
  readonly connect: () => Redis;
  /** The handshake on a new connection. */
  readonly greet: (client: Redis) => Promise<void>;
  /** Sends a message, on another connection. */
  readonly publish: (channel: string, message: string) => Promise<unknown>;
  /** Each server that messages are published at. */
  readonly servers: () => readonly { readonly client: Pick<Redis, 'publish'> }[];
  readonly timeoutMs: number;
}

/** Up while every message arrives that is published on the channels listened to; when down, messages may be lost. */
export class RedisSubscriber extends ConnectionHealth {
  #options: RedisSubscriberOptions;
  readonly #heartbeats = channelName('heartbeats', randomUUID());
  /** By channel. */
  readonly #messages = new EventEmitter<Record<string, [message: string]>>().setMaxListeners(0);
  #client: Redis;
  #attempts = 0;
  #reconnection: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(options: RedisSubscriberOptions) {
    super(options.timeoutMs);
    this.#options = options;
    this.#client = this.#open();
    this.onUp(() => {
      this.#attempts = 0;
    });
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
    if (isFirst && this.isReady()) client.subscribe(channel).catch(() => client.disconnect());
    return end;
  }

  /** Makes a new connection if this one is to that node. */
  leave(node: { readonly host?: string | undefined; readonly port?: number | undefined }): void {
    const { host, port } = this.#client.options;
    if (node.host === host && node.port === port) this.#client.disconnect();
  }

  /**
   * Goes over to connections that are opened in that way. The old one goes on until the new one listens to all channels, so
   * that no message is missed; meanwhile one can arrive twice. Tries until it succeeds, or another way is given.
   */
  async replace(way: Pick<RedisSubscriberOptions, 'connect' | 'greet'>): Promise<void> {
    const options = { ...this.#options, ...way };
    this.#options = options;
    for (let attempt = 1; ; attempt += 1) {
      const client = this.#connect();
      const isListening = await this.#untilListening(client, options.greet).then(
        () => true,
        () => false,
      );
      if (this.#isClosed || this.#options !== options) return client.disconnect();
      if (isListening) {
        const old = this.#client;
        // Another one may be about to take the place of the old one, which was lost.
        clearTimeout(this.#reconnection);
        this.#client = client;
        this.#follow(client, true);
        // If the old one was lost, this one is to be used at once. A failure is reported by the health.
        this.ping().catch(() => undefined);
        // Also to what was listened to since.
        await client.subscribe(this.#heartbeats, ...this.#messages.eventNames()).catch(() => client.disconnect());
        await this.#untilCaughtUp(old).catch(() => undefined);
        await endAfterAnswers(old);
        return;
      }
      client.disconnect();
      await sleep(retryDelayMs(attempt), undefined, { ref: false });
    }
  }

  close(): void {
    this.stop();
    this.#isClosed = true;
    clearTimeout(this.#reconnection);
    this.#messages.removeAllListeners();
    this.#client.disconnect();
  }

  #open(): Redis {
    const client = this.#connect();
    this.#follow(client, false);
    return client;
  }

  #connect(): Redis {
    const client = this.#options.connect();
    client.on('message', (channel: string, message: string) => this.#messages.emit(channel, message));
    return client;
  }

  #follow(client: Redis, isListening: boolean): void {
    const { greet } = this.#options;
    let isSubscribed = isListening;
    const ask = async (): Promise<void> => {
      if (!isSubscribed) await this.#greetAndSubscribe(client, greet);
      isSubscribed = true;
      await this.#hearOneself();
    };
    this.follow({ client, ask: droppedIfSilent(client, ask) });
    client.once('end', () => {
      if (this.#isClosed || this.#client !== client) return;
      this.#attempts += 1;
      this.#reconnection = setTimeout(() => {
        this.#client = this.#open();
      }, retryDelayMs(this.#attempts)).unref();
    });
  }

  /** Resolves once the new connection listens to all channels. Rejects if it is lost or refused before. */
  async #untilListening(client: Redis, greet: RedisSubscriberOptions['greet']): Promise<void> {
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
    let reason = new Error('The connection to Redis is closed.');
    client.on('error', (error: Error) => {
      reason = error;
    });
    client.once('ready', resolve).once('end', () => reject(reason));
    await ready;
    await this.#greetAndSubscribe(client, greet);
  }

  async #greetAndSubscribe(client: Redis, greet: RedisSubscriberOptions['greet']): Promise<void> {
    // Before it subscribes: then a connection takes no other commands.
    await greet(client);
    await client.subscribe(this.#heartbeats, ...this.#messages.eventNames());
  }

  /** Rejects if a message to this process itself does not arrive in time. */
  async #hearOneself(): Promise<void> {
    const { publish, timeoutMs } = this.#options;
    const heartbeat = randomUUID();
    const { promise: arrival, resolve } = Promise.withResolvers<void>();
    const onMessage = (message: string): void => {
      if (message === heartbeat) resolve();
    };
    this.#messages.on(this.#heartbeats, onMessage);
    try {
      // Longer than a command has: of a Redis that answers nothing at all, the connection for commands finds out first.
      await beforeDeadline(Promise.all([arrival, publish(this.#heartbeats, heartbeat)]), 2 * timeoutMs);
    } finally {
      this.#messages.off(this.#heartbeats, onMessage);
    }
  }

  /**
   * Resolves once that connection has heard all that was published up to now. The nodes of a Cluster pass messages on in
   * their order, but to each other node in its own time: the new connection's node may have had one before it listened, and
   * the old one's not yet. Rejects if a node does not answer, or its message does not arrive in time.
   */
  async #untilCaughtUp(client: Redis): Promise<void> {
    const passed = this.#options.servers().map(async ({ client: server }) => {
      const mark = randomUUID();
      const { promise: arrival, resolve } = Promise.withResolvers<void>();
      client.on('message', (_channel: string, message: string) => {
        if (message === mark) resolve();
      });
      await Promise.all([arrival, server.publish(this.#heartbeats, mark)]);
    });
    await beforeDeadline(Promise.all(passed), 2 * this.timeoutMs);
  }

  #add(channel: string, listener: MessageListener): () => void {
    this.#messages.on(channel, listener);
    return () => {
      this.#messages.off(channel, listener);
      // If it stayed subscribed, it would only cost messages without a listener.
      const isLast = this.#messages.listenerCount(channel) === 0;
      if (isLast && this.isReady()) this.#client.unsubscribe(channel).catch(() => undefined);
    };
  }
}
