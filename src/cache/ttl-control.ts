/**
 * Changing times while the gateway runs, in all processes (C6a: a change rules stored copies). A time that is set for a while
 * ends by itself, by each process's own clock; the first process to notice takes it out of the journal, and reports it.
 */
import type { Journal, TimeOverride } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import {
  CACHE_CLASSES,
  type CacheClass,
  type CacheTtl,
  isTtl,
  mergeOverrides,
  overridesFor,
  TTL_NAMES,
  type TtlChange,
  type TtlEnd,
  type TtlOverride,
  type TtlPolicy,
  withoutEnded,
} from './ttl-policy.ts';

/** The machine's clock may be set meanwhile, so an end is looked for this often. */
const LOOK_EVERY_MS = 250;
/** Attempts at a change that other processes keep overtaking. */
const MAX_ATTEMPTS = 10;

export interface TtlControlOptions {
  readonly journal: Journal;
  /** This process's, which is kept up to date. */
  readonly policy: TtlPolicy;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Called in one process of all for each class whose TTLs have ended by themselves. */
  readonly onEnd: (end: TtlEnd) => void;
  /** Called in the process that has changed TTLs of a class, and waited for. Never rejects. */
  readonly onChanged?: (cacheClass: CacheClass) => Promise<void>;
}

/** Once a change resolves it is in force here; elsewhere within a second. */
export class TtlControl {
  readonly #options: TtlControlOptions;
  #cancelLook: () => void = () => undefined;
  #isClosed = false;

  constructor(options: TtlControlOptions) {
    this.#options = options;
    const { journal, policy } = options;
    journal.on('times', (event) => {
      const cacheClass = CACHE_CLASSES.find((name) => name === event.class);
      if (cacheClass === undefined) return;
      policy.override(cacheClass, readOverrides(event.overrides));
      this.#lookLater();
    });
    journal.onSnapshot(({ times }) => {
      for (const name of CACHE_CLASSES) policy.override(name, readOverrides(times.get(name) ?? []));
      this.#lookLater();
    });
  }

  /**
   * Sets some TTLs of a class until then (Unix milliseconds), or for good if that is null; those left out stay as they
   * are, their ends included. A TTL that ends goes back to the one that was set for good, else to the configured one.
   * Rejects with a RangeError for a TTL that is no whole number of milliseconds.
   */
  async set(cacheClass: CacheClass, ttl: Partial<CacheTtl>, untilMs: number | null): Promise<TtlChange> {
    const added = overridesFor(ttl, untilMs);
    return this.#change(cacheClass, (present) => mergeOverrides(present, added));
  }

  /** Back to the configuration. */
  async reset(cacheClass: CacheClass): Promise<TtlChange> {
    return this.#change(cacheClass, () => []);
  }

  /** Looks for ends no more. */
  close(): void {
    this.#isClosed = true;
    this.#cancelLook();
  }

  async #change(
    cacheClass: CacheClass,
    change: (present: readonly TtlOverride[]) => readonly TtlOverride[],
  ): Promise<TtlChange> {
    const { journal, policy, clock, onChanged } = this.#options;
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const before = withoutEnded(policy.overridesOf(cacheClass), clock.nowMs());
      const after = change(before);
      if (!(await journal.append({ kind: 'times', class: cacheClass, overrides: after }))) continue;
      await onChanged?.(cacheClass);
      return { from: policy.stateWith(cacheClass, before), to: policy.stateWith(cacheClass, after) };
    }
    throw new Error('Other processes changed the same TTLs again and again during the change.');
  }

  async #takeEnded(): Promise<void> {
    const { journal, policy, clock, onEnd } = this.#options;
    for (const cacheClass of CACHE_CLASSES) {
      const before = policy.overridesOf(cacheClass);
      const left = withoutEnded(before, clock.nowMs());
      if (left.length === before.length) continue;
      const isFirst = await journal.append({ kind: 'times', class: cacheClass, overrides: left });
      if (!isFirst) continue;
      onEnd({ cacheClass, from: policy.stateWith(cacheClass, before), to: policy.stateWith(cacheClass, left) });
    }
  }

  /** While something is set that has an end. */
  #lookLater(): void {
    const { policy, timers } = this.#options;
    this.#cancelLook();
    const all = CACHE_CLASSES.flatMap((each) => policy.overridesOf(each));
    if (this.#isClosed || all.every(({ untilMs }) => untilMs === null)) return;
    this.#cancelLook = timers.after(LOOK_EVERY_MS, () => {
      // If it fails, the next look tries again; the TTLs have ended all the same.
      this.#takeEnded()
        .catch(() => undefined)
        .finally(() => this.#lookLater());
    });
  }
}

/** Leaves out the TTLs that another release knows and this one doesn't. */
function readOverrides(overrides: readonly TimeOverride[]): readonly TtlOverride[] {
  return overrides.flatMap(({ name, ms, untilMs }) => {
    const known = TTL_NAMES.find((one) => one === name);
    return known === undefined || !isTtl(ms) ? [] : [{ name: known, ms, untilMs }];
  });
}
