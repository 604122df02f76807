/**
 * A limiter that always answers: Redis decides, and while it cannot be asked this process goes on from what it last knew,
 * with its share of the limits (R5: the one exception to exact limits). One request without an answer is enough (R6: no
 * further one waits for Redis). The link knows when Redis is back; the requests admitted meanwhile are then added to its logs.
 * The same holds for a single quota by whose log Redis cannot decide, such as one that another application wrote into: Redis
 * goes on deciding on all others.
 *
 * While Redis decides, no window ever holds more than its limit. How that can fail, and what bounds it:
 * - Redis is away: n processes admit together what was left as they last knew it, and each at least one request per window. A
 *   process that has not seen a key's use lately takes the whole limit for unused, so all together may admit the limit twice.
 * - Processes are miscounted: their number is that of the last heartbeats (instances.ts). Those that start during an outage
 *   take a share too, until Redis is back.
 * - Redis lost its last writes (a failover, a restart without `appendonly`): the requests in them are admitted once more.
 *   Requests that a process has admitted by itself and not yet merged are not lost with them.
 * - A process ends before it has merged: what it admitted by itself is not counted afterwards, at most its share.
 * - More than `MAX_QUOTAS` keys during one outage: those used longest ago start afresh here.
 * - Redis's clock goes back: entries from the future count as made now, for one window at most. If it goes forward, entries
 *   leave as much sooner, once.
 */
import type { Clock } from '../time/clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import { QUOTA_BUCKETS, quotaBucket } from '../redis/names.ts';
import type { QuotaDecision, QuotaLimiter, QuotaLimits, QuotaUsage } from './limiter.ts';
import { LocalShare } from './local-share.ts';
import { RedisLimiter, UndecidableLogError } from './redis-limiter.ts';

const MAX_QUOTAS = 20_000;
const MERGES_AT_ONCE = 20;
const UNDECIDED_EVERY_MS = 1000;
/** More logs of one partition that are none are no accident of one of them: then Redis decides on no quota there. */
const MAX_UNDECIDED = 50;

export interface FailoverOptions {
  readonly link: RedisLink;
  /** The id of this process. */
  readonly self: string;
  readonly clock: Clock;
  /** How many processes share the limits, as last known; an integer from 1. */
  readonly processes: () => number;
  /** Called when the first limits are no longer exact over all processes, and when all are again. */
  readonly hooks: {
    readonly onDegraded: (reason: unknown) => void;
    readonly onExact: () => void;
    /** Called when Redis cannot decide on one quota, and when it can again (null). */
    readonly onUndecided: (quotaId: string, reason: UndecidableLogError | null) => void;
    /** Called for a quota whose log in Redis has lost requests of the last hour. */
    readonly onForgotten: (quotaId: string) => void;
  };
}

/** Never rejects. */
export class FailoverLimiter implements QuotaLimiter {
  readonly #partitions: readonly Partition[];

  constructor({ link, self, clock, processes, hooks }: FailoverOptions) {
    const redis = new RedisLimiter({ redis: link, clock, onForgotten: hooks.onForgotten });
    const count = link.kind === 'cluster' ? QUOTA_BUCKETS : 1;
    let degraded = 0;
    const onChange = (change: 1 | -1, reason: unknown): void => {
      degraded += change;
      if (change === 1 && degraded === 1) hooks.onDegraded(reason);
      if (degraded === 0) hooks.onExact();
    };
    this.#partitions = Array.from({ length: count }, (_, bucket) => {
      const local = new LocalShare({ clock, processes, maxQuotas: MAX_QUOTAS / count });
      return new Partition({ link, bucket, redis, self, local, onChange, onUndecided: hooks.onUndecided });
    });
  }

  consume(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision> {
    return this.#partitionOf(quotaId).consume(quotaId, limits);
  }

  usage(quotaId: string, limits: QuotaLimits): Promise<QuotaUsage> {
    return this.#partitionOf(quotaId).usage(quotaId, limits);
  }

  close(): void {
    for (const partition of this.#partitions) partition.close();
  }

  #partitionOf(quotaId: string): Partition {
    const partition = this.#partitions[this.#partitions.length === 1 ? 0 : quotaBucket(quotaId)];
    if (partition === undefined) throw new RangeError(`No partition has the quota ${quotaId}.`);
    return partition;
  }
}

/** For a look at a log of which only a merge is known; any limits will do. */
const NO_LIMITS: QuotaLimits = { perMinute: 1, perHour: 1 };

interface PartitionOptions {
  readonly link: Pick<RedisLink, 'decidesOn' | 'suspect' | 'onChange'>;
  /** Its place among the partitions. */
  readonly bucket: number;
  readonly redis: RedisLimiter;
  readonly self: string;
  readonly local: LocalShare;
  /** Its limits are no longer exact over all processes, for that reason (1), or are again (-1). */
  readonly onChange: (change: 1 | -1, reason: unknown) => void;
  readonly onUndecided: FailoverOptions['hooks']['onUndecided'];
}

/** Quotas that can be asked for, or not, together: a bucket on a Cluster, else all. */
class Partition implements QuotaLimiter {
  readonly #options: PartitionOptions;
  readonly #redis: RedisLimiter;
  readonly #local: LocalShare;
  readonly #merging = new Set<string>();
  /** The quotas that Redis cannot decide on, with the limits they were last asked for with. */
  readonly #undecided = new Map<string, QuotaLimits>();
  readonly #stopListening: () => void;
  #isDegraded = false;
  #isRecovering = false;
  #isClosed = false;
  #undecidedTimer: NodeJS.Timeout | undefined;

