/** The shared part of caches as several gateway processes have it: each with connections of its own to one Redis. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AdjustableTimes } from '../../src/cache/times.ts';
import { MaintenanceState } from '../../src/cache/maintenance.ts';
import { MemoryTier } from '../../src/cache/memory-tier.ts';
import { openRedisFleet, type RedisFleet, type RedisFleetHooks } from '../../src/cache/redis-fleet.ts';
import { systemTimers } from '../../src/timers.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';

export interface CacheFleetOptions {
  readonly url: string;
  /** Where the entries lie, if elsewhere. */
  readonly cacheUrl?: string;
  readonly size?: number;
  readonly leaseMs?: number;
  readonly clock?: Clock;
  readonly hooks?: RedisFleetHooks;
}

export interface CacheMember extends RedisFleet {
  readonly state: RedisLink;
  readonly cache: RedisLink;
  readonly memory: MemoryTier;
  readonly times: AdjustableTimes;
}

export interface CacheFleet {
  readonly members: readonly CacheMember[];
  readonly one: CacheMember;
  /** The last one: the first itself in a fleet of one. */
  readonly two: CacheMember;
  close(): Promise<void>;
}

export async function openMember(options: CacheFleetOptions): Promise<CacheMember> {
  const { url, cacheUrl = url, leaseMs, clock = systemClock, hooks = {} } = options;
  const state = openRedis({ url, role: 'state' });
  const cache = openRedis({ url: cacheUrl, role: 'cache' });
  const memory = new MemoryTier({ maxBytes: 2 ** 26 });
  const times = new AdjustableTimes();
  const maintenance = new MaintenanceState(clock);
  const shared = { state, cache, memory, times, maintenance, clock, timers: systemTimers, hooks };
  const opened = await openRedisFleet({ store: 'test', ...shared, ...(leaseMs === undefined ? {} : { leaseMs }) });
  return {
    fleet: opened.fleet,
    purges: opened.purges,
    timesControl: opened.timesControl,
    maintenance: opened.maintenance,
    inspector: opened.inspector,
    health: () => opened.health(),
    close: () => {
      opened.close();
      void state.close();
      void cache.close();
    },
    state,
    cache,
    memory,
    times,
  };
}

export async function startCacheFleet(options: CacheFleetOptions): Promise<CacheFleet> {
  const members = await Promise.all(Array.from({ length: options.size ?? 1 }, () => openMember(options)));
  const [one, two] = [members[0], members.at(-1)];
  if (one === undefined || two === undefined) throw new RangeError('A fleet has at least one process.');
  return {
    members,
    one,
    two,
    close: async () => {
      for (const member of members) member.close();
    },
  };
}

/** Whether it is so within that time; as soon as it is. */
export async function comesTrue(isSo: () => boolean, timeoutMs: number): Promise<boolean> {
  const untilMs = performance.now() + timeoutMs;
  while (!isSo()) {
    if (performance.now() > untilMs) return false;
    await sleep(1);
  }
  return true;
}
