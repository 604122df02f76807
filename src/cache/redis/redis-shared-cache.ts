/**
 * The shared cache in Redis: entries, each under a name of its own, and beside each its negative entries, its lease and
 * the memory of its last failure. Redis may evict any of them at any time.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../../time/clock.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import { largestOf } from '../../redis/value-limit.ts';
import { redisSpan } from '../../tracing/spans.ts';
import { type Keyed, type Measured, type StoredEntry } from '../entry.ts';
import type { MemoryTier } from '../memory-tier.ts';
import { isPurged, LATE_MS, type PurgeLog, type Tag, type Tagged } from '../purge-log.ts';
import { type Reader, workspaceSetOf } from '../reader.ts';
import type {
  FlightInspection,
  Following,
  Inspection,
  LeaseAttempt,
  LeaseRequest,
  Pass,
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
  type EntryReading,
  parseJson,
  retentionOf,
} from './entry-format.ts';
import { FlightChannel, type FlightChannelOptions } from './flight-channel.ts';
import { ACQUIRE, type CallNames, failureSchema, type LeaseOptions, RedisLease } from './leases.ts';

export interface RedisSharedCacheOptions
  extends LeaseOptions, Omit<FlightChannelOptions, 'cache'>, Pick<EntryReading, 'maxAnswerBytes'> {
  readonly clock: Clock;
  readonly memory: MemoryTier;
  /** Until it was read once, nothing that is shared can be judged, nor anything added to it. */
  readonly purges: Pick<PurgeLog, 'isKnown' | 'epoch' | 'since' | 'forgotten' | 'noteSwept'>;
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

