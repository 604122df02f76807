/**
 * Shields the store, and its readers from a store in trouble: a wrapper of its interface, as any other.
 * 1. The breaker: while the store fails, calls are refused at once, but for one probe a second.
 * 2. The queue: a bounded number in flight, a bounded rate; the others wait in order, not many and not long.
 * 3. Repetitions: few, of what can succeed, each with a new turn of its own, within the deadline of the first.
 */
import type { Clock } from '../../clock.ts';
import type { Timers } from '../../timers.ts';
import type { ApiKeySource } from '../http-store.ts';
import type { StoreResource } from '../question.ts';
import { type EvaluationStore, type FetchOptions, StoreError } from '../store.ts';
import { Breaker, type Pass } from './breaker.ts';
import type { CallRate } from './call-rate.ts';
import type { GuardHooks, GuardRefusal, GuardStatus } from './hooks.ts';
import { RetryBudget } from './retry-budget.ts';
import { Turns } from './turns.ts';
import { retryDelayMs, verdictOf } from './verdicts.ts';

export type Guarded = EvaluationStore & ApiKeySource;

export interface GuardLimits {
  /** How long a call may take in all: waiting, trying, and trying again. */
  readonly timeoutMs: number;
  readonly maxInFlight: number;
  readonly maxQueue: number;
  readonly queueTimeoutMs: number;
  /** How many calls may be repeated, in percent of those sent. */
  readonly retryPercent: number;
  /** Percent of the last calls that must have failed before the store is left alone; null for never. */
  readonly breakerPercent: number | null;
}

export interface GuardOptions {
  readonly store: Guarded;
  readonly limits: GuardLimits;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly hooks?: GuardHooks;
  /** From 0 to below 1. */
  readonly random?: () => number;
}

export interface GuardedStore extends Guarded {
  /** From now on no more calls than that rate allows. */
  limitBy(rate: CallRate): void;
  guardStatus(): GuardStatus;
}

/** Its methods reject as the store's do, and with a StoreError of kind `overloaded` or `suspended` for what was not sent. */
export function guardStore(options: GuardOptions): GuardedStore {
  const { store } = options;
  const guard = new Guard(options);
  return {
    list: (query, request) => guard.ask('list', request, (sent) => store.list(query, sent)),
    evaluation: (id, request) => guard.ask('evaluation', request, (sent) => store.evaluation(id, sent)),
    transcript: (id, request) => guard.ask('transcript', request, (sent) => store.transcript(id, sent)),
    scorecard: (id, request) => guard.ask('scorecard', request, (sent) => store.scorecard(id, sent)),
    dealInsights: (id, request) => guard.ask('dealInsights', request, (sent) => store.dealInsights(id, sent)),
    rubric: (id, request) => guard.ask('rubric', request, (sent) => store.rubric(id, sent)),
    apiKey: (hash, request) => guard.ask('apiKey', request, (sent) => store.apiKey(hash, sent)),
    limitBy: (rate) => guard.turns.limitBy(rate),
    guardStatus: () => guard.status(),
  };
}

/** The first try included. */
const MOST_TRIES = 3;
const SUSPENDED_AT_LEAST_MS = 1000;

/** One call, in all its tries. */
interface Call<T> {
  readonly resource: StoreResource;
  readonly request: FetchOptions;
  readonly send: (request: FetchOptions) => Promise<T>;
  /** When its time is over. */
  readonly endMs: number;
}

class Guard {
  readonly turns: Turns;
  readonly #options: GuardOptions;
  readonly #hooks: GuardHooks;
  readonly #breaker: Breaker;
  readonly #budget: RetryBudget;

  constructor(options: GuardOptions) {
    const { limits, timers, hooks = {} } = options;
    this.#options = options;
    this.#hooks = hooks;
    this.turns = new Turns({ ...limits, timers });
    this.#breaker = new Breaker(limits.breakerPercent);
    this.#budget = new RetryBudget(limits.retryPercent);
  }

