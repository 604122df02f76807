/** What a process remembers of its own reads and store calls, so that an operator can be told why. */
import { CacheStats } from './admin/stats/cache-stats.ts';
import type { Listener } from './telemetry/events.ts';
import { LastMisses } from './cache/last-misses.ts';
import type { Clock } from './clock.ts';

export interface CacheWatch {
  readonly hooks: Listener;
  readonly lastMisses: LastMisses;
  readonly stats: CacheStats;
}

export function createCacheWatch(clock: Clock): CacheWatch {
  const lastMisses = new LastMisses();
  const stats = new CacheStats(clock);
  return {
    hooks: {
      onRead: (read) => {
        stats.listener.onRead?.(read);
        if (read.missReason !== null) lastMisses.note(read, clock.nowMs());
      },
      onStoreCall: (call) => stats.listener.onStoreCall?.(call),
    },
    lastMisses,
    stats,
  };
}