/** KEYS: entry. ARGV: its meta. Deletes it unless another one has taken its place. */
const DELETE = defineScript(
  'deleteEntry',
  `
if redis.call('HGET', KEYS[1], 'meta') ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1])
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

  isUp(): boolean {
    return this.#options.cache.isUp();
  }

  isHeard(): boolean {
    return this.#options.cache.subscriber.isUp() || !this.isUp();
  }

  async get(key: string): Promise<StoredEntry | null> {
    this.#assertUsable();
    const { cache: link, names } = this.#options;
    const fields = await link.run((client) => client.hmgetBuffer(names.of(key).entry, 'meta', 'body'));
    return await decodeEntry(this.#placeOf(key), fields);
  }

  async lookUp(key: string, reader: Pick<Reader, 'workspaceIds'>): Promise<Shared> {
    this.#assertUsable();
    const { cache: link, names, purges } = this.#options;
    const { entry, negative } = names.of(key);
    const call = { keys: [entry, negative(workspaceSetOf(reader))], args: workspaceTagsOf(reader) };
    const { forgotten } = purges;
    const reply = await redisSpan('cache', 'EVALSHA look-up', runScript(link, LOOK_UP, call, 'Buffer'));
    const shared = await this.#decode(key, Array.isArray(reply) ? reply : []);
    // A copy that was read before a purge of it was forgotten could not be told from a good one.
    return purges.forgotten === forgotten ? shared : await this.lookUp(key, reader);
  }

  async backfill(entries: readonly Keyed[]): Promise<void> {
    this.#assertUsable();
    const { cache: link, ttl, budget, clock } = this.#options;
    const stores = Promise.all(
      entries.map(async ({ key, stored }) => {
        const { requestedAtMs, answer } = stored.entry;
        const isOnlyReplaced = budget.isOver && answer.kind === 'found';
        const place = this.#placeOf(key);
        const args = [...(await encodeEntry(place, stored, ttl)), requestedAtMs, Number(isOnlyReplaced)];
        if (!link.values.takes(largestOf(args))) return;
        // No lease guards it: a process that was stopped may come so late that a purge of it is forgotten.
        if (clock.nowMs() - requestedAtMs < LATE_MS) await runScript(link, BACKFILL, { keys: [place.name], args });
      }),
    );
    await redisSpan('cache', 'EVALSHA entry', stores, entries.length);
  }

  async acquire({ key, audience, reader, newerThanMs }: LeaseRequest): Promise<LeaseAttempt> {
    this.#assertUsable();
    const { cache: link, leaseMs, purges } = this.#options;
    const { forgotten } = purges;
    const names = this.#callNames(key, audience, workspaceSetOf(reader));
    const token = randomUUID();
    const workspaceTags = workspaceTagsOf(reader);
    const call = {
      keys: [names.lease, names.failure, names.entry, names.negative],
      args: [token, leaseMs, newerThanMs ?? '', ...workspaceTags],
    };
    const reply = await redisSpan('cache', 'EVALSHA lease', runScript(link, ACQUIRE, call, 'Buffer'));
    if (Array.isArray(reply)) {
      // As in `lookUp`: it is asked again.
      if (purges.forgotten !== forgotten) return { status: 'taken', leaseLeftMs: 1 };
      return { status: 'found', found: await this.#decode(key, reply), newestMs: Number(reply[4]) };
    }
    if (typeof reply === 'number') return { status: 'taken', leaseLeftMs: reply };
    const text = Buffer.isBuffer(reply) ? reply.toString() : '';
    if (text === 'OK') {
      const lease = new RedisLease({
        ...this.#options,
        channel: this.#channel,
        key,
        audience,
        names,
        token,
        workspaceTags,
      });
      return { status: 'acquired', lease };
    }
    const failure = parseJson(failureSchema, text);
    return failure === null ? { status: 'taken', leaseLeftMs: leaseMs } : { status: 'failed', failure };
  }

  follow(key: string, audience: string): Following {
    return this.#channel.follow(key, audience);
  }

  async measure(matches: (stored: Tagged) => boolean, pass: Pass = {}): Promise<Measured> {
    this.#assertUsable();
    const { deadline, isDeleting = false, first = [], onBatch } = pass;
    const { names: cacheNames, purges } = this.#options;
    const { history, sequence } = purges.epoch();
    const named = first.map((key) => cacheNames.of(key).entry);
    // A scan may come across a name twice.
    const counted = new Set<string>();
    let [entries, bytes, passed] = [0, 0, 0];
    const visit = async (name: string): Promise<void> => {
      const sizeBytes = await this.#visit(name, matches, isDeleting);
      if (sizeBytes === null) return;
      entries += 1;
      bytes += sizeBytes;
    };
    for await (const names of this.#scan(named)) {
      if (deadline?.aborted === true) return { entries, bytes, isComplete: false };
      // Leases stay: their calls go on, and without one another process would call as well.
      const unseen = names.filter((name) => isEntry(name) && !counted.has(name));
      for (const name of unseen) counted.add(name);
      await Promise.all(unseen.map(visit));
      passed += BATCH;
      await onBatch?.(passed);
    }
    if (isDeleting && purges.epoch().history === history) await purges.noteSwept({ upTo: sequence, entries: 0, of: 0 });
    return { entries, bytes, isComplete: true };
  }

  /** Deletes the copies of these keys that match, negative ones apart. */
  async delete(keys: readonly string[], isOld: (stored: Tagged) => boolean): Promise<void> {
    this.#assertUsable();
    const { names } = this.#options;
    await Promise.all(keys.map((key) => this.#visit(names.of(key).entry, () => false, isOld)));
  }

  /** How many names there are in all, of whatever. */
  async countNames(): Promise<number> {
    const counts = await Promise.all(this.#options.cache.servers().map(({ client }) => client.dbsize()));
    return counts.reduce((sum, count) => sum + count, 0);
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
      await Promise.all(names.filter(isEntry).map((name) => runScript(link, KEEP_LONGER, { keys: [name], args })));
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
    const entry = await decodeEntry({ ...place, onBroken: () => (isBroken = true) }, [meta, body]);
    return {
      entry: kept(entry, keptMs, meta, body),
      negative: kept(await decodeEntry({ ...place, onBroken: () => {} }, [negativeMeta]), negativeKeptMs, negativeMeta),
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

  close(): void {
    this.#channel.close();
  }

  /** The reply of a script: the fields of the entry, when the answer was requested instead, the negative entry's meta. */
  async #decode(key: string, [meta, body, replacedAtMs, negative]: readonly unknown[]): Promise<Shared> {
    const place = this.#placeOf(key);
    return {
      entry: await decodeEntry(place, [meta, body]),
      replacedAtMs: Buffer.isBuffer(replacedAtMs) ? Number(replacedAtMs.toString()) : null,
      negative: await decodeEntry(place, [negative]),
    };
  }

  #placeOf(key: string): EntryReading {
    const { names, cipher, maxAnswerBytes, onBroken } = this.#options;
    return { key, name: names.entry(key), cipher, maxAnswerBytes, onBroken };
  }

  #callNames(key: string, audience: string, workspaceSet: string): CallNames {
    const { entry, negative, lease, failure } = this.#options.names.of(key);
    return { entry, negative: negative(workspaceSet), lease: lease(audience), failure: failure(audience) };
  }

  /** Entries, and what lies beside them: `first`, then all. */
  async *#scan(first: readonly string[] = []): AsyncGenerator<readonly string[]> {
    const { cache, names: cacheNames } = this.#options;
    if (first.length > 0) yield first;
    for (const { name, client: known } of cache.servers()) {
      let cursor = '0';
      do {
        // The link goes over to another client when its secrets change.
        const client = cache.servers().find((server) => server.name === name)?.client ?? known;
        const [next, names] = await client.scan(cursor, 'MATCH', `${cacheNames.entryPattern}*`, 'COUNT', BATCH);
        yield names;
        cursor = next;
      } while (cursor !== '0');
    }
  }

  /**
   * The size of an entry that matches; null for one that doesn't, or that is broken. An absent answer counts by its negative
   * entries only. Deletes it if it is old, or with `true` if a hard purge has ended it.
   */
  async #visit(
    name: string,
    matches: (stored: Tagged) => boolean,
    isOld: boolean | ((stored: Tagged) => boolean),
  ): Promise<number | null> {
    const { cache, purges, onBroken } = this.#options;
    const [meta, bodyBytes] = await cache.run((client) =>
      Promise.all([client.hget(name, 'meta'), client.hstrlen(name, 'body')]),
    );
    const tagged = meta === null ? null : decodeTagged(meta, onBroken);
    if (meta === null || tagged === null) return null;
    const isMatch = matches(tagged);
    const isDeleted = typeof isOld === 'boolean' ? isOld && isPurged(purges, tagged) : isOld(tagged);
    if (isDeleted) await runScript(cache, DELETE, { keys: [name], args: [meta] });
    if (!isMatch || (tagged.isAbsent && name.endsWith('}'))) return null;
    return name.length + Buffer.byteLength(meta) + bodyBytes;
  }

  /** While Redis doesn't answer, every call rejects at once instead of after the time of a command. */
  #assertUp(): void {
    if (!this.isUp()) throw new Error('the cache Redis does not answer');
  }

  #assertUsable(): void {
    this.#assertUp();
    if (!this.#options.purges.isKnown) throw new Error('the purge log was not read yet');
  }
}

/** The copy in these fields, as operators are shown it. */
function kept(stored: StoredEntry | null, pttl: number, ...fields: readonly (Buffer | null | undefined)[]) {
  const bytes = fields.reduce((sum, field) => sum + (field?.length ?? 0), 0);
  return stored === null ? null : { stored, bytes, keptForMs: leftOf(pttl) };
}

/** Whether it is the name of an entry, or of a negative one: leases and failures lie beside them, and are no hashes. */
function isEntry(name: string): boolean {
  return name.endsWith('}') || name.includes('}:absent-');
}

/** PTTL answers with a negative number for what is not there, and for what has no end. */
function leftOf(pttl: number): number | null {
  return pttl < 0 ? null : pttl;
}

/** The tags of the copies that the reader may see, negative entries apart. */
function workspaceTagsOf({ workspaceIds }: Pick<Reader, 'workspaceIds'>): readonly Tag[] {
  return workspaceIds.map((id): Tag => `workspace:${id}`);
}
