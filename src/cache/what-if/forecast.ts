/** Forecasts of a class with other fresh times, from the simulations of all processes. Pure. */
import type { CacheClass, CacheTtl } from '../ttl-policy.ts';
import { type Announced, announcedOf, withFallingCalls } from './announced.ts';
import { BANDS, type BandRow, learnBands } from './change-rate.ts';
import {
  type Ages,
  BUCKETS,
  CANDIDATE_FRESH_MS,
  type Counts,
  leastOf,
  middleOf,
  sum,
  type TogetherReport,
  type WhatIfReport,
} from './tally.ts';
import { IN_FORCE, LIST_FRESH_MS, WITHOUT_LISTS } from './together.ts';

/**
 * A prediction for one fresh time. Ratios are 0 to 1; an error is two standard errors: chance alone may have moved it so far.
 * That of outdated answers also has the error of the model.
 */
export interface Point {
  readonly freshMs: number;
  /** The share of reads that are served without waiting for the store. */
  readonly hitRatio: number;
  readonly hitRatioError: number;
  /** The share of reads that are served past the fresh time: they are hits, and stale. */
  readonly staleRatio: number;
  readonly storeCallsPerRead: number;
  readonly storeCallsPerReadError: number;
  /** Calls to the store a second. */
  readonly upstreamRps: number;
  readonly upstreamRpsError: number;
  /** Nine of ten answers would be at most this old. */
  readonly ageP90Ms: number;
  readonly ageP90MsError: number;
  /** The share of answers, or of the records on lists, that would be out of date; null until it is known how fast records change. */
  readonly outdatedRatio: number | null;
  readonly outdatedRatioError: number | null;
  /** If the store announces its changes; null for lists, and until it is known how fast records change and how many are announced. */
  readonly announced: Announced | null;
  /** Traffic was not watched for as long as this time: the figures are a guess. */
  readonly extrapolated: boolean;
}

export interface Forecast {
  readonly reads: number;
  /** Unix milliseconds. */
  readonly sinceMs: number;
  /** Whether that is when a process started: the first read of each record, which is a miss with any time, is counted. */
  readonly includesStart: boolean;
  /** How many times copies were compared with a new answer. Older ones count less, so it may be a fraction. */
  readonly comparisons: number;
  /** In order of time. */
  readonly curve: readonly Point[];
  /** The point of the time in force, which is in `curve` too. */
  readonly current: Point;
}

/** The simulation of one process. Each key is followed by one process, so those of all add up. */
type Simulation = Counts & Pick<WhatIfReport, 'atMs'>;

/** A shorter time makes a rate a matter of chance. */
const SHORTEST_MS = 1000;

/**
 * The basis of the forecasts of a class with any times; null without reads. `unannouncedRatio`: the share of changes that the
 * store does not announce; null if it is not known.
 */
export function basisOf(
  reports: readonly WhatIfReport[],
  cacheClass: CacheClass,
  unannouncedRatio: number | null,
): Basis | null {
  const simulations = reports.flatMap(({ atMs, classes }) =>
    classes.flatMap((each) => (each.class === cacheClass && each.counts !== null ? [{ ...each.counts, atMs }] : [])),
  );
  const reads = sum(simulations, readsOf);
  if (reads === 0) return null;
  const rows = rowsOf(reports, cacheClass);
  return {
    reports,
    cacheClass,
    simulations,
    reads,
    comparisons: sum(rows, ([, , seen]) => seen),
    readsPerSecond: (1000 * reads) / Math.max(SHORTEST_MS, coveredMs(simulations)),
    // Processes that came later count by their share of the reads.
    watchedMs: sum(simulations, (one) => readsOf(one) * (one.atMs - one.startedMs)) / reads,
    unannouncedRatio: cacheClass === 'list' ? null : unannouncedRatio,
    outdatedOf: cacheClass === 'list' ? outdatedLists(reports, rows) : outdatedRecords(rows),
  };
}

