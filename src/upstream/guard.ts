/**
 * Shields the store, and readers from a store in trouble: takes a `Fetch` and returns one.
 * 1. The breaker: while the store fails, calls are rejected at once, except one probe a second.
 * 2. The queue: a bounded number in flight, at a bounded rate; the others wait, not many and not long.
 * 3. Retries: few, of what can succeed, each queued again, within the deadline of the first try.
 */
import type { Clock } from '../clock.ts';
import type { Timers } from '../timers.ts';
import { recordingSpan } from '../tracing/spans.ts';
import { type Admission, Breaker, type CallResult } from './breaker.ts';
import type { CallRate } from './call-rate.ts';
import { type Rejection, RequestQueue } from './request-queue.ts';
import type { Resource, ResourceName } from './resources.ts';
import { type Fetch, type FetchOptions, type StoreAnswer, StoreError, type StoreErrorKind } from './store.ts';

export interface GuardLimits {
  /** How long a call may take in all: waiting, trying, and trying again. */
  readonly timeoutMs: number;
  readonly maxInFlight: number;
  readonly maxQueue: number;
  /** The share of `maxInFlight` that one API key leaves to others, in percent. */
  readonly reservePercent: number;
  readonly queueTimeoutMs: number;
  /** How many calls may be repeated, in percent of those sent. */
  readonly retryPercent: number;
  /** Percent of the last calls that must have failed before the breaker opens; null for never. */
  readonly breakerPercent: number | null;
}

/** `over-budget`: it was not repeated, because too many others were. */
export type RetryOutcome = 'answered' | 'failed' | 'over-budget';

/** What the guard reports, for logs and metrics. Hooks never throw. */
export interface GuardHooks {
  onRefused?(rejection: { readonly resource: ResourceName; readonly reason: Rejection }): void;
  /** A call is sent now, after that time in the queue. */
  onTurnTaken?(turn: { readonly waitedMs: number }): void;
  onRetry?(retry: { readonly outcome: RetryOutcome }): void;
  /** The breaker opened; the error is the last of those that were too many. */
  onOpened?(error: StoreError): void;
  onClosed?(): void;
}

export interface GuardStatus {
  /** Whether the breaker is open. */
  readonly isOpen: boolean;
  readonly inFlight: number;
  readonly queued: number;
}

export interface GuardOptions {
  readonly limits: GuardLimits;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly hooks?: GuardHooks;
  /** From 0 to below 1. */
  readonly random?: () => number;
}

/** The first try included. */
const MAX_TRIES = 3;
const MIN_RETRY_AFTER_MS = 1000;
/** The first retry comes within this time, the next within twice of it. */
const FIRST_RETRY_DELAY_MS = 100;
const TOO_MANY_REQUESTS = 429;
/** Whatever stands in front of the store could not reach it, or the store said that it is busy. */
const RETRIED_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

export class Guard {
  readonly #send: Fetch;
  readonly #options: GuardOptions;
  readonly #hooks: GuardHooks;
  readonly #queue: RequestQueue;
  readonly #breaker: Breaker;
  readonly #budget: RetryBudget;

  constructor(send: Fetch, options: GuardOptions) {
    const { limits, timers, hooks = {} } = options;
    this.#send = send;
    this.#options = options;
    this.#hooks = hooks;
    this.#queue = new RequestQueue({ ...limits, timers });
    this.#breaker = new Breaker(limits.breakerPercent);
    this.#budget = new RetryBudget(limits.retryPercent);
  }

  /** From now on no more calls than that rate allows. */
  limitBy(rate: CallRate): void {
    this.#queue.limitBy(rate);
  }

