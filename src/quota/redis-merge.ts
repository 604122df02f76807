/** Adds to a log in Redis what a process admitted while Redis was out of reach, each at its time. */
import type { RedisCommands } from '../redis/connection.ts';
import { quotaLogKey, quotaMergeKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import type { Unshared } from './fallback-quota.ts';
import type { QuotaWindows } from './log.ts';

/**
 * KEYS: the log, the mark of this merge. ARGV: lengths of the minute and the hour in microseconds, then pairs of time and count in
 * order. The log stays in order: its entries after the first new one are taken off and put back among the new ones. A
 * time ahead of Redis's clock counts as now. 1 where it was done, 0 where it had been before.
 */
const MERGE = defineScript(
  'mergeQuota',
  `
local call, log = redis.call, KEYS[1]
local minuteLength, hourLength = tonumber(ARGV[1]), tonumber(ARGV[2])
if not call('SET', KEYS[2], '', 'NX', 'PX', math.ceil(hourLength / 1000) + 1) then return 0 end
local time = call('TIME')
local clock = time[1] * 1000000 + time[2]
local last = call('LINDEX', log, -1)
local now = math.max(clock, last and tonumber(last) or 0)

local added = {}
for i = 3, #ARGV, 2 do
  local at = math.min(tonumber(ARGV[i]), now)
  if at >= now - hourLength then
    for _ = 1, tonumber(ARGV[i + 1]) do added[#added + 1] = at end
  end
end
if #added == 0 then return 1 end

local low, high = 0, call('LLEN', log)
while low < high do
  local middle = math.floor((low + high) / 2)
  if tonumber(call('LINDEX', log, middle)) <= added[1] then low = middle + 1 else high = middle end
end
local after = call('LRANGE', log, low, -1)
if low == 0 then call('DEL', log) else call('LTRIM', log, 0, low - 1) end

local entries, next = {}, 1
for _, at in ipairs(added) do
  while after[next] and tonumber(after[next]) <= at do
    entries[#entries + 1] = after[next]
    next = next + 1
  end
  entries[#entries + 1] = string.format('%.0f', at)
end
for rest = next, #after do entries[#entries + 1] = after[rest] end
for from = 1, #entries, 1000 do
  call('RPUSH', log, unpack(entries, from, math.min(from + 999, #entries)))
end
-- Requests of the same minute won't set it.
call('PEXPIRE', log, math.ceil((now - clock + hourLength + minuteLength) / 1000) + 1)
return 1
`,
);

/** Adds them. Where it rejects it may be sent again with the same `mergeId`, and counts once all the same. */
export async function mergeIntoLog(
  redis: RedisCommands,
  { quotaId, admissions }: Unshared,
  mergeId: string,
  windows: QuotaWindows,
): Promise<void> {
  const keys = [quotaLogKey(quotaId), quotaMergeKey(quotaId, mergeId)];
  await runScript(redis, MERGE, { keys, args: [windows.minuteMicros, windows.hourMicros, ...admissions.flat()] });
}
