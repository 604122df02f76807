/**
 * How the store is doing (C7: by the outcome of real calls only). The alert EvalgateStoreDown, the runbook and `/readyz` go
 * by what is decided here:
 * - *down*: the circuit of all keys is open, or no call has succeeded for 30 s while three or more failed. This pages.
 * - *degraded* only: of at least 20 calls of the last 30 s, more than `upstream.degradedPercent` failed; or, if there were
 *   fewer calls, the last three failed, or the store has never answered.
 * Both are `degraded` in `/readyz`. A store that fails less is well, as long as its answers come.
 */
import { z } from 'zod';
import { TimeBuckets } from '../operations/stats/time-buckets.ts';
import type { Clock } from '../time/clock.ts';
import type { StoreCall } from '../upstream/client.ts';
import type { GuardStatus } from '../upstream/guard.ts';
import { degraded, type DependencyState, type Health } from './health.ts';
import { Trouble } from './trouble.ts';

/** The store's own failures. A call that its caller gave up says nothing about the store. */
const FAILURES: ReadonlySet<StoreCall['outcome']> = new Set(['timeout', 'unreachable', 'refused', 'garbled'] as const);
/** Calls of so long are looked at, and without success for so long it is down. */
const WINDOW_MS = 30_000;
/** The share that fails says nothing if there are fewer calls. */
const MIN_CALLS = 20;
/** So many failures in a row are no accident. */
const IN_A_ROW = 3;
/** A store that fails again and again is failing until it has not for so long. */
const SETTLED_AFTER_MS = 5000;
/** The same for the circuits of API keys. */
const KEYS_SETTLED_AFTER_MS = 10_000;
/** Calls and waits of this length are reported. A slow store is no trouble by itself: caching it is what this is for. */
const SLOW_MS = 2000;
/** How many calls are timed. */
const TIMED_CALLS = 5;

type CheckedCall = Pick<StoreCall, 'outcome' | 'status' | 'resource' | 'requestId' | 'failure' | 'durationMs'>;

const callsSchema = z.object({ calls: z.int(), failed: z.int() });
type Calls = z.infer<typeof callsSchema>;
const STEPS = {
  name: 'store',
  stepMs: 1000,
  spanMs: WINDOW_MS,
  schema: callsSchema,
  begin: (): Calls => ({ calls: 0, failed: 0 }),
};

interface Finding {
  readonly isDown: boolean;
  /** The line of the log, once per outage. */
  readonly message: string;
  readonly detail: string;
  /** For the log only. */
  readonly fields: Readonly<Record<string, unknown>>;
}

/** How many calls may be under way, are, and wait. */
export type StoreLoad = Pick<GuardStatus, 'limit' | 'isLimitFound' | 'inFlight' | 'queued'>;

/** How much the store bears, in a sentence without its end; null if it has not shown that it bears no more. */
export function fastestAt({ limit, isLimitFound }: StoreLoad): string | null {
  return isLimitFound ? `the store is fastest at about ${limit} ${limit === 1 ? 'call' : 'calls'} at a time` : null;
}

export class StoreHealth {
  readonly #health: Health;
  readonly #clock: Clock;
  readonly #degradedPercent: number;
  readonly #calls: TimeBuckets<Calls, Calls>;
  readonly #trouble: Trouble<Finding>;
  /** Calls of API keys are held back by circuits of their own. */
  readonly #keysHeldBack: Trouble<null>;
  /** The last call that failed; null if none has. */
  #lastFailure: CheckedCall | null = null;
  /** How many have failed since the last one that was answered. */
  #failedInARow = 0;
  /** When a call was answered first, and last; null before. */
  #okSinceMs: number | null = null;
  #lastOkMs: number | null = null;
  /** When a call ended first. */
  #firstEndMs: number | null = null;
  /** The result of connecting to the store, before the first call. Null if nobody has tried. */
  #connection: { readonly failure: string | null; readonly sinceMs: number } | null = null;
  /** How long the last calls took that were answered. */
  #durationsMs: readonly number[] = [];
  /** How long the last call waited for its turn; null if it was not sent for that. */
  #queuedMs: number | null = 0;
  #lastStatus: number | null = null;
  /** Why the circuit of all is open; null while it is closed. */
  #heldBackFor: unknown = null;
  #load: (() => StoreLoad) | null = null;

