/**
 * Leases in the cache Redis, each beside the entry that it is about, in the same slot. A lease is a random token under a
 * name that expires; every script first asks whether the token still stands there, so a process that was paused past its
 * lease can neither store nor end anything.
 */
import { randomUUID } from 'node:crypto';
import type { CacheNames } from '../redis/names.ts';
import { defineScript, type RedisScript, runScript, runScriptForBytes } from '../redis/script.ts';
import type { RedisLink } from '../redis/connection.ts';
import type { Following, Lease, LeaseAttempt, Leases } from './ports.ts';
import { type BrokenEntryError, readEntry } from './redis-entry.ts';
import type { FlightChannel } from './redis-flight-channel.ts';
import { readFailure, writeFailure, writeFlightMessage } from './redis-flight-messages.ts';
import { ENTRY_LUA, entryArgs } from './redis-write.ts';
import type { TtlPolicy } from './ttl-policy.ts';

export interface RedisLeasesOptions {
  /** To the cache Redis. */
  readonly link: RedisLink;
  readonly channel: FlightChannel;
  readonly names: CacheNames;
  readonly times: Pick<TtlPolicy, 'of'>;
  /** This process, as the sender of its messages. */
  readonly self: string;
  /** How long a lease holds without being renewed. */
  readonly leaseMs: number;
  /** Told of what was found in the place of an entry and could not be read. It counts as nothing. */
  readonly onBroken: (error: BrokenEntryError) => void;
}

/** What lies beside an entry: who asks the store now, and how the last call failed. */
export const LEASE = 'lease';
export const FAILURE = 'failure';
/** For so long after a failure nobody asks again. */
const REMEMBER_FAILURE_MS = 1000;

/**
 * KEYS: lease, failure, entry. ARGV: token, how long it holds. Gives the failure, or how long another's lease holds still;
 * or 0, or the entry that is there already: another may have stored it since this process looked.
 */
const ACQUIRE = defineScript(
  'acquireLease',
  `
local failure = redis.call('GET', KEYS[2])
if failure then return failure end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  if redis.call('TYPE', KEYS[3]).ok ~= 'hash' then return 0 end
  return redis.call('HMGET', KEYS[3], 'meta', 'body')
end
return math.max(1, redis.call('PTTL', KEYS[1]))
`,
);

/** KEYS: lease. ARGV: token, how long it holds from now. */
const RENEW = defineScript(
  'renewLease',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`,
);

/**
 * KEYS: lease, entry. ARGV: token, channel, message, then meta, body and how long they are kept. What a page has seeded
 * meanwhile stays where its fetch began later than this one and knew of as many purges.
 */
const COMPLETE = defineScript(
  'completeLease',
  `${ENTRY_LUA}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
local present, new = read(KEYS[2]), cjson.decode(ARGV[4])
local isOvertaken = present and present.filledAtMs > new.filledAtMs
  and present.position.history == new.position.history and present.position.sequence >= new.position.sequence
if not isOvertaken then write(KEYS[2], ARGV[4], ARGV[5], ARGV[6]) end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return isOvertaken and 0 or 1
`,
);

/** KEYS: lease, failure. ARGV: token, channel, message, failure, how long it is remembered. */
const FAIL = defineScript(
  'failLease',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
`,
);

/** KEYS: lease. ARGV: token, channel, message. */
const RELEASE = defineScript(
  'releaseLease',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
`,
);

/** The names of what belongs to one key. */
interface Places {
  readonly entry: string;
  readonly lease: string;
  readonly failure: string;
}

type ScriptArgs = readonly (string | number | Buffer)[];

export class RedisLeases implements Leases {
  readonly #options: RedisLeasesOptions;
  /** On which ends of flights are told. */
  readonly #channel: string;

  constructor(options: RedisLeasesOptions) {
    this.#options = options;
    this.#channel = options.names.flightsChannel(options.link.db);
  }

  async acquire(key: string): Promise<LeaseAttempt> {
    const token = randomUUID();
    const { link, names, leaseMs } = this.#options;
    const entry = names.of(key);
    const places = { entry, lease: names.beside(entry, LEASE), failure: names.beside(entry, FAILURE) };
    const call = { keys: [places.lease, places.failure, entry], args: [token, leaseMs] };
    const reply = await runScriptForBytes(link, ACQUIRE, call);
    if (reply === 0 || Array.isArray(reply)) {
      const stored = reply === 0 ? undefined : await readEntry(key, reply, this.#options.onBroken);
      return { kind: 'acquired', lease: this.#lease(key, token, places), stored };
    }
    const failure = Buffer.isBuffer(reply) ? readFailure(reply.toString()) : null;
    if (failure !== null) return { kind: 'failed', failure };
    if (typeof reply === 'number') this.#options.channel.expectLapse(key, reply);
    return { kind: 'taken' };
  }

  /** The channel is listened to all the time, so that there is nothing to wait for. */
  follow(key: string): Promise<Following> {
    return Promise.resolve(this.#options.channel.follow(key));
  }

  #lease(key: string, token: string, { entry, lease, failure: failed }: Places): Lease {
    const { times, self, leaseMs } = this.#options;
    const channel = this.#channel;
    return {
      renew: async () => (await this.#run(RENEW, [lease], [token, leaseMs])) === 1,
      complete: async (stored) => {
        const { filledAtMs } = stored.entry;
        const message = writeFlightMessage({ end: 'stored', sender: self, key, filledAtMs });
        const args = [token, channel, message, ...(await entryArgs(key, stored, times))];
        return (await this.#run(COMPLETE, [lease, entry], args)) === 1;
      },
      fail: async (failure) => {
        const message = writeFlightMessage({ end: 'failed', sender: self, key, failure });
        const args = [token, channel, message, writeFailure(failure), REMEMBER_FAILURE_MS];
        await this.#run(FAIL, [lease, failed], args);
      },
      release: async () => {
        const message = writeFlightMessage({ end: 'released', sender: self, key });
        await this.#run(RELEASE, [lease], [token, channel, message]);
      },
    };
  }

  #run(script: RedisScript, keys: readonly string[], args: ScriptArgs): Promise<unknown> {
    return runScript(this.#options.link, script, { keys, args });
  }
}
