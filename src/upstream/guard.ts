/**
 * Shields the store, and readers from a store in trouble: takes a `Fetch` and returns one.
 * 1. The circuits: while the store fails, for one API key or for all, calls are rejected at once, except one probe a second.
 * 2. The queue: a bounded number in flight, at a bounded rate; the others wait, not many and not long. The number is found by
 *    how the store bears it (concurrency-limit.ts); what it answers for does not count for the circuits.
 * 3. Retries: few, of what can succeed, each queued again, within the deadline of the first try.
 * The deadline (`upstream.timeout`, 10 s) ends a call in all: here in the queue, then by the timer in client.ts.
 */
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import { recordingSpan } from '../tracing/spans.ts';
import type { CallRate } from './call-rate.ts';
import { type CallResult, type CallOrigin, Circuits, type Admission } from './circuits.ts';
import { type CallEnd, ConcurrencyLimit, FIRST_ANSWER_MS } from './concurrency-limit.ts';
import { type QueueLimits, type Rejection, RequestQueue } from './request-queue.ts';
import type { Resource } from './resources.ts';
import type { Fetch, FetchOptions, StoreAnswer } from './store.ts';
import { StoreError, type StoreErrorKind } from './store-error.ts';

export interface GuardLimits extends QueueLimits {
  /** How long a call may take in all: waiting, trying, and trying again. */
  readonly timeoutMs: number;
  readonly queueTimeoutMs: number;
  /** Whether the number of calls in flight is found; else it is `maxConnections`. */
  readonly adaptive: boolean;
  /** How many calls may be repeated, in percent of those sent. */
  readonly retryPercent: number;
  /** Percent of the last calls that must have failed before a circuit opens; null for never. */
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
  /**
   * A circuit opened, with the last of the errors that were too many; or, with null, closed. `keyId`: that of one key; null
   * for that of all.
   */
  onCircuit?(keyId: string | null, error: StoreError | null): void;
  /** The number of calls that may be in flight has changed. */
  onLimit?(limit: number): void;
}

export interface GuardStatus {
  /** Whether the circuit of all is open. */
  readonly isOpen: boolean;
  /** How many API keys have an open circuit of their own. */
  readonly openKeys: number;
  readonly inFlight: number;
  readonly queued: number;
  /** How many calls may be in flight. */
  readonly limit: number;
  /** Whether the store itself has shown that it bears no more. */
  readonly isLimitFound: boolean;
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
const UNAVAILABLE = 503;
const GATEWAY_TIMEOUT = 504;
/** A proxy in front of the store could not reach it, or the store said that it is busy. */
const RETRIED_STATUSES: ReadonlySet<number> = new Set([502, UNAVAILABLE, GATEWAY_TIMEOUT]);
/** The store, or the way to it, has failed. A malformed record is an answer (S2: a record's trouble is its own). */
const FAILED_KINDS: ReadonlySet<StoreErrorKind> = new Set(['timeout', 'unreachable', 'garbled'] as const);

export class Guard {
  readonly #send: Fetch;
  readonly #options: GuardOptions;
  readonly #hooks: GuardHooks;
  readonly #queue: RequestQueue;
  readonly #circuits: Circuits;
  /** Null for a fixed one. */
  readonly #limit: ConcurrencyLimit | null;
  #lastLimit: number;
  /**
   * Retries are a share of all calls: without that a store in trouble would get several times the load that brought it
   * there. In percent of a retry.
   */
  #savedPercent = 0;

  constructor(send: Fetch, options: GuardOptions) {
    const { limits, clock, timers, hooks = {} } = options;
    this.#send = send;
    this.#options = options;
    this.#hooks = hooks;
    this.#queue = new RequestQueue(limits, { clock, timers });
    this.#circuits = new Circuits(limits.breakerPercent);
    this.#limit = limits.adaptive ? new ConcurrencyLimit(limits.maxConnections, clock) : null;
    this.#lastLimit = limits.maxConnections;
    this.#useLimit();
  }

  /** From now on no more calls than that rate allows. */
  limitBy(rate: CallRate): void {
    this.#queue.limitBy(rate);
  }

  /** Whether a call may be sent at once, and none waits. */
  hasRoom(): boolean {
    const { inFlight, queued } = this.#queue.load();
    return (
      queued === 0 && inFlight < (this.#limit?.allowed ?? this.#options.limits.maxConnections) && !this.#circuits.isOpen
    );
  }

  status(): GuardStatus {
    const { isOpen } = this.#circuits;
    const { limit, isFound } = this.#limit?.status() ?? { limit: this.#options.limits.maxConnections, isFound: false };
    const openKeys = this.#circuits.openKeys(this.#nowMs());
    return { isOpen, openKeys, ...this.#queue.load(), limit, isLimitFound: isFound };
  }

  /** Rejects as the guarded `Fetch` does, and with kind `overloaded` or `suspended` for what was not sent. */
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
        const isRepeated = tries < MAX_TRIES && (await this.#waitToRetry(error, tries, { ...options, deadlineMs }));
        if (!isRepeated) throw this.#forReaders(error, options);
      }
    }
  };

