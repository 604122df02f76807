/**
 * The limits of all processes together, in Redis and by its clock (R1: limits are exact). All requests of one turn of the event
 * loop share a call.
 *
 * A log of admitted requests is a list of Unix microseconds in decimal, oldest first (`quotaLogKey`); it expires a minute or
 * two after its newest entry has left the hour. Releases that run side by side share these lists: a change of their form needs
 * a new key name.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import type { Clock } from '../time/clock.ts';
import type { RedisCommands } from '../redis/connection.ts';
import { replyCode } from '../redis/errors.ts';
import { quotaBucket, quotaLogKey, quotaMergeKey } from '../redis/names.ts';
import { OF_ONE_NAME } from '../redis/refusal.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { redisSpan } from '../tracing/spans.ts';
import type { QuotaDecision, QuotaLimiter, QuotaLimits, QuotaUsage } from './limiter.ts';
import { RejectionCache } from './rejection-cache.ts';
import { HOUR_MICROS, type LogSummary, MINUTE_MICROS, usageAfter } from './window-log.ts';

/** How long a merge may be sent again without being counted twice. */
const MARKER_MS = 5 * 60_000;

/**
 * Both scripts begin with it. A double holds whole microseconds until the year 2255; Lua would print one in 14 digits,
 * hence the format.
 */
const COMMON = `
local call = redis.call
local minuteLength, hourLength = ${MINUTE_MICROS}, ${HOUR_MICROS}
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local nowEntry = string.format('%.0f', now)

local log, length

local function at(index)
  return tonumber(call('LINDEX', log, index))
end

-- The first entry at or after "since" among those from "low" on and before "high": its index and itself; "high" and 0 if
-- there is none.
local function firstSince(since, low, high)
  local first = 0
  while low < high do
    local middle = math.floor((low + high) / 2)
    local entry = at(middle)
    if entry < since then low = middle + 1 else high, first = middle, entry end
  end
  return high, first
end

-- Returns the newest entry. If the clock went back, what is from the future counts as made now.
local function open(name)
  log, length = name, call('LLEN', name)
  local newest = length > 0 and at(length - 1) or 0
  if newest <= now then return newest end
  local future = firstSince(now + 1, 0, length)
  for index = future, length - 1 do call('LSET', log, index, nowEntry) end
  return now
end

local function expireLater()
  call('PEXPIRE', log, math.ceil((hourLength + minuteLength) / 1000) + 1)
end

-- Runs it for one log. Returns what it returns; or an error of our own code if the log itself is at fault, which holds
-- something else than times; or, beside it, any other error: Redis refuses what it would refuse for every log.
local function forOneLog(run, ...)
  local isDone, reply = pcall(run, ...)
  if isDone then return reply end
  local text = type(reply) == 'table' and reply.err or tostring(reply)
  local code = string.match(text, '^%-?(%u+) ')
  if code and code ~= 'WRONGTYPE' then return nil, {err = text} end
  return {err = '${OF_ONE_NAME} ' .. text}
end
`;

/**
 * Decides on requests as `SlidingWindowLog.consume` does: first come, first admitted, and a refused one is added nowhere.
 * KEYS: logs. ARGV: for each log the number of requests (0 for a look), the limit of the minute and that of the hour.
 * Returns for each log the fields of `LogSummary` before the requests, how many were admitted, and when there is room if
 * others were refused; or an error of the code `OF_ONE_NAME` for a log that cannot be decided on. Any other error is the
 * whole script's.
 *
 * Each command takes Redis a microsecond in which it answers nobody else. So the edge of the hour is looked for from the old
 * end, since few entries have left it, and that of the minute among as many as it may hold.
 */
