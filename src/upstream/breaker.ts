/**
 * The circuit breaker: pure, the time is handed in. Closed, it counts how calls went. Open, it holds all calls back but
 * one probe at a time, at most one a second; a probe that succeeds closes it.
 *
 * It is our own, and small, because the libraries' don't do what a store behind a cache needs. cockatiel 4 lets callers
 * wait for the end of a probe, where ours have copies to serve; takes an abandoned probe for a success; measures by the
 * wall clock, so that a clock set back keeps it open; and counts failures of calls that were sent before the last turn,
 * so that those of an outage that is over open it again.
 */
/** What a call says of the store: `none` if it was never sent, or was abandoned. */
export type Verdict = 'good' | 'bad' | 'none';

/** Leave to send one call. Every one that was given must be settled. */
export interface Pass {
  /** Of which time between two turns it is: what it tells of another one is not counted. */
  readonly era: object;
  readonly isProbe: boolean;
}

export type Turn = 'opened' | 'closed';

/** Fewer calls than this say nothing. */
const FEWEST_CALLS = 10;
const PROBE_EVERY_MS = 1000;
/** After so long without an answer the next probe may go: a store that hung may be well again, and this one lost. */
const PROBE_LOST_AFTER_MS = 3000;
/** A store that asks for more is asked again all the same: that it is back must be noticed soon. */
const MOST_RETRY_AFTER_MS = 4000;

interface Outage {
  probe: { readonly pass: Pass; sinceMs: number } | null;
  /** Not before this the next one. */
  probeAtMs: number;
}

export class Breaker {
  readonly #percent: number | null;
  readonly #recent = new RecentCalls();
  #era: object = {};
  #outage: Outage | null = null;

  /** Opens once more than that share of the recent calls has failed, or all of them; with null it never does. */
  constructor(percent: number | null) {
    this.#percent = percent;
  }

  get isOpen(): boolean {
    return this.#outage !== null;
  }

  /** Null where the call must be held back. A probe's place is taken by this. */
  admit(nowMs: number): Pass | null {
    const outage = this.#outage;
    if (outage === null) return { era: this.#era, isProbe: false };
    if (nowMs < outage.probeAtMs) return null;
    if (outage.probe !== null && nowMs - outage.probe.sinceMs < PROBE_LOST_AFTER_MS) return null;
    const pass = { era: this.#era, isProbe: true };
    outage.probe = { pass, sinceMs: nowMs };
    return pass;
  }

  /** To be asked right before the call is sent, which may be a while after it was admitted: whether it still may go. */
  begin(pass: Pass, nowMs: number): boolean {
    const outage = this.#outage;
    if (outage === null) return true;
    if (outage.probe?.pass !== pass) return false;
    outage.probe.sinceMs = nowMs;
    outage.probeAtMs = nowMs + PROBE_EVERY_MS;
    return true;
  }

  /** What the call has told. `retryAfterMs` is the store's wish, where it had one. Returns the turn that this brings. */
  settle(pass: Pass, verdict: Verdict, nowMs: number, retryAfterMs: number | null = null): Turn | null {
    if (pass.era !== this.#era) return null;
    if (this.#outage !== null) return this.#settleProbe(this.#outage, pass, verdict, nowMs + (retryAfterMs ?? 0));
    if (verdict === 'none') return null;
    this.#recent.add(verdict === 'bad', nowMs);
    return verdict === 'bad' && this.#isTooMuch() ? this.#open(nowMs) : null;
  }

  /** How long calls are held back for at least. */
  probeInMs(nowMs: number): number {
    return Math.max(0, (this.#outage?.probeAtMs ?? nowMs) - nowMs);
  }

  #isTooMuch(): boolean {
    const { count, failedPercent } = this.#recent;
    return this.#percent !== null && count >= FEWEST_CALLS && (failedPercent > this.#percent || failedPercent === 100);
  }

  #open(nowMs: number): Turn {
    this.#era = {};
    this.#outage = { probe: null, probeAtMs: nowMs + PROBE_EVERY_MS };
    return 'opened';
  }

  #settleProbe(outage: Outage, pass: Pass, verdict: Verdict, wishedAtMs: number): Turn | null {
    // One that was taken for lost is good news all the same.
    if (verdict === 'good') {
      this.#era = {};
      this.#outage = null;
      this.#recent.clear();
      return 'closed';
    }
    if (outage.probe?.pass !== pass) return null;
    outage.probe = null;
    if (verdict === 'bad') {
      const latestMs = outage.probeAtMs - PROBE_EVERY_MS + MOST_RETRY_AFTER_MS;
      outage.probeAtMs = Math.max(outage.probeAtMs, Math.min(wishedAtMs, latestMs));
    }
    return null;
  }
}

/** So many that a third of failures among them hardly ever looks like half of them. */
const MAX_RECENT_CALLS = 80;
const COUNTED_FOR_MS = 10_000;

/** How the last calls went. What is long past, or followed by many others, no longer counts. */
class RecentCalls {
  /** In order of time. */
  readonly #calls: { readonly atMs: number; readonly hasFailed: boolean }[] = [];
  #failed = 0;

  add(hasFailed: boolean, nowMs: number): void {
    this.#calls.push({ atMs: nowMs, hasFailed });
    if (hasFailed) this.#failed += 1;
    for (;;) {
      const [oldest] = this.#calls;
      if (oldest === undefined || (this.#calls.length <= MAX_RECENT_CALLS && nowMs - oldest.atMs < COUNTED_FOR_MS)) {
        return;
      }
      this.#calls.shift();
      if (oldest.hasFailed) this.#failed -= 1;
    }
  }

  /** How many are counted, as of the last one that was added. */
  get count(): number {
    return this.#calls.length;
  }

  /** In percent of those that are counted; 0 of none. */
  get failedPercent(): number {
    return this.#calls.length === 0 ? 0 : (100 * this.#failed) / this.#calls.length;
  }

  clear(): void {
    this.#calls.length = 0;
    this.#failed = 0;
  }
}
