/**
 * The shared cache in Redis: the copies of a key, each under the name of its owner, and beside them its negative entries, its
 * leases, the memory of their last failures and the list of its owners. Redis may evict any of them at any time.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { inCalls, parseReply, runScript } from '../../redis/script.ts';
import type { Clock } from '../../time/clock.ts';
import { redisSpan } from '../../tracing/spans.ts';
import { ownersIn, type WorkspaceSet } from '../address.ts';
import type { Keyed } from '../entry.ts';
import { holderOf } from '../memory-tier.ts';
import { LATE_MS, type PurgeLog } from '../purge-log.ts';
import type { Backfilled, Following, KeptFor, Look, Looked, SharedCache } from '../shared-cache.ts';
import {
  BACKFILL,
  type BackfillArgs,
  type BackfillRecord,
  type BackfillReply,
  LOOK,
  type LookArgs,
} from './call-scripts.ts';
import { parseJson } from './entry-format.ts';
import { failureSchema, filedSchema, type LeaseOptions, RedisLease } from './leases.ts';
import { lastSeenIn } from './redis-seen-calls.ts';
import type { NewCopy } from './budget.ts';
import type { RollbackGuard } from './rollback-guard.ts';

export interface RedisSharedCacheOptions {
  /** The parts that every lease needs. */
  readonly leases: LeaseOptions;
  /** Until it was read once, nothing that is shared can be judged, nor anything added to it. */
  readonly purges: Pick<PurgeLog, 'isKnown' | 'forgotten' | 'fromShared'>;
  readonly guard: Pick<RollbackGuard, 'prove'>;
  readonly clock: Pick<Clock, 'nowMs'>;
}

/** A record of a list, ready for the script that files it. */
interface ToFile {
  readonly record: BackfillRecord;
  readonly meta: string;
  readonly body: Buffer;
  readonly keys: readonly string[];
  /** The copy as the budget counts it, and whether it was admitted. */
  readonly copy: NewCopy;
  readonly isAdmitted: boolean;
}

/** The end of the backfill of a record that is too large for Redis. */
const NOT_FILED: Backfilled = { isTooLate: false, ended: [] };

export class RedisSharedCache implements SharedCache {
  readonly #options: RedisSharedCacheOptions;

  constructor(options: RedisSharedCacheOptions) {
    this.#options = options;
  }

  isHeard(): boolean {
    const { cache } = this.#options.leases;
    return cache.subscriber.isUp() || !cache.isUp();
  }

