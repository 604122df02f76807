/**
 * The state that the caches of all processes share, in the state Redis, which evicts nothing. All names have one hash
 * tag, so one slot:
 * - `head`: a hash: `history`, a random word; `sequence`, the number of purges in it so far; `forgotten`, how many of them have
 *   left the list because the evaluations that they purged are deleted; `lost`, how many were cut off before that; `swept`, how far the bytes of other purges are deleted;
 *   `times`, another random word after each change of the TTLs; `maintenance`, as JSON
 * - `purges`: a list of the last purges, oldest first, each as its random id and what it purged
 * - `kept`: a hash of what else the purges that have left the list purged: by tag, the last soft and hard ones, and when it left
 * - `times`: a hash of the TTLs that operators set: `list.freshMs` to milliseconds, and `list.freshMs.temporary` to
 *   milliseconds and its end
 *
 * Each process says what it knows when it calls. If Redis knows less than that, or another purge in that place, it has
 * lost some (it was emptied, an old copy was restored, a failover lost the last writes). Nobody can tell any more what
 * was purged, so a new history begins, in which everything that was filled before counts as purged.
 *
 * Every change works on a Redis that is out of memory (C6b: purges and revocations do): if the first write of a script is
 * one that needs no memory, such as HDEL or LTRIM, Redis allows all that follow, whatever its version (Redis manual,
 * "Execution under low memory conditions").
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { RedisCommands } from '../../redis/connection.ts';
import { cacheStateKey, channelName } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import type { LastPurges, Swept, Tag } from '../purge-log.ts';
import { tagSchema } from './entry-format.ts';

const HEAD = cacheStateKey('head');
const PURGES = cacheStateKey('purges');
const KEPT = cacheStateKey('kept');
const TTLS = cacheStateKey('times');

/**
 * A last resort, for a cache Redis that is gone for days: of more purges in the list, the oldest are cut off, and anything
 * filled before them counts as purged.
 */
const MAX_PURGES = 1_000_000;
/** No copy in Redis is as old (entry-format.ts). */
const KEPT_MS = 31 * 24 * 60 * 60 * 1000;

/** The place in the purge log up to which a process knows it. */
export interface KnownPurges {
  readonly history: string;
  readonly sequence: number;
  /** The id of the last purge; empty if it is not known. */
  readonly lastId: string;
}

export type TtlFields = ReadonlyMap<string, string>;

/**
 * KEYS: head, purges, kept. ARGV: a word for a new history, channel, known history, sequence and last id.
 */
const CHECK_LUA = `
local head = redis.call('HMGET', KEYS[1], 'history', 'sequence', 'times', 'maintenance', 'forgotten', 'lost', 'swept')
local history, sequence = head[1], tonumber(head[2] or '') or 0
local floor = sequence - redis.call('LLEN', KEYS[2])
local known, isLost = tonumber(ARGV[4]), not history
if history == ARGV[3] then
  isLost = sequence < known
  local last = known > floor and redis.call('LINDEX', KEYS[2], known - floor - 1)
  if last and string.sub(last, 1, #ARGV[5]) ~= ARGV[5] then isLost = true end
end
if isLost then
  history, sequence, floor = ARGV[1], 0, 0
  redis.call('DEL', KEYS[2], KEYS[3])
  redis.call('HDEL', KEYS[1], 'forgotten', 'lost', 'swept')
  for i = 5, 7 do head[i] = false end
  redis.call('HSET', KEYS[1], 'history', history, 'sequence', 0)
  redis.call('PUBLISH', ARGV[2], 'look')
end
`;

