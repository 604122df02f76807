/** Keeping a metric's label to few values, whatever is handed in. */

/** Where a value beyond the bound is counted. */
const OTHER = 'other';

/**
 * The value itself for the first `most` distinct ones, `other` for any further: each value of a label is a time series
 * that is kept for good, so a caller that by mistake hands in an id must not fill the memory.
 */
export function boundedLabel(most: number): (value: string) => string {
  const known = new Set<string>();
  return (value) => {
    if (known.has(value)) return value;
    if (known.size >= most) return OTHER;
    known.add(value);
    return value;
  };
}
