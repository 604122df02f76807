/**
 * Leases in the cache Redis, each beside the copies that it is about, in the same slot. A lease is a random token under a
 * name that expires; every script first checks that the token is still there, so a process that was paused past its lease
 * can neither store nor end anything.
 *
 * At most one call is under way for a key and a set of workspaces, unless
 * - the holder is paused, or cut off from Redis, past its lease (2 s): one further call; the late answer is stored nowhere
 * - Redis loses the lease (a failover, an eviction): one further call, as above
 * - Redis does not answer a process: that process calls for itself, and keeps the answer in its own memory
 * - another release runs beside this one over the same Redis: 0.3 names its leases differently
 */
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheKeyNames } from '../../redis/names.ts';
import { defineScript, type RedisScript, runScript, type ScriptArgument } from '../../redis/script.ts';
import { largestOf } from '../../redis/value-limit.ts';
import type { Timers } from '../../time/timers.ts';
import { redisSpan } from '../../tracing/spans.ts';
import type { ResourceKind } from '../../upstream/resources.ts';
import { isStoreErrorKind, type StoreErrorKind } from '../../upstream/store-error.ts';
import { ownersIn, type WorkspaceSet } from '../address.ts';
import type { StoredEntry } from '../entry.ts';
import { LATE_MS } from '../purge-log.ts';
import type { Completion, CompletionStatus, FlightFailure, Lease } from '../shared-cache.ts';
import type { TtlPolicy } from '../ttl-policy.ts';
import type { NewCopy, RedisBudget } from './budget.ts';
import type { RecordCipher } from './encryption.ts';
import { encodeEntry, ENTRY_LUA, FILING_LUA, HAS_COPY } from './entry-format.ts';
import type { FlightChannel } from './flight-channel.ts';

export interface LeaseOptions {
  readonly cache: RedisLink;
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  readonly cipher: RecordCipher;
  readonly timers: Timers;
  /** How long a lease holds without being renewed. */
  readonly leaseMs: number;
  /** Says which copies are stored where there is none; negative entries always are. */
  readonly budget: Pick<RedisBudget, 'admit' | 'giveBack'>;
}

/** How a call failed, as JSON. */
export const failureSchema = z.object({
  kind: z.custom<StoreErrorKind>(isStoreErrorKind),
  message: z.string(),
  retryAfterMs: z.number().nullable(),
  status: z.int().nullable(),
  workspaceId: z.string().nullable().default(null),
}) satisfies z.ZodType<FlightFailure>;

interface LeaseParts extends LeaseOptions {
  readonly channel: FlightChannel;
  readonly kind: ResourceKind;
  readonly key: string;
  readonly set: WorkspaceSet;
  /** The API key that reads. */
  readonly holder: string;
  readonly keyNames: CacheKeyNames;
  readonly token: string;
}

/** For so long after a failure nobody of the same set asks again. */
const REMEMBER_FAILURE_MS = 1000;
/** Renewals are so far apart, as a part of the lease, that losing one renewal does not lose the lease. */
const RENEW_AFTER = 0.3;

/**
 * KEYS: lease, failure, negative entry, the key's owners, the copies of the set's owners. ARGV: token (empty if no lease is
 * wanted), how long it holds, when the newest answer was requested that the process has seen (empty for none), the set's
 * owners. Returns the first of these that there is:
 * 1. the newest answer that is newer than that, as [meta, body, the mark of a change, when it was requested, the place of its
 *    owner (0: it is the negative entry)]: the process has to judge it before it asks again. An answer from the future is only
 *    news to a process that has seen none (C9: it beats no other)
 * 2. the failure
 * 3. how long another's lease still holds
 * 4. the lease, as 'OK'; nothing if none is wanted
 */
