/**
 * Tries out all that a gateway needs of a Redis, on a name of its own: each command that it sends, by a script as most are sent.
 * An access control list is checked command by command also within a script, so a gateway that only saw its connection stand
 * would serve without limits, or without messages.
 */
import { randomUUID } from 'node:crypto';
import { channelName, trialKeys } from './names.ts';
import type { Connection } from './open-connection.ts';
import { beforeDeadline } from './request-wait.ts';
import { type Refusing, refusalOf } from './refusal.ts';
import { defineScript, runOn } from './script.ts';
import type { ValueLimit } from './value-limit.ts';

/** A refusal that the trial does not find is over if nothing was refused for so long. */
const REFUSED_FOR_MS = 5000;
/** A right can be taken away, or a command renamed, while a connection stands: so often all is tried again. */
const AGAIN_EVERY_MS = 30_000;
/** Redis deletes the name if this process ends between writing and deleting it. */
const TRIAL_TTL_MS = 5000;
/** For each step: a new connection is not to be lost to a Redis that is just slow. */
const STEP_MS = 1000;

const BEGIN = `
local key, call = KEYS[1], redis.call
local time = call('TIME')
call('SET', key, time[1], 'PX', ${TRIAL_TTL_MS})
call('GET', key)
call('PTTL', key)
call('EXISTS', key)
call('DEL', key)
call('HSET', key, 'field', '1', 'body', '')
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('HGET', key, 'field')
call('HMGET', key, 'field', 'body')
`;

const END = `
call('DEL', key)
call('PUBLISH', ARGV[1], 'trial')
return 1
`;

const CACHE = `
call('HSTRLEN', key, 'body')
call('HGETALL', key)
call('HVALS', key)
call('HDEL', key, 'field')
call('TYPE', key)
call('PEXPIREAT', key, (time[1] + ${TRIAL_TTL_MS / 1000}) * 1000)
call('SCAN', 0, 'COUNT', 1)
call('UNLINK', key)
`;

const STATE = `
call('HGETALL', key)
call('HKEYS', key)
call('HSETNX', key, 'other', '1')
call('HLEN', key)
call('HEXISTS', key, 'field')
call('HINCRBY', key, 'field', 1)
call('HSETNX', key, 'other', '1')
call('HSCAN', key, 0)
call('HDEL', key, 'field')
call('DEL', key)
call('INCRBY', key, 1)
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('MGET', key)
call('DEL', key)
call('RPUSH', key, '1', '2')
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('LPUSH', key, '0')
call('LINDEX', key, 0)
call('LLEN', key)
call('LRANGE', key, 0, -1)
call('LSET', key, 0, '1')
call('LREM', key, 1, '2')
call('LTRIM', key, -1, -1)
call('RPOP', key)
call('ZADD', key, 1, 'member')
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('ZRANGE', key, 0, -1)
call('ZRANGEBYSCORE', key, 0, 1)
call('ZREMRANGEBYSCORE', key, 2, 3)
call('ZREMRANGEBYRANK', key, 5, 6)
call('ZREM', key, 'member')
call('XADD', key, '1-0', 'field', '1')
call('PEXPIRE', key, ${TRIAL_TTL_MS})
call('XTRIM', key, 'MAXLEN', '~', 10)
call('XRANGE', key, '-', '+')
call('XREVRANGE', key, '+', '-', 'COUNT', 1)
call('XREAD', 'STREAMS', key, '0')
call('XDEL', key, '1-0')
`;

function inTime(replies: readonly Promise<unknown>[]): Promise<unknown> {
  return beforeDeadline(Promise.all(replies), STEP_MS);
}

/** By what the Redis is used for. KEYS: a name of our own. ARGV: a channel. */
export const TRIALS = {
  state: defineScript('tryOutState', BEGIN + STATE + END),
  cache: defineScript('tryOutCache', BEGIN + CACHE + END),
} as const;

/** The trial of the connections of one link, and what Redis refused on them. */
export class Trial {
  readonly #redis: Refusing & { readonly role: keyof typeof TRIALS };
  readonly #values: ValueLimit;
  readonly #onChange: () => void;
  readonly #id = randomUUID();
  /** The connections on which all is done that a gateway needs, with when that was tried. */
  readonly #passedAtMs = new WeakMap<Connection, number>();
  /** The last refusal of Redis, and when it came; null once Redis does it. */
  #refused: { readonly error: Error; readonly atMs: number } | null = null;

  /** `onChange` is called when what is refused may have changed. */
  constructor(redis: Refusing & { readonly role: keyof typeof TRIALS }, values: ValueLimit, onChange: () => void) {
    this.#redis = redis;
    this.#values = values;
    this.#onChange = onChange;
  }

  /** The reply to what Redis refused last; null once it does it. */
  get refused(): Error | null {
    return this.#refused?.error ?? null;
  }

  isPassed(connection: Connection): boolean {
    return this.#passedAtMs.has(connection);
  }

  /** Whether it is time to try again. */
  isDue(connection: Connection): boolean {
    return performance.now() - (this.#passedAtMs.get(connection) ?? Number.NEGATIVE_INFINITY) >= AGAIN_EVERY_MS;
  }

  /** A command was refused on that connection: the next probe tries all of them. */
  note(error: Error, connection: Connection): void {
    if (refusalOf(error, this.#redis) === null) return;
    this.#passedAtMs.delete(connection);
    this.#refused = { error, atMs: performance.now() };
    this.#onChange();
  }

  /**
   * Tries out on a new connection what a gateway needs, again after each refusal until all is done, and every half minute. A
   * Redis that is full or read-only still answers. Rejects for any other refusal.
   */
  async run(connection: Connection): Promise<void> {
    if (!this.isDue(connection) && this.#refused === null) return;
    const { role, kind } = this.#redis;
    const script = TRIALS[role];
    const keys = trialKeys(this.#id);
    // In a Cluster at each primary. A single server that is a node of one has only some of the names.
    const tried = kind === 'cluster' ? keys : keys.slice(0, 1);
    const args = [channelName('trial', this.#id)];
    const { client } = connection;
    try {
      await inTime(keys.map((key) => client.exists(key)));
      // ioredis sends the text of a script first, and its digest later: each is a command of its own.
      for (const _ of ['EVAL', 'EVALSHA']) {
        await inTime(tried.map((key) => runOn(client, script, { keys: [key], args })));
      }
    } catch (error) {
      this.#passedAtMs.delete(connection);
      // A refusal that the trial itself finds is over as soon as it finds it no more.
      if (this.#refused !== null) this.#refused = { ...this.#refused, atMs: Number.NEGATIVE_INFINITY };
      const refusal = refusalOf(error, this.#redis);
      if (!(error instanceof Error) || (refusal?.kind !== 'full' && refusal?.kind !== 'read-only')) throw error;
      this.#refused = { error, atMs: Number.NEGATIVE_INFINITY };
      this.#onChange();
      return;
    }
    this.#passedAtMs.set(connection, performance.now());
    void this.#values.read(connection.servers());
    const isForbidden = refusalOf(this.refused, this.#redis)?.kind === 'forbidden';
    const isShown = isForbidden && performance.now() - (this.#refused?.atMs ?? 0) < REFUSED_FOR_MS;
    if (!isShown) this.#refused = null;
    this.#onChange();
  }
}