/** `listFreshMs`: the fresh time of lists, which bring evaluations along. */
export function forecastOf(
  basis: Basis,
  { freshMs, staleMs, listFreshMs }: Pick<CacheTtl, 'freshMs' | 'staleMs'> & { readonly listFreshMs: number },
): Forecast {
  const { reports, cacheClass, simulations, reads, comparisons } = basis;
  const beside = cacheClass === 'evaluation' ? besideLists(reports, listFreshMs) : () => ALONE;
  const simulated = CANDIDATE_FRESH_MS.map((_, index) => simulatedPoint(index, basis, beside(index)));
  const candidates = withFallingCalls(simulated);
  const current =
    candidates.find((point) => point.freshMs === freshMs) ?? interpolated(candidates, { freshMs, staleMs }, basis);
  return {
    reads,
    sinceMs: Math.min(...simulations.map((one) => one.sinceMs)),
    includesStart: simulations.some((one) => one.sinceMs === one.startedMs),
    comparisons,
    curve: [...candidates.filter((point) => point !== current), current].toSorted((a, b) => a.freshMs - b.freshMs),
    current,
  };
}

export function rowsOf(reports: readonly WhatIfReport[], cacheClass: CacheClass): readonly BandRow[] {
  return reports.flatMap(({ classes }) =>
    classes.flatMap((each) => (each.class === cacheClass ? each.comparisons : [])),
  );
}

export interface Basis extends Pick<Forecast, 'reads' | 'comparisons'> {
  readonly reports: readonly WhatIfReport[];
  readonly cacheClass: CacheClass;
  readonly simulations: readonly Simulation[];
  readonly readsPerSecond: number;
  readonly watchedMs: number;
  /** Null if there is nothing to say of announcements. */
  readonly unannouncedRatio: number | null;
  readonly outdatedOf: (ages: readonly Aged[]) => Estimate | null;
}

interface Estimate {
  readonly ratio: number;
  readonly error: number;
}

/** A share of the answers: those of that age, of records in that band. */
interface Aged {
  readonly band: number;
  readonly bucket: number;
  readonly share: number;
}

function readsOf({ exactReads, otherReads }: Counts): number {
  return exactReads + otherReads;
}

/** How long any process watched: those that have ended handed their reads over. */
function coveredMs(simulations: readonly Simulation[]): number {
  let [covered, untilMs] = [0, 0];
  for (const { sinceMs, atMs } of simulations.toSorted((a, b) => a.sinceMs - b.sinceMs)) {
    covered += Math.max(0, atMs - Math.max(sinceMs, untilMs));
    untilMs = Math.max(untilMs, atMs);
  }
  return covered;
}

/** The prediction for the candidate of that index. */
function simulatedPoint(index: number, basis: Basis, beside: Beside): Point {
  const { simulations, readsPerSecond, watchedMs, unannouncedRatio, outdatedOf } = basis;
  const freshMs = CANDIDATE_FRESH_MS[index] ?? 0;
  const alone = perRead(simulations, ({ points }) => points[index]?.calls);
  const calls = times(alone, beside.calls);
  const waits = times(
    perRead(simulations, ({ points }) => points[index]?.waits),
    beside.waits,
  );
  const ages =
    beside.ages ??
    agesOf(simulations.map((one) => [one.points[index]?.ages ?? [], one.exactReads + one.sampledWeight]));
  const outdated = outdatedOf(ages);
  const about = {
    freshMs,
    storeCallsPerRead: calls.ratio,
    storeCallsPerReadAlone: alone.ratio,
    readsPerSecond,
    outdatedIf: (ageOf: (bucket: number) => number) =>
      outdatedOf(ages.map((one) => ({ ...one, bucket: ageOf(one.bucket) })))?.ratio ?? 0,
  };
  return {
    freshMs,
    hitRatio: 1 - waits.ratio,
    hitRatioError: waits.error,
    staleRatio: sum(ages, ({ bucket, share }) => (leastOf(bucket) >= freshMs ? share : 0)),
    storeCallsPerRead: calls.ratio,
    storeCallsPerReadError: calls.error,
    upstreamRps: calls.ratio * readsPerSecond,
    upstreamRpsError: calls.error * readsPerSecond,
    ...ageP90Of(ages, alone, beside.ages === null ? BUCKET_ERROR : COARSE_ERROR),
    outdatedRatio: outdated?.ratio ?? null,
    outdatedRatioError: outdated?.error ?? null,
    announced:
      outdated === null || unannouncedRatio === null
        ? null
        : announcedOf({ ...about, outdatedRatio: outdated.ratio }, unannouncedRatio),
    extrapolated: watchedMs < freshMs,
  };
}

