/** What a process knows of the use of quotas, to go on with alone while the shared log is out of reach (R5). */
import { LRUCache } from 'lru-cache';
import type { Clock } from '../clock.ts';
import { RunLog } from './fallback-log.ts';
import { decideShare, shareStanding } from './fallback-share.ts';
import { QUOTA_WINDOWS, type QuotaWindows } from './log.ts';
import type { QuotaDecision, QuotaLimits, QuotaStanding } from './quota.ts';

/** Beyond that the quotas that were used longest ago start afresh. Each takes 4 kB at most. */
const MOST_LOGS = 20_000;
const DROPS_PER_REQUEST = 2;

/** The use as the shared log showed it: before some requests that it admitted, and how many these were. */
export interface SeenUse {
  readonly nowMicros: number;
  readonly minuteUsed: number;
  readonly hourUsed: number;
  /** Time of the newest entry before these; null where the log was empty. */
  readonly newestMicros: number | null;
  readonly admitted: number;
}

/** Admissions that the shared log doesn't know of: pairs of time and count, oldest first. */
export interface Unshared {
  readonly quotaId: string;
  readonly admissions: readonly (readonly [timeMicros: number, count: number])[];
}

export interface FallbackOptions {
  readonly clock: Clock;
  readonly windows?: QuotaWindows;
  /** How many processes share the limits, as far as is known; an integer from 1. */
  readonly processes: () => number;
  readonly mostLogs?: number;
}

interface Known {
  readonly log: RunLog;
  /** Of the log, what this process admitted alone and did not share yet. */
  unshared: RunLog | null;
}

export class FallbackQuota {
  readonly #options: FallbackOptions;
  readonly #windows: QuotaWindows;
  /**
   * Not a `Map` whose entries are put back at its end: each of its tables, once it is old, keeps all that follow, so that
   * every one of them gets old, and full collections come every few seconds.
   */
  readonly #known: LRUCache<string, Known>;
  readonly #unshared = new Set<string>();
  /** How far the shared clock is ahead of this process's, at least. */
  #aheadMicros = 0;

  constructor(options: FallbackOptions) {
    this.#options = options;
    this.#windows = options.windows ?? QUOTA_WINDOWS;
    this.#known = new LRUCache({
      max: options.mostLogs ?? MOST_LOGS,
      dispose: (_known, quotaId) => this.#unshared.delete(quotaId),
    });
  }

  get logCount(): number {
    return this.#known.size;
  }

  /** Takes in what a reply of the shared log shows; `receivedMicros` by this process's clock. */
  see(quotaId: string, use: SeenUse, receivedMicros: number): void {
    this.#aheadMicros = use.nowMicros - receivedMicros;
    const { log } = this.#touch(quotaId, use.nowMicros);
    this.#reconcile(log, use);
    if (use.admitted > 0) log.push(Math.max(use.nowMicros, lastOf(log)), use.admitted);
    if (log.length === 0) this.#known.delete(quotaId);
  }

  /** Decides by this process's share. */
  take(quotaId: string, limits: QuotaLimits): QuotaDecision {
    const { clock, processes } = this.#options;
    const clockMicros = clock.nowMicros() + this.#aheadMicros;
    const known = this.#touch(quotaId, clockMicros);
    const share = { limits, windows: this.#windows, processes: processes() };
    const decision = decideShare(known.log, clockMicros, share);
    if (decision.admitted) {
      known.unshared ??= new RunLog();
      known.unshared.push(decision.nowMicros, 1);
      this.#unshared.add(quotaId);
    }
    return decision;
  }

  /** How this process's share stands. */
  peek(quotaId: string, limits: QuotaLimits): QuotaStanding {
    const { clock, processes } = this.#options;
    const log = this.#known.peek(quotaId)?.log ?? new RunLog();
    const share = { limits, windows: this.#windows, processes: processes() };
    return shareStanding(log, clock.nowMicros() + this.#aheadMicros, share);
  }

  /** Whether the quota has admissions that the shared log doesn't know of. */
  hasUnshared(quotaId: string): boolean {
    return this.#unshared.has(quotaId);
  }

  /** The quotas with admissions that the shared log doesn't know of. */
  unsharedIds(): readonly string[] {
    return [...this.#unshared];
  }

  /** Hands out what a quota admitted alone, and forgets that it did so; null where there is nothing. */
  takeUnshared(quotaId: string): Unshared | null {
    if (!this.#unshared.delete(quotaId)) return null;
    const known = this.#known.peek(quotaId);
    const admissions = known?.unshared?.runs() ?? [];
    if (known !== undefined) known.unshared = null;
    return admissions.length === 0 ? null : { quotaId, admissions };
  }

  /** Brings the log to the use that was seen; entries of others are taken to be as new as they can be. */
  #reconcile(log: RunLog, { nowMicros, minuteUsed, hourUsed, newestMicros }: SeenUse): void {
    const { minuteMicros, hourMicros } = this.#windows;
    log.dropBefore(nowMicros - hourMicros);
    log.dropOldest(Math.max(0, log.length - hourUsed));
    const unknown = hourUsed - log.length;
    if (unknown === 0 || newestMicros === null) return;
    const beforeMinute = nowMicros - minuteMicros - 1;
    // No more of them than are in the minute at all. The rest goes behind what this process has just admitted alone, where
    // it has: an hour's use is no use of the minute.
    const older = Math.max(0, unknown - minuteUsed);
    if (older > 0) log.insert(Math.min(beforeMinute, newestMicros), older);
    if (unknown > older) log.push(Math.max(newestMicros, lastOf(log)), unknown - older);
  }

  #touch(quotaId: string, nowMicros: number): Known {
    let known = this.#known.get(quotaId);
    if (known === undefined) {
      known = { log: new RunLog(), unshared: null };
      this.#known.set(quotaId, known);
    }
    this.#dropIdle(nowMicros, known);
    return known;
  }

  /** A few at a time, so that no request pays for all of them. */
  #dropIdle(nowMicros: number, inUse: Known): void {
    const idleBefore = nowMicros - this.#windows.hourMicros;
    let drops = 0;
    for (const quotaId of this.#known.rkeys()) {
      const known = this.#known.peek(quotaId);
      const mayGo = known !== undefined && known !== inUse && lastOf(known.log) < idleBefore;
      if (!mayGo || drops === DROPS_PER_REQUEST) return;
      this.#known.delete(quotaId);
      drops += 1;
    }
  }
}

function lastOf(log: RunLog): number {
  return log.length === 0 ? -Infinity : log.at(log.length - 1);
}
