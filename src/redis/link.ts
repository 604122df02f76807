/**
 * A link to one Redis, to a Cluster, or to the primary that Sentinels name: connections for commands and one for
 * messages, with bounded waits, and the word on whether Redis answers. Nothing is queued while it doesn't, and no command
 * is ever done twice.
 */
import { isIP } from 'node:net';
import { Redis } from 'ioredis';
import { parseRedisAddress, type RedisAddress, type RedisNode } from './address.ts';
import type { RedisClient } from './client.ts';
import { TimedCluster } from './cluster-client.ts';
import { ClusterHealth } from './cluster-health.ts';
import { openMessages } from './cluster-messages.ts';
import { ConnectionHealth, type LinkHealth } from './health.ts';
import { clusterOptions, type ConnectionAbout, redisOptions } from './options.ts';
import { SentinelWatch } from './sentinel-watch.ts';
import { RedisSubscriber } from './subscriber.ts';
import { type CommandListener, type CommandOutcome, TimedRedis } from './timed-client.ts';

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
  /** As `parseRedisAddress` takes it. */
  readonly url: string;
  readonly role: RedisRole;
  readonly hooks?: RedisHooks;
  /** How long a command waits for its answer before it rejects. */
  readonly commandTimeoutMs?: number;
}

/** One server, for what is asked of a server and not of keys, such as INFO or SCAN. */
export interface RedisServer {
  /** Host and port. */
  readonly name: string;
  readonly client: RedisClient;
}

export interface RedisLink {
  readonly role: RedisRole;
  /** For commands. Each rejects at once while there is no connection, and after `commandTimeoutMs` without an answer. */
  readonly client: RedisClient;
  /** For messages, on a connection of its own that can be lost while `client` is up. */
  readonly subscriber: RedisSubscriber;
  /** On a `cluster` keys lie on several servers: only those with one hash tag can be in one script. */
  readonly kind: RedisAddress['kind'];
  /** The one Redis, or each primary of the Cluster, as far as they are known now. */
  servers(): readonly RedisServer[];
  /** Resolves once it has answered, a Cluster with all its primaries; rejects, in bounded time, where it doesn't. */
  ping(): Promise<void>;
  /** Whether Redis answered lately. False until the first connection stands. */
  isUp(): boolean;
  /** Calls back at each change to up; returns a function that ends this. */
  onUp(listener: () => void): () => void;
  /** Calls back at each change to down, and once where the first connection fails; returns a function that ends this. */
  onDown(listener: (reason: Error) => void): () => void;
  /** Drops all connections. Answers still awaited reject. */
  close(): Promise<void>;
}

const COMMAND_TIMEOUT_MS = 500;

/** What differs between the three. */
interface Connections extends Pick<RedisLink, 'client' | 'servers' | 'ping'> {
  readonly messages: Redis;
  readonly health: LinkHealth;
  disconnect(): void;
}

interface Opening {
  readonly address: RedisAddress;
  readonly commands: ConnectionAbout;
  readonly messages: ConnectionAbout;
  readonly onCommand: CommandListener | null;
  readonly isGathering: boolean;
}

/**
 * Opens a link. It returns at once: a Redis that can't be reached is a link that is down and goes on trying, at least
 * once a second. Throws RedisAddressError for what is no address of a Redis.
 */
export function openRedis(options: RedisLinkOptions): RedisLink {
  const { url, role, hooks = {}, commandTimeoutMs = COMMAND_TIMEOUT_MS } = options;
  const address = parseRedisAddress(url);
  const { onCommand } = hooks;
  const opening: Opening = {
    address,
    commands: { name: `evalgate-${role}`, commandTimeoutMs },
    messages: { name: `evalgate-${role}-messages`, commandTimeoutMs },
    onCommand: onCommand === undefined ? null : (outcome, seconds) => onCommand(role, outcome, seconds),
    // Quotas are asked for many at a time already, and each request waits for them.
    isGathering: role === 'cache',
  };
  const connections = address.kind === 'cluster' ? connectToCluster(opening) : connectToOne(opening);
  const { client, health } = connections;
  const subscriber = new RedisSubscriber(connections.messages);
  health.onUp(() => hooks.onUp?.(role));
  health.onDown((reason) => hooks.onDown?.(role, reason));
  return {
    role,
    client,
    subscriber,
    kind: address.kind,
    servers: () => connections.servers(),
    ping: () => connections.ping(),
    isUp: () => health.isUp(),
    onUp: (listener) => health.onUp(listener),
    onDown: (listener) => health.onDown(listener),
    close: async () => {
      subscriber.close();
      health.close();
      connections.disconnect();
    },
  };
}

function connectToOne({ address, commands, messages: about, onCommand, isGathering }: Opening): Connections {
  const options = redisOptions(address, commands);
  const client = onCommand === null ? new Redis(options) : new TimedRedis(options, { onCommand, isGathering });
  const messages = new Redis(redisOptions(address, about));
  const leave = (old: RedisNode): void => {
    for (const one of [client, messages]) if (isConnectedTo(one, old)) one.disconnect(true);
  };
  const watch = address.kind === 'sentinel' ? new SentinelWatch(address, `${commands.name}-watch`, leave) : null;
  const [{ host, port }] = address.nodes;
  return {
    client,
    messages,
    health: new ConnectionHealth(client),
    servers: () => [{ name: `${host}:${port}`, client }],
    ping: async () => void (await client.ping()),
    disconnect: () => {
      watch?.close();
      client.disconnect();
    },
  };
}

function connectToCluster({ address, commands, messages: about, onCommand }: Opening): Connections {
  const { commandTimeoutMs } = commands;
  const cluster = new TimedCluster(address.nodes, clusterOptions(address, commands), { commandTimeoutMs, onCommand });
  const health = new ClusterHealth(cluster);
  return {
    client: cluster,
    messages: openMessages(cluster, redisOptions(address, about), address.nodes),
    health,
    servers: () =>
      cluster.nodes('master').map((node) => ({ name: `${node.options.host}:${node.options.port}`, client: node })),
    ping: () => health.ask(),
    disconnect: () => cluster.disconnect(),
  };
}

/** Sentinels that tell of names can't be held against the address of a connection: its port has to do. */
function isConnectedTo({ status, stream }: Redis, { host, port }: RedisNode): boolean {
  if (status !== 'ready' || stream.remotePort !== port) return false;
  return isIP(host) === 0 || stream.remoteAddress?.replace(/^::ffff:/, '') === host;
}
