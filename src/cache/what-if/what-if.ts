/**
 * The what-if of one process: it listens to the cache, feeds the simulator that follows each key, and reports what was
 * simulated and what was measured. Cached answers serve a whole fleet, so a key's reads must all reach one simulator,
 * whichever process they come from.
 */
import type { Clock } from '../../time/clock.ts';
import type { CacheListener } from '../events.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
import { ChangeTally } from './change-rate.ts';
import { HotKeys } from './keys.ts';
import { Sharing, type SharingOptions } from './sharing.ts';
import { keyId, TtlSimulator } from './simulator.ts';
import type { WhatIfReport } from './tally.ts';

export interface WhatIfOptions {
  readonly clock: Clock;
  readonly ttl: Pick<TtlPolicy, 'of'>;
}

/** The other processes, if there may be any. */
export type WhatIfFleet = Omit<SharingOptions, 'clock' | 'simulator' | 'report'>;

/** The reads and changes of a class that this process itself saw. */
interface Observed {
  readonly measured: NonNullable<WhatIfReport['classes'][number]['measured']>;
  readonly changes: ChangeTally;
}

export class WhatIf {
  /** Never throws and never waits. */
  readonly hooks: CacheListener;
  readonly #clock: Clock;
  readonly #simulator: TtlSimulator;
  readonly #sharing: Sharing | null;
  readonly #hotKeys = new HotKeys();
  readonly #observed = new Map<CacheClass, Observed>();

  constructor({ clock, ttl }: WhatIfOptions, fleet: WhatIfFleet | null = null) {
    this.#clock = clock;
    this.#simulator = new TtlSimulator({ clock, ttl });
    const options = { clock, simulator: this.#simulator, report: () => this.report() };
    this.#sharing = fleet === null ? null : new Sharing({ ...options, ...fleet });
    const target = this.#sharing ?? this.#simulator;
    this.hooks = {
      onRead: ({ class: cacheClass, copyHash, outcome }) => {
        if (outcome === 'failed') return;
        const { measured } = this.#observedOf(cacheClass);
        measured.reads += 1;
        if (outcome === 'hit' || outcome === 'stale-while-revalidate') measured.hits += 1;
        const id = keyId(cacheClass, copyHash);
        target.add(this.#hotKeys.vote(id), cacheClass, id, clock.nowMs());
      },
      onStoreCall: ({ class: cacheClass }) => {
        this.#observedOf(cacheClass).measured.storeCalls += 1;
      },
      onBackfill: ({ class: cacheClass, keyHash }) => {
        const id = keyId(cacheClass, keyHash);
        target.add(this.#hotKeys.has(id) ? 'hot-backfill' : 'backfill', cacheClass, id, clock.nowMs());
      },
      onRefresh: ({ class: cacheClass, changed, sinceMs }) =>
        this.#observedOf(cacheClass).changes.add(changed > 0, sinceMs, clock.nowMs()),
    };
  }

  /** Everything that this process has simulated and measured so far, as plain JSON. */
  report(): WhatIfReport {
    const classes = CACHE_CLASSES.flatMap((cacheClass) => {
      const observed = this.#observed.get(cacheClass);
      const counts = this.#simulator.countsOf(cacheClass);
      if (observed === undefined && counts === null) return [];
      const refreshes = observed?.changes.rows() ?? [];
      return [{ class: cacheClass, measured: observed?.measured ?? null, counts, refreshes }];
    });
    return { version: 3, atMs: this.#clock.nowMs(), classes };
  }

  /** The reports of this process and of all others before the same store that can be reached. Never rejects. */
  async reports(): Promise<readonly WhatIfReport[]> {
    return [this.report(), ...((await this.#sharing?.reportsOfOthers()) ?? [])];
  }

  close(): void {
    this.#sharing?.close();
  }

  #observedOf(cacheClass: CacheClass): Observed {
    const known = this.#observed.get(cacheClass);
    if (known !== undefined) return known;
    const nowMs = this.#clock.nowMs();
    const measured = { reads: 0, hits: 0, storeCalls: 0, sinceMs: nowMs };
    const observed = { measured, changes: new ChangeTally(nowMs) };
    this.#observed.set(cacheClass, observed);
    return observed;
  }
}
