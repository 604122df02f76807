/**
 * The shared cache in Redis: the copies of a key, each under the name of its owner, and beside them its negative entries, its
 * leases, the memory of their last failures and the list of its owners. Redis may evict any of them at any time.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { CacheNames } from '../../redis/names.ts';
import { defineScript, runScript } from '../../redis/script.ts';
import { largestOf } from '../../redis/value-limit.ts';
import type { Clock } from '../../time/clock.ts';
import { redisSpan } from '../../tracing/spans.ts';
import { type Address, ownersIn, type WorkspaceSet } from '../address.ts';
import type { ChangeMode, ChangeOrigin, Dated } from '../change-table.ts';
import type { Keyed, Measured } from '../entry.ts';
import { holderOf, type MemoryTier } from '../memory-tier.ts';
import { isPurged, LATE_MS, type PurgeLog, type Tag, type Tagged } from '../purge-log.ts';
import { idIn, KEY_VERSION } from '../request.ts';
import type {
  Backfilled,
  FlightInspection,
  Following,
  Inspection,
  KeptCopy,
  KeptFor,
  Look,
  Looked,
  Pass,
  SharedCache,
  SharedCacheAdmin,
} from '../shared-cache.ts';
import type { CacheClass } from '../ttl-policy.ts';
import { unlinkCopiesOf03 } from './copies-of-0.3.ts';
import {
  decodeEntry,
  decodeTagged,
  encodeEntry,
  ENTRY_LUA,
  type EntryReading,
  FILING_LUA,
  HAS_COPY,
  parseJson,
  retentionOf,
  withOwners,
} from './entry-format.ts';
import { CLEAR_BESIDE, DELETE, KEEP_LONGER, MARK } from './entry-scripts.ts';
import { seenSchema } from './redis-seen-calls.ts';
import { FlightChannel, type FlightChannelOptions } from './flight-channel.ts';
import { failureSchema, type LeaseOptions, LOOK, RedisLease } from './leases.ts';
import type { RollbackGuard } from './rollback-guard.ts';

export interface RedisSharedCacheOptions
  extends LeaseOptions, Omit<FlightChannelOptions, 'cache'>, Pick<EntryReading, 'maxAnswerBytes'> {
  readonly clock: Clock;
  readonly memory: MemoryTier;
  /** Until it was read once, nothing that is shared can be judged, nor anything added to it. */
  readonly purges: Pick<PurgeLog, 'isKnown' | 'position' | 'since' | 'forgotten' | 'fromShared' | 'noteSwept'>;
  readonly guard: Pick<RollbackGuard, 'prove' | 'addEnding'>;
  /** Called for something in the place of an entry that can't be read. It counts as nothing. */
  readonly onBroken: (error: Error) => void;
}

/**
 * KEYS: the key's owners, the copies of some of them. ARGV: the place of the owner that the copy is filed under, its meta, its
 * body, how long it is kept, how long unless it is read alone, how long endings are remembered, whether it may only replace
 * another (1), who brings it, the owners. A copy stays that was still being fetched when the fetch of the new one began; one that
 * takes the place of another that was read counts as read. Returns the status (0: done, 1: too late, 2: there was none), then the
 * owners whose copies have ended.
 */
