/** The exact quota of a key: two sliding windows, all-or-nothing. */

export const WINDOW_NAMES = ['minute', 'hour'] as const;
export type WindowName = (typeof WINDOW_NAMES)[number];

/** One window as it stands after the decision. Times are Unix microseconds of the clock that decided. */
export interface WindowState {
  readonly limit: number;
  readonly remaining: number;
  /** When the newest request in it has been there for the window's whole length: if no more come, it is empty from then on. */
  readonly emptyAtMicros: number;
  /** The same of the oldest request in it, the next to leave. Both are now where the window is empty. */
  readonly nextFreeAtMicros: number;
}

export interface QuotaDecision {
  readonly admitted: boolean;
  /** The time of the decision. */
  readonly nowMicros: number;
  readonly minute: WindowState;
  readonly hour: WindowState;
  /** Where refused: the first microsecond at which one request is admitted if no others come. */
  readonly retryAtMicros: number | null;
}

export interface QuotaLimits {
  readonly perMinute: number;
  readonly perHour: number;
}

/** Decides whether one more request of `quotaId` is admitted now, and counts it only if so. Rejects with nothing. */
export interface Quota {
  take(quotaId: string, limits: QuotaLimits): Promise<QuotaDecision>;
}
