/** What operators are shown of the last hour: reads and calls to the store by class, the costliest keys, the use of API keys. */
import { LastMisses } from '../../cache/explain.ts';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import type { Clock } from '../../clock.ts';
import type { Listener, MissReason, ReadReport, StoreCallReport } from '../../telemetry/events.ts';
import { bucketOf, Counts, type Percentiles, percentiles, Sums, writtenCountsSchema } from './counts.ts';
import { type Step, Steps, type StepsOptions, type StepsSharing, type Whose } from './steps.ts';
import { TopLoads, topOf, type TopView, writtenLoadsSchema } from './top-loads.ts';

/** The names are those of the metrics' labels. */
export interface ClassCounts {
  readonly class: CacheClass;
  readonly reads: number;
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

/** What became of the requests of one API key. */
export interface KeyUse {
  readonly keyId: string;
  readonly requests: number;
  /** Those of them that were answered 429. */
  readonly refused: number;
}

/** Counts of at most an hour, and of whom they are. */
export interface Counted<T> {
  readonly whose: Whose;
  /** When the first step with counts began, Unix milliseconds. */
  readonly sinceMs: number;
  readonly value: T;
}

/** A step of the history, over all classes and by class. */
export interface HistoryPoint {
  readonly atMs: number;
  /** 99 of 100 reads were answered within this time, give or take 7 %; null without reads. */
  readonly p99Ms: number | null;
  /** Copies that were served because the store failed. */
  readonly staleOnError: number;
  /** Requests to the public API by the status of the answer. */
  readonly statuses: Readonly<Record<string, number>>;
  /** All classes, also those without activity. */
  readonly classes: Readonly<Record<string, Activity>>;
}

/** The activity of one class. */
interface Activity {
  readonly reads: number;
  /** Served at once from a copy, without waiting for the store. */
  readonly hits: number;
  /** Calls to the store, whatever came of them. */
  readonly storeCalls: number;
  /** Reads for which there was nothing to serve; they are among the reads. */
  readonly failed: number;
}

export const HISTORY_STEP_MS = 30_000;
const STEP_MS = 300_000;

type CountsByStep = StepsOptions<Counts, Record<string, number>>;

function counting(name: string, stepMs: number): CountsByStep {
  return { name, stepMs, begin: () => new Counts(), schema: writtenCountsSchema };
}

/** For the use of API keys, which processes in front of several stores share. */
export const KEY_USE = counting('key-use', STEP_MS);

export interface StatsSharing extends StepsSharing {
  /** Names the store: another store has other counts. */
  readonly store: string;
}

export class Stats {
  readonly lastMisses = new LastMisses();
  /** Never throws and never waits. */
  readonly listener: Listener;
  readonly #clock: Clock;
  readonly #history;
  readonly #classes;
  readonly #loads;
  readonly #keyUse;

  /** `sharing` is null for a gateway without Redis. */
  constructor(clock: Clock, sharing: StatsSharing | null) {
    const store = sharing?.store ?? '';
    this.#clock = clock;
    this.#history = new Steps(counting(`${store}-history`, HISTORY_STEP_MS), clock, sharing);
    this.#classes = new Steps(counting(`${store}-classes`, STEP_MS), clock, sharing);
    this.#loads = new Steps(
      { name: `${store}-loads`, stepMs: STEP_MS, begin: () => new TopLoads(), schema: writtenLoadsSchema },
      clock,
      sharing,
    );
    this.#keyUse = new Steps(KEY_USE, clock, sharing);
    this.listener = {
      onRead: (read) => this.#countRead(read),
      onStoreCall: (call) => this.#countStoreCall(call),
    };
  }

  /** Counts a request to the public API; those for its documents are left out. */
  countRequest({
    keyId,
    status,
    surface,
  }: {
    readonly keyId: string | null;
    readonly status: number;
    readonly surface: string;
  }): void {
    if (surface === 'other') return;
    this.#history.now().add(`status ${status}`);
    if (keyId === null) return;
    const counts = this.#keyUse.now();
    counts.add(`requests ${keyId}`);
    if (status === 429) counts.add(`refused ${keyId}`);
  }