const BACKFILL = defineScript(
  'backfillCopy',
  `${ENTRY_LUA}${FILING_LUA}
local names, copies = {unpack(ARGV, 9)}, {unpack(KEYS, 2)}
local listed, own, new = listedIn(KEYS[1], names), tonumber(ARGV[1]), cjson.decode(ARGV[2])
local answer = {atMs = new.requestedAtMs, lateMs = ARGV[6], isShort = ARGV[7] == '1'}
local function isSpared(present)
  return present.receivedAtMs >= answer.atMs and not isFromFuture(present.requestedAtMs)
end
local present = listed[own] == '${HAS_COPY}' and read(copies[own])
local isTooLate = isEnded(listed[own], answer.atMs) or present and isSpared(present)
local status = isTooLate and 1 or 0
if not isTooLate and (present or ARGV[7] ~= '1') then
  local wasRead = present and redis.call('HEXISTS', copies[own], 'whole') == 0
  write(copies[own], ARGV[2], ARGV[3], ARGV[4], ARGV[8], not wasRead and ARGV[5] or nil)
  list(KEYS[1], names[own], ARGV[4])
  if not present then status = 2 end
end
return {status, unpack(endOthers(KEYS[1], names, copies, listed, own, answer, isSpared))}
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

  async ownersOf(key: string): Promise<readonly string[]> {
    this.#assertUsable();
    const { cache: link, names } = this.#options;
    const listed = await link.run((client) => client.hgetall(names.of(key).owners));
    return Object.keys(listed).filter((owner) => listed[owner] === HAS_COPY);
  }

  async look(look: Look): Promise<Looked> {
    this.#assertUsable();
    // Sent before the look, on the same connection: it costs no time.
    const proven = this.#options.guard.prove();
    const [looked] = await Promise.all([this.#look(look), proven]);
    return looked.status === 'found' && looked.answer !== null
      ? { ...looked, answer: this.#options.purges.fromShared(looked.answer) }
      : looked;
  }

  async #look(look: Look): Promise<Looked> {
    const { cache: link, leaseMs, purges, names } = this.#options;
    const { kind, key, set, keyId, seenAtMs, isLeaseWanted } = look;
    const { forgotten } = purges;
    const keyNames = names.of(key);
    const owners = ownersIn(kind, set);
    const token = isLeaseWanted ? randomUUID() : '';
    const { lease, failure, negative } = keyNames;
    const call = {
      keys: [lease(set.name), failure(set.name), negative(set.name), keyNames.owners, ...owners.map(keyNames.copy)],
      args: [token, leaseMs, seenAtMs ?? '', ...owners],
    };
    const reply = await redisSpan('cache', 'EVALSHA look-up', runScript(link, LOOK, call, 'Buffer'));
    if (Array.isArray(reply)) {
      // A copy that was read before a purge of it was forgotten could not be told from a good one.
      if (purges.forgotten !== forgotten) return await this.#look(look);
      const [meta, body, changed, newestAtMs, place] = newsSchema.parse(reply);
      const owner = owners[place - 1];
      const address = owner === undefined ? this.#negativeOf(key, set.name) : this.#copyOf(key, owner);
      return { status: 'found', answer: await decodeEntry(address, [meta, body, changed]), seenAtMs: newestAtMs };
    }
    if (reply === null) return { status: 'nothing' };
    if (typeof reply === 'number') return { status: 'taken', leaseLeftMs: reply };
    const text = Buffer.isBuffer(reply) ? reply.toString() : '';
    if (text === 'OK') {
      const holder = holderOf(keyId);
      const parts = { ...this.#options, channel: this.#channel, kind, key, set, holder, keyNames, token };
      return { status: 'leased', lease: new RedisLease(parts) };
    }
    const failed = parseJson(failureSchema, text);
    return failed === null ? { status: 'taken', leaseLeftMs: leaseMs } : { status: 'failed', failure: failed };
  }

  /** As `RollbackGuard.addEnding`. */
  addEnding(): Promise<readonly number[]> {
    return this.#options.guard.addEnding();
  }

  async backfill(entries: readonly Keyed[], { set, keyId }: KeptFor): Promise<readonly Backfilled[]> {
    this.#assertUsable();
    const holder = holderOf(keyId);
    const results = Promise.all(entries.map((entry) => this.#backfillOne(entry, set, holder)));
    return await redisSpan('cache', 'EVALSHA entry', results, entries.length);
  }

  async #backfillOne({ key, stored }: Keyed, set: WorkspaceSet, holder: string): Promise<Backfilled> {
    const { cache: link, names, ttl, budget, clock } = this.#options;
    const { owner, entry } = stored;
    const owners = set.ids.includes(owner) ? set.ids : [owner];
    const [meta, body, keepMs, briefMs] = await encodeEntry(this.#copyOf(key, owner), stored, ttl);
    const copy = { holder, bytes: meta.length + body.length, isBackfill: true };
    const isAdmitted = budget.admit(copy);
    const place = owners.indexOf(owner) + 1;
    const args = [place, meta, body, keepMs, briefMs, LATE_MS, Number(!isAdmitted), holder, ...owners];
    if (!link.values.takes(largestOf(args))) return { isTooLate: false, ended: [] };
    // No lease guards it: a process that was stopped may come so late that a purge of it is forgotten.
    if (clock.nowMs() - entry.requestedAtMs >= LATE_MS) return { isTooLate: true, ended: [] };
    const keyNames = names.of(key);
    const reply = await runScript(link, BACKFILL, { keys: [keyNames.owners, ...owners.map(keyNames.copy)], args });
    const [status, ...ended] = backfilledSchema.parse(reply);
    if (isAdmitted && status !== 2) budget.giveBack(copy);
    return { isTooLate: status === 1, ended };
  }

  follow(key: string, set: WorkspaceSet): Following {
    return this.#channel.follow(key, set.name);
  }

  async measure(matches: (stored: Tagged) => boolean, pass: Pass = {}): Promise<Measured> {
    this.#assertUsable();
    const { deadline, isDeleting = false, first = [], onBatch } = pass;
    const { purges } = this.#options;
    const { history, sequence } = purges.position;
    const named = (await Promise.all(first.map((key) => this.#copiesOf(key)))).flat();
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
      const unseen = names.filter((name) => CacheNames.isEntry(name) && !counted.has(name));
      for (const name of unseen) counted.add(name);
      await Promise.all(unseen.map(visit));
      if (isDeleting) await Promise.all(names.map((name) => this.#forgetSeen(name)));
      passed += BATCH;
      await onBatch?.(passed);
    }
    if (isDeleting) await this.#clearBeside(first);
    if (isDeleting && purges.position.history === history)
      await purges.noteSwept({ upTo: sequence, entries: 0, of: 0 });
    return { entries, bytes, isComplete: true };
  }

  async deleteEarlier(): Promise<void> {
    this.#assertUp();
    await unlinkCopiesOf03(this.#options.cache, this.#options.names);
  }

  /** Deletes the copies of these keys that match, negative ones apart. */
  async delete(keys: readonly string[], isOld: (stored: Tagged) => boolean): Promise<void> {
    this.#assertUsable();
    const names = await Promise.all(keys.map((key) => this.#copiesOf(key)));
    await Promise.all(names.flat().map((name) => this.#visit(name, () => false, isOld)));
    await this.#clearBeside(keys);
  }

  /** Has the copy there bear the mark of a change, if it is from before it; deletes it if that was hard. */
  async mark(
    { key, owner }: Address,
    changed: ChangeOrigin,
    isBefore: (copy: Dated) => ChangeMode | null,
  ): Promise<void> {
    this.#assertUsable();
    const { cache, names, onBroken } = this.#options;
    const name = names.of(key).copy(owner);
    const meta = await cache.run((client) => client.hget(name, 'meta'));
    const dated = meta === null ? null : decodeTagged(meta, onBroken);
    const mode = dated === null ? null : isBefore(dated);
    if (meta === null || mode === null) return;
    if (mode === 'hard') await runScript(cache, DELETE, { keys: withOwners(name), args: [meta, owner] });
    else await runScript(cache, MARK, { keys: [name], args: [meta, changed] });
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
      const entries = names.filter((name) => CacheNames.isEntry(name));
      await Promise.all(entries.map((name) => runScript(link, KEEP_LONGER, { keys: withOwners(name), args })));
    }
  }

  async inspect(key: string, set: WorkspaceSet | null): Promise<Inspection> {
    this.#assertUp();
    const places = (await this.ownersOf(key)).map((owner) => this.#copyOf(key, owner));
    const copies = await Promise.all(places.map((place) => this.#inspectOne(place)));
    const negative = set === null ? null : await this.#inspectOne(this.#negativeOf(key, set.name));
    return {
      copies: copies.flatMap(({ kept }) => kept ?? []),
      negative: negative?.kept ?? null,
      isBroken: copies.some(({ isBroken }) => isBroken),
    };
  }

  async #inspectOne(place: EntryReading): Promise<{ readonly kept: KeptCopy | null; readonly isBroken: boolean }> {
    const { name } = place;
    const [[meta, body, changed], pttl] = await this.#options.cache.run((client) =>
      Promise.all([client.hmgetBuffer(name, 'meta', 'body', 'changed'), client.pttl(name)]),
    );
    let isBroken = false;
    const decoded = await decodeEntry({ ...place, onBroken: () => (isBroken = true) }, [meta, body, changed]);
    const stored = decoded === null ? null : this.#options.purges.fromShared(decoded);
    const bytes = (meta?.length ?? 0) + (body?.length ?? 0);
    return { kept: stored === null ? null : { stored, bytes, keptForMs: leftOf(pttl) }, isBroken };
  }

  async inspectFlight(key: string, set: WorkspaceSet): Promise<FlightInspection> {
    this.#assertUp();
    const { cache: link, names } = this.#options;
    const { lease, failure } = names.of(key);
    const [leaseMs, failureMs] = await link.run((client) =>
      Promise.all([client.pttl(lease(set.name)), client.pttl(failure(set.name))]),
    );
    return { leaseLeftMs: leftOf(leaseMs), hasJustFailed: leftOf(failureMs) !== null };
  }

  close(): void {
    this.#channel.close();
  }

  #copyOf(key: string, owner: string): EntryReading {
    const { names, cipher, maxAnswerBytes, onBroken } = this.#options;
    return { key, owner, name: names.of(key).copy(owner), cipher, maxAnswerBytes, onBroken };
  }

  #negativeOf(key: string, owner: string): EntryReading {
    return { ...this.#copyOf(key, owner), name: this.#options.names.of(key).negative(owner) };
  }

  async #clearBeside(keys: readonly string[]): Promise<void> {
    const { cache: link, names } = this.#options;
    const clear = (key: string): Promise<unknown> => {
      const { owners, seen } = names.of(key);
      return runScript(link, CLEAR_BESIDE, { keys: [owners, seen], args: [] });
    };
    await Promise.all(keys.map(clear));
  }

  /** The names of all copies of a key. */
  async #copiesOf(key: string): Promise<readonly string[]> {
    const { copy } = this.#options.names.of(key);
    return (await this.ownersOf(key)).map(copy);
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
        const [next, names] = await client.scan(cursor, 'MATCH', cacheNames.entryPattern(KEY_VERSION), 'COUNT', BATCH);
        yield names;
        cursor = next;
      } while (cursor !== '0');
    }
  }

  /**
   * The size of an entry that matches; null for one that doesn't, or that is broken. Deletes it if it is old, or with `true` if
   * a hard purge has ended it.
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
    const decoded = meta === null ? null : decodeTagged(meta, onBroken);
    if (meta === null || decoded === null) return null;
    const tagged = purges.fromShared(decoded);
    const isMatch = matches(tagged);
    const isDeleted = typeof isOld === 'boolean' ? isOld && isPurged(purges, tagged) : isOld(tagged);
    if (isDeleted) {
      const { owner = '' } = CacheNames.copyIn(name) ?? {};
      await runScript(cache, DELETE, { keys: withOwners(name), args: [meta, owner] });
    }
    if (!isMatch) return null;
    return name.length + Buffer.byteLength(meta) + bodyBytes;
  }

  /** Deletes what was seen of a call in the workspaces where a hard purge has ended its copies. */
  async #forgetSeen(name: string): Promise<void> {
    const key = CacheNames.seenIn(name);
    if (key === null) return;
    const { cache, purges } = this.#options;
    const seen = await cache.run((client) => client.hgetall(name));
    const tags: readonly Tag[] = ['all', 'class:evaluation', `evaluation:${idIn('evaluation', key)}`];
    const ended = Object.entries(seen).filter(([workspace, text]) => {
      const position = parseJson(seenSchema, text)?.position;
      return position !== undefined && isPurged(purges, { position, tags: [...tags, `workspace:${workspace}`] });
    });
    if (ended.length > 0) await cache.run((client) => client.hdel(name, ...ended.map(([workspace]) => workspace)));
  }

  /** While Redis doesn't answer, every call rejects at once instead of after the time of a command. */
  #assertUp(): void {
    if (!this.isUp()) throw new Error('the cache Redis does not answer');
  }

  #assertUsable(): void {
    this.#assertUp();
    if (!this.#options.purges.isKnown) throw new Error('the journal was not read yet');
  }
}

const newsSchema = z.tuple([
  z.instanceof(Buffer),
  z.instanceof(Buffer).nullable(),
  z.instanceof(Buffer).nullable(),
  z.instanceof(Buffer).transform((text) => Number(text.toString())),
  z.int(),
]);
const backfilledSchema = z.tuple([z.int()], z.string());

/** PTTL answers with a negative number for what is not there, and for what has no end. */
function leftOf(pttl: number): number | null {
  return pttl < 0 ? null : pttl;
}
