/** The fleet's tier: entries in the cache Redis, each under a name of its own, which may be evicted at any time. */
import type { RedisClient, RedisCommands, RedisServer } from '../redis/connection.ts';
import type { CacheNames } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import type { CacheTier, Keyed, Measured, Tagged } from './ports.ts';
import { type BrokenEntryError, decodeFilledAtMs, decodeTagged, readEntry, unlessBroken } from './redis-entry.ts';
import { ENTRY_LUA, entryArgs } from './redis-write.ts';
import type { StoredEntry } from './stored.ts';
import type { TtlPolicy } from './ttl-policy.ts';

export interface RedisTierOptions {
  /** To the cache Redis. */
  readonly redis: RedisCommands;
  /** All servers that hold entries. */
  readonly servers: () => readonly Pick<RedisServer, 'client'>[];
  readonly names: CacheNames;
  readonly times: Pick<TtlPolicy, 'of'>;
  /** Told of what was found in the place of an entry and could not be read. It counts as nothing. */
  readonly onBroken: (error: BrokenEntryError) => void;
}

/** KEYS: entry. ARGV: meta, body, how long it is kept. */
const SET = defineScript(
  'setEntry',
  `${ENTRY_LUA}
write(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
return 1
`,
);

/** The same, unless what is there was still being fetched when the fetch of the new one began (ARGV[4]). */
const SEED = defineScript(
  'seedEntry',
  `${ENTRY_LUA}
local present = read(KEYS[1])
if present and present.fetchedAtMs >= tonumber(ARGV[4]) then return 0 end
write(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
return 1
`,
);

/** Names asked for at a time where all entries are looked at. */
const BATCH = 200;

export class RedisTier implements CacheTier {
  readonly #options: RedisTierOptions;

  constructor(options: RedisTierOptions) {
    this.#options = options;
  }

  async get(key: string): Promise<StoredEntry | undefined> {
    const { redis, names, onBroken } = this.#options;
    const fields = await redis.run((client) => client.hmgetBuffer(names.of(key), 'meta', 'body'));
    return await readEntry(key, fields, onBroken);
  }

  async set(key: string, stored: StoredEntry): Promise<boolean> {
    const args = await entryArgs(key, stored, this.#options.times);
    await runScript(this.#options.redis, SET, { keys: [this.#options.names.of(key)], args });
    return true;
  }

  async seed(seeds: readonly Keyed[]): Promise<void> {
    await Promise.all(seeds.map(({ key, stored }) => this.#seedOne(key, stored)));
  }

  async delete(key: string): Promise<void> {
    const { redis, names } = this.#options;
    await redis.run((client) => client.del(names.of(key)));
  }

  async measure(matches: (stored: Tagged) => boolean, deadline?: AbortSignal): Promise<Measured> {
    // A scan may come across a name twice.
    const counted = new Set<string>();
    let entries = 0;
    let bytes = 0;
    for await (const names of this.#names()) {
      if (deadline?.aborted === true) return { entries, bytes, isComplete: false };
      const fresh = names.filter((name) => !counted.has(name));
      for (const name of fresh) counted.add(name);
      for (const { tagged, size } of await Promise.all(fresh.map((name) => this.#weigh(name)))) {
        if (tagged === undefined || !matches(tagged)) continue;
        entries += 1;
        bytes += size;
      }
    }
    return { entries, bytes, isComplete: true };
  }

  /** When what the fleet holds of the key was filled; null where there is nothing. */
  async filledAtMs(key: string): Promise<number | null> {
    const { redis, names } = this.#options;
    const meta = await redis.run((client) => client.hget(names.of(key), 'meta'));
    return meta === null
      ? null
      : ((await unlessBroken(() => decodeFilledAtMs(key, meta), this.#options.onBroken)) ?? null);
  }

  async #seedOne(key: string, stored: StoredEntry): Promise<void> {
    const args = await entryArgs(key, stored, this.#options.times);
    const call = { keys: [this.#options.names.of(key)], args: [...args, stored.entry.filledAtMs] };
    await runScript(this.#options.redis, SEED, call);
  }

  async *#names(): AsyncGenerator<readonly string[]> {
    for (const { client } of this.#options.servers()) yield* this.#namesAt(client);
  }

  async *#namesAt(client: RedisClient): AsyncGenerator<readonly string[]> {
    let cursor = '0';
    do {
      const [next, names] = await client.scan(
        cursor,
        'MATCH',
        this.#options.names.entryPattern,
        'COUNT',
        BATCH,
        'TYPE',
        'hash',
      );
      yield names;
      cursor = next;
    } while (cursor !== '0');
  }

  /** Of one that another release keeps in another form, nothing is known. */
  async #weigh(name: string): Promise<{ readonly tagged: Tagged | undefined; readonly size: number }> {
    const { redis } = this.#options;
    const [meta, size] = await redis.run((client) =>
      Promise.all([client.hget(name, 'meta'), client.hstrlen(name, 'body')]),
    );
    if (meta === null) return { tagged: undefined, size: 0 };
    const tagged = await unlessBroken(() => decodeTagged(meta), this.#options.onBroken);
    return { tagged, size: name.length + Buffer.byteLength(meta) + size };
  }
}
