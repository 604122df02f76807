/** Reads everything about a Redis that the doctor checks, and tries the commands that a gateway needs. */
import { randomUUID } from 'node:crypto';
import { channelName, trialKeys } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import { readRedisSettings, type RedisSettings } from '../../redis/settings.ts';
import type { RedisLink, RedisServer } from '../../redis/connection.ts';
import { redisReason, within } from '../redis.ts';
import { type ClockReading, readClock } from './check.ts';

export interface RedisLook {
  readonly kind: RedisLink['kind'];
  /** The median of the pings; the slowest primary's in a Cluster. */
  readonly latencyMs: number;
  /** The one Redis, or each primary of a Cluster: host and port, and its settings if it permits INFO. */
  readonly servers: readonly { readonly name: string; readonly settings: RedisSettings | null }[];
  /** The clock that is furthest off; null if no server permits TIME. */
  readonly clock: ClockReading | null;
  /** Why a gateway could not work there, in Redis's words; null if it could. */
  readonly refusal: string | null;
}

export const PINGS = 11;
/** Redis deletes the name if this process ends between writing and deleting it. */
const TRIAL_TTL_MS = 5000;
const MESSAGE_WITHIN_MS = 2000;

/** The commands of a gateway's scripts. KEYS: a name of our own. ARGV: a channel, and the longest life of the name. */
const TRIAL = defineScript(
  'tryOut',
  `
local time = redis.call('TIME')
redis.call('SET', KEYS[1], time[1], 'NX', 'PX', ARGV[2])
redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], 'field', time[1])
redis.call('PEXPIRE', KEYS[1], ARGV[2])
redis.call('HGET', KEYS[1], 'field')
redis.call('DEL', KEYS[1])
redis.call('RPUSH', KEYS[1], time[1])
redis.call('LTRIM', KEYS[1], -1, -1)
redis.call('DEL', KEYS[1])
redis.call('ZADD', KEYS[1], time[1], 'member')
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[1], 'trial')
return 1
`,
);

/** `link` is up. Rejects if Redis stops answering. */
export async function lookAtRedis(link: RedisLink): Promise<RedisLook> {
  const servers = link.servers();
  // One after the other, so that no ping waits for another server's.
  const latenciesMs: number[] = [];
  for (const server of servers) latenciesMs.push(await medianPingMs(server));
  return {
    kind: link.kind,
    latencyMs: Math.max(...latenciesMs),
    servers: await Promise.all(
      servers.map(async (server) => ({
        name: server.name,
        settings: await readRedisSettings(server).catch(() => null),
      })),
    ),
    clock: furthestOff(await Promise.all(servers.map((server) => readServerClock(server).catch(() => null)))),
    // Last, because a refused write may close the connection.
    refusal: await tryOut(link).then(
      () => null,
      (error: unknown) => redisReason(error),
    ),
  };
}

async function medianPingMs({ client }: RedisServer): Promise<number> {
  const took: number[] = [];
  for (let ping = 0; ping < PINGS; ping += 1) {
    const sentAtMs = performance.now();
    await client.ping();
    took.push(performance.now() - sentAtMs);
  }
  return took.toSorted((a, b) => a - b)[Math.floor(PINGS / 2)] ?? 0;
}

async function readServerClock({ client }: RedisServer): Promise<ClockReading> {
  const sentAtMs = Date.now();
  const [seconds, micros] = (await client.time()).map(Number);
  const answeredAtMs = Date.now();
  if (seconds === undefined || micros === undefined) throw new TypeError('TIME answers with two numbers');
  return readClock(seconds * 1000 + micros / 1000, sentAtMs, answeredAtMs);
}

function furthestOff(readings: readonly (ClockReading | null)[]): ClockReading | null {
  const known = readings.filter((reading) => reading !== null);
  return known.toSorted((a, b) => Math.abs(b.offsetMs) - Math.abs(a.offsetMs))[0] ?? null;
}

/** Rejects with Redis's refusal. */
async function tryOut(link: RedisLink): Promise<void> {
  const id = randomUUID();
  const channel = channelName('doctor', id);
  await subscriberUp(link);
  const received = Promise.withResolvers<void>();
  // In a Cluster once at each primary.
  const keys = link.kind === 'cluster' ? trialKeys(id) : trialKeys(id).slice(0, 1);
  let awaited = keys.length;
  const end = await link.subscriber.subscribe(channel, () => {
    awaited -= 1;
    if (awaited === 0) received.resolve();
  });
  try {
    await Promise.all(keys.map((key) => runScript(link, TRIAL, { keys: [key], args: [channel, TRIAL_TTL_MS] })));
    await within(received.promise, MESSAGE_WITHIN_MS, new Error('a message that was published did not arrive'));
  } finally {
    end();
  }
}

async function subscriberUp({ subscriber }: RedisLink): Promise<void> {
  if (subscriber.isUp()) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = subscriber.onUp(resolve);
  const late = new Error('the connection for messages does not come up');
  await within(promise, MESSAGE_WITHIN_MS, late).finally(end);
}
