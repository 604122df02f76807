/** Durations as people write and read them in the configuration and on the command line: `250ms`, `30s`, `5m`, `2h`, `7d`, `0s`. */

/** How many of the smallest unit each unit has; the largest first. */
export type Units = ReadonlyMap<string, number>;

const DURATION_UNITS: Units = new Map([
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
]);

/** How a duration is written, for messages and help texts. */
export const DURATION_FORM = 'a duration like 250ms, 30s, 5m, 2h, 7d or 0s';

/** Milliseconds of a written duration; null if the text is none. */
export function parseDuration(text: string): number | null {
  return parseAmount(text, DURATION_UNITS);
}

/** The shortest exact way to write a duration: the largest unit that divides it. */
export function formatDuration(durationMs: number): string {
  return durationMs === 0 ? '0s' : formatAmount(durationMs, DURATION_UNITS);
}

/** A written whole number with a unit, in the smallest unit; null if the text is none. */
export function parseAmount(text: string, units: Units): number | null {
  const [, count, unit = ''] = /^(\d{1,12})([A-Za-z]+)$/.exec(text) ?? [];
  const size = units.get(unit);
  return count === undefined || size === undefined ? null : Number(count) * size;
}

export function formatAmount(amount: number, units: Units): string {
  const [unit, size] = [...units].find(([, one]) => amount % one === 0) ?? ['', 1];
  return `${amount / size}${unit}`;
}

const FROM_SECONDS = [...DURATION_UNITS].filter(([unit]) => unit !== 'ms');

/** A duration in its two largest units, such as `1h 5m` or `4s`; below a second in milliseconds with three digits. */
export function durationText(durationMs: number): string {
  const first = FROM_SECONDS.findIndex(([, unitMs]) => durationMs >= unitMs);
  if (first < 0) return `${Number(durationMs.toPrecision(3))}ms`;
  const parts: string[] = [];
  let leftMs = durationMs;
  for (const [unit, unitMs] of FROM_SECONDS.slice(first, first + 2)) {
    const amount = Math.floor(leftMs / unitMs);
    leftMs -= amount * unitMs;
    if (amount > 0) parts.push(`${amount}${unit}`);
  }
  return parts.join(' ');
}

/** How far a clock is off, in words that the name of another one follows: `1h 5m ahead of`, `4s behind`. */
export function clockText(aheadMs: number): string {
  return `${durationText(Math.abs(aheadMs))} ${aheadMs > 0 ? 'ahead of' : 'behind'}`;
}
