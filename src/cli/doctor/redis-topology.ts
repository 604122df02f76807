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

function checkSentinels({ ok, warn }: Checks, answers: readonly SentinelAnswer[]): Check {
  const silent = answers.filter(({ primary }) => primary === null).map(({ name }) => name);
  const named = new Set(answers.map(({ primary }) => primary).filter((primary) => primary !== null));
  const primaries = [...named].join(', ');
  const count = answers.length;
  if (silent.length > 0) {
    const others = named.size === 0 ? '' : `; the others name ${primaries}`;
    return warn(
      `${silent.length} of ${count} Sentinels do not name the primary (${silent.join(', ')})${others}`,
      'Start them, and let them watch the same primary: most of them have to agree before another one takes over.',
    );
  }
  if (named.size === 1) return ok(`${count} of ${count} Sentinels name the same primary, ${primaries}`);
  return warn(
    `the Sentinels name different primaries (${primaries})`,
    'Wait until a failover in progress has ended; else give each of them the same "sentinel monitor".',
  );
}

/** As the first node of the address that answers sees the Cluster; nothing if none does. */
async function checkBrokenCluster({ warn }: Checks, address: RedisAddress): Promise<readonly Check[]> {
  const views = address.nodes.map((node) =>
    askNode(address, node, async (client) => {
      const [info, nodes] = await Promise.all([client.cluster('INFO'), client.cluster('NODES')]);
      return { name: describeNode(node), info, silent: silentPrimaries(String(nodes)) };
    }).catch(() => null),
  );
  const view = (await Promise.all(views)).find((one) => one !== null);
  if (view === undefined) return [];
  const { name, info, silent } = view;
  const slots = (state: string): number =>
    Number(new RegExp(`^cluster_slots_${state}:(\\d+)`, 'm').exec(info)?.[1] ?? 0);
  if (silent.length > 0) {
    return [
      warn(
        `as ${name} sees it, ${slots('ok')} of ${CLUSTER_SLOTS} slots are served, and these primaries do not answer: ${silent.join(', ')}`,
        'Start them with their data. A replica takes over by itself only while most primaries answer; else CLUSTER FAILOVER TAKEOVER at the replica makes it, and what it had not heard of is lost.',
      ),
    ];
  }
  const missing = CLUSTER_SLOTS - slots('assigned');
  if (missing === 0) return [];
  return [
    warn(
      `as ${name} sees it, ${missing} of ${CLUSTER_SLOTS} slots belong to no node`,
      'Give them to one: redis-cli --cluster fix host:port.',
    ),
  ];
}

/** Host and port of each primary that has slots and does not answer, from the reply to `CLUSTER NODES`. */
function silentPrimaries(nodes: string): readonly string[] {
  const silent = nodes.split('\n').flatMap((line) => {
    // <id> <host:port@bus[,name]> <flags> <primary> <ping> <pong> <epoch> <link> <slots>...
    const [, place = '', flags = '', , , , , , ...slots] = line.trim().split(' ');
    const isSilent = flags.split(',').some((flag) => flag === 'fail' || flag === 'fail?');
    return isSilent && slots.length > 0 ? [place.replace(/@.*$/, '')] : [];
  });
  return silent.toSorted();
}
