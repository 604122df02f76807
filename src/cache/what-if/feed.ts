/** Feeds one process's what-if model with what its cache does, and says what has come of it. */
import { z } from 'zod';
import type { Clock } from '../../clock.ts';
import type { Listener } from '../../telemetry/events.ts';
import { CACHE_CLASSES, type CacheClass } from '../ttl-policy.ts';
import type { WhatIfModel } from './model.ts';
import { whatIfSnapshotSchema } from './snapshot.ts';

/** What really happened to a class in one process. */
const measuredSchema = z.object({
  class: z.enum(CACHE_CLASSES),
  /** Those that failed are none. */
  reads: z.number(),
  storeCalls: z.number(),
  /** When it was first counted, Unix milliseconds. */
  sinceMs: z.number(),
});

export type Measured = z.output<typeof measuredSchema>;

/** What one process has to say: what its model has learned, and what really happened in it. */
export const whatIfReportSchema = z.object({ snapshot: whatIfSnapshotSchema, measured: z.array(measuredSchema) });
export type WhatIfReport = z.output<typeof whatIfReportSchema>;

export interface WhatIfParts {
  readonly model: Pick<WhatIfModel, 'read' | 'refreshed' | 'snapshot'>;
  readonly clock: Clock;
}

/** Feeds the model, and says what this process has to say. */
export class WhatIfFeed {
  readonly hooks: Listener;
  readonly #parts: WhatIfParts;
  readonly #measured = new Map<CacheClass, Measured>();

  /** `follow` brings each read to the model that follows its key. */
  constructor(parts: WhatIfParts, follow: WhatIfModel['read']) {
    this.#parts = parts;
    this.hooks = {
      onRead: ({ class: cacheClass, keyHash, outcome }) => {
        if (outcome === 'failed') return;
        this.#countsOf(cacheClass).reads += 1;
        follow(cacheClass, keyHash, parts.clock.nowMs());
      },
      onStoreCall: ({ class: cacheClass }) => {
        this.#countsOf(cacheClass).storeCalls += 1;
      },
      // Counts add up wherever they are, so they stay.
      onRefresh: ({ class: cacheClass, changed, sinceMs }) => parts.model.refreshed(cacheClass, changed, sinceMs),
    };
  }

  report(): WhatIfReport {
    return {
      snapshot: this.#parts.model.snapshot(),
      measured: [...this.#measured.values()].map((one) => ({ ...one })),
    };
  }

  #countsOf(cacheClass: CacheClass): Measured {
    const known = this.#measured.get(cacheClass);
    if (known !== undefined) return known;
    const counts = { class: cacheClass, reads: 0, storeCalls: 0, sinceMs: this.#parts.clock.nowMs() };
    this.#measured.set(cacheClass, counts);
    return counts;
  }
}
