/** Counts reads and store calls of this process: by class since its start, by half minute for an hour, by cost to the store. */
import { createHistogram, type RecordableHistogram } from 'node:perf_hooks';
import { LastMisses } from '../../cache/last-misses.ts';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import type { Clock } from '../../clock.ts';
import type { Listener, MissReason, ReadReport, StoreCallReport } from '../../telemetry/events.ts';
import { STEP_MS, STEPS, stepOf } from './history.ts';
import { TopLoads } from './top-loads.ts';

/** Half, nine tenths and all but a hundredth of the reads don't exceed these. Milliseconds, within 7 %. */
interface Percentiles {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
}

/** The names are those of the metrics' labels. */
export interface ClassCounts {
  /** Reads by how they were answered; together they are all reads. `failed`: there was nothing to serve. */
  readonly outcomes: Readonly<Record<ReadReport['outcome'], number>>;
  /** Those of them that were served from a copy, by where it was found. */
  readonly tiers: Readonly<Record<NonNullable<ReadReport['tier']>, number>>;
  /** Those of them that the cache could not answer at once, by why. */
  readonly misses: Readonly<Record<MissReason, number>>;
  /** Calls to the store, whatever came of them. */
  readonly storeCalls: number;
  /** How old the served answers were; null if none was served. */
  readonly ageMs: Percentiles | null;
  /** How long reads took in the cache, waiting for the store included; null if there were none. */
  readonly latencyMs: Percentiles | null;
}

/** Half a minute. */
interface PulsePoint {
  /** When it began, Unix milliseconds. */
  readonly atMs: number;
  readonly reads: number;
  /** 99 of 100 reads were answered within this time, give or take 7 %; null without reads. */
  readonly p99Ms: number | null;
  /** Copies that were served because the store failed. */
  readonly staleOnError: number;
}

export class CacheStats {
  /** When the counts began, Unix milliseconds. */
  readonly sinceMs: number;
  readonly listener: Listener;
  readonly top: TopLoads;
  readonly lastMisses = new LastMisses();
  readonly #clock: Clock;
  readonly #byClass = new Map(CACHE_CLASSES.map((cacheClass) => [cacheClass, noCounts()]));
  /** Past steps with reads, oldest first, without their histograms. */
  readonly #past: PulsePoint[] = [];
  #step: Step;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.sinceMs = clock.nowMs();
    this.#step = newStep(stepOf(this.sinceMs));
    this.top = new TopLoads(clock);
    this.listener = {
      onRead: (read) => this.#countRead(read),
      onStoreCall: (call) => this.#countStoreCall(call),
    };
  }

  /** As the counts stand now. */
  of(cacheClass: CacheClass): ClassCounts {
    const { agesMs, latenciesMicros, ...counts } = this.#countsOf(cacheClass);
    return { ...structuredClone(counts), ageMs: percentiles(agesMs, 1), latencyMs: percentiles(latenciesMicros, 1000) };
  }

  /** The last hour, oldest first; the last one is the step under way, and steps without reads are left out. */
  pulse(): readonly PulsePoint[] {
    this.#advance();
    return [...this.#past, pointOf(this.#step)];
  }

  #countRead(read: ReadReport): void {
    const { class: cacheClass, outcome, tier, missReason, ageMs, durationMs } = read;
    this.lastMisses.note(read, this.#clock.nowMs());
    const counts = this.#countsOf(cacheClass);
    counts.outcomes[outcome] += 1;
    if (tier !== null) counts.tiers[tier] += 1;
    if (missReason !== null) counts.misses[missReason] += 1;
    if (ageMs !== null) record(counts.agesMs, ageMs);
    record(counts.latenciesMicros, durationMs * 1000);
    this.#advance();
    record(this.#step.latenciesMicros, durationMs * 1000);
    this.#step.reads += 1;
    if (outcome === 'stale-if-error') this.#step.staleOnError += 1;
  }

  #countStoreCall(call: StoreCallReport): void {
    this.#countsOf(call.class).storeCalls += 1;
    this.top.add(call);
  }

  #countsOf(cacheClass: CacheClass): Counts {
    const counts = this.#byClass.get(cacheClass);
    if (counts === undefined) throw new Error(`the class ${cacheClass} is not one of CACHE_CLASSES`);
    return counts;
  }

  #advance(): void {
    const atMs = stepOf(this.#clock.nowMs());
    if (atMs === this.#step.atMs) return;
    if (this.#step.reads > 0) this.#past.push(pointOf(this.#step));
    while ((this.#past[0]?.atMs ?? atMs) < atMs - STEPS * STEP_MS) this.#past.shift();
    this.#step = newStep(atMs);
  }
}

type Counts = ReturnType<typeof noCounts>;

function noCounts() {
  return {
    outcomes: { hit: 0, 'stale-while-revalidate': 0, 'stale-if-error': 0, collapsed: 0, miss: 0, failed: 0 },
    tiers: { memory: 0, redis: 0 },
    misses: { 'never-seen': 0, expired: 0, evicted: 0, purged: 0, 'not-cacheable': 0 },
    storeCalls: 0,
    agesMs: newHistogram(),
    latenciesMicros: newHistogram(),
  };
}

type Step = ReturnType<typeof newStep>;

function newStep(atMs: number) {
  return { atMs, latenciesMicros: newHistogram(), reads: 0, staleOnError: 0 };
}

function pointOf({ atMs, latenciesMicros, reads, staleOnError }: Step): PulsePoint {
  return { atMs, reads, p99Ms: percentiles(latenciesMicros, 1000)?.p99 ?? null, staleOnError };
}

const MAX_RECORDED = 2 ** 32;

/** Takes a few kilobytes. One significant digit, so that a percentile is within 7 % of the value. */
function newHistogram(): RecordableHistogram {
  return createHistogram({ lowest: 1, highest: MAX_RECORDED, figures: 1 });
}

/** A histogram takes integers from 1 on, so that each value is recorded one higher. */
function record(histogram: RecordableHistogram, value: number): void {
  histogram.record(Math.min(MAX_RECORDED, Math.max(0, Math.round(value)) + 1));
}

/** `unit`: how much of the recorded quantity a millisecond is. */
function percentiles(histogram: RecordableHistogram, unit: number): Percentiles | null {
  if (histogram.count === 0) return null;
  const at = (percent: number): number => (histogram.percentile(percent) - 1) / unit;
  return { p50: at(50), p90: at(90), p99: at(99) };
}
