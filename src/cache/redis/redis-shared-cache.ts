/**
 * The shared cache in Redis: entries, each under a name of its own, and beside each its negative entries, its lease and
 * the memory of its last failure. Redis may evict any of them at any time.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../time/clock.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import { redisSpan } from '../../tracing/spans.ts';
import { type Keyed, type Measured, type StoredEntry, workspaceIn } from '../entry.ts';
import type { Tagged } from '../purge-log.ts';
import type { MemoryTier } from '../memory-tier.ts';
import type { Tag } from '../purge-log.ts';
import { type Reader, workspaceSetOf } from '../reader.ts';
import type {
  FlightInspection,
  Following,
  Inspection,
  LeaseAttempt,
  LeaseRequest,
  Shared,
  SharedCache,
  SharedCacheAdmin,
} from '../shared-cache.ts';
import type { CacheClass } from '../ttl-policy.ts';
import {
  decodeEntry,
  decodeTagged,
  encodeEntry,
  ENTRY_LUA,
  type EntryPlace,
  parseJson,
  retentionOf,
} from './entry-format.ts';
import { FlightChannel, type FlightChannelOptions } from './flight-channel.ts';
import { ACQUIRE, type CallNames, failureSchema, type LeaseOptions, RedisLease } from './leases.ts';

export interface RedisSharedCacheOptions extends LeaseOptions, Omit<FlightChannelOptions, 'cache'> {
  readonly clock: Clock;
  readonly memory: MemoryTier;
  /** Whether the purge log was ever read. Before, nothing that is shared can be judged, nor anything added to it. */
  readonly isPurgeLogKnown: () => boolean;
  /** Called for something in the place of an entry that can't be read. It counts as nothing. */
  readonly onBroken: (error: Error) => void;
}

/**
 * KEYS: entry, negative entry. ARGV: the tags of the reader's workspaces. Returns meta and body if the reader may see the
 * record, else when it was requested; and the meta of the negative entry. An answer that is not for the reader is not even
 * sent: the time that it takes would show in the time of a 404 (K7a: a foreign record looks like none).
 */
const LOOK_UP = defineScript(
  'lookUpEntry',
  `${ENTRY_LUA}
local reply, present = {false, false, false, false}, read(KEYS[1])
if present and not isVisible(present, 1) then
  reply[3] = timeOf(present)
elseif redis.call('TYPE', KEYS[1]).ok == 'hash' then
  local fields = redis.call('HMGET', KEYS[1], 'meta', 'body')
  reply[1], reply[2] = fields[1], fields[2]
end
if redis.call('TYPE', KEYS[2]).ok == 'hash' then reply[4] = redis.call('HGET', KEYS[2], 'meta') end
return reply
`,
);

/**
 * KEYS: entry. ARGV: meta, body, how long it is kept, when it was requested, 1 if an entry may only be replaced. An entry
 * stays that was still being fetched when the fetch of the new one began.
 */
const BACKFILL = defineScript(
  'backfillEntry',
  `${ENTRY_LUA}
local present = read(KEYS[1])
if present and present.fetchedAtMs >= tonumber(ARGV[4]) and not isFromFuture(present) then return 0 end
if not present and ARGV[5] == '1' then return 0 end
write(KEYS[1], ARGV[1], ARGV[2], ARGV[3])
return 1
`,
);

/**
 * KEYS: entry. ARGV: the Retention of some classes as JSON, by class, and the time. Such an entry is kept so long, if it is
 * not kept longer anyway. Returns whether it was changed.
 */
const KEEP_LONGER = defineScript(
  'keepEntryLonger',
  `${ENTRY_LUA}
local entry = read(KEYS[1])
if not entry or type(entry.answer) ~= 'table' then return 0 end
local class = entry.answer.kind == 'absent' and 'notFound' or entry.kind
local retention = cjson.decode(ARGV[1])[class]
if not retention then return 0 end
local longestMs = math.min(entry.filledAtMs + retention.longestMs, retention.untilMs)
local keepMs = math.max(entry.filledAtMs + retention.lastingMs, longestMs) - tonumber(ARGV[2])
if keepMs <= redis.call('PTTL', KEYS[1]) then return 0 end
return redis.call('PEXPIRE', KEYS[1], string.format('%.0f', keepMs))
`,
);

/** Names, or keys, asked about at a time. */
const BATCH = 200;

export class RedisSharedCache implements SharedCache, SharedCacheAdmin {
  readonly #options: RedisSharedCacheOptions;
  readonly #channel: FlightChannel;

  constructor(options: RedisSharedCacheOptions) {
    this.#options = options;
    this.#channel = new FlightChannel(options);
  }

