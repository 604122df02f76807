/** A Redis Cluster of its own for a test: primaries with equal parts of the slots, and replicas where they are wanted. */
import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { z } from 'zod';
import { connectWhenUp, withClient } from './redis-client.ts';
import type { ServerBinary } from './redis-binary.ts';
import { freePort, spawnServer } from './redis-server.ts';
import type { TestRedis } from './redis.ts';

/** Ranges: the first slot, the last one, and of each node, the primary first, its host and port. */
const slotsSchema = z.array(
  z.tuple([z.int(), z.int(), z.tuple([z.string(), z.int()]).rest(z.unknown())]).rest(z.unknown()),
);
const SLOTS = 16_384;
/** A node talks with the others on a port that is so much higher. */
const BUS_PORT_ABOVE = 10_000;
const JOIN_TIMEOUT_MS = 30_000;
const LOOK_EVERY_MS = 25;
const PORT_ATTEMPTS = 50;

export interface ClusterOptions {
  readonly primaries?: number;
  /** Of each primary. */
  readonly replicas?: number;
  readonly isDurable?: boolean;
  /** A primary that is silent for so long is replaced by its replica. */
  readonly nodeTimeoutMs?: number;
}

export interface TestCluster extends TestRedis {
  /** At the start; who is what may change. */
  readonly primaries: readonly TestRedis[];
  readonly replicas: readonly TestRedis[];
  /** The one that has the slot now, as that node says; the first where none is given. Rejects where none is known. */
  ownerOf(slot: number, askedAt?: TestRedis): Promise<TestRedis>;
  /** Moves an empty or a full slot to the node, as a resharding does. */
  beginMove(slot: number, to: TestRedis): Promise<void>;
  endMove(slot: number, to: TestRedis): Promise<void>;
}

export async function startCluster(binary: ServerBinary, options: ClusterOptions = {}): Promise<TestCluster> {
  const { primaries = 3, replicas = 0, isDurable = false, nodeTimeoutMs = 2000 } = options;
  const more = nodeOptions(nodeTimeoutMs);
  const nodes: TestRedis[] = [];
  try {
    for (let i = 0; i < primaries * (1 + replicas); i += 1) {
      nodes.push(await spawnServer(binary, { isDurable, more, port: clusterPort }));
    }
    await join(nodes, primaries);
    return clusterOf(nodes, primaries);
  } catch (error) {
    await Promise.all(nodes.map((node) => node.close()));
    throw error;
  }
}

function nodeOptions(nodeTimeoutMs: number): readonly string[] {
  const options = {
    'cluster-enabled': 'yes',
    'cluster-config-file': 'nodes.conf',
    'cluster-node-timeout': String(nodeTimeoutMs),
    'cluster-replica-validity-factor': '0',
    'repl-diskless-sync': 'yes',
    'repl-diskless-sync-delay': '0',
  };
  return Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]);
}

