/**
 * What hit ratio, store load and staleness of each class would be with other times: ghosts of the cache, which hold times
 * and no answers, do at each read what a cache with their time would do. It is fed and asked, and does nothing by itself.
 *
 * A ghost holds a copy for as long as it is fresh, shortened by the cache's jitter; past that the next read is one call to
 * the store, and is served the old copy if it comes within the class's `stale` time in force. Not modelled: purges,
 * failures, what memory can't hold, single records that a list brings along.
 */
import type { Clock } from '../../clock.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
import { ChangeTally } from './change-tally.ts';
import { ClassWatch } from './class-watch.ts';
import { FrequencySketch } from './frequency-sketch.ts';
import { MAX_LATE_MS } from './ghosts.ts';
import { mix32 } from '../hash.ts';
import { SlotPool } from './slot-pool.ts';
import type { WhatIfSnapshot } from './snapshot.ts';

export interface WhatIfOptions {
  readonly clock: Clock;
  readonly times: Pick<TtlPolicy, 'of'>;
}

/** 18,432 keys: with all else that is held, less than 1 MB where all classes are read. */
const POOL_BLOCKS = 18;
/** How often keys that nobody reads any more are looked for, at most. */
const SWEEP_EVERY_MS = 600_000;
/** By more than that, a clock was set back. */
const MAX_STEP_BACK_MS = 60_000;
/** Of everything that is no array of numbers; measured. */
const OBJECT_BYTES = 90_000;

export class WhatIfModel {
  readonly #clock: Clock;
  readonly #times: Pick<TtlPolicy, 'of'>;
  readonly #epochMs: number;
  readonly #pool = new SlotPool(POOL_BLOCKS);
  readonly #watches = new Map<CacheClass, ClassWatch>();
  readonly #changes = new Map<CacheClass, ChangeTally>();
  #sketch: FrequencySketch | null = null;
  #latestMs = 0;
  #sweptMs = 0;

  constructor({ clock, times }: WhatIfOptions) {
    this.#clock = clock;
    this.#times = times;
    this.#epochMs = clock.nowMs() - MAX_LATE_MS;
  }

  /**
   * A reader has asked for the key, whatever came of it. `keyHash` is an unsigned 32-bit hash of the key (`hash32`);
   * `atMs` is Unix milliseconds, nearly in order: up to a second late does no harm.
   */
  read(cacheClass: CacheClass, keyHash: number, atMs: number): void {
    const nowMs = this.#clock.nowMs() - this.#epochMs;
    // A clock that was set back must not make time stand still until it has caught up.
    if (this.#latestMs - nowMs > MAX_STEP_BACK_MS) this.#latestMs = nowMs;
    const timeMs = Math.max(0, Math.min(atMs - this.#epochMs, nowMs), this.#latestMs - MAX_LATE_MS);
    this.#latestMs = Math.max(this.#latestMs, timeMs);
    const watch = this.#watches.get(cacheClass) ?? this.#watch(cacheClass, timeMs);
    watch.read(mix32(keyHash ^ 0x9e3779b9), timeMs, this.#times.of(cacheClass));
  }

  /** The store has answered for a key of which a copy was held, `sinceMs` old: whether the answer was another one. */
  refreshed(cacheClass: CacheClass, isChanged: boolean, sinceMs: number): void {
    const nowMs = this.#clock.nowMs();
    const known = this.#changes.get(cacheClass);
    const changes = known ?? new ChangeTally(nowMs);
    if (known === undefined) this.#changes.set(cacheClass, changes);
    changes.add(isChanged, sinceMs, nowMs);
  }

  /** What was learned so far, as plain JSON, to be merged with that of other processes by `adviceOf`. */
  snapshot(): WhatIfSnapshot {
    const known = CACHE_CLASSES.filter((each) => this.#watches.has(each) || this.#changes.has(each));
    const classes = known.map((cacheClass) => ({
      class: cacheClass,
      points: [...(this.#watches.get(cacheClass)?.points(this.#epochMs) ?? [])],
      refreshes: this.#changes.get(cacheClass)?.rows() ?? [],
    }));
    return { version: 1, atMs: this.#clock.nowMs(), classes };
  }

  /** What the model holds: its arrays, and a bound for the objects around them. */
  get bytes(): number {
    const parts = [this.#pool, ...this.#watches.values(), ...this.#changes.values()];
    const sketchBytes = this.#sketch?.bytes ?? 0;
    return parts.reduce((sum, { bytes }) => sum + bytes, sketchBytes + OBJECT_BYTES);
  }

  #watch(cacheClass: CacheClass, atMs: number): ClassWatch {
    const shared = {
      pool: this.#pool,
      sketch: () => (this.#sketch ??= new FrequencySketch(this.#latestMs, () => this.#halveCounts())),
      makeRoom: (now: number) => this.#makeRoom(now),
    };
    const watch = new ClassWatch(CACHE_CLASSES.indexOf(cacheClass), shared, atMs);
    this.#watches.set(cacheClass, watch);
    return watch;
  }

  #makeRoom(atMs: number): void {
    if (atMs - this.#sweptMs >= SWEEP_EVERY_MS) {
      this.#sweptMs = atMs;
      for (const watch of this.#watches.values()) watch.forgetIdle(atMs);
    }
    if (this.#pool.free > 0) return;
    const [largest] = [...this.#watches.values()].toSorted((a, b) => b.sampled - a.sampled);
    largest?.shrink();
  }

  #halveCounts(): void {
    this.#pool.each((_, { counts }, place) => {
      counts[place] = (counts[place] ?? 0) >>> 1;
    });
  }
}
