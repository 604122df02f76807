/** Checks of a Redis that consists of several nodes: the primaries of a Cluster, or its Sentinels. */
import { parseRedisAddress, type RedisAddress } from '../../redis/address.ts';
import type { RedisLink } from '../../redis/connection.ts';
import type { RedisSettings } from '../../redis/settings.ts';
import { askSentinels, type SentinelAnswer } from './redis-access.ts';
import { countText } from '../format.ts';
import type { Check, Checks } from './check.ts';

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
  return [checks.ok(`a Cluster of ${primaries} and ${countText(replicas, 'replica')}, all slots served`)];
}

/** The report of the Sentinels on a primary that can't be used; empty if none of them names it. Never rejects. */
export async function checkBrokenTopology(checks: Checks, url: string): Promise<readonly Check[]> {
  let address: RedisAddress;
  try {
    address = parseRedisAddress(url);
  } catch {
    // The failure to open it names the fault.
    return [];
  }
  if (address.kind !== 'sentinel') return [];
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
