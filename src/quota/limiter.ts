/** The rate limit of a key, as the rest of the gateway sees it: two sliding windows, and a request counts in both or none. */

export type WindowName = 'minute' | 'hour';

/** One window at the time of the decision, the request included. Times are Unix microseconds of the clock that decided. */
export interface WindowState {
  readonly limit: number;
  readonly remaining: number;
  /** When the newest request leaves the window, which is empty from then on if no more come. */
  readonly emptyAtMicros: number;
  /** When the oldest request leaves the window. Both times are now if the window is empty. */
  readonly nextFreeAtMicros: number;
}

export interface QuotaUsage {
  readonly nowMicros: number;
  readonly minute: WindowState;
  readonly hour: WindowState;
}

export interface QuotaDecision extends QuotaUsage {
  readonly admitted: boolean;
  /** The first microsecond at which one request is admitted if no others come; null if this one was. */
  readonly retryAtMicros: number | null;
}

/** Integers from 1. */
export interface QuotaLimits {
  readonly perMinute: number;
  readonly perHour: number;
}

/** Never rejects, unless an implementation says so. */
export interface QuotaLimiter {
  /**
   * Decides whether one more request of `quotaId` is admitted now, and counts it if so (R1: a refused request costs
   * nothing): neither `SlidingWindowLog.consume` in window-log.ts nor the script in redis-limiter.ts adds it.
   */
  consume(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision>;
  /** Both windows as they are; nothing is counted (K8a: a look at one's own key is free). */
  usage(quotaId: string, limits: QuotaLimits): Promise<QuotaUsage>;
}

/** The same by a clock that is ahead by that much. */
export function later<T extends QuotaUsage & { readonly retryAtMicros?: number | null }>(usage: T, micros: number): T {
  const moved = (state: WindowState): WindowState => ({
    ...state,
    emptyAtMicros: state.emptyAtMicros + micros,
    nextFreeAtMicros: state.nextFreeAtMicros + micros,
  });
  const { nowMicros, minute, hour, retryAtMicros } = usage;
  return {
    ...usage,
    nowMicros: nowMicros + micros,
    minute: moved(minute),
    hour: moved(hour),
    ...(typeof retryAtMicros === 'number' ? { retryAtMicros: retryAtMicros + micros } : {}),
  };
}