/** KEYS: also times. ARGV: also their known version. `kept` is only read if purges that have left the list may be unknown. */
const READ_STATE = defineScript(
  'readState',
  `${CHECK_LUA}
local from = 0
if history == ARGV[3] and known > floor then from = known - floor end
local version = head[3] or ''
local ttls = false
if version ~= ARGV[6] then ttls = redis.call('HGETALL', KEYS[4]) end
local purges = {}
if floor + from < sequence then purges = redis.call('LRANGE', KEYS[2], from, -1) end
local kept = {}
if history ~= ARGV[3] or known < floor then kept = redis.call('HGETALL', KEYS[3]) end
local forgotten, lost = head[5] or '0', head[6] or '0'
if floor > (tonumber(forgotten) or 0) then lost = tostring(floor) end
return {history, tostring(sequence), tostring(floor), purges, version, ttls, head[4] or '', kept,
  forgotten, lost, head[7] or '', redis.call('HGETALL', KEYS[1]), redis.call('LINDEX', KEYS[2], -1)}
`,
);

/** ARGV: also the purge, and how many others are remembered. */
const PURGE = defineScript(
  'purge',
  `${CHECK_LUA}
redis.call('LTRIM', KEYS[2], -tonumber(ARGV[7]), -1)
sequence = redis.call('HINCRBY', KEYS[1], 'sequence', 1)
redis.call('RPUSH', KEYS[2], ARGV[6])
redis.call('PUBLISH', ARGV[2], 'purge ' .. history .. ' ' .. sequence .. ' ' .. ARGV[6])
return {history, tostring(sequence)}
`,
);

/**
 * KEYS: head, purges, kept. ARGV: history, up to which purge they leave the list, a time in Unix milliseconds, the time
 * before which what was kept is dropped. Evaluations that were purged hard are forgotten; all
 * other tags are kept.
 */
const FORGET = defineScript(
  'forgetPurges',
  `
local head = redis.call('HMGET', KEYS[1], 'history', 'sequence', 'forgotten')
local floor = (tonumber(head[2] or '') or 0) - redis.call('LLEN', KEYS[2])
local count = ARGV[2] - floor
if head[1] ~= ARGV[1] or count < 1 then return 0 end
local purges = redis.call('LRANGE', KEYS[2], 0, count - 1)
redis.call('LTRIM', KEYS[2], count, -1)
if floor > (tonumber(head[3] or '') or 0) then redis.call('HSET', KEYS[1], 'lost', floor) end
local function keep(tag, mode, sequence)
  local soft, hard = string.match(redis.call('HGET', KEYS[3], tag) or '0 0', '^(%d+) (%d+)')
  if mode == 'soft' then soft = sequence else hard = sequence end
  redis.call('HSET', KEYS[3], tag, string.format('%.0f %.0f ', soft, hard) .. ARGV[3])
end
for i, purge in ipairs(purges) do
  local isRead, read = pcall(cjson.decode, string.match(purge, ' (.*)') or '')
  if not isRead or type(read) ~= 'table' or type(read[2]) ~= 'table' then keep('all', 'hard', floor + i)
  else
    for _, tag in ipairs(read[2]) do
      if read[1] == 'soft' or string.sub(tag, 1, 11) ~= 'evaluation:' then keep(tag, read[1], floor + i) end
    end
  end
end
if ARGV[4] ~= '' then
  local kept = redis.call('HGETALL', KEYS[3])
  for i = 1, #kept, 2 do
    if tonumber(string.match(kept[i + 1], '%d+$')) < tonumber(ARGV[4]) then redis.call('HDEL', KEYS[3], kept[i]) end
  end
end
redis.call('HSET', KEYS[1], 'forgotten', string.format('%.0f', floor + #purges))
return 1
`,
);

/** KEYS: head. ARGV: history, how far it is swept, how many entries were looked at, of how many. */
const NOTE_SWEPT = defineScript(
  'noteSwept',
  `
if redis.call('HGET', KEYS[1], 'history') ~= ARGV[1] then return 0 end
local swept = tonumber(string.match(redis.call('HGET', KEYS[1], 'swept') or '', '^%d+')) or 0
redis.call('HDEL', KEYS[1], 'swept')
redis.call('HSET', KEYS[1], 'swept', string.format('%.0f ', math.max(swept, ARGV[2])) .. ARGV[3] .. ' ' .. ARGV[4])
return 1
`,
);

