/**
 * The journal in Redis, in the slot of the key registry:
 * - `journal`: a stream. Entry `n-0` is event n: `word`, a random one; `after`, the word of event n - 1; `event`, JSON.
 * - `state`: a hash, what all events have left: `history`, a random word; `last`, number and word of the last event;
 *   `purge:TAG`, numbers of the last soft and hard purge and when that was; `changes:n`, event n, until it is forgotten;
 *   `lists:WORKSPACE`, as `purge:TAG`, of changes; `forgotten` and `swept`, as the events have them; `times:CLASS` and
 *   `maintenance`, JSON; `restored`, the number of the last such event; `endings:N`, how often something was ended in the cache
 *   Redis, for each of its counts; `bridge:*`, what was agreed with 0.3 last, until it is gone (bridge-0.3.ts).
 *
 * Each script first compares stream, hash and what the caller knows. If they contradict each other, Redis has lost events: it
 * was emptied, evicted one of the two, was restored from an old copy, or lost its last writes in a failover. It is not known
 * any more what was purged, so a new history begins, in which everything from before counts as purged.
 *
 * Each change works on a Redis that is out of memory (C6b: purges and revocations do): if the first write of a script is
 * one that needs no memory, such as XTRIM or DEL, Redis allows all that follow, whatever its version (Redis manual,
 * "Execution under low memory conditions").
 */
import { registryKey } from '../redis/names.ts';
import { defineScript, type RedisScript } from '../redis/script.ts';

export const STATE_KEY = registryKey('state');
export const STREAM_KEY = registryKey('journal');
export const JOURNAL_KEYS = [STATE_KEY, STREAM_KEY] as const;

/** Events that the stream keeps at least. A process that knows none of them reads what they have left. */
export const KEPT_EVENTS = 10_000;
/** No copy in Redis is as old (cache/redis/entry-format.ts). */
const KEPT_PURGES_MS = 31 * 24 * 60 * 60 * 1000;

/**
 * KEYS: state, stream. ARGV: what the caller knows, as JSON: history, sequence, word; `begin`, a word for a new history; `next`,
 * a word for an event. Defines `history`, `sequence` and `word` of the end, whether events were lost (`isLost`), whether those
 * after the caller's are cut off (`isTrimmed`), and `add`, which appends an event.
 */
const CHECK_LUA = `
local asked = cjson.decode(ARGV[1])
local function numberOf(entry) return tonumber(string.match(entry[1], '^%d+')) end
local head = redis.call('HMGET', KEYS[1], 'history', 'last')
local history, sequence, word = head[1], string.match(head[2] or '', '^(%d+) (.+)$')
sequence = tonumber(sequence) or 0
local newest = redis.call('XREVRANGE', KEYS[2], '+', '-', 'COUNT', 1)[1]
local isLost = not history or not newest or numberOf(newest) ~= sequence or newest[2][2] ~= word
local isTrimmed = false
if not isLost and history == asked.history then
  local oldest = redis.call('XRANGE', KEYS[2], '-', '+', 'COUNT', 1)[1]
  local id = string.format('%.0f-0', asked.sequence)
  local own = redis.call('XRANGE', KEYS[2], id, id)[1]
  if own then isLost = own[2][2] ~= asked.word
  elseif asked.sequence == numberOf(oldest) - 1 then isLost = oldest[2][4] ~= asked.word
  else
    isLost = asked.sequence >= numberOf(oldest)
    isTrimmed = not isLost
  end
end
local function write(text, own, after)
  sequence = sequence + 1
  redis.call('XADD', KEYS[2], string.format('%.0f-0', sequence), 'word', own, 'after', after, 'event', text)
  redis.call('HSET', KEYS[1], 'last', string.format('%.0f ', sequence) .. own)
  word = own
end
if isLost then
  redis.call('DEL', KEYS[2])
  for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
    if string.match(field, '^purge:') or string.match(field, '^changes:') or string.match(field, '^lists:') then
      redis.call('HDEL', KEYS[1], field)
    end
  end
  redis.call('HDEL', KEYS[1], 'forgotten', 'swept', 'restored')
  history, sequence = asked.begin, math.max(sequence, asked.sequence)
  redis.call('HSET', KEYS[1], 'history', history)
  write('', asked.begin, '')
end
local function add(text)
  redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', ${KEPT_EVENTS})
  write(text, asked.next, word)
end
local function position(...)
  return {history, string.format('%.0f', sequence), word, ...}
end
`;

/** A script that may append an event with `add(text)`, and returns `position(...)`. Its own KEYS begin at 3, its ARGV at 2. */
export function journalScript(name: string, lua: string): RedisScript {
  return defineScript(name, CHECK_LUA + lua);
}

/**
 * Returns the end, why the caller can't go on from its position (empty if it can), the entries after that, and else the hash of
 * what all have left.
 */
