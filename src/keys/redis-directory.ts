/**
 * Keys in the state Redis, and the only commands that touch them. Names in the slot of the journal:
 * - `records`: a hash of SHA-256 to the key as JSON
 * - `ids`: a hash of keyId to SHA-256; written anew from the records if it was lost
 * - `used`: a hash of SHA-256 to the time of the last use, Unix milliseconds
 * - `lost`: when keys were lost and how many, as JSON, until they are back; marked if an operator knows of it
 *
 * A change appends an event to the journal in the same step.
 */
import { z } from 'zod';
import type { EventOf } from '../journal/journal.ts';
import type { RedisJournal } from '../journal/redis-journal.ts';
import { journalScript, KEPT_EVENTS, STREAM_KEY } from '../journal/scripts.ts';
import type { Clock } from '../time/clock.ts';
import type { RedisCommands } from '../redis/connection.ts';
import type { RedisClient } from '../redis/open-connection.ts';
import { replyCode } from '../redis/errors.ts';
import { registryKey } from '../redis/names.ts';
import { defineScript, runScript } from '../redis/script.ts';
import {
  type ApiKey,
  deserializeKey,
  type KeyHash,
  type KeyLoss,
  RegistryUnavailableError,
  serializeKey,
} from './key.ts';
import { type KeyChange, KeyDirectory, type Made, type StoredKey } from './registry.ts';
import { messageOf } from '../log/error.ts';

const RECORDS = registryKey('records');
const IDS = registryKey('ids');
const USED = registryKey('used');
const LOST = registryKey('lost');

const lossSchema = z.object({
  atMs: z.int().min(0).max(8.64e15),
  keys: z.int(),
  /** Earlier releases notice only the loss of all. */
  left: z.int().default(0),
  created: z.int().default(0),
  isAcknowledged: z.boolean(),
});

/** Keys in one command. */
const BATCH = 1000;
/** Hashes in one event. */
const MAX_NAMED = 1000;

/**
 * KEYS: records, ids and lost. ARGV: the event, 1 if it must work on a full Redis, 1 if keys that are added are made here, then hash,
 * keyId, record to be replaced (empty for none) and record of each change.
 *
 * On a full Redis a script may write if its first write needs no memory: XTRIM stands for that. Otherwise the first write is
 * refused before anything was done, and `pcall` keeps the code of the error, OOM, which older servers put into a sentence.
 *
 * A record that is added while a loss is noted and not acknowledged is one of the lost ones, unless its key was made here or after the loss: then the
 * note counts it.
 */
const COMMIT = journalScript(
  'commit',
  `
for i = 5, #ARGV, 4 do
  local owner = redis.call('HGET', KEYS[4], ARGV[i + 1])
  if (redis.call('HGET', KEYS[3], ARGV[i]) or '') ~= ARGV[i + 2] or (owner and owner ~= ARGV[i]) then return position(0) end
end
local isNoted, loss = pcall(cjson.decode, redis.call('GET', KEYS[5]) or '')
local isOpen, created = isNoted and not loss.isAcknowledged, 0
for i = 5, #ARGV, 4 do
  if isOpen and ARGV[i + 2] == '' and (ARGV[4] == '1' or cjson.decode(ARGV[i + 3]).createdAtMs > loss.atMs) then
    created = created + 1
  end
end
if ARGV[3] == '1' then redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', ${KEPT_EVENTS}) end
local first = redis.pcall('HSET', KEYS[3], ARGV[5], ARGV[8])
if type(first) == 'table' and first.err then return first end
for i = 5, #ARGV, 4 do
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 3])
  redis.call('HSET', KEYS[4], ARGV[i + 1], ARGV[i])
end
if created > 0 then
  loss.created = (loss.created or 0) + created
  redis.call('SET', KEYS[5], cjson.encode(loss))
end
add(ARGV[2])
return position(1)
`,
);

/**
 * KEYS: ids, stream. ARGV: keyId and hash of each record. Adds the ids that are missing; XTRIM stands first for the same reason.
 * Returns how many were missing.
 */
const ADD_IDS = defineScript(
  'addIds',
  `
redis.call('XTRIM', KEYS[2], 'MAXLEN', '~', ${KEPT_EVENTS})
local added = 0
for i = 1, #ARGV, 2 do added = added + redis.call('HSETNX', KEYS[1], ARGV[i], ARGV[i + 1]) end
return added
`,
);