  constructor(options: PartitionOptions) {
    this.#options = options;
    this.#redis = options.redis;
    this.#local = options.local;
    this.#stopListening = options.link.onChange(() => void this.#recover());
  }

  async consume(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision> {
    if (this.#isAsked(quotaId)) {
      if (this.#local.hasUnsynced(quotaId)) void this.#sync(quotaId);
      try {
        const decision = await this.#redis.consume(quotaId, limits);
        this.#local.learn(quotaId, decision);
        this.#noteExact();
        return decision;
      } catch (error) {
        this.#onFailure(quotaId, limits, error);
      }
    }
    // Nothing is admitted to a full log, whether Redis can be asked or not.
    return this.#redis.rejections.get(quotaId, limits) ?? this.#local.consume(quotaId, limits);
  }

  async usage(quotaId: string, limits: QuotaLimits): Promise<QuotaUsage> {
    if (this.#isAsked(quotaId)) {
      if (this.#local.hasUnsynced(quotaId)) void this.#sync(quotaId);
      try {
        return await this.#redis.usage(quotaId, limits);
      } catch {
        // Nothing was to be counted, so no limit is less exact for it.
      }
    }
    return this.#redis.rejections.get(quotaId, limits) ?? this.#local.usage(quotaId, limits);
  }

  close(): void {
    this.#isClosed = true;
    this.#stopListening();
    clearTimeout(this.#undecidedTimer);
  }

  #isAsked(quotaId: string): boolean {
    return this.#isRedisAsked && !this.#undecided.has(quotaId);
  }

  /** The first request that Redis does not decide on finds out why. */
  get #isRedisAsked(): boolean {
    const { link, bucket } = this.#options;
    return !this.#isDegraded || link.decidesOn(bucket);
  }

  /** Redis did not decide on that quota, or on none at all. */
  #onFailure(quotaId: string, limits: QuotaLimits, reason: unknown): void {
    if (!(reason instanceof UndecidableLogError) || this.#undecided.size >= MAX_UNDECIDED) {
      this.#disconnect(reason);
      return;
    }
    if (this.#undecided.has(quotaId) || this.#isClosed) return;
    this.#undecided.set(quotaId, limits);
    this.#options.onUndecided(quotaId, reason);
    if (this.#undecided.size === 1) this.#lookAtUndecidedLater();
  }

  #lookAtUndecidedLater(): void {
    this.#undecidedTimer = setTimeout(() => void this.#lookAtUndecided(), UNDECIDED_EVERY_MS).unref();
  }

  /** Never rejects. */
  async #lookAtUndecided(): Promise<void> {
    for (const [quotaId, limits] of this.#isRedisAsked ? this.#undecided : []) {
      const isDecided = await this.#redis.usage(quotaId, limits).then(
        () => true,
        () => false,
      );
      if (this.#isClosed) return;
      if (!isDecided) continue;
      this.#undecided.delete(quotaId);
      this.#options.onUndecided(quotaId, null);
      void this.#sync(quotaId);
    }
    if (this.#undecided.size > 0) this.#lookAtUndecidedLater();
  }

  #disconnect(reason: unknown): void {
    if (this.#isClosed) return;
    const { link, bucket, onChange } = this.#options;
    const wasDegraded = this.#isDegraded;
    this.#isDegraded = true;
    link.suspect(bucket);
    if (!wasDegraded) onChange(1, reason);
  }

  /** Never rejects. */
  async #recover(): Promise<void> {
    if (!this.#isDegraded || this.#isRecovering || this.#isClosed || !this.#isRedisAsked) return;
    this.#isRecovering = true;
    const quotaIds = this.#local.unsyncedIds();
    for (let from = 0; from < quotaIds.length && this.#isRedisAsked; from += MERGES_AT_ONCE) {
      await Promise.all(quotaIds.slice(from, from + MERGES_AT_ONCE).map((quotaId) => this.#sync(quotaId)));
    }
    this.#isRecovering = false;
  }

  /** Adds what was admitted here to the log in Redis, before any request that is sent later. Never rejects. */
  async #sync(quotaId: string): Promise<void> {
    const merge = this.#isAsked(quotaId) && !this.#merging.has(quotaId) ? this.#local.nextMerge(quotaId) : null;
    if (merge === null) return;
    this.#merging.add(quotaId);
    try {
      await this.#redis.merge(quotaId, this.#options.self, merge.number, merge.admissions);
      this.#local.merged(merge);
      this.#noteExact();
    } catch (error) {
      this.#onFailure(quotaId, NO_LIMITS, error);
    } finally {
      this.#merging.delete(quotaId);
    }
    // Requests that were admitted while that merge waited for Redis are in none yet.
    if (!this.#isDegraded && this.#local.hasUnsynced(quotaId)) await this.#sync(quotaId);
  }

  /** That Redis can be reached is not enough: one that is out of memory can be, and would be back and gone with each probe. */
  #noteExact(): void {
    if (!this.#isDegraded || !this.#isRedisAsked) return;
    this.#isDegraded = false;
    this.#options.onChange(-1, null);
  }
}
