import type { CacheHooks } from '../../src/cache/hooks.ts';
import { type MaintenanceWatch, NO_MAINTENANCE } from '../../src/cache/maintenance.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { MemoryPurgeLog } from '../../src/cache/purge-log.ts';
import { createReadThrough } from '../../src/cache/read-through.ts';
import type { CachingReader } from '../../src/cache/reader.ts';
import { AdjustableTimes, CACHE_CLASSES } from '../../src/cache/times.ts';
import { CountingStore } from './counting-store.ts';
import { ManualTimers } from './manual-timers.ts';
import type { MemoryFleet } from './memory-fleet.ts';
import { WORKSPACE_A, WORKSPACE_B } from './records.ts';

export const CONTEXT = { requestId: 'request-1', workspaceIds: [WORKSPACE_A, WORKSPACE_B] };

/** Fresh 10 s, then stale 20 s, and 100 s usable when the store fails; 1 s for what is absent. */
export const TEST_TIMES = { freshMs: 10_000, staleMs: 20_000, errorMs: 100_000 };

export interface Rig {
  readonly store: CountingStore;
  readonly timers: ManualTimers;
  readonly memory: MemoryTier;
  readonly purges: MemoryPurgeLog;
  readonly times: AdjustableTimes;
  readonly reader: CachingReader;
}

export interface RigOptions {
  readonly hooks?: CacheHooks;
  readonly maxBytes?: number;
  readonly flightDeadlineMs?: number;
  /** A process of this fleet, with the store, the time and the purge log of another rig. */
  readonly fleet?: MemoryFleet;
  readonly beside?: Rig;
  readonly timers?: ManualTimers;
  readonly maintenance?: MaintenanceWatch;
}

export function createRig(options: RigOptions = {}): Rig {
  const timers = options.beside?.timers ?? options.timers ?? new ManualTimers();
  const store = options.beside?.store ?? new CountingStore();
  const purges = options.beside?.purges ?? new MemoryPurgeLog();
  const times = options.beside?.times ?? testTimes();
  const memory = new MemoryTier({ maxBytes: options.maxBytes ?? 2 ** 24 });
  const reader = createReadThrough({
    store,
    memory,
    times,
    purges,
    timers,
    clock: timers.clock,
    fleet: options.fleet?.member() ?? null,
    flightDeadlineMs: options.flightDeadlineMs ?? 15_000,
    hooks: options.hooks ?? {},
    maintenance: options.maintenance ?? NO_MAINTENANCE,
  });
  return { store, timers, memory, purges, times, reader };
}

function testTimes(): AdjustableTimes {
  const times = new AdjustableTimes();
  for (const cacheClass of CACHE_CLASSES) times.set(cacheClass, TEST_TIMES);
  times.set('notFound', { freshMs: 1000, staleMs: 0, errorMs: 0 });
  return times;
}
