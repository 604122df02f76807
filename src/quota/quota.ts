/** The exact quota of a key: two sliding windows, all-or-nothing. */
import type { MaybePromise } from '../maybe-promise.ts';

export const WINDOW_NAMES = ['minute', 'hour'] as const;
export type WindowName = (typeof WINDOW_NAMES)[number];

/** One window as it stands after the decision, or at the look. Times are Unix microseconds of the clock that decided. */
export interface WindowState {
  readonly limit: number;
  readonly remaining: number;
  /** When the newest request in it has been there for the window's whole length: if no more come, it is empty from then on. */
  readonly emptyAtMicros: number;
  /** The same of the oldest request in it, the next to leave. Both are now where the window is empty. */
  readonly nextFreeAtMicros: number;
}

/** How both windows stand at a time. */
export interface QuotaStanding {
  /** The time of the decision, or of the look. */
  readonly nowMicros: number;
  readonly minute: WindowState;
  readonly hour: WindowState;
}

export interface QuotaDecision extends QuotaStanding {
  readonly admitted: boolean;
  /** Where refused: the first microsecond at which one request is admitted if no others come. */
  readonly retryAtMicros: number | null;
}

export interface QuotaLimits {
  readonly perMinute: number;
  readonly perHour: number;
}

/** Answers at once where nobody has to be asked. Rejects with nothing. */
export interface Quota {
  /** Decides whether one more request of `quotaId` is admitted now, and counts it only if so. */
  take(quotaId: string, limits: QuotaLimits): MaybePromise<QuotaDecision>;
  /** How both windows stand, without a request: nothing is admitted, and nothing is changed. */
  peek(quotaId: string, limits: QuotaLimits): MaybePromise<QuotaStanding>;
}
