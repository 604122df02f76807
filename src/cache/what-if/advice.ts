/** Advice from the simulations of all processes: one curve per class, and which TTL to set. Pure. */
import { z } from 'zod';
import { durationText } from '../../time/duration.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
import { type Comparisons, learnChanges, MIN_COMPARISONS, type OutdatedAt } from './change-rate.ts';
import { BUCKETS, CANDIDATE_FRESH_MS, type Counts, middleOf, type WhatIfReport } from './tally.ts';

const number = z.number();

/** A prediction for one TTL. Ratios are 0 to 1; an error is two standard errors: chance alone may have moved it so far. */
const curvePointSchema = z.object({
  freshMs: number,
  /** The share of reads that are served without waiting for the store. */
  hitRatio: number,
  hitRatioError: number,
  storeCallsPerRead: number,
  storeCallsPerReadError: number,
  /** Calls to the store a second. */
  upstreamRps: number,
  /** Nine of ten answers would be at most this old. */
  ageP90Ms: number,
  /** The share of answers that would be out of date; null until enough refreshes show how fast records change. */
  outdatedRatio: number.nullable(),
  /** Traffic was not watched for as long as this TTL: the figures are a guess. */
  extrapolated: z.boolean(),
});
export type CurvePoint = Readonly<z.output<typeof curvePointSchema>>;

export const classAdviceSchema = z.object({
  class: z.string(),
  reads: number,
  /** ISO 8601; null without reads. */
  since: z.string().nullable(),
  /** The share of outdated answers that is accepted. */
  outdatedLimit: number,
  /** The point of the TTL in force, which is in `curve` too; null without reads. */
  current: curvePointSchema.nullable(),
  /** The true figures; null without reads. */
  measured: curvePointSchema.pick({ hitRatio: true, storeCallsPerRead: true, upstreamRps: true }).nullable(),
  /** In order of TTL; empty without reads. */
  curve: z.array(curvePointSchema),
  /** `freshMs` is null if no TTL can be recommended; `why` is one plain sentence. */
  recommendation: z.object({ freshMs: number.nullable(), why: z.string() }),
});
export type ClassAdvice = Readonly<z.output<typeof classAdviceSchema>>;
type Recommendation = ClassAdvice['recommendation'];

export interface AdviceOptions {
  readonly ttl: Pick<TtlPolicy, 'of'>;
  /** The share of outdated answers that is accepted. */
  readonly outdatedLimitOf: (cacheClass: CacheClass) => number;
  readonly nowMs: number;
}

/** Advice on every class, in their order, from one report per process. */
export function adviceOf(reports: readonly WhatIfReport[], options: AdviceOptions): readonly ClassAdvice[] {
  return CACHE_CLASSES.map((cacheClass) => {
    const own = reports.flatMap(({ atMs, classes }) =>
      classes.filter((each) => each.class === cacheClass).map((each) => ({ ...each, atMs })),
    );
    return adviceOn(cacheClass, own, options);
  });
}

type ClassReport = WhatIfReport['classes'][number] & Pick<WhatIfReport, 'atMs'>;
/** The simulation of one process. Each key is followed by one process, so those of all add up. */
type Simulation = Counts & Pick<WhatIfReport, 'atMs'>;

/** A shorter time makes a rate a matter of chance. */
const SHORTEST_MS = 1000;

