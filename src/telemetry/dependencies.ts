/** The dependencies of every gateway, with Redis or without: the store, its own capacity, and the maintenance switch. */
import { type Maintenance, MaintenanceState } from '../upstream/maintenance.ts';
import type { ConfigFault } from '../config/errors.ts';
import type { LoadedConfig } from '../config/load.ts';
import { type SecretFault, secretsInFiles } from '../config/secret-files.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import type { StoreCall } from '../upstream/client.ts';
import { publicName } from '../tracing/spans.ts';
import { degraded, type DependencyState, type Health } from './health.ts';

/** The store's own failures. A call that its caller gave up says nothing about the store. */
const FAILURES: ReadonlySet<StoreCall['outcome']> = new Set([
  'timeout',
  'unreachable',
  'errorStatus',
  'invalidResponse',
] as const);
/** A store that fails now and then is failing until it has not for so long: otherwise each such call were two changes. */
const STORE_SETTLED_AFTER_MS = 5000;
/** The same for a process that refuses now and then. */
const CAPACITY_SETTLED_AFTER_MS = 10_000;
/** The same for the circuits of API keys. */
const KEYS_SETTLED_AFTER_MS = 10_000;
/** Calls and waits of this length are reported. A slow store is no trouble by itself: caching it is what this is for. */
const SLOW_MS = 2000;
/** How many calls are looked at. */
const TIMED_CALLS = 5;
/** No timer can wait longer than some weeks. */
const MAX_WAIT_MS = 86_400_000;

/** Trouble that comes and goes: it is one trouble until there has been none for some time. */
export class Trouble<T> {
  readonly #clock: Clock;
  readonly #settledAfterMs: number;
  #last: { readonly cause: T; readonly sinceMs: number; readonly atMs: number } | null = null;
  /** When all was well for the first time after it; null before. */
  okSinceMs: number | null = null;

  constructor(clock: Clock, settledAfterMs: number) {
    this.#clock = clock;
    this.#settledAfterMs = settledAfterMs;
  }

  note(cause: T): void {
    const nowMs = this.#clock.nowMs();
    this.#last = { cause, sinceMs: this.current()?.sinceMs ?? nowMs, atMs: nowMs };
    this.okSinceMs = null;
  }

