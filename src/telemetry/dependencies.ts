/** The dependencies of every gateway, with Redis or without: the store, its own capacity, and the maintenance switch. */
import { type Maintenance, MaintenanceState } from '../cache/maintenance.ts';
import type { Clock } from '../clock.ts';
import type { Timers } from '../timers.ts';
import type { StoreCall } from '../upstream/client.ts';
import type { DependencyState, Health } from './health.ts';

/** The store's own failures, by the labels of StoreError. A call that its caller gave up says nothing about the store. */
const FAILURES: ReadonlySet<StoreCall['outcome']> = new Set(['timeout', 'unreachable', 'refused', 'garbled'] as const);
/** A store that fails now and then is failing until it has not for so long: otherwise each such call were two changes. */
const STORE_SETTLED_AFTER_MS = 5000;
/** The same for a process that refuses now and then. */
const CAPACITY_SETTLED_AFTER_MS = 10_000;
/** Calls are slow if half of the last ones took so long: a store that is well answers 99 of 100 within 1.5 s. */
const SLOW_MS = 2000;
const TIMED_CALLS = 5;
const MIN_TIMED_CALLS = 3;
/** No timer can wait longer than some weeks. */
const LONGEST_WAIT_MS = 86_400_000;

type CheckedCall = Pick<StoreCall, 'outcome' | 'status' | 'resource' | 'requestId' | 'failure' | 'durationMs'>;

/** `okSinceMs`: of the first call that was well after it. */
interface Trouble {
  readonly sinceMs: number;
  readonly atMs: number;
  okSinceMs: number | null;
}

/** How the store is doing, by the outcome of real calls only (C7). */
export class StoreHealth {
  readonly #health: Health;
  readonly #clock: Clock;
  /** The last call that failed, and the last that was slow; each until the store has settled. */
  #failure: (Trouble & { readonly call: CheckedCall }) | null = null;
  #slowness: (Trouble & { readonly cause: string }) | null = null;
  /** How long the last calls took that were answered. */
  #durationsMs: readonly number[] = [];
  /** Null before the first call. */
  #okSinceMs: number | null = null;
  #lastStatus: number | null = null;
  /** Why the breaker is open; null while it is closed. */
  #heldBackFor: unknown = null;

