/**
 * Where keys lie in Redis, and the only commands that touch them. Four names with one hash tag, so one slot:
 * - `records`: a hash of SHA-256 to the key as JSON
 * - `ids`: a hash of keyId to SHA-256
 * - `used`: a hash of SHA-256 to the time of the last use, Unix milliseconds
 * - `version`: a random word that every change replaces, so that two equal ones mean that nothing has changed
 *
 * Rules are not in the scripts: a change says what it was worked out from, and is made only where that still holds.
 */
import { randomUUID } from 'node:crypto';
import type { RedisCommands } from '../redis/connection.ts';
import { channelName, registryKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import { type ApiKey, type KeyHash, RegistryUnavailableError } from './key.ts';
import { describeChange } from './redis-feed-messages.ts';
import { deserializeKey, serializeKey } from './stored-key.ts';

const RECORDS = registryKey('records');
const IDS = registryKey('ids');
const USED = registryKey('used');
export const VERSION = registryKey('version');

/** Keys read or noted with one command. */
const BATCH = 1000;

/** ARGV: channel, next version, the hashes to tell, then hash, keyId, expected record (or nothing) and record of each. */
const COMMIT = defineScript(
  'commit',
  `
for i = 4, #ARGV, 4 do
  local owner = redis.call('HGET', KEYS[2], ARGV[i + 1])
  if (redis.call('HGET', KEYS[1], ARGV[i]) or '') ~= ARGV[i + 2] or (owner and owner ~= ARGV[i]) then return 0 end
end
for i = 4, #ARGV, 4 do
  redis.call('HSET', KEYS[1], ARGV[i], ARGV[i + 3])
  redis.call('HSET', KEYS[2], ARGV[i + 1], ARGV[i])
end
local version = redis.call('GET', KEYS[3]) or '-'
redis.call('SET', KEYS[3], ARGV[2])
redis.call('PUBLISH', ARGV[1], version .. ' ' .. ARGV[2] .. ' ' .. ARGV[3])
return 1
`,
);

/** ARGV: hash and time of each use. A time never goes back, and what is no key gets none. */
const NOTE_USES = defineScript(
  'noteUses',
  `
for i = 1, #ARGV, 2 do
  local last = tonumber(redis.call('HGET', KEYS[2], ARGV[i]) or '') or 0
  if tonumber(ARGV[i + 1]) > last and redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
end
return 1
`,
);

/** A key as it was read; `text` is what a change of it is worked out from. */
export interface StoredKey {
  readonly key: ApiKey;
  readonly text: string;
}

export interface KeyChange {
  readonly key: ApiKey;
  /** The record that is replaced; null where there must be none. */
  readonly from: string | null;
}

/** Where changes are told. Channels know no database numbers, so the number is part of the name. */
export function changesChannel(redis: RedisCommands): string {
  return channelName('keys', String(redis.db), 'changes');
}

function parseTime(text: string | null | undefined): number | null {
  const timeMs = Number(text ?? Number.NaN);
  return Number.isSafeInteger(timeMs) && timeMs >= 0 ? timeMs : null;
}

async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new RegistryUnavailableError(`Redis cannot be asked for keys: ${reason}`, { cause: error });
  }
}

function* batchesOf<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += BATCH) yield items.slice(i, i + BATCH);
}

/** Every method rejects with RegistryUnavailableError where Redis can't be asked or a record is broken. */
export class RedisKeyTable {
  readonly #redis: RedisCommands;

  constructor(redis: RedisCommands) {
    this.#redis = redis;
  }

  async read(hash: KeyHash): Promise<StoredKey | null> {
    const [text, used] = await asked(
      this.#redis.run((redis) => Promise.all([redis.hget(RECORDS, hash), redis.hget(USED, hash)])),
    );
    return text === null ? null : { text, key: deserializeKey(text, hash, parseTime(used)) };
  }

