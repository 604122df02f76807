/** Durations as they are written in configuration and commands: `250ms`, `30s`, `5m`, `2h`, `7d`, `0s`. */

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const DURATION = /^([0-9]{1,12})(ms|s|m|h|d)$/;

/** Milliseconds; null where the text is no duration. */
export function parseDurationMs(text: string): number | null {
  const [, amount, unit] = DURATION.exec(text) ?? [];
  if (amount === undefined || !isUnit(unit)) return null;
  return Number(amount) * UNIT_MS[unit];
}

function isUnit(unit: string | undefined): unit is keyof typeof UNIT_MS {
  return unit !== undefined && Object.hasOwn(UNIT_MS, unit);
}
