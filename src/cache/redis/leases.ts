/**
 * Leases in the cache Redis, each beside the copies that it is about, in the same slot. A lease is a random token under a
 * name that expires; every script first checks that the token is still there, so a process that was paused past its lease
 * can neither store nor end anything.
 *
 * At most one call is under way for a key and a set of workspaces, unless
 * - the holder is paused, or cut off from Redis, past its lease (2 s): one further call; the late answer is stored nowhere
 * - Redis loses the lease (a failover, an eviction): one further call, as above
 * - Redis does not answer a process: that process calls for itself, and keeps the answer in its own memory
 * - another release runs beside this one over the same Redis: 0.3 names its leases differently
 */
import { z } from 'zod';
import type { RedisLink } from '../../redis/connection.ts';
import type { CacheKeyNames } from '../../redis/names.ts';
import { parseReply, type RedisScript, runScript, type ScriptArgument } from '../../redis/script.ts';
import type { Timers } from '../../time/timers.ts';
import { redisSpan } from '../../tracing/spans.ts';
import type { ResourceKind } from '../../upstream/resources.ts';
import { isStoreErrorKind, type StoreErrorKind } from '../../upstream/store-error.ts';
import { ownersIn, type WorkspaceSet } from '../address.ts';
import type { StoredEntry } from '../entry.ts';
import { LATE_MS } from '../purge-log.ts';
import {
  type Completion,
  COMPLETION_STATUSES,
  REMEMBER_FAILURES_MS,
  type FlightFailure,
  type Lease,
  type LastSeenOf,
} from '../shared-cache.ts';
import type { Sighting } from '../seen-calls.ts';
import type { TtlPolicy } from '../ttl-policy.ts';
import type { RedisBudget } from './budget.ts';
import { COMPLETE, type CompletionArgs, type CompletionReply, END, type EndArgs, RENEW } from './call-scripts.ts';
import type { EntryFormat, EntryPlace } from './entry-format.ts';
import type { FlightChannel } from './flight-channel.ts';
import { seenNoteOf, type SeenNote } from './redis-seen-calls.ts';

export interface LeaseOptions {
  readonly cache: RedisLink;
  readonly entries: EntryFormat;
  readonly channel: FlightChannel;
  readonly ttl: Pick<TtlPolicy, 'stateOf'>;
  /** Says which copies are stored where there is none; negative entries always are. */
  readonly budget: Pick<RedisBudget, 'admit' | 'giveBack' | 'admitSeen'>;
  readonly timers: Timers;
  /** How long a lease holds without being renewed. */
  readonly leaseMs: number;
}

/** How a call failed, as JSON. */
export const failureSchema = z.object({
  kind: z.custom<StoreErrorKind>(isStoreErrorKind),
  message: z.string(),
  retryAfterMs: z.number().nullable(),
  status: z.int().nullable(),
  workspaceId: z.string().nullable().default(null),
}) satisfies z.ZodType<FlightFailure>;

/** The call that a lease allows. */
interface LeasedCall {
  readonly kind: ResourceKind;
  readonly key: string;
  readonly set: WorkspaceSet;
  readonly names: CacheKeyNames;
  /** The API key that reads. */
  readonly holder: string;
  readonly token: string;
  readonly lastSeen: LastSeenOf | null;
}

/** Where an answer is filed, among which owners, and what is noted of it. */
interface Filing {
  readonly place: EntryPlace;
  readonly owners: readonly string[];
  readonly note: SeenNote | null;
}

/** Renewals are so far apart, as a part of the lease, that losing one renewal does not lose the lease. */
const RENEW_AFTER = 0.3;

/** One that this process has. It is renewed until it ends. */
export class RedisLease implements Lease {
  readonly #call: LeasedCall;
  readonly #options: LeaseOptions;
  #cancelRenewal: () => void = () => {};
  #hasEnded = false;

  constructor(call: LeasedCall, options: LeaseOptions) {
    this.#call = call;
    this.#options = options;
    this.#renewLater();
  }

  get lastSeen(): LastSeenOf | null {
    return this.#call.lastSeen;
  }

