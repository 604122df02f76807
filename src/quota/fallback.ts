/**
 * A quota that always answers: the shared log decides, and while it is out of reach this process goes on from what it
 * last knew, with its share (R5). One request that got no answer is enough to go on alone, so that a frozen Redis costs
 * those of one moment a short wait, not each request; it is asked in the background when it is back.
 */
import { randomUUID } from 'node:crypto';
import type { FallbackQuota, Unshared } from './fallback-quota.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import type { Quota, QuotaDecision, QuotaLimits, QuotaStanding } from './quota.ts';
import type { SharedQuota } from './redis-quota.ts';

export interface ResilientQuota extends Quota {
  /** Whether the shared log decides. */
  isShared(): boolean;
  /** Ends what runs in the background. */
  close(): void;
}

export interface ResilientQuotaOptions {
  readonly shared: SharedQuota;
  readonly fallback: FallbackQuota;
  /** Resolves where the shared log can be reached; rejects, in bounded time, where it can't. */
  readonly probe: () => Promise<unknown>;
  /** Adds admissions to the shared log. Where it rejects, the same `mergeId` will come again. */
  readonly merge: (unshared: Unshared, mergeId: string) => Promise<void>;
  readonly hooks?: {
    readonly onAlone?: (reason: unknown) => void;
    /**
     * The shared log has decided again, or taken in what was admitted without it. That it can be reached is not enough:
     * one that is out of memory can be, and would be told of as back and gone with each probe.
     */
    readonly onShared?: () => void;
  };
  readonly probeEveryMs?: number;
}

const PROBE_EVERY_MS = 100;
/** Where the shared log can be reached but does not decide, such as one that is out of memory. */
const LONGEST_PROBE_MS = 2000;
/** Merges that are under way at once when the shared log is back. */
const MERGES_AT_ONCE = 20;
/** Merges kept to be sent again; of more the oldest are given up. */
const MOST_FAILED = 10_000;

interface Merge {
  readonly unshared: Unshared;
  readonly mergeId: string;
}

class SharedOrAlone implements ResilientQuota {
  readonly #options: ResilientQuotaOptions;
  readonly #shortestProbeMs: number;
  readonly #mergePrefix = randomUUID();
  /** Merges that failed, to be sent again. */
  readonly #failed: Merge[] = [];
  #merges = 0;
  #isAlone = false;
  #isToldAlone = false;
  #isClosed = false;
  #probeMs: number;
  #timer: NodeJS.Timeout | null = null;

  constructor(options: ResilientQuotaOptions) {
    this.#options = options;
    this.#shortestProbeMs = options.probeEveryMs ?? PROBE_EVERY_MS;
    this.#probeMs = this.#shortestProbeMs;
  }

  isShared(): boolean {
    return !this.#isAlone;
  }

  take(quotaId: string, limits: QuotaLimits): MaybePromise<QuotaDecision> {
    const { shared, fallback } = this.#options;
    // Nobody is admitted to a full log, in reach or not: a refusal that is known goes on.
    if (this.#isAlone) return shared.recall(quotaId, limits) ?? fallback.take(quotaId, limits);
    // Sent on the same connection, a merge is done before the request is decided on.
    if (fallback.hasUnshared(quotaId)) void this.#share(quotaId);
    const taken = shared.take(quotaId, limits);
    return taken instanceof Promise ? this.#decided(taken, quotaId, limits) : taken;
  }

  async #decided(taken: Promise<QuotaDecision>, quotaId: string, limits: QuotaLimits): Promise<QuotaDecision> {
    try {
      const decision = await taken;
      this.#probeMs = this.#shortestProbeMs;
      this.#tellShared();
      return decision;
    } catch (error) {
      this.#goAlone(error);
      return this.#options.fallback.take(quotaId, limits);
    }
  }

  peek(quotaId: string, limits: QuotaLimits): MaybePromise<QuotaStanding> {
    const { shared, fallback } = this.#options;
    if (this.#isAlone) return shared.recall(quotaId, limits) ?? fallback.peek(quotaId, limits);
    return this.#peekShared(quotaId, limits);
  }

  /** One that gets no answer is no reason to go on alone: nothing was to be counted. */
  async #peekShared(quotaId: string, limits: QuotaLimits): Promise<QuotaStanding> {
    const { shared, fallback } = this.#options;
    if (fallback.hasUnshared(quotaId)) void this.#share(quotaId);
    try {
      return await shared.peek(quotaId, limits);
    } catch {
      return fallback.peek(quotaId, limits);
    }
  }

  close(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  #goAlone(reason: unknown): void {
    if (this.#isAlone || this.#isClosed) return;
    this.#isAlone = true;
    if (!this.#isToldAlone) this.#options.hooks?.onAlone?.(reason);
    this.#isToldAlone = true;
    this.#probeLater();
    this.#probeMs = Math.min(LONGEST_PROBE_MS, this.#probeMs * 2);
  }

  #tellShared(): void {
    if (!this.#isToldAlone || this.#isAlone) return;
    this.#isToldAlone = false;
    this.#options.hooks?.onShared?.();
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
    this.#isAlone = false;
    await this.#shareAll();
  }

  async #shareAll(): Promise<void> {
    await this.#inSteps(this.#failed.splice(0), (merge) => this.#merge(merge));
    await this.#inSteps(this.#options.fallback.unsharedIds(), (quotaId) => this.#share(quotaId));
  }

  async #inSteps<T>(items: readonly T[], run: (item: T) => Promise<void>): Promise<void> {
    for (let from = 0; from < items.length; from += MERGES_AT_ONCE) {
      await Promise.all(items.slice(from, from + MERGES_AT_ONCE).map(run));
    }
  }

  async #share(quotaId: string): Promise<void> {
    const unshared = this.#isAlone ? null : this.#options.fallback.takeUnshared(quotaId);
    if (unshared === null) return;
    this.#merges += 1;
    await this.#merge({ unshared, mergeId: `${this.#mergePrefix}-${this.#merges}` });
  }

  /** Rejects never. */
  async #merge(merge: Merge): Promise<void> {
    try {
      if (this.#isAlone) throw new Error('Redis is out of reach again.');
      await this.#options.merge(merge.unshared, merge.mergeId);
      this.#tellShared();
    } catch (error) {
      if (this.#failed.length === MOST_FAILED) this.#failed.shift();
      this.#failed.push(merge);
      this.#goAlone(error);
    }
  }
}

export function createResilientQuota(options: ResilientQuotaOptions): ResilientQuota {
  return new SharedOrAlone(options);
}