const CONSUME = defineScript(
  'consumeQuota',
  `${COMMON}
local function consume(name, count, perMinute, perHour)
  local newest = open(name)
  local minuteStart, hourStart = now - minuteLength, now - hourLength
  local hourFirst, hourOldest = 0, length > 0 and at(0) or 0
  if length > 0 and hourOldest < hourStart then
    local low, high = 1, 2
    while high < length and at(high) < hourStart do low, high = high + 1, high * 4 end
    hourFirst, hourOldest = firstSince(hourStart, low, math.min(high + 1, length))
  end
  local minuteFirst, minuteOldest = hourFirst, hourOldest
  if hourFirst < length and hourOldest < minuteStart then
    local low, high = hourFirst + 1, length
    local edge = math.max(low, length - perMinute)
    if edge < length and at(edge) >= minuteStart then high = edge + 1 else low = math.min(edge + 1, length) end
    minuteFirst, minuteOldest = firstSince(minuteStart, low, high)
  end
  local minuteUsed, hourUsed = length - minuteFirst, length - hourFirst

  local admitted = math.max(0, math.min(count, perMinute - minuteUsed, perHour - hourUsed))
  for _ = 1, admitted do call('RPUSH', log, nowEntry) end
  local retryAt = 0
  if admitted < count then
    local used = length + admitted
    if minuteUsed + admitted >= perMinute then retryAt = at(used - perMinute) + minuteLength + 1 end
    if hourUsed + admitted >= perHour then retryAt = math.max(retryAt, at(used - perHour) + hourLength + 1) end
  end
  if admitted > 0 then
    if hourFirst > 0 then call('LTRIM', log, hourFirst, -1) end
    -- Once a minute is enough.
    if math.floor(newest / minuteLength) ~= math.floor(now / minuteLength) then expireLater() end
  end
  return {now, newest, minuteUsed, minuteOldest, hourUsed, hourOldest, admitted, retryAt}
end

local replies = {}
for i, name in ipairs(KEYS) do
  local count, perMinute, perHour = tonumber(ARGV[3 * i - 2]), tonumber(ARGV[3 * i - 1]), tonumber(ARGV[3 * i])
  local reply, refusal = forOneLog(consume, name, count, perMinute, perHour)
  if refusal then return refusal end
  replies[i] = reply
end
return replies
`,
);

/**
 * Adds requests that a process admitted while it could not ask Redis, each at its time. KEYS: the log, the marker of that
 * process. ARGV: the number of the merge, which grows, then pairs of time and count in order. The marker holds the number
 * of the last merge, so that one that is sent again is counted once. The log stays in order: its entries after the first
 * new one are taken off and put back among the new ones. A time ahead of Redis's clock counts as now.
 */
const MERGE = defineScript(
  'mergeQuota',
  `${COMMON}
local function merge(name, marker)
  if tonumber(call('GET', marker) or 0) >= tonumber(ARGV[1]) then return end
  -- Fails for a log that is none, before the merge counts as done.
  open(name)
  call('SET', marker, ARGV[1], 'PX', ${MARKER_MS})

  local added = {}
  for i = 2, #ARGV, 2 do
    local at = math.min(tonumber(ARGV[i]), now)
    if at >= now - hourLength then
      for _ = 1, tonumber(ARGV[i + 1]) do added[#added + 1] = at end
    end
  end
  if #added == 0 then return end

  local first = firstSince(added[1] + 1, 0, length)
  local after = call('LRANGE', log, first, -1)
  if first == 0 then call('DEL', log) else call('LTRIM', log, 0, first - 1) end

  local entries, next = {}, 1
  for _, at in ipairs(added) do
    while after[next] and tonumber(after[next]) <= at do
      entries[#entries + 1] = after[next]
      next = next + 1
    end
    entries[#entries + 1] = string.format('%.0f', at)
  end
  for rest = next, #after do entries[#entries + 1] = after[rest] end
  -- In parts: Lua's stack is bounded.
  for from = 1, #entries, 1000 do
    call('RPUSH', log, unpack(entries, from, math.min(from + 999, #entries)))
  end
  expireLater()
end

local reply, refusal = forOneLog(merge, KEYS[1], KEYS[2])
return refusal or reply
`,
);

const SPAN = 'EVALSHA quota';
/** Logs per call: each takes Redis some 20 µs, in which it answers nobody else. */
const MAX_LOGS = 64;

interface Waiter {
  readonly resolve: (decision: QuotaDecision) => void;
  readonly reject: (reason: unknown) => void;
}

/** Requests of one quota with the same limits. */
interface Batch {
  readonly quotaId: string;
  readonly limits: QuotaLimits;
  readonly waiters: Waiter[];
}

