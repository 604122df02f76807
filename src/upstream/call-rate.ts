/** How many calls a second may go to the store. */
import type { Clock } from '../clock.ts';
import type { Timers } from '../timers.ts';

export interface CallRate {
  /** True if a call may go now, which is then counted. Else `onMore` is called once, when it is of use to ask again. */
  take(onMore: () => void): boolean;
}

export interface CallRateOptions {
  /** Above 0; needn't be whole. */
  readonly perSecond: () => number;
  readonly clock: Clock;
  readonly timers: Timers;
}

/** Without such a limit. */
export const unlimitedRate: CallRate = { take: () => true };

/** After a pause, the calls of so long may go at once. */
export const BURST_MS = 100;

/** The rate of one process, counted in its memory: the generic cell rate algorithm (ITU-T I.371), with a small burst. */
export function createLocalCallRate({ perSecond, clock, timers }: CallRateOptions): CallRate {
  /** When all that went would have gone, one by one. */
  let theoreticalMs = 0;
  return {
    take: (onMore) => {
      const nowMs = clock.nowMicros() / 1000;
      const intervalMs = 1000 / perSecond();
      const nextMs = Math.max(theoreticalMs, nowMs) + intervalMs;
      const waitMs = nextMs - nowMs - Math.max(intervalMs, BURST_MS);
      if (waitMs > 0) {
        timers.after(Math.ceil(waitMs), onMore);
        return false;
      }
      theoreticalMs = nextMs;
      return true;
    },
  };
}
