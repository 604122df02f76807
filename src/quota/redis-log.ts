/**
 * The log of a quota's admitted requests in Redis, and the script that decides on it. It decides as `decide` does, by
 * Redis's own clock, for all requests of one call at once: first come, first admitted.
 */
import type { Redis } from 'ioredis';
import { quotaLogKey } from '../redis/keys.ts';
import { defineScript, runScript } from '../redis/script.ts';
import type { QuotaWindows } from './log.ts';
import type { QuotaLimits } from './quota.ts';

/** Requests that came one after another with the same limits. */
export interface RequestRun {
  readonly limits: QuotaLimits;
  readonly count: number;
}

/** A window before the first request of the call. */
export interface WindowUse {
  readonly used: number;
  /** Time of its oldest entry; null where it is empty. */
  readonly oldestMicros: number | null;
}

/** What became of one run: the first `admitted` were admitted, the rest refused. */
export interface RunOutcome {
  readonly admitted: number;
  /** For the refused ones, the first microsecond at which each window has room; null where it has some now. */
  readonly minuteRoomAtMicros: number | null;
  readonly hourRoomAtMicros: number | null;
}

/** What the script found and did. All times are Unix microseconds by Redis's clock. */
export interface LogReply {
  readonly nowMicros: number;
  readonly minute: WindowUse;
  readonly hour: WindowUse;
  /** Time of the newest entry before the call; null where the log was empty. */
  readonly newestMicros: number | null;
  readonly outcomes: readonly RunOutcome[];
  /**
   * Where the last request was refused: times of the oldest entries of each window, in order, as far as they leave it
   * before there is room, and one more; `MOST_LEAVING` at most. Of what is in the window after the call.
   */
  readonly leaving: { readonly minute: readonly number[]; readonly hour: readonly number[] } | null;
}

/** Most entries a window tells of with a refusal: beyond the default limit of a minute. */
export const MOST_LEAVING = 128;

/**
 * KEYS: the log. ARGV: lengths of the minute and the hour in microseconds, then count, limit of the minute and limit of
 * the hour of each run. A double holds whole microseconds until the year 2255; Lua would print one in 14 digits, hence
 * the format. Nothing changes where nothing is admitted.
 */
const TAKE = defineScript(`
local call, log = redis.call, KEYS[1]
local minuteLength, hourLength = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = call('TIME')
local now = time[1] * 1000000 + time[2]
local clock = now
local length = call('LLEN', log)
local newest = 0
if length > 0 then
  newest = tonumber(call('LINDEX', log, -1))
  if newest > now then now = newest end
end

local function at(index)
  return tonumber(call('LINDEX', log, index))
end
local function firstSince(since, low, high)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if at(middle) < since then low = middle + 1 else high = middle end
  end
  return low
end

local hourFirst, hourOldest = 0, 0
if length > 0 then
  hourOldest = at(0)
  if hourOldest < now - hourLength then
    hourFirst = firstSince(now - hourLength, 1, length)
    hourOldest = hourFirst < length and at(hourFirst) or 0
  end
end
local minuteFirst, minuteOldest = length, 0
if newest >= now - minuteLength and length > 0 then
  -- A minute hardly ever holds more than its limit, so the search begins there.
  local low, high = hourFirst, length - 1
  local guess = length - tonumber(ARGV[4])
  if guess > low then
    if at(guess - 1) < now - minuteLength then low = guess else high = guess - 1 end
  end
  minuteFirst = firstSince(now - minuteLength, low, high)
  minuteOldest = at(minuteFirst)
end

local minuteUsed, hourUsed = length - minuteFirst, length - hourFirst
local reply = {now, minuteUsed, minuteOldest, hourUsed, hourOldest, newest, {}, {}}
local entry = string.format('%.0f', now)
local isChanged, roomAt = false, 0
for run = 3, #ARGV, 3 do
  local count, perMinute, perHour = tonumber(ARGV[run]), tonumber(ARGV[run + 1]), tonumber(ARGV[run + 2])
  local admitted = math.max(0, math.min(count, perMinute - minuteUsed, perHour - hourUsed))
  if admitted == 1 then
    call('RPUSH', log, entry)
  elseif admitted > 1 then
    local entries = {}
    for i = 1, admitted do entries[i] = entry end
    call('RPUSH', log, unpack(entries))
  end
  if admitted > 0 then isChanged = true end
  length, minuteUsed, hourUsed = length + admitted, minuteUsed + admitted, hourUsed + admitted
  local minuteRoomAt, hourRoomAt = 0, 0
  if admitted < count then
    if minuteUsed >= perMinute then minuteRoomAt = at(length - perMinute) + minuteLength + 1 end
    if hourUsed >= perHour then hourRoomAt = at(length - perHour) + hourLength + 1 end
  end
  roomAt = math.max(minuteRoomAt, hourRoomAt)
  reply[#reply + 1] = admitted
  reply[#reply + 1] = minuteRoomAt
  reply[#reply + 1] = hourRoomAt
end

local function leaving(first, windowLength)
  local entries, before = {}, roomAt - 1 - windowLength
  -- In small steps: most often the first few are enough.
  for from = first, math.min(length, first + ${MOST_LEAVING}) - 1, 16 do
    for _, value in ipairs(call('LRANGE', log, from, from + 15)) do
      local entry = tonumber(value)
      entries[#entries + 1] = entry
      if entry >= before then return entries end
    end
  end
  return entries
end
if roomAt > 0 then
  reply[7] = leaving(minuteFirst, minuteLength)
  reply[8] = leaving(hourFirst, hourLength)
end
if isChanged then
  if hourFirst > 0 then call('LTRIM', log, hourFirst, -1) end
  call('PEXPIRE', log, math.ceil((now - clock + hourLength) / 1000) + 1)
end
return reply
`);

