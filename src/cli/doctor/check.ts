/** One check of the doctor, findings that become one, and the comparison of clocks. */

export interface Check {
  readonly name: string;
  /** `warn`: works, with a drawback. `skipped`: could not be checked, or there is nothing to check. */
  readonly status: 'ok' | 'warn' | 'fail' | 'skipped';
  readonly message: string;
  /** The remedy; null if there is nothing to do, or the message says it. */
  readonly advice: string | null;
}

/** A check that may be one of several with the same cause. `seen` names the record or the question that shows it. */
export interface Finding extends Check {
  readonly seen?: string;
}

/** Makes checks of that name; each message begins with `subject`. */
export function checksNamed(name: string, subject: string = '') {
  type Seen = string | undefined;
  const make = (status: Check['status'], message: string, advice: string | null, seen: Seen): Finding => ({
    name,
    status,
    message: subject + message,
    advice,
    ...(seen === undefined ? {} : { seen }),
  });
  return {
    ok: (message: string, seen?: string) => make('ok', message, null, seen),
    skipped: (message: string) => make('skipped', message, null, undefined),
    warn: (message: string, advice: string, seen?: string) => make('warn', message, advice, seen),
    fail: (message: string, advice: string | null, seen?: string) => make('fail', message, advice, seen),
  };
}

/** As many are named as there are resources. */
const MAX_NAMED = 6;

/** One cause is one check, which names some of the places where it was seen. The order is that of the findings. */
export function grouped(findings: readonly Finding[]): readonly Check[] {
  const groups = new Map<string, { readonly check: Check; readonly seen: string[] }>();
  for (const { seen, ...check } of findings) {
    const key = JSON.stringify(check);
    const group = groups.get(key) ?? { check, seen: [] };
    groups.set(key, group);
    if (seen !== undefined) group.seen.push(seen);
  }
  return Array.from(groups.values(), ({ check, seen }) => {
    const others = seen.length - MAX_NAMED;
    const named = seen.slice(0, MAX_NAMED).join(', ') + (others > 0 ? ` and ${others} more` : '');
    return seen.length === 0 ? check : { ...check, message: `${check.message}: ${named}` };
  });
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
