/** The base of all other rooms: a Redis that all processes share, or two, or none. The one place that chooses. */
import { hostname } from 'node:os';
import type { Journal } from '../journal/journal.ts';
import { MemoryJournal } from '../journal/memory-journal.ts';
import { type InstanceInfo, Instances } from '../redis/instances.ts';
import { VERSION } from '../version.ts';
import type { BackendContext, SharedRedis } from './redis.ts';

export interface Backend {
  readonly journal: Journal;
  /** The processes that serve together. */
  readonly instances: Instances;
  /** Null for a gateway of one process without Redis. */
  readonly redis: SharedRedis | null;
  close(): Promise<void>;
}

type OpenRedis = (context: BackendContext, about: InstanceInfo) => SharedRedis;

/** Loads what opens the Redis at that address, before all rooms are opened in one turn; null for a gateway without. */
export async function loadRedis(url: string | null): Promise<OpenRedis | null> {
  if (url === null) return null;
  const { openSharedRedis } = await import('./redis.ts');
  return (context, about) => openSharedRedis(context, url, about);
}

/**
 * Listeners of the journal must be added in the same turn of the event loop: afterwards the journal brings what it has.
 * Throws a StartError for an address of Redis that is none.
 */
export function openBackend(context: BackendContext, openRedis: OpenRedis | null): Backend {
  const about = instanceInfo(context);
  if (openRedis !== null) {
    const redis = openRedis(context, about);
    const { journal, instances } = redis;
    return { journal, instances, redis, close: () => redis.close() };
  }
  const instances = new Instances({ link: null, about, atLeast: 1 });
  return { journal: new MemoryJournal(), instances, redis: null, close: () => instances.close() };
}

/** This process's report of itself to the others. */
function instanceInfo({ store, reporting: { clock } }: BackendContext): InstanceInfo {
  return {
    host: hostname(),
    pid: process.pid,
    version: VERSION,
    startedAtMs: clock.nowMs(),
    status: 'starting',
    store,
    clockAheadMs: 0,
    forgetsPurges: true,
    usesJournal: true,
  };
}
