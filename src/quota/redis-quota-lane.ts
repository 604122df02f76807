/**
 * Questions about quotas on their way to Redis, some at a time: what comes while calls are under way waits for their end and
 * goes together.
 */
import type { Clock } from '../clock.ts';
import type { QuotaDecision, QuotaLimits } from './quota.ts';
import { MOST_REQUESTS, type QuotaRequests, type RequestRun } from './redis-log.ts';

/** `T`: what is answered; a decision on a request, or how the quota stands. */
export interface Waiting<T = QuotaDecision> {
  readonly limits: QuotaLimits;
  readonly resolve: (answer: T) => void;
  readonly reject: (reason: unknown) => void;
}

/** What one call asks of one quota. */
export interface Asking<T = QuotaDecision> extends QuotaRequests {
  readonly batch: readonly Waiting<T>[];
}

export interface QuotaLaneOptions<T> {
  readonly clock: Clock;
  /** How long a request waits for Redis. */
  readonly answerWithinMs: number;
  /** Asks Redis and settles all that got an answer; rejects where there was none. */
  readonly call: (asked: readonly Asking<T>[]) => Promise<void>;
}

/** Quotas decided on in one call: each takes Redis some 20 µs, in which it answers nobody else. */
const MOST_LOGS = 64;
/** Microseconds where there is nothing to do; where there is much, each makes the next call larger and the calls fewer. */
const TURNS_BETWEEN_CALLS = 2;
/** What Redis gets in any case: many times what it takes. */
const LEAST_WAIT_MS = 20;

export class QuotaLane<T> {
  readonly #options: QuotaLaneOptions<T>;
  /** Requests for the next calls. */
  #next = new Map<string, Waiting<T>[]>();
  /** When the first of them came. */
  #nextSinceMicros = 0;
  #isAsking = false;

  constructor(options: QuotaLaneOptions<T>) {
    this.#options = options;
  }

  /** Rejects where no answer came in time. */
  ask(quotaId: string, limits: QuotaLimits): Promise<T> {
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
    const { answerWithinMs, clock } = this.#options;
    this.#isAsking = true;
    while (this.#next.size > 0) {
      const waitedMs = (clock.nowMicros() - this.#nextSinceMicros) / 1000;
      const calls = callsOf(this.#next);
      this.#next = new Map();
      // A process that was held up before it asked must give Redis time to answer all the same.
      const withinMs = Math.max(Math.min(LEAST_WAIT_MS, answerWithinMs), answerWithinMs - waitedMs);
      const answers = calls.map((call) => this.#answer(call, withinMs));
      const areAnswered = await Promise.all(answers);
      // Whoever came meanwhile has waited long enough to know that Redis doesn't answer.
      if (areAnswered.includes(false)) this.#failNext(new Error(`No answer from Redis within ${answerWithinMs} ms.`));
      // Those too that have arrived and were not read yet when the answer was, and those that come while they are read.
      for (let turn = 0; turn < TURNS_BETWEEN_CALLS && this.#next.size > 0; turn += 1) await turnOfEventLoop();
    }
    this.#isAsking = false;
  }

  #failNext(reason: unknown): void {
    for (const batch of this.#next.values()) fail(batch, reason);
    this.#next = new Map();
  }

  /** Rejects never: its requests do. False where there was no answer. */
  #answer(asked: readonly Asking<T>[], withinMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const failAll = (reason: unknown): void => {
        clearTimeout(timer);
        for (const { batch } of asked) fail(batch, reason);
        resolve(false);
      };
      const timer = deadline(withinMs, () => failAll(new Error('No answer from Redis in time.')));
      const settle = async (): Promise<void> => {
        try {
          await this.#options.call(asked);
          clearTimeout(timer);
          resolve(true);
        } catch (error) {
          failAll(error);
        }
      };
      void settle();
    });
  }
}

export function fail<T>(batch: readonly Waiting<T>[], reason: unknown): void {
  for (const { reject } of batch) reject(reason);
}

function runsOf<T>(batch: readonly Waiting<T>[]): RequestRun[] {
  const runs: { limits: QuotaLimits; count: number }[] = [];
  for (const { limits } of batch) {
    const last = runs.at(-1);
    if (last?.limits.perMinute === limits.perMinute && last.limits.perHour === limits.perHour) last.count += 1;
    else runs.push({ limits, count: 1 });
  }
  return runs;
}

/** All requests that wait, in calls of bounded size. */
function callsOf<T>(waiting: ReadonlyMap<string, readonly Waiting<T>[]>): readonly (readonly Asking<T>[])[] {
  const calls: Asking<T>[][] = [[]];
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

/** Resolves once all that has arrived was read. */
function turnOfEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}
