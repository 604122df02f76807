/**
 * The use of limits that a process knows of, to go on with while Redis cannot be asked (R5: with its share). Each of n
 * processes assumes that whatever it admits the others admit as well, so one request counts n times. Together they so admit no
 * more than what was left when they lost Redis, as far as they knew it; if a limit is below n, each still admits one per
 * window.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import { type Clock, wallMicros } from '../time/clock.ts';
import type { QuotaDecision, QuotaLimits, QuotaUsage, WindowState } from './limiter.ts';
import type { Admissions } from './redis-limiter.ts';
import { HOUR_MICROS, MINUTE_MICROS, SlidingWindowLog } from './window-log.ts';

/** More than the default limit of a minute is exact. */
const MAX_RUNS = 256;

/** Admissions that Redis does not have yet. They are sent again with the same number until Redis has them. */
export interface Merge {
  readonly quotaId: string;
  readonly number: number;
  readonly admissions: Admissions;
}

/** The requests that Redis does not have: those that are being sent, and later ones. */
interface Unsynced {
  merge: Merge | null;
  later: SlidingWindowLog | null;
}

export interface LocalShareOptions {
  readonly clock: Clock;
  /** How many processes share the limits, as last known; an integer from 1. */
  readonly processes: () => number;
  /** If there are more, those used longest ago start afresh. Each takes 4 kB at most. */
  readonly maxQuotas: number;
}

export class LocalShare {
  readonly #options: LocalShareOptions;
  /** All requests that are known, those of other processes at the latest time that they can be of. */
  readonly #logs: LRUCache<string, SlidingWindowLog>;
  readonly #unsynced = new Map<string, Unsynced>();
  #merges = 0;
  /** How far Redis's clock is ahead of this process's, at least; null until Redis has decided once. */
  #aheadMicros: number | null = null;

  constructor(options: LocalShareOptions) {
    this.#options = options;
    this.#logs = new LRUCache({
      ...atMost(options.maxQuotas),
      dispose: (_log, quotaId) => this.#unsynced.delete(quotaId),
    });
  }

  /**
   * Takes in a decision of Redis, and makes up the requests of other processes that it counts, each at the latest time that it can
   * have had: so the share is never too large. A decision from before Redis had all that was admitted here changes nothing: it
   * would give that part of the share back, to be used again.
   */
  learn(quotaId: string, { admitted, nowMicros, minute, hour }: QuotaDecision): void {
    if (this.#unsynced.has(quotaId)) return;
    this.#aheadMicros = nowMicros - this.#options.clock.nowMicros();
    const log = this.#log(quotaId);
    log.advanceTo(nowMicros);
    if (admitted) log.add(nowMicros, 1);
    const [minuteUsed, hourUsed] = [minute.limit - minute.remaining, hour.limit - hour.remaining];
    log.dropOldest(log.length - hourUsed);
    const unknown = hourUsed - log.length;
    if (unknown === 0) return;
    const newestMicros = hour.emptyAtMicros - HOUR_MICROS;
    // No more of them are in the minute than it holds at all.
    const older = Math.max(0, unknown - minuteUsed);
    if (older > 0) log.add(Math.min(nowMicros - MINUTE_MICROS - 1, newestMicros), older);
    if (unknown > older) log.add(newestMicros, unknown - older);
  }

  consume(quotaId: string, limits: QuotaLimits): QuotaDecision {
    const processes = this.#options.processes();
    const log = this.#log(quotaId);
    const nowMicros = this.#nowFor(log);
    const decision = log.consume(nowMicros, roomForAll(limits, processes), processes);
    if (decision.admitted) {
      const unsynced = this.#unsynced.get(quotaId) ?? { merge: null, later: null };
      this.#unsynced.set(quotaId, unsynced);
      unsynced.later ??= new SlidingWindowLog(MAX_RUNS);
      unsynced.later.add(nowMicros, 1);
    }
    return { ...decision, ...shareOf(decision, limits, processes) };
  }

  usage(quotaId: string, limits: QuotaLimits): QuotaUsage {
    const processes = this.#options.processes();
    const log = this.#logs.peek(quotaId) ?? new SlidingWindowLog();
    return shareOf(log.usage(this.#nowFor(log), roomForAll(limits, processes)), limits, processes);
  }

  hasUnsynced(quotaId: string): boolean {
    return this.#unsynced.has(quotaId);
  }

  unsyncedIds(): readonly string[] {
    return [...this.#unsynced.keys()];
  }

  /** The next merge to send, or to send again; null if Redis has everything. */
  nextMerge(quotaId: string): Merge | null {
    const unsynced = this.#unsynced.get(quotaId);
    if (unsynced === undefined) return null;
    if (unsynced.merge === null && unsynced.later !== null) {
      this.#merges += 1;
      unsynced.merge = { quotaId, number: this.#merges, admissions: unsynced.later.runs() };
      unsynced.later = null;
    }
    return unsynced.merge;
  }

  /** Notes that Redis has it. */
  merged({ quotaId, number }: Merge): void {
    const unsynced = this.#unsynced.get(quotaId);
    if (unsynced?.merge?.number !== number) return;
    unsynced.merge = null;
    if (unsynced.later === null) this.#unsynced.delete(quotaId);
  }

  /** By Redis's clock, as near as it is known: what is in the log was admitted before. */
  #nowFor(log: SlidingWindowLog): number {
    const { clock } = this.#options;
    const nowMicros = this.#aheadMicros === null ? wallMicros(clock) : clock.nowMicros() + this.#aheadMicros;
    return Math.max(nowMicros, log.newestMicros);
  }

  #log(quotaId: string): SlidingWindowLog {
    let log = this.#logs.get(quotaId);
    if (log === undefined) {
      log = new SlidingWindowLog(MAX_RUNS);
      this.#logs.set(quotaId, log);
    }
    return log;
  }
}

/** A request needs room for one of each process. */
function roomForAll({ perMinute, perHour }: QuotaLimits, processes: number): QuotaLimits {
  return { perMinute: Math.max(1, perMinute - processes + 1), perHour: Math.max(1, perHour - processes + 1) };
}

/** The consumer sees the key's own limits, and what this process has left of them. */
function shareOf(usage: QuotaUsage, { perMinute, perHour }: QuotaLimits, processes: number): QuotaUsage {
  const share = (state: WindowState, limit: number): WindowState => ({
    ...state,
    limit,
    remaining: Math.ceil(state.remaining / processes),
  });
  return { nowMicros: usage.nowMicros, minute: share(usage.minute, perMinute), hour: share(usage.hour, perHour) };
}