  /** One row per class, in the order of the classes. Never rejects; the other views neither. */
  async classes(): Promise<Counted<readonly ClassCounts[]>> {
    return counted(await this.#classes.read(), (all) => {
      const sums = new Sums(all);
      return CACHE_CLASSES.map((cacheClass) => classCounts(sums, cacheClass));
    });
  }

  async top(limit: number): Promise<Counted<TopView>> {
    return counted(await this.#loads.read(), (all) => topOf(all, limit));
  }

  /** Oldest first, without gaps; the last one is under way. */
  async history(): Promise<{ readonly whose: Whose; readonly points: readonly HistoryPoint[] }> {
    const { whose, steps } = await this.#history.read();
    return { whose, points: steps.map(historyPoint) };
  }

  /** Keys that sent requests. */
  async keyUse(): Promise<Counted<readonly KeyUse[]>> {
    return counted(await this.#keyUse.read(), keyUseOf);
  }

  /** Resolves once what other processes are to know is in Redis, or cannot be written. */
  async close(): Promise<void> {
    await Promise.all([this.#history, this.#classes, this.#loads, this.#keyUse].map((steps) => steps.close()));
  }

  #countRead(read: ReadReport): void {
    const { class: cacheClass, outcome, tier, missReason, ageMs, durationMs } = read;
    this.lastMisses.note(read, this.#clock.nowMs());
    const latency = bucketOf(durationMs * 1000);
    const counts = this.#classes.now();
    counts.add(`${cacheClass} outcome ${outcome}`);
    if (tier !== null) counts.add(`${cacheClass} tier ${tier}`);
    if (missReason !== null) counts.add(`${cacheClass} miss ${missReason}`);
    if (ageMs !== null) counts.add(`${cacheClass} age ${bucketOf(ageMs)}`);
    counts.add(`${cacheClass} latency ${latency}`);
    const step = this.#history.now();
    step.add(`${cacheClass} reads`);
    if (outcome === 'hit' || outcome === 'stale-while-revalidate') step.add(`${cacheClass} hits`);
    if (outcome === 'failed') step.add(`${cacheClass} failed`);
    if (outcome === 'stale-if-error') step.add('stale on error');
    step.add(`latency ${latency}`);
  }

  #countStoreCall(call: StoreCallReport): void {
    this.#classes.now().add(`${call.class} calls`);
    this.#history.now().add(`${call.class} calls`);
    this.#loads.now().add(call);
  }
}

function counted<W, T>(
  { whose, steps }: { readonly whose: Whose; readonly steps: readonly Step<W>[] },
  sum: (all: readonly W[]) => T,
): Counted<T> {
  return { whose, sinceMs: steps[0]?.atMs ?? 0, value: sum(steps.flatMap(({ counts }) => counts)) };
}

function classCounts(sums: Sums, cacheClass: CacheClass): ClassCounts {
  const of = (name: string): number => sums.of(`${cacheClass} ${name}`);
  const outcomes = {
    hit: of('outcome hit'),
    'stale-while-revalidate': of('outcome stale-while-revalidate'),
    'stale-if-error': of('outcome stale-if-error'),
    collapsed: of('outcome collapsed'),
    miss: of('outcome miss'),
    failed: of('outcome failed'),
  };
  return {
    class: cacheClass,
    reads: Object.values(outcomes).reduce((sum, count) => sum + count, 0),
    outcomes,
    tiers: { memory: of('tier memory'), redis: of('tier redis') },
    misses: {
      'never-seen': of('miss never-seen'),
      expired: of('miss expired'),
      evicted: of('miss evicted'),
      purged: of('miss purged'),
      'not-cacheable': of('miss not-cacheable'),
    },
    storeCalls: of('calls'),
    ageMs: percentiles(sums.under(`${cacheClass} age `), 1),
    latencyMs: percentiles(sums.under(`${cacheClass} latency `), 1000),
  };
}

function historyPoint({ atMs, counts }: Step<Record<string, number>>): HistoryPoint {
  const sums = new Sums(counts);
  return {
    atMs,
    p99Ms: percentiles(sums.under('latency '), 1000)?.p99 ?? null,
    staleOnError: sums.of('stale on error'),
    statuses: Object.fromEntries(sums.under('status ')),
    classes: Object.fromEntries(CACHE_CLASSES.map((cacheClass) => [cacheClass, activity(sums, cacheClass)])),
  };
}

function activity(sums: Sums, cacheClass: CacheClass): Activity {
  return {
    reads: sums.of(`${cacheClass} reads`),
    hits: sums.of(`${cacheClass} hits`),
    storeCalls: sums.of(`${cacheClass} calls`),
    failed: sums.of(`${cacheClass} failed`),
  };
}

/** The keys that all processes have counted requests of. */
export function keyUseOf(all: readonly Record<string, number>[]): readonly KeyUse[] {
  const sums = new Sums(all);
  return sums
    .under('requests ')
    .map(([keyId, requests]) => ({ keyId, requests, refused: sums.of(`refused ${keyId}`) }));
}
