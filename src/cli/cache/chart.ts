/** How ratios, rates and ages are drawn and written in charts. */

const BAR_CELLS = 24;
/** An eighth of a cell more each. */
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/** A bar of a ratio from 0 to 1. */
export function bar(ratio: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, ratio)) * BAR_CELLS * EIGHTHS.length);
  return '█'.repeat(Math.floor(eighths / EIGHTHS.length)) + (EIGHTHS[eighths % EIGHTHS.length] ?? '');
}

export function percentText(ratio: number): string {
  return `${(ratio * 100).toFixed(1)} %`;
}

/** A number a second, with about three digits that count. */
export function rateText(perSecond: number): string {
  if (perSecond > 0 && perSecond < 0.01) return '<0.01';
  return perSecond.toFixed(perSecond >= 99.5 ? 0 : perSecond >= 9.95 ? 1 : 2);
}

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** An age in the largest unit of which it is one at least: `1.5m`, and whole milliseconds below a second. */
export function ageText(ms: number): string {
  const [unit, unitMs] = UNITS.find(([, lengthMs]) => ms >= lengthMs) ?? [];
  return unit === undefined ? `${Math.round(ms)}ms` : `${Number((ms / unitMs).toFixed(1))}${unit}`;
}
