/**
 * How fast a class's records change, learned from refreshes and from lists that bring records along. A comparison only shows
 * whether there was any change since the copy was fetched (an interval-censored observation), not how many or when.
 *
 * Records that have just changed will change again sooner than those that have not changed for a week, so each band of time
 * unchanged has a rate of its own.
 */
import { BUCKETS, bucketOf, middleOf, rounded, sum } from './tally.ts';

/** Copies that were held for that long, and how many of them the answer differed from. */
export interface Comparisons {
  readonly sinceMs: number;
  readonly seen: number;
  readonly changed: number;
}
export type BandRow = readonly [band: number, bucket: number, seen: number, changed: number];

/** The share of copies of that age that are out of date. */
export type OutdatedAt = (ageMs: number) => number;

const [MINUTE_MS, HOUR_MS, DAY_MS] = [60_000, 3_600_000, 86_400_000];
/** Where one band of time unchanged ends and the next begins. Band 0 holds records of which that is not known. */
const BAND_ENDS_MS = [MINUTE_MS, 4 * MINUTE_MS, 15 * MINUTE_MS, HOUR_MS, DAY_MS, 7 * DAY_MS];
export const BANDS = BAND_ENDS_MS.length + 2;

/** The band of a record that has been unchanged for that long. */
export function bandOf(unchangedMs: number): number {
  const at = BAND_ENDS_MS.findIndex((endMs) => unchangedMs < endMs);
  return at < 0 ? BANDS - 1 : at + 1;
}

/** Fewer comparisons show nothing: one change more or less would swing the rate. */
export const MIN_COMPARISONS = 30;

/** The change rate that was learned for one band. */
export interface Learned {
  readonly outdatedAt: OutdatedAt;
  /** The comparisons that it was learned from, and those of them that showed a change. */
  readonly seen: number;
  readonly changed: number;
}

const seenOf = ({ seen }: Comparisons): number => seen;
const changedOf = ({ changed }: Comparisons): number => changed;

/** By band; a band with too few comparisons has what all of them show together. Null if these are too few as well. */
export function learnBands(rows: readonly BandRow[]): readonly Learned[] | null {
  const all = learn(rows);
  if (all === null) return null;
  return Array.from({ length: BANDS }, (_, band) => learn(rows.filter((row) => row[0] === band)) ?? all);
}

/** All bands together. Null if there are too few comparisons. */
export function learn(rows: readonly BandRow[]): Learned | null {
  const comparisons = rows.map(([, bucket, seen, changed]) => ({ sinceMs: middleOf(bucket), seen, changed }));
  const outdatedAt = learnChanges(comparisons);
  return outdatedAt && { outdatedAt, seen: sum(comparisons, seenOf), changed: sum(comparisons, changedOf) };
}

const STEPS = 40;
/** No more than so much is certain. */
const CERTAIN = 1e-6;

/** Copies of an age are judged by comparisons of copies up to so many times as old, if these are enough. */
const REACH = 4;

/**
 * Null if too little was compared.
 *
 * All these records are taken to change at one rate, the most likely one, either at random (a Poisson process) or at equal
 * distances, whichever fits; where both fit alike, the truth is taken to lie between. If some change faster than others,
 * young copies show a higher rate than old ones, so each age has the rate of copies about as old. One more comparison is
 * added, half of it changed, so that comparisons without a change are no proof that there are never any.
 */
export function learnChanges(observed: readonly Comparisons[]): OutdatedAt | null {
  const fits: { readonly untilMs: number; readonly outdatedAt: OutdatedAt }[] = [];
  const sorted = observed.toSorted((a, b) => a.sinceMs - b.sinceMs);
  for (const [index, { sinceMs }] of sorted.entries()) {
    const isLast = index === sorted.length - 1;
    const reached = sorted.slice(0, index + 1);
    const isDue = sinceMs >= REACH * (fits.at(-1)?.untilMs ?? 0) && sum(reached, changedOf) >= MIN_COMPARISONS;
    if (sum(reached, seenOf) >= MIN_COMPARISONS && (isLast || isDue)) {
      fits.push({ untilMs: sinceMs, outdatedAt: rhythmOf(reached) });
    }
  }
  if (fits.length === 0) return null;
  return (ageMs) => {
    let least = 0;
    for (const { untilMs, outdatedAt } of fits.slice(0, -1)) {
      if (REACH * ageMs <= untilMs) return Math.max(least, outdatedAt(ageMs));
      least = Math.max(least, outdatedAt(untilMs / REACH));
    }
    return Math.max(least, fits.at(-1)?.outdatedAt(ageMs) ?? 0);
  };
}

