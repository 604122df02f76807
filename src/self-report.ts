/** What a gateway says of itself: to the metrics at each scrape, and to the log when it has started. */
import type { StateReadings } from './admin/metrics/readings.ts';
import type { Parts, Running } from './assembly.ts';
import { VERSION } from './version.ts';

export function readingsOf(parts: Parts, running: Running, connections: StateReadings['connections']): StateReadings {
  const { dependencies, memory, shared, source, loaded } = parts;
  return {
    readiness: () => ({ status: running.status(), dependencies: dependencies.list() }),
    memory: () => memory.usage(),
    memoryLimitBytes: loaded.config.cache.memoryBytes,
    maintenance: () => shared.maintenance.current() !== null,
    connections,
    guard: () => source.store.status(),
    processes: () => shared.members.count(),
    redis: shared.redis,
  };
}

/** Addresses of this process's own listeners are no secret; those of the store and of Redis are left out. */
export function startedLine(
  { loaded }: Parts,
  { publicUrl, adminUrl }: { readonly publicUrl: string; readonly adminUrl: string },
): Readonly<Record<string, unknown>> {
  const { redis, server } = loaded.config;
  const separateCache = redis.cacheUrl === null ? 'one for all' : 'one for state, one for the cache';
  return {
    version: VERSION,
    node: process.versions.node,
    public: publicUrl,
    admin: adminUrl,
    workers: server.workers,
    store: loaded.config.upstream.url === null ? 'bundled sample' : 'configured',
    redis: redis.url === null ? 'none' : separateCache,
  };
}
