/** Asks a Redis all that the doctor wants to know, and tries what a gateway does there. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { channelName, taggedKey } from '../../redis/keys.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import type { RedisSettings } from '../../redis/faults.ts';
import { readRedisSettings } from '../../redis/settings.ts';
import type { RedisLink } from '../../redis/link.ts';
import { redisReason } from '../redis.ts';

export interface ClockReading {
  /** Unix milliseconds: by its clock, and by ours before it was asked and after it answered. */
  readonly theirsMs: number;
  readonly sentAtMs: number;
  readonly answeredAtMs: number;
}

export interface RedisLook {
  /** Median of the pings. */
  readonly latencyMs: number;
  /** Null where it does not tell. */
  readonly settings: RedisSettings | null;
  /** Null where it does not tell. */
  readonly clock: ClockReading | null;
  /** Why a gateway could not work there; null where it could. */
  readonly refusal: string | null;
}

export const PINGS = 11;
/** The name is gone by itself should this process end between writing and deleting it. */
const TRIAL_TTL_MS = 5000;
const MESSAGE_WITHIN_MS = 2000;

/** KEYS: a name of our own. ARGV: a channel, and how long the name lives at most. What a gateway's scripts do, in little. */
const TRIAL = defineScript(`
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
`);

/** `link` is up. Rejects where Redis stops answering. */
export async function lookAtRedis(link: RedisLink): Promise<RedisLook> {
  return {
    latencyMs: await medianPingMs(link),
    settings: await readRedisSettings(link).catch(() => null),
    clock: await readClock(link).catch(() => null),
    // Last, since a refused write may cost the connection.
    refusal: await tryOut(link).then(
      () => null,
      (error: unknown) => redisReason(error),
    ),
  };
}

async function medianPingMs({ client }: RedisLink): Promise<number> {
  const took: number[] = [];
  for (let ping = 0; ping < PINGS; ping += 1) {
    const sentAtMs = performance.now();
    await client.ping();
    took.push(performance.now() - sentAtMs);
  }
  return took.toSorted((a, b) => a - b)[Math.floor(PINGS / 2)] ?? 0;
}

async function readClock({ client }: RedisLink): Promise<ClockReading> {
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
  const end = await link.subscriber.subscribe(channel, () => heard.resolve());
  try {
    await runScript(link.client, TRIAL, { keys: [taggedKey(`doctor-${id}`, 'trial')], args: [channel, TRIAL_TTL_MS] });
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
