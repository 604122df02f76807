/**
 * Shields the store, and readers from a store in trouble: takes a `Fetch` and returns one.
 * 1. The breaker: while the store fails, calls are rejected at once, except one probe a second.
 * 2. The queue: a bounded number in flight, at a bounded rate; the others wait, not many and not long.
 * 3. Retries: few, of what can succeed, each queued again, within the deadline of the first try.
 * The deadline (`upstream.timeoutMs`, 10 s) ends a call in all: here in the queue, then by got's timer in client.ts.
 */
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import { recordingSpan } from '../tracing/spans.ts';
import type { CallRate } from './call-rate.ts';
import { type QueueLimits, type Rejection, RequestQueue } from './request-queue.ts';
import type { Resource } from './resources.ts';
import type { Fetch, FetchOptions, StoreAnswer } from './store.ts';
import { StoreError, type StoreErrorKind } from './store-error.ts';

export interface GuardLimits extends QueueLimits {
  /** How long a call may take in all: waiting, trying, and trying again. */
  readonly timeoutMs: number;
  readonly queueTimeoutMs: number;
  /** How many calls may be repeated, in percent of those sent. */
  readonly retryPercent: number;
  /** Percent of the last calls that must have failed before the breaker opens; null for never. */
  readonly breakerPercent: number | null;
}

/** `over-budget`: it was not repeated, because too many others were. */
export type RetryOutcome = 'answered' | 'failed' | 'over-budget';

/** For logs and metrics. Hooks never throw. */
export interface GuardHooks {
  onRefused?(reason: Rejection): void;
  /** A call is sent now, after that time in the queue. */
  onTurnTaken?(waitedMs: number): void;
  onRetry?(outcome: RetryOutcome): void;
  /** The breaker opened, with the last of the errors that were too many; or, with null, closed. */
  onBreaker?(error: StoreError | null): void;
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
}

/** The first try included. */
const MAX_TRIES = 3;
const MIN_RETRY_AFTER_MS = 1000;
/** The first retry comes within this time, the next within twice of it. */
const FIRST_RETRY_DELAY_MS = 100;
/** Retries that were earned in good times are not all spent at once in bad ones. */
const MAX_SAVED_RETRIES = 10;
const TOO_MANY_REQUESTS = 429;
/** A proxy in front of the store could not reach it, or the store said that it is busy. */
const RETRIED_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);
/** The store, or the way to it, has failed. A malformed record is an answer, so the store lives. */
const FAILED_KINDS: ReadonlySet<StoreErrorKind> = new Set(['timeout', 'unreachable', 'invalidResponse'] as const);

export class Guard {
  readonly #send: Fetch;
  readonly #options: GuardOptions;
  readonly #hooks: GuardHooks;
  readonly #queue: RequestQueue;
  readonly #breaker: Breaker;
  /**
   * Retries are a share of all calls: without that a store in trouble would get several times the load that brought it
   * there. In percent of a retry.
   */
  #savedPercent = 0;

  constructor(send: Fetch, options: GuardOptions) {
    const { limits, timers, hooks = {} } = options;
    this.#send = send;
    this.#options = options;
    this.#hooks = hooks;
    this.#queue = new RequestQueue(limits, timers);
    this.#breaker = new Breaker(limits.breakerPercent);
  }

  /** From now on no more calls than that rate allows. */
  limitBy(rate: CallRate): void {
    this.#queue.limitBy(rate);
  }

