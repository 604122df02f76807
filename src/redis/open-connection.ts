/**
 * How connections to Redis are opened: to one server, to a Cluster, or to the primary that Sentinels name; one for commands
 * and, beside it, one for messages. All options of ioredis are here.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type ConnectionOptions, TLSSocket } from 'node:tls';
import { Cluster, type ClusterOptions, Redis, type RedisCommander, type RedisOptions } from 'ioredis';
import {
  describeNode,
  parseRedisAddress,
  type ReadTlsFile,
  type RedisAddress,
  type RedisNode,
  tlsOptions,
} from './address.ts';
import { handshake } from './handshake.ts';
import { clusterProbe, droppedIfSilent, type FollowedConnection } from './health.ts';
import { trialKeys } from './names.ts';
import { type RedisSubscriber, type RedisSubscriberOptions, retryDelayMs } from './pubsub.ts';

/** ioredis's client of one Redis, or of a Cluster as if it were one: each command goes to the node that has its keys. */
export type RedisClient = RedisCommander<{ type: 'default'; mapping: 'resp2' }> & Pick<Redis, 'defineCommand'>;

/** Where a Redis is, and with which secrets it is reached. */
export interface RedisAccess {
  /** As `parseRedisAddress` takes it. */
  readonly url: string;
  /** Reads the files that it names; from the disk unless given. */
  readonly readFile?: ReadTlsFile;
}

/** One server, for what is asked of a server and not of keys, such as INFO or SCAN. */
export interface RedisServer {
  /** Host and port. */
  readonly name: string;
  readonly client: RedisClient;
}

/** Nothing is ever there. */
const PROBED_KEY = trialKeys('probe')[0] ?? '';
/** So long the process itself may be held up without mistaking that for a Redis that does not answer. */
const STALL_MS = 250;
const CONNECT_TIMEOUT_MS = 2000;
/** How long a closed connection may wait for the other side to close too. */
const DISCONNECT_TIMEOUT_MS = 100;
/** For an answer of a Sentinel, or of a node about who has which slots; then the next one is asked. */
const TOPOLOGY_TIMEOUT_MS = 500;
/** The same for somebody who waits at a terminal: a busy machine is not mistaken for one that is down. */
const PATIENT_TIMEOUT_MS = 1500;
/** Between two tries of a command whose keys are just moving from one node to another. */
const MOVING_RETRY_MS = 10;
/** For changes that no command comes across, such as that an idle primary has become a replica. */
const SLOTS_REFRESH_MS = 2000;

/** An address with its TLS options: all that connections are opened with. */
export interface Opening {
  readonly address: RedisAddress;
  readonly encryption: ConnectionOptions | undefined;
}

/** Throws RedisAddressError. */
export function openingOf({ url, readFile }: RedisAccess): Opening {
  const address = parseRedisAddress(url);
  return { address, encryption: tlsOptions(address.tls, readFile) };
}

/** The connection for commands, and how one for messages is opened. */
export interface Connection extends FollowedConnection {
  readonly client: Redis | Cluster;
  readonly servers: () => readonly RedisServer[];
  readonly messages: Pick<RedisSubscriberOptions, 'connect' | 'greet'>;
}

export interface ConnectionHooks {
  /** Whether to connect again after an error reply. */
  readonly leavesReplica: (error: Error) => boolean;
  /** Called with the first failure of a probe at a node of a Cluster. */
  readonly onNodeFailure: (reason: Error) => void;
  /** Called when a node has left the Cluster. It may live on, and hears nothing of it any more. */
  readonly onNodeLeft: RedisSubscriber['leave'];
}

/** Goes on trying to connect. */
export function openConnection(opening: Opening, about: About, hooks: ConnectionHooks): Connection {
  const { address } = opening;
  const greet = handshake(address, about.name);
  const messages = messageOptions(opening, about);
  // Channels know no databases.
  const greetMessages = handshake({ ...address, db: 0 }, `${about.name}-messages`);
  if (address.kind === 'cluster') {
    const cluster = new Cluster([...address.nodes], clusterOptions(opening, about));
    cluster.on('-node', ({ options }: Redis) => hooks.onNodeLeft(options));
    return {
      client: cluster,
      servers: () => cluster.nodes('master').map((client) => ({ name: describeNode(placeOf(client)), client })),
      ask: clusterProbe(cluster, greet, hooks.onNodeFailure),
      // Each node forwards what is published at any other, so one connection to any node is enough.
      messages: {
        connect: () => new Redis({ ...messages, ...anyNode(cluster, address.nodes) }),
        greet: greetMessages,
      },
    };
  }
  const client = new Redis({ ...connectionOptions(opening, about), reconnectOnError: hooks.leavesReplica });
  // A read: a Redis that cannot save refuses PING too, and answers all that only reads.
  const ask = async (): Promise<void> => {
    await greet(client);
    await client.get(PROBED_KEY);
  };
  return {
    client,
    servers: () => [{ name: describeNode(address.nodes[0]), client }],
    ask: droppedIfSilent(client, ask),
    messages: { connect: () => new Redis(messages), greet: greetMessages },
  };
}

interface About {
  /** The name of the connection in CLIENT LIST. */
  readonly name: string;
  readonly timeoutMs: number;
}

