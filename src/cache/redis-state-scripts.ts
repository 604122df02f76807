/**
 * What a fleet's caches share in the state Redis, where nothing is evicted. All names have one hash tag, so one slot:
 * - `head`: a hash: `history`, a random word; `sequence`, the purges so far in it; `times`, another random word after
 *   each change of the times in force; `maintenance`, what was last said of it, as JSON
 * - `purges`: a list of the last purges, oldest first, each as its random id and what it purged
 * - `times`: a hash of what was set over the configured times, such as `list.freshMs` to milliseconds
 *
 * Every process says what it knows when it calls. Where Redis knows less than that, or another purge in that place, it
 * has lost some (it was emptied, an old copy was restored, a failover lost the last writes). Nobody can tell any more
 * what was purged, so a new history begins, in which everything that was filled before counts as purged.
 */
import type { RedisCommands } from '../redis/connection.ts';
import { z } from 'zod';
import { cacheStateKey, channelName } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';

const HEAD = cacheStateKey('head');
const PURGES = cacheStateKey('purges');
const TIMES = cacheStateKey('times');

/** Purges that are remembered. What was filled before the oldest of them counts as purged. */
const MAX_PURGES = 10_000;

/** The place in the log of purges up to which a process knows it. */
export interface KnownPurges {
  readonly history: string;
  readonly sequence: number;
  /** Of the last purge; empty where it is not known. */
  readonly lastId: string;
}

export interface StateReply {
  readonly history: string;
  readonly sequence: number;
  /** Purges up to this one are forgotten. */
  readonly floor: number;
  /** Those after the later of what was known and `floor`; all where another history was known. */
  readonly purges: readonly string[];
  readonly timesVersion: string;
  /** Null where they are as they were known. */
  readonly times: ReadonlyMap<string, string> | null;
  /** What was last said of it; empty for nothing. */
  readonly maintenance: string;
}

export interface PurgeReply {
  readonly history: string;
  readonly sequence: number;
}

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
const LOOK = defineScript(
  'lookAtState',
  `${CHECK_LUA}
local from = 0
if history == ARGV[3] and known > floor then from = known - floor end
local version = redis.call('HGET', KEYS[1], 'times') or ''
local times = false
if version ~= ARGV[6] then times = redis.call('HGETALL', KEYS[3]) end
local maintenance = redis.call('HGET', KEYS[1], 'maintenance') or ''
local purges = redis.call('LRANGE', KEYS[2], from, -1)
return {history, tostring(sequence), tostring(floor), purges, version, times, maintenance}
`,
);

/** ARGV: also the purge, and how many are remembered. */
const PURGE = defineScript(
  'purge',
  `${CHECK_LUA}
sequence = redis.call('HINCRBY', KEYS[1], 'sequence', 1)
redis.call('RPUSH', KEYS[2], ARGV[6])
redis.call('LTRIM', KEYS[2], -tonumber(ARGV[7]), -1)
redis.call('PUBLISH', ARGV[2], 'purge ' .. history .. ' ' .. sequence .. ' ' .. ARGV[6])
return {history, tostring(sequence)}
`,
);

/** KEYS: head, times. ARGV: channel, a word for the version, then fields and values; no value drops the field. */
const CHANGE_TIMES = defineScript(
  'changeTimes',
  `
local before = redis.call('HGETALL', KEYS[2])
for i = 3, #ARGV, 2 do
  if ARGV[i + 1] == '' then redis.call('HDEL', KEYS[2], ARGV[i]) else redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1]) end
end
redis.call('HSET', KEYS[1], 'times', ARGV[2])
redis.call('PUBLISH', ARGV[1], 'look')
return before
`,
);

/** KEYS: head. ARGV: channel, what is said of it. Gives what was said before. */
const CHANGE_MAINTENANCE = defineScript(
  'changeMaintenance',
  `
local before = redis.call('HGET', KEYS[1], 'maintenance') or ''
redis.call('HSET', KEYS[1], 'maintenance', ARGV[2])
redis.call('PUBLISH', ARGV[1], 'look')
return before
`,
);

const sequenceSchema = z.coerce.number().int().nonnegative();
const pairsSchema = z.array(z.string()).transform(asMap);
const lookSchema = z.tuple([
  z.string(),
  sequenceSchema,
  sequenceSchema,
  z.array(z.string()),
  z.string(),
  pairsSchema.nullable(),
  z.string(),
]);
const purgeSchema = z.tuple([z.string(), sequenceSchema]);

/** Where the state is told. Channels know no database numbers, so the number is part of the name. */
export function stateChannel(redis: RedisCommands): string {
  return channelName('cache', String(redis.db), 'state');
}

/** What has changed since what is known. Rejects where Redis can't be asked. */
export async function look(redis: RedisCommands, known: KnownPurges, next: NextWords): Promise<StateReply> {
  const args = [...checkArgs(redis, known, next.history), next.timesVersion];
  const reply = await runScript(redis, LOOK, { keys: [HEAD, PURGES, TIMES], args });
  const [history, sequence, floor, purges, timesVersion, times, maintenance] = lookSchema.parse(reply);
  return { history, sequence, floor, purges, timesVersion, times, maintenance };
}

export interface NextWords {
  /** The name of a new history, should one have to begin. */
  readonly history: string;
  /** The version of the times in force that is known. */
  readonly timesVersion: string;
}

/** Adds a purge, as `writePurge` writes it, and tells it to all. Rejects where that can't be known to have been done. */
export async function appendPurge(
  redis: RedisCommands,
  known: KnownPurges,
  next: { readonly history: string; readonly purge: string },
): Promise<PurgeReply> {
  const args = [...checkArgs(redis, known, next.history), next.purge, MAX_PURGES];
  const [history, sequence] = purgeSchema.parse(await runScript(redis, PURGE, { keys: [HEAD, PURGES], args }));
  return { history, sequence };
}

/** Sets fields, or drops those without a value, and tells all. Gives all fields as they were before. */
export async function changeTimes(
  redis: RedisCommands,
  version: string,
  fields: ReadonlyMap<string, number | null>,
): Promise<ReadonlyMap<string, string>> {
  const changes = [...fields].flatMap(([field, value]) => [field, value === null ? '' : String(value)]);
  const args = [stateChannel(redis), version, ...changes];
  return pairsSchema.parse(await runScript(redis, CHANGE_TIMES, { keys: [HEAD, TIMES], args }));
}

/** Says it to all. Gives what was said before. */
export async function changeMaintenance(redis: RedisCommands, maintenance: string): Promise<string> {
  const args = [stateChannel(redis), maintenance];
  return z.string().parse(await runScript(redis, CHANGE_MAINTENANCE, { keys: [HEAD], args }));
}

function checkArgs(
  redis: RedisCommands,
  { history, sequence, lastId }: KnownPurges,
  newHistory: string,
): (string | number)[] {
  return [newHistory, stateChannel(redis), history, sequence, lastId];
}

/** Fields and values in turn, as Redis gives a hash. */
function asMap(pairs: readonly string[]): ReadonlyMap<string, string> {
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < pairs.length; i += 2) map.set(pairs[i] ?? '', pairs[i + 1] ?? '');
  return map;
}
