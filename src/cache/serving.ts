/** What every read ends with: a copy, with what there is to say of it, and a report of how it came about. */
import type { Clock } from '../clock.ts';
import type { Held, Tier } from './held.ts';
import type { Listener, MissReason } from '../telemetry/events.ts';
import type { MemoryTier } from './memory-tier.ts';
import type { Question } from './question.ts';
import type { CacheRead, ReadContext, ReadOutcome } from './reader.ts';
import { classOf, judge, type Judgement, type Law, type StoredEntry } from './stored.ts';
import { type CacheClass, isCacheable } from './ttl-policy.ts';

/** What a reader wants. */
export interface Asked<T> {
  readonly question: Question<T>;
  readonly context: ReadContext;
  /** When the read began, Unix microseconds. */
  readonly startedMicros: number;
}

/** A read that goes to the store, with the copy that didn't do. */
export interface Miss<T> extends Asked<T> {
  readonly held: Held<T> | null;
  readonly reason: MissReason;
}

export interface Served {
  readonly outcome: ReadOutcome;
  readonly tier: Tier | null;
  readonly isKept: boolean;
  /** Null for reads that the cache answered at once. */
  readonly reason: MissReason | null;
  /** Where it was judged a moment ago. */
  readonly judgement?: Judgement;
}

export interface ServingOptions extends Law {
  readonly memory: MemoryTier;
  readonly clock: Clock;
  readonly hooks: Listener;
}

export class Serving {
  readonly #options: ServingOptions;

  constructor(options: ServingOptions) {
    this.#options = options;
  }

  serve<T>({ question, startedMicros }: Asked<T>, stored: StoredEntry<T>, served: Served): CacheRead<T> {
    const { outcome, tier, isKept: kept, reason } = served;
    const { clock, hooks } = this.#options;
    const { entry, kind } = stored;
    const { ttlMs, ageMs } = served.judgement ?? judge(question.keyHash, stored, clock.nowMs(), this.#options);
    const durationMs = this.#since(startedMicros);
    const { key, keyHash } = question;
    hooks.onRead?.({
      class: classOf(kind, entry),
      key,
      keyHash,
      outcome,
      tier,
      missReason: reason,
      ageMs,
      durationMs,
    });
    return { entry, outcome, tier, ttlMs, ageMs, stored: kept };
  }

  /** There is nothing to serve. */
  reportFailed<T>({ question: { key, keyHash, kind }, reason, startedMicros }: Miss<T>): void {
    const nothing = { outcome: 'failed', tier: null, ageMs: null } as const;
    const durationMs = this.#since(startedMicros);
    this.#options.hooks.onRead?.({ class: kind, key, keyHash, ...nothing, missReason: reason, durationMs });
  }

  missReason<T>({ kind, key }: Question<T>, held: Held<T> | null): MissReason {
    const cacheClass: CacheClass = held === null ? kind : classOf(kind, held.stored.entry);
    if (!isCacheable(this.#options.times.of(cacheClass))) return 'not-cacheable';
    if (held !== null) return held.usability === 'purged' ? 'purged' : 'expired';
    return this.#options.memory.wasEvicted(key) ? 'evicted' : 'never-seen';
  }

  #since(startedMicros: number): number {
    return (this.#options.clock.nowMicros() - startedMicros) / 1000;
  }
}