function times(one: Estimate, factor: Estimate): Estimate {
  return { ratio: one.ratio * factor.ratio, error: Math.hypot(one.error * factor.ratio, one.ratio * factor.error) };
}

/**
 * How often something happens at a read: at exact ones, and at all those for which the sampled ones stand. If these stand
 * for too few reads, busy keys are missing from the sample; if for too many, it has more than its share of them. It rarely
 * happens at a read of a busy key, so the difference counts with its share among repeated reads (a regression estimate).
 * The number varies as in a Poisson process, and each sampled one stands for several.
 */
function perRead(
  all: readonly Simulation[],
  sumsOf: (one: Simulation) => Counts['points'][number]['calls'] | undefined,
): Estimate {
  const [exact, sampled, repeated] = [0, 1, 2].map((at) => sum(all, (one) => sumsOf(one)?.[at] ?? 0));
  const reads = sum(all, readsOf);
  const others = sum(all, ({ otherReads }) => otherReads);
  const weight = sum(all, ({ sampledWeight }) => sampledWeight);
  const repeats = sum(all, ({ repeatReads }) => repeatReads);
  const samples = sum(all, ({ sampledReads }) => sampledReads);
  const share = repeats === 0 ? 1 : (repeated ?? 0) / repeats;
  const estimate = weight === 0 ? others : (sampled ?? 0) + share * (others - weight);
  const counted = (exact ?? 0) + Math.min(others, Math.max(0, estimate));
  const variance = (exact ?? 0) + (sampled ?? 0) * (others / Math.max(1, samples));
  return { ratio: Math.min(1, counted / reads), error: (2 * Math.sqrt(variance)) / reads };
}

/** The ages of all answers, from ages with their weights. */
function agesOf(all: readonly (readonly [ages: Ages, weight: number])[]): readonly Aged[] {
  const sums = new Map<number, number>();
  for (const [ages, weight] of all) {
    const whole = sum(ages, ([, share]) => share);
    for (const [place, share] of ages) sums.set(place, (sums.get(place) ?? 0) + (weight * share) / whole);
  }
  const total = sum([...sums.values()], Number);
  return [...sums].map(([place, count]) => {
    return { band: Math.floor(place / BUCKETS), bucket: place % BUCKETS, share: count / total };
  });
}

/** Any age is at most this far from the middle of its bucket; and of four buckets that are taken together. */
const [BUCKET_ERROR, COARSE_ERROR] = [0.1, 0.42];

/** All reads of one copy have their ages from the same call, so the percentile is as uncertain as the number of calls. */
function ageP90Of(
  ages: readonly Aged[],
  calls: Estimate,
  bucketError: number,
): Pick<Point, 'ageP90Ms' | 'ageP90MsError'> {
  const sorted = ages.toSorted((a, b) => a.bucket - b.bucket);
  const percentile = (share: number): number => {
    let below = 0;
    const found = sorted.find((one) => (below += one.share) >= share - 1e-9) ?? sorted.at(-1);
    return Math.round(middleOf(found?.bucket ?? 0));
  };
  const doubt = calls.ratio === 0 ? 1 : Math.sqrt(0.9 * 0.1) * (calls.error / calls.ratio);
  const ageP90Ms = percentile(0.9);
  const [low, high] = [percentile(0.9 - doubt), percentile(0.9 + doubt)];
  return { ageP90Ms, ageP90MsError: Math.round(Math.max(ageP90Ms - low, high - ageP90Ms, bucketError * ageP90Ms)) };
}