export const LOOK = defineScript(
  'lookOrLease',
  `${ENTRY_LUA}${FILING_LUA}
local seenAtMs, names = tonumber(ARGV[3]), {unpack(ARGV, 4)}
local listed = listedIn(KEYS[4], names)
local newest, newestAtMs, place
local function consider(key, own)
  local entry = read(key)
  if not entry or seenAtMs and entry.requestedAtMs <= seenAtMs then return end
  local isFuture = isFromFuture(entry.requestedAtMs)
  if isFuture and seenAtMs then return end
  local atMs = isFuture and 0 or entry.requestedAtMs
  if not newest or atMs > newestAtMs then newest, newestAtMs, place = key, atMs, own end
end
for i = 1, #names do
  if listed[i] == '${HAS_COPY}' then consider(KEYS[4 + i], i) end
end
consider(KEYS[3], 0)
if newest then
  use(newest)
  local fields = redis.call('HMGET', newest, 'meta', 'body', 'changed')
  return {fields[1], fields[2], fields[3], asText(newestAtMs), place}
end
local failure = redis.call('GET', KEYS[2])
if failure then return failure end
if ARGV[1] == '' then return false end
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
const STORED = 1;
const UNSHARED = 2;
const OVERTAKEN = 3;
/** Stored where there was none. */
const ADDED = 4;
const STATUSES = ['lost', 'stored', 'unshared', 'overtaken', 'stored'] as const satisfies readonly CompletionStatus[];

/**
 * KEYS: lease, where the answer is filed, the key's owners, the copies of the set's owners. ARGV: token, channel, the message if
 * the answer is filed, the message if it is not, whether a copy may only replace another (1) or is not filed (2), how long
 * endings are remembered, the place of its owner (0: it is a negative entry), its meta, its body, how long it is kept, who
 * brings it, the set's owners. Returns the status, then the owners whose copies have ended.
 *
 * Calls for several sets may be under way at once, and a page may backfill the copy:
 * 1. This call begins.
 * 2. Another one begins later, and files its answer first, or ends the copy.
 * 3. This one completes. Its copy is older, and is not filed, if the other one knew of as many purges. A negative entry is
 *    filed all the same: nobody else writes that of its set, and an id that the store does not have must leave what a foreign
 *    record leaves (K7a: nobody can tell them apart).
 */
const COMPLETE = defineScript(
  'completeLease',
  `${ENTRY_LUA}${FILING_LUA}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {${LOST}} end
redis.call('DEL', KEYS[1])
local names, copies = {unpack(ARGV, 12)}, {unpack(KEYS, 4)}
local listed, own, new = listedIn(KEYS[3], names), tonumber(ARGV[7]), cjson.decode(ARGV[8])
local answer = {atMs = new.requestedAtMs, lateMs = ARGV[6], isShort = ARGV[5] == '1'}
local function isSpared(present)
  return present.requestedAtMs > answer.atMs and not isFromFuture(present.requestedAtMs)
end
local status, present = ${STORED}, nil
if own > 0 then
  present = listed[own] == '${HAS_COPY}' and read(KEYS[2])
  local isOvertaken = present and isSpared(present) and present.position.history == new.position.history
    and present.position.sequence >= new.position.sequence
  if isOvertaken or isEnded(listed[own], answer.atMs) then status = ${OVERTAKEN}
  elseif ARGV[5] == '2' or ARGV[5] == '1' and not present then status = ${UNSHARED} end
end
if status == ${STORED} then write(KEYS[2], ARGV[8], ARGV[9], ARGV[10], ARGV[11]) end
if status == ${STORED} and own > 0 then list(KEYS[3], names[own], ARGV[10]) end
local ended = endOthers(KEYS[3], names, copies, listed, own, answer, isSpared)
redis.call('PUBLISH', ARGV[2], status == ${STORED} and ARGV[3] or ARGV[4])
if status == ${STORED} and own > 0 and not present then status = ${ADDED} end
return {status, unpack(ended)}
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

  /** An absent answer and a foreign record end alike here: the same message, and the same negative entry. */
  async complete(answer: StoredEntry): Promise<Completion> {
    const { kind, set, keyNames, channel, budget } = this.#parts;
    const owners = ownersIn(kind, set);
    const isFound = answer.entry.answer.kind === 'found';
    const name = (isFound ? keyNames.copy : keyNames.negative)(answer.owner);
    const completion = await this.#completion(answer, name, owners).catch(async (error: unknown) => {
      // An answer that cannot be written must not leave a lease that is renewed for ever.
      await this.release();
      throw error;
    });
    const keys = [name, keyNames.owners, ...owners.map(keyNames.copy)];
    const { copy, isAdmitted, args } = completion;
    const ending = this.#end(COMPLETE, keys, [channel.name, ...args]);
    const [status, ...ended] = completionSchema.parse(await redisSpan('cache', 'EVALSHA entry', ending));
    if (isAdmitted && status !== ADDED) budget.giveBack(copy);
    return { status: STATUSES[status] ?? 'lost', ended };
  }

  async fail(failure: FlightFailure): Promise<void> {
    await this.#endWithoutAnswer(JSON.stringify(failure));
  }

  async release(): Promise<void> {
    await this.#endWithoutAnswer('');
  }

  /** What is to be stored, and the arguments that say so. */
  async #completion(
    answer: StoredEntry,
    name: string,
    owners: readonly string[],
  ): Promise<{ readonly copy: NewCopy; readonly isAdmitted: boolean; readonly args: readonly ScriptArgument[] }> {
    const { key, set, holder, cache, cipher, ttl, channel, budget } = this.#parts;
    const { owner, entry } = answer;
    const isFound = entry.answer.kind === 'found';
    const [meta, body, keepMs] = await encodeEntry({ key, owner, name, cipher }, answer, ttl);
    const isTooLarge = !cache.values.takes(largestOf([body]));
    const filed = isFound ? { owner, requestedAtMs: entry.requestedAtMs } : null;
    const copy = { holder, bytes: meta.length + body.length, isBackfill: false };
    const isAdmitted = isFound && !isTooLarge && budget.admit(copy);
    const args = [
      channel.message({ key, set: set.name, filed }),
      // If the copy is not filed, the others must not drop theirs for it.
      channel.message({ key, set: set.name, filed: null }),
      isTooLarge ? 2 : Number(isFound && !isAdmitted),
      LATE_MS,
      isFound ? owners.indexOf(owner) + 1 : 0,
      meta,
      isTooLarge ? '' : body,
      keepMs,
      holder,
      ...owners,
    ];
    return { copy, isAdmitted, args };
  }

  async #endWithoutAnswer(failure: string): Promise<void> {
    const { key, set, keyNames, channel } = this.#parts;
    const message = channel.message({ key, set: set.name, filed: null });
    await this.#end(END, [keyNames.failure(set.name)], [channel.name, message, failure, REMEMBER_FAILURE_MS]);
  }

  #end(script: RedisScript, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    this.#hasEnded = true;
    this.#cancelRenewal();
    const { cache, keyNames, set, token } = this.#parts;
    return runScript(cache, script, { keys: [keyNames.lease(set.name), ...keys], args: [token, ...args] });
  }

  #renewLater(): void {
    const { timers, leaseMs } = this.#parts;
    this.#cancelRenewal = timers.after(leaseMs * RENEW_AFTER, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { cache, keyNames, set, token, leaseMs } = this.#parts;
    const call = { keys: [keyNames.lease(set.name)], args: [token, leaseMs] };
    // If Redis can't be asked, the next renewal may still come in time.
    const isHeld = await runScript(cache, RENEW, call).then(
      (reply) => reply === 1,
      () => true,
    );
    if (isHeld && !this.#hasEnded) this.#renewLater();
  }
}

const completionSchema = z.tuple([z.int()], z.string());
