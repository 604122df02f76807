/**
 * Trials of a time in the state Redis, in the slot of all that a fleet's caches share, so that the time in force and the
 * trial's end change in one step:
 * - `head`: its field `trials` is another random word after each change
 * - `trials`: a hash of those that nobody has ended, as JSON, by class
 * - `trials:ended`: a list of those that are over, as JSON, newest first
 * - `trials:counts:ID`: a hash of what each process has counted of one, as JSON
 */
import { cacheStateKey } from '../../redis/keys.ts';
import { defineScript } from '../../redis/script.ts';

const HEAD = cacheStateKey('head');
const TIMES = cacheStateKey('times');
export const RUNNING_KEY = cacheStateKey('trials');
export const ENDED_KEY = cacheStateKey('trials', 'ended');

export const BEGIN_KEYS = [HEAD, RUNNING_KEY] as const;
export const END_KEYS = [HEAD, RUNNING_KEY, ENDED_KEY] as const;
export const ADOPT_KEYS = [HEAD, RUNNING_KEY, ENDED_KEY, TIMES] as const;

export function countsKey(id: string): string {
  return cacheStateKey('trials', 'counts', id);
}

/** ARGV of all three begin with: channel, a word for the version, class, the trial as it is to be kept. */
const TELL_LUA = `
local function tell()
  redis.call('HSET', KEYS[1], 'trials', ARGV[2])
  redis.call('PUBLISH', ARGV[1], 'look')
end
`;

/** Gives the one that is in the way; else nil, and it has begun. */
export const BEGIN = defineScript(`${TELL_LUA}
local running = redis.call('HGET', KEYS[2], ARGV[3])
if running then return running end
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
tell()
return false
`);

/** Also ARGV: its id, how many that are over are kept. Whether it was running until now. */
const REMOVE_LUA = `${TELL_LUA}
local function remove()
  local running = redis.call('HGET', KEYS[2], ARGV[3])
  if not running or cjson.decode(running).id ~= ARGV[5] then return false end
  redis.call('HDEL', KEYS[2], ARGV[3])
  redis.call('LPUSH', KEYS[3], ARGV[4])
  redis.call('LTRIM', KEYS[3], 0, ARGV[6] - 1)
  tell()
  return true
end
`;

/**
 * Also ARGV: not before which time, Unix milliseconds by the clock of Redis: a process whose clock is ahead ends a trial
 * for itself alone. Gives 1 where this has ended it, also when it is repeated because its answer was lost.
 */
export const END = defineScript(`${REMOVE_LUA}
local time = redis.call('TIME')
if time[1] * 1000 + math.floor(time[2] / 1000) < tonumber(ARGV[7]) then return 0 end
if remove() then return 1 end
for _, ended in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
  if ended == ARGV[4] then return 1 end
end
return 0
`);

/**
 * Also ARGV: the field of its time, and the time. One that is the last of its class, and has ended by time, will do too.
 * Gives the times as they were set before; nil where it is over otherwise.
 */
export const ADOPT = defineScript(`${REMOVE_LUA}
local function reopen()
  if redis.call('HEXISTS', KEYS[2], ARGV[3]) == 1 then return false end
  for place, text in ipairs(redis.call('LRANGE', KEYS[3], 0, -1)) do
    local ended = cjson.decode(text)
    if ended['class'] == ARGV[3] then
      if ended.id ~= ARGV[5] or ended['end'].state ~= 'ended' then return false end
      redis.call('LSET', KEYS[3], place - 1, ARGV[4])
      tell()
      return true
    end
  end
  return false
end
if not remove() and not reopen() then return false end
local before = redis.call('HGETALL', KEYS[4])
redis.call('HSET', KEYS[4], ARGV[7], ARGV[8])
redis.call('HSET', KEYS[1], 'times', ARGV[2])
return before
`);

/** KEYS: counts. ARGV: the process, what it has counted, for how long that is kept. */
export const POST_COUNTS = defineScript(`
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
`);

/** KEYS: counts of trials. Gives for each the processes and what they have counted, in turn. */
export const READ_COUNTS = defineScript(`
local counted = {}
for index, key in ipairs(KEYS) do counted[index] = redis.call('HGETALL', key) end
return counted
`);
