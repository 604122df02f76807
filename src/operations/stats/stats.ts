/** The last hour, for operators: reads and calls to the store by class, the costliest keys, the use of API keys. */
import { SAMPLE } from '../../cache/evicted.ts';
import { LastMisses } from '../../cache/explain.ts';
import { CACHE_CLASSES, type CacheClass } from '../../cache/ttl-policy.ts';
import type { Clock } from '../../time/clock.ts';
import type { CacheListener, MissReason, ReadReport, StoreCallReport } from '../../cache/events.ts';
import { type AnswerOf, iso, type ROUTES } from '../api.ts';
import type { Listed } from '../../upstream/resources.ts';
import { bucketOf, Counts, percentiles, writtenCountsSchema } from './counts.ts';
import { HOUR_MS, type TimeBucket, TimeBuckets, type BucketSharing, type Whose } from './time-buckets.ts';
import { TopLoads, topOf, writtenLoadsSchema } from './top-loads.ts';

interface ClassCounts extends Omit<AnswerOf<typeof ROUTES.cacheStats>['classes'][number], 'memory'> {
  readonly class: CacheClass;
}
type History = AnswerOf<typeof ROUTES.history>;
type HistoryPoint = History['points'][number];
type Top = AnswerOf<typeof ROUTES.cacheTop>;
type KeyUse = AnswerOf<typeof ROUTES.keyUse>['keys'][number];

/** Counts of at most an hour, and of whom they are. */
export interface Counted<T> {
  readonly whose: Whose;
  /** When the first step with counts began. */
  readonly since: string;
  readonly value: T;
}

/** The last hour, or the last day, which is told from the steps of the hour as they end. */
export const HISTORY = {
  hour: { stepMs: 30_000, spanMs: HOUR_MS },
  day: { stepMs: 600_000, spanMs: 24 * HOUR_MS },
} as const;
export type Span = keyof typeof HISTORY;
const STEP_MS = 300_000;
/** So many records that are left out are named, per process and step. */
const NAMED_RECORDS = 20;
/** In the order in which they are shown. */
const MISS_REASONS = [
  'never-seen',
  'expired',
  'evicted',
  'purged',
  'changed',
  'not-cacheable',
] as const satisfies MissReason[];

function counting(name: string, stepMs: number, spanMs?: number) {
  return {
    name,
    stepMs,
    ...(spanMs === undefined ? {} : { spanMs }),
    begin: () => new Counts(),
    schema: writtenCountsSchema,
  };
}

/** The names of single records, which are kept for an hour only. */
const LEFT_OUT = 'left out ';

/** Calls to the store that so much more memory per process would have spared, by steps of 8 MB, 16 MB, 32 MB, ... */
const MORE_MEMORY = 'more memory ';
const FIRST_MEMORY_BYTES = 8_000_000;

function memoryStepOf(moreBytes: number): number {
  return Math.max(0, Math.ceil(Math.log2(moreBytes / FIRST_MEMORY_BYTES)));
}

