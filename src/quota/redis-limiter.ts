/** The limits of all processes together, in Redis. All requests of one turn of the event loop share a call. */
import type { Clock } from '../clock.ts';
import type { RedisCommands } from '../redis/connection.ts';
import { quotaBucket, quotaLogKey, quotaMergeKey } from '../redis/names.ts';
import { runScript } from '../redis/script.ts';
import { redisSpan } from '../tracing/spans.ts';
import type { QuotaDecision, QuotaLimiter, QuotaLimits, QuotaUsage } from './limiter.ts';
import { CONSUME, MERGE } from './redis-scripts.ts';
import { RejectionCache } from './rejection-cache.ts';
import { type LogSummary, QUOTA_WINDOWS, usageAfter } from './window-log.ts';

const { minuteMicros, hourMicros } = QUOTA_WINDOWS;

const SPAN = 'EVALSHA quota';
/** Logs per call: each takes Redis some 20 µs, in which it answers nobody else. */
const MOST_LOGS = 64;

interface Waiter {
  readonly resolve: (decision: QuotaDecision) => void;
  readonly reject: (reason: unknown) => void;
}

/** Requests of one quota with the same limits. */
interface Batch {
  readonly quotaId: string;
  readonly limits: QuotaLimits;
  readonly waiters: readonly Waiter[];
}

/** The script's finding in a log before the requests, and its decision. */
interface Reply {
  readonly log: LogSummary;
  readonly admitted: number;
  readonly retryAtMicros: number;
}

/** Requests admitted while Redis could not be asked: pairs of time in Unix microseconds and count, oldest first. */
export type Admissions = readonly (readonly [timeMicros: number, count: number])[];

export interface RedisLimiterOptions {
  readonly redis: RedisCommands;
  /** Measures how long ago a reply came; the windows go by Redis's clock. */
  readonly clock: Clock;
}

/** Rejects if Redis does not answer within its timeout, or cannot decide; the request may then be counted or not. */
export class RedisLimiter implements QuotaLimiter {
  readonly #redis: RedisCommands;
  readonly #clock: Clock;
  readonly #rejections: RejectionCache;
  /** Requests of this turn of the event loop. */
  #batches = new Map<string, { quotaId: string; limits: QuotaLimits; waiters: Waiter[] }>();

  constructor({ redis, clock }: RedisLimiterOptions) {
    this.#redis = redis;
    this.#clock = clock;
    this.#rejections = new RejectionCache(clock);
  }

  /** A refusal that holds without asking Redis, if there is one. */
  rejection(quotaId: string, limits: QuotaLimits): QuotaDecision | null {
    return this.#rejections.get(quotaId, limits);
  }