  /** `degradedPercent`: the share of calls that may fail. */
  constructor(health: Health, clock: Clock, degradedPercent: number) {
    this.#health = health;
    this.#clock = clock;
    this.#degradedPercent = degradedPercent;
    this.#calls = new TimeBuckets(STEPS, clock, null);
    this.#trouble = new Trouble(clock, SETTLED_AFTER_MS);
    this.#keysHeldBack = new Trouble(clock, KEYS_SETTLED_AFTER_MS);
    health.add({ name: 'store', okMessage: 'the store answers again', check: () => this.#check() });
  }

  /** From now on the detail says how much the store bears, if it has shown that. */
  watch(load: () => StoreLoad): void {
    this.#load = load;
  }

  /** Whether it is down, for the alert; null before the first call. */
  isDown(): boolean | null {
    return this.#firstEndMs === null && this.#heldBackFor === null ? null : (this.#find()?.isDown ?? false);
  }

  /**
   * It was connected to before the first call, or could not be. Returns whether to try again: once a call has ended, that says more.
   */
  onConnect(failure: string | null): boolean {
    const isSame = this.#connection !== null && (this.#connection.failure === null) === (failure === null);
    this.#connection = { failure, sinceMs: (isSame ? this.#connection?.sinceMs : null) ?? this.#clock.nowMs() };
    this.#health.update('store');
    return failure !== null && this.#firstEndMs === null;
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
    const nowMs = this.#clock.nowMs();
    const counts = this.#calls.now();
    counts.calls += 1;
    this.#firstEndMs ??= nowMs;
    this.#lastStatus = call.status;
    if (FAILURES.has(call.outcome)) {
      counts.failed += 1;
      this.#failedInARow += 1;
      this.#lastFailure = call;
      return;
    }
    this.#failedInARow = 0;
    this.#okSinceMs ??= nowMs;
    this.#lastOkMs = nowMs;
    this.#durationsMs = [...this.#durationsMs, call.durationMs].slice(-TIMED_CALLS);
  }

  #check(): DependencyState {
    const found = this.#find();
    if (found === null) this.#trouble.noteOk();
    else this.#trouble.note(found);
    const state = this.#state();
    if (this.#heldBackFor !== null || this.#keysHeldBack.current() === null) return state;
    const keys = 'the circuit of one or more API keys is open: one probe per second and key, other keys are served';
    return { ...state, detail: `${keys}; ${state.detail}` };
  }

  #state(): DependencyState {
    const { okSinceMs } = this.#trouble;
    const trouble = this.#trouble.current();
    if (trouble !== null) {
      const { message, detail, fields } = trouble.cause;
      const settling = `answers again, for less than ${SETTLED_AFTER_MS / 1000} s; ${this.#lastFailureText('the last call that failed')}`;
      return degraded(message, okSinceMs === null ? detail : settling, { sinceMs: trouble.sinceMs, fields });
    }
    if (this.#okSinceMs === null) return neverCalled(this.#connection);
    const sinceMs = Math.max(this.#okSinceMs, okSinceMs ?? 0);
    const tooFew = this.#failedInARow > 0 ? 'not degraded, since too few calls have failed; ' : '';
    return { status: 'ok', sinceMs, detail: `${tooFew}${this.#lastCall()}${this.#qualifiers()}${this.#capacity()}` };
  }

  /** Null if the store is well. */
  #find(): Finding | null {
    const { calls, failed } = this.#recent();
    const isDown = this.#isUnanswered();
    if (this.#heldBackFor !== null) {
      return {
        isDown: true,
        message: 'the store is failing: the circuit is open, one probe per second',
        detail: `the circuit is open: one probe per second; ${this.#lastCall()}`,
        fields: { err: this.#heldBackFor },
      };
    }
    const [isNew, isFailing] = [this.#okSinceMs === null, this.#failedInARow > 0];
    const isTooMuch = calls >= MIN_CALLS && 100 * failed > this.#degradedPercent * calls;
    const isInARow = calls < MIN_CALLS && isFailing && (isNew || this.#failedInARow >= IN_A_ROW);
    if (!isDown && !isTooMuch && !isInARow) return null;
    const { resource, outcome, requestId } = this.#lastFailure ?? {};
    const unanswered = isNew ? 'never answered; ' : isDown ? `no call has succeeded for ${WINDOW_MS / 1000} s; ` : '';
    const share = isTooMuch && !isDown ? `${shareOfCalls(failed, calls)}; ` : '';
    return {
      isDown,
      message: isDown ? 'the store is down: no call succeeds' : 'the store is failing',
      detail: `${unanswered}${share}${this.#lastFailureText(isFailing ? 'last call failed' : 'the last call that failed')}`,
      fields: { resource, outcome, requestId },
    };
  }

  /** Whether no call has succeeded for as long as calls are looked at, although several were made. */
  #isUnanswered(): boolean {
    const sinceMs = this.#lastOkMs ?? this.#firstEndMs ?? Number.POSITIVE_INFINITY;
    return this.#failedInARow >= IN_A_ROW && this.#clock.nowMs() - sinceMs >= WINDOW_MS;
  }

  #recent(): Calls {
    const sum = { calls: 0, failed: 0 };
    for (const { calls, failed } of this.#calls.since(this.#clock.nowMs() - WINDOW_MS)) {
      sum.calls += calls;
      sum.failed += failed;
    }
    return sum;
  }

  #lastCall(): string {
    if (this.#failedInARow > 0) return this.#lastFailureText('last call failed');
    return `last call was answered${this.#lastStatus === null ? '' : `: status ${this.#lastStatus}`}`;
  }

  /** `which`: what the failure is of. */
  #lastFailureText(which: string): string {
    return `${which}: ${this.#lastFailure === null ? 'unknown' : describeFailure(this.#lastFailure)}`;
  }

  #capacity(): string {
    const load = this.#load?.();
    const fastest = load === undefined ? null : fastestAt(load);
    return load === undefined || fastest === null
      ? ''
      : `; ${fastest}: ${load.inFlight} under way, ${load.queued} waiting`;
  }

  /** For the detail, while some calls fail, or while they or their waits are long. */
  #qualifiers(): string {
    const { calls, failed } = this.#recent();
    const medianMs = this.#durationsMs.toSorted((a, b) => a - b)[this.#durationsMs.length >> 1] ?? 0;
    const failures = failed === 0 || calls < MIN_CALLS ? '' : `; ${shareOfCalls(failed, calls)}`;
    const long = `${failures}${medianMs < SLOW_MS ? '' : `; calls take ${secondsOf(medianMs)}`}`;
    if (this.#queuedMs === null) return `${long}; calls wait for their turn so long that some are not sent`;
    return this.#queuedMs < SLOW_MS ? long : `${long}; calls wait ${secondsOf(this.#queuedMs)} for their turn`;
  }
}

function neverCalled(
  connection: { readonly failure: string | null; readonly sinceMs: number } | null,
): DependencyState {
  if (connection === null) return { status: 'unknown', detail: 'never answered: not called yet' };
  const { failure, sinceMs } = connection;
  if (failure === null)
    return { status: 'unknown', detail: 'never answered: it takes connections, and is not called yet' };
  const overMessage = 'the store can be reached';
  return degraded('the store cannot be reached', `never answered: ${failure}`, { sinceMs, overMessage });
}

function shareOfCalls(failed: number, calls: number): string {
  return `${failed} of ${calls} calls of the last ${WINDOW_MS / 1000} s failed`;
}

function secondsOf(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function describeFailure({ outcome, status, failure }: CheckedCall): string {
  const reason = failure ?? outcome;
  return status === 401 || status === 403 ? `${reason}: the store does not take the gateway's token` : reason;
}
