/** Durations as people write them in the configuration and on the command line: `250ms`, `30s`, `5m`, `2h`, `7d`, `0s`. */

const UNITS_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
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
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    if (durationMs % UNITS_MS[unit] === 0) return `${durationMs / UNITS_MS[unit]}${unit}`;
  }
  return `${durationMs}ms`;
}

function isUnit(text: string | undefined): text is keyof typeof UNITS_MS {
  return text !== undefined && Object.hasOwn(UNITS_MS, text);
}
