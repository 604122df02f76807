/**
 * Leases in the cache Redis, each beside the entry that it is about, in the same slot. A lease is a random token under a
 * name that expires; every script first checks that the token is still there, so a process that was paused past its lease
 * can neither store nor end anything.
 */
import type { RedisLink } from '../../redis/connection.ts';
import { defineScript, type RedisScript, runScript, type ScriptArgument } from '../../redis/script.ts';
import type { Timers } from '../../time/timers.ts';
import { redisSpan } from '../../tracing/spans.ts';
import type { Completed, Completion, FlightFailure, Lease } from '../shared-cache.ts';
import type { TtlPolicy } from '../ttl-policy.ts';
import type { RedisBudget } from './budget.ts';
import { encodeEntry, ENTRY_LUA } from './entry-format.ts';
import type { FlightChannel } from './flight-channel.ts';

/** The names of everything that belongs to one key, for one set of workspaces. All are in one slot. */
export interface KeyNames {
  readonly entry: string;
  readonly negative: string;
  /** Held by the process that asks the store. */
  readonly lease: string;
  /** How the last call failed. */
  readonly failure: string;
}

export interface LeaseOptions {
  readonly cache: RedisLink;
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  readonly timers: Timers;
  /** How long a lease holds without being renewed. */
  readonly leaseMs: number;
  /** While it is exceeded, no new entry is stored; negative entries are. */
  readonly budget: Pick<RedisBudget, 'isOver'>;
}

interface LeaseParts extends LeaseOptions {
  readonly channel: FlightChannel;
  readonly key: string;
  /** The workspaces of the reader for whom it was acquired. */
  readonly workspaceSet: string;
  readonly names: KeyNames;
  readonly token: string;
}

/** For so long after a failure nobody of the same workspaces asks again. */
export const REMEMBER_FAILURE_MS = 1000;
/** Renewals are so far apart, as a part of the lease, that one that is lost is no lost lease. */
const RENEW_AFTER = 0.3;

/**
 * KEYS: lease, failure, entry, negative entry. ARGV: token, how long it holds, when the process's copy was requested, then the
 * tags of the reader's workspaces. Returns the failure, or how long another's lease still holds, or what is there: the
 * entry only if it is newer than that copy, and a record only if it is of one of the workspaces.
 */
export const ACQUIRE = defineScript(
  'acquireLease',
  `${ENTRY_LUA}
local failure = redis.call('GET', KEYS[2])
if failure then return failure end
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return math.max(1, redis.call('PTTL', KEYS[1])) end
local entry, present = {false, false}, read(KEYS[3])
if present and isVisible(present, 4) and (ARGV[3] == '' or present.filledAtMs > tonumber(ARGV[3])) then
  entry = redis.call('HMGET', KEYS[3], 'meta', 'body')
end
return {entry[1], entry[2], false, negativeOf(KEYS[4])}
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
 * KEYS: lease, entry, negative entry. ARGV: token, channel, message, then meta, body and how long it is kept, of the entry
 * and of the negative entry; an empty meta for none. An entry that a page has backfilled meanwhile stays if its fetch
 * began later than this one and knew of as many purges. ARGV[10]: empty, or the message instead if an entry was to be
 * stored and there is none to replace; then it is not stored (2).
 */
const COMPLETE = defineScript(
  'completeLease',
  `${ENTRY_LUA}
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
local present = ARGV[4] ~= '' and read(KEYS[2])
local isLeftOut = ARGV[4] ~= '' and ARGV[10] ~= '' and not present
redis.call('PUBLISH', ARGV[2], isLeftOut and ARGV[10] or ARGV[3])
if ARGV[4] ~= '' and not isLeftOut then
  local new = cjson.decode(ARGV[4])
  local isOvertaken = present and present.filledAtMs > new.filledAtMs
    and present.position.history == new.position.history and present.position.sequence >= new.position.sequence
  if isOvertaken then return 0 end
  write(KEYS[2], ARGV[4], ARGV[5], ARGV[6])
end
if ARGV[7] ~= '' then write(KEYS[3], ARGV[7], ARGV[8], ARGV[9]) end
return isLeftOut and 2 or 1
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

/** One that this process has. It is renewed until it ends. */
export class RedisLease implements Lease {
  readonly #parts: LeaseParts;
  #cancelRenewal: () => void = () => {};
  #hasEnded = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#renewLater();
  }

  async complete({ entry, negative }: Completed): Promise<Completion> {
    const { key, names, ttl, channel, budget } = this.#parts;
    const released = channel.message({ end: 'released', key });
    const message =
      entry === null ? released : channel.message({ end: 'stored', key, filledAtMs: entry.entry.requestedAtMs });
    // If it is not stored, the others must not drop their copies for it.
    const isNewLeftOut = budget.isOver && entry?.entry.answer.kind === 'found';
    const args = [
      message,
      ...(entry === null ? NO_ENTRY : await encodeEntry(key, entry, ttl)),
      ...(negative === null ? NO_ENTRY : await encodeEntry(key, negative, ttl)),
      isNewLeftOut ? released : '',
    ];
    const stored = this.#end(COMPLETE, [names.entry, names.negative], args);
    const reply = await redisSpan('cache', 'EVALSHA entry', stored);
    if (reply === 2) return 'unshared';
    return reply === 1 ? 'stored' : 'lost';
  }

  async fail(failure: FlightFailure, tookMs: number): Promise<void> {
    const { key, workspaceSet, names, channel } = this.#parts;
    const message = channel.message({ end: 'failed', key, failure, workspaceSet, tookMs });
    await this.#end(FAIL, [names.failure], [message, JSON.stringify(failure), REMEMBER_FAILURE_MS]);
  }

  async release(): Promise<void> {
    const { key, names, channel } = this.#parts;
    const args = [channel.message({ end: 'released', key }), ...NO_ENTRY, ...NO_ENTRY, ''];
    await this.#end(COMPLETE, [names.entry, names.negative], args);
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
