/** Figures of trials in words. Pure. */

const UNITS = [
  [3_600_000, 'h'],
  [60_000, 'min'],
  [1000, 's'],
] as const;

/** In the largest unit of which there is at least one: `45 s`, `1.5 h`, `0.5 s`. */
export function span(durationMs: number): string {
  const [unitMs, unit] = UNITS.find(([each]) => durationMs >= each) ?? ([1000, 's'] as const);
  return `${Number((durationMs / unitMs).toFixed(1))} ${unit}`;
}

export function percent(ratio: number): string {
  return `${Number((100 * ratio).toFixed(1))} %`;
}

export function whole(value: number): string {
  return value.toLocaleString('en');
}

export function times(factor: number): string {
  return `${Number(factor.toFixed(2))} times`;
}

/** `60 of 500 (12 %)`. */
export function partOf(part: number, all: number): string {
  return `${whole(part)} of ${whole(all)} (${percent(all === 0 ? 0 : part / all)})`;
}
