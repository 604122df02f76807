/** One check of the doctor, and the comparison of clocks. */

export interface Check {
  readonly name: string;
  /** `warn`: works, with a drawback. `skipped`: could not be checked, or there is nothing to check. */
  readonly status: 'ok' | 'warn' | 'fail' | 'skipped';
  readonly message: string;
  /** The remedy; null if there is nothing to do, or the message says it. */
  readonly advice: string | null;
}

/** Makes checks of that name; each message begins with `subject`. */
export function checksNamed(name: string, subject: string = '') {
  const make = (status: Check['status'], message: string, advice: string | null): Check => ({
    name,
    status,
    message: subject + message,
    advice,
  });
  return {
    ok: (message: string) => make('ok', message, null),
    skipped: (message: string) => make('skipped', message, null),
    warn: (message: string, advice: string) => make('warn', message, advice),
    fail: (message: string, advice: string | null) => make('fail', message, advice),
  };
}

export type Checks = ReturnType<typeof checksNamed>;
export const clockChecks = checksNamed('clock');

/** How far this machine's clock is ahead of another one, in milliseconds, and by how much the reading may be wrong. */
export interface ClockReading {
  readonly offsetMs: number;
  readonly uncertaintyMs: number;
}

/** All in Unix milliseconds; `sentAtMs` and `answeredAtMs` by this machine's clock, before and after the reading. */
export function readClock(theirsMs: number, sentAtMs: number, answeredAtMs: number): ClockReading {
  return { offsetMs: (sentAtMs + answeredAtMs) / 2 - theirsMs, uncertaintyMs: (answeredAtMs - sentAtMs) / 2 };
}

/** `within`: the tolerance in words. `other`: the clock that was read. `consequence`: of clocks that differ. */
export function checkClock(
  { offsetMs, uncertaintyMs }: ClockReading,
  severity: 'warn' | 'fail',
  by: { toleranceMs: number; within: string; decimals: number; other: string; consequence: string },
): Check {
  const { toleranceMs, within, decimals, other, consequence } = by;
  if (Math.abs(offsetMs) <= toleranceMs + uncertaintyMs)
    return clockChecks.ok(`differs from ${other} by less than ${within}`);
  const difference = `${(Math.abs(offsetMs) / 1000).toFixed(decimals)} s ${offsetMs > 0 ? 'ahead of' : 'behind'}`;
  return clockChecks[severity](
    `this machine's clock is ${difference} ${other}`,
    `Synchronise both with NTP (timedatectl, chronyc tracking). ${consequence}`,
  );
}
