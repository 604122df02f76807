/** What the quota's script costs Redis. */
import { QUOTA_WINDOWS } from '../../src/quota/log.ts';
import { admittedOf, takeFromLogs } from '../../src/quota/redis-log.ts';
import type { RedisClient, RedisCommands, RedisLink } from '../../src/redis/connection.ts';
import { quotaLogKey } from '../../src/redis/names.ts';

const ROUNDS = 15;
const CALLS = 20;
const APART_MICROS = 3_500_000;
const QUOTA_ID = 'cost';
const RUNS = [{ limits: { perMinute: 120, perHour: 3000 }, count: 1 }];

/** Redis's CPU time of one call, microseconds, with that many requests of the last hour in the log: 1,000 at most. */
export async function scriptMicros(link: RedisLink, entries: number): Promise<number> {
  const { client } = link;
  const means: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    await fill(client, entries);
    const before = await scriptStats(client);
    // The first call of a process knows nothing of the log, the others what the one before saw.
    let minuteUse = 0;
    for (let i = 0; i < CALLS; i += 1) minuteUse = await take(link, minuteUse);
    const after = await scriptStats(client);
    means.push((after.micros - before.micros) / (after.calls - before.calls));
  }
  // The best of them: others may be at work on the same machine.
  return Math.min(...means);
}

/** Use of the minute after the call. */
async function take(redis: RedisCommands, expectedUse: number): Promise<number> {
  const quotas = [{ quotaId: QUOTA_ID, runs: RUNS }];
  const [reply] = await takeFromLogs(redis, quotas, QUOTA_WINDOWS, () => expectedUse);
  if (reply === undefined || reply instanceof Error) throw reply ?? new Error('there is no reply');
  return reply.minute.used + admittedOf(reply);
}

async function fill(client: RedisClient, entries: number): Promise<void> {
  const key = quotaLogKey(QUOTA_ID);
  const now = Date.now() * 1000;
  await client.del(key);
  await client.rpush(key, ...Array.from({ length: entries }, (_, i) => now - (entries - i) * APART_MICROS));
}

/** All scripts run so far. */
export async function scriptStats(client: RedisClient): Promise<{ readonly calls: number; readonly micros: number }> {
  const stats = /cmdstat_evalsha:calls=(\d+),usec=(\d+)/.exec(await client.info('commandstats'));
  return { calls: Number(stats?.[1] ?? 0), micros: Number(stats?.[2] ?? 0) };
}
