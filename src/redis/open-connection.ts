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
import { clusterProbe, findClusterFault, hostlessNode } from './cluster-nodes.ts';
import { HandshakeError, replyCode } from './errors.ts';
import { handshake } from './handshake.ts';
import { droppedIfSilent, type FollowedConnection } from './health.ts';
import { trialKeys } from './names.ts';
import type { RedisSubscriber, RedisSubscriberOptions } from './pubsub.ts';
import { beforeDeadline, PROBE_SLACK_MS } from './request-wait.ts';

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

/** The connection for commands. */
export interface Connection extends FollowedConnection {
  readonly client: Redis | Cluster;
  readonly servers: () => readonly RedisServer[];
  /** The nodes of a Cluster that answer; empty for any other Redis. */
  readonly nodes: () => readonly RedisNode[];
}

interface ConnectionHooks {
  /** Whether to connect again after an error reply. */
  readonly leavesReplica: (error: Error) => boolean;
  /** Called with the first failure of a probe at a node of a Cluster. */
  readonly onNodeFailure: (reason: Error) => void;
  /** Called after each probe of a Cluster with the buckets that did not answer. */
  readonly onSilent: (buckets: ReadonlySet<number>) => void;
  /** Called when a node has left the Cluster. It may live on, and hears nothing of it any more. */
  readonly onNodeLeft: RedisSubscriber['leave'];
  /** Why no Sentinel answers; null if one does, or there is none. */
  readonly sentinelFault: () => Error | null;
}

/**
 * Connects once. `attempt`: how many connections have been opened since Redis last answered, this one included; each begins
 * with the next Sentinel.
 */
export function openConnection(opening: Opening, about: About, attempt: number, hooks: ConnectionHooks): Connection {
  const { address } = opening;
  const greet = handshake(address, about.name);
  if (address.kind === 'cluster') {
    const cluster = new Cluster([...address.nodes], clusterOptions(opening, about));
    cluster.on('-node', ({ options }: Redis) => hooks.onNodeLeft(options));
    return {
      client: cluster,
      servers: () => cluster.nodes('master').map((client) => ({ name: describeNode(placeOf(client)), client })),
      nodes: () =>
        cluster
          .nodes('master')
          .filter(({ status }) => status === 'ready')
          .map(placeOf),
      ask: clusterProbe(cluster, greet, { ...hooks, timeoutMs: about.timeoutMs }),
      findFault: () => findClusterFault(address.nodes, (node, ask) => askNode(address, node, ask)),
    };
  }
  // If it leaves a replica it ends, and another one is opened.
  const client = new Redis({ ...plainOptions(opening, about, attempt), reconnectOnError: hooks.leavesReplica });
  // A read: a Redis that cannot save refuses PING too, and answers all that only reads.
  const ask = async (): Promise<void> => {
    await greet(client);
    await beforeDeadline(client.get(PROBED_KEY), about.timeoutMs + PROBE_SLACK_MS);
  };
  return {
    client,
    servers: () => [{ name: describeNode(address.nodes[0]), client }],
    nodes: () => [],
    ask: droppedIfSilent(client, ask),
    findFault: () => Promise.resolve(hooks.sentinelFault()),
  };
}

/**
 * How connections for messages are opened. On a Cluster each node forwards what is published at any other, so one connection
 * to any node is enough: a random one of those that answer, so that not all processes listen at the same node.
 */
export function messageConnections(
  opening: Opening,
  about: About,
  answering: Connection['nodes'],
): Pick<RedisSubscriberOptions, 'connect' | 'greet'> {
  // Channels know no databases.
  const address = { ...opening.address, db: 0 };
  const anyNode = (): Partial<RedisNode> => {
    if (address.kind !== 'cluster') return {};
    const nodes = answering().length === 0 ? address.nodes : answering();
    return nodes[Math.floor(Math.random() * nodes.length)] ?? {};
  };
  return {
    connect: (attempt) => new Redis({ ...plainOptions(opening, about, attempt), ...anyNode() }),
    greet: handshake(address, `${about.name}-messages`),
  };
}

/** How each Sentinel is listened to; empty for any other Redis. */
export function sentinelConnections({ address, encryption }: Opening): readonly (() => Redis)[] {
  if (address.kind !== 'sentinel') return [];
  const options = commonOptions({ address: { ...address, credentials: address.sentinelCredentials }, encryption });
  return address.nodes.map((node) => () => new Redis({ ...options, ...node }));
}

