/** Asks a Redis all that the doctor wants to know, and tries what a gateway does there. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { channelName, trialKeys } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import type { RedisSettings } from '../../redis/settings.ts';
import { readRedisSettings } from '../../redis/settings.ts';
import type { RedisLink, RedisServer } from '../../redis/connection.ts';
import { redisReason } from '../redis.ts';

export interface ClockReading {
  /** Unix milliseconds: by its clock, and by ours before it was asked and after it answered. */
  readonly theirsMs: number;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

/** What one server told. */
export interface ServerLook {
  /** Host and port. */
  readonly name: string;
  /** Null where it does not tell. */
  readonly settings: RedisSettings | null;
}

export interface RedisLook {
  readonly kind: RedisLink['kind'];
  /** Median of the pings; of a Cluster that of its slowest primary. */
  readonly latencyMs: number;
  /** The one Redis, or each primary of a Cluster. */
  readonly servers: readonly ServerLook[];
  /** Of the one that is furthest off; null where none tells. */
  readonly clock: ClockReading | null;
  /** Why a gateway could not work there; null where it could. */
  readonly refusal: string | null;
}

export const PINGS = 11;
/** The name is gone by itself should this process end between writing and deleting it. */
const TRIAL_TTL_MS = 5000;
const MESSAGE_WITHIN_MS = 2000;

/** KEYS: a name of our own. ARGV: a channel, and how long the name lives at most. What a gateway's scripts do, in little. */
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

/** `link` is up. Rejects where Redis stops answering. */
export async function lookAtRedis(link: RedisLink): Promise<RedisLook> {
  const servers = link.servers();
  // One after the other, so that they don't wait for each other.
  const latenciesMs: number[] = [];
  for (const server of servers) latenciesMs.push(await medianPingMs(server));
  return {
    kind: link.kind,
    latencyMs: Math.max(...latenciesMs),
    servers: await Promise.all(servers.map(lookAtServer)),
    clock: furthestOff(await Promise.all(servers.map((server) => readClock(server).catch(() => null)))),
    // Last, since a refused write may cost the connection.
    refusal: await tryOut(link).then(
      () => null,
      (error: unknown) => redisReason(error),
    ),
  };
}

async function lookAtServer(server: RedisServer): Promise<ServerLook> {
  return { name: server.name, settings: await readRedisSettings(server).catch(() => null) };
}

function furthestOff(readings: readonly (ClockReading | null)[]): ClockReading | null {
  const off = ({ theirsMs, sentAtMs, answeredAtMs }: ClockReading): number =>
    Math.abs((sentAtMs + answeredAtMs) / 2 - theirsMs);
  return readings.filter((reading) => reading !== null).toSorted((a, b) => off(b) - off(a))[0] ?? null;
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

async function readClock({ client }: RedisServer): Promise<ClockReading> {
  const sentAtMs = Date.now();
  const [seconds, micros] = (await client.time()).map(Number);
  const answeredAtMs = Date.now();
  if (seconds === undefined || micros === undefined) throw new TypeError('TIME answers with two numbers');
  return { theirsMs: seconds * 1000 + micros / 1000, sentAtMs, answeredAtMs };
}

/** Rejects with what Redis refused. */
async function tryOut(link: RedisLink): Promise<void> {
  const id = randomUUID();
  const channel = channelName('doctor', id);
  await subscriberUp(link);
  const heard = Promise.withResolvers<void>();
  // On a Cluster at each of its nodes.
  const keys = link.kind === 'cluster' ? trialKeys(id) : trialKeys(id).slice(0, 1);
  let awaited = keys.length;
  const end = await link.subscriber.subscribe(channel, () => {
    awaited -= 1;
    if (awaited === 0) heard.resolve();
  });
  try {
    await Promise.all(keys.map((key) => runScript(link, TRIAL, { keys: [key], args: [channel, TRIAL_TTL_MS] })));
    await within(heard.promise, 'a message that was published did not arrive');
  } finally {
    end();
  }
}

async function subscriberUp({ subscriber }: RedisLink): Promise<void> {
  if (subscriber.isUp()) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = subscriber.onUp(resolve);
  await within(promise, 'the connection for messages does not come up').finally(end);
}

async function within(awaited: Promise<void>, otherwise: string): Promise<void> {
  const ending = new AbortController();
  const late = async (): Promise<never> => {
    await sleep(MESSAGE_WITHIN_MS, undefined, { signal: ending.signal });
    throw new Error(otherwise);
  };
  try {
    await Promise.race([awaited, late()]);
  } finally {
    ending.abort();
  }
}
