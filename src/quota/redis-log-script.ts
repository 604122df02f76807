/** The script that decides on requests by the logs of their quotas, as `decide` does. */
import { defineScript } from '../redis/script.ts';

/** Most entries a window tells of with a refusal: beyond the default limit of a minute. */
export const MOST_LEAVING = 128;

/**
 * KEYS: the logs. ARGV: lengths of the minute and the hour in microseconds; then, for each log, how many runs it has, and
 * count, limit of the minute and limit of the hour of each. A double holds whole microseconds until the year 2255; Lua
 * would print one in 14 digits, hence the format. A log is not changed where nothing is admitted to it.
 */
export const TAKE = defineScript(`
local call = redis.call
local minuteLength, hourLength = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]

local function decide(log, from, upTo)
  local now = clock
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
    local guess = length - tonumber(ARGV[from + 1])
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
  for run = from, upTo, 3 do
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
    for start = first, math.min(length, first + ${MOST_LEAVING}) - 1, 16 do
      for _, value in ipairs(call('LRANGE', log, start, start + 15)) do
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
end

local replies, from = {}, 3
for index, log in ipairs(KEYS) do
  local upTo = from + 3 * ARGV[from]
  -- A log that can't be decided on fails alone.
  local isDecided, reply = pcall(decide, log, from + 1, upTo)
  if not isDecided then reply = type(reply) == 'table' and reply.err or tostring(reply) end
  replies[index] = reply
  from = upTo + 1
end
return replies
`);
