/** How the store is doing, by the outcome of real calls alone (C7). */
import type { Clock } from './clock.ts';
import type { Sighting } from './dependencies.ts';
import type { StoreCall } from './upstream/client.ts';

/** The store's own failures. What the gateway held back, or a caller gave up, says nothing about the store. */
const FAILURES: ReadonlySet<StoreCall['outcome']> = new Set([
  'timeout',
  'unreachable',
  'refused',
  'garbled',
] satisfies StoreCall['outcome'][]);
const SILENT: ReadonlySet<StoreCall['outcome']> = new Set(['aborted', 'overloaded'] satisfies StoreCall['outcome'][]);

/** A store that fails now and then is failing until it has not for so long: else each such call would be two turns. */
const SETTLED_AFTER_MS = 5000;

type HealthCall = Pick<StoreCall, 'outcome' | 'status' | 'resource' | 'requestId' | 'failure'>;

interface Failing {
  readonly sinceMs: number;
  readonly lastAtMs: number;
  readonly lastDetail: string;
  readonly lastCall: HealthCall;
  /** Of the first call that went well since the last that failed. */
  wellSinceMs: number | null;
}

export class StoreHealth {
  readonly #clock: Clock;
  #failing: Failing | null = null;
  /** Null before the first call. */
  #wellSinceMs: number | null = null;
  #lastStatus: number | null = null;
  /** Null while nothing is held back. */
  #heldBackFor: unknown = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  note(call: HealthCall): void {
    if (SILENT.has(call.outcome)) return;
    this.#settle();
    const nowMs = this.#clock.nowMs();
    const failure = failureOf(call);
    this.#lastStatus = call.status;
    if (failure !== null) {
      const sinceMs = this.#failing?.sinceMs ?? nowMs;
      this.#failing = { sinceMs, lastAtMs: nowMs, lastDetail: failure, lastCall: call, wellSinceMs: null };
    } else if (this.#failing === null) {
      this.#wellSinceMs ??= nowMs;
    } else {
      this.#failing.wellSinceMs ??= nowMs;
    }
  }

  /** From now on calls are held back, because too many have failed, the last of them so; null: no more. */
  holdBack(error: unknown): void {
    this.#heldBackFor = error;
  }

  now(): Sighting {
    const sighting = this.#sight();
    if (this.#heldBackFor === null) return sighting;
    const detail = `calls are held back, but for one a second; ${sighting.detail}`;
    return { ...sighting, status: 'degraded', trouble: 'held-back', detail, fields: { err: this.#heldBackFor } };
  }

  #sight(): Sighting {
    this.#settle();
    const failing = this.#failing;
    if (failing !== null) {
      const { sinceMs, wellSinceMs, lastDetail, lastCall } = failing;
      const { resource, outcome, requestId } = lastCall;
      const detail =
        wellSinceMs === null
          ? `last call failed: ${lastDetail}`
          : `answers again, not for ${SETTLED_AFTER_MS / 1000} s yet; the last call that failed: ${lastDetail}`;
      return { status: 'degraded', sinceMs, detail, fields: { resource, outcome, requestId } };
    }
    if (this.#wellSinceMs === null) return { status: 'unknown', detail: 'not asked yet' };
    const status = this.#lastStatus === null ? '' : `: status ${this.#lastStatus}`;
    return { status: 'ok', sinceMs: this.#wellSinceMs, detail: `last call was answered${status}` };
  }

  #settle(): void {
    if (this.#failing === null || this.#failing.wellSinceMs === null) return;
    if (this.#clock.nowMs() - this.#failing.lastAtMs < SETTLED_AFTER_MS) return;
    this.#wellSinceMs = this.#failing.wellSinceMs;
    this.#failing = null;
  }
}

/** Null where the store did what it is for. */
function failureOf({ outcome, status, failure }: HealthCall): string | null {
  if (!FAILURES.has(outcome)) return null;
  const said = failure ?? outcome;
  return status === 401 || status === 403 ? `${said}: the store does not take the gateway's token` : said;
}
