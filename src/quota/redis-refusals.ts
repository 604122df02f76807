/**
 * Refusals that need no Redis to be given again. Until a refused quota has room nothing can be added to its log, so what
 * its windows hold changes only by entries leaving, at times that are known. Bounded: the oldest refusals are forgotten.
 */
import type { Clock } from '../clock.ts';
import type { QuotaWindows } from './log.ts';
import type { QuotaDecision, QuotaLimits, WindowState } from './quota.ts';
import { admittedOf, type LogReply } from './redis-log.ts';

/** Beyond that many refused quotas at once some ask Redis more often. Each takes some 2 kB at most. */
const MOST_REFUSALS = 5000;
/** So that a step of Redis's clock, or a log dropped by hand, is noticed. */
const MOST_AGE_MICROS = 60_000_000;

interface LeavingWindow {
  readonly limit: number;
  readonly lengthMicros: number;
  readonly used: number;
  /** Times of the oldest entries, in order. */
  readonly leaving: readonly number[];
}

/** When the call was sent and its reply came, by this process's clock: Redis's clock was read in between. */
export interface CallTimes {
  readonly sentMicros: number;
  readonly receivedMicros: number;
}

interface Refusal extends CallTimes {
  readonly nowMicros: number;
  readonly retryAtMicros: number;
  readonly newestMicros: number;
  /** The last microsecond for which `leaving` tells all. */
  readonly knownUntilMicros: number;
  readonly minute: LeavingWindow;
  readonly hour: LeavingWindow;
}

function knownUntil({ used, leaving, lengthMicros }: LeavingWindow): number {
  return leaving.length === used ? Infinity : (leaving.at(-1) ?? 0) + lengthMicros;
}

function stateAt(window: LeavingWindow, newestMicros: number, timeMicros: number): WindowState {
  const { limit, lengthMicros, leaving } = window;
  const oldestIndex = leaving.findIndex((entry) => entry >= timeMicros - lengthMicros);
  const oldest = leaving[oldestIndex];
  if (oldest === undefined) {
    return { limit, remaining: limit, emptyAtMicros: timeMicros, nextFreeAtMicros: timeMicros };
  }
  return {
    limit,
    remaining: Math.max(0, limit - (window.used - oldestIndex)),
    emptyAtMicros: newestMicros + lengthMicros,
    nextFreeAtMicros: oldest + lengthMicros,
  };
}

export class RefusalMemory {
  readonly #clock: Clock;
  readonly #windows: QuotaWindows;
  readonly #most: number;
  readonly #refusals = new Map<string, Refusal>();

  constructor(clock: Clock, windows: QuotaWindows, most: number = MOST_REFUSALS) {
    this.#clock = clock;
    this.#windows = windows;
    this.#most = most;
  }

  get size(): number {
    return this.#refusals.size;
  }

  /**
   * The refusal of a request made now, or null where Redis must be asked: nothing is remembered, the limits are others,
   * or there may be room by now.
   */
  recall(quotaId: string, limits: QuotaLimits): QuotaDecision | null {
    const refusal = this.#refusals.get(quotaId);
    if (refusal === undefined) return null;
    const clockMicros = this.#clock.nowMicros();
    // Redis's clock stands somewhere between these two: the later one never refuses what Redis would admit, the earlier
    // one never promises room too soon.
    const latestMicros = refusal.nowMicros + clockMicros - refusal.sentMicros;
    const nowMicros = refusal.nowMicros + clockMicros - refusal.receivedMicros;
    const isSame = refusal.minute.limit === limits.perMinute && refusal.hour.limit === limits.perHour;
    if (!isSame || latestMicros >= refusal.retryAtMicros || nowMicros > refusal.knownUntilMicros) {
      this.#refusals.delete(quotaId);
      return null;
    }
    return {
      admitted: false,
      nowMicros,
      minute: stateAt(refusal.minute, refusal.newestMicros, nowMicros),
      hour: stateAt(refusal.hour, refusal.newestMicros, nowMicros),
      retryAtMicros: refusal.retryAtMicros,
    };
  }

  /** Remembers how a call ended: with a refusal that goes on, or with anything else, which ends an earlier one. */
  note(quotaId: string, last: QuotaDecision, reply: LogReply, times: CallTimes): void {
    this.#refusals.delete(quotaId);
    if (last.retryAtMicros === null || reply.leaving === null) return;
    const admitted = admittedOf(reply);
    const windowOf = (name: 'minute' | 'hour', lengthMicros: number): LeavingWindow => ({
      limit: last[name].limit,
      lengthMicros,
      used: reply[name].used + admitted,
      leaving: reply.leaving?.[name] ?? [],
    });
    const minute = windowOf('minute', this.#windows.minuteMicros);
    const hour = windowOf('hour', this.#windows.hourMicros);
    this.#refusals.set(quotaId, {
      ...times,
      nowMicros: reply.nowMicros,
      retryAtMicros: last.retryAtMicros,
      newestMicros: admitted > 0 ? reply.nowMicros : (reply.newestMicros ?? reply.nowMicros),
      knownUntilMicros: Math.min(knownUntil(minute), knownUntil(hour), reply.nowMicros + MOST_AGE_MICROS),
      minute,
      hour,
    });
    this.#forgetOldest();
  }

  #forgetOldest(): void {
    for (const quotaId of this.#refusals.keys()) {
      if (this.#refusals.size <= this.#most) return;
      this.#refusals.delete(quotaId);
    }
  }
}
