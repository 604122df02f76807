/** Scripts that change what lies in Redis of one entry: how long it is kept, that it is gone, the mark of a change. */
import { defineScript } from '../../redis/script.ts';
import { ENTRY_LUA, HAS_COPY } from './entry-format.ts';

/**
 * KEYS: entry; of a copy, its key's owners. ARGV: the Retention of some classes as JSON, by class, and the time. Such an entry
 * is kept so long, if it is not kept longer anyway. Returns whether it was changed.
 */
export const KEEP_LONGER = defineScript(
  'keepEntryLonger',
  `${ENTRY_LUA}
local entry = read(KEYS[1])
if not entry then return 0 end
local class = entry.answer.kind == 'absent' and 'notFound' or entry.kind
local retention = cjson.decode(ARGV[1])[class]
if not retention then return 0 end
local longestMs = math.min(entry.requestedAtMs + retention.longestMs, retention.untilMs)
local keepMs = math.max(entry.requestedAtMs + retention.lastingMs, longestMs) - tonumber(ARGV[2])
local wholeAtMs = tonumber(redis.call('HGET', KEYS[1], 'whole') or '')
if keepMs <= (wholeAtMs and wholeAtMs - nowMs() or redis.call('PTTL', KEYS[1])) then return 0 end
if KEYS[2] then keepAtLeast(KEYS[2], string.format('%.0f', keepMs)) end
if wholeAtMs then
  redis.call('HSET', KEYS[1], 'whole', string.format('%.0f', nowMs() + keepMs))
  return 1
end
return redis.call('PEXPIRE', KEYS[1], string.format('%.0f', keepMs))
`,
);

/** KEYS: entry; of a copy, its key's owners. ARGV: its meta, its owner. Deletes it unless another one has taken its place. */
export const DELETE = defineScript(
  'deleteEntry',
  `
if redis.call('HGET', KEYS[1], 'meta') ~= ARGV[1] then return 0 end
if KEYS[2] then redis.call('HDEL', KEYS[2], ARGV[2]) end
return redis.call('UNLINK', KEYS[1])
`,
);

/** KEYS: entry. ARGV: its meta, the mark of a change. Marks it unless another one has taken its place. */
export const MARK = defineScript(
  'markEntry',
  `
if redis.call('HGET', KEYS[1], 'meta') ~= ARGV[1] then return 0 end
return redis.call('HSET', KEYS[1], 'changed', ARGV[2])
`,
);

/**
 * KEYS: a key's owners, what was seen of its call. Deletes both unless there is a copy: after a purge nothing older is served
 * anyway.
 */
export const CLEAR_BESIDE = defineScript(
  'clearBeside',
  `
for _, listed in ipairs(redis.call('HVALS', KEYS[1])) do
  if listed == '${HAS_COPY}' then return 0 end
end
return redis.call('UNLINK', KEYS[1], KEYS[2])
`,
);