function adviceOn(
  cacheClass: CacheClass,
  reports: readonly ClassReport[],
  { ttl, outdatedLimitOf, nowMs }: AdviceOptions,
): ClassAdvice {
  const all = reports.flatMap(({ atMs, counts }) => (counts === null ? [] : [{ ...counts, atMs }]));
  const reads = sum(all, readsOf);
  const outdatedLimit = outdatedLimitOf(cacheClass);
  const about = { class: cacheClass, reads, outdatedLimit, measured: measuredOf(reports, nowMs) };
  if (reads === 0) {
    return { ...about, since: null, current: null, curve: [], recommendation: none('No reads were seen yet.') };
  }
  const comparisons = reports.flatMap(({ refreshes }) =>
    refreshes.map(([bucket, seen, changed]): Comparisons => ({ sinceMs: middleOf(bucket), seen, changed })),
  );
  const basis: Basis = {
    outdatedAt: learnChanges(comparisons),
    readsPerSecond: sum(all, (one) => (1000 * readsOf(one)) / Math.max(SHORTEST_MS, one.atMs - one.sinceMs)),
    // Processes that came later count by their share of the reads.
    watchedMs: sum(all, (one) => readsOf(one) * (one.atMs - one.startedMs)) / reads,
  };
  const candidates = CANDIDATE_FRESH_MS.map((_, index) => simulatedPoint(all, index, basis));
  const { freshMs, staleMs } = ttl.of(cacheClass);
  const current =
    candidates.find((point) => point.freshMs === freshMs) ?? interpolated(candidates, { freshMs, staleMs }, basis);
  const curve = [...candidates.filter((point) => point !== current), current].toSorted((a, b) => a.freshMs - b.freshMs);
  const sinceMs = Math.min(...all.map((one) => one.sinceMs));
  const refreshes = sum(comparisons, ({ seen }) => seen);
  const recommendation = recommend({ reads, watchedMs: nowMs - sinceMs, refreshes, curve, current, outdatedLimit });
  return { ...about, since: new Date(sinceMs).toISOString(), current, curve, recommendation };
}

/** Each process has its own time: one that joined a minute ago adds its rate, not its share of an hour. */
function measuredOf(reports: readonly ClassReport[], nowMs: number): ClassAdvice['measured'] {
  const all = reports.flatMap(({ measured }) => measured ?? []);
  const reads = sum(all, (one) => one.reads);
  if (reads === 0) return null;
  return {
    hitRatio: sum(all, (one) => one.hits) / reads,
    storeCallsPerRead: sum(all, (one) => one.storeCalls) / reads,
    upstreamRps: sum(all, (one) => (1000 * one.storeCalls) / Math.max(SHORTEST_MS, nowMs - one.sinceMs)),
  };
}

interface Basis {
  readonly outdatedAt: OutdatedAt | null;
  readonly readsPerSecond: number;
  readonly watchedMs: number;
}

function readsOf({ exactReads, otherReads }: Counts): number {
  return exactReads + otherReads;
}

/** The prediction for the candidate of that index. */
function simulatedPoint(all: readonly Simulation[], index: number, basis: Basis): CurvePoint {
  const { outdatedAt, readsPerSecond, watchedMs } = basis;
  const freshMs = CANDIDATE_FRESH_MS[index] ?? 0;
  const calls = perRead(all, ({ points }) => points[index]?.calls ?? [0, 0, 0]);
  const waits = perRead(all, ({ points }) => points[index]?.waits ?? [0, 0, 0]);
  const ages = agesOf(all, index);
  return {
    freshMs,
    hitRatio: 1 - waits.ratio,
    hitRatioError: waits.error,
    storeCallsPerRead: calls.ratio,
    storeCallsPerReadError: calls.error,
    upstreamRps: calls.ratio * readsPerSecond,
    ageP90Ms: percentileOf(ages, 0.9),
    outdatedRatio: outdatedAt === null ? null : outdatedOf(ages, outdatedAt),
    extrapolated: watchedMs < freshMs,
  };
}

/**
 * How often something happens at a read: at exact ones, and at all those for which the sampled ones stand. If these stand
 * for too few reads, busy keys are missing from the sample; if for too many, it has more than its share of them. It rarely
 * happens at a read of a busy key, so the difference counts with its share among repeated reads (a regression estimate).
 * The number varies as in a Poisson process, and each sampled one stands for several.
 */
