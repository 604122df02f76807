/** What all measurements of capacity share: two Redis servers as in production, the store, keys with an hour behind them. */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { Cluster, Redis } from 'ioredis';
import { z } from 'zod';
import { systemClock } from '../../src/clock.ts';
import { createRedisKeyStore } from '../../src/keys/redis-key-store.ts';
import { hashToken, newToken } from '../../src/keys/token.ts';
import type { RedisClient } from '../../src/redis/client.ts';
import { quotaBucket, quotaLogKey } from '../../src/redis/keys.ts';
import { spawnCluster, startRedis, type TestRedis } from '../support/redis.ts';
import type { Bench } from './gateway/bench.ts';
import { firstDocument, launch, OTHER_CORE } from './gateway/processes.ts';
import { HOUR_REQUESTS, KEYS, workspaceId, workspaceOf } from './capacity-mix.ts';
import { type RedisNode, usedBytes } from './capacity-readings.ts';

const HOUR_MICROS = 3_600_000_000;
const STORE = fileURLToPath(new URL('./capacity-store.ts', import.meta.url));
const storeSchema = z.object({ port: z.number(), token: z.string() });
const countsSchema = z.object({ calls: z.number(), notModified: z.number(), bytes: z.number() });

export interface Store {
  readonly url: string;
  readonly token: string;
  counts(): Promise<z.output<typeof countsSchema>>;
}

export interface RedisInUse {
  readonly url: string;
  /** To whichever of the nodes has the key. */
  readonly client: RedisClient;
  readonly nodes: readonly RedisNode[];
}

/** On the core that is not the gateways', and ended with the case. */
export async function openStore(bench: Bench): Promise<Store> {
  const { child, stop } = launch({ core: OTHER_CORE, command: [process.execPath, STORE] });
  bench.keep({ stop });
  const { port, token } = await firstDocument(child, storeSchema);
  const url = `http://127.0.0.1:${port}`;
  return { url, token, counts: async () => countsSchema.parse(await (await fetch(`${url}/counts`)).json()) };
}

export async function openRedisServer(bench: Bench, core: number = OTHER_CORE): Promise<RedisInUse> {
  const redis = await startRedis({ controls: true });
  return inUse(bench, redis, { servers: [redis], core });
}

/** A Cluster without replicas. */
export async function openCluster(bench: Bench, primaries: number): Promise<RedisInUse> {
  const cluster = await spawnCluster({ primaries });
  return inUse(bench, cluster, { servers: cluster.primaries, core: OTHER_CORE });
}

interface Pinning {
  readonly servers: readonly TestRedis[];
  readonly core: number;
}

async function inUse(bench: Bench, redis: TestRedis, { servers, core }: Pinning): Promise<RedisInUse> {
  bench.keep({ stop: () => redis.close() });
  const nodes: RedisNode[] = [];
  for (const { url } of servers) {
    const client = new Redis(url);
    bench.keep({ stop: async () => client.disconnect() });
    const pid = Number(/process_id:(\d+)/.exec(await client.info('server'))?.[1]);
    // The first process is that of a container.
    if (pid === 1) throw new Error('capacity is measured on a Redis that is a process: name one in TEST_REDIS_SERVER');
    execFileSync('taskset', ['-acp', String(core), String(pid)], { stdio: 'ignore' });
    nodes.push({ client, pid });
  }
  return { url: redis.url, client: clientOf(bench, nodes), nodes };
}

function clientOf(bench: Bench, nodes: readonly RedisNode[]): RedisClient {
  const [first, ...more] = nodes.map(({ client }) => client);
  if (first !== undefined && more.length === 0) return first;
  const cluster = new Cluster(nodes.map(({ client }) => ({ host: client.options.host, port: client.options.port })));
  bench.keep({ stop: async () => cluster.disconnect() });
  return cluster;
}

/** Keys at the default limits; what they take in Redis, and their tokens. */
export async function importKeys({
  client,
  nodes,
}: RedisInUse): Promise<{ readonly tokens: readonly string[]; readonly bytes: number }> {
  const tokens = Array.from({ length: KEYS }, newToken);
  const before = await usedBytes(nodes);
  await createRedisKeyStore({ client, clock: systemClock }).importKeys(
    tokens.map((token, key) => ({
      keyId: keyId(key),
      hash: hashToken(token),
      name: `Consumer ${key}`,
      status: 'active',
      workspaceIds: [workspaceId(workspaceOf(key))],
      scopes: ['reports.read', 'calls.read', 'coaching.read'],
      createdAtMs: Date.now(),
      expiresAtMs: null,
      limits: { perMinute: null, perHour: null },
    })),
  );
  return { tokens, bytes: (await usedBytes(nodes)) - before };
}

/** KEYS: logs of one slot. ARGV: requests, the time between two of them, the first. */
const PREFILL = `
for from = 1, ARGV[1], 500 do
  local entries = {}
  for i = from, math.min(from + 499, ARGV[1]) do entries[#entries + 1] = string.format('%.0f', ARGV[3] + (i - 1) * ARGV[2]) end
  for _, log in ipairs(KEYS) do redis.call('RPUSH', log, unpack(entries)) end
end
for _, log in ipairs(KEYS) do redis.call('PEXPIRE', log, 3660000) end
`;
const LOGS_AT_ONCE = 100;

/** Gives each of the keys an hour of requests, evenly spread, as an hour of load would have. Gives how many bytes that takes. */
export async function prefillLogs({ client, nodes }: RedisInUse): Promise<number> {
  const before = await usedBytes(nodes);
  const everyMicros = HOUR_MICROS / HOUR_REQUESTS;
  const buckets = Map.groupBy(
    Array.from({ length: KEYS }, (_, key) => keyId(key)),
    quotaBucket,
  );
  for (const ids of buckets.values()) {
    for (let from = 0; from < ids.length; from += LOGS_AT_ONCE) {
      const logs = ids.slice(from, from + LOGS_AT_ONCE).map(quotaLogKey);
      const firstMicros = Date.now() * 1000 - HOUR_MICROS + Math.random() * everyMicros;
      await client.eval(PREFILL, logs.length, ...logs, HOUR_REQUESTS, everyMicros, firstMicros);
    }
  }
  return (await usedBytes(nodes)) - before;
}

/** From here on every change goes to disk once a second, and the file is not written anew while it is measured. */
export async function keepOnDisk({ nodes }: RedisInUse): Promise<void> {
  await Promise.all(nodes.map(({ client }) => keepNodeOnDisk(client)));
}

async function keepNodeOnDisk(client: Redis): Promise<void> {
  await client.config('SET', 'auto-aof-rewrite-percentage', '0');
  await client.config('SET', 'appendonly', 'yes');
  const deadlineMs = performance.now() + 60_000;
  while (!/aof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0/.test(await client.info('persistence'))) {
    if (performance.now() > deadlineMs) throw new Error('Redis did not write its file within a minute');
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function keyId(key: number): string {
  return `key_${key}`;
}
