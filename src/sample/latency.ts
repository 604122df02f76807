/** How long the sample lets its callers wait. */
import type { Random } from './random.ts';

/** Waits; ends early, by rejecting, when the signal aborts. */
export type Sleep = (ms: number, signal: AbortSignal) => Promise<void>;

/** Real stores answer most calls near the median and a few far later: of a median of 120 ms one in a hundred takes 1.5 s. */
const P99_TO_MEDIAN = 12.5;
const Z_OF_P99 = 2.326_348;
const SIGMA = Math.log(P99_TO_MEDIAN) / Z_OF_P99;
/** No call takes more than so many medians, so that a sample never seems to hang for good. */
const MAX_TO_MEDIAN = 50;

/** Draws the latency of one call in milliseconds from a log-normal distribution; 0 is none at all. */
export function drawLatencyMs(medianMs: number, random: Random): number {
  if (medianMs <= 0) return 0;
  return medianMs * Math.min(MAX_TO_MEDIAN, Math.exp(SIGMA * random.gaussian()));
}
