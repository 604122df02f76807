/**
 * The circuit breaker: pure, the time is handed in. Closed, it counts how calls end. Open, it holds all calls back but one
 * probe at a time, at most one a second; a probe that succeeds closes it.
 *
 * It is our own because the libraries' don't do what a store behind a cache needs. cockatiel 4 lets callers wait for the
 * end of a probe, where ours have copies to serve; counts an abandoned probe as a success; measures by the wall clock, so
 * that a clock set back keeps it open; and counts failures of calls that were sent before it changed, so that those of an
 * outage that is over open it again.
 */
/** What the end of a call says of the store: `none` if it was never sent, or was abandoned. */
export type CallResult = 'success' | 'failure' | 'none';

/** Leave to send one call. Every one that was given must be settled. */
export interface Admission {
  /** The time between two changes of the breaker that it belongs to: results of an earlier one are not counted. */
  readonly period: object;
}

/** Fewer calls than this say nothing. */
const MIN_CALLS = 10;
const PROBE_INTERVAL_MS = 1000;
/** After so long without an answer the next probe may go: a store that hung may be well again, and this one lost. */
const PROBE_LOST_AFTER_MS = 3000;
/** A store that asks for more is asked again all the same: that it is back must be noticed soon. */
const MAX_RETRY_AFTER_MS = 4000;

interface Outage {
  probe: { readonly admission: Admission; sinceMs: number } | null;
  /** No probe goes before this time. */
  nextProbeAtMs: number;
}

export class Breaker {
  readonly #percent: number | null;
  readonly #recent = new RecentCalls();
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
  settle(
    admission: Admission,
    result: CallResult,
    nowMs: number,
    retryAfterMs: number | null = null,
  ): 'opened' | 'closed' | null {
    if (admission.period !== this.#period) return null;
    if (this.#outage !== null) return this.#settleProbe(this.#outage, admission, result, nowMs + (retryAfterMs ?? 0));
    if (result === 'none') return null;
    this.#recent.add(result === 'failure', nowMs);
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
    const { count, failedPercent } = this.#recent;
    return this.#percent !== null && count >= MIN_CALLS && (failedPercent > this.#percent || failedPercent === 100);
  }

  #settleProbe(outage: Outage, admission: Admission, result: CallResult, retryAtMs: number): 'closed' | null {
    // A probe that was taken for lost is good news all the same.
    if (result === 'success') {
      this.#period = {};
      this.#outage = null;
      this.#recent.clear();
      return 'closed';
    }
    if (outage.probe?.admission !== admission) return null;
    outage.probe = null;
    if (result === 'failure') {
      const latestMs = outage.nextProbeAtMs - PROBE_INTERVAL_MS + MAX_RETRY_AFTER_MS;
      outage.nextProbeAtMs = Math.max(outage.nextProbeAtMs, Math.min(retryAtMs, latestMs));
    }
    return null;
  }
}

/** So many that a third of failures among them hardly ever looks like half of them. */
const MAX_RECENT_CALLS = 80;
const COUNTED_FOR_MS = 10_000;

/** How the last calls ended: at most 80, of the last 10 s. */
class RecentCalls {
  /** In order of time. */
  #calls: readonly { readonly atMs: number; readonly hasFailed: boolean }[] = [];

  add(hasFailed: boolean, nowMs: number): void {
    const calls = [...this.#calls, { atMs: nowMs, hasFailed }];
    this.#calls = calls.slice(-MAX_RECENT_CALLS).filter(({ atMs }) => nowMs - atMs < COUNTED_FOR_MS);
  }

  get count(): number {
    return this.#calls.length;
  }

  /** In percent of those that are counted; 0 of none. */
  get failedPercent(): number {
    const failed = this.#calls.filter(({ hasFailed }) => hasFailed).length;
    return this.#calls.length === 0 ? 0 : (100 * failed) / this.#calls.length;
  }

  clear(): void {
    this.#calls = [];
  }
}