/** For the use of API keys, which processes in front of several stores share. */
const KEY_USE = counting('key-use', STEP_MS);

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
    onRefresh: ({ class: cacheClass, changed, isAnnounced }) => {
      const counts = this.#classes.now();
      counts.add(`${cacheClass} refreshes`);
      if (changed === 0) return;
      counts.add(`${cacheClass} changed`);
      if (!isAnnounced) counts.add(`${cacheClass} unannounced`);
    },
    onEvicted: ({ moreBytes }) => this.#classes.now().add(`${MORE_MEMORY}${memoryStepOf(moreBytes)}`, SAMPLE),
  };
  readonly #clock: Clock;
  readonly #history;
  readonly #day;
  readonly #classes;
  readonly #loads;
  readonly #keyUse;

  /** `sharing` is null for a gateway without Redis. */
  constructor(clock: Clock, sharing: StatsSharing | null) {
    const store = sharing?.store ?? '';
    const loads = { name: `${store}-loads`, stepMs: STEP_MS, begin: () => new TopLoads(), schema: writtenLoadsSchema };
    this.#clock = clock;
    const { hour, day } = HISTORY;
    this.#day = new TimeBuckets(counting(`${store}-day`, day.stepMs, day.spanMs), clock, sharing);
    const history = counting(`${store}-history`, hour.stepMs, hour.spanMs);
    const onEnd = (atMs: number, counts: Counts): void => this.#addToDay(atMs, counts);
    this.#history = new TimeBuckets({ ...history, onEnd }, clock, sharing);
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
      const name = `${LEFT_OUT}${path} ${id ?? ''}`;
      if (step.of(name) > 0 || step.under(LEFT_OUT).length < NAMED_RECORDS) step.add(name);
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
    const memory = (await this.#classes.read()).steps;
    const seconds = Math.max(1, (this.#clock.nowMs() - (memory[0]?.atMs ?? 0)) / 1000);
    const moreMemory = moreMemoryOf(new Counts(memory.flatMap(({ counts }) => counts)), seconds);
    return counted(await this.#loads.read(), (all) => ({ ...topOf(all, limit), moreMemory }));
  }

  /** Points oldest first, without gaps; the last one is under way. Records that are left out most first. */
  async history(span: Span): Promise<{ readonly whose: Whose } & Pick<History, 'since' | 'points' | 'leftOut'>> {
    const { whose, steps } = await (span === 'hour' ? this.#history : this.#day).read();
    const sums = new Counts(steps.flatMap(({ counts }) => counts));
    return { whose, since: iso(steps[0]?.atMs ?? 0), points: steps.map(historyPoint), leftOut: leftOutOf(sums) };
  }

  async keyUse(): Promise<Counted<readonly KeyUse[]>> {
    return counted(await this.#keyUse.read(), keyUseOf);
  }

  /** The counts of this process, as JSON, for another worker. */
  own(): unknown {
    const all = [this.#history, this.#day, this.#classes, this.#loads, this.#keyUse];
    return JSON.parse(JSON.stringify(Object.fromEntries(all.map((buckets) => [buckets.name, buckets.own()]))));
  }

  /** Resolves once what other processes are to know is in Redis, or cannot be written. */
  async close(): Promise<void> {
    // The hour first: what ends there goes into the day.
    await Promise.all(
      [this.#history, this.#day, this.#classes, this.#loads, this.#keyUse].map((steps) => steps.close()),
    );
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
    if (outcome === 'stale-while-revalidate' || isOnError(outcome)) step.add('stale');
    if (isOnError(outcome)) step.add('stale on error');
    if (ageMs !== null) step.add(`age ${bucketOf(ageMs)}`);
    step.add(`latency ${latency}`);
  }

  #addToDay(atMs: number, counts: Counts): void {
    const day = this.#day.of(atMs);
    for (const [name, count] of Object.entries(counts.toJSON())) if (!name.startsWith(LEFT_OUT)) day.add(name, count);
  }

  #countStoreCall(call: StoreCallReport): void {
    this.#classes.now().add(`${call.class} calls`);
    if (call.isEarly === true) this.#classes.now().add(`${call.class} early`);
    this.#history.now().add(`${call.class} calls`);
    this.#loads.now().add(call);
  }
}

/** Whether a copy was served because the store failed or was not asked. */
function isOnError(outcome: ReadReport['outcome']): boolean {
  return outcome === 'stale-if-error' || outcome === 'changed';
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
    changed: of('outcome changed'),
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
    earlyRenewals: of('early'),
    storeCallsPerRead: perRead(of('calls')),
    refreshes: of('refreshes'),
    changedRatio: of('refreshes') === 0 ? null : of('changed') / of('refreshes'),
    unannouncedRatio: of('refreshes') === 0 ? null : of('unannounced') / of('refreshes'),
    ageMs: percentiles(sums.under(`${cacheClass} age `), 1),
    latencyMs: percentiles(sums.under(`${cacheClass} latency `), 1000),
  };
}

/** Only steps that spare a twentieth more than the one before. */
function moreMemoryOf(sums: Counts, seconds: number): Top['moreMemory'] {
  const counts = new Map(sums.under(MORE_MEMORY).map(([step, count]) => [Number(step), count]));
  const savings: Top['moreMemory']['savings'][number][] = [];
  let spared = 0;
  for (const [step, count] of [...counts].toSorted(([a], [b]) => a - b)) {
    spared += count;
    const storeRps = spared / seconds;
    if (storeRps < 1.05 * (savings.at(-1)?.storeRps ?? 0)) continue;
    savings.push({ bytes: FIRST_MEMORY_BYTES * 2 ** step, storeRps, seen: spared / SAMPLE });
  }
  const misses = sum(CACHE_CLASSES.flatMap((each) => sums.under(`${each} miss `).map(([, count]) => count)));
  const evicted = sum(CACHE_CLASSES.map((each) => sums.of(`${each} miss evicted`)));
  return { evictedRatio: misses === 0 ? null : evicted / misses, savings };
}

const sum = (counts: readonly number[]): number => counts.reduce((all, count) => all + count, 0);

function historyPoint({ atMs, counts }: TimeBucket<Record<string, number>>): HistoryPoint {
  const sums = new Counts(counts);
  const latency = percentiles(sums.under('latency '), 1000);
  return {
    at: iso(atMs),
    p50Ms: latency?.p50 ?? null,
    p99Ms: latency?.p99 ?? null,
    ageP90Ms: percentiles(sums.under('age '), 1)?.p90 ?? null,
    stale: sums.of('stale'),
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
  const named = sums.under(LEFT_OUT).map(([name, times]) => {
    const [path = '', id = ''] = name.split(' ');
    return { id: id === '' ? null : id, path, times };
  });
  return named.toSorted((a, b) => b.times - a.times).slice(0, NAMED_RECORDS);
}

/** The keys that all processes have counted requests of. */
function keyUseOf(all: readonly Record<string, number>[]): readonly KeyUse[] {
  const sums = new Counts(all);
  return sums
    .under('requests ')
    .map(([keyId, requests]) => ({ keyId, requests, refused: sums.of(`refused ${keyId}`) }));
}
