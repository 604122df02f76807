/**
 * The state that the caches of all processes share, in the state Redis, which evicts nothing. All names have one hash
 * tag, so one slot:
 * - `head`: a hash: `history`, a random word; `sequence`, the number of purges in it so far; `times`, another random word
 *   after each change of the TTLs; `maintenance`, as JSON
 * - `purges`: a list of the last purges, oldest first, each as its random id and what it purged
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

const HEAD = cacheStateKey('head');
const PURGES = cacheStateKey('purges');
const TTLS = cacheStateKey('times');

/** Purges that are remembered. Anything filled before the oldest of them counts as purged. */
const MAX_PURGES = 10_000;

/** The place in the purge log up to which a process knows it. */
export interface KnownPurges {
  readonly history: string;
  readonly sequence: number;
  /** The id of the last purge; empty if it is not known. */
  readonly lastId: string;
}

export type TtlFields = ReadonlyMap<string, string>;

/** KEYS: head, purges. ARGV: a word for a new history, channel, known history, sequence and last id. */
const CHECK_LUA = `
local head = redis.call('HMGET', KEYS[1], 'history', 'sequence')
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
  redis.call('DEL', KEYS[2])
  redis.call('HSET', KEYS[1], 'history', history, 'sequence', 0)
  redis.call('PUBLISH', ARGV[2], 'look')
end
`;

/** KEYS: also times. ARGV: also their known version. */
const READ_STATE = defineScript(
  'readState',
  `${CHECK_LUA}
local from = 0
if history == ARGV[3] and known > floor then from = known - floor end
local version = redis.call('HGET', KEYS[1], 'times') or ''
local ttls = false
if version ~= ARGV[6] then ttls = redis.call('HGETALL', KEYS[3]) end
local maintenance = redis.call('HGET', KEYS[1], 'maintenance') or ''
local purges = redis.call('LRANGE', KEYS[2], from, -1)
return {history, tostring(sequence), tostring(floor), purges, version, ttls, maintenance}
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
const stateSchema = z
  .tuple([
    z.string(),
    sequenceSchema,
    sequenceSchema,
    z.array(z.string()),
    z.string(),
    fieldsSchema.nullable(),
    z.string(),
  ])
  .transform(([history, sequence, floor, purges, ttlVersion, ttls, maintenance]) => {
    return { history, sequence, floor, purges, ttlVersion, ttls, maintenance };
  });
const purgeSchema = z.tuple([z.string(), sequenceSchema]);
const endSchema = z.tuple([fieldsSchema, z.array(z.string())]);

/**
 * Purges up to `floor` are forgotten; `purges` are those after the later of the known one and `floor`, or all of them if
 * another history was known. `ttls` is null if they are as they were known. `maintenance` is JSON; empty for none.
 */
export type StateReply = z.output<typeof stateSchema>;

/** A rejection of a change, other than NotSentError, leaves open whether it was done. Changes are published. */
export class StateStore {
  /** The channel of the state's messages. Channels know no database numbers, so the number is part of the name. */
  readonly channel: string;
  readonly #redis: RedisCommands;

  constructor(redis: RedisCommands) {
    this.#redis = redis;
    this.channel = channelName('cache', String(redis.db), 'state');
  }

  /** Everything that differs from what is known. */
  async read(known: KnownPurges, ttlVersion: string): Promise<StateReply> {
    const args = [...this.#checkArgs(known), ttlVersion];
    return stateSchema.parse(await runScript(this.#redis, READ_STATE, { keys: [HEAD, PURGES, TTLS], args }));
  }

  /** Appends a purge to the log; returns its place. */
  async purge(known: KnownPurges, purge: string): Promise<Pick<StateReply, 'history' | 'sequence'>> {
    const args = [...this.#checkArgs(known), purge, MAX_PURGES - 1];
    const reply = await runScript(this.#redis, PURGE, { keys: [HEAD, PURGES], args });
    const [history, sequence] = purgeSchema.parse(reply);
    return { history, sequence };
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