/** One whose bus port is free too, and below those that the system hands out. */
async function clusterPort(): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const port = await freePort(randomInt(12_000, 22_000));
      await freePort(port + BUS_PORT_ABOVE);
      return port;
    } catch (error) {
      if (attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

async function join(nodes: readonly TestRedis[], primaries: number): Promise<void> {
  const clients = await Promise.all(nodes.map(({ url }) => connectWhenUp(url, JOIN_TIMEOUT_MS)));
  try {
    for (const [i, client] of clients.slice(0, primaries).entries()) {
      const [from, upTo] = [i, i + 1].map((part) => Math.floor((SLOTS * part) / primaries));
      await client.cluster(
        'ADDSLOTS',
        ...Array.from({ length: (upTo ?? 0) - (from ?? 0) }, (_, slot) => (from ?? 0) + slot),
      );
    }
    for (const [i, client] of clients.entries()) await client.call('CLUSTER', 'SET-CONFIG-EPOCH', i + 1);
    const first = portOf(nodes[0]?.url ?? '');
    for (const client of clients.slice(1)) await client.call('CLUSTER', 'MEET', '127.0.0.1', first);
    await allSay(clients, `cluster_known_nodes:${nodes.length}`);
    for (const [i, replica] of clients.slice(primaries).entries()) {
      await replica.call('CLUSTER', 'REPLICATE', String(await clients[i % primaries]?.call('CLUSTER', 'MYID')));
    }
    await allSay(clients, 'cluster_state:ok');
    await Promise.all(clients.slice(primaries).map((replica) => until(() => isFollowing(replica))));
  } finally {
    for (const client of clients) client.disconnect();
  }
}

async function allSay(clients: readonly Redis[], line: string): Promise<void> {
  await Promise.all(
    clients.map((client) => until(async () => String(await client.call('CLUSTER', 'INFO')).includes(line))),
  );
}

async function isFollowing(replica: Redis): Promise<boolean> {
  return (await replica.info('replication')).includes('master_link_status:up');
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + JOIN_TIMEOUT_MS;
  while (!(await isSo())) {
    if (performance.now() > untilMs) throw new Error('The nodes of the Cluster did not find together.');
    await sleep(LOOK_EVERY_MS);
  }
}

function portOf(url: string): string {
  return new URL(url).port;
}

function clusterOf(nodes: readonly TestRedis[], primaries: number): TestCluster {
  const together = async (run: (node: TestRedis) => Promise<void>): Promise<void> => {
    await Promise.all(nodes.map(run));
  };
  const settled = async (): Promise<void> => {
    const clients = await Promise.all(nodes.map(({ url }) => connectWhenUp(url, JOIN_TIMEOUT_MS)));
    await allSay(clients, 'cluster_state:ok').finally(() => clients.forEach((client) => client.disconnect()));
  };
  const ownerOf = async (slot: number, askedAt = nodes[0]): Promise<TestRedis> => {
    const port = await withClient(askedAt?.url ?? '', (client) => ownerPort(client, slot));
    const owner = nodes.find(({ url }) => portOf(url) === port);
    if (owner === undefined) throw new Error(`No node has slot ${slot}.`);
    return owner;
  };
  return {
    url: `redis+cluster://${nodes
      .slice(0, primaries)
      .map(({ url }) => `127.0.0.1:${portOf(url)}`)
      .join(',')}`,
    servers: nodes.map(({ url }) => url),
    pid: null,
    primaries: nodes.slice(0, primaries),
    replicas: nodes.slice(primaries),
    // Replicas are emptied by their primaries.
    flush: () => together(({ url }) => withClient(url, (client) => client.flushall().then(noop, noop))),
    pause: () => nodes.forEach((node) => node.pause()),
    resume: () => nodes.forEach((node) => node.resume()),
    kill: () => together((node) => node.kill()),
    restart: async () => {
      await together((node) => node.restart());
      await settled();
    },
    settled,
    close: () => together((node) => node.close()),
    ownerOf,
    beginMove: async (slot, to) => {
      const from = await ownerOf(slot);
      const [fromId, toId] = await Promise.all([idOf(from), idOf(to)]);
      await withClient(to.url, (client) => client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', fromId));
      await withClient(from.url, (client) => client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', toId));
      await withClient(from.url, (client) => moveKeys(client, slot, to));
    },
    endMove: async (slot, to) => {
      const toId = await idOf(to);
      for (const node of [to, ...nodes.slice(0, primaries).filter((one) => one !== to)]) {
        await withClient(node.url, (client) => client.call('CLUSTER', 'SETSLOT', slot, 'NODE', toId));
      }
    },
  };
}

function noop(): void {}

function idOf({ url }: TestRedis): Promise<string> {
  return withClient(url, async (client) => String(await client.call('CLUSTER', 'MYID')));
}

async function ownerPort(client: Redis, slot: number): Promise<string> {
  for (const [from, upTo, [, port]] of slotsSchema.parse(await client.cluster('SLOTS'))) {
    if (from <= slot && slot <= upTo) return String(port);
  }
  throw new Error(`No node has slot ${slot}.`);
}

async function moveKeys(client: Redis, slot: number, to: TestRedis): Promise<void> {
  const names = await client.cluster('GETKEYSINSLOT', slot, 1000);
  if (names.length > 0) await client.migrate('127.0.0.1', portOf(to.url), '', 0, 5000, 'KEYS', ...names);
}
