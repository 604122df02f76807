/**
 * The last sighting of each call, for all processes: beside the copies of its evaluation a hash, by workspace.
 * It is kept as long as the longest of the call's parts. If Redis evicts it, or there is no room for it, a change that no
 * process has a copy from before of goes unnoticed.
 */
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheNames } from '../../redis/names.ts';
import { defineScript, inCalls, runScript } from '../../redis/script.ts';
import { EVALUATION_KINDS } from '../../upstream/resources.ts';
import { type Address, addressText } from '../address.ts';
import type { RedisBudget } from './budget.ts';
import type { LastSeen } from '../digest.ts';
import type { SeenCalls, Sighting } from '../seen-calls.ts';
import type { LastSeenOf } from '../shared-cache.ts';
import type { TtlPolicy } from '../ttl-policy.ts';
import { ENTRY_LUA, HAS_COPY, parseJson, retentionOf } from './entry-format.ts';

export const seenSchema = z.object({
  digest: z.string(),
  differed: z.int().nonnegative(),
  requestedAtMs: z.int(),
  position: z.object({ history: z.string(), sequence: z.int().nonnegative() }),
  announced: z.int().nonnegative(),
}) satisfies z.ZodType<LastSeen>;

/** The sighting of a call, as scripts note it. */
export interface SeenNote {
  readonly workspace: string;
  /** As JSON. */
  readonly seen: string;
  readonly requestedAtMs: number;
  readonly keepMs: number;
}

/** `noteSeen` stands behind ENTRY_LUA. `key` is the hash, `note` a SeenNote. A later sighting stays. */
export const SEEN_LUA = `
local function noteSeen(key, note)
  local text = redis.pcall('HGET', key, note.workspace)
  if type(text) == 'table' then redis.call('DEL', key) end
  local isRead, known = pcall(cjson.decode, type(text) == 'string' and text or '')
  local knownAtMs = isRead and type(known) == 'table' and tonumber(known.requestedAtMs)
  if knownAtMs and isLater(knownAtMs, note.requestedAtMs) then return end
  redis.call('HSET', key, note.workspace, note.seen)
  keepAtLeast(key, note.keepMs)
end
`;

/** KEYS: hashes. ARGV: for each, a SeenNote. */
const NOTE_SEEN = defineScript(
  'noteSeen',
  `${ENTRY_LUA}${SEEN_LUA}
for i, key in ipairs(KEYS) do noteSeen(key, cjson.decode(ARGV[i])) end
`,
);

/** KEYS: the hash. ARGV: workspace, the sequence of the announced change. Nothing is noted of a call that was seen since. */
const NOTE_ANNOUNCED = defineScript(
  'noteAnnounced',
  `
local text = redis.call('HGET', KEYS[1], ARGV[1])
if not text then return 0 end
local isRead, seen = pcall(cjson.decode, text)
if not isRead or type(seen) ~= 'table' or type(seen.position) ~= 'table' then return 0 end
local sequence = tonumber(seen.position.sequence)
if not sequence or sequence >= tonumber(ARGV[2]) then return 0 end
seen.announced = tonumber(ARGV[2])
redis.call('HSET', KEYS[1], ARGV[1], cjson.encode(seen))
return 1
`,
);

/** KEYS: hashes. ARGV: of each, a field. Returns what they hold. */
const GET_FIELDS = defineScript(
  'getFields',
  `
local found = {}
for i, key in ipairs(KEYS) do found[i] = redis.call('HGET', key, ARGV[i]) end
return found
`,
);
/** Each takes Redis a microsecond or two. */
const FIELDS_AT_ONCE = 100;
const fieldsSchema = z.array(z.string().nullable());

/** The bytes of one sighting in Redis, its name included. */
const ADDED_BYTES = 500;
const PARTS = EVALUATION_KINDS.filter((kind) => kind !== 'evaluation');

interface SeenLimits {
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  readonly budget: Pick<RedisBudget, 'admitSeen'>;
}

/** The fields of the hash. A field that cannot be read counts as not seen. */
export function lastSeenIn(fields: Readonly<Record<string, string>>): LastSeenOf {
  const read = Object.entries(fields).map(([workspace, text]) => [workspace, parseJson(seenSchema, text)] as const);
  return new Map(read.flatMap(([workspace, seen]) => (seen === null ? [] : [[workspace, seen] as const])));
}

export interface RedisSeenCallsOptions extends SeenLimits {
  readonly cache: RedisLink;
  readonly names: CacheNames;
}

/** Null if there is no room for what nothing was known of. */
export function seenNoteOf({ address, seen, isFirst }: Sighting, { ttl, budget }: SeenLimits): SeenNote | null {
  if (isFirst && !budget.admitSeen(ADDED_BYTES)) return null;
  const keepMs = Math.max(...PARTS.map((part) => retentionOf(ttl.stateOf(part)).longestMs));
  return { workspace: address.owner, seen: JSON.stringify(seen), requestedAtMs: seen.requestedAtMs, keepMs };
}

export class RedisSeenCalls implements SeenCalls {
  readonly #options: RedisSeenCallsOptions;

  constructor(options: RedisSeenCallsOptions) {
    this.#options = options;
  }

  async read(addresses: readonly Address[]): Promise<readonly (LastSeen | null)[]> {
    const { cache, names } = this.#options;
    if (!cache.isUp()) throw new Error('the cache Redis does not answer');
    const texts = await this.#fields(addresses, (key) => names.of(key).seen);
    return texts.map((text) => (text === null ? null : parseJson(seenSchema, text)));
  }

  async haveCopies(groups: readonly (readonly Address[])[]): Promise<readonly boolean[]> {
    const { names } = this.#options;
    const addresses = groups.flat();
    const listed = await this.#fields(addresses, (key) => names.of(key).owners);
    const copied = new Set(addresses.filter((_, index) => listed[index] === HAS_COPY).map(addressText));
    return groups.map((group) => group.some((address) => copied.has(addressText(address))));
  }

  async write(sightings: readonly Sighting[]): Promise<void> {
    const { cache, names } = this.#options;
    const notes = sightings.flatMap((sighting) => {
      const note = seenNoteOf(sighting, this.#options);
      return note === null ? [] : [{ hash: names.of(sighting.address.key).seen, note: JSON.stringify(note) }];
    });
    const calls = inCalls(cache, notes).map((some) =>
      runScript(cache, NOTE_SEEN, { keys: some.map(({ hash }) => hash), args: some.map(({ note }) => note) }),
    );
    await Promise.all(calls);
  }

  async forget(addresses: readonly Address[]): Promise<void> {
    const { cache, names } = this.#options;
    await cache.run((client) => Promise.all(addresses.map(({ key, owner }) => client.hdel(names.of(key).seen, owner))));
  }

  async noteAnnounced({ key, owner }: Address, announced: number): Promise<void> {
    const { cache, names } = this.#options;
    await runScript(cache, NOTE_ANNOUNCED, { keys: [names.of(key).seen], args: [owner, announced] });
  }

  /** The owner's field in the hash of each key. */
  async #fields(addresses: readonly Address[], hashOf: (key: string) => string): Promise<readonly (string | null)[]> {
    const { cache } = this.#options;
    const calls = inCalls(cache, addresses, FIELDS_AT_ONCE).map(async (some) => {
      const call = { keys: some.map(({ key }) => hashOf(key)), args: some.map(({ owner }) => owner) };
      return fieldsSchema.parse(await runScript(cache, GET_FIELDS, call));
    });
    return (await Promise.all(calls)).flat();
  }
}
