/** A Redis Cluster of its own for a test: primaries with equal parts of the slots, and replicas if wanted. */
import { z } from 'zod';
import type { TestRedis } from '../redis.ts';
import { untilAll, withClient } from './client.ts';
import {
  launchRedis,
  onHost,
  type RedisSource,
  REPLICATION,
  type ServerHost,
  together,
  untilFollowing,
} from './server.ts';

/** Ranges: the first slot, the last one, and host (null if it is that which was asked) and port of each node, the primary first. */
const slotsSchema = z.array(
  z.tuple([z.int(), z.int(), z.tuple([z.string().nullable(), z.int()]).rest(z.unknown())]).rest(z.unknown()),
);
const SLOTS = 16_384;
const PRIMARIES = 3;

export interface ClusterOptions {
  /** Per primary. */
  readonly replicas?: number;
  readonly isDurable?: boolean;
  /** A primary that is silent for so long is replaced by its replica. */
  readonly nodeTimeoutMs?: number;
  /** More lines of each node's configuration. */
  readonly config?: readonly string[];
}

export interface TestCluster extends TestRedis {
  /** At the start; who is what may change. */
  readonly primaries: readonly TestRedis[];
  readonly replicas: readonly TestRedis[];
  /** The node that has the slot now, as `askedAt` says, or the first node. Rejects if it knows none. */
  ownerOf(slot: number, askedAt?: TestRedis): Promise<TestRedis>;
  /** Moves an empty or a full slot to the node, as a resharding does. */
  beginMove(slot: number, to: TestRedis): Promise<void>;
  endMove(slot: number, to: TestRedis): Promise<void>;
}

export async function startCluster(source: RedisSource, options: ClusterOptions = {}): Promise<TestCluster> {
  const { replicas = 0, isDurable = false, nodeTimeoutMs = 2000, config: more = [] } = options;
  const config = [
    'cluster-enabled yes',
    'cluster-announce-ip 127.0.0.1',
    `cluster-node-timeout ${nodeTimeoutMs}`,
    'cluster-replica-validity-factor 0',
    ...REPLICATION,
    ...more,
  ];
  return onHost(source, PRIMARIES * (1 + replicas), async (host, ports) => {
    const nodes = await Promise.all(ports.map((port) => launchRedis(host, port, { isDurable, config })));
    await join(nodes);
    return clusterOf(host, nodes);
  });
}

function ask(node: TestRedis | undefined, ...words: readonly (string | number)[]): Promise<unknown> {
  return withClient(node?.url ?? '', (client) => client.call('CLUSTER', [...words]));
}

async function join(nodes: readonly TestRedis[]): Promise<void> {
  for (const [i, node] of nodes.entries()) {
    const [from = 0, upTo = 0] = [i, i + 1].map((part) => Math.floor((SLOTS * part) / PRIMARIES));
    const slots = Array.from({ length: upTo - from }, (_, slot) => from + slot);
    if (i < PRIMARIES) await ask(node, 'ADDSLOTS', ...slots);
    await ask(node, 'SET-CONFIG-EPOCH', i + 1);
    if (i > 0) await ask(node, 'MEET', '127.0.0.1', portOf(nodes[0]));
  }
  await allSay(nodes, `cluster_known_nodes:${nodes.length}`);
  for (const [i, replica] of nodes.slice(PRIMARIES).entries()) {
    await ask(replica, 'REPLICATE', String(await ask(nodes[i % PRIMARIES], 'MYID')));
  }
  await allSay(nodes, 'cluster_state:ok');
  await untilFollowing(nodes.slice(PRIMARIES));
}

async function allSay(nodes: readonly TestRedis[], line: string): Promise<void> {
  await untilAll(nodes, line, async (node) => String(await ask(node, 'INFO')).includes(line));
}

function portOf(node: TestRedis | undefined): string {
  return new URL(node?.url ?? '').port;
}

function clusterOf(host: ServerHost, nodes: readonly TestRedis[]): TestCluster {
  const primaries = nodes.slice(0, PRIMARIES);
  const all = together(nodes);
  const settled = (): Promise<void> => allSay(nodes, 'cluster_state:ok');
  const ownerOf = async (slot: number, askedAt = nodes[0]): Promise<TestRedis> => {
    const ranges = slotsSchema.parse(await ask(askedAt, 'SLOTS'));
    const [, , [, port] = []] = ranges.find(([from, upTo]) => from <= slot && slot <= upTo) ?? [];
    const owner = nodes.find((node) => portOf(node) === String(port));
    if (owner === undefined) throw new Error(`No node has slot ${slot}.`);
    return owner;
  };
  return {
    url: `redis+cluster://${primaries.map((node) => `127.0.0.1:${portOf(node)}`).join(',')}`,
    servers: nodes.map(({ url }) => url),
    primaries,
    replicas: nodes.slice(PRIMARIES),
    // Replicas refuse it; their primaries empty them.
    flush: async () => void (await Promise.allSettled(nodes.map((node) => node.flush()))),
    ...all,
    restart: () => all.restart().then(settled),
    settled,
    close: () => host.close(),
    ownerOf,
    beginMove: async (slot, to) => {
      const from = await ownerOf(slot);
      await ask(to, 'SETSLOT', slot, 'IMPORTING', String(await ask(from, 'MYID')));
      await ask(from, 'SETSLOT', slot, 'MIGRATING', String(await ask(to, 'MYID')));
      await withClient(from.url, async (client) => {
        const keys = await client.cluster('GETKEYSINSLOT', slot, 1000);
        if (keys.length > 0) await client.migrate('127.0.0.1', portOf(to), '', 0, 5000, 'KEYS', ...keys);
      });
    },
    endMove: async (slot, to) => {
      const toId = String(await ask(to, 'MYID'));
      for (const node of new Set([to, ...primaries])) await ask(node, 'SETSLOT', slot, 'NODE', toId);
    },
  };
}
