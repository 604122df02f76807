/** What one process has counted of a trial. Counts only grow, so the same ones may be told again and again. */
import { z } from 'zod';
import type { CacheHooks } from '../hooks.ts';
import { GROUPS, TrialKeys } from './keys.ts';
import { ARMS, type ArmName, type Trial } from './trial.ts';

/** Of one arm, since the trial's start. */
export interface ArmTotals {
  readonly reads: number;
  /** Served at once from a copy, fresh or not. */
  readonly hits: number;
  /** Calls to the store, whatever came of them. */
  readonly storeCalls: number;
  readonly storeFailures: number;
}

const count = z.int().min(0);
const groups = z.array(count).length(GROUPS);
const armSchema = z.object({
  hits: count,
  reads: groups,
  /** First reads of keys in each stretch of time as long as was in force: what a cache of that time would ask. */
  firstReads: groups,
  storeCalls: groups,
  storeFailures: groups,
});

/** By arm, in groups of keys. */
export const countsSchema = z.object({
  arms: z.object({ trial: armSchema, control: armSchema }),
  /** Calls to the store of all classes together, before the trial and since. */
  store: z.object({
    before: z.object({ calls: count, failures: count }),
    since: z.object({ calls: count, failures: count }),
  }),
});

type Written = z.output<typeof countsSchema>;
type DeepReadonly<T> = { readonly [K in keyof T]: DeepReadonly<T[K]> };

export type TrialCounts = DeepReadonly<Written>;
export type ArmCounts = TrialCounts['arms']['trial'];
export type StoreCounts = TrialCounts['store']['since'];

export function noCounts(before: StoreCounts = { calls: 0, failures: 0 }): Written {
  return {
    arms: { trial: noArmCounts(), control: noArmCounts() },
    store: { before: { ...before }, since: { calls: 0, failures: 0 } },
  };
}

function zeros(): number[] {
  return Array.from({ length: GROUPS }, () => 0);
}

function noArmCounts(): Written['arms']['trial'] {
  return { hits: 0, reads: zeros(), firstReads: zeros(), storeCalls: zeros(), storeFailures: zeros() };
}

/** What all processes have counted. */
export function sumOf(all: readonly TrialCounts[]): TrialCounts {
  return all.reduce((a, b) => combined(a, b, (x, y) => x + y), noCounts());
}

/** What has been counted since then. What was before the trial stays what it was. */
export function since(now: TrialCounts, then: TrialCounts): TrialCounts {
  const { arms, store } = combined(now, then, (x, y) => x - y);
  return { arms, store: { ...store, before: now.store.before } };
}

export function totalsOf({ hits, reads, storeCalls, storeFailures }: ArmCounts): ArmTotals {
  return { reads: total(reads), hits, storeCalls: total(storeCalls), storeFailures: total(storeFailures) };
}

export function total(counts: readonly number[]): number {
  return counts.reduce((sum, each) => sum + each, 0);
}

/** Less is not told in time. */
const SHORTEST_STRETCH_MS = 1000;
/** Some megabytes. */
const MOST_SEEN = 50_000;

type Tallied = Pick<Trial, 'id' | 'share' | 'class' | 'controlFreshMs'>;

/** Counts one trial's reads and calls in this process. */
export class TrialTally {
  readonly keys: TrialKeys;
  readonly #trial: Tallied;
  readonly #counts: Written;
  /** Hashes of the keys that were read in this stretch. */
  readonly #seen = new Set<number>();
  #stretch = 0;

  /** `before` is what the store did before the trial. */
  constructor(trial: Tallied, before: StoreCounts) {
    this.keys = new TrialKeys(trial);
    this.#trial = trial;
    this.#counts = noCounts(before);
  }

  get counts(): TrialCounts {
    return this.#counts;
  }

  /** To be told of the time now and then; reads needn't ask for it. */
  tick(nowMs: number): void {
    const stretch = Math.floor(nowMs / Math.max(SHORTEST_STRETCH_MS, this.#trial.controlFreshMs));
    if (stretch === this.#stretch) return;
    this.#stretch = stretch;
    this.#seen.clear();
  }

  readonly onRead: NonNullable<CacheHooks['onRead']> = ({ class: cacheClass, keyHash, outcome }) => {
    if (cacheClass !== this.#trial.class) return;
    const arm = this.#counts.arms[this.keys.armOf(keyHash)];
    const group = this.keys.groupOf(keyHash);
    add(arm.reads, group);
    if (!this.#seen.has(keyHash)) {
      add(arm.firstReads, group);
      // Those that are read often have come by then.
      if (this.#seen.size < MOST_SEEN) this.#seen.add(keyHash);
    }
    if (outcome === 'hit' || outcome === 'stale-while-revalidate') arm.hits += 1;
  };

  readonly onStoreCall: NonNullable<CacheHooks['onStoreCall']> = ({ class: cacheClass, keyHash, isFailed }) => {
    const { since: whole } = this.#counts.store;
    whole.calls += 1;
    if (isFailed) whole.failures += 1;
    if (cacheClass !== this.#trial.class) return;
    const arm = this.#counts.arms[this.keys.armOf(keyHash)];
    const group = this.keys.groupOf(keyHash);
    add(arm.storeCalls, group);
    if (isFailed) add(arm.storeFailures, group);
  };
}

function add(counts: number[], place: number): void {
  counts[place] = (counts[place] ?? 0) + 1;
}

type Combine = (a: number, b: number) => number;

function combined(a: TrialCounts, b: TrialCounts, combine: Combine): TrialCounts {
  const arm = (name: ArmName): ArmCounts => combinedArm(a.arms[name], b.arms[name], combine);
  const store = (when: 'before' | 'since'): StoreCounts => ({
    calls: combine(a.store[when].calls, b.store[when].calls),
    failures: combine(a.store[when].failures, b.store[when].failures),
  });
  return {
    arms: { trial: arm(ARMS[0]), control: arm(ARMS[1]) },
    store: { before: store('before'), since: store('since') },
  };
}

function combinedArm(a: ArmCounts, b: ArmCounts, combine: Combine): ArmCounts {
  const each = (x: readonly number[], y: readonly number[]): readonly number[] =>
    x.map((value, index) => combine(value, y[index] ?? 0));
  return {
    hits: combine(a.hits, b.hits),
    reads: each(a.reads, b.reads),
    firstReads: each(a.firstReads, b.firstReads),
    storeCalls: each(a.storeCalls, b.storeCalls),
    storeFailures: each(a.storeFailures, b.storeFailures),
  };
}
