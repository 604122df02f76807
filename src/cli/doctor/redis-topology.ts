/** Looks at what a Redis of several parts consists of: the primaries of a Cluster, or what its Sentinels say. */
import { parseRedisAddress } from '../../redis/address.ts';
import { askSentinels } from '../../redis/sentinels.ts';
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
  return [await checkSentinels(setting, url)];
}

async function checkSentinels(setting: string, url: string): Promise<Check> {
  const answers = await askSentinels(parseRedisAddress(url));
  const silent = answers.filter(({ primary }) => primary === null).map(({ name }) => name);
  const named = new Set(answers.flatMap(({ primary }) => (primary === null ? [] : [primary])));
  if (silent.length > 0) {
    return warn(
      'redis',
      `${setting}: ${silent.length} of ${answers.length} Sentinels do not name the primary (${silent.join(', ')})`,
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
  return ok('redis', `${setting}: ${answers.length} of ${answers.length} Sentinels name the same primary`);
}