/** Records of a band do not all change alike: shares that were measured with other times lay up to a fifth beside. */
const MODEL_ERROR = 0.2;

/**
 * The share of records that are out of date: each by how long it had been unchanged. A band's share is as uncertain as the
 * number of changes that it was learned from, and at least as the model is.
 */
function outdatedRecords(rows: readonly BandRow[]): Basis['outdatedOf'] {
  const bands = learnBands(rows);
  if (bands === null) return () => null;
  return (ages) => {
    const byBand = bands.map(({ outdatedAt, changed }, band) => {
      const share = sum(ages, (one) => (one.band === band ? one.share * outdatedAt(middleOf(one.bucket)) : 0));
      return { share, variance: share ** 2 / (1 + changed) };
    });
    const ratio = sum(byBand, ({ share }) => share);
    const chance = 2 * Math.sqrt(sum(byBand, ({ variance }) => variance));
    return { ratio: Math.min(1, ratio), error: Math.hypot(chance, MODEL_ERROR * ratio) };
  };
}

/**
 * The share of a list's records that are out of date, or are missing because they are new (band 0). The records on lists
 * are in all bands, whatever the age of the list.
 */
function outdatedLists(reports: readonly WhatIfReport[], rows: readonly BandRow[]): Basis['outdatedOf'] {
  const changedOf = outdatedRecords(rows.filter(([band]) => band > 0));
  const missingOf = outdatedRecords(rows.filter(([band]) => band === 0));
  const items = Array.from({ length: BANDS }, (_, band) => sum(reports, ({ together }) => together?.items[band] ?? 0));
  const all = Math.max(1, sum(items, Number));
  return (ages) => {
    const missing = missingOf(ages.map((one) => ({ ...one, band: 0 })));
    if (missing === null) return null;
    const records = ages.flatMap((one) =>
      items.map((count, band) => ({ ...one, band, share: (one.share * count) / all })),
    );
    const changed = changedOf(records) ?? { ratio: 0, error: 0 };
    const ratio = 1 - (1 - changed.ratio) * (1 - missing.ratio);
    return { ratio, error: Math.hypot(changed.error, missing.error) };
  };
}

/** The shares of calls and waits that remain beside lists, and the ages there. */
interface Beside {
  readonly calls: Estimate;
  readonly waits: Estimate;
  /** Null if there are no lists. */
  readonly ages: readonly Aged[] | null;
}
const CERTAINLY_ALL: Estimate = { ratio: 1, error: 0 };
const ALONE: Beside = { calls: CERTAINLY_ALL, waits: CERTAINLY_ALL, ages: null };

/** So many reads show what the time of lists in force brings; until then it is told by the times next to it. */
const MIN_IN_FORCE = 300;

/** Evaluations beside lists with that fresh time. */
function besideLists(reports: readonly WhatIfReport[], listFreshMs: number): (candidate: number) => Beside {
  const all = reports.flatMap(({ together }) => together ?? []);
  if (all.length === 0) return () => ALONE;
  const exact = all.filter(({ inForceMs }) => inForceMs === listFreshMs);
  const isKnown = sum(exact, ({ beside }) => beside.calls[0] ?? 0) >= MIN_IN_FORCE;
  const worlds = isKnown ? [{ world: IN_FORCE, weight: 1 }] : worldsNextTo(listFreshMs);
  const from = isKnown ? exact : all;
  return (candidate) => {
    const ratio = (of: 'calls' | 'waits'): Estimate => {
      const base = sum(from, (one) => (isKnown ? one.beside : one.worlds[WITHOUT_LISTS])?.[of][candidate] ?? 0);
      if (base === 0) return CERTAINLY_ALL;
      const counted = sum(
        worlds,
        ({ world, weight }) => weight * sum(from, (one) => one.worlds[world]?.[of][candidate] ?? 0),
      );
      return { ratio: counted / base, error: (2 * Math.sqrt(counted + 1)) / base };
    };
    const ages = worlds.flatMap(({ world, weight }) =>
      from.map((one) => [one.worlds[world]?.ages[candidate] ?? [], weight * weightOf(one)] as const),
    );
    return { calls: ratio('calls'), waits: ratio('waits'), ages: agesOf(ages) };
  };
}

