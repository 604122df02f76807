/**
 * The what-if of one process: it listens to the cache, feeds the simulator that follows each key, and reports what was
 * simulated and what was measured. Cached answers serve a whole fleet, so a key's reads must all reach one simulator,
 * whichever process they come from.
 */
import type { Clock } from '../../clock.ts';
import type { CacheListener } from '../../telemetry/events.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
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

type Measured = NonNullable<WhatIfReport['classes'][number]['measured']>;

export class WhatIf {
  /** Never throws and never waits. */
  readonly hooks: CacheListener;
  readonly #clock: Clock;
  readonly #simulator: TtlSimulator;
  readonly #sharing: Sharing | null;
  readonly #hotKeys = new HotKeys();
  readonly #measured = new Map<CacheClass, Measured>();

  constructor({ clock, ttl }: WhatIfOptions, fleet: WhatIfFleet | null = null) {
    this.#clock = clock;
    this.#simulator = new TtlSimulator({ clock, ttl });
    const options = { clock, simulator: this.#simulator, report: () => this.report() };
    this.#sharing = fleet === null ? null : new Sharing({ ...options, ...fleet });
    const target = this.#sharing ?? this.#simulator;
    this.hooks = {
      onRead: ({ class: cacheClass, keyHash, outcome }) => {
        if (outcome === 'failed') return;
        const measured = this.#measuredOf(cacheClass);
        measured.reads += 1;
        if (outcome === 'hit' || outcome === 'stale-while-revalidate') measured.hits += 1;
        const id = keyId(cacheClass, keyHash);
        target.add(this.#hotKeys.vote(id), cacheClass, id, clock.nowMs());
      },
      onStoreCall: ({ class: cacheClass }) => {
        this.#measuredOf(cacheClass).storeCalls += 1;
      },
      onBackfill: ({ class: cacheClass, keyHash }) => {
        const id = keyId(cacheClass, keyHash);
        target.add(this.#hotKeys.has(id) ? 'hot-backfill' : 'backfill', cacheClass, id, clock.nowMs());
      },
      // Refreshes only add up, so they stay where they are.
      onRefresh: ({ class: cacheClass, changed, sinceMs }) => this.#simulator.refreshed(cacheClass, changed, sinceMs),
    };
  }

  /** An upper bound for the memory it takes. */
  get bytes(): number {
    return this.#simulator.bytes + this.#hotKeys.bytes;
  }

  /** Everything that this process has simulated and measured so far, as plain JSON. */
  report(): WhatIfReport {
    const classes = CACHE_CLASSES.map((cacheClass) => ({
      class: cacheClass,
      measured: this.#measured.get(cacheClass) ?? null,
      counts: this.#simulator.countsOf(cacheClass),
      refreshes: this.#simulator.refreshesOf(cacheClass),
    }));
    const known = classes.filter(({ measured, counts }) => measured !== null || counts !== null);
    return { version: 3, atMs: this.#clock.nowMs(), classes: known };
  }

  /** The reports of this process and of all others before the same store that can be reached. Never rejects. */
  async reports(): Promise<readonly WhatIfReport[]> {
    return [this.report(), ...((await this.#sharing?.reportsOfOthers()) ?? [])];
  }

  close(): void {
    this.#sharing?.close();
  }

  #measuredOf(cacheClass: CacheClass): Measured {
    const known = this.#measured.get(cacheClass);
    if (known !== undefined) return known;
    const measured = { reads: 0, hits: 0, storeCalls: 0, sinceMs: this.#clock.nowMs() };
    this.#measured.set(cacheClass, measured);
    return measured;
  }
}
