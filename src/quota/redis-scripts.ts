/**
 * The scripts that keep logs of admitted requests in Redis, by Redis's own clock. A log is a list of Unix microseconds in
 * decimal, oldest first (`quotaLogKey`); it expires a minute or two after its newest entry has left the hour. Releases
 * that run side by side share these lists: a change of their form needs a new key name.
 */
import { defineScript } from '../redis/script.ts';

/** How long a merge may be sent again without being counted twice. */
const MARKER_MS = 5 * 60_000;

/**
 * The first two arguments of both scripts are the lengths of the minute and the hour in microseconds. A double holds whole
 * microseconds until the year 2255; Lua would print one in 14 digits, hence the format.
 */
const COMMON = `
local call = redis.call
local minuteLength, hourLength = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local log, known, length

local function at(index)
  local entry = known[index] or tonumber(call('LINDEX', log, index))
  known[index] = entry
  return entry
end

-- Index of the first entry at or after "since" among those from "low" on and before "high"; "high" if there is none.
local function firstSince(since, low, high)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if at(middle) < since then low = middle + 1 else high = middle end
  end
  return low
end

-- If the clock went back, what is from the future counts as made now.
local function open(name)
  log, known, length = name, {}, call('LLEN', name)
  if length == 0 or at(length - 1) <= now then return end
  local entry = string.format('%.0f', now)
  for index = firstSince(now + 1, 0, length), length - 1 do
    call('LSET', log, index, entry)
    known[index] = now
  end
end

-- In parts: Lua's stack is bounded.
local function append(entries)
  for from = 1, #entries, 1000 do
    call('RPUSH', log, unpack(entries, from, math.min(from + 999, #entries)))
  end
end

local function expireLater()
  call('PEXPIRE', log, math.ceil((hourLength + minuteLength) / 1000) + 1)
end
`;

/**
 * Decides on requests as `SlidingWindowLog.consume` does: first come, first admitted. KEYS: logs. ARGV: for each log the
 * number of requests (0 for a look), the limit of the minute and that of the hour. Returns for each log the fields of
 * `LogSummary` before the requests, how many were admitted, and when there is room if others were refused; or an error
 * for a log that cannot be decided on.
 *
 * Each command takes Redis a microsecond in which it answers nobody else, so edges are looked for from the near end: few
 * entries have left the hour, and most have left the minute.
 */
export const CONSUME = defineScript(
  'consumeQuota',
  `${COMMON}
local function firstFromOldEnd(since)
  local low, probe, step = 0, 0, 1
  while probe < length and at(probe) < since do
    low, probe, step = probe + 1, probe + step, step * 4
  end
  return firstSince(since, low, math.min(probe, length))
end

local function firstFromNewEnd(since, low)
  local high, probe, step = length, length - 1, 1
  while probe >= low and at(probe) >= since do
    high, probe, step = probe, probe - step, step * 4
  end
  return firstSince(since, math.max(low, probe + 1), high)
end

local function consume(name, count, perMinute, perHour)
  open(name)
  local newest = length > 0 and at(length - 1) or 0
  local hourFirst = firstFromOldEnd(now - hourLength)
  local minuteFirst = firstFromNewEnd(now - minuteLength, hourFirst)
  local minuteUsed, hourUsed = length - minuteFirst, length - hourFirst
  local minuteOldest = minuteUsed > 0 and at(minuteFirst) or 0
  local hourOldest = hourUsed > 0 and at(hourFirst) or 0

  local admitted = math.max(0, math.min(count, perMinute - minuteUsed, perHour - hourUsed))
  if admitted > 0 then
    local entries, entry = {}, string.format('%.0f', now)
    for i = 1, admitted do entries[i] = entry end
    append(entries)
  end
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
  local count, perMinute, perHour = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]), tonumber(ARGV[3 * i + 2])
  local isDecided, reply = pcall(consume, name, count, perMinute, perHour)
  -- A log that can't be decided on fails by itself.
  replies[i] = isDecided and reply or {err = type(reply) == 'table' and reply.err or tostring(reply)}
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
export const MERGE = defineScript(
  'mergeQuota',
  `${COMMON}
local marker = KEYS[2]
if tonumber(call('GET', marker) or 0) >= tonumber(ARGV[3]) then return end
call('SET', marker, ARGV[3], 'PX', ${MARKER_MS})

local added = {}
for i = 4, #ARGV, 2 do
  local at = math.min(tonumber(ARGV[i]), now)
  if at >= now - hourLength then
    for _ = 1, tonumber(ARGV[i + 1]) do added[#added + 1] = at end
  end
end
if #added == 0 then return end

open(KEYS[1])
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
append(entries)
expireLater()
`,
);
