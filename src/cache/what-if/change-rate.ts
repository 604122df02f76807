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

/** Rates a millisecond that are searched, ends included. */
const MIN_RATE = 1e-15;
const MAX_RATE = 10;
const HALVINGS = 60;
/** The rates of a mixture: none at all, and from four years to 30 ms. */
const RATES: readonly number[] = [0, ...Array.from({ length: 17 }, (_, step) => 4 ** step / 1.3e11)];
const ROUNDS = 400;
/** Fewer comparisons tell nothing: one change more or less would turn the rate round. */
export const MIN_COMPARISONS = 30;
/** By how much more likely, as a logarithm, a mixture must make the data than one rate does: else it fits mere chance. */
const MIN_GAIN = 5;

/**
 * Null if too little was compared.
 *
 * Records change at random times (a Poisson process), all at the one rate that fits best; or, if the data says clearly
 * that they aren't alike, each at a rate that is drawn from a mixture (fitted by expectation maximization over a grid of
 * rates). Both by maximum likelihood. One more comparison is thrown in, half of it changed, so that refreshes
 * without a change don't pass for proof that there are never any.
 */
export function learnChanges(observed: readonly Comparisons[]): OutdatedAt | null {
  const total = observed.reduce((sum, { seen }) => sum + seen, 0);
  if (total < MIN_COMPARISONS) return null;
  const data = observed
    .filter(({ seen }) => seen > 0)
    .map(({ sinceMs, seen, changed }) => {
      const more = seen / total;
      return { sinceMs: Math.max(1, sinceMs), seen: seen + more, changed: Math.min(changed, seen) + more / 2 };
    });
  const rate = fitOneRate(data);
  const alike: OutdatedAt = (ageMs) => -Math.expm1(-rate * ageMs);
  const mixed = fitMixture(data, rate);
  return likelihood(mixed, data) > likelihood(alike, data) + MIN_GAIN ? mixed : alike;
}

/** As a logarithm. */
function likelihood(outdatedAt: OutdatedAt, data: readonly Comparisons[]): number {
  return data.reduce((sum, { sinceMs, seen, changed }) => {
    const share = Math.min(1 - Number.EPSILON, Math.max(Number.MIN_VALUE, outdatedAt(sinceMs)));
    return sum + changed * Math.log(share) + (seen - changed) * Math.log1p(-share);
  }, 0);
}

/** Where the likelihood's slope is nought, by bisection. */
function fitOneRate(data: readonly Comparisons[]): number {
  let [low, high] = [Math.log(MIN_RATE), Math.log(MAX_RATE)];
  for (let step = 0; step < HALVINGS; step++) {
    const middle = (low + high) / 2;
    if (slopeAt(Math.exp(middle), data) > 0) low = middle;
    else high = middle;
  }
  return Math.exp((low + high) / 2);
}

function slopeAt(rate: number, data: readonly Comparisons[]): number {
  return data.reduce((sum, { sinceMs, seen, changed }) => {
    return sum + (changed * sinceMs) / Math.expm1(rate * sinceMs) - (seen - changed) * sinceMs;
  }, 0);
}

interface Row {
  readonly seen: number;
  readonly changed: number;
  /** The chance of a change in that time, by rate. */
  readonly chances: Float64Array;
}

function fitMixture(data: readonly Comparisons[], rate: number): OutdatedAt {
  const rates = [rate, ...RATES];
  const weights = new Float64Array(rates.length).fill(1 / rates.length);
  const rows = data.map(({ sinceMs, seen, changed }) => {
    return { seen, changed, chances: Float64Array.from(rates, (each) => -Math.expm1(-each * sinceMs)) };
  });
  for (let round = 0; round < ROUNDS; round++) improve(weights, rows);
  return (ageMs) => rates.reduce((sum, each, at) => sum + (weights[at] ?? 0) * -Math.expm1(-each * ageMs), 0);
}

/** One round: each comparison is shared out among the rates by how likely each has brought it about. */
function improve(weights: Float64Array, rows: readonly Row[]): void {
  const factors = new Float64Array(weights.length);
  let total = 0;
  for (const { seen, changed, chances } of rows) {
    let chance = 0;
    for (let at = 0; at < weights.length; at++) chance += (chances[at] ?? 0) * (weights[at] ?? 0);
    const ofChanged = changed / Math.max(chance, Number.MIN_VALUE);
    const ofSame = (seen - changed) / Math.max(1 - chance, Number.EPSILON);
    for (let at = 0; at < weights.length; at++) {
      const own = chances[at] ?? 0;
      factors[at] = (factors[at] ?? 0) + ofChanged * own + ofSame * (1 - own);
    }
    total += seen;
  }
  for (let at = 0; at < weights.length; at++) weights[at] = ((weights[at] ?? 0) * (factors[at] ?? 0)) / total;
}

const HALF_LIFE_MS = 86_400_000;
/** How often older refreshes are made to count less. */
const STEP_MS = HALF_LIFE_MS / 4;

/** How often an answer had changed, by the age of the copy that it was compared with. Older refreshes count less. */
export class ChangeTally {
  readonly #seen = new Float32Array(BUCKETS);
  readonly #changed = new Float32Array(BUCKETS);
  #steppedAtMs: number;

  constructor(atMs: number) {
    this.#steppedAtMs = atMs;
  }

  get bytes(): number {
    return this.#seen.byteLength + this.#changed.byteLength;
  }

  add(isChanged: boolean, sinceMs: number, atMs: number): void {
    this.#fade(atMs);
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

  #fade(atMs: number): void {
    const steps = Math.floor((atMs - this.#steppedAtMs) / STEP_MS);
    if (steps < 1) return;
    this.#steppedAtMs += steps * STEP_MS;
    const factor = 0.5 ** ((steps * STEP_MS) / HALF_LIFE_MS);
    for (const counts of [this.#seen, this.#changed]) {
      for (let bucket = 0; bucket < BUCKETS; bucket++) counts[bucket] = (counts[bucket] ?? 0) * factor;
    }
  }
}
