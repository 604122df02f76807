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
import { ConnectionLostError } from './errors.ts';
import { ConnectionHealth, DROP_AFTER_MS, droppedIfSilent, type FollowedConnection, retryDelayMs } from './health.ts';
import { channelName } from './names.ts';
import { beforeDeadline, PROBE_SLACK_MS } from './request-wait.ts';

/** Ends it once the answers still awaited have come. Never rejects. */
export async function endAfterAnswers(client: Redis | Cluster): Promise<void> {
  await beforeDeadline(client.quit(), DROP_AFTER_MS).catch(() => undefined);
  client.disconnect();
}

export type MessageListener = (message: string) => void;

export interface RedisSubscriberOptions {
  /** Opens a connection; on a Cluster the next one may be to another node. `attempt`: as for `openConnection`. */
  readonly connect: (attempt: number) => Redis;
  /** The handshake on a new connection. */
  readonly greet: (client: Redis) => Promise<void>;
  /** Sends a message, on another connection. */
  readonly publish: (channel: string, message: string) => Promise<unknown>;
  /** Each server that messages are published at. */
  readonly servers: () => readonly { readonly client: Pick<Redis, 'publish'> }[];
  readonly timeoutMs: number;
}

interface MessageConnection extends FollowedConnection {
  readonly client: Redis;
}

/** Up while every message arrives that is published on the channels listened to; when down, messages may be lost. */
export class RedisSubscriber extends ConnectionHealth<MessageConnection> {
  #options: RedisSubscriberOptions;
  readonly #heartbeats = channelName('heartbeats', randomUUID());
  /** By channel. */
  readonly #messages = new EventEmitter<Record<string, [message: string]>>().setMaxListeners(0);
  #isClosed = false;

  constructor(options: RedisSubscriberOptions) {
    super(options.timeoutMs);
    this.#options = options;
    this.keepOpen((attempt) => this.#open(attempt));
  }

  get #client(): Redis {
    return this.connection.client;
  }

  /**
   * Listens to a channel. Once it resolves no message is missed while `isUp()`; rejects if Redis does not confirm it, and
   * is then not listening. Returns a function that ends this; the last listener of a channel unsubscribes.
   */
  async subscribe(channel: string, listener: MessageListener): Promise<() => void> {
    const end = this.#add(channel, listener);
    try {
      await beforeDeadline(this.#client.subscribe(channel), this.timeoutMs + PROBE_SLACK_MS);
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

  /** Makes a new connection. */
  reopen(): void {
    this.#client.disconnect();
  }

  /** Makes a new connection if this one is to that node. */
  leave(node: { readonly host?: string | undefined; readonly port?: number | undefined }): void {
    const { host, port } = this.#client.options;
    if (node.host === host && node.port === port) this.reopen();
  }

  /**
   * Goes over to connections that are opened in that way. The old one goes on until the new one listens to all channels, so
   * that no message is missed; meanwhile one can arrive twice. Tries until it succeeds, or another way is given.
   */
  async replace(way: Pick<RedisSubscriberOptions, 'connect' | 'greet'>): Promise<void> {
    const options = { ...this.#options, ...way };
    this.#options = options;
    for (let attempt = 1; ; attempt += 1) {
      const client = this.#connect(attempt);
      const isListening = await this.#untilListening(client, options.greet).then(
        () => true,
        () => false,
      );
      if (this.#isClosed || this.#options !== options) return client.disconnect();
      if (isListening) {
        const old = this.#client;
        this.goOver(this.#asConnection(client, true), (next) => this.#open(next));
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
    this.#messages.removeAllListeners();
    this.#client.disconnect();
  }

  #open(attempt: number): MessageConnection {
    return this.#asConnection(this.#connect(attempt), false);
  }

  #connect(attempt: number): Redis {
    const client = this.#options.connect(attempt);
    client.on('message', (channel: string, message: string) => this.#messages.emit(channel, message));
    return client;
  }

  #asConnection(client: Redis, isListening: boolean): MessageConnection {
    const { greet } = this.#options;
    let isSubscribed = isListening;
    const ask = async (): Promise<void> => {
      if (!isSubscribed) await this.#greetAndSubscribe(client, greet);
      isSubscribed = true;
      await this.#hearOneself();
    };
    return { client, ask: droppedIfSilent(client, ask) };
  }

  /** Resolves once the new connection listens to all channels. Rejects if it is lost or refused before. */
  async #untilListening(client: Redis, greet: RedisSubscriberOptions['greet']): Promise<void> {
    const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
    let reason: Error = new ConnectionLostError();
    client.on('error', (error: Error) => {
      reason = error;
    });
    client.once('ready', resolve).once('end', () => reject(reason));
    await ready;
    await beforeDeadline(this.#greetAndSubscribe(client, greet), DROP_AFTER_MS);
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
