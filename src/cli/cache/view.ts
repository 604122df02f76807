/** How amounts are shown. */

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'] as const;

/** A number of bytes with three digits that count, in units of 1000, as the configuration has them. */
export function bytesText(bytes: number): string {
  const thousands = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), UNITS.length - 1);
  const amount = bytes / 1000 ** thousands;
  const digits = thousands === 0 || amount >= 99.95 ? 0 : 1;
  return `${amount.toFixed(digits)} ${UNITS[thousands] ?? 'B'}`;
}

export function entriesText(count: number): string {
  return count === 1 ? '1 entry' : `${count} entries`;
}

const UNITS_MS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** A duration in its two largest units, for people: `1h 5m`, `4s`; below a second in milliseconds with three digits. */
export function shortDuration(durationMs: number): string {
  const first = UNITS_MS.findIndex(([, unitMs]) => durationMs >= unitMs);
  if (first < 0) return `${Number(durationMs.toPrecision(3))}ms`;
  const parts: string[] = [];
  let leftMs = durationMs;
  for (const [unit, unitMs] of UNITS_MS.slice(first, first + 2)) {
    const amount = Math.floor(leftMs / unitMs);
    leftMs -= amount * unitMs;
    if (amount > 0) parts.push(`${amount}${unit}`);
  }
  return parts.join(' ');
}
