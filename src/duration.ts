/** Durations as people write and read them in the configuration and on the command line: `250ms`, `30s`, `5m`, `2h`, `7d`, `0s`. */

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DESCENDING = ['d', 'h', 'm', 's'] as const;
const PATTERN = /^(\d{1,12})(ms|s|m|h|d)$/;

/** How a duration is written, for messages and help texts. */
export const DURATION_FORM = 'a duration like 250ms, 30s, 5m, 2h, 7d or 0s';

/** Milliseconds of a written duration; null if the text is none. */
export function parseDuration(text: string): number | null {
  const [, amount, unit] = PATTERN.exec(text) ?? [];
  if (amount === undefined || !isUnit(unit)) return null;
  return Number(amount) * UNITS_MS[unit];
}

/** The shortest exact way to write a duration: the largest unit that divides it. */
export function formatDuration(durationMs: number): string {
  if (durationMs === 0) return '0s';
  for (const unit of DESCENDING) {
    if (durationMs % UNITS_MS[unit] === 0) return `${durationMs / UNITS_MS[unit]}${unit}`;
  }
  return `${durationMs}ms`;
}

/** A duration in its two largest units, such as `1h 5m` or `4s`; below a second in milliseconds with three digits. */
export function durationText(durationMs: number): string {
  const first = DESCENDING.findIndex((unit) => durationMs >= UNITS_MS[unit]);
  if (first < 0) return `${Number(durationMs.toPrecision(3))}ms`;
  const parts: string[] = [];
  let leftMs = durationMs;
  for (const unit of DESCENDING.slice(first, first + 2)) {
    const amount = Math.floor(leftMs / UNITS_MS[unit]);
    leftMs -= amount * UNITS_MS[unit];
    if (amount > 0) parts.push(`${amount}${unit}`);
  }
  return parts.join(' ');
}

function isUnit(text: string | undefined): text is keyof typeof UNITS_MS {
  return text !== undefined && Object.hasOwn(UNITS_MS, text);
}
