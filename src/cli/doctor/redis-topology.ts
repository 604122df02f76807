/** Checks of a Redis that consists of several nodes: the primaries of a Cluster, or its Sentinels. */
import { describeNode, parseRedisAddress, type RedisAddress } from '../../redis/address.ts';
import { askNode, type RedisLink } from '../../redis/connection.ts';
import type { RedisSettings } from '../../redis/settings.ts';
import { askSentinels, type SentinelAnswer } from '../redis.ts';
import type { Check, Checks } from './check.ts';

const CLUSTER_SLOTS = 16_384;

/** For a Redis that can be used; empty if it is a single server. Never rejects. */
export async function checkTopology(
  checks: Checks,
  url: string,
  { kind, servers }: Pick<RedisLink, 'kind'> & { readonly servers: readonly { settings: RedisSettings | null }[] },
): Promise<readonly Check[]> {
  if (kind === 'single') return [];
  if (kind === 'sentinel') return [checkSentinels(checks, await askSentinels(parseRedisAddress(url)))];
  const replicas = servers.reduce((sum, { settings }) => sum + (settings?.replicas ?? 0), 0);
  const primaries = servers.length === 1 ? 'one primary' : `${servers.length} primaries`;
  return [checks.ok(`a Cluster of ${primaries} and ${replicas} replicas, all slots served`)];
}

/** For a Redis that can't be used: what its nodes report; empty if none answers. Never rejects. */
export async function checkBrokenTopology(checks: Checks, url: string): Promise<readonly Check[]> {
  let address: RedisAddress;
  try {
    address = parseRedisAddress(url);
  } catch {
    // The failure to open it names the fault.
    return [];
  }
  if (address.kind === 'cluster') return checkBrokenCluster(checks, address);
  if (address.kind === 'single') return [];
  const answers = await askSentinels(address);
  // If no Sentinel names the primary, the failure to open it says so.
  return answers.every(({ primary }) => primary === null) ? [] : [checkSentinels(checks, answers)];
}

function checkSentinels(checks: Checks, answers: readonly SentinelAnswer[]): Check {
  const silent = answers.filter(({ primary }) => primary === null).map(({ name }) => name);
  const named = new Set(answers.map(({ primary }) => primary).filter((primary) => primary !== null));
  const primaries = [...named].join(', ');
  if (silent.length > 0) {
    const others = named.size === 0 ? '' : `; the others name ${primaries}`;
    return checks.warn(
      `${silent.length} of ${answers.length} Sentinels do not name the primary (${silent.join(', ')})${others}`,
      'Start them, and let them watch the same primary: most of them have to agree before another one takes over.',
    );
  }
  if (named.size > 1) {
    return checks.warn(
      `the Sentinels name different primaries (${primaries})`,
      'Wait until a failover that is under way has ended; else give each of them the same "sentinel monitor".',
    );
  }
  const count = answers.length;
  return checks.ok(`${count} of ${count} Sentinels name the same primary, ${primaries}`);
}

async function checkBrokenCluster(checks: Checks, address: RedisAddress): Promise<readonly Check[]> {
  const view = await viewCluster(address);
  if (view === null) return [];
  const { name, assignedSlots, servedSlots, silent } = view;
  const seen = `as ${name} sees it,`;
  if (silent.length > 0) {
    return [
      checks.warn(
        `${seen} ${servedSlots} of ${CLUSTER_SLOTS} slots are served, and these primaries do not answer: ${silent.join(', ')}`,
        'Start them with their data. A replica takes over by itself only while most primaries answer; else CLUSTER FAILOVER TAKEOVER at the replica makes it, and what it had not heard of is lost.',
      ),
    ];
  }
  if (assignedSlots === CLUSTER_SLOTS) return [];
  return [
    checks.warn(
      `${seen} ${CLUSTER_SLOTS - assignedSlots} of ${CLUSTER_SLOTS} slots belong to no node`,
      'Give them to one: redis-cli --cluster fix host:port.',
    ),
  ];
}

/** A Cluster as one of its nodes sees it. */
interface ClusterView {
  /** Host and port of that node. */
  readonly name: string;
  /** Slots that have a primary, and slots whose primary answers. */
  readonly assignedSlots: number;
  readonly servedSlots: number;
  /** Host and port of each primary that has slots and does not answer. */
  readonly silent: readonly string[];
}

/** The view of the first node of the address that answers; null if none does. Never rejects. */
async function viewCluster(address: RedisAddress): Promise<ClusterView | null> {
  const views = address.nodes.map((node) =>
    askNode(address, node, async (client) => {
      const [info, nodes] = await Promise.all([client.cluster('INFO'), client.cluster('NODES')]);
      return clusterView(describeNode(node), info, String(nodes));
    }).catch(() => null),
  );
  return (await Promise.all(views)).find((view) => view !== null) ?? null;
}

/** `info` and `nodes`: the replies to `CLUSTER INFO` and `CLUSTER NODES`. */
function clusterView(name: string, info: string, nodes: string): ClusterView {
  const numberOf = (field: string): number => Number(new RegExp(`^${field}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  const silent: string[] = [];
  for (const line of nodes.split('\n')) {
    // <id> <host:port@bus[,name]> <flags> <primary> <ping> <pong> <epoch> <link> <slots>...
    const [, place = '', flags = '', , , , , , ...slots] = line.trim().split(' ');
    const isSilent = flags.split(',').some((flag) => flag === 'fail' || flag === 'fail?');
    if (isSilent && slots.length > 0) silent.push(place.replace(/@.*$/, ''));
  }
  return {
    name,
    assignedSlots: numberOf('cluster_slots_assigned'),
    servedSlots: numberOf('cluster_slots_ok'),
    silent: silent.toSorted(),
  };
}