export const CATCH_UP = journalScript(
  'catchUpWithJournal',
  `
local because = ''
if history ~= asked.history then because = (asked.isJoined or (isLost and (head[1] or newest))) and 'lost' or 'joined'
elseif isTrimmed then because = 'trimmed' end
if because ~= '' then return position(because, {}, redis.call('HGETALL', KEYS[1])) end
return position('', redis.call('XRANGE', KEYS[2], string.format('%.0f-0', asked.sequence + 1), '+'), {})
`,
);

/**
 * Defines `record`, which appends an event and writes what it leaves, and `recordChanges`, which need not decode the event. A
 * process that reads the event does the same in its tables (cache/purge-log.ts, cache/change-table.ts): this is for those that
 * come later, and cannot read what is trimmed.
 */
const RECORD_LUA = `
local function leaveLast(field, mode, nowMs)
  local soft, hard = string.match(redis.call('HGET', KEYS[1], field) or '0 0', '^(%d+) (%d+)')
  if mode == 'soft' then soft = sequence else hard = sequence end
  redis.call('HSET', KEYS[1], field, string.format('%.0f %.0f %.0f', soft, hard, nowMs))
end
local function leaveChanges(text, mode, lists, nowMs)
  redis.call('HSET', KEYS[1], string.format('changes:%.0f', sequence), text)
  for _, workspace in ipairs(lists) do leaveLast('lists:' .. workspace, mode, nowMs) end
end
local function recordChanges(text, mode, lists)
  add(text)
  leaveChanges(text, mode, lists, redis.call('TIME')[1] * 1000)
end
local function record(text)
  add(text)
  local event = cjson.decode(text)
  local nowMs = redis.call('TIME')[1] * 1000
  if event.kind == 'purge' then
    for _, tag in ipairs(event.tags) do leaveLast('purge:' .. tag, event.mode, nowMs) end
  elseif event.kind == 'changes' then
    leaveChanges(text, event.mode, event.lists, nowMs)
  elseif event.kind == 'forgotten' then
    local fields = redis.call('HGETALL', KEYS[1])
    for i = 1, #fields, 2 do
      local change, listedAtMs = string.match(fields[i], '^changes:(%d+)$'), nil
      if string.match(fields[i], '^lists:') then listedAtMs = string.match(fields[i + 1], '(%d+)$') end
      if tonumber(change or '') and tonumber(change) <= event.upTo
        or listedAtMs and tonumber(listedAtMs) < nowMs - ${KEPT_PURGES_MS} then
        redis.call('HDEL', KEYS[1], fields[i])
      end
      local tag = string.match(fields[i], '^purge:(.*)')
      if tag then
        local soft, hard, atMs = string.match(fields[i + 1], '^(%d+) (%d+) (%d+)')
        local isForgotten = string.match(tag, '^evaluation:') and tonumber(hard) <= event.upTo
        if tonumber(atMs) < nowMs - ${KEPT_PURGES_MS} or (isForgotten and soft == '0') then
          redis.call('HDEL', KEYS[1], fields[i])
        elseif isForgotten then
          redis.call('HSET', KEYS[1], fields[i], soft .. ' 0 ' .. atMs)
        end
      end
    end
    redis.call('HSET', KEYS[1], 'forgotten', string.format('%.0f', event.upTo))
  elseif event.kind == 'restored' then
    redis.call('HSET', KEYS[1], 'restored', string.format('%.0f', sequence))
  elseif event.kind == 'swept' then
    local swept = tonumber(redis.call('HGET', KEYS[1], 'swept') or '') or 0
    redis.call('HSET', KEYS[1], 'swept', string.format('%.0f', math.max(swept, event.upTo)))
  end
  for place, number in ipairs(event.endings or {}) do
    local field = string.format('endings:%.0f', place)
    if number > (tonumber(redis.call('HGET', KEYS[1], field) or '') or 0) then
      redis.call('HSET', KEYS[1], field, string.format('%.0f', number))
    end
  end
end
`;

/** A script that also has `record(text)` and `recordChanges(text, mode, lists)`. */
export function recordingScript(name: string, lua: string): RedisScript {
  return journalScript(name, RECORD_LUA + lua);
}

/**
 * ARGV: also the event, then the fields that it replaces: of each its name, its value (empty for none) and the value that is
 * replaced. Returns the end, and 1 if it was appended: not if a field holds something else by now.
 */
export const APPEND = recordingScript(
  'appendToJournal',
  `
for i = 3, #ARGV, 3 do
  if (redis.call('HGET', KEYS[1], ARGV[i]) or '') ~= ARGV[i + 2] then return position(0) end
end
record(ARGV[2])
for i = 3, #ARGV, 3 do
  redis.call('HDEL', KEYS[1], ARGV[i])
  if ARGV[i + 1] ~= '' then redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 1]) end
end
return position(1)
`,
);
