/** The result of one check of the doctor, and the comparison of clocks. */

export interface Check {
  readonly name: string;
  /** `warn`: works, with a drawback. `skipped`: could not be looked at, or there is nothing to look at. */
  readonly status: 'ok' | 'warn' | 'fail' | 'skipped';
  /** The finding. */
  readonly message: string;
  /** What to do about it; null if there is nothing to do, or the message says it. */
  readonly advice: string | null;
}

/** Makes checks of that name; each message begins with `subject`. */
export function checksNamed(name: string, subject: string = '') {
  return {
    ok: (message: string): Check => ({ name, status: 'ok', message: subject + message, advice: null }),
    warn: (message: string, advice: string): Check => ({ name, status: 'warn', message: subject + message, advice }),
    fail: (message: string, advice: string | null): Check => ({
      name,
      status: 'fail',
      message: subject + message,
      advice,
    }),
    skipped: (message: string): Check => ({ name, status: 'skipped', message: subject + message, advice: null }),
  };
}

export type Checks = ReturnType<typeof checksNamed>;

/** How far this machine's clock is ahead of another one, in milliseconds, and by how much the reading may be wrong. */
export interface ClockReading {
  readonly offsetMs: number;
  readonly uncertaintyMs: number;
}

/** All in Unix milliseconds; `sentAtMs` and `answeredAtMs` by this machine's clock, before and after the reading. */
export function readClock(theirsMs: number, sentAtMs: number, answeredAtMs: number): ClockReading {
  return { offsetMs: (sentAtMs + answeredAtMs) / 2 - theirsMs, uncertaintyMs: (answeredAtMs - sentAtMs) / 2 };
}

/** How the clocks differ, for people; null if they agree within the tolerance. `other`: the owner of the other clock. */
export function clockDifference(
  { offsetMs, uncertaintyMs }: ClockReading,
  { toleranceMs, decimals, other }: { readonly toleranceMs: number; readonly decimals: number; readonly other: string },
): string | null {
  if (Math.abs(offsetMs) <= toleranceMs + uncertaintyMs) return null;
  const seconds = (Math.abs(offsetMs) / 1000).toFixed(decimals);
  return `this machine's clock is ${seconds} s ${offsetMs > 0 ? 'ahead of' : 'behind'} ${other}`;
}

export const CLOCK_ADVICE = 'Synchronise both with NTP (timedatectl, chronyc tracking).';
