/** A line of the table that `npm run prove` prints: what is promised, and what came out. */
export interface Row {
  readonly name: string;
  /** What is promised, in words with figures. */
  readonly bar: string;
  /** What came out, in the same terms. */
  readonly measured: string;
  readonly ok: boolean;
}

/** `whole` is what the bar says; `short` about a twentieth of it, with more time, for a machine that does other things too. */
export type Scale = 'short' | 'whole';

export function scaled(scale: Scale, whole: number): number {
  return scale === 'whole' ? whole : Math.ceil(whole / 20);
}

/** Added to what is allowed in time where other tests run beside. */
export function slackMs(scale: Scale): number {
  return scale === 'whole' ? 0 : 750;
}

/** The same for times under load, which say nothing there: only that nothing hangs. */
export function loadSlackMs(scale: Scale): number {
  return scale === 'whole' ? 0 : 5000;
}

/** The value that the given share of the values does not exceed; 0 of none. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0;
}

/** Whole milliseconds for people. */
export function ms(value: number): string {
  return `${Math.round(value).toLocaleString('en')} ms`;
}

/** With thousands parted, for people. */
export function count(value: number): string {
  return value.toLocaleString('en');
}
