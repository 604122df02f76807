/** What the scripts of gateways cost Redis. */
import type { RedisClient } from '../../src/redis/client.ts';

/** All scripts run so far. */
export async function scriptStats(client: RedisClient): Promise<{ readonly calls: number; readonly micros: number }> {
  const stats = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await client.info('commandstats'));
  return { calls: Number(stats?.[1] ?? 0), micros: Number(stats?.[2] ?? 0) };
}