  status(): GuardStatus {
    return { isOpen: this.#breaker.isOpen, inFlight: this.turns.inFlight, queued: this.turns.queued };
  }

  ask<T>(resource: StoreResource, request: FetchOptions, send: Call<T>['send']): Promise<T> {
    const { timeoutMs } = this.#options.limits;
    const endMs = this.#nowMs() + Math.min(timeoutMs, request.timeoutMs ?? timeoutMs);
    const call = { resource, request, send, endMs };
    return this.#try(call, true).catch((error: unknown) => this.#repeat(call, error));
  }

  /** Rejects with the last failure where that is of no use, or no more. */
  async #repeat<T>(call: Call<T>, firstFailure: unknown): Promise<T> {
    let failure = firstFailure;
    for (let tries = 1; tries < MOST_TRIES && (await this.#mayRepeat(call, failure, tries)); tries += 1) {
      try {
        const answer = await this.#try(call, false);
        this.#hooks.onRetry?.({ outcome: 'answered' });
        return answer;
      } catch (error) {
        this.#hooks.onRetry?.({ outcome: 'failed' });
        failure = error;
      }
    }
    throw failure;
  }

  async #try<T>({ resource, request, send, endMs }: Call<T>, isFirst: boolean): Promise<T> {
    const beganMs = this.#nowMs();
    const pass = this.#breaker.admit(beganMs);
    if (pass === null) throw this.#refusal(resource, 'store-failing');
    const waitMs = Math.min(this.#options.limits.queueTimeoutMs, endMs - beganMs);
    const turn = await this.turns.take({ isBackground: request.isBackground ?? false, waitMs });
    try {
      if (turn.kind === 'refused') throw this.#refusal(resource, turn.reason);
      // It may have opened while this call waited.
      if (!this.#breaker.begin(pass, this.#nowMs())) throw this.#refusal(resource, 'store-failing');
      this.#hooks.onTurnTaken?.({ waitedMs: this.#nowMs() - beganMs });
      if (isFirst) this.#budget.earn();
      const answer = await send({ ...request, timeoutMs: Math.max(1, Math.floor(endMs - this.#nowMs())) });
      this.#settle(pass, 'good');
      return answer;
    } catch (error) {
      this.#settleFailed(pass, error);
      throw error;
    } finally {
      if (turn.kind === 'granted') turn.release();
    }
  }

  /** Resolves to whether to try again, once it is time to. */
  async #mayRepeat<T>({ request, endMs }: Call<T>, error: unknown, tries: number): Promise<boolean> {
    const { random = Math.random, timers } = this.#options;
    const delayMs = retryDelayMs(error, tries, random());
    // What nobody waits for is asked again with the next read.
    if (delayMs === null || request.isBackground === true || this.#breaker.isOpen) return false;
    if (this.#nowMs() + delayMs >= endMs) return false;
    if (!this.#budget.spend()) {
      this.#hooks.onRetry?.({ outcome: 'over-budget' });
      return false;
    }
    await new Promise<void>((resolve) => void timers.after(delayMs, resolve));
    return !this.#breaker.isOpen;
  }

  #settle(pass: Pass, verdict: 'good' | 'none'): void {
    if (this.#breaker.settle(pass, verdict, this.#nowMs()) === 'closed') this.#hooks.onClosed?.();
  }

  #settleFailed(pass: Pass, error: unknown): void {
    // What else is thrown is about an argument, and nothing was sent.
    if (!(error instanceof StoreError)) return this.#settle(pass, 'none');
    const verdict = verdictOf(error);
    if (verdict !== 'bad') return this.#settle(pass, verdict);
    if (this.#breaker.settle(pass, verdict, this.#nowMs(), error.retryAfterMs) !== 'opened') return;
    this.#hooks.onOpened?.(error);
    this.turns.refuseAll('store-failing');
  }

  #refusal(resource: StoreResource, reason: GuardRefusal): StoreError {
    this.#hooks.onRefused?.({ resource, reason });
    return reason === 'store-failing' ? this.#suspended() : this.#overloaded(reason);
  }

  #suspended(): StoreError {
    const retryAfterMs = Math.max(SUSPENDED_AT_LEAST_MS, this.#breaker.probeInMs(this.#nowMs()));
    return new StoreError('suspended', 'the call was held back: too many of the last ones failed', { retryAfterMs });
  }

  /** By then all have gone that waited. */
  #overloaded(reason: Exclude<GuardRefusal, 'store-failing'>): StoreError {
    const { maxQueue, queueTimeoutMs } = this.#options.limits;
    const why = reason === 'queue-full' ? `${maxQueue} others waited` : `it had waited for ${queueTimeoutMs} ms`;
    const retryAfterMs = Math.max(SUSPENDED_AT_LEAST_MS, queueTimeoutMs);
    return new StoreError('overloaded', `the call was not sent to the store: ${why}`, { retryAfterMs });
  }

  /** Of a clock that is never set back. */
  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }
}