/** The script's finding in a log before the requests, and its decision. */
interface Reply extends LogSummary {
  readonly admitted: number;
  readonly retryAtMicros: number;
}

/** Requests admitted while Redis could not be asked: pairs of time in Unix microseconds and count, oldest first. */
export type Admissions = readonly (readonly [timeMicros: number, count: number])[];

/** The log of one quota holds something else than times, and nothing can be decided by it. Redis decides on all others. */
export class UndecidableLogError extends Error {
  override readonly name = 'UndecidableLogError';
  /** Its name in Redis. */
  readonly log: string;

  constructor(quotaId: string, cause: unknown) {
    super(`Redis cannot decide by the log of a quota (${replyCode(cause) ?? 'no reply'})`, { cause });
    this.log = quotaLogKey(quotaId);
  }
}

interface RedisLimiterOptions {
  readonly redis: RedisCommands;
  readonly clock: Clock;
  readonly onForgotten: (quotaId: string) => void;
}

/** Quotas whose last requests are remembered, to notice that Redis has lost them. */
const MAX_REMEMBERED = 10_000;
/** A failover loses the last writes; more than that is a log that was evicted, deleted or restored. */
const LOST_MICROS = 10_000_000;

/**
 * Rejects if Redis does not answer within its timeout, or cannot decide; the request may then be counted or not. With
 * UndecidableLogError only that quota is concerned.
 */
export class RedisLimiter implements QuotaLimiter {
  readonly #redis: RedisCommands;
  /** Measures how long ago a reply came; the windows go by Redis's clock. */
  readonly #clock: Clock;
  /** Refusals that hold without asking Redis. */
  readonly rejections: RejectionCache;
  #batches = new Map<string, Batch>();
  /** When Redis last admitted requests of this process, by its clock. */
  readonly #admittedMicros = new LRUCache<string, number>(atMost(MAX_REMEMBERED));
  readonly #onForgotten: (quotaId: string) => void;

  /** `onForgotten` is called for a quota whose log has lost requests of the last hour. */
  constructor({ redis, clock, onForgotten }: RedisLimiterOptions) {
    this.#redis = redis;
    this.#clock = clock;
    this.#onForgotten = onForgotten;
    this.rejections = new RejectionCache(clock);
  }

