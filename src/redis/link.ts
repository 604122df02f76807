/**
 * A link to one Redis: a connection for commands and one for messages, both with bounded waits, and the word on whether
 * Redis answers. Nothing is queued while it doesn't, and no command is ever sent twice.
 */
import { Redis, type RedisOptions } from 'ioredis';
import { ConnectionHealth } from './health.ts';
import { RedisSubscriber } from './subscriber.ts';
import { type CommandOutcome, TimedRedis } from './timed-client.ts';

/** What is kept there: keys, quotas and epochs (`state`), or the response cache alone (`cache`). */
export type RedisRole = 'state' | 'cache';

/** Told of changes, for logs and metrics. A Redis that is down is told of once, not at each attempt. */
export interface RedisHooks {
  readonly onUp?: (role: RedisRole) => void;
  readonly onDown?: (role: RedisRole, reason: Error) => void;
  /** Told of each command of `client`, how it ended and how long it took as its caller saw it. Has to be cheap. */
  readonly onCommand?: (role: RedisRole, outcome: CommandOutcome, seconds: number) => void;
}

export interface RedisLinkOptions {
  /** `redis://` or `rediss://`, as ioredis takes it. */
  readonly url: string;
  readonly role: RedisRole;
  readonly hooks?: RedisHooks;
  /** How long a command waits for its answer before it rejects. */
  readonly commandTimeoutMs?: number;
}

export interface RedisLink {
  readonly role: RedisRole;
  /** For commands. Each rejects at once while there is no connection, and after `commandTimeoutMs` without an answer. */
  readonly client: Redis;
  /** For messages, on a connection of its own that can be lost while `client` is up. */
  readonly subscriber: RedisSubscriber;
  /** Whether Redis answered lately. False until the first connection stands. */
  isUp(): boolean;
  /** Calls back at each change to up; returns a function that ends this. */
  onUp(listener: () => void): () => void;
  /** Calls back at each change to down, and once where the first connection fails; returns a function that ends this. */
  onDown(listener: (reason: Error) => void): () => void;
  /** Drops both connections. Answers still awaited reject. */
  close(): Promise<void>;
}

const COMMAND_TIMEOUT_MS = 500;
const CONNECT_TIMEOUT_MS = 2000;
/** How long a closed connection may wait for the other side to close too. */
const DISCONNECT_TIMEOUT_MS = 100;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;

/** Doubles up to a second; the random half keeps a fleet from coming back all at once. */
function retryDelayMs(attempt: number): number {
  const boundMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10));
  return Math.ceil(boundMs * (0.5 + Math.random() / 2));
}

function optionsOf(connectionName: string, commandTimeoutMs: number) {
  return {
    connectionName,
    commandTimeout: commandTimeoutMs,
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    // A request that may already have been counted must not be counted again.
    autoResendUnfulfilledCommands: false,
    // Done by the subscriber itself, where a failure is noticed.
    autoResubscribe: false,
    retryStrategy: retryDelayMs,
    // After a failover the old primary refuses writes: the new one is found by connecting again.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  } satisfies RedisOptions;
}

const ONE_REDIS = /^rediss?:\/\//i;

/**
 * Opens a link. It returns at once: a Redis that can't be reached is a link that is down and goes on trying, at least
 * once a second. Throws TypeError for an address of another kind.
 */
export function openRedis(options: RedisLinkOptions): RedisLink {
  const { url, role, hooks = {}, commandTimeoutMs = COMMAND_TIMEOUT_MS } = options;
  // The address itself may hold a password.
  if (!ONE_REDIS.test(url))
    throw new TypeError(`The ${role} Redis needs an address that begins with redis:// or rediss://.`);
  const { onCommand } = hooks;
  const clientOptions = optionsOf(`evalgate-${role}`, commandTimeoutMs);
  const client =
    onCommand === undefined
      ? new Redis(url, clientOptions)
      : new TimedRedis(url, clientOptions, (outcome, seconds) => onCommand(role, outcome, seconds));
  const health = new ConnectionHealth(client);
  const subscriber = new RedisSubscriber(new Redis(url, optionsOf(`evalgate-${role}-messages`, commandTimeoutMs)));
  health.onUp(() => hooks.onUp?.(role));
  health.onDown((reason) => hooks.onDown?.(role, reason));
  return {
    role,
    client,
    subscriber,
    isUp: () => health.isUp(),
    onUp: (listener) => health.onUp(listener),
    onDown: (listener) => health.onDown(listener),
    close: async () => {
      subscriber.close();
      health.close();
      client.disconnect();
    },
  };
}
