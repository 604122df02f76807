/** The exact quota in Redis, for all processes together. */
import type { Redis } from 'ioredis';
import type { Clock } from '../clock.ts';
import { QUOTA_WINDOWS, type QuotaWindows } from './log.ts';
import type { QuotaDecision, QuotaLimits } from './quota.ts';
import { decisionsOf } from './redis-decisions.ts';
import { type LogReply, MOST_REQUESTS, type QuotaRequests, type RequestRun, takeFromLogs } from './redis-log.ts';
import { type CallTimes, RefusalMemory } from './redis-refusals.ts';

/** A quota that can be out of reach. */
export interface SharedQuota {
  /** A refusal that is known to hold still, without asking; null where it has to be asked for. */
  recall(quotaId: string, limits: QuotaLimits): QuotaDecision | null;
  /** As `Quota.take`. Rejects where no answer came in time: the request may then have been counted or not. */
  take(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision>;
}

export interface RedisQuotaOptions {
  readonly client: Redis;
  /** Measures time between a call and what is answered from its reply; the windows go by Redis's clock. */
  readonly clock: Clock;
  /** Other lengths than a minute and an hour, for tests. */
  readonly windows?: QuotaWindows;
  /** How long a request waits for Redis. Far above its usual answer, and below what a consumer would notice. */
  readonly answerWithinMs?: number | undefined;
  /** Told what each reply shows of the use, `receivedMicros` by `clock`; also of replies that came too late. */
  readonly onReply?: (quotaId: string, reply: LogReply, receivedMicros: number) => void;
}

const ANSWER_WITHIN_MS = 80;

/** Quotas decided on in one call: each takes Redis some 20 µs, in which it answers nobody else. */
const MOST_LOGS = 64;

interface Waiting {
  readonly limits: QuotaLimits;
  readonly resolve: (decision: QuotaDecision) => void;
  readonly reject: (reason: unknown) => void;
}

/** What one call asks of one quota. */
interface Asking extends QuotaRequests {
  readonly batch: readonly Waiting[];
}

function runsOf(batch: readonly Waiting[]): RequestRun[] {
  const runs: { limits: QuotaLimits; count: number }[] = [];
  for (const { limits } of batch) {
    const last = runs.at(-1);
    if (last?.limits.perMinute === limits.perMinute && last.limits.perHour === limits.perHour) last.count += 1;
    else runs.push({ limits, count: 1 });
  }
  return runs;
}

/** All requests that wait, in calls of bounded size. */
function callsOf(waiting: ReadonlyMap<string, readonly Waiting[]>): readonly (readonly Asking[])[] {
  const calls: Asking[][] = [[]];
  let requests = 0;
  for (const [quotaId, all] of waiting) {
    for (let from = 0; from < all.length; from += MOST_REQUESTS) {
      const batch = all.length <= MOST_REQUESTS ? all : all.slice(from, from + MOST_REQUESTS);
      if (calls.at(-1)?.length === MOST_LOGS || requests + batch.length > MOST_REQUESTS) {
        calls.push([]);
        requests = 0;
      }
      calls.at(-1)?.push({ quotaId, batch, runs: runsOf(batch) });
      requests += batch.length;
    }
  }
  return calls;
}

/**
 * Calls back after that time, and after all that had arrived by then was read: a process that was itself held up does
 * not take its own delay for that of Redis.
 */
function deadline(delayMs: number, run: () => void): NodeJS.Timeout {
  return setTimeout(() => setImmediate(run), delayMs);
}

class RedisQuota implements SharedQuota {
  readonly #options: RedisQuotaOptions;
  readonly #windows: QuotaWindows;
  readonly #refusals: RefusalMemory;
  /** Requests for the next calls. */
  #next = new Map<string, Waiting[]>();
  /** When the first of them came. */
  #nextSinceMicros = 0;
  #isAsking = false;

  constructor(options: RedisQuotaOptions) {
    this.#options = options;
    this.#windows = options.windows ?? QUOTA_WINDOWS;
    this.#refusals = new RefusalMemory(options.clock, this.#windows);
  }

  recall(quotaId: string, limits: QuotaLimits): QuotaDecision | null {
    return this.#refusals.recall(quotaId, limits);
  }

  async take(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision> {
    const refusal = this.recall(quotaId, limits);
    if (refusal !== null) return refusal;
    return new Promise((resolve, reject) => {
      if (this.#next.size === 0) this.#begin();
      const waiting = { limits, resolve, reject };
      const batch = this.#next.get(quotaId);
      if (batch === undefined) this.#next.set(quotaId, [waiting]);
      else batch.push(waiting);
    });
  }

  /**
   * Requests of many connections are read in one turn, one after another: they are sent once all of them were. While
   * calls are under way, what comes waits for their end and goes together: the more there is to do, the fewer the calls.
   */
  #begin(): void {
    this.#nextSinceMicros = this.#options.clock.nowMicros();
    if (!this.#isAsking) setImmediate(() => void this.#send());
  }

  async #send(): Promise<void> {
    const { answerWithinMs = ANSWER_WITHIN_MS, clock } = this.#options;
    this.#isAsking = true;
    while (this.#next.size > 0) {
      const waitedMs = (clock.nowMicros() - this.#nextSinceMicros) / 1000;
      const calls = callsOf(this.#next);
      this.#next = new Map();
      const answers = calls.map((call) => this.#answer(call, Math.max(0, answerWithinMs - waitedMs)));
      const areAnswered = await Promise.all(answers);
      // Whoever came meanwhile has waited long enough to know that Redis doesn't answer.
      if (areAnswered.includes(false)) this.#failNext(new Error(`No answer from Redis within ${answerWithinMs} ms.`));
    }
    this.#isAsking = false;
  }

  #failNext(reason: unknown): void {
    for (const batch of this.#next.values()) fail(batch, reason);
    this.#next = new Map();
  }

  /** Rejects never: its requests do. False where there was no answer. */
  async #answer(asked: readonly Asking[], withinMs: number): Promise<boolean> {
    const { promise: expiry, resolve: expire } = Promise.withResolvers<'expired'>();
    const timer = deadline(withinMs, () => expire('expired'));
    try {
      const end = await Promise.race([this.#call(asked), expiry]);
      if (end !== 'expired') return true;
      throw new Error('No answer from Redis in time.');
    } catch (error) {
      for (const { batch } of asked) fail(batch, error);
      return false;
    } finally {
      clearTimeout(timer);
    }
  }

  async #call(asked: readonly Asking[]): Promise<void> {
    const { client, clock } = this.#options;
    const sentMicros = clock.nowMicros();
    const replies = await takeFromLogs(client, asked, this.#windows);
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
    if (last !== undefined) this.#refusals.note(quotaId, last, reply, times);
    this.#options.onReply?.(quotaId, reply, times.receivedMicros);
    for (const [index, decision] of decisions.entries()) batch[index]?.resolve(decision);
  }
}

function fail(batch: readonly Waiting[], reason: unknown): void {
  for (const { reject } of batch) reject(reason);
}

export function createRedisQuota(options: RedisQuotaOptions): SharedQuota {
  return new RedisQuota(options);
}
