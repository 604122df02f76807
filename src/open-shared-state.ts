/** Opens what gateway processes share, in Redis or in the memory of a process that is alone. */
import { randomUUID } from 'node:crypto';
import { MemoryAudit } from './admin/audit.ts';
import { ttlEndEntry } from './admin/cache-control.ts';
import { maintenanceGate, MemoryMaintenance } from './cache/maintenance.ts';
import { MemoryPurgeLog } from './cache/purge-log.ts';
import { systemTimers } from './timers.ts';
import { MemoryTtlControl } from './cache/ttl-policy.ts';
import { openInsight } from './insight.ts';
import type { KeyLookup } from './keys/key.ts';
import { MemoryRegistry } from './keys/memory-registry.ts';
import { createRequestLimiter } from './keys/request-limiter.ts';
import { StoreLookup } from './keys/store-lookup.ts';
import { MemoryLimiter } from './quota/memory-limiter.ts';
import { singleInstance } from './redis/instances.ts';
import { openFleet } from './shared-fleet.ts';
import { aboutSelf, auditLog, type SharedState, type SharedStateOptions } from './shared-state.ts';
import { apiKey } from './upstream/resources.ts';

/** A Redis that can't be reached keeps no gateway from starting: it is joined when it comes. Throws a StartError. */
export async function openSharedState(options: SharedStateOptions): Promise<SharedState> {
  const { redis } = options.config;
  const state = redis.url === null ? openAlone(options) : await openFleet(options, redis.url, redis.cacheUrl);
  return { ...state, keys: withStoreKeys(state.keys, options) };
}

function openAlone(options: SharedStateOptions): SharedState {
  const { clock, times, maintenance, logger } = options;
  const registry = new MemoryRegistry(clock);
  const audit = new MemoryAudit({ clock, sink: auditLog(logger) });
  const members = singleInstance(aboutSelf(options));
  const insight = openInsight({ ...options, timers: systemTimers }, null);
  return {
    keys: registry,
    registry,
    transientKeys: registry,
    quota: new MemoryLimiter({ clock }),
    limiter: (limit) => createRequestLimiter({ ...limit, redis: null }),
    sharedCache: null,
    purges: new MemoryPurgeLog(),
    timesControl: new MemoryTtlControl({
      policy: times,
      clock,
      timers: systemTimers,
      onEnd: (end) => void audit.record(ttlEndEntry(end)),
    }),
    maintenance: new MemoryMaintenance(maintenance),
    audit,
    members,
    insight,
    redis: null,
    close: async () => {},
  };
}

/** With `KEYS_SOURCE=upstream` a key that the registry doesn't know is asked of the store. */
function withStoreKeys(keys: KeyLookup, { config, source, maintenance, clock }: SharedStateOptions): KeyLookup {
  if (config.keys.source === 'registry') return keys;
  const gate = maintenanceGate(maintenance, clock);
  return new StoreLookup({
    registry: keys,
    clock,
    timers: systemTimers,
    graceMs: config.keys.graceMs,
    lookUp: async (hash) => {
      const answer = await gate(() => source.store.fetch(apiKey, { hash }, { requestId: randomUUID() }));
      if (answer.kind === 'found') return answer.record;
      return null;
    },
  });
}