  status(): GuardStatus {
    return { isOpen: this.#breaker.isOpen, inFlight: this.#queue.inFlight, queued: this.#queue.queued };
  }

  /** Rejects as the guarded `Fetch` does, and with kind `overloaded` or `circuitOpen` for what was not sent. */
  readonly fetch: Fetch = async (resource, params, options) => {
    const { timeoutMs } = this.#options.limits;
    // This deadline ends a call: it covers the wait in the queue, every try and the pauses between them.
    const deadlineMs = this.#nowMs() + Math.min(timeoutMs, options.timeoutMs ?? timeoutMs);
    for (let tries = 1; ; tries += 1) {
      try {
        if (tries === 1) this.#budget.earn();
        const answer = await this.#try(resource, params, { ...options, deadlineMs });
        if (tries > 1) this.#hooks.onRetry?.({ outcome: 'answered' });
        return answer;
      } catch (error) {
        if (tries > 1) this.#hooks.onRetry?.({ outcome: 'failed' });
        if (tries === MAX_TRIES || !(await this.#waitToRetry(error, tries, { ...options, deadlineMs }))) throw error;
      }
    }
  };

  async #try<P, R>(resource: Resource<P, R>, params: P, { deadlineMs, ...options }: Attempt): Promise<StoreAnswer<R>> {
    const startedMs = this.#nowMs();
    const admission = this.#breaker.admit(startedMs);
    if (admission === null) throw this.#rejected(resource.name, 'store-failing');
    const waitMs = Math.min(this.#options.limits.queueTimeoutMs, deadlineMs - startedMs);
    const { keyId, isBackground = false } = options;
    const permit = await this.#queue.acquire({ keyId, isBackground, waitMs });
    try {
      if (permit.kind === 'rejected') throw this.#rejected(resource.name, permit.reason);
      // The breaker may have opened while this call waited.
      if (!this.#breaker.begin(admission, this.#nowMs())) throw this.#rejected(resource.name, 'store-failing');
      const waitedMs = this.#nowMs() - startedMs;
      this.#hooks.onTurnTaken?.({ waitedMs });
      recordingSpan()?.setAttribute('evalgate.store.queue_ms', Math.round(waitedMs));
      const timeoutMs = Math.max(1, Math.floor(deadlineMs - this.#nowMs()));
      const answer = await this.#send(resource, params, { ...options, timeoutMs });
      this.#settle(admission, 'success', null);
      return answer;
    } catch (error) {
      this.#settle(admission, resultOf(error), error);
      throw error;
    } finally {
      if (permit.kind === 'granted') permit.release();
    }
  }

  /** Resolves to whether to try again, once it is time to. */
  async #waitToRetry(error: unknown, tries: number, { deadlineMs, isBackground = false }: Attempt): Promise<boolean> {
    const { random = Math.random, timers } = this.#options;
    const delayMs = retryDelayMs(error, tries, random());
    // What nobody waits for is fetched again with the next read.
    if (delayMs === null || isBackground || this.#breaker.isOpen) return false;
    if (this.#nowMs() + delayMs >= deadlineMs) return false;
    if (!this.#budget.spend()) {
      this.#hooks.onRetry?.({ outcome: 'over-budget' });
      return false;
    }
    await new Promise<void>((resolve) => void timers.after(delayMs, resolve));
    return !this.#breaker.isOpen;
  }

  #settle(admission: Admission, result: CallResult, error: unknown): void {
    const retryAfterMs = error instanceof StoreError ? error.retryAfterMs : null;
    const change = this.#breaker.settle(admission, result, this.#nowMs(), retryAfterMs);
    if (change === 'closed') this.#hooks.onClosed?.();
    if (change !== 'opened' || !(error instanceof StoreError)) return;
    this.#hooks.onOpened?.(error);
    this.#queue.rejectAll('store-failing');
  }

  #rejected(resource: ResourceName, reason: Rejection): StoreError {
    this.#hooks.onRefused?.({ resource, reason });
    if (reason === 'store-failing') {
      const retryAfterMs = Math.max(MIN_RETRY_AFTER_MS, this.#breaker.probeInMs(this.#nowMs()));
      return new StoreError('circuitOpen', 'the call was held back: too many of the last ones failed', {
        retryAfterMs,
      });
    }
    const { maxQueue, queueTimeoutMs } = this.#options.limits;
    const why = reason === 'queue-full' ? `${maxQueue} others waited` : `it had waited for ${queueTimeoutMs} ms`;
    // By then all calls that wait now are gone.
    const retryAfterMs = Math.max(MIN_RETRY_AFTER_MS, queueTimeoutMs);
    return new StoreError('overloaded', `the call was not sent to the store: ${why}`, { retryAfterMs });
  }

  /** A clock that is never set back. */
  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }
}

type Attempt = FetchOptions & { readonly deadlineMs: number };

/** An unusable record is an answer, so the store lives; so does one that answers a single call with a failure. */
const RESULTS: Readonly<Record<Exclude<StoreErrorKind, 'errorStatus'>, CallResult>> = {
  timeout: 'failure',
  unreachable: 'failure',
  invalidResponse: 'failure',
  malformed: 'success',
  overloaded: 'none',
  circuitOpen: 'none',
  maintenance: 'none',
  aborted: 'none',
};

/** What a failed call says of the store. */
function resultOf(error: unknown): CallResult {
  // Anything else is about an argument, and nothing was sent.
  if (!(error instanceof StoreError)) return 'none';
  if (error.kind !== 'errorStatus') return RESULTS[error.kind];
  return (error.status ?? 0) >= 500 || error.status === TOO_MANY_REQUESTS ? 'failure' : 'success';
}

/**
 * After how long a call may be repeated that was sent `tries` times; null if that is no use. The store's own `Retry-After`
 * is respected; beyond it the delay is random (full jitter), so that calls that failed together do not return together.
 */
function retryDelayMs(error: unknown, tries: number, random: number): number | null {
  if (!(error instanceof StoreError)) return null;
  const { kind, status, retryAfterMs } = error;
  const isPassing =
    kind === 'unreachable' ||
    (kind === 'errorStatus' && RETRIED_STATUSES.has(status ?? 0)) ||
    (kind === 'errorStatus' && status === TOO_MANY_REQUESTS && retryAfterMs !== null);
  return isPassing ? (retryAfterMs ?? 0) + random * FIRST_RETRY_DELAY_MS * 2 ** (tries - 1) : null;
}

/** What was earned in good times is not all spent at once in bad ones. */
const MAX_SAVED_RETRIES = 10;

/** Retries as a share of all calls. Without it a store in trouble would get several times the load that brought it there. */
class RetryBudget {
  readonly #share: number;
  #balance = 0;

  constructor(percent: number) {
    this.#share = percent / 100;
  }

  /** For each call, on its first try. */
  earn(): void {
    this.#balance = Math.min(MAX_SAVED_RETRIES, this.#balance + this.#share);
  }

  /** False if there is nothing left to spend. */
  spend(): boolean {
    // A tenth, ten times, is a little less than one.
    if (this.#balance < 1 - 1e-9) return false;
    this.#balance -= 1;
    return true;
  }
}
