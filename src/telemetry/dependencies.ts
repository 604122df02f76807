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
/** No timer can wait longer than some weeks. */
const LONGEST_WAIT_MS = 86_400_000;

type CheckedCall = Pick<StoreCall, 'outcome' | 'status' | 'resource' | 'requestId' | 'failure'>;

interface StoreOutage {
  readonly sinceMs: number;
  readonly lastAtMs: number;
  readonly lastDetail: string;
  readonly lastCall: CheckedCall;
  /** When the first call succeeded since the last that failed. */
  okSinceMs: number | null;
}

/** How the store is doing, by the outcome of real calls only (C7). */
export class StoreHealth {
  readonly #health: Health;
  readonly #clock: Clock;
  #outage: StoreOutage | null = null;
  /** Null before the first call. */
  #okSinceMs: number | null = null;
  #lastStatus: number | null = null;
  /** Why the breaker is open; null while it is closed. */
  #heldBackFor: unknown = null;

  constructor(health: Health, clock: Clock) {
    this.#health = health;
    this.#clock = clock;
    health.add({ name: 'store', check: () => this.#check() });
  }

  onCall(call: CheckedCall): void {
    if (call.outcome !== 'aborted') this.#note(call);
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
    const failure = failureOf(call);
    this.#lastStatus = call.status;
    if (failure !== null) {
      const sinceMs = this.#outage?.sinceMs ?? nowMs;
      this.#outage = { sinceMs, lastAtMs: nowMs, lastDetail: failure, lastCall: call, okSinceMs: null };
    } else if (this.#outage === null) {
      this.#okSinceMs ??= nowMs;
    } else {
      this.#outage.okSinceMs ??= nowMs;
    }
  }

  #check(): DependencyState {
    const state = this.#checkCalls();
    if (this.#heldBackFor === null) return state;
    const detail = `calls are held back, but for one a second; ${state.detail}`;
    return { ...state, status: 'degraded', trouble: 'circuitOpen', detail, fields: { err: this.#heldBackFor } };
  }

  #checkCalls(): DependencyState {
    this.#settle();
    if (this.#outage !== null) {
      const { sinceMs, okSinceMs, lastDetail, lastCall } = this.#outage;
      const { resource, outcome, requestId } = lastCall;
      const detail =
        okSinceMs === null
          ? `last call failed: ${lastDetail}`
          : `answers again, not for ${STORE_SETTLED_AFTER_MS / 1000} s yet; the last call that failed: ${lastDetail}`;
      return { status: 'degraded', sinceMs, detail, fields: { resource, outcome, requestId } };
    }
    if (this.#okSinceMs === null) return { status: 'unknown', detail: 'not asked yet' };
    const status = this.#lastStatus === null ? '' : `: status ${this.#lastStatus}`;
    return { status: 'ok', sinceMs: this.#okSinceMs, detail: `last call was answered${status}` };
  }

  #settle(): void {
    if (this.#outage === null || this.#outage.okSinceMs === null) return;
    if (this.#clock.nowMs() - this.#outage.lastAtMs < STORE_SETTLED_AFTER_MS) return;
    this.#okSinceMs = this.#outage.okSinceMs;
    this.#outage = null;
  }
}

/** Null if the store did what it is for. */
function failureOf({ outcome, status, failure }: CheckedCall): string | null {
  if (!FAILURES.has(outcome)) return null;
  const reason = failure ?? outcome;
  return status === 401 || status === 403 ? `${reason}: the store does not take the gateway's token` : reason;
}

/** Whether this process has refused requests or connections lately, because it had as many as it may have. */
export class CapacityHealth {
  readonly #health: Health;
  readonly #clock: Clock;
  #sinceMs = 0;
  #lastAtMs = Number.NEGATIVE_INFINITY;

  constructor(health: Health, clock: Clock) {
    this.#health = health;
    this.#clock = clock;
    health.add({ name: 'capacity', check: () => this.#check() });
  }

  /** A request or a connection was refused. */
  onRefused(): void {
    const nowMs = this.#clock.nowMs();
    if (nowMs - this.#lastAtMs >= CAPACITY_SETTLED_AFTER_MS) this.#sinceMs = nowMs;
    this.#lastAtMs = nowMs;
    this.#health.update('capacity');
  }

  #check(): DependencyState {
    if (this.#clock.nowMs() - this.#lastAtMs >= CAPACITY_SETTLED_AFTER_MS) {
      return { status: 'ok', detail: 'nothing is refused for want of a place' };
    }
    const detail =
      'some are refused: there are as many requests (server.maxInFlight) or connections (server.maxConnections, server.maxConnectionsPerAddress) as may be';
    return { status: 'degraded', sinceMs: this.#sinceMs, detail };
  }
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
  health.add({ name: 'maintenance', check: () => maintenanceState(state.current(), last) });
  return state;
}

/** Without who switched it on: probes need no token. */
function maintenanceState(maintenance: Maintenance | null, last: Maintenance | null): DependencyState {
  if (maintenance === null) {
    const off: DependencyState = { status: 'ok', detail: 'off' };
    return last === null ? off : { ...off, sinceMs: last.untilMs };
  }
  const { sinceMs, untilMs } = maintenance;
  return { status: 'degraded', detail: `the store is asked nothing until ${new Date(untilMs).toISOString()}`, sinceMs };
}