/** Most requests of one call: what fits on the stack of Lua's `unpack`, with room to spare. */
export const MOST_REQUESTS = 1000;

/** A reply of Redis that is not what the script returns. */
class UnexpectedReply extends Error {
  constructor(reply: unknown) {
    super(`The quota's script returned something else than it should: ${JSON.stringify(reply)?.slice(0, 200)}`);
    this.name = 'UnexpectedReply';
  }
}

function isTimes(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item));
}

function orNull(micros: number): number | null {
  return micros === 0 ? null : micros;
}

function parseReply(reply: unknown, runs: number): LogReply {
  if (!Array.isArray(reply)) throw new UnexpectedReply(reply);
  const values: readonly unknown[] = reply;
  const head = values.slice(0, 6);
  const [minuteLeaving, hourLeaving] = values.slice(6, 8);
  const tail = values.slice(8);
  if (!isTimes(head) || !isTimes(tail) || !isTimes(minuteLeaving) || !isTimes(hourLeaving)) {
    throw new UnexpectedReply(reply);
  }
  const [nowMicros, minuteUsed, minuteOldest, hourUsed, hourOldest, newest] = head;
  if (newest === undefined || tail.length !== runs * 3) throw new UnexpectedReply(reply);
  const outcomes = Array.from({ length: runs }, (_, run): RunOutcome => {
    const [admitted = 0, minuteRoomAt = 0, hourRoomAt = 0] = tail.slice(run * 3, run * 3 + 3);
    return { admitted, minuteRoomAtMicros: orNull(minuteRoomAt), hourRoomAtMicros: orNull(hourRoomAt) };
  });
  return {
    nowMicros: nowMicros ?? 0,
    minute: { used: minuteUsed ?? 0, oldestMicros: orNull(minuteOldest ?? 0) },
    hour: { used: hourUsed ?? 0, oldestMicros: orNull(hourOldest ?? 0) },
    newestMicros: orNull(newest),
    outcomes,
    leaving: hourLeaving.length === 0 ? null : { minute: minuteLeaving, hour: hourLeaving },
  };
}

/**
 * Decides on all requests of the runs, `MOST_REQUESTS` together at most. Sent once: where it rejects, it may have been
 * done or not.
 */
export async function takeFromLog(
  client: Redis,
  quotaId: string,
  runs: readonly RequestRun[],
  windows: QuotaWindows,
): Promise<LogReply> {
  const perRun = runs.flatMap(({ limits, count }) => [count, limits.perMinute, limits.perHour]);
  const args = [windows.minuteMicros, windows.hourMicros, ...perRun];
  return parseReply(await runScript(client, TAKE, { keys: [quotaLogKey(quotaId)], args }), runs.length);
}