/** KEYS: head, times. ARGV: channel, a word for the version, then fields and values; no value drops the field. */
const CHANGE_TTLS = defineScript(
  'changeTtls',
  `
local before = redis.call('HGETALL', KEYS[2])
for i = 3, #ARGV, 2 do redis.call('HDEL', KEYS[2], ARGV[i]) end
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] ~= '' then redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
end
redis.call('HSET', KEYS[1], 'times', ARGV[2])
redis.call('PUBLISH', ARGV[1], 'look')
return before
`,
);

/** The same keys and arguments: drops those fields that still have that value. Only one of several callers gets them. */
const END_TTLS = defineScript(
  'endTtls',
  `
local before, ended = redis.call('HGETALL', KEYS[2]), {}
for i = 3, #ARGV, 2 do
  if redis.call('HGET', KEYS[2], ARGV[i]) == ARGV[i + 1] then
    redis.call('HDEL', KEYS[2], ARGV[i])
    ended[#ended + 1] = ARGV[i]
  end
end
if #ended > 0 then
  redis.call('HSET', KEYS[1], 'times', ARGV[2])
  redis.call('PUBLISH', ARGV[1], 'look')
end
return {before, ended}
`,
);

/** KEYS: head. ARGV: channel, the maintenance; empty for none. Returns the one before. */
const CHANGE_MAINTENANCE = defineScript(
  'changeMaintenance',
  `
local before = redis.call('HGET', KEYS[1], 'maintenance') or ''
redis.call('HDEL', KEYS[1], 'maintenance')
if ARGV[2] ~= '' then redis.call('HSET', KEYS[1], 'maintenance', ARGV[2]) end
redis.call('PUBLISH', ARGV[1], 'look')
return before
`,
);

const sequenceSchema = z.coerce.number().int().nonnegative();
/** Fields and values in turn, as Redis returns a hash. */
const fieldsSchema = z.array(z.string()).transform((pairs): TtlFields => {
  const names = pairs.filter((_, index) => index % 2 === 0);
  return new Map(names.map((name, index) => [name, pairs[2 * index + 1] ?? '']));
});
const keptSchema = z.array(z.string()).transform((pairs) => {
  const kept = new Map<Tag, LastPurges>();
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const [soft = 0, hard = 0] = (pairs[i + 1] ?? '').split(' ').map(Number);
    const tag = tagSchema.safeParse(pairs[i]);
    if (tag.success) kept.set(tag.data, { soft, hard });
    // Another release knows tags that this one doesn't: anything may have been purged.
    else kept.set('all', { soft: 0, hard: Math.max(soft, hard, kept.get('all')?.hard ?? 0) });
  }
  return kept;
});
const sweptSchema = z.string().transform((text): Swept => {
  const [sequence = 0, entries = 0, of = 0] = text === '' ? [] : text.split(' ').map(Number);
  return { sequence, entries, of };
});
const stateSchema = z
  .tuple([
    z.string(),
    sequenceSchema,
    sequenceSchema,
    z.array(z.string()),
    z.string(),
    fieldsSchema.nullable(),
    z.string(),
    keptSchema,
    sequenceSchema,
    sequenceSchema,
    sweptSchema,
    z.array(z.string()),
    z.string().nullable(),
  ])
  .transform(([history, sequence, floor, purges, ttlVersion, ttls, maintenance, kept, ...more]) => {
    const [forgotten, lost, swept, head, last] = more;
    return {
      history,
      sequence,
      floor,
      purges,
      ttlVersion,
      ttls,
      maintenance,
      kept,
      forgotten,
      lost,
      swept,
      head,
      last,
    };
  });
const purgeSchema = z.tuple([z.string(), sequenceSchema]);
const endSchema = z.tuple([fieldsSchema, z.array(z.string())]);

/**
 * Purges up to `floor` have left the list; `purges` are those after the later of the known one and `floor`, or all of them if
 * another history was known. `ttls` is null if they are as they were known. `maintenance` is JSON; empty for none. `kept` is what
 * is left of purges up to `forgotten`; without any if they were all known. Copies from before `lost` count as purged. `head` and
 * `last` are the whole hash and the last purge, as the script left them.
 */
export type StateReply = z.output<typeof stateSchema>;

