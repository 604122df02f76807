/** The last hour, for operators: reads and calls to the store by class, the costliest keys, the use of API keys. */
import { LastMisses } from '../../cache/explain.ts';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import type { Clock } from '../../time/clock.ts';
import type { CacheListener, MissReason, ReadReport, StoreCallReport } from '../../cache/events.ts';
import { type AnswerOf, iso, type ROUTES } from '../api.ts';
import type { Listed } from '../../upstream/resources.ts';
import { bucketOf, Counts, percentiles, writtenCountsSchema } from './counts.ts';
import { type TimeBucket, TimeBuckets, type BucketSharing, type Whose } from './time-buckets.ts';
import { TopLoads, topOf, writtenLoadsSchema } from './top-loads.ts';

interface ClassCounts extends Omit<AnswerOf<typeof ROUTES.cacheStats>['classes'][number], 'memory'> {
  readonly class: CacheClass;
}
type History = AnswerOf<typeof ROUTES.history>;
type HistoryPoint = History['points'][number];
type KeyUse = AnswerOf<typeof ROUTES.keyUse>['keys'][number];

/** Counts of at most an hour, and of whom they are. */
export interface Counted<T> {
  readonly whose: Whose;
  /** When the first step with counts began. */
  readonly since: string;
  readonly value: T;
}

export const HISTORY_STEP_MS = 30_000;
const STEP_MS = 300_000;
/** So many records that are left out are named, per process and step. */
const NAMED_RECORDS = 20;
/** In the order in which they are shown. */
const MISS_REASONS = ['never-seen', 'expired', 'evicted', 'purged', 'not-cacheable'] as const satisfies MissReason[];

function counting(name: string, stepMs: number) {
  return { name, stepMs, begin: () => new Counts(), schema: writtenCountsSchema };
}

/** For the use of API keys, which processes in front of several stores share. */
export const KEY_USE = counting('key-use', STEP_MS);

export interface StatsSharing extends BucketSharing {
  /** Names the store: another store has other counts. */
  readonly store: string;
}

export class Stats {
  readonly lastMisses = new LastMisses();
  /** Never throws and never waits. */
  readonly listener: CacheListener = {
    onRead: (read) => this.#countRead(read),
    onStoreCall: (call) => this.#countStoreCall(call),
  };
  readonly #clock: Clock;
  readonly #history;
  readonly #classes;
  readonly #loads;
  readonly #keyUse;

  /** `sharing` is null for a gateway without Redis. */
  constructor(clock: Clock, sharing: StatsSharing | null) {
    const store = sharing?.store ?? '';
    const loads = { name: `${store}-loads`, stepMs: STEP_MS, begin: () => new TopLoads(), schema: writtenLoadsSchema };
    this.#clock = clock;
    this.#history = new TimeBuckets(counting(`${store}-history`, HISTORY_STEP_MS), clock, sharing);
    this.#classes = new TimeBuckets(counting(`${store}-classes`, STEP_MS), clock, sharing);
    this.#loads = new TimeBuckets(loads, clock, sharing);
    this.#keyUse = new TimeBuckets(KEY_USE, clock, sharing);
  }

  /** Counts a request to the public API; those for its documents are left out. */
  countRequest(request: { readonly keyId: string | null; readonly status: number; readonly surface: string }): void {
    const { keyId, status, surface } = request;
    if (surface === 'other') return;
    this.#history.now().add(`status ${status}`);
    if (keyId === null) return;
    const counts = this.#keyUse.now();
    counts.add(`requests ${keyId}`);
    if (status === 429) counts.add(`refused ${keyId}`);
  }

  /** Counts the records of a list that the store sent. */
  countListed({ records, leftOut }: Listed): void {
    const step = this.#history.now();
    step.add('listed', records);
    for (const { id, path } of leftOut) {
      step.add('left out');
      const name = `left out ${path} ${id ?? ''}`;
      if (step.of(name) > 0 || step.under('left out ').length < NAMED_RECORDS) step.add(name);
    }
  }