  async get(key: string): Promise<StoredEntry | null> {
    this.#assertUsable();
    const { cache: link, names, onBroken } = this.#options;
    const fields = await link.run((client) => client.hmgetBuffer(names.of(key).entry, 'meta', 'body'));
    return await decodeEntry(this.#placeOf(key), fields, onBroken);
  }

  async lookUp(key: string, reader: Pick<Reader, 'workspaceIds'>): Promise<Shared> {
    this.#assertUsable();
    const { cache: link, names } = this.#options;
    const { entry, negative } = names.of(key);
    const call = { keys: [entry, negative(workspaceSetOf(reader))], args: workspaceTagsOf(reader) };
    const reply = await redisSpan('cache', 'EVALSHA look-up', runScript(link, LOOK_UP, call, 'Buffer'));
    return await this.#decode(key, Array.isArray(reply) ? reply : []);
  }

  async backfill(entries: readonly Keyed[]): Promise<void> {
    this.#assertUsable();
    const { cache: link, ttl, budget } = this.#options;
    const stores = Promise.all(
      entries.map(async ({ key, stored }) => {
        const isOnlyReplaced = budget.isOver && stored.entry.answer.kind === 'found';
        const place = this.#placeOf(key);
        const encoded = await encodeEntry(place, stored, ttl);
        const args = [...encoded, stored.entry.requestedAtMs, Number(isOnlyReplaced)];
        await runScript(link, BACKFILL, { keys: [place.name], args });
      }),
    );
    await redisSpan('cache', 'EVALSHA entry', stores, entries.length);
  }

  async acquire({ key, audience, reader, newerThanMs }: LeaseRequest): Promise<LeaseAttempt> {
    this.#assertUsable();
    const { cache: link, leaseMs } = this.#options;
    const names = this.#callNames(key, audience, workspaceSetOf(reader));
    const token = randomUUID();
    const call = {
      keys: [names.lease, names.failure, names.entry, names.negative],
      args: [token, leaseMs, newerThanMs ?? '', ...workspaceTagsOf(reader)],
    };
    const reply = await redisSpan('cache', 'EVALSHA lease', runScript(link, ACQUIRE, call, 'Buffer'));
    if (Array.isArray(reply)) {
      return { status: 'found', found: await this.#decode(key, reply), newestMs: Number(reply[4]) };
    }
    if (typeof reply === 'number') return { status: 'taken', leaseLeftMs: reply };
    const text = Buffer.isBuffer(reply) ? reply.toString() : '';
    if (text === 'OK') {
      const lease = new RedisLease({ ...this.#options, channel: this.#channel, key, audience, names, token });
      return { status: 'acquired', lease };
    }
    const failure = parseJson(failureSchema, text);
    return failure === null ? { status: 'taken', leaseLeftMs: leaseMs } : { status: 'failed', failure };
  }

  follow(key: string, audience: string): Following {
    return this.#channel.follow(key, audience);
  }

  async measure(matches: (stored: Tagged) => boolean, deadline?: AbortSignal): Promise<Measured> {
    this.#assertUsable();
    // A scan may come across a name twice.
    const counted = new Set<string>();
    let entries = 0;
    let bytes = 0;
    for await (const names of this.#scan()) {
      if (deadline?.aborted === true) return { entries, bytes, isComplete: false };
      const unseen = names.filter((name) => !counted.has(name));
      for (const name of unseen) counted.add(name);
      for (const sizeBytes of await Promise.all(unseen.map((name) => this.#sizeIf(name, matches)))) {
        if (sizeBytes === null) continue;
        entries += 1;
        bytes += sizeBytes;
      }
    }
    return { entries, bytes, isComplete: true };
  }

  /**
   * Keeps the entries of these classes as long as the TTLs in force want it, also those that were filled when they were shorter
   * (C6a: longer times apply to stored copies). Looks at every entry. It changes when an entry is cleared away, not how long it
   * is served.
   */
  async keepLonger(classes: readonly CacheClass[]): Promise<void> {
    this.#assertUp();
    const { cache: link, clock, ttl } = this.#options;
    const retentions = classes.map((cacheClass) => [cacheClass, retentionOf(ttl.stateOf(cacheClass))] as const);
    const args = [JSON.stringify(Object.fromEntries(retentions)), clock.nowMs()];
    for await (const names of this.#scan()) {
      await Promise.all(names.map((name) => runScript(link, KEEP_LONGER, { keys: [name], args })));
    }
  }

  async inspect(key: string, workspaceSet: string | null): Promise<Inspection> {
    this.#assertUp();
    const { cache: link, names } = this.#options;
    const { entry: entryName, negative } = names.of(key);
    const negativeName = negative(workspaceSet ?? '');
    const [[meta, body], keptMs, negativeMeta, negativeKeptMs] = await link.run((client) =>
      Promise.all([
        client.hmgetBuffer(entryName, 'meta', 'body'),
        client.pttl(entryName),
        client.hgetBuffer(negativeName, 'meta'),
        client.pttl(negativeName),
      ]),
    );
    let isBroken = false;
    const place = this.#placeOf(key);
    const entry = await decodeEntry(place, [meta, body], () => (isBroken = true));
    return {
      entry: kept(entry, keptMs, meta, body),
      negative: kept(await decodeEntry(place, [negativeMeta], () => {}), negativeKeptMs, negativeMeta),
      isBroken,
    };
  }

  async inspectFlight(key: string, audience: string): Promise<FlightInspection> {
    this.#assertUp();
    const { cache: link, names } = this.#options;
    const { lease, failure } = names.of(key);
    const [leaseMs, failureMs] = await link.run((client) =>
      Promise.all([client.pttl(lease(audience)), client.pttl(failure(audience))]),
    );
    return { leaseLeftMs: leftOf(leaseMs), hasJustFailed: leftOf(failureMs) !== null };
  }

  /**
   * Drops from memory every entry of which Redis has a newer one: for the time in which this process could not be notified
   * of what others stored. Rejects if Redis can't be asked any more.
   */
  async recheck(): Promise<void> {
    const keys = this.#options.memory.keys();
    for (let i = 0; i < keys.length; i += BATCH) {
      await Promise.all(keys.slice(i, i + BATCH).map((key) => this.#recheck(key)));
    }
  }

  close(): void {
    this.#channel.close();
  }

  /** The reply of a script: the fields of the entry, when the answer was requested instead, the negative entry's meta. */
  async #decode(key: string, [meta, body, replacedAtMs, negative]: readonly unknown[]): Promise<Shared> {
    const { onBroken } = this.#options;
    const place = this.#placeOf(key);
    return {
      entry: await decodeEntry(place, [meta, body], onBroken),
      replacedAtMs: Buffer.isBuffer(replacedAtMs) ? Number(replacedAtMs.toString()) : null,
      negative: await decodeEntry(place, [negative], onBroken),
    };
  }

  async #recheck(key: string): Promise<void> {
    const { cache: link, memory, names, onBroken } = this.#options;
    const meta = await link.run((client) => client.hget(names.of(key).entry, 'meta'));
    const shared = meta === null ? null : decodeTagged(meta, onBroken);
    if (shared === null) return;
    memory.deleteOlder(key, { filledAtMs: shared.requestedAtMs, workspaceId: workspaceIn(shared) });
  }

  #placeOf(key: string): EntryPlace {
    const { names, cipher } = this.#options;
    return { key, name: names.entry(key), cipher };
  }

  #callNames(key: string, audience: string, workspaceSet: string): CallNames {
    const { entry, negative, lease, failure } = this.#options.names.of(key);
    return { entry, negative: negative(workspaceSet), lease: lease(audience), failure: failure(audience) };
  }

  /** Entries and negative entries; everything else that lies beside an entry is no hash. */
  async *#scan(): AsyncGenerator<readonly string[]> {
    const { cache, names: cacheNames } = this.#options;
    for (const { client } of cache.servers()) {
      let cursor = '0';
      do {
        const [next, names] = await client.scan(
          cursor,
          'MATCH',
          `${cacheNames.entryPattern}*`,
          'COUNT',
          BATCH,
          'TYPE',
          'hash',
        );
        yield names;
        cursor = next;
      } while (cursor !== '0');
    }
  }

  /** Null for one that doesn't match, or that is broken. An absent answer counts by its negative entries only. */
  async #sizeIf(name: string, matches: (stored: Tagged) => boolean): Promise<number | null> {
    const [meta, bodyBytes] = await this.#options.cache.run((client) =>
      Promise.all([client.hget(name, 'meta'), client.hstrlen(name, 'body')]),
    );
    const tagged = meta === null ? null : decodeTagged(meta, this.#options.onBroken);
    if (meta === null || tagged === null || !matches(tagged)) return null;
    if (tagged.isAbsent && name.endsWith('}')) return null;
    return name.length + Buffer.byteLength(meta) + bodyBytes;
  }

  /** While Redis doesn't answer, every call rejects at once instead of after the time of a command. */
  #assertUp(): void {
    if (!this.#options.cache.isUp()) throw new Error('the cache Redis does not answer');
  }

  #assertUsable(): void {
    this.#assertUp();
    if (!this.#options.isPurgeLogKnown()) throw new Error('the purge log was not read yet');
  }
}

/** The copy in these fields, as operators are shown it. */
function kept(stored: StoredEntry | null, pttl: number, ...fields: readonly (Buffer | null | undefined)[]) {
  const bytes = fields.reduce((sum, field) => sum + (field?.length ?? 0), 0);
  return stored === null ? null : { stored, bytes, keptForMs: leftOf(pttl) };
}

/** PTTL answers with a negative number for what is not there, and for what has no end. */
function leftOf(pttl: number): number | null {
  return pttl < 0 ? null : pttl;
}

/** The tags of the copies that the reader may see, negative entries apart. */
function workspaceTagsOf({ workspaceIds }: Pick<Reader, 'workspaceIds'>): readonly Tag[] {
  return workspaceIds.map((id): Tag => `workspace:${id}`);
}
