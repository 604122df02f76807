/**
 * All copies in Redis, as operators and the sweep see them: how much there is, what is deleted or marked, how long it is kept.
 */
import { z } from 'zod';
import type { PurgeMode } from '../../journal/journal.ts';
import type { RedisLink } from '../../redis/connection.ts';
import { CacheNames } from '../../redis/names.ts';
import { runScript } from '../../redis/script.ts';
import type { Clock } from '../../time/clock.ts';
import type { Address, WorkspaceSet } from '../address.ts';
import type { ChangeOrigin, Dated } from '../change-table.ts';
import type { Measured } from '../entry.ts';
import { isPurged, type PurgeLog, type Tag, type Tagged } from '../purge-log.ts';
import { idIn, KEY_VERSION } from '../request.ts';
import {
  type FlightInspection,
  type Inspection,
  type KeptCopy,
  NO_SWEEP,
  type Pass,
  type SharedCacheAdmin,
  type SweepProgress,
} from '../shared-cache.ts';
import type { CacheClass, TtlPolicy } from '../ttl-policy.ts';
import { unlinkCopiesOf03 } from './copies-of-0.3.ts';
import { type EntryFormat, type EntryPlace, HAS_COPY, parseJson, retentionOf, withOwners } from './entry-format.ts';
import { CLEAR_BESIDE, DELETE, KEEP_LONGER, MARK } from './entry-scripts.ts';
import { seenSchema } from './redis-seen-calls.ts';
import { type LeftCopies, unlinkLeftCopies } from './left-copies.ts';
import type { RollbackGuard } from './rollback-guard.ts';

export interface RedisCopiesOptions {
  readonly cache: RedisLink;
  readonly entries: EntryFormat;
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  /** Until it was read once, nothing that is shared can be judged. */
  readonly purges: Pick<PurgeLog, 'isKnown' | 'position' | 'since' | 'fromShared' | 'noteSwept'>;
  readonly guard: Pick<RollbackGuard, 'addEnding'>;
  readonly left: LeftCopies;
  readonly clock: Clock;
}

/** Names, or keys, asked about at a time. */
const BATCH = 200;
/** Longer than a pass pauses between two notes. */
const SWEEP_SHOWN_MS = 10_000;
const progressSchema = z.object({ passed: z.int().nonnegative(), of: z.int().nonnegative() });

export class RedisCopies implements SharedCacheAdmin {
  readonly #options: RedisCopiesOptions;

  constructor(options: RedisCopiesOptions) {
    this.#options = options;
  }

  isUp(): boolean {
    return this.#options.cache.isUp();
  }

  async ownersOf(key: string): Promise<readonly string[]> {
    this.#assertUsable();
    const { cache, entries } = this.#options;
    const listed = await cache.run((client) => client.hgetall(entries.names.of(key).owners));
    return Object.keys(listed).filter((owner) => listed[owner] === HAS_COPY);
  }

  /** As `RollbackGuard.addEnding`. */
  addEnding(): Promise<readonly number[]> {
    return this.#options.guard.addEnding();
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
    if (isDeleting && purges.position.history === history) await purges.noteSwept(sequence);
    return { entries, bytes, isComplete: true };
  }

  /** For whoever asks at another process. */
  async noteSweep(progress: SweepProgress): Promise<void> {
    const { cache, entries } = this.#options;
    const text = JSON.stringify(progress satisfies SweepProgress);
    await cache.run((client) => client.set(entries.names.sweep, text, 'PX', SWEEP_SHOWN_MS));
  }

  async sweepProgress(): Promise<SweepProgress> {
    this.#assertUp();
    const { cache, entries } = this.#options;
    const text = await cache.run((client) => client.get(entries.names.sweep));
    return (text === null ? null : parseJson(progressSchema, text)) ?? NO_SWEEP;
  }

