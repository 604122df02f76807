/** The dependencies of every gateway, with Redis or without: the store, its own capacity, and the maintenance switch. */
import { type Maintenance, MaintenanceState } from '../cache/maintenance.ts';
import type { Clock } from '../clock.ts';
import type { Timers } from '../timers.ts';
import type { StoreCall } from '../upstream/client.ts';
import { degraded, type DependencyState, type Health } from './health.ts';

/** The store's own failures, by the labels of StoreError. A call that its caller gave up says nothing about the store. */
const FAILURES: ReadonlySet<StoreCall['outcome']> = new Set(['timeout', 'unreachable', 'refused', 'garbled'] as const);
/** A store that fails now and then is failing until it has not for so long: otherwise each such call were two changes. */
const STORE_SETTLED_AFTER_MS = 5000;
/** The same for a process that refuses now and then. */
const CAPACITY_SETTLED_AFTER_MS = 10_000;
/** No timer can wait longer than some weeks. */
const LONGEST_WAIT_MS = 86_400_000;

type CheckedCall = Pick<StoreCall, 'outcome' | 'status' | 'resource' | 'requestId' | 'failure'>;

/** How the store is doing, by the outcome of real calls only (C7). `onBreaker`: it opened because of the error, or closed (null). */
export function trackStore(health: Health, clock: Clock) {
  /** The last call that failed, and since when calls fail. */
  let failure: { readonly call: CheckedCall; readonly sinceMs: number; readonly atMs: number } | null = null;
  /** When a call first succeeded, since the start or since the last that failed. */
  let okSinceMs: number | null = null;
  let lastStatus: number | null = null;
  /** Why the breaker is open; null while it is closed. */
  let heldBackFor: unknown = null;

  /** The last call that failed; null once the store has settled. */
  const failing = (): typeof failure => {
    if (failure === null || okSinceMs === null) return failure;
    return clock.nowMs() - failure.atMs < STORE_SETTLED_AFTER_MS ? failure : null;
  };
  const checkCalls = (): DependencyState => {
    const last = failing();
    if (last !== null) {
      const { resource, outcome, requestId } = last.call;
      const which =
        okSinceMs === null
          ? 'last call failed'
          : `answers again, not for ${STORE_SETTLED_AFTER_MS / 1000} s yet; the last call that failed`;
      const more = { sinceMs: last.sinceMs, fields: { resource, outcome, requestId } };
      return degraded('the store is failing', `${which}: ${describeFailure(last.call)}`, more);
    }
    if (okSinceMs === null) return { status: 'unknown', detail: 'not asked yet' };
    const status = lastStatus === null ? '' : `: status ${lastStatus}`;
    return { status: 'ok', sinceMs: okSinceMs, detail: `last call was answered${status}` };
  };
  const check = (): DependencyState => {
    const state = checkCalls();
    if (heldBackFor === null) return state;
    const since = state.sinceMs === undefined ? {} : { sinceMs: state.sinceMs };
    const more = { fields: { err: heldBackFor }, ...since };
    return degraded(
      'the store is failing: calls to it are held back, but for one a second',
      `calls are held back, but for one a second; ${state.detail}`,
      more,
    );
  };
  health.add({ name: 'store', okMessage: 'the store answers again', check });
  return {
    onCall: (call: CheckedCall): void => {
      const nowMs = clock.nowMs();
      if (FAILURES.has(call.outcome)) {
        failure = { call, sinceMs: failing()?.sinceMs ?? nowMs, atMs: nowMs };
        okSinceMs = null;
      } else if (call.outcome !== 'aborted') okSinceMs ??= nowMs;
      if (call.outcome !== 'aborted') lastStatus = call.status;
      health.update('store');
    },
    onBreaker: (error: unknown): void => {
      heldBackFor = error;
      health.update('store');
    },
  };
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
        : degraded(
            'the process has reached its limit of requests or connections: it refuses others',
            'it refuses some: the limit of requests (server.maxInFlight) or connections (server.maxConnections, server.maxConnectionsPerAddress) is reached',
            { sinceMs },
          ),
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
      return degraded('maintenance: the store is asked nothing', detail, { sinceMs: on.sinceMs });
    },
  });
  return state;
}