  consume(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision> {
    const rejection = this.rejection(quotaId, limits);
    if (rejection !== null) return Promise.resolve(rejection);
    const { promise, ...waiter } = Promise.withResolvers<QuotaDecision>();
    this.#add(quotaId, limits, waiter);
    return redisSpan('state', SPAN, promise);
  }

  async usage(quotaId: string, limits: QuotaLimits): Promise<QuotaUsage> {
    const rejection = this.rejection(quotaId, limits);
    if (rejection !== null) return rejection;
    const [reply] = await redisSpan('state', SPAN, this.#run([{ quotaId, limits, waiters: [] }]));
    if (reply === undefined || reply instanceof Error) throw reply ?? new UnexpectedReplyError(reply);
    return usageAfter(0, reply.log, limits, QUOTA_WINDOWS);
  }

  /**
   * Adds admissions to a log. If it rejects, it may be done again with the same number: it counts once, for some minutes.
   * Numbers grow per process, and a quota has one merge under way at a time.
   */
  async merge(quotaId: string, processId: string, mergeNumber: number, admissions: Admissions): Promise<void> {
    const keys = [quotaLogKey(quotaId), quotaMergeKey(quotaId, processId)];
    await runScript(this.#redis, MERGE, { keys, args: [minuteMicros, hourMicros, mergeNumber, ...admissions.flat()] });
  }

  #add(quotaId: string, limits: QuotaLimits, waiter: Waiter): void {
    // Requests of many connections are read in one turn, one after the other: they are sent after the last of them. No
    // call waits for the end of an earlier one, so that a request waits for one answer of Redis and no more (R6).
    if (this.#batches.size === 0) setImmediate(() => this.#send());
    const key = `${limits.perMinute} ${limits.perHour} ${quotaId}`;
    const batch = this.#batches.get(key);
    if (batch === undefined) this.#batches.set(key, { quotaId, limits, waiters: [waiter] });
    else batch.waiters.push(waiter);
  }

  #send(): void {
    const batches = [...this.#batches.values()];
    this.#batches = new Map();
    // On a Cluster only logs of one slot can be in one call.
    const groups =
      this.#redis.kind === 'cluster' ? Map.groupBy(batches, ({ quotaId }) => quotaBucket(quotaId)).values() : [batches];
    for (const group of groups) {
      for (let from = 0; from < group.length; from += MOST_LOGS) void this.#decide(group.slice(from, from + MOST_LOGS));
    }
  }

  /** Never rejects: the waiters' promises do. */
  async #decide(batches: readonly Batch[]): Promise<void> {
    const sentMicros = this.#clock.nowMicros();
    try {
      const replies = await this.#run(batches);
      const times = { sentMicros, receivedMicros: this.#clock.nowMicros() };
      for (const [index, { quotaId, limits, waiters }] of batches.entries()) {
        const reply = replies[index];
        if (reply === undefined || reply instanceof Error) {
          for (const { reject } of waiters) reject(reply);
          continue;
        }
        const decisions = waiters.map((_, nth) => decisionOf(nth, reply, limits));
        const last = decisions.at(-1);
        if (last !== undefined) this.#rejections.set(quotaId, last, times);
        for (const [nth, decision] of decisions.entries()) waiters[nth]?.resolve(decision);
      }
    } catch (error) {
      for (const { waiters } of batches) for (const { reject } of waiters) reject(error);
    }
  }

  async #run(batches: readonly Batch[]): Promise<readonly (Reply | Error)[]> {
    const reply = await runScript(this.#redis, CONSUME, {
      keys: batches.map(({ quotaId }) => quotaLogKey(quotaId)),
      args: [
        minuteMicros,
        hourMicros,
        ...batches.flatMap(({ waiters, limits }) => [waiters.length, limits.perMinute, limits.perHour]),
      ],
    });
    if (!Array.isArray(reply) || reply.length !== batches.length) throw new UnexpectedReplyError(reply);
    return reply.map(parseReply);
  }
}

function decisionOf(nth: number, { log, admitted, retryAtMicros }: Reply, limits: QuotaLimits): QuotaDecision {
  const isAdmitted = nth < admitted;
  const { nowMicros, minute, hour } = usageAfter(Math.min(nth + 1, admitted), log, limits, QUOTA_WINDOWS);
  return { admitted: isAdmitted, nowMicros, minute, hour, retryAtMicros: isAdmitted ? null : retryAtMicros };
}

class UnexpectedReplyError extends Error {
  override readonly name = 'UnexpectedReplyError';

  constructor(reply: unknown) {
    super(`The quota's script returned something else than it should: ${JSON.stringify(reply)?.slice(0, 200)}`);
  }
}

function parseReply(reply: unknown): Reply | Error {
  if (reply instanceof Error) return reply;
  if (!isIntegers(reply)) return new UnexpectedReplyError(reply);
  const [nowMicros = 0, newestMicros = 0, minuteUsed = 0, minuteOldestMicros = 0, ...rest] = reply;
  const [hourUsed = 0, hourOldestMicros = 0, admitted = 0, retryAtMicros = 0] = rest;
  const log = { nowMicros, newestMicros, minuteUsed, minuteOldestMicros, hourUsed, hourOldestMicros };
  return { log, admitted, retryAtMicros };
}

function isIntegers(reply: unknown): reply is readonly number[] {
  return Array.isArray(reply) && reply.length === 8 && reply.every(Number.isSafeInteger);
}
