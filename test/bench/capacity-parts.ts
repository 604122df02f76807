/**
 * What rate limits and keys cost beyond the sizes that a fleet on one machine has: longer logs, more keys in one call. Each
 * by the gateway's own code against a real Redis.
 */
import { systemClock } from '../../src/clock.ts';
import { RedisKeyTable } from '../../src/keys/redis-key-table.ts';
import { createRedisKeyStore } from '../../src/keys/redis-key-store.ts';
import { hashToken } from '../../src/keys/token.ts';
import { QUOTA_WINDOWS } from '../../src/quota/log.ts';
import { type QuotaRequests, takeFromLogs } from '../../src/quota/redis-log.ts';
import { quotaLogKey } from '../../src/redis/keys.ts';
import { busy, type CallCost, nodeOf } from './capacity-busy.ts';
import type { RedisNode } from './capacity-readings.ts';
import type { RedisInUse } from './capacity-world.ts';

/** How one thing grows with another. */
export interface Growth {
  readonly x: number;
  readonly value: number;
}

const NO_LIMITS = { perMinute: 1_000_000_000, perHour: 1_000_000_000 };
const KEYS_OF_CALLS = [1, 2, 4, 8, 16, 64];

/** Calls of that many quotas each, as a busy Redis has them: CPU of Redis a call, in microseconds. */
export async function quotaCalls(
  redis: RedisInUse,
  keyIds: readonly string[],
  seconds: number,
): Promise<readonly Growth[]> {
  const grown: Growth[] = [];
  for (const x of KEYS_OF_CALLS) {
    let next = 0;
    const quotas = (): readonly QuotaRequests[] =>
      Array.from({ length: x }, () => {
        next = (next + 1) % keyIds.length;
        return { quotaId: keyIds[next] ?? '', runs: [{ limits: NO_LIMITS, count: 1 }] };
      });
    const { redisMicros } = await busy(redis, seconds, (client) => takeFromLogs(client, quotas(), QUOTA_WINDOWS));
    grown.push({ x, value: redisMicros });
  }
  return grown;
}

export interface HotKey {
  readonly logLength: number;
  /** Of the one key, in one call. */
  readonly requests: number;
  readonly redisMicros: number;
}

/** One key that sends many requests at once, at a log of that length: CPU of Redis a call. */
export async function hotKey(
  redis: RedisInUse,
  { logLength, requests }: Omit<HotKey, 'redisMicros'>,
  seconds: number,
): Promise<HotKey> {
  const quotaId = `hot_${logLength}`;
  await fillLog(nodeOf(redis), quotaId, logLength);
  const call = [{ quotaId, runs: [{ limits: NO_LIMITS, count: requests }] }];
  const { redisMicros } = await busy(redis, seconds, (client) => takeFromLogs(client, call, QUOTA_WINDOWS));
  return { logLength, requests, redisMicros };
}

/** Bytes that a log of that many requests takes. */
export async function logBytes(redis: RedisInUse, lengths: readonly number[]): Promise<readonly Growth[]> {
  const node = nodeOf(redis);
  const grown: Growth[] = [];
  for (const x of lengths) {
    await fillLog(node, `sized_${x}`, x);
    const bytes = await node.client.call('MEMORY', 'USAGE', quotaLogKey(`sized_${x}`), 'SAMPLES', '0');
    grown.push({ x, value: Number(bytes) });
  }
  return grown;
}

/** A look-up of a key, as a process makes it that does not remember it. */
export async function keyLookup(redis: RedisInUse, tokens: readonly string[], seconds: number): Promise<CallCost> {
  const hashes = tokens.map(hashToken);
  let next = 0;
  return await busy(redis, seconds, (client) => {
    next = (next + 1) % hashes.length;
    return createRedisKeyStore({ client, clock: systemClock }).find(hashes[next] ?? '');
  });
}

const USES_AT_ONCE = 1000;

/** The note that keys were used, for each of them. */
export async function keyUse(redis: RedisInUse, tokens: readonly string[], seconds: number): Promise<CallCost> {
  const hashes = tokens.slice(0, USES_AT_ONCE).map(hashToken);
  const { redisMicros, processMicros } = await busy(redis, seconds, (client) => {
    const nowMs = Date.now();
    return new RedisKeyTable(client).noteUses(new Map(hashes.map((hash) => [hash, nowMs])));
  });
  return { redisMicros: redisMicros / USES_AT_ONCE, processMicros: processMicros / USES_AT_ONCE };
}

/** With requests of the last hour, evenly spread. */
async function fillLog({ client }: RedisNode, quotaId: string, length: number): Promise<void> {
  const log = quotaLogKey(quotaId);
  await client.del(log);
  const nowMicros = Date.now() * 1000;
  const everyMicros = 3_600_000_000 / length;
  for (let from = 0; from < length; from += 10_000) {
    const count = Math.min(10_000, length - from);
    const times = Array.from({ length: count }, (_, index) =>
      String(Math.round(nowMicros - 3_600_000_000 + (from + index) * everyMicros)),
    );
    await client.rpush(log, ...times);
  }
}