function perRead(
  all: readonly Simulation[],
  sumsOf: (one: Simulation) => Counts['points'][number]['calls'],
): { readonly ratio: number; readonly error: number } {
  const [exact, sampled, repeated] = [0, 1, 2].map((at) => sum(all, (one) => sumsOf(one)[at] ?? 0));
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

/** By bucket: the share of the answers that were that old. */
function agesOf(all: readonly Simulation[], index: number): readonly number[] {
  const ages = Array.from({ length: BUCKETS }, () => 0);
  for (const { exactReads, sampledWeight, points } of all) {
    const { firstAge, ages: shares } = points[index] ?? { firstAge: 0, ages: [] };
    const perShare = (exactReads + sampledWeight) / sum(shares, (share) => share);
    for (const [at, share] of shares.entries()) {
      const bucket = Math.min(BUCKETS - 1, firstAge + at);
      ages[bucket] = (ages[bucket] ?? 0) + perShare * share;
    }
  }
  const total = sum(ages, (count) => count);
  return total === 0 ? ages : ages.map((count) => count / total);
}

function percentileOf(ages: readonly number[], share: number): number {
  let below = 0;
  const found = ages.findIndex((count) => (below += count) >= share - Number.EPSILON);
  return Math.round(middleOf(Math.max(0, found)));
}

function outdatedOf(ages: readonly number[], outdatedAt: OutdatedAt): number {
  return Math.min(
    1,
    sum([...ages.entries()], ([bucket, share]) => (share === 0 ? 0 : share * outdatedAt(middleOf(bucket)))),
  );
}

/**
 * Between the candidates next to it: calls and waits fall with the logarithm of the TTL, ages and what they bring grow with
 * the TTL itself. Beyond the last candidate it is as that. With no TTL every read is a call to the store, and waits for it
 * unless old copies are served meanwhile.
 */
function interpolated(
  candidates: readonly CurvePoint[],
  { freshMs, staleMs }: { readonly freshMs: number; readonly staleMs: number },
  { readsPerSecond, watchedMs }: Basis,
): CurvePoint {
  const [first, last] = [candidates[0], candidates.at(-1)];
  if (first === undefined || last === undefined) throw new RangeError('there are no candidates');
  const above = candidates.find((point) => point.freshMs > freshMs) ?? { ...last, freshMs: freshMs + 1 };
  const waiting = { hitRatio: 0, ageP90Ms: 0, outdatedRatio: first.outdatedRatio === null ? null : 0 };
  const atNothing = { ...first, freshMs: 0, storeCallsPerRead: 1, ...(staleMs > 0 ? {} : waiting) };
  const below = candidates.findLast((point) => point.freshMs < freshMs) ?? atNothing;
  const share = (freshMs - below.freshMs) / (above.freshMs - below.freshMs);
  const ratio =
    below.freshMs === 0 ? share : Math.log(freshMs / below.freshMs) / Math.log(above.freshMs / below.freshMs);
  const storeCallsPerRead = mix(below.storeCallsPerRead, above.storeCallsPerRead, ratio);
  const isLearned = below.outdatedRatio !== null && above.outdatedRatio !== null;
  return {
    ...above,
    freshMs,
    hitRatio: mix(below.hitRatio, above.hitRatio, ratio),
    storeCallsPerRead,
    upstreamRps: storeCallsPerRead * readsPerSecond,
    ageP90Ms: Math.round(mix(below.ageP90Ms, above.ageP90Ms, share)),
    outdatedRatio: isLearned ? mix(below.outdatedRatio, above.outdatedRatio, share) : null,
    extrapolated: watchedMs < freshMs,
  };
}

function mix(from: number, to: number, share: number): number {
  return from + share * (to - from);
}

function sum<T>(all: readonly T[], amountOf: (one: T) => number): number {
  return all.reduce((total, one) => total + amountOf(one), 0);
}

interface Case {
  readonly reads: number;
  /** How long these reads took to come. */
  readonly watchedMs: number;
  /** How many of them the records' changes were learned from. Older ones count less, so it may be a fraction. */
  readonly refreshes: number;
  readonly curve: readonly CurvePoint[];
  readonly current: CurvePoint;
  readonly outdatedLimit: number;
}

/** Fewer reads show nothing. */
const MIN_READS = 1000;
/** How far above the lowest store load a shorter TTL may lie. */
const TOLERANCE = 1.1;

/**
 * The shortest TTL whose store load is within 10 % of the lowest among those that keep the share of outdated answers
 * within the limit and were watched for as long as they last. The TTL in force stays if it keeps the limit too and the
 * change would gain no more than the predictions may be wrong by, or if it was not watched for as long itself.
 */
function recommend(given: Case): Recommendation {
  const { reads, watchedMs: ms, refreshes, curve, current, outdatedLimit } = given;
  if (reads < MIN_READS) {
    return none(
      `Only ${whole(reads)} reads were seen in ${durationText(ms)}: too few for a recommendation, which needs ${whole(MIN_READS)}.`,
    );
  }
  const watched = curve.filter((point) => !point.extrapolated);
  if (watched.length === 0) return none(`Traffic was watched for only ${durationText(ms)}: no time can be judged yet.`);
  if (watched.every(({ outdatedRatio }) => outdatedRatio === null)) {
    return none(
      `Only ${Math.floor(refreshes)} of the ${MIN_COMPARISONS} refreshes were seen that it takes to tell how fast the records change.`,
    );
  }
  const isAllowed = ({ outdatedRatio }: CurvePoint): boolean =>
    outdatedRatio !== null && outdatedRatio <= outdatedLimit;
  const allowed = watched.filter(isAllowed);
  if (allowed.length === 0) {
    const [least] = watched.toSorted((a, b) => (a.outdatedRatio ?? 1) - (b.outdatedRatio ?? 1));
    const at = least === undefined ? '' : ` (${percent(least.outdatedRatio ?? 1)} at ${durationText(least.freshMs)})`;
    return none(`Every time would serve more outdated answers${at} than the limit of ${percent(outdatedLimit)}.`);
  }
  if (current.extrapolated && isAllowed(current)) {
    return none(
      `${durationText(current.freshMs)}, the time in force, is longer than traffic was watched (${durationText(ms)}).`,
    );
  }
  const lowest = Math.min(...allowed.map(({ storeCallsPerRead }) => storeCallsPerRead));
  const best = allowed.find(({ storeCallsPerRead }) => storeCallsPerRead <= TOLERANCE * lowest) ?? current;
  if (best !== current && isAllowed(current) && !isWorthIt(best, current, refreshes)) {
    return {
      freshMs: current.freshMs,
      why: `${durationText(current.freshMs)}, the time in force, is as good as ${durationText(best.freshMs)} as far as can be told: the difference is less than the predictions may be wrong by.`,
    };
  }
  return { freshMs: best.freshMs, why: reasonFor(best, given) };
}

/** Whether a change gains more, in store load or in fresh answers, than chance may explain. */
function isWorthIt(best: CurvePoint, current: CurvePoint, refreshes: number): boolean {
  const [before, after] = [current.outdatedRatio ?? 0, best.outdatedRatio ?? 0];
  const doubt = 2 * Math.sqrt(Math.max(before, after) / Math.max(1, refreshes));
  const error = Math.hypot(best.storeCallsPerReadError, current.storeCallsPerReadError);
  return current.storeCallsPerRead - best.storeCallsPerRead > error || before - after > doubt;
}

function none(why: string): Recommendation {
  return { freshMs: null, why };
}

function reasonFor(best: CurvePoint, { current, outdatedLimit }: Case): string {
  if (best.freshMs === current.freshMs) {
    return `${durationText(best.freshMs)}, the time in force, is the shortest that comes within 10 % of the lowest store load (${rate(best.upstreamRps)} store calls a second) that the limit of ${percent(outdatedLimit)} outdated answers allows.`;
  }
  const instead = current.outdatedRatio === null ? '' : ` instead of ${percent(current.outdatedRatio)}`;
  return (
    `${durationText(best.freshMs)} instead of ${durationText(current.freshMs)} would take the hit ratio from ${percent(current.hitRatio)} to ` +
    `${percent(best.hitRatio)} and the store from ${rate(current.upstreamRps)} to ${rate(best.upstreamRps)} calls a second, ` +
    `with ${percent(best.outdatedRatio ?? 0)} of the answers outdated${instead} (limit ${percent(outdatedLimit)}).`
  );
}

function percent(ratio: number): string {
  return `${Number((100 * ratio).toFixed(1))} %`;
}

/** Two significant digits, or all before the point. */
function rate(perSecond: number): string {
  return perSecond >= 100 ? whole(perSecond) : String(Number(perSecond.toPrecision(2)));
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en');
}