/** Nearly every read calls the store at the shortest time. */
function weightOf({ worlds }: TogetherReport): number {
  return Math.max(1, worlds[WITHOUT_LISTS]?.calls[0] ?? 0);
}

/** Between two times it is by the logarithm of the time. */
function worldsNextTo(listFreshMs: number) {
  const next = LIST_FRESH_MS.findIndex((freshMs) => freshMs >= listFreshMs);
  if (next <= 0) return [{ world: next < 0 ? LIST_FRESH_MS.length - 1 : 0, weight: 1 }];
  const [low, high] = [LIST_FRESH_MS[next - 1] ?? 1, LIST_FRESH_MS[next] ?? 1];
  const share = Math.log(listFreshMs / low) / Math.log(high / low);
  return [
    { world: next - 1, weight: 1 - share },
    { world: next, weight: share },
  ];
}

/**
 * Between the candidates next to it: calls fall as a power of the time, waits with its logarithm; ages and what they bring
 * grow with the time itself. Beyond the last candidate it is as that. With no time every read is a call to the store, and
 * waits for it unless old copies are served meanwhile.
 */
function interpolated(
  candidates: readonly Point[],
  { freshMs, staleMs }: Pick<CacheTtl, 'freshMs' | 'staleMs'>,
  { readsPerSecond, watchedMs }: Basis,
): Point {
  const [first, last] = [candidates[0], candidates.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError('there are no candidates');
  const above = candidates.find((point) => point.freshMs > freshMs) ?? { ...last, freshMs: freshMs + 1 };
  const waiting = { hitRatio: 0, staleRatio: 0, ageP90Ms: 0, outdatedRatio: first.outdatedRatio === null ? null : 0 };
  const atNothing = { ...first, freshMs: 0, storeCallsPerRead: 1, announced: null, ...(staleMs > 0 ? {} : waiting) };
  const below = candidates.findLast((point) => point.freshMs < freshMs) ?? atNothing;
  const share = (freshMs - below.freshMs) / (above.freshMs - below.freshMs);
  const ratio =
    below.freshMs === 0 ? share : Math.log(freshMs / below.freshMs) / Math.log(above.freshMs / below.freshMs);
  const storeCallsPerRead = mixPowers(below.storeCallsPerRead, above.storeCallsPerRead, ratio);
  const isLearned = below.outdatedRatio !== null && above.outdatedRatio !== null;
  return {
    ...above,
    freshMs,
    hitRatio: mix(below.hitRatio, above.hitRatio, ratio),
    staleRatio: mix(below.staleRatio, above.staleRatio, ratio),
    storeCallsPerRead,
    upstreamRps: storeCallsPerRead * readsPerSecond,
    ageP90Ms: Math.round(mix(below.ageP90Ms, above.ageP90Ms, share)),
    outdatedRatio: isLearned ? mix(below.outdatedRatio, above.outdatedRatio, share) : null,
    announced: below.announced && above.announced && mixAnnounced(below.announced, above.announced, share),
    extrapolated: watchedMs < freshMs,
  };
}

/** Calls fall more and more slowly, so the straight line between two times is not below them. */
function mixAnnounced(from: Announced, to: Announced, share: number): Announced {
  return {
    outdatedRatio: mix(from.outdatedRatio, to.outdatedRatio, share),
    storeCallsPerRead: mix(from.storeCallsPerRead, to.storeCallsPerRead, share),
    upstreamRps: mix(from.upstreamRps, to.upstreamRps, share),
  };
}

function mix(from: number, to: number, share: number): number {
  return from + share * (to - from);
}

function mixPowers(from: number, to: number, share: number): number {
  return from > 0 && to > 0 ? from * (to / from) ** share : mix(from, to, share);
}