function rhythmOf(observed: readonly Comparisons[]): OutdatedAt {
  const total = sum(observed, seenOf);
  const data = observed.map(({ sinceMs, seen, changed }) => {
    const more = seen / total;
    return { sinceMs: Math.max(1, sinceMs), seen: seen + more, changed: Math.min(changed, seen) + more / 2 };
  });
  const random = mostLikely(data, (product) => -Math.expm1(-product));
  const steady = mostLikely(data, (product) => Math.min(1, product));
  const doubt = Math.min(50, Math.max(-50, random.likelihood - steady.likelihood));
  const weight = 1 / (1 + Math.exp(-doubt));
  return (ageMs) => weight * random.shareOf(random.rate * ageMs) + (1 - weight) * steady.shareOf(steady.rate * ageMs);
}

/**
 * The rate per millisecond with the greatest likelihood (its logarithm), which has one peak. `shareOf`: the share of changed
 * copies for the product of rate and age.
 */
function mostLikely(data: readonly Comparisons[], shareOf: (product: number) => number) {
  const likelihoodOf = (rate: number): number =>
    data.reduce((all, { sinceMs, seen, changed }) => {
      const share = Math.min(1 - CERTAIN, Math.max(CERTAIN ** 2, shareOf(rate * sinceMs)));
      return all + changed * Math.log(share) + (seen - changed) * Math.log1p(-share);
    }, 0);
  // Several changes between two looks count as one, so the true rate is hardly below this, and may be far above.
  const least = sum(data, changedOf) / data.reduce((all, { sinceMs, seen }) => all + sinceMs * seen, 0);
  let [low, high] = [Math.log(least / 2), Math.log(least * 1000)];
  for (let step = 0; step < STEPS; step++) {
    const third = (high - low) / 3;
    if (likelihoodOf(Math.exp(low + third)) < likelihoodOf(Math.exp(high - third))) low += third;
    else high -= third;
  }
  const rate = Math.exp((low + high) / 2);
  return { rate, shareOf, likelihood: likelihoodOf(rate) };
}

/** One comparison, which stands for so many as its weight. `changed`: 0 or 1, or a share. */
interface Comparison {
  readonly band: number;
  readonly changed: number;
  readonly sinceMs: number;
  readonly weight: number;
}

const HALF_LIFE_MS = 86_400_000;

/** How often an answer had changed, by band and by the age of the copy that it was compared with. Older ones count less. */
export class ChangeTally {
  readonly #seen = new Float32Array(BANDS * BUCKETS);
  readonly #changed = new Float32Array(BANDS * BUCKETS);
  #halvedAtMs: number;

  constructor(atMs: number) {
    this.#halvedAtMs = atMs;
  }

  add({ band, changed, sinceMs, weight }: Comparison, atMs: number): void {
    for (; this.#halvedAtMs <= atMs - HALF_LIFE_MS; this.#halvedAtMs += HALF_LIFE_MS) {
      for (const counts of [this.#seen, this.#changed]) counts.set(counts.map((count) => count / 2));
    }
    const at = band * BUCKETS + bucketOf(sinceMs);
    this.#seen[at] = (this.#seen[at] ?? 0) + weight;
    this.#changed[at] = (this.#changed[at] ?? 0) + weight * changed;
  }

  /** For each band and bucket of ages: how many comparisons there were, and how many of them showed a change. */
  rows(): [band: number, bucket: number, seen: number, changed: number][] {
    return Array.from(this.#seen, (seen, at): [number, number, number, number] => {
      return [Math.floor(at / BUCKETS), at % BUCKETS, rounded(seen), rounded(this.#changed[at] ?? 0)];
    }).filter(([, , seen]) => seen > 0);
  }
}
