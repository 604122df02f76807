/** Plain clients for test support. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { parseRedisAddress, type RedisAddress } from '../../../src/redis/address.ts';

/** A Cluster sends a command that names no key to any of its nodes. */
export type TestClient = Redis | Cluster;

const ATTEMPT_TIMEOUT_MS = 1000;
const LOOK_EVERY_MS = 10;
const STARTED_WITHIN_MS = 30_000;

const OPTIONS = {
  lazyConnect: true,
  connectTimeout: ATTEMPT_TIMEOUT_MS,
  commandTimeout: ATTEMPT_TIMEOUT_MS,
  retryStrategy: () => null,
  maxRetriesPerRequest: 0,
} satisfies RedisOptions;

/** Resolves once the one server at that address answers; the caller disconnects the client. Rejects after `timeoutMs`. */
export function connectWhenUp(url: string, timeoutMs = STARTED_WITHIN_MS): Promise<Redis> {
  return untilConnected(url, timeoutMs, () => new Redis(url, OPTIONS));
}

/** The same for the address of a Redis in any topology. */
export function connectToAny(url: string, timeoutMs = STARTED_WITHIN_MS): Promise<TestClient> {
  const address = parseRedisAddress(url);
  if (address.kind === 'single') return connectWhenUp(url, timeoutMs);
  return untilConnected<TestClient>(url, timeoutMs, () => createClient(address));
}

function createClient({ kind, nodes, primary }: RedisAddress): TestClient {
  if (kind === 'cluster') {
    return new Cluster([...nodes], { lazyConnect: true, clusterRetryStrategy: () => null, redisOptions: OPTIONS });
  }
  return new Redis({ ...OPTIONS, sentinels: [...nodes], name: primary, sentinelRetryStrategy: () => null });
}

async function untilConnected<T extends TestClient>(url: string, timeoutMs: number, create: () => T): Promise<T> {
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    const client = create();
    client.on('error', () => undefined);
    try {
      await client.connect();
      return client;
    } catch (error) {
      client.disconnect();
      if (performance.now() > untilMs) throw new Error(`No Redis answers at ${url}.`, { cause: error });
    }
    await sleep(LOOK_EVERY_MS);
  }
}

export async function withClient<T>(url: string, run: (client: TestClient) => Promise<T>): Promise<T> {
  const client = await connectToAny(url, 5000);
  try {
    return await run(client);
  } finally {
    client.disconnect();
  }
}

/** The names of keys that match, at whichever server they are. */
export async function namesIn(client: TestClient, pattern: string): Promise<readonly string[]> {
  const nodes = client instanceof Cluster ? client.nodes('master') : [client];
  return (await Promise.all(nodes.map((node) => node.keys(pattern)))).flat();
}

/** Looks at each until it is so; a look that fails counts as not yet. Rejects after half a minute. */
export async function untilAll<T>(all: readonly T[], what: string, isSo: (one: T) => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + STARTED_WITHIN_MS;
  const look = async (one: T): Promise<void> => {
    while (!(await isSo(one).catch(() => false))) {
      if (performance.now() > untilMs) throw new Error(`Waited in vain: ${what}.`);
      await sleep(LOOK_EVERY_MS);
    }
  };
  await Promise.all(all.map(look));
}

interface Servers {
  readonly servers: readonly string[];
}

/** Runs it at every server by itself, with a client of its own. */
export async function atEach<T>({ servers }: Servers, run: (client: TestClient) => Promise<T>): Promise<readonly T[]> {
  return Promise.all(servers.map((url) => withClient(url, run)));
}

/** Cuts all connections for messages, at each server; resolves with how many there were. */
export async function cutSubscribers(redis: Servers): Promise<number> {
  return sumOf(redis, async (client) => Number(await client.call('CLIENT', 'KILL', 'TYPE', 'pubsub')));
}

export async function countSubscribers(redis: Servers): Promise<number> {
  return sumOf(
    redis,
    async (client) => String(await client.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).match(/^id=/gm)?.length ?? 0,
  );
}

export async function sumOf(redis: Servers, count: (client: TestClient) => Promise<number>): Promise<number> {
  return (await atEach(redis, count)).reduce((total, one) => total + one, 0);
}
