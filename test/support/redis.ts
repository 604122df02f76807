/**
 * A Redis of its own for a test file, wherever one can be had: `TEST_REDIS_URL`; else a container; else a server on the
 * PATH; else, on Debian, the distribution's packages unpacked into a folder of the project. The system is never changed.
 * With `TEST_REDIS_TOPOLOGY` it is a Cluster of three, or a primary and a replica with three Sentinels.
 */
import { findServer, type ServerBinary } from './redis-binary.ts';
import { type ClusterOptions, startCluster, type TestCluster } from './redis-cluster.ts';
import { startContainer } from './redis-container.ts';
import { type SentinelOptions, startSentinels, type TestSentinels } from './redis-sentinel.ts';
import { spawnServer } from './redis-server.ts';
import { borrowShared } from './redis-shared.ts';

export interface TestRedis {
  readonly url: string;
  /** Of each server, as of a Redis that stands alone. */
  readonly servers: readonly string[];
  /** Of a server that was spawned here; null where it is somebody else's or in a container. */
  readonly pid: number | null;
  /** Drops all keys. */
  flush(): Promise<void>;
  /** Freezes the server: connections stand, nothing is answered. Throws where `pid` is null, as the next three do. */
  pause(): void;
  resume(): void;
  /** Ends the server at once; its port then refuses connections. */
  kill(): Promise<void>;
  /** Starts it again on its port, after `kill` or out of its run, with nothing in it unless it is durable. */
  restart(): Promise<void>;
  /** After `resume`, resolves once it serves again; where there is none, it does so at once. */
  readonly settled?: () => Promise<void>;
  /** Ends it, or gives it back empty. */
  close(): Promise<void>;
}

export interface StartOptions {
  /** Whether the test freezes or kills its Redis: then it is always a spawned one. */
  readonly controls?: boolean;
  /** Whether it keeps what it was told over `kill` and `restart`; only with `controls`. */
  readonly isDurable?: boolean;
}

const HELP = [
  'No Redis was found for the tests. Provide one of these:',
  '  - TEST_REDIS_URL: the address of an empty database of a Redis 6.2 or newer, such as redis://127.0.0.1:6379/9;',
  '  - a running Docker daemon with the image redis:8-alpine, or able to pull it;',
  '  - redis-server or valkey-server on the PATH (tests that freeze or kill their Redis need this one);',
  '  - Debian or Ubuntu with apt-get and dpkg-deb: their packages are unpacked under .cache, nothing is installed.',
].join('\n');

/** Rejects with what to provide where no Redis can be had. */
export async function startRedis({ controls = false, isDurable = false }: StartOptions = {}): Promise<TestRedis> {
  const topology = process.env['TEST_REDIS_TOPOLOGY'] ?? '';
  if (topology !== '') return startTopology(topology, isDurable);
  if ((process.env['TEST_REDIS_SERVER'] ?? '') !== '') return startServer(isDurable);
  const sharedUrl = process.env['TEST_REDIS_URL'];
  if (!controls) {
    if (sharedUrl !== undefined && sharedUrl !== '') return borrowShared(sharedUrl);
    const container = await startContainer();
    if (container !== null) return container;
  }
  return startServer(isDurable);
}

async function startServer(isDurable: boolean): Promise<TestRedis> {
  return spawnServer(await serverBinary(), { isDurable });
}

async function startTopology(topology: string, isDurable: boolean): Promise<TestRedis> {
  if (topology === 'cluster') return spawnCluster({ isDurable });
  if (topology === 'sentinel') return spawnSentinels({ isDurable });
  throw new Error(`TEST_REDIS_TOPOLOGY is cluster or sentinel, not ${topology}.`);
}

/** A Cluster, whatever the tests have else. Rejects with what to provide where no server can be started. */
export async function spawnCluster(options: ClusterOptions = {}): Promise<TestCluster> {
  return startCluster(await serverBinary(), options);
}

/** What Sentinels watch, whatever the tests have else. Rejects with what to provide where no server can be started. */
export async function spawnSentinels(options: SentinelOptions = {}): Promise<TestSentinels> {
  return startSentinels(await serverBinary(), options);
}

async function serverBinary(): Promise<ServerBinary> {
  const binary = await findServer();
  if (binary === null) throw new Error(HELP);
  return binary;
}
