/** What the nodes of a Cluster, and Sentinels, say of the whole: for somebody who looks why it does not answer. */
import { describeNode, type RedisAddress, type RedisNode } from '../redis/address.ts';
import { askNode } from '../redis/connection.ts';

export const CLUSTER_SLOTS = 16_384;

export interface SentinelAnswer {
  /** Host and port of the Sentinel. */
  readonly name: string;
  /** Host and port of the primary; null if it knows none of that name, or does not answer. */
  readonly primary: string | null;
  /** Why it does not answer; null if it does. */
  readonly error: unknown;
}

/** Asks each Sentinel of the address. Never rejects. */
export function askSentinels(address: RedisAddress): Promise<readonly SentinelAnswer[]> {
  return Promise.all(
    address.nodes.map(async (node): Promise<SentinelAnswer> => {
      const name = describeNode(node);
      try {
        const reply: unknown = await askNode(address, node, (client) =>
          client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', address.primary),
        );
        return { name, primary: Array.isArray(reply) ? reply.map(String).join(':') : null, error: null };
      } catch (error) {
        return { name, primary: null, error };
      }
    }),
  );
}

/** What the first node of the address that answers is: `standalone`, `cluster` or `sentinel`; null if none says. */
export async function askMode(address: RedisAddress): Promise<string | null> {
  const ask = (node: RedisNode): Promise<string> => askNode(address, node, (client) => client.info('server'));
  const infos = await Promise.all(address.nodes.map((node) => ask(node).catch(() => '')));
  return infos.map((info) => /^redis_mode:(\w+)/m.exec(info)?.[1] ?? null).find((mode) => mode !== null) ?? null;
}

/** How one node of a Cluster sees the whole. */
export interface ClusterView {
  /** Slots that some primary has, and how many of them have a primary that answers. */
  readonly assignedSlots: number;
  readonly servedSlots: number;
  /** Host and port of each primary that has slots and does not answer. */
  readonly silent: readonly string[];
}

export interface NodeView {
  /** Host and port of the node. */
  readonly name: string;
  readonly view: ClusterView;
}

/** The view of the first node of the address that answers; null if none does. Never rejects. */
export async function viewCluster(address: RedisAddress): Promise<NodeView | null> {
  const views = address.nodes.map((node) =>
    askNode(address, node, async (client) => {
      const [info, nodes] = await Promise.all([client.cluster('INFO'), client.cluster('NODES')]);
      return { name: describeNode(node), view: readClusterView(info, String(nodes)) };
    }).catch(() => null),
  );
  return (await Promise.all(views)).find((view) => view !== null) ?? null;
}

/** From the replies to `CLUSTER INFO` and `CLUSTER NODES`. */
export function readClusterView(info: string, nodes: string): ClusterView {
  const numberOf = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const silent: string[] = [];
  for (const line of nodes.split('\n')) {
    // <id> <host:port@bus[,name]> <flags> <primary> <ping> <pong> <epoch> <link> <slots>...
    const [, place = '', flags = '', , , , , , ...slots] = line.trim().split(' ');
    const isSilent = flags.split(',').some((flag) => flag === 'fail' || flag === 'fail?');
    if (isSilent && slots.length > 0) silent.push(place.replace(/@.*$/, ''));
  }
  return {
    assignedSlots: numberOf('cluster_slots_assigned'),
    servedSlots: numberOf('cluster_slots_ok'),
    silent: silent.toSorted(),
  };
}
