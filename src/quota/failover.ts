/**
 * A limiter that always answers: Redis decides, and while it cannot be asked this process goes on from what it last knew,
 * with its share of the limits (R5). One request without an answer is enough: no further one waits for Redis (R6), which
 * is probed behind. The requests admitted meanwhile are added to the logs in Redis once it is back.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { RedisLink } from '../redis/connection.ts';
import { quotaBucket, trialKeys } from '../redis/names.ts';
import type { FleetLimiter, QuotaDecision, QuotaLimits, QuotaUsage } from './limiter.ts';
import { LocalShare } from './local-share.ts';
import { RedisLimiter } from './redis-limiter.ts';

const MOST_QUOTAS = 20_000;
const PROBE_EVERY_MS = 100;
/** If Redis can be reached but does not decide, because it is out of memory or too far away. */
const LONGEST_PROBE_MS = 2000;
/** Merges under way at once after an outage. */
const MERGES_AT_ONCE = 20;

/** Called when the first limits are no longer exact over all processes, and when all are again. */
export interface FailoverHooks {
  readonly onDegraded: (reason: unknown) => void;
  readonly onExact: () => void;
}

export interface FailoverOptions {
  readonly link: RedisLink;
  readonly clock: Clock;
  /** How many processes share the limits, as last known; an integer from 1. */
  readonly processes: () => number;
  /** How long a request waits for Redis (`redis.timeout`). A Redis that takes longer to answer a probe is not back. */
  readonly timeoutMs: number;
  readonly hooks: FailoverHooks;
}

/** Never rejects. */
export class FailoverLimiter implements FleetLimiter {
  readonly #redis: RedisLimiter;
  readonly #partitions: readonly Partition[];
  readonly #hooks: FailoverHooks;
  #degraded = 0;

  constructor({ link, clock, processes, timeoutMs, hooks }: FailoverOptions) {
    this.#redis = new RedisLimiter({ redis: link, clock });
    this.#hooks = hooks;
    const { client } = link;
    // On a Cluster the quotas of a bucket cannot be asked for while its node is away, and no others: a process that
    // decided on more of them by itself would count what others count in Redis.
    const probes =
      link.kind === 'cluster' ? trialKeys('probe').map((key) => () => client.exists(key)) : [() => link.ping()];
    this.#partitions = probes.map(
      (probe) =>
        new Partition({
          probe: async () => {
            const askedMicros = clock.nowMicros();
            await probe();
            if (clock.nowMicros() - askedMicros > timeoutMs * 1000) throw new Error('Redis answered too late.');
          },
          redis: this.#redis,
          share: new LocalShare({ clock, processes, mostQuotas: MOST_QUOTAS / probes.length }),
          onDegraded: (reason) => this.#noteDegraded(reason),
          onExact: () => this.#noteExact(),
        }),
    );
  }

  async consume(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision> {
    const partition = this.#partitionOf(quotaId);
    if (partition.isShared) {
      partition.sync(quotaId);
      try {
        const decision = await this.#redis.consume(quotaId, limits);
        partition.learn(quotaId, decision);
        return decision;
      } catch (error) {
        partition.disconnect(error);
      }
    }
    // Nothing is admitted to a full log, whether Redis can be asked or not.
    return this.#redis.rejection(quotaId, limits) ?? partition.share.consume(quotaId, limits);
  }

  async usage(quotaId: string, limits: QuotaLimits): Promise<QuotaUsage> {
    const partition = this.#partitionOf(quotaId);
    if (partition.isShared) {
      partition.sync(quotaId);
      try {
        return await this.#redis.usage(quotaId, limits);
      } catch {
        // Nothing was to be counted, so no limit is less exact for it.
      }
    }
    return this.#redis.rejection(quotaId, limits) ?? partition.share.usage(quotaId, limits);
  }

  close(): void {
    for (const partition of this.#partitions) partition.close();
  }

  #partitionOf(quotaId: string): Partition {
    const partition = this.#partitions[this.#partitions.length === 1 ? 0 : quotaBucket(quotaId)];
    if (partition === undefined) throw new RangeError(`No partition has the quota ${quotaId}.`);
    return partition;
  }

  #noteDegraded(reason: unknown): void {
    this.#degraded += 1;
    if (this.#degraded === 1) this.#hooks.onDegraded(reason);
  }

  #noteExact(): void {
    this.#degraded -= 1;
    if (this.#degraded === 0) this.#hooks.onExact();
  }
}

interface PartitionOptions extends FailoverHooks {
  readonly redis: RedisLimiter;
  readonly share: LocalShare;
  /** Resolves if Redis can be asked; rejects, in bounded time, if it cannot. */
  readonly probe: () => Promise<unknown>;
}

/** Quotas that can be asked for, or not, together: a bucket on a Cluster, else all. */
class Partition {
  readonly share: LocalShare;
  readonly #options: PartitionOptions;
  readonly #processId = randomUUID();
  /** Quotas with a merge under way. */
  readonly #merging = new Set<string>();
  #isShared = true;
  #isDegraded = false;
  #isClosed = false;
  #probeMs = PROBE_EVERY_MS;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: PartitionOptions) {
    this.#options = options;
    this.share = options.share;
  }

  get isShared(): boolean {
    return this.#isShared;
  }

  learn(quotaId: string, decision: QuotaDecision): void {
    this.share.learn(quotaId, decision);
    this.#probeMs = PROBE_EVERY_MS;
    this.#noteExact();
  }

  disconnect(reason: unknown): void {
    if (!this.#isShared || this.#isClosed) return;
    this.#isShared = false;
    if (!this.#isDegraded) this.#options.onDegraded(reason);
    this.#isDegraded = true;
    this.#probeLater();
    this.#probeMs = Math.min(LONGEST_PROBE_MS, this.#probeMs * 2);
  }

  /** Adds what was admitted here to the log in Redis. Sent now, it is there before a request that is sent later. */
  sync(quotaId: string): void {
    if (this.share.hasUnsynced(quotaId)) void this.#sync(quotaId);
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #probeLater(): void {
    this.#timer = setTimeout(() => void this.#probe(), this.#probeMs).unref();
  }

  async #probe(): Promise<void> {
    try {
      await this.#options.probe();
    } catch {
      if (!this.#isClosed) this.#probeLater();
      return;
    }
    if (this.#isClosed) return;
    this.#isShared = true;
    const quotaIds = this.share.unsyncedIds();
    for (let from = 0; from < quotaIds.length && this.#isShared; from += MERGES_AT_ONCE) {
      await Promise.all(quotaIds.slice(from, from + MERGES_AT_ONCE).map((quotaId) => this.#sync(quotaId)));
    }
  }

  /** Never rejects. */
  async #sync(quotaId: string): Promise<void> {
    const merge = this.#isShared && !this.#merging.has(quotaId) ? this.share.nextMerge(quotaId) : null;
    if (merge === null) return;
    this.#merging.add(quotaId);
    try {
      await this.#options.redis.merge(quotaId, this.#processId, merge.number, merge.admissions);
      this.share.merged(merge);
      this.#noteExact();
    } catch (error) {
      this.disconnect(error);
    } finally {
      this.#merging.delete(quotaId);
    }
  }

  /** That Redis can be reached is not enough: one that is out of memory can be, and would be back and gone with each probe. */
  #noteExact(): void {
    if (!this.#isDegraded || !this.#isShared) return;
    this.#isDegraded = false;
    this.#options.onExact();
  }
}