function placeOf({ options: { host = '', port = 0 } }: Redis): RedisNode {
  return { host, port };
}

/** A node that answers, if there is one; a random one, so that not all processes listen at the same node. */
function anyNode(cluster: Cluster, named: readonly RedisNode[]): Partial<RedisNode> {
  const answering = cluster.nodes('master').filter(({ status }) => status === 'ready');
  const nodes = answering.length === 0 ? named : answering.map(placeOf);
  return nodes[Math.floor(Math.random() * nodes.length)] ?? {};
}

/** The options of every connection. */
function commonOptions({ address: { credentials, family }, encryption }: Opening, { name, timeoutMs }: About) {
  const { username, password } = credentials;
  if (encryption !== undefined) holdLateErrors();
  return {
    family,
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
    ...(encryption === undefined ? {} : { tls: encryption }),
    connectionName: name,
    commandTimeout: timeoutMs + STALL_MS,
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    // A request that may already have been counted must not be counted again.
    autoResendUnfulfilledCommands: false,
    // Done by the subscriber, which notices a failure.
    autoResubscribe: false,
  } satisfies RedisOptions;
}

/**
 * ioredis listens for one error per socket. TLS can report a second one, such as a reset after the alert of a server that
 * refused a certificate; without a listener it would end the process.
 */
function holdLateErrors(): void {
  unsubscribe('net.client.socket', holdErrors);
  subscribe('net.client.socket', holdErrors);
}

function holdErrors(message: unknown): void {
  const socket = typeof message === 'object' && message !== null && 'socket' in message ? message.socket : null;
  if (socket instanceof TLSSocket) socket.on('error', () => undefined);
}

type PlainOptions = RedisOptions & { readonly replyMapping?: 'legacy' };

/** The options of a connection that comes back by itself: to one Redis, or to the primary that Sentinels name. */
function connectionOptions(opening: Opening, about: About): PlainOptions {
  const { address } = opening;
  return {
    ...commonOptions(opening, about),
    ...(address.kind === 'sentinel' ? sentinelOptions(opening, about) : address.nodes[0]),
    db: address.db,
    enableOfflineQueue: false,
    retryStrategy: retryDelayMs,
  };
}

/** The same for messages, on a connection that the subscriber replaces when it is lost. */
function messageOptions(opening: Opening, about: About): PlainOptions {
  const address = { ...opening.address, db: 0 };
  const options = connectionOptions({ ...opening, address }, { ...about, name: `${about.name}-messages` });
  return { ...options, retryStrategy: () => null, sentinelRetryStrategy: () => null };
}

function sentinelOptions({ address, encryption }: Opening, about: About): PlainOptions {
  const { nodes, primary, sentinelCredentials } = address;
  const { username, password } = sentinelCredentials;
  return {
    sentinels: [...nodes],
    name: primary,
    ...(username === null ? {} : { sentinelUsername: username }),
    ...(password === null ? {} : { sentinelPassword: password }),
    ...(encryption === undefined ? {} : { sentinelTLS: encryption, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: topologyTimeoutMs(about),
    sentinelRetryStrategy: retryDelayMs,
    // The old primary may live on, out of the Sentinels' sight: it is left as soon as one of them announces another.
    failoverDetector: true,
    sentinelReconnectStrategy: retryDelayMs,
    // The address names them all; the addresses by which they know each other may be out of reach from here.
    updateSentinels: false,
  };
}

/** A command is sent again only after a node has said that it did not do it: MOVED, ASK, TRYAGAIN. */
function clusterOptions(opening: Opening, about: About) {
  return {
    redisOptions: commonOptions(opening, about),
    scaleReads: 'master',
    enableOfflineQueue: false,
    clusterRetryStrategy: retryDelayMs,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: MOVING_RETRY_MS,
    slotsRefreshTimeout: topologyTimeoutMs(about),
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    // Names stay names: certificates are checked by them.
    dnsLookup: (host, callback) => callback(null, host),
  } satisfies ClusterOptions;
}

function topologyTimeoutMs({ timeoutMs }: About): number {
  return timeoutMs > PATIENT_TIMEOUT_MS ? PATIENT_TIMEOUT_MS : TOPOLOGY_TIMEOUT_MS;
}

/** Asks one node, or one Sentinel, of the address a question or two, on a connection of its own. Rejects if it can't. */
export async function askNode<T>(
  address: RedisAddress,
  node: RedisNode,
  ask: (client: Redis) => Promise<T>,
): Promise<T> {
  const { kind, credentials, sentinelCredentials } = address;
  const own = { ...address, credentials: kind === 'sentinel' ? sentinelCredentials : credentials };
  const client = new Redis({
    ...commonOptions(
      { address: own, encryption: tlsOptions(own.tls) },
      { name: 'evalgate-doctor', timeoutMs: PATIENT_TIMEOUT_MS },
    ),
    ...node,
    enableReadyCheck: false,
    lazyConnect: true,
    retryStrategy: () => null,
  });
  // Why a connection fails says more than that it was closed.
  let cause: Error | null = null;
  client.on('error', (error: Error) => {
    cause = error;
  });
  try {
    await client.connect();
    return await ask(client);
  } catch (error) {
    throw cause ?? error;
  } finally {
    client.disconnect();
  }
}