  async readById(keyId: string): Promise<StoredKey | null> {
    const hash = await asked(this.#redis.run((redis) => redis.hget(IDS, keyId)));
    return hash === null ? null : this.read(hash);
  }

  /** The keys that have one of these ids or hashes, by their hash. */
  async readAny(names: {
    readonly ids: readonly string[];
    readonly hashes: readonly KeyHash[];
  }): Promise<Map<KeyHash, StoredKey>> {
    const hashes = new Set(names.hashes);
    for (const ids of batchesOf(names.ids)) {
      for (const hash of await asked(this.#redis.run((redis) => redis.hmget(IDS, ...ids))))
        if (hash !== null) hashes.add(hash);
    }
    const found = new Map<KeyHash, StoredKey>();
    for (const batch of batchesOf([...hashes])) {
      const texts = await asked(this.#redis.run((redis) => redis.hmget(RECORDS, ...batch)));
      const used = await this.#usedTimes(batch);
      for (const [i, hash] of batch.entries()) {
        const text = texts[i];
        if (typeof text === 'string') found.set(hash, { text, key: deserializeKey(text, hash, used[i] ?? null) });
      }
    }
    return found;
  }

  /** All keys, in no order. A record that is broken is told and left out, so that the others can still be seen. */
  async all(onBroken: (error: RegistryUnavailableError) => void): Promise<ApiKey[]> {
    // A scan may come across a field twice.
    const keys = new Map<KeyHash, ApiKey>();
    for await (const page of this.#scan(RECORDS)) {
      const used = await this.#usedTimes([...page.keys()]);
      for (const [i, [hash, text]] of [...page].entries()) {
        try {
          keys.set(hash, deserializeKey(text, hash, used[i] ?? null));
        } catch (error) {
          if (!(error instanceof RegistryUnavailableError)) throw error;
          onBroken(error);
        }
      }
    }
    return [...keys.values()];
  }

  /** The hashes of all keys, in pages; one may come twice. */
  async *hashes(): AsyncGenerator<KeyHash[]> {
    for await (const page of this.#scan(IDS)) yield [...page.values()];
  }

  /**
   * Makes all changes and tells them to all processes, in one step. Returns the version that they make, as it is told;
   * null, and nothing done, where one was worked out from what does not hold any more. Where it rejects, the changes may
   * or may not have been made.
   */
  async commit(changes: readonly KeyChange[]): Promise<string | null> {
    const version = randomUUID();
    const told = describeChange(changes.map(({ key }) => key.hash));
    const parts = changes.flatMap(({ key, from }) => [key.hash, key.keyId, from ?? '', serializeKey(key)]);
    const call = { keys: [RECORDS, IDS, VERSION], args: [changesChannel(this.#redis), version, told, ...parts] };
    return (await asked(runScript(this.#redis, COMMIT, call))) === 1 ? version : null;
  }

  async noteUses(uses: ReadonlyMap<KeyHash, number>): Promise<void> {
    for (const batch of batchesOf([...uses])) {
      await asked(runScript(this.#redis, NOTE_USES, { keys: [RECORDS, USED], args: batch.flat() }));
    }
  }

  async #usedTimes(hashes: readonly KeyHash[]): Promise<(number | null)[]> {
    if (hashes.length === 0) return [];
    return (await asked(this.#redis.run((redis) => redis.hmget(USED, ...hashes)))).map(parseTime);
  }

  async *#scan(name: string): AsyncGenerator<ReadonlyMap<string, string>> {
    let cursor = '0';
    do {
      const from = cursor;
      const [next, flat] = await asked(this.#redis.run((redis) => redis.hscan(name, from, 'COUNT', BATCH)));
      const page = new Map<string, string>();
      for (let i = 0; i + 1 < flat.length; i += 2) page.set(flat[i] ?? '', flat[i + 1] ?? '');
      yield page;
      cursor = next;
    } while (cursor !== '0');
  }
}