  constructor(health: Health, clock: Clock) {
    this.#health = health;
    this.#clock = clock;
    health.add({ name: 'store', okMessage: 'the store answers again', check: () => this.#check() });
  }

  onCall(call: CheckedCall): void {
    if (call.outcome !== 'aborted') this.#note(call);
    this.#health.update('store');
  }

  /** A call is sent after that time in the queue; null if it is not sent, because it waited too long or too many did. */
  onQueued(waitedMs: number | null): void {
    if (waitedMs !== null && waitedMs < SLOW_MS) return;
    const cause = waitedMs === null ? 'so long that some are not sent' : `for ${secondsOf(waitedMs)}`;
    this.#noteSlow(`calls wait for their turn ${cause}`);
    this.#health.update('store');
  }

  /** The breaker opened because of the error, or closed (null). */
  onBreaker(error: unknown): void {
    this.#heldBackFor = error;
    this.#health.update('store');
  }

  #note(call: CheckedCall): void {
    this.#settle();
    const nowMs = this.#clock.nowMs();
    this.#lastStatus = call.status;
    if (FAILURES.has(call.outcome)) {
      this.#failure = { call, sinceMs: this.#failure?.sinceMs ?? nowMs, atMs: nowMs, okSinceMs: null };
      return;
    }
    if (this.#failure === null) this.#okSinceMs ??= nowMs;
    else this.#failure.okSinceMs ??= nowMs;
    this.#durationsMs = [...this.#durationsMs, call.durationMs].slice(-TIMED_CALLS);
    const medianMs = this.#durationsMs.toSorted((a, b) => a - b)[this.#durationsMs.length >> 1] ?? 0;
    if (this.#durationsMs.length >= MIN_TIMED_CALLS && medianMs >= SLOW_MS)
      this.#noteSlow(`calls take ${secondsOf(medianMs)}`);
    else if (this.#slowness !== null) this.#slowness.okSinceMs ??= nowMs;
  }

  #noteSlow(cause: string): void {
    this.#settle();
    const nowMs = this.#clock.nowMs();
    this.#slowness = { cause, sinceMs: this.#slowness?.sinceMs ?? nowMs, atMs: nowMs, okSinceMs: null };
  }

  #check(): DependencyState {
    const state = this.#checkCalls();
    if (this.#heldBackFor === null) return state;
    return {
      status: 'degraded',
      message: 'the store is failing: calls to it are held back, but for one a second',
      detail: `calls are held back, but for one a second; ${state.detail}`,
      fields: { err: this.#heldBackFor },
      ...(state.sinceMs === undefined ? {} : { sinceMs: state.sinceMs }),
    };
  }

  #checkCalls(): DependencyState {
    this.#settle();
    if (this.#failure !== null) {
      const { call, sinceMs, okSinceMs } = this.#failure;
      const { resource, outcome, requestId } = call;
      const since =
        okSinceMs === null
          ? 'last call failed'
          : `answers again, not for ${STORE_SETTLED_AFTER_MS / 1000} s yet; the last call that failed`;
      const detail = `${since}: ${describeFailure(call)}`;
      return {
        status: 'degraded',
        message: 'the store is failing',
        detail,
        sinceMs,
        fields: { resource, outcome, requestId },
      };
    }
    if (this.#slowness !== null) {
      const { cause, sinceMs, okSinceMs } = this.#slowness;
      const isLasting = okSinceMs === null;
      const detail = isLasting
        ? cause
        : `faster again, not for ${STORE_SETTLED_AFTER_MS / 1000} s yet; before, ${cause}`;
      return { status: 'degraded', message: 'the store is slow', detail, sinceMs };
    }
    if (this.#okSinceMs === null) return { status: 'unknown', detail: 'not asked yet' };
    const status = this.#lastStatus === null ? '' : `: status ${this.#lastStatus}`;
    return { status: 'ok', sinceMs: this.#okSinceMs, detail: `last call was answered${status}` };
  }

  #settle(): void {
    this.#failure = this.#unsettled(this.#failure);
    this.#slowness = this.#unsettled(this.#slowness);
  }

  #unsettled<T extends Trouble>(trouble: T | null): T | null {
    if (trouble === null || trouble.okSinceMs === null) return trouble;
    if (this.#clock.nowMs() - trouble.atMs < STORE_SETTLED_AFTER_MS) return trouble;
    this.#okSinceMs = Math.max(this.#okSinceMs ?? 0, trouble.okSinceMs);
    return null;
  }
}

function secondsOf(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function describeFailure({ outcome, status, failure }: CheckedCall): string {
  const reason = failure ?? outcome;
  return status === 401 || status === 403 ? `${reason}: the store does not take the gateway's token` : reason;
}

/** Notes that a request or a connection was refused, because this process has as many as it may have. */
export function trackCapacity(health: Health, clock: Clock): () => void {
  let sinceMs = 0;
  let lastAtMs = Number.NEGATIVE_INFINITY;
  const isSettled = (): boolean => clock.nowMs() - lastAtMs >= CAPACITY_SETTLED_AFTER_MS;
  health.add({
    name: 'capacity',
    okMessage: 'no request or connection is refused any more',
    check: () =>
      isSettled()
        ? { status: 'ok', detail: 'no request or connection is refused' }
        : {
            status: 'degraded',
            message: 'the process has reached its limit of requests or connections: it refuses others',
            detail:
              'it refuses some: the limit of requests (server.maxInFlight) or connections (server.maxConnections, server.maxConnectionsPerAddress) is reached',
            sinceMs,
          },
  });
  return () => {
    if (isSettled()) sinceMs = clock.nowMs();
    lastAtMs = clock.nowMs();
    health.update('capacity');
  };
}

/**
 * The maintenance switch of this process, as one of its dependencies. Its end is noticed when it comes, by this process's
 * clock, although nothing reports it then.
 */
export function trackMaintenance(health: Health, clock: Clock, timers: Timers): MaintenanceState {
  /** The last that was on; null if somebody has ended it. */
  let last: Maintenance | null = null;
  let cancel: (() => void) | null = null;
  const update = (): void => {
    cancel?.();
    cancel = null;
    health.update('maintenance');
    const on = state.current();
    // A timer may fire a moment before the clock has come so far; then it is armed again.
    if (on !== null) cancel = timers.after(Math.min(LONGEST_WAIT_MS, on.untilMs - clock.nowMs()), update);
  };
  const state = new MaintenanceState(clock, () => {
    last = state.current();
    update();
  });
  health.add({
    name: 'maintenance',
    okMessage: 'maintenance has ended',
    check: () => {
      const on = state.current();
      if (on === null) return { status: 'ok', detail: 'off', ...(last === null ? {} : { sinceMs: last.untilMs }) };
      // Without who switched it on: probes need no token.
      const detail = `the store is asked nothing until ${new Date(on.untilMs).toISOString()}`;
      return { status: 'degraded', message: 'maintenance: the store is asked nothing', detail, sinceMs: on.sinceMs };
    },
  });
  return state;
}
