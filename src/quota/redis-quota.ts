/** The exact quota in Redis, for all processes together. */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import type { MaybePromise } from '../maybe-promise.ts';
import { DEFAULT_TIMEOUT_MS, type RedisCommands } from '../redis/connection.ts';
import { QUOTA_BUCKETS, quotaBucket } from '../redis/names.ts';
import { QUOTA_WINDOWS, type QuotaWindows } from './log.ts';
import type { QuotaDecision, QuotaLimits, QuotaStanding } from './quota.ts';
import { decisionsOf, standingOf } from './redis-decisions.ts';
import { admittedOf, type ExpectedUse, type LogReply, takeFromLogs } from './redis-log.ts';
import { type Asking, fail, QuotaLane } from './redis-quota-lane.ts';
import { type CallTimes, RefusalMemory } from './redis-refusals.ts';

/** A quota that can be out of reach. */
export interface SharedQuota {
  /** A refusal that is known to hold still, without asking; null where it has to be asked for. */
  recall(quotaId: string, limits: QuotaLimits): QuotaDecision | null;
  /** As `Quota.take`. Rejects where no answer came in time: the request may then have been counted or not. */
  take(quotaId: string, limits: QuotaLimits): MaybePromise<QuotaDecision>;
  /** As `Quota.peek`. Rejects where no answer came in time. */
  peek(quotaId: string, limits: QuotaLimits): MaybePromise<QuotaStanding>;
}

export interface RedisQuotaOptions {
  readonly redis: RedisCommands;
  /** Measures time between a call and what is answered from its reply; the windows go by Redis's clock. */
  readonly clock: Clock;
  /** Other lengths than a minute and an hour, for tests. */
  readonly windows?: QuotaWindows;
  /** How long a request waits for Redis (R6). */
  readonly answerWithinMs?: number | undefined;
  /** Told what each reply shows of the use, `receivedMicros` by `clock`; also of replies that came too late. */
  readonly onReply?: (quotaId: string, reply: LogReply, receivedMicros: number) => void;
}

/** Quotas whose last use is remembered. Of others Redis looks at some entries more. */
const MOST_REMEMBERED = 20_000;

/** One for all where all quotas can go together; on a Cluster one for each bucket. */
type Lanes<T> = readonly [QuotaLane<T>, ...QuotaLane<T>[]];

function lanesOf<T>(redis: RedisCommands, open: () => QuotaLane<T>): Lanes<T> {
  return [open(), ...Array.from({ length: redis.kind === 'cluster' ? QUOTA_BUCKETS - 1 : 0 }, open)];
}

function laneOf<T>(lanes: Lanes<T>, quotaId: string): QuotaLane<T> {
  const [first] = lanes;
  return lanes.length === 1 ? first : (lanes[quotaBucket(quotaId)] ?? first);
}

class RedisQuota implements SharedQuota {
  readonly #options: RedisQuotaOptions;
  readonly #windows: QuotaWindows;
  readonly #refusals: RefusalMemory;
  /** How many requests the minute had after the last call. */
  readonly #minuteUse = new LRUCache<string, number>({ max: MOST_REMEMBERED });
  readonly #expectedUse: ExpectedUse = (quotaId) => this.#minuteUse.get(quotaId) ?? 0;
  readonly #requests: Lanes<QuotaDecision>;
  /** Lanes of their own: that many ask how they stand holds no request up. */
  readonly #looks: Lanes<QuotaStanding>;

  constructor(options: RedisQuotaOptions) {
    const { redis, clock, windows = QUOTA_WINDOWS, answerWithinMs = DEFAULT_TIMEOUT_MS } = options;
    this.#options = options;
    this.#windows = windows;
    this.#refusals = new RefusalMemory(clock, windows);
    const common = { clock, answerWithinMs };
    this.#requests = lanesOf(redis, () => new QuotaLane({ ...common, call: (asked) => this.#call(asked) }));
    this.#looks = lanesOf(redis, () => new QuotaLane({ ...common, call: (asked) => this.#look(asked) }));
  }

  recall(quotaId: string, limits: QuotaLimits): QuotaDecision | null {
    return this.#refusals.recall(quotaId, limits);
  }

  take(quotaId: string, limits: QuotaLimits): MaybePromise<QuotaDecision> {
    return this.recall(quotaId, limits) ?? laneOf(this.#requests, quotaId).ask(quotaId, limits);
  }

  peek(quotaId: string, limits: QuotaLimits): MaybePromise<QuotaStanding> {
    return this.recall(quotaId, limits) ?? laneOf(this.#looks, quotaId).ask(quotaId, limits);
  }

  async #look(asked: readonly Asking<QuotaStanding>[]): Promise<void> {
    const looks = asked.map(({ quotaId, runs }) => ({
      quotaId,
      runs: runs.slice(0, 1).map(({ limits }) => ({ limits, count: 0 })),
    }));
    const replies = await takeFromLogs(this.#options.redis, looks, this.#windows, this.#expectedUse);
    for (const [index, { batch }] of asked.entries()) {
      const reply = replies[index] ?? new Error('The reply has no place for the log.');
      if (reply instanceof Error) fail(batch, reply);
      else for (const { limits, resolve } of batch) resolve(standingOf(reply, limits, this.#windows));
    }
  }

  async #call(asked: readonly Asking[]): Promise<void> {
    const { redis, clock } = this.#options;
    const sentMicros = clock.nowMicros();
    const replies = await takeFromLogs(redis, asked, this.#windows, this.#expectedUse);
    const times = { sentMicros, receivedMicros: clock.nowMicros() };
    for (const [index, asking] of asked.entries()) {
      const reply = replies[index] ?? new Error('The reply has no place for the log.');
      if (reply instanceof Error) fail(asking.batch, reply);
      else this.#settle(asking, reply, times);
    }
  }

  #settle({ quotaId, batch, runs }: Asking, reply: LogReply, times: CallTimes): void {
    const decisions = decisionsOf(reply, runs, this.#windows);
    const last = decisions.at(-1);
    this.#minuteUse.set(quotaId, reply.minute.used + admittedOf(reply));
    if (last !== undefined) this.#refusals.note(quotaId, last, reply, times);
    this.#options.onReply?.(quotaId, reply, times.receivedMicros);
    for (const [index, decision] of decisions.entries()) batch[index]?.resolve(decision);
  }
}

export function createRedisQuota(options: RedisQuotaOptions): SharedQuota {
  return new RedisQuota(options);
}
