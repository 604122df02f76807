import { createCacheControls } from '../../../src/admin/cache-controls.ts';
import { createCacheCounters } from '../../../src/admin/cache-counts.ts';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { MemoryPurgeLog } from '../../../src/cache/purge-log.ts';
import { LocalTimesControl } from '../../../src/cache/times-control.ts';
import { AdjustableTimes } from '../../../src/cache/times.ts';
import type { Clock } from '../../../src/clock.ts';

export const MAX_BYTES = 1_000_000;

/** A cache of its own, empty, with the default times, and what an operator can do to it. */
export function createCacheRig(clock: Clock) {
  const memory = new MemoryTier({ maxBytes: MAX_BYTES });
  const purges = new MemoryPurgeLog();
  const times = new AdjustableTimes();
  const counters = createCacheCounters();
  const controls = createCacheControls({
    memory,
    shared: null,
    purges,
    times,
    timesControl: new LocalTimesControl(times),
    configuredBy: () => 'default',
    maxBytes: MAX_BYTES,
    counters,
    clock,
  });
  return { controls, memory, purges, counters };
}
