/** The script that decides on requests by the logs of their quotas, as `decide` does. */
import { defineScript } from '../redis/script.ts';

/** Most entries a window tells of with a refusal: beyond the default limit of a minute. */
export const MOST_LEAVING = 128;

/**
 * KEYS: the logs. ARGV: lengths of the minute and the hour in microseconds; then, for each log, how many of its entries the
 * minute is expected to hold (0 where nobody knows), how many runs it has, and count, limit of the minute and limit of the
 * hour of each, all in one text. A double holds whole microseconds until the year 2255; Lua would print one in 14 digits,
 * hence the format. A log is not changed where nothing is admitted to it.
 *
 * Returned are all numbers in one string, as doubles with the least significant byte first (a reply of numbers takes a
 * client far longer to read): for each log what `LogReply` says, or a -1 where it failed. Behind it, why each of those did.
 *
 * Each command costs about a microsecond, in which Redis answers nobody else, so few entries are looked at: times are
 * guessed from those on both sides before the rest is halved, what has left the hour is looked for from the old end, where
 * there is little of it, and the edge of the minute from where it was the last time: in a long log an entry far from both
 * ends takes Redis some microseconds, and a search that knows nothing looks at a dozen of them. A log's expiry is set with
 * the first request of each minute, for a minute longer.
 */
export const TAKE = defineScript(
  'takeQuota',
  `
local call = redis.call
local minuteLength, hourLength = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
local asked = {}
for number in string.gmatch(ARGV[3], '%d+') do asked[#asked + 1] = tonumber(number) end

local function at(log, index)
  return tonumber(call('LINDEX', log, index))
end

-- Index and time of the first entry from "since" on. The entry before "low" is of "lowTime", older than that; the one
-- at "high" is of "highTime", from then on.
local function firstSince(log, since, low, lowTime, high, highTime)
  local guesses = 0
  while low < high do
    local middle
    if guesses < 3 then
      middle = low + math.floor((high - low) * (since - lowTime) / (highTime - lowTime))
      if middle >= high then middle = high - 1 end
      guesses = guesses + 1
    else
      middle = math.floor((low + high) / 2)
    end
    local found = at(log, middle)
    if found < since then low, lowTime = middle + 1, found else high, highTime = middle, found end
  end
  return high, highTime
end

-- The same where the first entry is older, and the last one from then on.
local function firstFromOldEnd(log, since, oldest, last, newest)
  local low, lowTime, step = 1, oldest, 1
  while low + step - 1 < last do
    local probe = low + step - 1
    local found = at(log, probe)
    if found >= since then return firstSince(log, since, low, lowTime, probe, found) end
    low, lowTime, step = probe + 1, found, step * 4
  end
  return firstSince(log, since, low, lowTime, last, newest)
end

-- The same, looked for from "guess" on, in steps that grow.
local function firstFromGuess(log, since, guess, low, lowTime, high, highTime)
  if low == high then return high, highTime end
  local probe, step = math.max(low, math.min(high - 1, guess)), 1
  local found = at(log, probe)
  local isForward = found < since
  while (found < since) == isForward do
    if isForward then
      low, lowTime, probe = probe + 1, found, probe + step
    else
      high, highTime, probe = probe, found, probe - step
    end
    if probe < low or probe >= high then return firstSince(log, since, low, lowTime, high, highTime) end
    step = step * 4
    found = at(log, probe)
  end
  if isForward then high, highTime = probe, found else low, lowTime = probe + 1, found end
  return firstSince(log, since, low, lowTime, high, highTime)
end

-- Adds their times to the reply; how many they are.
local function leaving(reply, log, first, length, before)
  local upTo = math.min(length, first + ${MOST_LEAVING})
  local count = 0
  -- In small steps: most often the first few are enough.
  for start = first, upTo - 1, 16 do
    for _, value in ipairs(call('LRANGE', log, start, start + 15)) do
      local entry = tonumber(value)
      reply[#reply + 1] = entry
      count = count + 1
      if entry >= before then return count end
    end
  end
  return count
end

local function decide(log, expected, from, upTo)
  local now = clock
  local length = call('LLEN', log)
  local newest = 0
  if length > 0 then
    newest = at(log, -1)
    if newest > now then now = newest end
  end

  local minuteSince, hourSince = now - minuteLength, now - hourLength
  local hourFirst, hourOldest = length, 0
  if length > 0 and newest >= hourSince then
    hourFirst, hourOldest = 0, at(log, 0)
    if hourOldest < hourSince then
      hourFirst, hourOldest = firstFromOldEnd(log, hourSince, hourOldest, length - 1, newest)
    end
  end
  local minuteFirst, minuteOldest = length, 0
  if length > 0 and newest >= minuteSince then
    minuteFirst, minuteOldest = hourFirst, hourOldest
    if hourOldest < minuteSince then
      local low, high = hourFirst + 1, length - 1
      if expected > 0 then
        minuteFirst, minuteOldest = firstFromGuess(log, minuteSince, length - expected, low, hourOldest, high, newest)
      else
        minuteFirst, minuteOldest = firstSince(log, minuteSince, low, hourOldest, high, newest)
      end
    end
  end

  local minuteUsed, hourUsed = length - minuteFirst, length - hourFirst
  local reply = {0, 0, now, minuteUsed, minuteOldest, hourUsed, hourOldest, newest}
  local entry = string.format('%.0f', now)
  local isChanged, roomAt = false, 0
  for run = from, upTo, 3 do
    local count, perMinute, perHour = asked[run], asked[run + 1], asked[run + 2]
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
      if minuteUsed >= perMinute then minuteRoomAt = at(log, length - perMinute) + minuteLength + 1 end
      if hourUsed >= perHour then hourRoomAt = at(log, length - perHour) + hourLength + 1 end
    end
    roomAt = math.max(minuteRoomAt, hourRoomAt)
    reply[#reply + 1] = admitted
    reply[#reply + 1] = minuteRoomAt
    reply[#reply + 1] = hourRoomAt
  end

  if roomAt > 0 then
    reply[1] = leaving(reply, log, minuteFirst, length, roomAt - 1 - minuteLength)
    reply[2] = leaving(reply, log, hourFirst, length, roomAt - 1 - hourLength)
  end
  if isChanged then
    if hourFirst > 0 then call('LTRIM', log, hourFirst, -1) end
    if math.floor(newest / minuteLength) ~= math.floor(now / minuteLength) then
      call('PEXPIRE', log, math.ceil((now - clock + hourLength + minuteLength) / 1000) + 1)
    end
  end
  return struct.pack('<' .. string.rep('d', #reply), unpack(reply))
end

local replies, failures, from = {}, {''}, 1
for index, log in ipairs(KEYS) do
  local upTo = from + 1 + 3 * asked[from + 1]
  -- A log that can't be decided on fails alone.
  local isDecided, reply = pcall(decide, log, asked[from], from + 2, upTo)
  if not isDecided then
    failures[#failures + 1] = type(reply) == 'table' and reply.err or tostring(reply)
    reply = struct.pack('<d', -1)
  end
  replies[index] = reply
  from = upTo + 1
end
failures[1] = table.concat(replies)
return failures
`,
);