  noteOk(): void {
    if (this.#last !== null) this.okSinceMs ??= this.#clock.nowMs();
  }

  /** The last of it; null once it has settled. */
  current() {
    if (this.#last === null || this.okSinceMs === null) return this.#last;
    return this.#clock.nowMs() - this.#last.atMs < this.#settledAfterMs ? this.#last : null;
  }
}

type CheckedCall = Pick<StoreCall, 'outcome' | 'status' | 'resource' | 'requestId' | 'failure' | 'durationMs'>;

/** How the store is doing (C7: by the outcome of real calls only). */
export class StoreHealth {
  readonly #health: Health;
  readonly #clock: Clock;
  readonly #failing: Trouble<CheckedCall>;
  /** Calls of API keys are held back by circuits of their own. */
  readonly #keysHeldBack: Trouble<null>;
  /** When a call was first answered; null before. */
  #okSinceMs: number | null = null;
  /** How long the last calls took that were answered. */
  #durationsMs: readonly number[] = [];
  /** How long the last call waited for its turn; null if it was not sent for that. */
  #queuedMs: number | null = 0;
  #lastStatus: number | null = null;
  /** Why the circuit of all is open; null while it is closed. */
  #heldBackFor: unknown = null;

  constructor(health: Health, clock: Clock) {
    this.#health = health;
    this.#clock = clock;
    this.#failing = new Trouble(clock, STORE_SETTLED_AFTER_MS);
    this.#keysHeldBack = new Trouble(clock, KEYS_SETTLED_AFTER_MS);
    health.add({ name: 'store', okMessage: 'the store answers again', check: () => this.#check() });
  }

  onCall(call: CheckedCall): void {
    if (call.outcome !== 'aborted') this.#note(call);
    this.#health.update('store');
  }

  /** A call is sent after that time in the queue; null if it is not sent, because it waited too long or too many did. */
  onQueued(waitedMs: number | null): void {
    this.#queuedMs = waitedMs;
  }

  /** A call was held back by the circuit of its API key. */
  onKeyHeldBack(): void {
    this.#keysHeldBack.note(null);
    this.#keysHeldBack.noteOk();
  }

  /** The circuit of all opened because of the error, or closed (null). */
  onCircuit(error: unknown): void {
    this.#heldBackFor = error;
    this.#health.update('store');
  }

  #note(call: CheckedCall): void {
    this.#lastStatus = call.status;
    if (FAILURES.has(call.outcome)) {
      this.#failing.note(call);
      return;
    }
    this.#okSinceMs ??= this.#clock.nowMs();
    this.#failing.noteOk();
    this.#durationsMs = [...this.#durationsMs, call.durationMs].slice(-TIMED_CALLS);
  }

  #check(): DependencyState {
    const state = this.#checkCalls();
    if (this.#heldBackFor === null) {
      if (this.#keysHeldBack.current() === null) return state;
      const keys = 'the circuit of one or more API keys is open: one probe per second and key, other keys are served';
      return { ...state, detail: `${keys}; ${state.detail}` };
    }
    return degraded(
      'the store is failing: the circuit is open, one probe per second',
      `the circuit is open: one probe per second; ${state.detail}`,
      { fields: { err: this.#heldBackFor }, ...(state.sinceMs === undefined ? {} : { sinceMs: state.sinceMs }) },
    );
  }

  #checkCalls(): DependencyState {
    const failing = this.#failing.current();
    if (failing !== null) {
      const { resource, outcome, requestId } = failing.cause;
      const isOver = this.#failing.okSinceMs !== null;
      const which = isOver
        ? `answers again, for less than ${STORE_SETTLED_AFTER_MS / 1000} s; the last call that failed`
        : 'last call failed';
      const more = { sinceMs: failing.sinceMs, fields: { resource, outcome: publicName(outcome), requestId } };
      return degraded('the store is failing', `${which}: ${describeFailure(failing.cause)}`, more);
    }
    if (this.#okSinceMs === null) return { status: 'unknown', detail: 'not called yet' };
    const sinceMs = Math.max(this.#okSinceMs, this.#failing.okSinceMs ?? 0);
    const status = this.#lastStatus === null ? '' : `: status ${this.#lastStatus}`;
    return { status: 'ok', sinceMs, detail: `last call was answered${status}${this.#slowness()}` };
  }

  /** For the detail, while calls or their waits are long. */
  #slowness(): string {
    const medianMs = this.#durationsMs.toSorted((a, b) => a - b)[this.#durationsMs.length >> 1] ?? 0;
    const calls = medianMs < SLOW_MS ? '' : `; calls take ${secondsOf(medianMs)}`;
    if (this.#queuedMs === null) return `${calls}; calls wait for their turn so long that some are not sent`;
    return this.#queuedMs < SLOW_MS ? calls : `${calls}; calls wait ${secondsOf(this.#queuedMs)} for their turn`;
  }
}

function secondsOf(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function describeFailure({ outcome, status, failure }: CheckedCall): string {
  const reason = failure ?? publicName(outcome);
  return status === 401 || status === 403 ? `${reason}: the store does not take the gateway's token` : reason;
}

/**
 * Tracks the secrets that are in files, if there are any. Returns what is to be called with those that could not be read
 * again.
 */
export function trackSecrets(
  health: Health,
  loaded: LoadedConfig,
  initial: readonly SecretFault[],
): (faults: readonly SecretFault[]) => void {
  let faults = initial;
  const names = secretsInFiles(loaded).map(({ name }) => name);
  if (names.length === 0) return () => {};
  health.add({
    name: 'secrets',
    okMessage: 'every secret could be read again',
    check: () => {
      if (faults.length === 0) return { status: 'ok', detail: `in force as last read: ${names.join(', ')}` };
      const found = faults.map(({ name, problem }) => `${name}: ${problem}`).join('; ');
      return degraded(
        'a secret could not be read again: its old value stays in force',
        `the old value stays in force: ${found}`,
      );
    },
  });
  return (now) => {
    faults = now;
    health.update('secrets');
  };
}

/** Tracks whether the last configuration that was read is in force. Returns a function that takes its faults; none if it is. */
export function trackConfig(health: Health, file: string): (faults: readonly ConfigFault[]) => void {
  let faults: readonly ConfigFault[] = [];
  health.add({
    name: 'config',
    okMessage: 'the configuration could be read again',
    check: () => {
      if (faults.length === 0) return { status: 'ok', detail: `in force as last read: ${file}` };
      // Not what was given: probes need no token, and it may be the address of the store.
      const found = faults.map(({ name, allowed }) => `${name} (allowed: ${allowed})`).join('; ');
      return degraded(
        'the configuration could not be read again: the old one stays in force',
        `the old one stays in force, since the new one is invalid: ${found}`,
      );
    },
  });
  return (now) => {
    faults = now;
    health.update('config');
  };
}

/** Notes that a request or a connection was refused, because this process has as many as it may have. */
export function trackCapacity(health: Health, clock: Clock): () => void {
  const refusing = new Trouble(clock, CAPACITY_SETTLED_AFTER_MS);
  health.add({
    name: 'capacity',
    okMessage: 'no request or connection is refused any more',
    check: () => {
      const last = refusing.current();
      if (last === null) return { status: 'ok', detail: 'no request or connection is refused' };
      return degraded(
        'the process has reached its limit of requests or connections: it refuses others',
        'it refuses some: the limit of requests (server.maxInFlight) or connections (server.maxConnections, server.maxConnectionsPerAddress) is reached',
        { sinceMs: last.sinceMs },
      );
    },
  });
  return () => {
    refusing.note(null);
    refusing.noteOk();
    health.update('capacity');
  };
}

/**
 * The maintenance switch of this process, as one of its dependencies. Its end is noticed when it comes, by this process's
 * clock, although nothing reports it then.
 */
export function createMaintenance(health: Health, clock: Clock, timers: Timers): MaintenanceState {
  /** The last that was on; null if somebody has ended it. */
  let last: Maintenance | null = null;
  let cancel: (() => void) | null = null;
  const update = (): void => {
    cancel?.();
    cancel = null;
    health.update('maintenance');
    const on = state.current();
    // A timer may fire a moment before the clock has come so far; then it is armed again.
    if (on !== null) cancel = timers.after(Math.min(MAX_WAIT_MS, on.untilMs - clock.nowMs()), update);
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
      return degraded('maintenance: the store is asked nothing', detail, {
        sinceMs: on.sinceMs,
        deadlineMs: on.untilMs,
      });
    },
  });
  return state;
}