  async look(look: Look): Promise<Looked> {
    this.#assertUsable();
    // Sent before the look, on the same connection: it costs no time.
    const proven = this.#options.guard.prove();
    const [looked, proof] = await Promise.allSettled([this.#look(look), proven]);
    if (looked.status === 'rejected') throw looked.reason;
    const { value } = looked;
    if (proof.status === 'rejected') {
      // No flight would know of the lease, and end it: it would be renewed for ever.
      if (value.status === 'leased') await value.lease.release().catch(() => undefined);
      throw proof.reason;
    }
    return value.status === 'found' && value.answer !== null
      ? { ...value, answer: this.#options.purges.fromShared(value.answer) }
      : value;
  }

  async #look(look: Look): Promise<Looked> {
    const { purges, leases } = this.#options;
    const { cache, entries, leaseMs } = leases;
    const { kind, key, set, keyId, seenAtMs, isLeaseWanted } = look;
    const { forgotten } = purges;
    const names = entries.names.of(key);
    const owners = ownersIn(kind, set);
    const token = randomUUID();
    const args: LookArgs = {
      token: isLeaseWanted ? token : undefined,
      leaseMs,
      seenAtMs: seenAtMs ?? undefined,
      owners,
      isSeenWanted: kind === 'evaluation',
    };
    const beside = [names.lease(set.name), names.failure(set.name), names.negative(set.name), names.owners, names.seen];
    const asked = { keys: [...beside, ...owners.map(names.copy)], args: [JSON.stringify(args)] };
    const reply = await redisSpan('cache', 'EVALSHA look-up', runScript(cache, LOOK, asked, 'Buffer'));
    const [about, ...fields] = replySchema.parse(reply);
    const looked = parseReply(lookedSchema, about);
    if (looked.status === 'found') {
      // A copy that was read before a purge of it was forgotten could not be told from a good one.
      if (purges.forgotten !== forgotten) return await this.#look(look);
      const owner = owners[looked.place - 1];
      const place = owner === undefined ? entries.negativeAt({ key, owner: set.name }) : entries.copyAt({ key, owner });
      return { status: 'found', answer: await entries.decode(place, fields), seenAtMs: looked.seenAtMs };
    }
    if (looked.status === 'leased') {
      const lastSeen = args.isSeenWanted ? lastSeenIn(looked.lastSeen) : null;
      const call = { kind, key, set, names, holder: holderOf(keyId), token, lastSeen };
      return { status: 'leased', lease: new RedisLease(call, leases) };
    }
    if (looked.status !== 'failed') return looked;
    const failure = parseJson(failureSchema, String(fields[0]));
    return failure === null ? { status: 'taken', leaseLeftMs: leaseMs } : { status: 'failed', failure };
  }

  async backfill(entries: readonly Keyed[], { set, keyId }: KeptFor): Promise<readonly Backfilled[]> {
    this.#assertUsable();
    const { cache } = this.#options.leases;
    const holder = holderOf(keyId);
    const filed = await Promise.all(entries.map((entry) => this.#toFile(entry, set, holder)));
    const calls = inCalls(
      cache,
      filed.filter((one) => 'record' in one),
    );
    const results = Promise.all(calls.map((records) => this.#file(records, holder)));
    const replies = (await redisSpan('cache', 'EVALSHA entry', results, calls.length)).flat().values();
    return filed.map((one) => ('record' in one ? (replies.next().value ?? NOT_FILED) : one));
  }

  /** The record of a list as the script files it, or what becomes of it without. */
  async #toFile({ key, stored }: Keyed, set: WorkspaceSet, holder: string): Promise<ToFile | Backfilled> {
    const { leases, clock } = this.#options;
    const { cache, entries, budget } = leases;
    const { owner, entry } = stored;
    const names = entries.names.of(key);
    const at = { key, owner, name: names.copy(owner) };
    const { meta, body, keepMs, briefMs } = await entries.encode(at, stored);
    if (!cache.values.takes(body.length)) return NOT_FILED;
    // No lease guards it: a process that was stopped may come so late that a purge of it is forgotten.
    if (clock.nowMs() - entry.requestedAtMs >= LATE_MS) return { isTooLate: true, ended: [] };
    const copy = { holder, bytes: meta.length + body.length, isBackfill: true };
    const isAdmitted = budget.admit(copy);
    const owners = set.ids.includes(owner) ? set.ids : [owner];
    const filing = isAdmitted ? 'always' : 'replace';
    const place = owners.indexOf(owner) + 1;
    const { requestedAtMs } = entry;
    const record: BackfillRecord = { requestedAtMs, place, owners, keepMs, briefMs, filing };
    return { record, meta, body, keys: [names.owners, ...owners.map(names.copy)], copy, isAdmitted };
  }

  async #file(filed: readonly ToFile[], holder: string): Promise<readonly Backfilled[]> {
    const { cache, budget } = this.#options.leases;
    const about: BackfillArgs = { records: filed.map(({ record }) => record), lateMs: LATE_MS, by: holder };
    const args = [JSON.stringify(about), ...filed.flatMap(({ meta, body }) => [meta, body])];
    const reply = await runScript(cache, BACKFILL, { keys: filed.flatMap(({ keys }) => keys), args });
    return parseReply(backfilledSchema, reply).map(({ isTooLate, isAdded, ended }, index) => {
      const one = filed[index];
      if (one?.isAdmitted === true && !isAdded) budget.giveBack(one.copy);
      return { isTooLate, ended };
    });
  }

  follow(key: string, set: WorkspaceSet): Following {
    return this.#options.leases.channel.follow(key, set.name);
  }

  /** While Redis doesn't answer, every call rejects at once instead of after the time of a command. */
  #assertUsable(): void {
    if (!this.#options.leases.cache.isUp()) throw new Error('the cache Redis does not answer');
    if (!this.#options.purges.isKnown) throw new Error('the journal was not read yet');
  }
}

/** JSON, and what is sent as it is filed. */
const replySchema = z.array(z.unknown());
const lookedSchema = z.discriminatedUnion('status', [
  z.object({ status: z.literal('found'), seenAtMs: z.number(), place: z.int() }),
  z.object({ status: z.literal('failed') }),
  z.object({ status: z.literal('taken'), leaseLeftMs: z.int() }),
  z.object({ status: z.literal('leased'), lastSeen: z.record(z.string(), z.string()) }),
  z.object({ status: z.literal('nothing') }),
]);
const backfilledSchema = z.array(filedSchema.extend({ isTooLate: z.boolean() }) satisfies z.ZodType<BackfillReply>);