export interface About {
  /** The name of the connection in CLIENT LIST. */
  readonly name: string;
  readonly timeoutMs: number;
}

function placeOf({ options: { host = '', port = 0 } }: Redis): RedisNode {
  return { host, port };
}

/**
 * The options of every connection. ioredis sends but one command by itself, HELLO with the password: if it sends more, and
 * Redis refuses the connection, the system can report a failed write before anybody reads what Redis said. It is also the one
 * of which it writes nothing to the standard error.
 *
 * Its `commandTimeout` is not used: after a process was held up it fires before what has arrived is read, so it takes the delay
 * of the process for one of Redis (C8: while Redis answers, memory is used only with proof). Each wait for an answer is bounded
 * by `beforeDeadline`, and a connection that is silent for long is dropped (health.ts), which ends all waits on it.
 */
function commonOptions({ address: { credentials, family }, encryption }: Opening) {
  const { username, password } = credentials;
  if (encryption !== undefined) holdLateErrors();
  return {
    family,
    // With a name, since a Redis without passwords takes any of a user that is named.
    ...(password === null ? {} : { username: username ?? 'default', password }),
    ...(encryption === undefined ? {} : { tls: encryption }),
    disableClientInfo: true,
    enableReadyCheck: false,
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    // Another client is opened instead (health.ts).
    retryStrategy: () => null,
    enableOfflineQueue: false,
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

/** The options of a connection to one Redis, or to the primary that Sentinels name. */
function plainOptions(opening: Opening, about: About, attempt: number): PlainOptions {
  const { address } = opening;
  const { kind, nodes } = address;
  return {
    ...commonOptions(opening),
    ...(kind === 'sentinel' ? sentinelOptions(opening, about, attempt) : nodes[0]),
  };
}

function sentinelOptions({ address, encryption }: Opening, about: About, attempt: number): PlainOptions {
  const { nodes, primary, sentinelCredentials } = address;
  const { username, password } = sentinelCredentials;
  // One that is cut off from the others may go on naming a primary that is gone.
  const first = (attempt - 1) % nodes.length;
  return {
    sentinels: [...nodes.slice(first), ...nodes.slice(0, first)],
    name: primary,
    ...(username === null ? {} : { sentinelUsername: username }),
    ...(password === null ? {} : { sentinelPassword: password }),
    ...(encryption === undefined ? {} : { sentinelTLS: encryption, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: topologyTimeoutMs(about),
    sentinelRetryStrategy: () => null,
    // Done by the watch (sentinels.ts).
    failoverDetector: false,
    // The address names them all; the addresses by which they know each other may be out of reach from here.
    updateSentinels: false,
  };
}

/** A command is sent again only after a node has said that it did not do it: MOVED, ASK, TRYAGAIN. */
function clusterOptions(opening: Opening, about: About) {
  const { retryStrategy, enableOfflineQueue, ...redisOptions } = commonOptions(opening);
  return {
    redisOptions,
    scaleReads: 'master',
    enableOfflineQueue,
    clusterRetryStrategy: retryStrategy,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: MOVING_RETRY_MS,
    slotsRefreshTimeout: topologyTimeoutMs(about),
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    // Names stay names: certificates are checked by them.
    dnsLookup: (host, callback) => callback(null, host),
    natMap: (key: string) => hostlessNode(key, opening.address.nodes[0].host),
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
    ...commonOptions({ address: own, encryption: tlsOptions(own.tls) }),
    // Nothing but a report depends on this one.
    commandTimeout: PATIENT_TIMEOUT_MS,
    ...node,
    lazyConnect: true,
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
    const reason = replyCode(error) === null ? (cause ?? error) : error;
    if (replyCode(reason) === null || (await isAnswered(client))) throw reason;
    throw new HandshakeError('CONNECT', 0, reason);
  } finally {
    client.disconnect();
  }
}

/** A server that closes the connection after an error reply refused the connection, and not what it was asked for. */
async function isAnswered(client: Redis): Promise<boolean> {
  return client.ping().then(
    () => true,
    (error: unknown) => replyCode(error) !== null,
  );
}
