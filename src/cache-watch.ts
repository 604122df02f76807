/** What a process remembers of its own reads and store calls, so that an operator can be told why. */
import { Pulse } from './admin/dashboard/pulse.ts';
import { TopLoads } from './admin/top-loads.ts';
import type { Listener } from './telemetry/events.ts';
import { LastMisses } from './cache/last-misses.ts';
import type { Clock } from './clock.ts';

export interface CacheWatch {
  readonly hooks: Listener;
  readonly lastMisses: LastMisses;
  readonly top: TopLoads;
  readonly pulse: Pulse;
}

export function createCacheWatch(clock: Clock): CacheWatch {
  const lastMisses = new LastMisses();
  const top = new TopLoads(clock);
  const pulse = new Pulse(clock);
  return {
    hooks: {
      onRead: (read) => {
        pulse.hooks.onRead?.(read);
        if (read.missReason !== null) lastMisses.note(read, clock.nowMs());
      },
      onStoreCall: (call) => top.note(call),
    },
    lastMisses,
    top,
    pulse,
  };
}
