/**
 * A link to one Redis, to a Cluster, or to the primary that Sentinels name: a connection for commands and one for
 * messages, with bounded waits, and whether Redis answers. Nothing is queued while it does not, and no command is sent
 * twice.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type ConnectionOptions, TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { Cluster, type ClusterOptions, Redis, type RedisCommander, type RedisOptions } from 'ioredis';
import {
  describeNode,
  parseRedisAddress,
  type ReadTlsFile,
  type RedisAddress,
  type RedisNode,
  tlsOptions,
} from './address.ts';
import { NotSentError, RedisTimeoutError, replyCode } from './errors.ts';
import { handshake } from './handshake.ts';
import {
  clusterProbe,
  ConnectionHealth,
  ConnectionTrial,
  droppedIfSilent,
  type FollowedConnection,
  reasonOf,
} from './health.ts';
import { trialKeys } from './names.ts';
import { endAfterAnswers, RedisSubscriber, type RedisSubscriberOptions, retryDelayMs } from './pubsub.ts';
import { beforeDeadline } from './request-wait.ts';

/** ioredis's client of one Redis, or of a Cluster as if it were one: each command goes to the node that has its keys. */
export type RedisClient = RedisCommander<{ type: 'default'; mapping: 'resp2' }> & Pick<Redis, 'defineCommand'>;

/** `state`: keys, quotas, the purge log and all that operators set. `cache`: only the response cache. */
export type RedisRole = 'state' | 'cache';

/** `refused`: by an error reply. `lost`: the connection ended before the answer. `unsent`: there was no connection. */
export type CommandOutcome = 'answered' | 'refused' | 'timeout' | 'lost' | 'unsent';

/** Where a Redis is, and with which secrets it is reached. */
export interface RedisAccess {
  /** As `parseRedisAddress` takes it. */
  readonly url: string;
  /** Reads the files that it names; from the disk unless given. */
  readonly readFile?: ReadTlsFile;
}

export interface RedisLinkOptions extends RedisAccess {
  readonly role: RedisRole;
  /** Called for each `run`, so it has to be cheap. */
  readonly onCommand?: (role: RedisRole, outcome: CommandOutcome, seconds: number) => void;
  /** How long a command waits for its answer before it rejects. */
  readonly timeoutMs?: number;
}

/** One server, for what is asked of a server and not of keys, such as INFO or SCAN. */
export interface RedisServer {
  /** Host and port. */
  readonly name: string;
  readonly client: RedisClient;
}

/** The part of a link that sends commands to keys. */
export type RedisCommands = Pick<RedisLink, 'run' | 'kind' | 'db'>;

