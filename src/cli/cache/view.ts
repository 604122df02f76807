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
