/** What was read of each class and asked of the store over the last hour, in steps of half a minute. */
import type { Listener } from '../telemetry/events.ts';
import { CACHE_CLASSES, type CacheClass } from '../cache/ttl-policy.ts';
import type { Clock } from '../clock.ts';

export const STEP_MS = 30_000;
const STEPS = 120;

/** Of one class in one step. */
export interface Activity {
  readonly reads: number;
  /** Served at once from a copy, fresh or not. */
  readonly hits: number;
  /** Calls to the store, whatever came of them. */
  readonly storeCalls: number;
  /** Reads for which there was nothing to serve; they are among the reads. */
  readonly failed: number;
}

export type ActivityByClass = ReadonlyMap<CacheClass, Activity>;

export interface HistoryPoint {
  /** When the step began, Unix milliseconds. */
  readonly atMs: number;
  /** Classes that were not in use have none. */
  readonly classes: ActivityByClass;
}

export interface HistoryView {
  /** Whose: of all processes in front of the store, or of this one alone, where there are no others or none can be asked. */
  readonly scope: 'fleet' | 'process';
  /** Oldest first, without gaps, since the first one in which anything was. The last one is under way. */
  readonly points: readonly HistoryPoint[];
}

export interface History {
  /** To be told of all that the cache of this process does. Never throws and never waits. */
  readonly hooks: Listener;
  /** Never rejects. */
  view(): Promise<HistoryView>;
  /** Resolves once what others are to know is where they find it, or that can't be. */
  close(): Promise<void>;
}

/** What happened in this process. */
export class ActivityLog {
  readonly hooks: Listener;
  readonly #clock: Clock;
  /** By when the step began, oldest first. */
  readonly #steps = new Map<number, Map<CacheClass, Counts>>();
  #changed = new Set<number>();

  constructor(clock: Clock) {
    this.#clock = clock;
    this.hooks = {
      onRead: ({ class: cacheClass, outcome }) => {
        const counts = this.#countsOf(cacheClass);
        counts.reads += 1;
        if (outcome === 'hit' || outcome === 'stale-while-revalidate') counts.hits += 1;
        if (outcome === 'failed') counts.failed += 1;
      },
      onStoreCall: ({ class: cacheClass }) => {
        this.#countsOf(cacheClass).storeCalls += 1;
      },
    };
  }

  /** Of the step that began then. */
  at(stepAtMs: number): ActivityByClass {
    return this.#steps.get(stepAtMs) ?? new Map();
  }

  /** The steps that have changed since this was last called. */
  takeChanged(): readonly number[] {
    const changed = [...this.#changed].filter((stepAtMs) => this.#steps.has(stepAtMs));
    this.#changed = new Set();
    return changed;
  }

  /** What was taken comes again. */
  giveBack(steps: readonly number[]): void {
    for (const stepAtMs of steps) this.#changed.add(stepAtMs);
  }

  #countsOf(cacheClass: CacheClass): Counts {
    const stepAtMs = stepOf(this.#clock.nowMs());
    const step = this.#steps.get(stepAtMs) ?? this.#begin(stepAtMs);
    this.#changed.add(stepAtMs);
    const known = step.get(cacheClass);
    if (known !== undefined) return known;
    const counts = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };
    step.set(cacheClass, counts);
    return counts;
  }

  #begin(stepAtMs: number): Map<CacheClass, Counts> {
    const step = new Map<CacheClass, Counts>();
    this.#steps.set(stepAtMs, step);
    for (const old of this.#steps.keys()) if (old <= stepAtMs - (STEPS + 1) * STEP_MS) this.#steps.delete(old);
    return step;
  }
}

/** Of a gateway that is alone. */
export function createHistory(clock: Clock): History {
  const log = new ActivityLog(clock);
  return {
    hooks: log.hooks,
    view: async () => ({ scope: 'process', points: pointsOf(stepsUntil(clock.nowMs()), (step) => log.at(step)) }),
    close: async () => {},
  };
}

/** When the steps of the last hour began, oldest first; the last is the one under way. */
export function stepsUntil(nowMs: number): readonly number[] {
  return Array.from({ length: STEPS + 1 }, (_, index) => stepOf(nowMs) - (STEPS - index) * STEP_MS);
}

/** Leaves out what lies before the first step in which anything was; the one under way stays. */
export function pointsOf(
  steps: readonly number[],
  activityAt: (stepAtMs: number) => ActivityByClass,
): readonly HistoryPoint[] {
  const points = steps.map((atMs) => ({ atMs, classes: activityAt(atMs) }));
  const first = points.findIndex(({ classes }) => classes.size > 0);
  return points.slice(first);
}

/** What several have done together. */
export function sumOf(all: readonly ActivityByClass[]): ActivityByClass {
  const sums = new Map<CacheClass, Activity>();
  for (const cacheClass of CACHE_CLASSES) {
    const each = all.flatMap((one) => one.get(cacheClass) ?? []);
    if (each.length > 0) sums.set(cacheClass, each.reduce(added));
  }
  return sums;
}

type Counts = { -readonly [K in keyof Activity]: Activity[K] };

function added(a: Activity, b: Activity): Activity {
  return {
    reads: a.reads + b.reads,
    hits: a.hits + b.hits,
    storeCalls: a.storeCalls + b.storeCalls,
    failed: a.failed + b.failed,
  };
}

function stepOf(atMs: number): number {
  return atMs - (atMs % STEP_MS);
}
