/**
 * The circuit breakers: pure, the time is handed in. A closed one counts how calls end. An open one holds calls back but one
 * probe at a time, at most one a second; a probe that succeeds closes it.
 *
 * Each API key has one of its own, so that records or searches of one tenant that make the store fail cost that tenant only.
 * One more is for all. It opens if the store fails whoever asks: if too many of the calls fail even without those of any one
 * key. Background refreshes belong to no key there, and neither do calls to an address where nothing listens, so a store
 * that is dead is spared whoever asks.
 *
 * They are our own because those of libraries let callers wait for the end of a probe, though ours have copies to serve, and
 * count failures of calls that were sent before a change, so that those of an outage that is over open them again.
 */
import { LRUCache } from 'lru-cache';

/** How a call ended, as far as it says something of the store: `none` if it was never sent, or was abandoned. */
export type CallResult = 'success' | 'failure' | 'none';

interface EndedCall {
  readonly atMs: number;
  readonly hasFailed: boolean;
  /** The key that made it, if that matters; null for nobody. */
  readonly keyId: string | null;
}

/** Fewer calls than this say nothing. */
const MIN_CALLS = 10;
/** Large enough that a failure rate of 1/3 rarely samples as 1/2. */
const MAX_RECENT_CALLS = 80;
const COUNTED_FOR_MS = 10_000;
const PROBE_INTERVAL_MS = 1000;
/** After so long without an answer the next probe may go: a store that hung may be well again, and this one lost. */
const PROBE_LOST_AFTER_MS = 3000;
/** A store that asks for more is asked again all the same: that it is back must be noticed soon. */
const MAX_PROBE_DELAY_MS = 4000;
/** Most keys whose calls are counted: the circuit of the one that has not called for longest is forgotten. */
const MAX_KEYS = 1000;
/** Calls without an API key share a circuit. */
const NO_KEY = '';

/** On whose account a call is made. */
export interface CallOrigin {
  readonly keyId: string | undefined;
  readonly isBackground: boolean;
}

/** A call that may be sent. Each one has to be settled. */
export interface Admission {
  readonly keyId: string;
  /** By the circuit of its key; null for a background refresh, which goes by the circuit of all only. */
  readonly own: Ticket | null;
  readonly all: Ticket;
}

export interface CallEnd {
  readonly result: CallResult;
  /** No call had a part in the failure. */
  readonly isUnprovoked: boolean;
  /** The delay that the store asked for; 0 for none. */
  readonly retryAfterMs: number;
}

/** A circuit that opened or closed: of a key, or of all (null). */
export interface CircuitChange {
  readonly keyId: string | null;
  readonly change: 'opened' | 'closed';
}

export class Circuits {
  readonly #percent: number | null;
  readonly #all: Breaker;
  readonly #own = new LRUCache<string, Breaker>({ max: MAX_KEYS });

  /** A circuit opens once more than that share of the recent calls has failed, or all of them; with null it never does. */
  constructor(percent: number | null) {
    this.#percent = percent;
    this.#all = new Breaker((calls) => this.#isTooMuch(withoutWorstKey(calls)));
  }

  /** Whether the circuit of all is open. */
  get isOpen(): boolean {
    return this.#all.isOpen;
  }

