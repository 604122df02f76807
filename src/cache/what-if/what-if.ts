/**
 * The what-if of one process: it listens to the cache, feeds the simulator that follows each key, and reports what was
 * simulated and what was measured. Cached answers serve a whole fleet, so a key's reads must all reach one simulator,
 * whichever process they come from.
 */
import type { Clock } from '../../time/clock.ts';
import type { Refresh } from '../entry.ts';
import type { CacheListener, ReadReport } from '../events.ts';
import { CACHE_CLASSES, type CacheClass, type TtlPolicy } from '../ttl-policy.ts';
import { HotKeys } from './keys.ts';
import { Sharing, type SharingOptions } from './sharing.ts';
import { type KeyEvent, keyId, TtlSimulator } from './simulator.ts';
import type { WhatIfReport } from './tally.ts';

export interface WhatIfOptions {
  readonly clock: Clock;
  readonly ttl: Pick<TtlPolicy, 'of'>;
}

/** The other processes, if there may be any. */
export type WhatIfFleet = Omit<SharingOptions, 'clock' | 'simulator' | 'report'>;

/** This process's own measurements of a class. */
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
    this.hooks = {
      onRead: (report) => this.#onRead(report),
      onStoreCall: ({ class: cacheClass }) => {
        this.#measuredOf(cacheClass).storeCalls += 1;
      },
      onRefresh: (refresh) => this.#onRefresh(refresh),
    };
  }

  /** Everything that this process has simulated and measured so far, as plain JSON. */
  report(): WhatIfReport {
    const classes = CACHE_CLASSES.flatMap((cacheClass) => {
      const measured = this.#measured.get(cacheClass) ?? null;
      const simulated = this.#simulator.countsOf(cacheClass);
      return measured === null && simulated.counts === null ? [] : [{ class: cacheClass, measured, ...simulated }];
    });
    return { version: 4, atMs: this.#clock.nowMs(), hasEnded: false, classes, together: this.#simulator.together() };
  }

  /** The reports of this process and of all others before the same store, those included that have ended. Never rejects. */
  async reports(): Promise<readonly WhatIfReport[]> {
    return [this.report(), ...((await this.#sharing?.reportsOfOthers()) ?? [])];
  }

  /** Hands over to the other processes what this one has seen. Never rejects. */
  async close(): Promise<void> {
    await this.#sharing?.close();
  }

  #onRead({ class: cacheClass, copyHash, items, outcome, ageMs }: ReadReport): void {
    if (outcome === 'failed') return;
    const measured = this.#measuredOf(cacheClass);
    measured.reads += 1;
    if (outcome === 'hit' || outcome === 'stale-while-revalidate') measured.hits += 1;
    const about = { atMs: this.#clock.nowMs(), ageMs: ageMs ?? 0, madeMsAgo: 0 };
    const id = keyId(cacheClass, copyHash);
    const read: KeyEvent = { ...about, kind: this.#hotKeys.vote(id), class: cacheClass, id };
    (this.#sharing ?? this.#simulator).add(read);
    if (items.length === 0) return;
    const list: KeyEvent = { ...read, kind: 'list' };
    const each = items.map((hash): KeyEvent => {
      return { ...about, kind: 'item', class: 'evaluation', id: keyId('evaluation', hash) };
    });
    if (this.#sharing !== null) this.#sharing.addList(list, each);
    else this.#simulator.addAll([list, ...each]);
  }

  #onRefresh({ class: cacheClass, copyHash, changed, sinceMs, createdAtMs }: Refresh): void {
    if (cacheClass === 'list') {
      this.#simulator.compareList(changed, sinceMs);
      return;
    }
    const atMs = this.#clock.nowMs();
    (this.#sharing ?? this.#simulator).add({
      kind: changed > 0 ? 'changed' : 'same',
      class: cacheClass,
      id: keyId(cacheClass, copyHash),
      atMs,
      ageMs: sinceMs,
      madeMsAgo: createdAtMs === null ? 0 : Math.max(0, atMs - createdAtMs),
    });
  }

  #measuredOf(cacheClass: CacheClass): Measured {
    const known = this.#measured.get(cacheClass);
    if (known !== undefined) return known;
    const measured = { reads: 0, hits: 0, storeCalls: 0, sinceMs: this.#clock.nowMs() };
    this.#measured.set(cacheClass, measured);
    return measured;
  }
}
