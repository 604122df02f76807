/** How connections are made: bounded waits, nothing queued while there is none, and nothing ever sent twice. */
import type { ClusterOptions, RedisOptions } from 'ioredis';
import type { RedisAddress } from './address.ts';
import { tlsOptions } from './tls.ts';

const CONNECT_TIMEOUT_MS = 2000;
/** How long a closed connection may wait for the other side to close too. */
const DISCONNECT_TIMEOUT_MS = 100;
const FIRST_RETRY_MS = 50;
const LAST_RETRY_MS = 1000;
/** A Sentinel, or a node that is asked who has which slots. The next one is asked then. */
const ASK_TIMEOUT_MS = 500;
/** The same where somebody waits for a command: a busy machine is not to be taken for one that is down. */
const PATIENT_ASK_TIMEOUT_MS = 1500;
/** Between two tries of a command whose keys are just moving from one node to another. */
const MOVING_RETRY_MS = 10;
/** What nobody noticed otherwise, such as that an idle primary has become a replica. */
const SLOTS_REFRESH_MS = 10_000;

/** With replies in the form that ioredis gives by default. */
export type ConnectionOptions = RedisOptions & { readonly replyMapping?: 'legacy' };

export interface ConnectionAbout {
  readonly name: string;
  readonly commandTimeoutMs: number;
}

/** Doubles up to a second; the random half keeps a fleet from coming back all at once. */
export function retryDelayMs(attempt: number): number {
  const boundMs = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(attempt - 1, 10));
  return Math.ceil(boundMs * (0.5 + Math.random() / 2));
}

/** Of every connection. Throws RedisAddressError where a file that the address names can't be read. */
function commonOptions({ credentials, tls, family }: RedisAddress, { name, commandTimeoutMs }: ConnectionAbout) {
  const { username, password } = credentials;
  const encryption = tlsOptions(tls);
  return {
    family,
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password }),
    ...(encryption === undefined ? {} : { tls: encryption }),
    connectionName: name,
    commandTimeout: commandTimeoutMs,
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    // A request that may already have been counted must not be counted again.
    autoResendUnfulfilledCommands: false,
    // Done by the subscriber itself, where a failure is noticed.
    autoResubscribe: false,
  } satisfies RedisOptions;
}

/** Of a connection that comes back by itself: to one Redis, or to the primary that Sentinels name. */
export function redisOptions(address: RedisAddress, about: ConnectionAbout): ConnectionOptions {
  return {
    ...commonOptions(address, about),
    ...(address.kind === 'sentinel' ? sentinelOptions(address, about) : { ...address.nodes[0] }),
    db: address.db,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: retryDelayMs,
    // After a failover the old primary refuses writes: the new one is found by connecting again.
    reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  };
}

/** Of a connection for a question or two to one node, or one Sentinel, of the address; to be connected by hand, once. */
export function askOptions(address: RedisAddress, node: RedisAddress['nodes'][number]): ConnectionOptions {
  const { credentials, sentinelCredentials, kind } = address;
  return {
    ...commonOptions(
      { ...address, credentials: kind === 'sentinel' ? sentinelCredentials : credentials },
      { name: 'evalgate-doctor', commandTimeoutMs: PATIENT_ASK_TIMEOUT_MS },
    ),
    ...node,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    lazyConnect: true,
    retryStrategy: () => null,
  };
}

/** Of a connection to one Sentinel. */
export function watchOptions(
  address: RedisAddress,
  node: RedisAddress['nodes'][number],
  name: string,
): ConnectionOptions {
  return {
    ...commonOptions(
      { ...address, credentials: address.sentinelCredentials },
      { name, commandTimeoutMs: ASK_TIMEOUT_MS },
    ),
    ...node,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    retryStrategy: retryDelayMs,
  };
}

/**
 * Of a Cluster. A command is sent again only where a node has said that it did not do it: MOVED, ASK, TRYAGAIN. While it
 * connects to a node that it has just heard of, commands for that node wait, for no longer than any.
 */
export function clusterOptions(address: RedisAddress, about: ConnectionAbout) {
  return {
    redisOptions: commonOptions(address, about),
    scaleReads: 'master',
    clusterRetryStrategy: retryDelayMs,
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    retryDelayOnTryAgain: MOVING_RETRY_MS,
    slotsRefreshTimeout: askTimeoutMs(about),
    slotsRefreshInterval: SLOTS_REFRESH_MS,
    // Names stay names: certificates are checked by them.
    dnsLookup: (host, callback) => callback(null, host),
  } satisfies ClusterOptions;
}

function askTimeoutMs({ commandTimeoutMs }: ConnectionAbout): number {
  return commandTimeoutMs > PATIENT_ASK_TIMEOUT_MS ? PATIENT_ASK_TIMEOUT_MS : ASK_TIMEOUT_MS;
}

function sentinelOptions(
  { nodes, primary, sentinelCredentials, tls }: RedisAddress,
  about: ConnectionAbout,
): ConnectionOptions {
  const { username, password } = sentinelCredentials;
  const encryption = tlsOptions(tls);
  return {
    sentinels: nodes.map(({ host, port }) => ({ host, port })),
    name: primary,
    ...(username === null ? {} : { sentinelUsername: username }),
    ...(password === null ? {} : { sentinelPassword: password }),
    ...(encryption === undefined ? {} : { sentinelTLS: encryption, enableTLSForSentinelMode: true }),
    sentinelCommandTimeout: askTimeoutMs(about),
    sentinelRetryStrategy: retryDelayMs,
    // The address names them all; what they call each other may be out of reach from here.
    updateSentinels: false,
  };
}
