/**
 * What the last answers have shown of each call, for all processes: beside the copies of its evaluation a hash, by workspace.
 * It is kept as long as the longest of the call's parts. If Redis evicts it, or there is no room for it, a change that no
 * process has a copy from before of goes unnoticed.
 */
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheNames } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import { type Address, addressText } from '../address.ts';
import type { RedisBudget } from './budget.ts';
import type { LastSeen } from '../digest.ts';
import type { SeenCalls, Sighting } from '../seen-calls.ts';
import type { TtlPolicy } from '../ttl-policy.ts';
import { ENTRY_LUA, HAS_COPY, parseJson, retentionOf } from './entry-format.ts';

export const seenSchema = z.object({
  digest: z.string(),
  differed: z.int().nonnegative(),
  requestedAtMs: z.int(),
  position: z.object({ history: z.string(), sequence: z.int().nonnegative() }),
  announced: z.int().nonnegative(),
}) satisfies z.ZodType<LastSeen>;

/** KEYS: the hash. ARGV: workspace, what was seen as JSON, how long it is kept, when it was requested. What is later stays. */
const NOTE_SEEN = defineScript(
  'noteSeen',
  `${ENTRY_LUA}
local isRead, known = pcall(cjson.decode, redis.call('HGET', KEYS[1], ARGV[1]) or '')
local knownAtMs = isRead and type(known) == 'table' and tonumber(known.requestedAtMs)
if knownAtMs and knownAtMs > tonumber(ARGV[4]) and not isFromFuture(knownAtMs) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[1], ARGV[3]) end
return 1
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

/** What one takes in Redis, its name included. */
const ADDED_BYTES = 500;
const PARTS = ['transcript', 'scorecard', 'dealInsights'] as const;

export interface RedisSeenCallsOptions {
  readonly cache: RedisLink;
  readonly names: CacheNames;
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  readonly budget: Pick<RedisBudget, 'admitSeen'>;
}

export class RedisSeenCalls implements SeenCalls {
  readonly #options: RedisSeenCallsOptions;

  constructor(options: RedisSeenCallsOptions) {
    this.#options = options;
  }

  async read(addresses: readonly Address[]): Promise<readonly (LastSeen | null)[]> {
    const { cache, names } = this.#options;
    if (!cache.isUp()) throw new Error('the cache Redis does not answer');
    const texts = await cache.run((client) =>
      Promise.all(addresses.map(({ key, owner }) => client.hget(names.of(key).seen, owner))),
    );
    return texts.map((text) => (text === null ? null : parseJson(seenSchema, text)));
  }

  async haveCopies(groups: readonly (readonly Address[])[]): Promise<readonly boolean[]> {
    const { cache, names } = this.#options;
    const addresses = groups.flat();
    const listed = await cache.run((client) =>
      Promise.all(addresses.map(({ key, owner }) => client.hget(names.of(key).owners, owner))),
    );
    const copied = new Set(addresses.filter((_, index) => listed[index] === HAS_COPY).map(addressText));
    return groups.map((group) => group.some((address) => copied.has(addressText(address))));
  }

  async write(sightings: readonly Sighting[]): Promise<void> {
    const { cache, names, ttl, budget } = this.#options;
    const keepMs = Math.max(...PARTS.map((part) => retentionOf(ttl.stateOf(part)).longestMs));
    await Promise.all(
      sightings.map(async ({ address: { key, owner }, seen, isFirst }) => {
        if (isFirst && !budget.admitSeen(ADDED_BYTES)) return;
        const args = [owner, JSON.stringify(seen), keepMs, seen.requestedAtMs];
        await runScript(cache, NOTE_SEEN, { keys: [names.of(key).seen], args });
      }),
    );
  }

  async forget(addresses: readonly Address[]): Promise<void> {
    const { cache, names } = this.#options;
    await cache.run((client) => Promise.all(addresses.map(({ key, owner }) => client.hdel(names.of(key).seen, owner))));
  }

  async noteAnnounced({ key, owner }: Address, announced: number): Promise<void> {
    const { cache, names } = this.#options;
    await runScript(cache, NOTE_ANNOUNCED, { keys: [names.of(key).seen], args: [owner, announced] });
  }
}
