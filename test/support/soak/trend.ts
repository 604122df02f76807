/** Whether a figure grows. */

export interface Reading {
  readonly atMs: number;
  readonly value: number;
}

/** Of each window of that length the smallest: what is between two collections of garbage is no growth. */
export function floors(readings: readonly Reading[], windowMs: number): readonly Reading[] {
  const windows = new Map<number, Reading>();
  for (const reading of readings) {
    const index = Math.floor(reading.atMs / windowMs);
    const lowest = windows.get(index);
    if (lowest === undefined || reading.value < lowest.value) windows.set(index, reading);
  }
  return [...windows.values()];
}

/** The slope of the least-squares line, per hour; 0 of fewer than two readings. */
export function slopePerHour(readings: readonly Reading[]): number {
  const [meanMs, meanValue] = [mean(readings.map(({ atMs }) => atMs)), mean(readings.map(({ value }) => value))];
  const spread = readings.reduce((sum, { atMs }) => sum + (atMs - meanMs) ** 2, 0);
  const together = readings.reduce((sum, { atMs, value }) => sum + (atMs - meanMs) * (value - meanValue), 0);
  return spread === 0 ? 0 : (together / spread) * 3_600_000;
}

/** NaN of none. */
export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