  /**
   * The error that the readers of a failed call get. The store's `Retry-After` is passed on only while calls are held back here
   * too: else the next request is sent at once, and may well be answered, so nobody need wait longer than after any failure.
   */
  #forReaders(error: unknown, { keyId, isBackground = false }: FetchOptions): unknown {
    if (!(error instanceof StoreError) || error.kind !== 'refused') return error;
    return this.#circuits.heldBackBy({ keyId, isBackground }) === null ? error.withoutRetryAfter() : error;
  }

  async #try<P, R>(resource: Resource<P, R>, params: P, { deadlineMs, ...options }: Attempt): Promise<StoreAnswer<R>> {
    const startedMs = this.#nowMs();
    const { keyId, isBackground = false, isEarly = false, isUrgent = false, readers = () => 1, signal } = options;
    const origin = { keyId, isBackground };
    const admission = this.#circuits.admit(origin, startedMs);
    if (admission === null) throw this.#heldBack(origin);
    // Until the store has shown its limit, it may bear what would be refused.
    const { queueTimeoutMs, timeoutMs: longestMs } = this.#options.limits;
    const queueMs = isUrgent || this.#limit?.isUnproven === true ? longestMs : queueTimeoutMs;
    const waitMs = isEarly ? 0 : Math.min(queueMs, deadlineMs - startedMs);
    const permit = await this.#queue.acquire({ ...origin, readers, waitMs, ...(signal && { signal }) });
    let sent: SentCall | null = null;
    try {
      if (permit === 'abandoned') throw new StoreError('aborted', 'nobody waits for the answer any more');
      if (typeof permit === 'string') throw this.#rejected(permit, origin, { waitMs, isUrgent });
      // A circuit may have opened while this call waited.
      if (!this.#circuits.begin(admission, this.#nowMs())) throw this.#heldBack(origin);
      const waitedMs = this.#nowMs() - startedMs;
      this.#hooks.onTurnTaken?.(waitedMs);
      recordingSpan()?.setAttribute('evalgate.store.queue_ms', Math.round(waitedMs));
      const timeoutMs = Math.max(1, Math.floor(deadlineMs - this.#nowMs()));
      sent = this.#beginCall(resource, params, keyId);
      const answer = await this.#send(resource, params, { ...options, timeoutMs, onHeaders: sent.onHeaders });
      sent.end(null);
      this.#settle(admission, 'success', null);
      return answer;
    } catch (error) {
      // Any other error is about an argument, and nothing was sent.
      const isLimits = sent?.end(error) === true && this.#circuits.heldBackBy(origin) === null;
      if (error instanceof StoreError) this.#settle(admission, isLimits ? 'none' : resultOf(error), error);
      else this.#settle(admission, 'none', null);
      throw error;
    } finally {
      if (typeof permit !== 'string') permit();
    }
  }

  /** Counts a call that is sent now. */
  #beginCall<P, R>(resource: Resource<P, R>, params: P, keyId: string | undefined): SentCall {
    const limit = this.#limit;
    if (limit === null) return { onHeaders: () => {}, end: () => false };
    const othersWait = this.#queue.isFull;
    const call = limit.begin({ resource: resource.name, keyId, path: resource.path(params), othersWait });
    this.#useLimit();
    const stopWaiting = limit.isUnanswered
      ? this.#options.timers.after(FIRST_ANSWER_MS, () => {
          limit.noAnswerYet(call);
          this.#useLimit();
        })
      : null;
    const sentMs = this.#nowMs();
    let latencyMs: number | null = null;
    return {
      onHeaders: () => {
        latencyMs = this.#nowMs() - sentMs;
      },
      end: (error) => {
        stopWaiting?.();
        const isAnsweredFor = limit.end(call, { sign: signOf(error, latencyMs), latencyMs });
        this.#useLimit();
        return isAnsweredFor;
      },
    };
  }

  #useLimit(): void {
    if (this.#limit === null) return;
    this.#queue.resize(this.#limit.allowed, this.#limit.isUnproven);
    const { limit } = this.#limit.status();
    if (limit !== this.#lastLimit) this.#hooks.onLimit?.(limit);
    this.#lastLimit = limit;
  }

  /** Resolves to whether to try again, once it is time to. */
  async #waitToRetry(error: unknown, tries: number, attempt: Attempt): Promise<boolean> {
    const { keyId, deadlineMs, isBackground = false } = attempt;
    const delayMs = retryDelayMs(error, tries);
    const isHeldBack = (): boolean => this.#circuits.heldBackBy({ keyId, isBackground }) !== null;
    // A refresh that nobody waits for is made again with the next read.
    if (delayMs === null || isBackground || isHeldBack()) return false;
    if (this.#nowMs() + delayMs >= deadlineMs) return false;
    if (this.#savedPercent < 100) {
      this.#hooks.onRetry?.('over-budget');
      return false;
    }
    this.#savedPercent -= 100;
    await new Promise<void>((resolve) => void this.#options.timers.after(delayMs, resolve));
    return !isHeldBack();
  }

  #settle(admission: Admission, result: CallResult, error: StoreError | null): void {
    const end = { result, isUnprovoked: error?.isUnprovoked ?? false, retryAfterMs: error?.retryAfterMs ?? 0 };
    for (const { keyId, change } of this.#circuits.settle(admission, end, this.#nowMs())) {
      this.#hooks.onCircuit?.(keyId, change === 'opened' ? error : null);
      if (change === 'opened' && keyId === null) this.#queue.rejectAll();
    }
  }

  #heldBack(origin: CallOrigin): StoreError {
    const reason = this.#circuits.heldBackBy(origin) === 'key' ? 'key-failing' : 'store-failing';
    return this.#rejected(reason, origin, { waitMs: 0, isUrgent: false });
  }

  /** `waitMs`: how long the call might have waited. */
  #rejected(
    reason: Rejection,
    origin: CallOrigin,
    { waitMs, isUrgent }: { readonly waitMs: number; readonly isUrgent: boolean },
  ): StoreError {
    this.#hooks.onRefused?.(reason);
    if (reason === 'store-failing' || reason === 'key-failing') {
      const retryAfterMs = Math.max(MIN_RETRY_AFTER_MS, this.#circuits.probeInMs(origin, this.#nowMs()));
      const whose = reason === 'key-failing' ? ' of its API key' : '';
      return new StoreError('suspended', `the call was held back: too many of the last ones${whose} failed`, {
        retryAfterMs,
      });
    }
    const { maxQueue, queueTimeoutMs } = this.#options.limits;
    const reasons = {
      'queue-full': `${maxQueue} others waited`,
      'queue-timeout': `it had waited for ${Math.round(waitMs)} ms`,
      'renewal-dropped': 'the renewal could not be had in time',
    };
    // By then all calls that wait now are gone.
    const retryAfterMs = Math.max(MIN_RETRY_AFTER_MS, queueTimeoutMs);
    const isGivenUp = reason !== 'queue-full' && !isUrgent;
    const message = `the call was not sent to the store: ${reasons[reason]}`;
    return new StoreError('overloaded', message, { retryAfterMs, isGivenUp });
  }

  /** A clock that is never set back. */
  #nowMs(): number {
    return this.#options.clock.nowMicros() / 1000;
  }
}