/** Runs what follows a change that was made. If it cannot be sent, that says nothing of the change itself. */
export async function afterChange(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    throw new Error(`after the change: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
  }
}

/** Nothing is ever there. */
const PROBED_KEY = trialKeys('probe')[0] ?? '';
const DEFAULT_TIMEOUT_MS = 250;
/** So long the process itself may be held up without mistaking that for a Redis that does not answer. */
const STALL_MS = 250;
const CONNECT_TIMEOUT_MS = 2000;
/** How long a closed connection may wait for the other side to close too. */
const DISCONNECT_TIMEOUT_MS = 100;
/** Between two tries to find a primary in place of a replica. */
const LEAVE_REPLICA_EVERY_MS = 5000;
/** For an answer of a Sentinel, or of a node about who has which slots; then the next one is asked. */
const TOPOLOGY_TIMEOUT_MS = 500;
/** The same for somebody who waits at a terminal: a busy machine is not mistaken for one that is down. */
const PATIENT_TIMEOUT_MS = 1500;
/** Between two tries of a command whose keys are just moving from one node to another. */
const MOVING_RETRY_MS = 10;
/** For changes that no command comes across, such as that an idle primary has become a replica. */
const SLOTS_REFRESH_MS = 2000;

/** Goes on trying to connect, at least once a second, to a Redis that can't be reached. */
export class RedisLink extends ConnectionHealth {
  readonly role: RedisRole;
  /** On a `cluster` keys lie on several servers: only keys with one hash tag can be in one script. */
  readonly kind: RedisAddress['kind'];
  readonly db: number;
  /** For messages, on a connection of its own that can be lost while `client` is up. */
  readonly subscriber: RedisSubscriber;
  readonly #onCommand: RedisLinkOptions['onCommand'];
  readonly #timeoutListeners = new Set<() => void>();
  /** What the connections were opened with, or those that are to take their place. */
  #opening: Opening;
  #connection: Connection;
  /** To take the place of the connection once it answers. */
  #next: { readonly connection: Connection; readonly trial: ConnectionTrial } | null = null;
  #isInDoubt = false;
  #leftReplicaAtMs = Number.NEGATIVE_INFINITY;

  /** Throws RedisAddressError for what is no address of a Redis. */
  constructor({ role, onCommand, timeoutMs = DEFAULT_TIMEOUT_MS, ...access }: RedisLinkOptions) {
    super(timeoutMs);
    this.#opening = openingOf(access);
    const { address } = this.#opening;
    this.role = role;
    this.kind = address.kind;
    this.db = address.db;
    this.#onCommand = onCommand;
    // Before any other listener, so that those who hear that it is up can send.
    this.onUp(() => {
      this.#isInDoubt = false;
    });
    this.#connection = this.#open(this.#opening);
    const publish = (channel: string, message: string): Promise<unknown> => this.client.publish(channel, message);
    this.subscriber = new RedisSubscriber({
      ...this.#connection.messages,
      publish,
      servers: () => this.servers(),
      timeoutMs,
    });
    // Its message to itself goes by this link, and could not be sent while that was down.
    this.onUp(() => void this.subscriber.ping().catch(() => undefined));
    this.follow(this.#connection);
  }

  /**
   * For libraries that take a client of ioredis, and for probes: it is sent to even while Redis counts as down. Another one
   * after `reconnect`.
   */
  get client(): RedisClient {
    return this.#connection.client;
  }

  /** The one Redis, or each primary of the Cluster, as far as they are known now. */
  servers(): readonly RedisServer[] {
    return this.#connection.servers();
  }

  /**
   * Goes over to other credentials or certificates of the same Redis: new connections take the place of the old ones once
   * they answer, and the old ones end once their answers have come. Until then the old ones serve, however long Redis
   * refuses the new ones. Throws RedisAddressError.
   */
  reconnect(access: RedisAccess): void {
    const opening = openingOf(access);
    if (isDeepStrictEqual(opening, this.#opening)) return;
    this.#opening = opening;
    this.#dropNext();
    const connection = this.#open(opening);
    const trial = new ConnectionTrial(connection, this.timeoutMs);
    this.#next = { connection, trial };
    trial.onUp(() => {
      const old = this.#connection;
      trial.end();
      this.#next = null;
      this.#connection = connection;
      this.follow(connection);
      void this.ping().catch(() => undefined);
      void endAfterAnswers(old.client);
    });
    void this.subscriber.replace(connection.messages);
  }

  /** Why the connections of the last `reconnect` are not in use yet; null if they are. */
  get pendingReason(): Error | null {
    return this.#next?.trial.downReason ?? null;
  }

  #dropNext(): void {
    this.#next?.trial.end();
    this.#next?.connection.client.disconnect();
    this.#next = null;
  }

  #open(opening: Opening): Connection {
    const { address } = opening;
    const about = { name: `evalgate-${this.role}`, timeoutMs: this.timeoutMs };
    const greet = handshake(address, about.name);
    const messages = messageOptions(opening, about);
    // Channels know no databases.
    const greetMessages = handshake({ ...address, db: 0 }, `${about.name}-messages`);
    if (address.kind === 'cluster') {
      const cluster = new Cluster([...address.nodes], clusterOptions(opening, about));
      const isInUse = (): boolean => this.#connection.client === cluster;
      const onFailure = (reason: Error): void => {
        if (isInUse()) this.setDown(reason);
      };
      cluster.on('-node', ({ options }: Redis) => {
        // A node that left the Cluster may live on, and hears nothing of it any more.
        if (isInUse()) this.subscriber.leave(options);
      });
      return {
        client: cluster,
        servers: () => cluster.nodes('master').map((client) => ({ name: describeNode(placeOf(client)), client })),
        ask: clusterProbe(cluster, greet, onFailure),
        // Each node forwards what is published at any other, so one connection to any node is enough.
        messages: {
          connect: () => new Redis({ ...messages, ...anyNode(cluster, address.nodes) }),
          greet: greetMessages,
        },
      };
    }
    const reconnectOnError = (error: Error): boolean => this.#leavesReplica(error);
    const client = new Redis({ ...connectionOptions(opening, about), reconnectOnError });
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

  /**
   * Runs commands, for everything else. Rejects with NotSentError at once while Redis is down, and with RedisTimeoutError
   * after `timeoutMs` without an answer; then Redis counts as down until a probe is answered in time, so that nothing else
   * waits for it (R6: a request waits for Redis once, and for a bounded time).
   *
   * ioredis's diagnostics channel names server and database, which does not distinguish the two roles if they share one
   * Redis; so commands are timed here.
   */
  async run<T>(send: (client: RedisClient) => Promise<T>): Promise<T> {
    // While one node of a Cluster is down, the others still answer for their keys.
    const canSend = this.isReady() && (this.kind === 'cluster' || super.isUp());
    if (this.#isInDoubt || !canSend) {
      this.#onCommand?.(this.role, 'unsent', 0);
      throw new NotSentError(`the ${this.role} Redis does not answer`, { cause: this.downReason });
    }
    const sentAtMs = performance.now();
    const report = (outcome: CommandOutcome): void => {
      this.#onCommand?.(this.role, outcome, (performance.now() - sentAtMs) / 1000);
    };
    try {
      const reply = await beforeDeadline(send(this.client), this.timeoutMs);
      report('answered');
      // One node of a Cluster says nothing of the others.
      if (this.kind !== 'cluster') this.answered();
      return reply;
    } catch (error) {
      if (error instanceof RedisTimeoutError) {
        report('timeout');
        this.setDown(error);
        for (const listener of this.#timeoutListeners) listener();
      } else report(replyCode(error) === null ? 'lost' : 'refused');
      throw reasonOf(error);
    }
  }

  /**
   * Sends nothing until a probe has ended. For a Redis that requests can do without, when another one has timed out: the
   * request that waited there does not wait here too (R6).
   */
  async doubt(): Promise<void> {
    this.#isInDoubt = true;
    // A failure is reported by the health.
    await this.ping().catch(() => undefined);
    this.#isInDoubt = false;
  }

  /** Calls back at each command that timed out. */
  onTimeout(listener: () => void): void {
    this.#timeoutListeners.add(listener);
  }

  /** Whether Redis answered lately, and is not in doubt. False until the first connection stands. */
  override isUp(): boolean {
    return !this.#isInDoubt && super.isUp();
  }

  /** Drops all connections. Answers still awaited reject. */
  async close(): Promise<void> {
    this.stop();
    this.subscriber.close();
    this.#dropNext();
    this.#connection.client.disconnect();
  }

  /**
   * Whether to connect again after an error reply: after a failover the old primary refuses writes, and the address may
   * lead to the new one. Not at each refusal: an address that goes on leading to a replica would only be lost and found,
   * many times a second.
   */
  #leavesReplica(error: Error): boolean {
    const nowMs = performance.now();
    if (replyCode(error) !== 'READONLY' || nowMs - this.#leftReplicaAtMs < LEAVE_REPLICA_EVERY_MS) return false;
    this.#leftReplicaAtMs = nowMs;
    this.downReason = error;
    return true;
  }
}

/** An address with its TLS options: all that connections are opened with. */
interface Opening {
  readonly address: RedisAddress;
  readonly encryption: ConnectionOptions | undefined;
}

/** Throws RedisAddressError. */
function openingOf({ url, readFile }: RedisAccess): Opening {
  const address = parseRedisAddress(url);
  return { address, encryption: tlsOptions(address.tls, readFile) };
}

/** The connection for commands, and how one for messages is opened. */
interface Connection extends FollowedConnection {
  readonly client: Redis | Cluster;
  readonly servers: () => readonly RedisServer[];
  readonly messages: Pick<RedisSubscriberOptions, 'connect' | 'greet'>;
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
