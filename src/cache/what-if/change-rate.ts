/**
 * How fast a class's records change, learned from refreshes. A refresh only shows whether there was any change since the
 * copy was filled (an interval-censored observation), not how many or when.
 */
import { BUCKETS, bucketOf, rounded } from './tally.ts';

/** Refreshes of copies that were held for that long, and how many of them brought a change. */
export interface Comparisons {
  readonly sinceMs: number;
  readonly seen: number;
  readonly changed: number;
}

/** The share of copies of that age that are out of date. */
export type OutdatedAt = (ageMs: number) => number;

/** Rates per millisecond that are searched, ends included. */
const MIN_RATE = 1e-15;
const MAX_RATE = 10;
const HALVINGS = 60;
/** Fewer comparisons show nothing: the rate would swing with one change more or less. */
export const MIN_COMPARISONS = 30;

/**
 * Null if too little was compared.
 *
 * All records of the class are taken to change at random times (a Poisson process) at one rate, the most likely one. If
 * some change much faster than others, that rate lies between theirs: it fits copies as old as those that were compared,
 * shows too few outdated answers for much younger ones, and too many for much older ones. One more comparison is added,
 * half of it changed, so that refreshes without a change are no proof that there are never any.
 */
export function learnChanges(observed: readonly Comparisons[]): OutdatedAt | null {
  const total = observed.reduce((sum, { seen }) => sum + seen, 0);
  if (total < MIN_COMPARISONS) return null;
  const data = observed.map(({ sinceMs, seen, changed }) => {
    const more = seen / total;
    return { sinceMs: Math.max(1, sinceMs), seen: seen + more, changed: Math.min(changed, seen) + more / 2 };
  });
  // The most likely rate is where the likelihood's slope is zero.
  let [low, high] = [Math.log(MIN_RATE), Math.log(MAX_RATE)];
  for (let step = 0; step < HALVINGS; step++) {
    const middle = (low + high) / 2;
    if (slopeAt(Math.exp(middle), data) > 0) low = middle;
    else high = middle;
  }
  const rate = Math.exp((low + high) / 2);
  return (ageMs) => -Math.expm1(-rate * ageMs);
}

/** The slope of the data's likelihood (its logarithm) at that rate. */
function slopeAt(rate: number, data: readonly Comparisons[]): number {
  return data.reduce((sum, { sinceMs, seen, changed }) => {
    return sum + (changed * sinceMs) / Math.expm1(rate * sinceMs) - (seen - changed) * sinceMs;
  }, 0);
}

const HALF_LIFE_MS = 86_400_000;

/** How often an answer had changed, by the age of the copy that it was compared with. Older refreshes count less. */
export class ChangeTally {
  readonly #seen = new Float32Array(BUCKETS);
  readonly #changed = new Float32Array(BUCKETS);
  #halvedAtMs: number;

  constructor(atMs: number) {
    this.#halvedAtMs = atMs;
  }

  add(isChanged: boolean, sinceMs: number, atMs: number): void {
    for (; this.#halvedAtMs <= atMs - HALF_LIFE_MS; this.#halvedAtMs += HALF_LIFE_MS) {
      for (const counts of [this.#seen, this.#changed]) counts.set(counts.map((count) => count / 2));
    }
    const bucket = bucketOf(sinceMs);
    this.#seen[bucket] = (this.#seen[bucket] ?? 0) + 1;
    if (isChanged) this.#changed[bucket] = (this.#changed[bucket] ?? 0) + 1;
  }

  /** For each bucket of ages: how many refreshes there were, and how many of them brought a change. */
  rows(): [bucket: number, seen: number, changed: number][] {
    return Array.from(this.#seen, (seen, bucket): [number, number, number] => {
      return [bucket, rounded(seen), rounded(this.#changed[bucket] ?? 0)];
    }).filter(([, seen]) => seen > 0);
  }
}