  status(): GuardStatus {
    return { isOpen: this.#breaker.isOpen, ...this.#queue.load() };
  }

  /** Rejects as the guarded `Fetch` does, and with kind `overloaded` or `circuitOpen` for what was not sent. */
  readonly fetch: Fetch = async (resource, params, options) => {
    const { timeoutMs, retryPercent } = this.#options.limits;
    // This deadline ends a call: it covers the wait in the queue, every try and the pauses between them. The client's timer
    // cuts an exchange at it; if that should ever fail, the cache's `maxWaitMs` ends the wait a few seconds later.
    const deadlineMs = this.#nowMs() + Math.min(timeoutMs, options.timeoutMs ?? timeoutMs);
    this.#savedPercent = Math.min(MAX_SAVED_RETRIES * 100, this.#savedPercent + retryPercent);
    for (let tries = 1; ; tries += 1) {
      try {
        const answer = await this.#try(resource, params, { ...options, deadlineMs });
        if (tries > 1) this.#hooks.onRetry?.('answered');
        return answer;
      } catch (error) {
        if (tries > 1) this.#hooks.onRetry?.('failed');
        if (tries === MAX_TRIES || !(await this.#waitToRetry(error, tries, { ...options, deadlineMs }))) throw error;
      }
    }
  };

  async #try<P, R>(resource: Resource<P, R>, params: P, { deadlineMs, ...options }: Attempt): Promise<StoreAnswer<R>> {
    const startedMs = this.#nowMs();
    const admission = this.#breaker.admit(startedMs);
    if (admission === null) throw this.#rejected('store-failing');
    const waitMs = Math.min(this.#options.limits.queueTimeoutMs, deadlineMs - startedMs);
    const { keyId, isBackground = false, signal } = options;
    const permit = await this.#queue.acquire({ keyId, isBackground, waitMs, ...(signal && { signal }) });
    try {
      if (permit === 'abandoned') throw new StoreError('aborted', 'nobody waits for the answer any more');
      if (typeof permit === 'string') throw this.#rejected(permit);
      // The breaker may have opened while this call waited.
      if (!this.#breaker.begin(admission, this.#nowMs())) throw this.#rejected('store-failing');
      const waitedMs = this.#nowMs() - startedMs;
      this.#hooks.onTurnTaken?.(waitedMs);
      recordingSpan()?.setAttribute('evalgate.store.queue_ms', Math.round(waitedMs));
      const timeoutMs = Math.max(1, Math.floor(deadlineMs - this.#nowMs()));
      const answer = await this.#send(resource, params, { ...options, timeoutMs });
      this.#settle(admission, 'success', null);
      return answer;
    } catch (error) {
      // Any other error is about an argument, and nothing was sent.
      if (error instanceof StoreError) this.#settle(admission, resultOf(error), error);
      else this.#settle(admission, 'none', null);
      throw error;
    } finally {
      if (typeof permit !== 'string') permit();
    }
  }

  /** Resolves to whether to try again, once it is time to. */
  async #waitToRetry(error: unknown, tries: number, { deadlineMs, isBackground = false }: Attempt): Promise<boolean> {
    const delayMs = retryDelayMs(error, tries);
    // What nobody waits for is fetched again with the next read.
    if (delayMs === null || isBackground || this.#breaker.isOpen) return false;
    if (this.#nowMs() + delayMs >= deadlineMs) return false;
    if (this.#savedPercent < 100) {
      this.#hooks.onRetry?.('over-budget');
      return false;
    }
    this.#savedPercent -= 100;
    await new Promise<void>((resolve) => void this.#options.timers.after(delayMs, resolve));
    return !this.#breaker.isOpen;
  }

  #settle(admission: Admission, result: CallResult, error: StoreError | null): void {
    const change = this.#breaker.settle(admission, result, this.#nowMs(), error?.retryAfterMs ?? 0);
    if (change === null) return;
    this.#hooks.onBreaker?.(error);
    if (change === 'opened') this.#queue.rejectAll();
  }

  #rejected(reason: Rejection): StoreError {
    this.#hooks.onRefused?.(reason);
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

/** How a call ended, as far as it says something of the store: `none` if it was never sent, or was abandoned. */
type CallResult = 'success' | 'failure' | 'none';

function resultOf({ kind, status }: StoreError): CallResult {
  // A store that answers a single call with a failure lives too.
  if (kind === 'errorStatus') return (status ?? 0) >= 500 || status === TOO_MANY_REQUESTS ? 'failure' : 'success';
  if (kind === 'malformed') return 'success';
  return FAILED_KINDS.has(kind) ? 'failure' : 'none';
}

/**
 * After how long a call may be repeated that was sent `tries` times; null if that is no use. The store's own `Retry-After`
 * is respected; beyond it the delay is random (full jitter), so that calls that failed together do not return together.
 */
function retryDelayMs(error: unknown, tries: number): number | null {
  if (!(error instanceof StoreError)) return null;
  const { kind, retryAfterMs } = error;
  const status = error.status ?? 0;
  const isBusy = RETRIED_STATUSES.has(status) || (status === TOO_MANY_REQUESTS && retryAfterMs !== null);
  if (kind !== 'unreachable' && !(kind === 'errorStatus' && isBusy)) return null;
  return (retryAfterMs ?? 0) + Math.random() * FIRST_RETRY_DELAY_MS * 2 ** (tries - 1);
}

/** Leave to send one call. Every one that was given must be settled. */
interface Admission {
  /** The time between two changes of the breaker that it belongs to: results of an earlier one are not counted. */
  readonly period: object;
}

/** Fewer calls than this say nothing. */
const MIN_CALLS = 10;
/** So many that a third of failures among them hardly ever looks like half of them. */
const MAX_RECENT_CALLS = 80;
const COUNTED_FOR_MS = 10_000;
const PROBE_INTERVAL_MS = 1000;
/** After so long without an answer the next probe may go: a store that hung may be well again, and this one lost. */
const PROBE_LOST_AFTER_MS = 3000;
/** A store that asks for more is asked again all the same: that it is back must be noticed soon. */
const MAX_PROBE_DELAY_MS = 4000;

interface Outage {
  probe: { readonly admission: Admission; sinceMs: number } | null;
  /** No probe goes before this time. */
  nextProbeAtMs: number;
}

/**
 * The circuit breaker: pure, the time is handed in. Closed, it counts how calls end. Open, it holds all calls back but one
 * probe at a time, at most one a second; a probe that succeeds closes it.
 *
 * It is our own because those of libraries let callers wait for the end of a probe, though ours have copies to serve, and
 * count failures of calls that were sent before it changed, so that those of an outage that is over open it again.
 */
class Breaker {
  readonly #percent: number | null;
  /** How the last calls ended, in order of time. */
  #recent: readonly { readonly atMs: number; readonly hasFailed: boolean }[] = [];
  #period: object = {};
  #outage: Outage | null = null;

  /** Opens once more than that share of the recent calls has failed, or all of them; with null it never does. */
  constructor(percent: number | null) {
    this.#percent = percent;
  }

  get isOpen(): boolean {
    return this.#outage !== null;
  }

  /** Null if the call must be held back. While it is open, one that is not null is the probe. */
  admit(nowMs: number): Admission | null {
    const outage = this.#outage;
    if (outage === null) return { period: this.#period };
    if (nowMs < outage.nextProbeAtMs) return null;
    if (outage.probe !== null && nowMs - outage.probe.sinceMs < PROBE_LOST_AFTER_MS) return null;
    const admission = { period: this.#period };
    outage.probe = { admission, sinceMs: nowMs };
    return admission;
  }

  /** Whether the call may still go: asked right before it is sent, which may be a while after it was admitted. */
  begin(admission: Admission, nowMs: number): boolean {
    const outage = this.#outage;
    if (outage === null) return true;
    if (outage.probe?.admission !== admission) return false;
    outage.probe.sinceMs = nowMs;
    outage.nextProbeAtMs = nowMs + PROBE_INTERVAL_MS;
    return true;
  }

  /** Counts how a call ended. `retryAfterMs` is what the store asked for. Returns the change that this brings. */
  settle(admission: Admission, result: CallResult, nowMs: number, retryAfterMs: number): 'opened' | 'closed' | null {
    if (admission.period !== this.#period) return null;
    if (this.#outage !== null) return this.#settleProbe(this.#outage, admission, result, nowMs + retryAfterMs);
    if (result === 'none') return null;
    const recent = [...this.#recent, { atMs: nowMs, hasFailed: result === 'failure' }];
    this.#recent = recent.slice(-MAX_RECENT_CALLS).filter(({ atMs }) => nowMs - atMs < COUNTED_FOR_MS);
    if (result !== 'failure' || !this.#isTooMuch()) return null;
    this.#period = {};
    this.#outage = { probe: null, nextProbeAtMs: nowMs + PROBE_INTERVAL_MS };
    return 'opened';
  }

  /** How long calls are held back for at least. */
  probeInMs(nowMs: number): number {
    return Math.max(0, (this.#outage?.nextProbeAtMs ?? nowMs) - nowMs);
  }

  #isTooMuch(): boolean {
    const { length } = this.#recent;
    const failedPercent = (100 * this.#recent.filter(({ hasFailed }) => hasFailed).length) / length;
    return this.#percent !== null && length >= MIN_CALLS && (failedPercent > this.#percent || failedPercent === 100);
  }

  #settleProbe(outage: Outage, admission: Admission, result: CallResult, retryAtMs: number): 'closed' | null {
    // A probe that was taken for lost is good news all the same.
    if (result === 'success') {
      this.#period = {};
      this.#outage = null;
      this.#recent = [];
      return 'closed';
    }
    if (outage.probe?.admission !== admission) return null;
    outage.probe = null;
    if (result === 'failure') {
      const latestMs = outage.nextProbeAtMs - PROBE_INTERVAL_MS + MAX_PROBE_DELAY_MS;
      outage.nextProbeAtMs = Math.max(outage.nextProbeAtMs, Math.min(retryAtMs, latestMs));
    }
    return null;
  }
}
