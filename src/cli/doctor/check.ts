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

export function ok(name: string, message: string): Check {
  return { name, status: 'ok', message, advice: null };
}

export function warn(name: string, message: string, advice: string): Check {
  return { name, status: 'warn', message, advice };
}

export function fail(name: string, message: string, advice: string | null): Check {
  return { name, status: 'fail', message, advice };
}

export function skipped(name: string, message: string): Check {
  return { name, status: 'skipped', message, advice: null };
}

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