/** ARGV: hash and time of each use. A time never goes back, and a hash without a record gets none. */
const RECORD_USES = defineScript(
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

export interface RedisDirectoryOptions {
  /** To the state Redis. It stays its owner's to close. */
  readonly redis: RedisCommands;
  /** On the same Redis. */
  readonly journal: Pick<RedisJournal, 'run' | 'runConfirmed'>;
  readonly clock: Clock;
  /** Called for each record that `list` leaves out. The message is private. */
  readonly onBrokenRecord: (error: RegistryUnavailableError) => void;
  /** Called when Redis had lost so many ids of keys, which have been written anew. */
  readonly onIdsRestored: (ids: number) => void;
}

/** Methods reject with RegistryUnavailableError if Redis does not answer, is out of memory, or a record is broken. */
export class RedisDirectory extends KeyDirectory {
  readonly #redis: RedisCommands;
  readonly #journal: RedisDirectoryOptions['journal'];
  readonly #onBrokenRecord: RedisDirectoryOptions['onBrokenRecord'];
  readonly #onIdsRestored: RedisDirectoryOptions['onIdsRestored'];
  /** How many records and ids there were after the ids were restored last: what is missing then has no record to be read from. */
  #restoredTo: string | null = null;

  constructor({ redis, journal, clock, onBrokenRecord, onIdsRestored }: RedisDirectoryOptions) {
    super(clock);
    this.#redis = redis;
    this.#journal = journal;
    this.#onBrokenRecord = onBrokenRecord;
    this.#onIdsRestored = onIdsRestored;
  }

  protected async keyOf(hash: KeyHash): Promise<ApiKey | null> {
    return (await this.#read([hash])).get(hash)?.key ?? null;
  }

  protected async stored(
    ids: readonly string[],
    hashes: readonly KeyHash[] = [],
  ): Promise<ReadonlyMap<KeyHash, StoredKey>> {
    let owners = await this.#ownersOf(ids);
    // An id that is not listed may have been lost.
    if (owners.includes(null) && (await this.#restoreIds())) owners = await this.#ownersOf(ids);
    const wanted = new Set([...hashes, ...owners.filter((hash) => hash !== null)]);
    const found = new Map<KeyHash, StoredKey>();
    for (const batch of batchesOf([...wanted])) {
      for (const [hash, stored] of await this.#read(batch)) found.set(hash, stored);
    }
    return found;
  }

  /** A broken record is reported and left out, so that the others can still be seen. */
  async *pages(): AsyncGenerator<readonly ApiKey[]> {
    const seen = new Set<KeyHash>();
    for await (const page of this.#scan(RECORDS, 'fields')) {
      const fresh = [...new Set(page)].filter((hash) => !seen.has(hash));
      if (fresh.length === 0) continue;
      for (const hash of fresh) seen.add(hash);
      yield [...(await this.#read(fresh, this.#onBrokenRecord)).values()].map(({ key }) => key);
    }
  }

  override async acknowledgeLoss(): Promise<KeyLoss | null> {
    const { noted: loss } = await answered(readKeyCount(this.#redis));
    if (loss !== null && !loss.isAcknowledged) {
      await this.#run((client) => client.set(LOST, JSON.stringify({ ...loss, isAcknowledged: true }), 'XX'));
    }
    return loss;
  }

  /** How many keys there are, and the loss that is noted. Ids that are lost alone are restored. */
  protected async count(): Promise<KeyCount> {
    // If it fails, the next count tries again.
    const [, count] = await Promise.all([this.#restoreIds().catch(() => false), answered(readKeyCount(this.#redis))]);
    return count;
  }

  /** Writes the ids anew that Redis has lost, from the records. Returns whether there were any. */
  async #restoreIds(): Promise<boolean> {
    const [records, ids] = await this.#run((client) => Promise.all([client.hlen(RECORDS), client.hlen(IDS)]));
    if (ids >= records || this.#restoredTo === `${records} ${ids}`) return false;
    let restored = 0;
    for await (const keys of this.pages()) {
      const args = keys.flatMap(({ keyId, hash }) => [keyId, hash]);
      const added = await answered(runScript(this.#redis, ADD_IDS, { keys: [IDS, STREAM_KEY], args }));
      restored += Number(added);
    }
    // A record that can't be read has an id that nobody knows.
    this.#restoredTo = `${records} ${ids + restored}`;
    if (restored > 0) this.#onIdsRestored(restored);
    return restored > 0;
  }

  async #ownersOf(ids: readonly string[]): Promise<readonly (KeyHash | null)[]> {
    const owners: (KeyHash | null)[] = [];
    for (const batch of batchesOf(ids)) owners.push(...(await this.#run((client) => client.hmget(IDS, ...batch))));
    return owners;
  }

  /** Notes a loss for all processes and those to come; null to forget it. */
  protected async noteLoss(loss: KeyLoss | null): Promise<void> {
    await this.#run<unknown>((client) => (loss === null ? client.del(LOST) : client.set(LOST, JSON.stringify(loss))));
  }

  /** The hashes of all keys, in pages; one may come twice. */
  protected hashes(): AsyncGenerator<readonly KeyHash[]> {
    return this.#scan(IDS, 'values');
  }

  /**
   * Once it resolves, the event of the changes is applied here. A commit that only ends the use of keys needs no memory (C6b: it
   * works on a full Redis). If it rejects without an answer, the changes may or may not have been made.
   */
  protected async commit(changes: readonly KeyChange[], isIssue: boolean): Promise<Made | null> {
    const hashes = changes.map(({ key }) => key.hash);
    const event: EventOf<'keys'> = { kind: 'keys', hashes: hashes.length > MAX_NAMED ? null : hashes };
    const text = JSON.stringify(event);
    const endsKeys = changes.every(({ key, replaces }) => replaces !== null && key.status !== 'active');
    const parts = changes.flatMap(({ key, replaces }) => [key.hash, key.keyId, replaces ?? '', serializeKey(key)]);
    const call = { keys: [RECORDS, IDS, LOST], args: [text, endsKeys ? 1 : 0, isIssue ? 1 : 0, ...parts] };
    if (!endsKeys)
      return (await answered(this.#journal.run(COMMIT, text, call)))[0] === 1 ? { isConfirmed: null } : null;
    const { results, isConfirmed } = await answered(this.#journal.runConfirmed(COMMIT, text, call));
    return results[0] === 1 ? { isConfirmed } : null;
  }

  protected async recordUses(uses: ReadonlyMap<KeyHash, number>): Promise<void> {
    for (const batch of batchesOf([...uses])) {
      await answered(runScript(this.#redis, RECORD_USES, { keys: [RECORDS, USED], args: batch.flat() }));
    }
  }

  /** The keys of some hashes, at least one. Rejects for a broken record, unless that is reported. */
  async #read(
    hashes: readonly KeyHash[],
    onBroken?: (error: RegistryUnavailableError) => void,
  ): Promise<ReadonlyMap<KeyHash, StoredKey>> {
    const [records, uses] = await this.#run((client) =>
      Promise.all([client.hmget(RECORDS, ...hashes), client.hmget(USED, ...hashes)]),
    );
    const found = new Map<KeyHash, StoredKey>();
    for (const [i, hash] of hashes.entries()) {
      const [record = null, used = null] = [records[i], uses[i]];
      if (record === null) continue;
      try {
        found.set(hash, { record, key: deserializeKey(record, hash, parseTime(used)) });
      } catch (error) {
        if (onBroken === undefined || !(error instanceof RegistryUnavailableError)) throw error;
        onBroken(error);
      }
    }
    return found;
  }

  /** The fields or the values of a hash, in pages, of which none is empty. */
  async *#scan(name: string, wanted: 'fields' | 'values'): AsyncGenerator<readonly string[]> {
    let cursor = '0';
    do {
      const from = cursor;
      const [next, flat] = await this.#run((client) => client.hscan(name, from, 'COUNT', BATCH));
      const page = flat.filter((_, i) => i % 2 === (wanted === 'fields' ? 0 : 1));
      if (page.length > 0) yield page;
      cursor = next;
    } while (cursor !== '0');
  }

  #run<T>(send: (client: RedisClient) => Promise<T>): Promise<T> {
    return answered(this.#redis.run(send));
  }
}

export interface KeyCount {
  readonly known: number;
  /** The loss that a gateway has noted, acknowledged or not; null if there is none. */
  readonly noted: KeyLoss | null;
}

export async function readKeyCount(redis: RedisCommands): Promise<KeyCount> {
  const [known, lost] = await redis.run((client) => Promise.all([client.hlen(RECORDS), client.get(LOST)]));
  return { known, noted: parseLoss(lost) };
}

/** Text that cannot be read counts as none. */
function parseLoss(text: string | null): KeyLoss | null {
  if (text === null) return null;
  try {
    return lossSchema.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

async function answered<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    throw new RegistryUnavailableError(
      replyCode(error) === 'OOM' ? 'Redis is out of memory' : `Redis cannot be asked for keys: ${messageOf(error)}`,
      { cause: error },
    );
  }
}

function* batchesOf<T>(items: readonly T[]): Generator<readonly T[]> {
  for (let i = 0; i < items.length; i += BATCH) yield items.slice(i, i + BATCH);
}

function parseTime(text: string | null): number | null {
  return /^\d{1,15}$/.test(text ?? '') ? Number(text) : null;
}