  /** An absent answer and a foreign record end alike here: the same message, and the same negative entry. */
  async complete(answer: StoredEntry, sighting: Sighting | null = null): Promise<Completion> {
    const { kind, key, set, names } = this.#call;
    const { budget } = this.#options;
    const owners = ownersIn(kind, set);
    const { owner } = answer;
    const name = answer.entry.answer.kind === 'found' ? names.copy(owner) : names.negative(owner);
    const place = { key, owner, name };
    const note = sighting === null ? null : seenNoteOf(sighting, this.#options);
    const completion = await this.#completion(answer, { place, owners, note }).catch(async (error: unknown) => {
      // An answer that cannot be written must not leave a lease that is renewed for ever.
      await this.release();
      throw error;
    });
    const { copy, isAdmitted, args, meta, body } = completion;
    const keys = [place.name, names.owners, names.seen, ...owners.map(names.copy)];
    const ending = this.#end(COMPLETE, keys, [JSON.stringify(args), meta, body]);
    const reply = await redisSpan('cache', 'EVALSHA entry', ending);
    const { status, isAdded, ended } = parseReply(completionSchema, reply);
    if (isAdmitted && !isAdded) budget.giveBack(copy);
    return { status, ended };
  }

  async fail(failure: FlightFailure): Promise<void> {
    await this.#endWithoutAnswer(JSON.stringify(failure));
  }

  async release(): Promise<void> {
    await this.#endWithoutAnswer(undefined);
  }

  /** The arguments of `COMPLETE`, and the copy that the budget counts. */
  async #completion(answer: StoredEntry, { place, owners, note }: Filing) {
    const { kind, key, set, holder, token } = this.#call;
    const { cache, entries, channel, budget } = this.#options;
    const { owner, entry, position } = answer;
    const isFound = entry.answer.kind === 'found';
    const { meta, body, keepMs } = await entries.encode(place, answer);
    const isTooLarge = !cache.values.takes(body.length);
    const { requestedAtMs } = entry;
    const filed = isFound ? { owner, requestedAtMs } : null;
    // Also for copies in the memory of others that Redis has evicted: it knows of none to end.
    const disowned = isFound || kind === 'list' ? undefined : { owners, requestedAtMs };
    const copy = { holder, bytes: meta.length + body.length, isBackfill: false };
    const isAdmitted = isFound && !isTooLarge && budget.admit(copy);
    const args: CompletionArgs = {
      token,
      channel: channel.name,
      messages: {
        filed: channel.message({ key, set: set.name, filed, disowned }),
        unfiled: channel.message({ key, set: set.name, filed: null }),
      },
      requestedAtMs,
      position,
      filing: isTooLarge ? 'never' : isFound && !isAdmitted ? 'replace' : 'always',
      place: isFound ? owners.indexOf(owner) + 1 : 0,
      owners,
      keepMs,
      lateMs: LATE_MS,
      by: holder,
      sighting: note ?? undefined,
    };
    return { copy, isAdmitted, args, meta, body: isTooLarge ? '' : body };
  }

  async #endWithoutAnswer(failure: string | undefined): Promise<void> {
    const { key, set, names, token } = this.#call;
    const { channel } = this.#options;
    const message = channel.message({ key, set: set.name, filed: null });
    const args: EndArgs = { token, channel: channel.name, message, failure, rememberMs: REMEMBER_FAILURES_MS };
    await this.#end(END, [names.failure(set.name)], [JSON.stringify(args)]);
  }

  #end(script: RedisScript, keys: readonly string[], args: readonly ScriptArgument[]): Promise<unknown> {
    this.#hasEnded = true;
    this.#cancelRenewal();
    const { names, set } = this.#call;
    return runScript(this.#options.cache, script, { keys: [names.lease(set.name), ...keys], args });
  }

  #renewLater(): void {
    const { timers, leaseMs } = this.#options;
    this.#cancelRenewal = timers.after(leaseMs * RENEW_AFTER, () => void this.#renew());
  }

  async #renew(): Promise<void> {
    const { names, set, token } = this.#call;
    const { cache, leaseMs } = this.#options;
    const call = { keys: [names.lease(set.name)], args: [token, leaseMs] };
    // If Redis can't be asked, the next renewal may still come in time.
    const isHeld = await runScript(cache, RENEW, call).then(
      (reply) => reply === 1,
      () => true,
    );
    if (isHeld && !this.#hasEnded) this.#renewLater();
  }
}

export const filedSchema = z.object({ isAdded: z.boolean().default(false), ended: z.array(z.string()).default([]) });
const completionSchema = filedSchema.extend({
  status: z.enum(COMPLETION_STATUSES),
}) satisfies z.ZodType<CompletionReply>;
