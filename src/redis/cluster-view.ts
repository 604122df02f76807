/** How one node of a Cluster sees the whole: for whoever looks why it doesn't answer. */
import { Redis } from 'ioredis';
import { describeNode, type RedisAddress, type RedisNode } from './address.ts';
import { askOptions } from './options.ts';

export const CLUSTER_SLOTS = 16_384;

export interface ClusterView {
  /** Slots that some primary has, and those of them whose primary answers. */
  readonly assignedSlots: number;
  readonly servedSlots: number;
  /** Host and port of each primary that has slots and doesn't answer. */
  readonly silent: readonly string[];
}

export interface ToldView {
  /** Host and port of the node that tells. */
  readonly name: string;
  readonly view: ClusterView;
}

/** The view of the first node of the address that tells; null where none does. Never rejects. */
export async function viewCluster(address: RedisAddress): Promise<ToldView | null> {
  const views = await Promise.all(address.nodes.map((node) => askForView(address, node).catch(() => null)));
  return views.find((view) => view !== null) ?? null;
}

async function askForView(address: RedisAddress, node: RedisNode): Promise<ToldView> {
  const client = new Redis(askOptions(address, node));
  client.on('error', () => undefined);
  try {
    await client.connect();
    const [info, nodes] = await Promise.all([client.cluster('INFO'), client.cluster('NODES')]);
    return { name: describeNode(node), view: readClusterView(info, String(nodes)) };
  } finally {
    client.disconnect();
  }
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