  /** One row per class, in the order of the classes. Never rejects; the other views neither. */
  async classes(): Promise<Counted<readonly ClassCounts[]>> {
    return counted(await this.#classes.read(), (all) => {
      const sums = new Counts(all);
      return CACHE_CLASSES.map((cacheClass) => classCounts(sums, cacheClass));
    });
  }

  async top(limit: number) {
    return counted(await this.#loads.read(), (all) => topOf(all, limit));
  }

  /** Points oldest first, without gaps; the last one is under way. Records that are left out most first. */
  async history(): Promise<{ readonly whose: Whose } & Pick<History, 'points' | 'leftOut'>> {
    const { whose, steps } = await this.#history.read();
    const sums = new Counts(steps.flatMap(({ counts }) => counts));
    return { whose, points: steps.map(historyPoint), leftOut: leftOutOf(sums) };
  }

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
  { whose, steps }: { readonly whose: Whose; readonly steps: readonly TimeBucket<W>[] },
  sum: (all: readonly W[]) => T,
): Counted<T> {
  return { whose, since: iso(steps[0]?.atMs ?? 0), value: sum(steps.flatMap(({ counts }) => counts)) };
}

function classCounts(sums: Counts, cacheClass: CacheClass): ClassCounts {
  const of = (name: string): number => sums.of(`${cacheClass} ${name}`);
  const outcomes = {
    hit: of('outcome hit'),
    'stale-while-revalidate': of('outcome stale-while-revalidate'),
    'stale-if-error': of('outcome stale-if-error'),
    collapsed: of('outcome collapsed'),
    miss: of('outcome miss'),
    failed: of('outcome failed'),
  };
  const reads = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  const perRead = (count: number): number | null => (reads === 0 ? null : count / reads);
  return {
    class: cacheClass,
    reads,
    outcomes,
    tiers: { memory: of('tier memory'), redis: of('tier redis') },
    misses: Object.fromEntries(MISS_REASONS.map((reason) => [reason, of(`miss ${reason}`)])),
    hitRatio: perRead(outcomes.hit + outcomes['stale-while-revalidate']),
    storeCalls: of('calls'),
    storeCallsPerRead: perRead(of('calls')),
    ageMs: percentiles(sums.under(`${cacheClass} age `), 1),
    latencyMs: percentiles(sums.under(`${cacheClass} latency `), 1000),
  };
}

function historyPoint({ atMs, counts }: TimeBucket<Record<string, number>>): HistoryPoint {
  const sums = new Counts(counts);
  return {
    at: iso(atMs),
    p99Ms: percentiles(sums.under('latency '), 1000)?.p99 ?? null,
    staleOnError: sums.of('stale on error'),
    records: { listed: sums.of('listed'), leftOut: sums.of('left out') },
    statuses: Object.fromEntries(sums.under('status ')),
    classes: Object.fromEntries(
      CACHE_CLASSES.map((cacheClass) => {
        const of = (name: string): number => sums.of(`${cacheClass} ${name}`);
        return [cacheClass, { reads: of('reads'), hits: of('hits'), storeCalls: of('calls'), failed: of('failed') }];
      }),
    ),
  };
}

function leftOutOf(sums: Counts): History['leftOut'] {
  const named = sums.under('left out ').map(([name, times]) => {
    const [path = '', id = ''] = name.split(' ');
    return { id: id === '' ? null : id, path, times };
  });
  return named.toSorted((a, b) => b.times - a.times).slice(0, NAMED_RECORDS);
}

/** The keys that all processes have counted requests of. */
export function keyUseOf(all: readonly Record<string, number>[]): readonly KeyUse[] {
  const sums = new Counts(all);
  return sums
    .under('requests ')
    .map(([keyId, requests]) => ({ keyId, requests, refused: sums.of(`refused ${keyId}`) }));
}
