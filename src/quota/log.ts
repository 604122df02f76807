/**
 * The exact quota: two sliding windows over one log of the times at which requests were admitted. Pure, so that every
 * place that keeps such a log decides alike.
 *
 * Windows are closed: a request is in a window of length L until more than L has gone by. So no stretch of time of that
 * length, wherever it begins, ever holds more admitted requests than the limit, its two ends included.
 */
import type { QuotaDecision, QuotaLimits, QuotaStanding, WindowState } from './quota.ts';

/** Times of admitted requests in Unix microseconds, never falling; index 0 is the oldest. */
export interface AdmissionLog {
  readonly length: number;
  /** `index` is from 0 to `length - 1`. */
  at(index: number): number;
}

/** The lengths of the two windows in microseconds; the hour is not shorter than the minute. */
export interface QuotaWindows {
  readonly minuteMicros: number;
  readonly hourMicros: number;
}

export const QUOTA_WINDOWS: QuotaWindows = { minuteMicros: 60_000_000, hourMicros: 3_600_000_000 };

/** What was decided, and what the keeper of the log has to do. */
export interface LogVerdict {
  readonly decision: QuotaDecision;
  /**
   * How many of the oldest entries may be dropped. None with a refused request, which so changes nothing at all: only
   * the entry of an admitted one keeps a clock that goes back from needing them again.
   */
  readonly expired: number;
}

/** Index of the first entry at or after that time: a binary search. */
export function firstSince(log: AdmissionLog, sinceMicros: number): number {
  let low = 0;
  let high = log.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (log.at(middle) < sinceMicros) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** One window before the decision: its entries are those from `first` on. */
interface Use {
  readonly lengthMicros: number;
  readonly limit: number;
  readonly first: number;
  readonly used: number;
}

function useOf(log: AdmissionLog, nowMicros: number, lengthMicros: number, limit: number): Use {
  const first = firstSince(log, nowMicros - lengthMicros);
  return { lengthMicros, limit, first, used: log.length - first };
}

/**
 * The first microsecond at which the window has room, or `nowMicros` where it has some. Where the limit was lowered
 * below the use, more than one entry must leave.
 */
function roomAt(log: AdmissionLog, use: Use, nowMicros: number): number {
  if (use.used < use.limit) return nowMicros;
  return log.at(log.length - use.limit) + use.lengthMicros + 1;
}

function stateOf(log: AdmissionLog, use: Use, nowMicros: number, admitted: boolean): WindowState {
  const used = admitted ? use.used + 1 : use.used;
  const newest = admitted ? nowMicros : use.used === 0 ? null : log.at(log.length - 1);
  const oldest = use.used === 0 ? newest : log.at(use.first);
  return {
    limit: use.limit,
    remaining: Math.max(0, use.limit - used),
    emptyAtMicros: newest === null ? nowMicros : newest + use.lengthMicros,
    nextFreeAtMicros: oldest === null ? nowMicros : oldest + use.lengthMicros,
  };
}

/** Both windows at the later of the clock and the newest entry. */
function usesOf(log: AdmissionLog, clockMicros: number, limits: QuotaLimits, windows: QuotaWindows) {
  const nowMicros = log.length === 0 ? clockMicros : Math.max(clockMicros, log.at(log.length - 1));
  return {
    nowMicros,
    minute: useOf(log, nowMicros, windows.minuteMicros, limits.perMinute),
    hour: useOf(log, nowMicros, windows.hourMicros, limits.perHour),
  };
}

/** How the windows stand, by the same clock and limits as `decide` without one more request. */
export function standing(
  log: AdmissionLog,
  clockMicros: number,
  limits: QuotaLimits,
  windows: QuotaWindows = QUOTA_WINDOWS,
): QuotaStanding {
  const { nowMicros, minute, hour } = usesOf(log, clockMicros, limits, windows);
  return { nowMicros, minute: stateOf(log, minute, nowMicros, false), hour: stateOf(log, hour, nowMicros, false) };
}

/**
 * Decides on one more request. It is admitted only where both windows have room, and then counts in both; a refused one
 * counts in neither. Now is the later of the clock and the newest entry, so a clock that goes back admits nothing extra.
 *
 * Limits are integers from 1. Where it is admitted, `decision.nowMicros` is what the keeper appends to the log.
 */
export function decide(
  log: AdmissionLog,
  clockMicros: number,
  limits: QuotaLimits,
  windows: QuotaWindows = QUOTA_WINDOWS,
): LogVerdict {
  const { nowMicros, minute, hour } = usesOf(log, clockMicros, limits, windows);
  const admitted = minute.used < minute.limit && hour.used < hour.limit;
  return {
    decision: {
      admitted,
      nowMicros,
      minute: stateOf(log, minute, nowMicros, admitted),
      hour: stateOf(log, hour, nowMicros, admitted),
      retryAtMicros: admitted ? null : Math.max(roomAt(log, minute, nowMicros), roomAt(log, hour, nowMicros)),
    },
    expired: admitted ? hour.first : 0,
  };
}