  async deleteLeft(): Promise<void> {
    this.#assertUp();
    const { cache, entries, left } = this.#options;
    await unlinkCopiesOf03(cache, entries.names);
    await unlinkLeftCopies(left);
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
    isBefore: (copy: Dated) => PurgeMode | null,
  ): Promise<void> {
    this.#assertUsable();
    const { cache, entries } = this.#options;
    const { name } = entries.copyAt({ key, owner });
    const meta = await cache.run((client) => client.hget(name, 'meta'));
    const dated = meta === null ? null : entries.decodeTagged(meta);
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
    const { entries } = this.#options;
    const places = (await this.ownersOf(key)).map((owner) => entries.copyAt({ key, owner }));
    const copies = await Promise.all(places.map((place) => this.#inspectOne(place)));
    const negative = set === null ? null : await this.#inspectOne(entries.negativeAt({ key, owner: set.name }));
    return {
      copies: copies.flatMap(({ kept }) => kept ?? []),
      negative: negative?.kept ?? null,
      isBroken: copies.some(({ isBroken }) => isBroken),
    };
  }

  async #inspectOne(place: EntryPlace): Promise<{ readonly kept: KeptCopy | null; readonly isBroken: boolean }> {
    const { cache, entries, purges } = this.#options;
    const { name } = place;
    const [[meta, body, changed], pttl] = await cache.run((client) =>
      Promise.all([client.hmgetBuffer(name, 'meta', 'body', 'changed'), client.pttl(name)]),
    );
    let isBroken = false;
    const decoded = await entries.decode(place, [meta, body, changed], () => (isBroken = true));
    const stored = decoded === null ? null : purges.fromShared(decoded);
    const bytes = (meta?.length ?? 0) + (body?.length ?? 0);
    return { kept: stored === null ? null : { stored, bytes, keptForMs: leftOf(pttl) }, isBroken };
  }

  async inspectFlight(key: string, set: WorkspaceSet): Promise<FlightInspection> {
    this.#assertUp();
    const { cache, entries } = this.#options;
    const { lease, failure } = entries.names.of(key);
    const [leaseMs, failureMs] = await cache.run((client) =>
      Promise.all([client.pttl(lease(set.name)), client.pttl(failure(set.name))]),
    );
    return { leaseLeftMs: leftOf(leaseMs), hasJustFailed: leftOf(failureMs) !== null };
  }

  async #clearBeside(keys: readonly string[]): Promise<void> {
    const { cache, entries } = this.#options;
    const clear = (key: string): Promise<unknown> => {
      const { owners, seen } = entries.names.of(key);
      return runScript(cache, CLEAR_BESIDE, { keys: [owners, seen], args: [] });
    };
    await Promise.all(keys.map(clear));
  }

  /** The names of all copies of a key. */
  async #copiesOf(key: string): Promise<readonly string[]> {
    const { copy } = this.#options.entries.names.of(key);
    return (await this.ownersOf(key)).map(copy);
  }

  /** Entries, and what lies beside them: `first`, then all. */
  async *#scan(first: readonly string[] = []): AsyncGenerator<readonly string[]> {
    const { cache, entries } = this.#options;
    if (first.length > 0) yield first;
    for (const { name, client: known } of cache.servers()) {
      let cursor = '0';
      do {
        // The link goes over to another client when its secrets change.
        const client = cache.servers().find((server) => server.name === name)?.client ?? known;
        const [next, names] = await client.scan(
          cursor,
          'MATCH',
          entries.names.entryPattern(KEY_VERSION),
          'COUNT',
          BATCH,
        );
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
    const { cache, entries, purges } = this.#options;
    const [meta, bodyBytes] = await cache.run((client) =>
      Promise.all([client.hget(name, 'meta'), client.hstrlen(name, 'body')]),
    );
    const decoded = meta === null ? null : entries.decodeTagged(meta);
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

  /** Deletes what was seen of a call in the workspaces where a hard purge has ended the copies of all of its parts. */
  async #forgetSeen(name: string): Promise<void> {
    const key = CacheNames.seenIn(name);
    if (key === null) return;
    const { cache, purges } = this.#options;
    const seen = await cache.run((client) => client.hgetall(name));
    const tags: readonly Tag[] = ['all', `evaluation:${idIn('evaluation', key)}`];
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
/** PTTL answers with a negative number for what is not there, and for what has no end. */
function leftOf(pttl: number): number | null {
  return pttl < 0 ? null : pttl;
}