  consume(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision> {
    const rejection = this.rejections.get(quotaId, limits);
    if (rejection !== null) return Promise.resolve(rejection);
    const { promise, ...waiter } = Promise.withResolvers<QuotaDecision>();
    // Requests of many connections are read in one turn, one after the other: they are sent after the last of them. No
    // call waits for the end of an earlier one, so that a request waits for Redis once (R6: in all, for a bounded time).
    if (this.#batches.size === 0) setImmediate(() => this.#send());
    const key = `${limits.perMinute} ${limits.perHour} ${quotaId}`;
    const batch = this.#batches.get(key);
    if (batch === undefined) this.#batches.set(key, { quotaId, limits, waiters: [waiter] });
    else batch.waiters.push(waiter);
    return redisSpan('state', SPAN, promise);
  }

  async usage(quotaId: string, limits: QuotaLimits): Promise<QuotaUsage> {
    const rejection = this.rejections.get(quotaId, limits);
    if (rejection !== null) return rejection;
    const [reply] = await redisSpan('state', SPAN, this.#run([{ quotaId, limits, waiters: [] }]));
    if (reply === undefined || reply instanceof Error) throw reply ?? unexpected(reply);
    return usageAfter(0, reply, limits);
  }

  /**
   * Adds admissions to a log. If it rejects, it may be done again with the same number: it counts once, for some minutes.
   * Numbers grow per process, and a quota has one merge under way at a time.
   */
  async merge(quotaId: string, processId: string, mergeNumber: number, admissions: Admissions): Promise<void> {
    const keys = [quotaLogKey(quotaId), quotaMergeKey(quotaId, processId)];
    try {
      await runScript(this.#redis, MERGE, { keys, args: [mergeNumber, ...admissions.flat()] });
    } catch (error) {
      throw asOwnError(quotaId, error);
    }
  }

  #send(): void {
    const batches = [...this.#batches.values()];
    this.#batches = new Map();
    // On a Cluster only logs of one slot can be in one call.
    const groups =
      this.#redis.kind === 'cluster' ? Map.groupBy(batches, ({ quotaId }) => quotaBucket(quotaId)).values() : [batches];
    for (const group of groups) {
      for (let from = 0; from < group.length; from += MAX_LOGS) void this.#decide(group.slice(from, from + MAX_LOGS));
    }
  }

  /** Never rejects: the waiters' promises do. */
  async #decide(batches: readonly Batch[]): Promise<void> {
    const sentMicros = this.#clock.nowMicros();
    try {
      const replies = await this.#run(batches);
      const times = { sentMicros, receivedMicros: this.#clock.nowMicros() };
      for (const [index, { quotaId, limits, waiters }] of batches.entries()) {
        const reply = replies[index];
        if (reply === undefined || reply instanceof Error) {
          for (const { reject } of waiters) reject(reply);
          continue;
        }
        this.#compare(quotaId, reply);
        const decisions = waiters.map((_, nth) => decisionOf(nth, reply, limits));
        const last = decisions.at(-1);
        if (last !== undefined) this.rejections.set(quotaId, last, times);
        for (const [nth, decision] of decisions.entries()) waiters[nth]?.resolve(decision);
      }
    } catch (error) {
      for (const { waiters } of batches) for (const { reject } of waiters) reject(error);
    }
  }

  /** The log must hold what this process was admitted: it is told from it alone whether Redis has lost some. */
  #compare(quotaId: string, { nowMicros, newestMicros, admitted }: Reply): void {
    const lastMicros = this.#admittedMicros.get(quotaId) ?? 0;
    const isGone = newestMicros === 0 || lastMicros - newestMicros > LOST_MICROS;
    if (isGone && lastMicros > 0 && lastMicros <= nowMicros && nowMicros - lastMicros < HOUR_MICROS) {
      this.#onForgotten(quotaId);
    }
    if (admitted > 0) this.#admittedMicros.set(quotaId, nowMicros);
  }

  async #run(batches: readonly Batch[]): Promise<readonly (Reply | Error)[]> {
    const reply = await runScript(this.#redis, CONSUME, {
      keys: batches.map(({ quotaId }) => quotaLogKey(quotaId)),
      args: batches.flatMap(({ waiters, limits }) => [waiters.length, limits.perMinute, limits.perHour]),
    });
    if (!Array.isArray(reply) || reply.length !== batches.length) throw unexpected(reply);
    return reply.map((one, index) => {
      const parsed = parseReply(one);
      return parsed instanceof Error ? asOwnError(batches[index]?.quotaId ?? '', parsed) : parsed;
    });
  }
}

/** Only what a script reports of one log is that log's own: any other error is one of the whole script. */
function asOwnError(quotaId: string, error: unknown): Error {
  if (replyCode(error) === OF_ONE_NAME) return new UndecidableLogError(quotaId, error);
  return error instanceof Error ? error : new Error(String(error));
}

function decisionOf(nth: number, reply: Reply, limits: QuotaLimits): QuotaDecision {
  const admitted = nth < reply.admitted;
  const { nowMicros, minute, hour } = usageAfter(Math.min(nth + 1, reply.admitted), reply, limits);
  return { admitted, nowMicros, minute, hour, retryAtMicros: admitted ? null : reply.retryAtMicros };
}

function unexpected(reply: unknown): Error {
  return new Error(
    `The quota's script returned something else than it should: ${JSON.stringify(reply)?.slice(0, 200)}`,
  );
}

function parseReply(reply: unknown): Reply | Error {
  if (reply instanceof Error) return reply;
  if (!isIntegers(reply)) return unexpected(reply);
  const [nowMicros = 0, newestMicros = 0, minuteUsed = 0, minuteOldestMicros = 0, ...rest] = reply;
  const [hourUsed = 0, hourOldestMicros = 0, admitted = 0, retryAtMicros = 0] = rest;
  const log = { nowMicros, newestMicros, minuteUsed, minuteOldestMicros, hourUsed, hourOldestMicros };
  return { ...log, admitted, retryAtMicros };
}

function isIntegers(reply: unknown): reply is readonly number[] {
  return Array.isArray(reply) && reply.length === 8 && reply.every(Number.isSafeInteger);
}
