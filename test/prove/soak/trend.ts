/** Whether a figure that is read again and again grows over time. Pure. */
export interface Reading {
  readonly atMs: number;
  readonly value: number;
}

/** The smallest of each window of that length: memory between two collections of garbage is not growth. */
export function floors(readings: readonly Reading[], windowMs: number): readonly Reading[] {
  const windows = Map.groupBy(readings, ({ atMs }) => Math.floor(atMs / windowMs));
  return [...windows.values()].flatMap((window) => window.toSorted((a, b) => a.value - b.value).slice(0, 1));
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** The slope of the least-squares line, per hour. */
export function slopePerHour(readings: readonly Reading[]): number {
  const [meanMs, meanValue] = [mean(readings.map(({ atMs }) => atMs)), mean(readings.map(({ value }) => value))];
  const spread = readings.reduce((sum, { atMs }) => sum + (atMs - meanMs) ** 2, 0);
  const together = readings.reduce((sum, { atMs, value }) => sum + (atMs - meanMs) * (value - meanValue), 0);
  return spread === 0 ? 0 : (together / spread) * 3_600_000;
}

/** How much the line through the readings rises from the first to the last of them, as a share of their mean. */
export function riseOf(readings: readonly Reading[]): number {
  const [first, last] = [readings[0]?.atMs ?? 0, readings.at(-1)?.atMs ?? 0];
  const rise = (slopePerHour(readings) * (last - first)) / 3_600_000;
  return rise / mean(readings.map(({ value }) => value));
}
