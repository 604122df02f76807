/** Looks at what a Redis of several parts consists of: the primaries of a Cluster, or what its Sentinels say. */
import { parseRedisAddress, type RedisAddress } from '../../redis/address.ts';
import { CLUSTER_SLOTS, viewCluster } from '../redis-nodes.ts';
import { askSentinels, type SentinelAnswer } from '../redis-nodes.ts';
import { type Check, ok, warn } from './check.ts';
import type { RedisLook } from './redis-look.ts';

/** Nothing for a Redis that stands alone. Never rejects. */
export async function checkTopology(
  setting: string,
  url: string,
  { kind, servers }: Pick<RedisLook, 'kind' | 'servers'>,
): Promise<readonly Check[]> {
  if (kind === 'single') return [];
  if (kind === 'cluster') {
    const replicas = servers.reduce((sum, { settings }) => sum + (settings?.replicas ?? 0), 0);
    const primaries = servers.length === 1 ? 'one primary' : `${servers.length} primaries`;
    return [ok('redis', `${setting}: a Cluster of ${primaries} and ${replicas} replicas, all slots served`)];
  }
  return [checkSentinels(setting, await askSentinels(parseRedisAddress(url)))];
}

/** What its parts say where it could not be used; nothing where they say nothing. Never rejects. */
export async function checkBrokenTopology(setting: string, url: string): Promise<readonly Check[]> {
  const kind = kindOf(url);
  if (kind === 'cluster') return checkBrokenCluster(setting, url);
  return kind === 'sentinel' ? checkBrokenSentinels(setting, url) : [];
}

/** Null for what is no address: that is told already. */
function kindOf(url: string): RedisAddress['kind'] | null {
  try {
    return parseRedisAddress(url).kind;
  } catch {
    return null;
  }
}

/** That none of them names it is told already. */
async function checkBrokenSentinels(setting: string, url: string): Promise<readonly Check[]> {
  const answers = await askSentinels(parseRedisAddress(url));
  return answers.every(({ primary }) => primary === null) ? [] : [checkSentinels(setting, answers)];
}

async function checkBrokenCluster(setting: string, url: string): Promise<readonly Check[]> {
  const told = await viewCluster(parseRedisAddress(url));
  if (told === null) return [];
  const { name, view } = told;
  const seen = `${setting}: as ${name} sees it,`;
  if (view.silent.length > 0) {
    return [
      warn(
        'redis',
        `${seen} ${view.servedSlots} of ${CLUSTER_SLOTS} slots are served, and these primaries do not answer: ${view.silent.join(', ')}`,
        'Start them with their data. A replica takes over by itself only while most primaries answer; else CLUSTER FAILOVER TAKEOVER at the replica makes it, and what it had not heard of is lost.',
      ),
    ];
  }
  if (view.assignedSlots === CLUSTER_SLOTS) return [];
  return [
    warn(
      'redis',
      `${seen} ${CLUSTER_SLOTS - view.assignedSlots} of ${CLUSTER_SLOTS} slots belong to no node`,
      'Give them to one: redis-cli --cluster fix host:port.',
    ),
  ];
}

function checkSentinels(setting: string, answers: readonly SentinelAnswer[]): Check {
  const silent = answers.filter(({ primary }) => primary === null).map(({ name }) => name);
  const named = new Set(answers.flatMap(({ primary }) => (primary === null ? [] : [primary])));
  const others = named.size === 0 ? '' : `; the others name ${[...named].join(', ')}`;
  if (silent.length > 0) {
    return warn(
      'redis',
      `${setting}: ${silent.length} of ${answers.length} Sentinels do not name the primary (${silent.join(', ')})${others}`,
      'Start them, and let them watch the same primary: most of them have to agree before another one takes over.',
    );
  }
  if (named.size > 1) {
    return warn(
      'redis',
      `${setting}: the Sentinels name different primaries (${[...named].join(', ')})`,
      'Wait until a failover that is under way has ended; else give each of them the same "sentinel monitor".',
    );
  }
  const [primary] = named;
  return ok('redis', `${setting}: ${answers.length} of ${answers.length} Sentinels name the same primary, ${primary}`);
}