  /** How many keys of those that have called lately have an open circuit. */
  openKeys(nowMs: number): number {
    return [...this.#own.values()].filter((breaker) => breaker.hasProbedLately(nowMs)).length;
  }

  /** Which circuit holds calls of that origin back; null if none does. */
  heldBackBy({ keyId, isBackground }: CallOrigin): 'all' | 'key' | null {
    if (this.#all.isOpen) return 'all';
    return !isBackground && this.#own.peek(keyId ?? NO_KEY)?.isOpen === true ? 'key' : null;
  }

  /** Null if the call must be held back. */
  admit({ keyId = NO_KEY, isBackground }: CallOrigin, nowMs: number): Admission | null {
    const own = isBackground ? null : this.#ownOf(keyId).admit(null, nowMs);
    if (!isBackground && own === null) return null;
    const all = this.#all.admit(isBackground ? null : keyId, nowMs);
    if (all !== null) return { keyId, own, all };
    if (own !== null) this.#ownOf(keyId).settle(own, { result: 'none', keyId: null, retryAfterMs: 0 }, nowMs);
    return null;
  }

  /** Whether the call may still go: asked right before it is sent, which may be a while after it was admitted. */
  begin({ keyId, own, all }: Admission, nowMs: number): boolean {
    return (own === null || this.#ownOf(keyId).begin(own, nowMs)) && this.#all.begin(all, nowMs);
  }

  /** Counts how a call ended. Returns what this changes. */
  settle({ keyId, own, all }: Admission, end: CallEnd, nowMs: number): readonly CircuitChange[] {
    const { isUnprovoked, ...ended } = end;
    const changes: CircuitChange[] = [];
    const ownChange = own === null ? null : this.#ownOf(keyId).settle(own, { ...ended, keyId: null }, nowMs);
    if (ownChange !== null) changes.push({ keyId, change: ownChange });
    const cause = own === null || isUnprovoked ? null : keyId;
    const change = this.#all.settle(all, { ...ended, keyId: cause }, nowMs);
    if (change !== null) changes.push({ keyId: null, change });
    return changes;
  }

  /** How long calls of that origin are held back for at least. */
  probeInMs({ keyId = NO_KEY }: CallOrigin, nowMs: number): number {
    return Math.max(this.#all.probeInMs(nowMs), this.#own.peek(keyId)?.probeInMs(nowMs) ?? 0);
  }

  #ownOf(keyId: string): Breaker {
    const known = this.#own.get(keyId);
    if (known !== undefined) return known;
    const breaker = new Breaker((calls) => this.#isTooMuch(calls));
    this.#own.set(keyId, breaker);
    return breaker;
  }

  #isTooMuch(calls: readonly EndedCall[]): boolean {
    const failedPercent = (100 * calls.filter(({ hasFailed }) => hasFailed).length) / calls.length;
    const isTooMuch = this.#percent !== null && (failedPercent > this.#percent || failedPercent === 100);
    return isTooMuch && calls.length >= MIN_CALLS;
  }
}

/** The calls that are not of the key with the most failures. */
function withoutWorstKey(calls: readonly EndedCall[]): readonly EndedCall[] {
  const failures = new Map<string, number>();
  let worst: string | null = null;
  for (const { keyId, hasFailed } of calls) {
    if (!hasFailed || keyId === null) continue;
    failures.set(keyId, (failures.get(keyId) ?? 0) + 1);
    if (worst === null || (failures.get(keyId) ?? 0) > (failures.get(worst) ?? 0)) worst = keyId;
  }
  return worst === null ? calls : calls.filter(({ keyId }) => keyId !== worst);
}

/** One circuit's part of an admission. */
interface Ticket {
  /** The time between two changes of the circuit that it belongs to: results of an earlier one are not counted. */
  readonly period: object;
}

interface Outage {
  probe: { readonly ticket: Ticket; sinceMs: number } | null;
  /** No probe goes before this time. */
  nextProbeAtMs: number;
  /** The key whose probe failed last. It leaves the next turn to others, so that it cannot keep the circuit open for them. */
  failedKeyId: string | null;
}

class Breaker {
  readonly #isTooMuch: (calls: readonly EndedCall[]) => boolean;
  /** How the last calls ended, in order of time. */
  #recent: readonly EndedCall[] = [];
  #period: object = {};
  #outage: Outage | null = null;

  /** `isTooMuch`: whether so many of the recent calls have failed that it opens. */
  constructor(isTooMuch: (calls: readonly EndedCall[]) => boolean) {
    this.#isTooMuch = isTooMuch;
  }

  get isOpen(): boolean {
    return this.#outage !== null;
  }

  /** Whether it is open, and calls have still come lately. */
  hasProbedLately(nowMs: number): boolean {
    return this.#outage !== null && nowMs - this.#outage.nextProbeAtMs < COUNTED_FOR_MS;
  }

  /** Null if the call must be held back. While it is open, one that is not null is the probe. */
  admit(keyId: string | null, nowMs: number): Ticket | null {
    const outage = this.#outage;
    if (outage === null) return { period: this.#period };
    const isRepeater = keyId !== null && keyId === outage.failedKeyId;
    if (nowMs < outage.nextProbeAtMs + (isRepeater ? PROBE_INTERVAL_MS : 0)) return null;
    if (outage.probe !== null && nowMs - outage.probe.sinceMs < PROBE_LOST_AFTER_MS) return null;
    const ticket = { period: this.#period };
    outage.probe = { ticket, sinceMs: nowMs };
    return ticket;
  }

  begin(ticket: Ticket, nowMs: number): boolean {
    const outage = this.#outage;
    if (outage === null) return true;
    if (outage.probe?.ticket !== ticket) return false;
    outage.probe.sinceMs = nowMs;
    outage.nextProbeAtMs = nowMs + PROBE_INTERVAL_MS;
    return true;
  }

  settle(ticket: Ticket, end: SettledCall, nowMs: number): CircuitChange['change'] | null {
    if (ticket.period !== this.#period) return null;
    if (this.#outage !== null) return this.#settleProbe(this.#outage, ticket, end, nowMs);
    const { result, keyId } = end;
    if (result === 'none') return null;
    const recent = [...this.#recent, { atMs: nowMs, hasFailed: result === 'failure', keyId }];
    this.#recent = recent.slice(-MAX_RECENT_CALLS).filter(({ atMs }) => nowMs - atMs < COUNTED_FOR_MS);
    if (result !== 'failure' || !this.#isTooMuch(this.#recent)) return null;
    this.#period = {};
    this.#outage = { probe: null, nextProbeAtMs: nowMs + PROBE_INTERVAL_MS, failedKeyId: null };
    return 'opened';
  }

  probeInMs(nowMs: number): number {
    return Math.max(0, (this.#outage?.nextProbeAtMs ?? nowMs) - nowMs);
  }

  #settleProbe(outage: Outage, ticket: Ticket, end: SettledCall, nowMs: number): 'closed' | null {
    const { result, keyId, retryAfterMs } = end;
    // A probe that was taken for lost is good news all the same.
    if (result === 'success') {
      this.#period = {};
      this.#outage = null;
      this.#recent = [];
      return 'closed';
    }
    if (outage.probe?.ticket !== ticket) return null;
    outage.probe = null;
    if (result === 'failure') {
      outage.failedKeyId = keyId;
      const latestMs = outage.nextProbeAtMs - PROBE_INTERVAL_MS + MAX_PROBE_DELAY_MS;
      outage.nextProbeAtMs = Math.max(outage.nextProbeAtMs, Math.min(nowMs + retryAfterMs, latestMs));
    }
    return null;
  }
}

type SettledCall = Pick<CallEnd, 'result' | 'retryAfterMs'> & Pick<EndedCall, 'keyId'>;