export interface Forgetting {
  readonly upTo: number;
  /** Unix milliseconds. */
  readonly nowMs: number;
  readonly isToDrop: boolean;
}

function comparison(...all: [KnownPurges, ttlVersion: string, head: readonly string[], last: string | null]): string {
  return JSON.stringify(all);
}

/** A rejection of a change, other than NotSentError, leaves open whether it was done. Changes are published. */
export class StateStore {
  /** The channel of the state's messages. Channels know no database numbers, so the number is part of the name. */
  readonly channel: string;
  readonly #redis: RedisCommands;
  /** What was known at the last run of the script, and what that found in Redis. */
  #compared = '';

  constructor(redis: RedisCommands) {
    this.#redis = redis;
    this.channel = channelName('cache', String(redis.db), 'state');
  }

  /**
   * Everything that differs from what is known; null if nothing does. Each process looks twice a second, and most looks find
   * nothing new: two plain reads show that. The script runs if what is known or what is in Redis is not as in its last run.
   */
  async read(known: KnownPurges, ttlVersion: string): Promise<StateReply | null> {
    const [head, last] = await this.#redis.run((client) =>
      Promise.all([client.hgetall(HEAD), client.lindex(PURGES, -1)]),
    );
    if (comparison(known, ttlVersion, Object.entries(head).flat(), last) === this.#compared) return null;
    const args = [...this.#checkArgs(known), ttlVersion];
    const reply = await runScript(this.#redis, READ_STATE, { keys: [HEAD, PURGES, KEPT, TTLS], args });
    const state = stateSchema.parse(reply);
    this.#compared = comparison(known, ttlVersion, state.head, state.last);
    return state;
  }

  /** Appends a purge to the log; returns its place. */
  async purge(known: KnownPurges, purge: string): Promise<Pick<StateReply, 'history' | 'sequence'>> {
    const args = [...this.#checkArgs(known), purge, MAX_PURGES - 1];
    const reply = await runScript(this.#redis, PURGE, { keys: [HEAD, PURGES, KEPT], args });
    const [history, sequence] = purgeSchema.parse(reply);
    return { history, sequence };
  }

  /** Lets purges up to that one leave the list. `isToDrop`: whether to look for what is kept for too long. */
  async forget(history: string, { upTo, nowMs, isToDrop }: Forgetting): Promise<void> {
    const args = [history, upTo, nowMs, isToDrop ? nowMs - KEPT_MS : ''];
    await runScript(this.#redis, FORGET, { keys: [HEAD, PURGES, KEPT], args });
  }

  async noteSwept(history: string, { sequence, entries, of }: Swept): Promise<void> {
    await runScript(this.#redis, NOTE_SWEPT, { keys: [HEAD], args: [history, sequence, entries, of] });
  }

  /** Sets fields, or drops those without a value. Returns all fields as they were before. */
  async changeTtls(fields: ReadonlyMap<string, string | null>): Promise<TtlFields> {
    const args = [this.channel, randomUUID(), ...[...fields].flatMap(([field, value]) => [field, value ?? ''])];
    return fieldsSchema.parse(await runScript(this.#redis, CHANGE_TTLS, { keys: [HEAD, TTLS], args }));
  }

  /** Drops the fields that still have these values. Returns all fields as they were, and the names of those dropped. */
  async endTtls(fields: TtlFields): Promise<{ readonly before: TtlFields; readonly ended: readonly string[] }> {
    const args = [this.channel, randomUUID(), ...[...fields].flat()];
    const [before, ended] = endSchema.parse(await runScript(this.#redis, END_TTLS, { keys: [HEAD, TTLS], args }));
    return { before, ended };
  }

  /** Returns the one before. */
  async changeMaintenance(maintenance: string): Promise<string> {
    const args = [this.channel, maintenance];
    return z.string().parse(await runScript(this.#redis, CHANGE_MAINTENANCE, { keys: [HEAD], args }));
  }

  /** With a name for a new history, should one have to begin. */
  #checkArgs({ history, sequence, lastId }: KnownPurges): (string | number)[] {
    return [randomUUID(), this.channel, history, sequence, lastId];
  }
}