/** A call as the limit of calls in flight sees it. */
interface SentCall {
  readonly onHeaders: () => void;
  /** Called once, with how it failed. Returns whether the limit answers for that, so that it says nothing of the store. */
  readonly end: (error: unknown) => boolean;
}

type Attempt = FetchOptions & { readonly deadlineMs: number };

function resultOf({ kind, status }: StoreError): CallResult {
  // A store that answers a single call with a failure lives too.
  if (kind === 'refused') return (status ?? 0) >= 500 || status === TOO_MANY_REQUESTS ? 'failure' : 'success';
  if (kind === 'malformed') return 'success';
  return FAILED_KINDS.has(kind) ? 'failure' : 'none';
}

/** The sign of the store's load that a call gives. A proxy in front of a store that is late answers with 504. */
function signOf(error: unknown, latencyMs: number | null): CallEnd['sign'] {
  const { kind, status } = error instanceof StoreError ? error : { kind: null, status: null };
  if (status === TOO_MANY_REQUESTS || status === UNAVAILABLE) return 'overload';
  if ((kind === 'timeout' && latencyMs === null) || status === GATEWAY_TIMEOUT) return 'timeout';
  return latencyMs === null ? 'none' : 'answered';
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
  if (kind !== 'unreachable' && !(kind === 'refused' && isBusy)) return null;
  return (retryAfterMs ?? 0) + Math.random() * FIRST_RETRY_DELAY_MS * 2 ** (tries - 1);
}
