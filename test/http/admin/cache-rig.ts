import { createCacheControls } from '../../../src/admin/cache-controls.ts';
import { createCacheCounters } from '../../../src/admin/cache-counts.ts';
import { TopLoads } from '../../../src/admin/top-loads.ts';
import { LastMisses } from '../../../src/cache/last-misses.ts';
import { LocalMaintenance, MaintenanceState } from '../../../src/cache/maintenance.ts';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { MemoryPurgeLog } from '../../../src/cache/purge-log.ts';
import { LocalTimesControl } from '../../../src/cache/times-control.ts';
import { AdjustableTimes } from '../../../src/cache/times.ts';
import type { ManualClock } from '../../support/manual-clock.ts';
import { createResolver } from '../../../src/http/explain.ts';

export const MAX_BYTES = 1_000_000;

/** A cache of its own, empty, with the default times, and what an operator can do to it. */
export function createCacheRig(clock: ManualClock) {
  const memory = new MemoryTier({ maxBytes: MAX_BYTES });
  const purges = new MemoryPurgeLog();
  const times = new AdjustableTimes();
  const counters = createCacheCounters();
  const lastMisses = new LastMisses();
  const top = new TopLoads(clock);
  const controls = createCacheControls({
    memory,
    shared: null,
    purges,
    times,
    timesControl: new LocalTimesControl(times),
    configuredBy: () => 'default',
    maxBytes: MAX_BYTES,
    counters,
    maintenance: new LocalMaintenance(new MaintenanceState(clock)),
    resolve: createResolver(),
    inspector: null,
    flightOf: () => ({ sinceMs: null, hasJustFailed: false }),
    lastMissOf: (key) => lastMisses.of(key),
    top: (limit) => top.view(limit),
    clock,
  });
  return { controls, memory, purges, times, counters, lastMisses, top };
}
