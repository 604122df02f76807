/**
 * The tests' Redis: the door of `redis/`. A test file gets one of its own, in a container if Docker answers, else as a
 * process: a server on the PATH, else the distribution's packages unpacked into a folder of the project. A Cluster and
 * Sentinels run in all of these ways. `TEST_REDIS_SERVER` names a server to start instead. `TEST_REDIS_TOPOLOGY` makes every Redis a Cluster of three, or a primary and a
 * replica with three Sentinels.
 */
import { type ClusterOptions, startCluster, type TestCluster } from './redis/cluster.ts';
import { type SentinelOptions, startSentinels, type TestSentinels } from './redis/sentinel.ts';
import { launchRedis, onHost, type ServerOptions } from './redis/server.ts';
import { redisSource } from './redis/source.ts';

export type { TestCluster } from './redis/cluster.ts';
export type { TestSentinels } from './redis/sentinel.ts';

export interface TestRedis {
  readonly url: string;
  /** The address of each server, as a Redis that stands alone. */
  readonly servers: readonly string[];
  flush(): Promise<void>;
  /** Freezes the server: connections stand, nothing is answered. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Ends the server at once; its port then refuses connections. */
  kill(): Promise<void>;
  /** Starts it again at its port, whether it runs or not, with nothing in it unless it is durable. */
  restart(): Promise<void>;
  /** Resolves once it serves again after `resume`; a Redis that stands alone has none and serves at once. */
  readonly settled?: () => Promise<void>;
  close(): Promise<void>;
}

/**
 * Whether each Redis is one server. No proxy can stand before a Cluster or Sentinels: they tell their clients the addresses
 * of the servers themselves.
 */
export const isOneServer = (process.env['TEST_REDIS_TOPOLOGY'] ?? '') === '';

/** Rejects with what to provide if there is no Redis. */
export async function startRedis(options: ServerOptions = {}): Promise<TestRedis> {
  const topology = process.env['TEST_REDIS_TOPOLOGY'] ?? '';
  if (topology === 'cluster') return spawnCluster(options);
  if (topology === 'sentinel') return spawnSentinels(options);
  if (topology !== '') throw new Error(`TEST_REDIS_TOPOLOGY is cluster or sentinel, not ${topology}.`);
  return onHost(await redisSource(), 1, (host, [port = 0]) => launchRedis(host, port, options));
}

export async function spawnCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  return startCluster(await redisSource(), options);
}

export async function spawnSentinels(options: SentinelOptions = {}): Promise<TestSentinels> {
  return startSentinels(await redisSource(), options);
}
