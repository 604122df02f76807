/**
 * Leases in the cache Redis, each beside the entry that it is about, in the same slot. A lease is a random token under a
 * name that expires; every script first checks that the token is still there, so a process that was paused past its lease
 * can neither store nor end anything.
 *
 * At most one call is under way for a key and an audience, unless
 * - the holder is paused, or cut off from Redis, past its lease (2 s): one further call; the late answer is stored nowhere
 * - Redis loses the lease (a failover, an eviction): one further call, as above
 * - Redis does not answer a process: that process calls for itself, and keeps the answer in its own memory
 * - another release runs beside this one over the same Redis: 0.2 names its leases differently
 */
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import { defineScript, type RedisScript, runScript, type ScriptArgument } from '../../redis/script.ts';
import { largestOf } from '../../redis/value-limit.ts';
import type { Timers } from '../../time/timers.ts';
import { redisSpan } from '../../tracing/spans.ts';
import { isStoreErrorKind, type StoreErrorKind } from '../../upstream/store-error.ts';
import { workspaceIn } from '../entry.ts';
import type { Tag } from '../purge-log.ts';
import type { Completed, Completion, FlightFailure, Lease } from '../shared-cache.ts';
import type { TtlPolicy } from '../ttl-policy.ts';
import type { RedisBudget } from './budget.ts';
import type { RecordCipher } from './encryption.ts';
import { encodeEntry, ENTRY_LUA } from './entry-format.ts';
import type { FlightChannel } from './flight-channel.ts';

export interface LeaseOptions {
  readonly cache: RedisLink;
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  readonly cipher: RecordCipher;
  readonly timers: Timers;
  /** How long a lease holds without being renewed. */
  readonly leaseMs: number;
  /** While it is exceeded, no new entry is stored; negative entries are. */
  readonly budget: Pick<RedisBudget, 'isOver'>;
}

/** How a call failed, as JSON. */
export const failureSchema = z.object({
  kind: z.custom<StoreErrorKind>(isStoreErrorKind),
  message: z.string(),
  retryAfterMs: z.number().nullable(),
  status: z.int().nullable(),
  workspaceId: z.string().nullable().default(null),
}) satisfies z.ZodType<FlightFailure>;

/** The names of what one call reads and writes. All are in one slot. */
export interface CallNames {
  readonly entry: string;
  readonly negative: string;
  readonly lease: string;
  readonly failure: string;
}

interface LeaseParts extends LeaseOptions {
  readonly channel: FlightChannel;
  readonly key: string;
  readonly audience: string;
  readonly names: CallNames;
  readonly token: string;
  /** Of the copies that the reader may see. */
  readonly workspaceTags: readonly Tag[];
}

/** For so long after a failure nobody of the same audience asks again. */
const REMEMBER_FAILURE_MS = 1000;
/** Renewals are so far apart, as a part of the lease, that losing one renewal does not lose the lease. */
const RENEW_AFTER = 0.3;

/**
 * KEYS: lease, failure, entry, negative entry. ARGV: token, how long it holds, when the newest thing that the process has
 * seen was requested, then the tags of the reader's workspaces. Returns the first of these that there is:
 * 1. newer entries, as [meta, body, when the answer was requested that this reader may not see, meta of the negative
 *    entry, when the newest was requested]: the process has to judge them before it asks again
 * 2. the failure
 * 3. how long another's lease still holds
 * 4. the lease, as 'OK'
 */
export const ACQUIRE = defineScript(
  'acquireLease',
  `${ENTRY_LUA}
local seenMs = tonumber(ARGV[3]) or -1
local newestMs, reply = seenMs, {false, false, false, false}
local present, negative = read(KEYS[3]), read(KEYS[4])
if present and isVisible(present, 4) then
  if present.filledAtMs > seenMs and not isFromFuture(present) then
    local fields = redis.call('HMGET', KEYS[3], 'meta', 'body')
    newestMs, reply[1], reply[2] = present.filledAtMs, fields[1], fields[2]
  end
elseif present then
  reply[3] = timeOf(present)
end
if negative and negative.filledAtMs > seenMs and not isFromFuture(negative) then
  newestMs, reply[4] = math.max(newestMs, negative.filledAtMs), redis.call('HGET', KEYS[4], 'meta')
end
if newestMs > seenMs then
  reply[5] = string.format('%.0f', newestMs)
  return reply
end
local failure = redis.call('GET', KEYS[2])
if failure then return failure end
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 'OK' end
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

const LOST = 0;
const UNSHARED = 2;
const OVERTAKEN = 3;

/**
 * KEYS: lease, entry, negative entry. ARGV: token, channel, the message if all is stored, the message if the entry is not,
 * whether the entry may only be replaced (1), then meta, body and how long it is kept, of the entry and of the negative
 * entry; an empty meta for none; then the tags of the reader's workspaces.
 *
 * Calls for several audiences may be under way at once, and a page may backfill the entry:
 * 1. This call begins.
 * 2. Another one begins later, and stores its answer first.
 * 3. This one completes. Its entry is older, and is not stored, if the other one knew of as many purges. Its negative entry
 *    is stored all the same: nobody else writes that of its set, and an id that the store does not have must leave what a
 *    foreign record leaves (K7a: nobody can tell them apart).
 *
 * A negative entry alone is a foreign record's: it also ends an older copy that this set may see (C4: nothing outlives what
 * the store says), and takes its place, so that an older answer cannot come back.
 */
const COMPLETE = defineScript(
  'completeLease',
  `${ENTRY_LUA}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return ${LOST} end
redis.call('DEL', KEYS[1])
local result = 1
if ARGV[6] ~= '' then
  local new, present = cjson.decode(ARGV[6]), read(KEYS[2])
  local isOvertaken = present and present.filledAtMs > new.filledAtMs and not isFromFuture(present)
    and present.position.history == new.position.history and present.position.sequence >= new.position.sequence
  if isOvertaken then result = ${OVERTAKEN}
  elseif ARGV[5] == '1' and not present then result = ${UNSHARED}
  else write(KEYS[2], ARGV[6], ARGV[7], ARGV[8]) end
end
local isNews = result == 1
if ARGV[9] ~= '' then write(KEYS[3], ARGV[9], ARGV[10], ARGV[11]) end
if ARGV[6] == '' then
  isNews = false
  local present = read(KEYS[2])
  if present and isVisible(present, 12) and present.filledAtMs <= cjson.decode(ARGV[9]).filledAtMs then
    write(KEYS[2], ARGV[9], ARGV[10], ARGV[11])
    isNews = true
  end
end
redis.call('PUBLISH', ARGV[2], isNews and ARGV[3] or ARGV[4])
return result
`,
);

/** KEYS: lease, failure. ARGV: token, channel, message, failure (empty for none), how long it is remembered. */
const END = defineScript(
  'endLease',
  `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
if ARGV[4] ~= '' then redis.call('SET', KEYS[2], ARGV[4], 'PX', ARGV[5]) end
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
`,
);

/** One that this process has. It is renewed until it ends. */
export class RedisLease implements Lease {
  readonly #parts: LeaseParts;
  #cancelRenewal: () => void = () => {};
  #hasEnded = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#renewLater();
  }

  /**
   * An absent answer and a foreign record end alike here: the same message, and the same negative entry. Only an
   * absent answer replaces the entry (Q9: the store says that there is none), so only for it the other processes drop older
   * copies; those who have none notice nothing.
   */
  async complete(completed: Completed): Promise<Completion> {
    const { names, cache } = this.#parts;
    const args = await this.#completionArgs(completed).catch(async (error: unknown) => {
      // An answer that cannot be written must not leave a lease that is renewed for ever.
      await this.release();
      throw error;
    });
    if (!cache.values.takes(largestOf(args))) {
      await this.release();
      return 'unshared';
    }
    const reply = await redisSpan('cache', 'EVALSHA entry', this.#end(COMPLETE, [names.entry, names.negative], args));
    if (reply === LOST) return 'lost';
    if (reply === OVERTAKEN) return 'overtaken';
    return reply === UNSHARED ? 'unshared' : 'stored';
  }

  async fail(failure: FlightFailure): Promise<void> {
    await this.#endWithoutAnswer(JSON.stringify(failure));
  }

  async release(): Promise<void> {
    await this.#endWithoutAnswer('');
  }

  async #completionArgs({ entry, negative }: Completed): Promise<readonly ScriptArgument[]> {
    const { key, audience, names, cipher, ttl, channel, budget, workspaceTags } = this.#parts;
    const place = { key, name: names.entry, cipher };
    const filledAtMs = entry?.entry.requestedAtMs ?? negative?.entry.requestedAtMs ?? 0;
    const workspaceId = entry === null ? null : workspaceIn(entry);
    return [
      channel.message({ end: 'stored', key, audience, filledAtMs, workspaceId }),
      // If the entry is not stored, the others must not drop their copies for it.
      channel.message({ end: 'released', key, audience }),
      Number(budget.isOver && entry?.entry.answer.kind === 'found'),
      ...(entry === null ? NO_ENTRY : await encodeEntry(place, entry, ttl)),
      ...(negative === null ? NO_ENTRY : await encodeEntry(place, negative, ttl)),
      ...workspaceTags,
    ];
  }

  async #endWithoutAnswer(failure: string): Promise<void> {
    const { key, audience, names, channel } = this.#parts;
    const args = [channel.message({ end: 'released', key, audience }), failure, REMEMBER_FAILURE_MS];
    await this.#end(END, [names.failure], args);
  }

  #end(script: RedisScript, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    this.#hasEnded = true;
    this.#cancelRenewal();
    const { cache, names, token, channel } = this.#parts;
    return runScript(cache, script, { keys: [names.lease, ...keys], args: [token, channel.name, ...args] });
  }

  #renewLater(): void {
    const { timers, leaseMs } = this.#parts;
    this.#cancelRenewal = timers.after(leaseMs * RENEW_AFTER, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { cache, names, token, leaseMs } = this.#parts;
    const call = { keys: [names.lease], args: [token, leaseMs] };
    // If Redis can't be asked, the next renewal may still come in time.
    const isHeld = await runScript(cache, RENEW, call).then(
      (reply) => reply === 1,
      () => true,
    );
    if (isHeld && !this.#hasEnded) this.#renewLater();
  }
}

const NO_ENTRY = ['', '', 0] as const;
