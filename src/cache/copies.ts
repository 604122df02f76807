/** The copies that the tiers of this process have of a request, with their freshness. */
import type { Moved } from '../journal/journal.ts';
import type { Clock } from '../time/clock.ts';
import type { Timers } from '../time/timers.ts';
import type { MaintenanceWatch } from '../upstream/maintenance.ts';
import type { Fetch } from '../upstream/store.ts';
import { othersThan, type WorkspaceSet } from './address.ts';
import { isNewer, isOfKind, type StoredEntry } from './entry.ts';
import type { Changes } from './changes.ts';
import type { CacheListener } from './events.ts';
import type { MemoryTier } from './memory-tier.ts';
import { type CachedCopy, type FreshFor, freshnessOf, type FreshnessPolicy } from './plan.ts';
import type { PurgeLog } from './purge-log.ts';
import type { Reader, Tier } from './reader.ts';
import type { CacheRequest } from './request.ts';
import type { SharedCache } from './shared-cache.ts';
import type { TtlPolicy } from './ttl-policy.ts';

/** The store, and when it may be called. */
export interface StoreCalls {
  readonly fetch: Fetch;
  /** Whether it may be called at once, and nobody waits for it. */
  readonly hasRoom: () => boolean;
  /** While it is on, no call is begun. */
  readonly maintenance: MaintenanceWatch;
  /** How long a flight may take, the wait for another process included; longer than `upstream.timeout`. */
  readonly maxWaitMs: number;
}

/** The parts that the cache is made of. */
export interface ReadThroughParts {
  readonly store: StoreCalls;
  readonly memory: MemoryTier;
  readonly sharedCache: SharedCache;
  /** Ends the copies in every process, by the journal. Resolves once it is in there. */
  readonly endEverywhere: (moved: Moved) => Promise<unknown>;
  readonly ttl: Pick<TtlPolicy, 'of'>;
  readonly purges: PurgeLog;
  readonly changes: Pick<Changes, 'lastSeenOf' | 'compare' | 'note'>;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly events: CacheListener;
}

/** For whom copies are looked for. */
export interface CopiesFor<T> {
  readonly request: CacheRequest<T>;
  readonly set: WorkspaceSet;
  readonly reader: Pick<Reader, 'keyId'>;
}

/** The last answer that memory has for the set. */
export function copyInMemory<T>(
  { request, set, reader }: CopiesFor<T>,
  parts: Pick<ReadThroughParts, 'memory' | 'ttl' | 'purges' | 'clock'>,
): CachedCopy<T> | null {
  return assess({ request, set }, parts.memory.find(request, { set, keyId: reader.keyId }), 'memory', parts);
}

/** An answer that was found in the shared cache. Keeps it in memory if it is newer than what is there. */
export function adopt<T>(
  { request, set, reader }: CopiesFor<T>,
  answer: StoredEntry,
  parts: Pick<ReadThroughParts, 'memory' | 'ttl' | 'purges' | 'clock'>,
): CachedCopy<T> | null {
  const { memory, clock } = parts;
  const keptFor = { set, keyId: reader.keyId };
  if (isNewer(answer, memory.find(request, keptFor), clock.nowMs())) {
    // Redis had no copy any more when it was filed, so no process was notified of an end.
    if (answer.entry.answer.kind === 'absent') endOthers({ request, set }, answer, memory);
    memory.set(request.key, answer, keptFor);
  }
  return assess({ request, set }, answer, 'redis', parts);
}

/**
 * Ends in memory what the answer speaks against (C4: nothing outlives what the store says): the copies of the other workspaces
 * of the set that was asked for; those of all of them, if it is that there is none.
 */
export function endOthers(
  { request: { key, kind }, set }: Pick<CopiesFor<unknown>, 'request' | 'set'>,
  { owner, entry }: StoredEntry,
  memory: MemoryTier,
): void {
  const isFound = entry.answer.kind === 'found';
  const ended = isFound ? othersThan(owner, set) : kind === 'list' ? [] : set.ids;
  memory.end(key, ended, entry.requestedAtMs);
}

/** The entry with its freshness now; null for one that is no answer to the request. */
export function assess<T>(
  of: FreshFor & { readonly request: CacheRequest<T> },
  stored: StoredEntry | null,
  tier: Tier,
  policy: FreshnessPolicy & { readonly clock: Clock },
): CachedCopy<T> | null {
  if (stored === null || !isOfKind(of.request, stored)) return null;
  return { stored, tier, ...freshnessOf(of, stored, policy, policy.clock.nowMs()) };
}

/** Undefined if the shared cache, or the journal, fails: that is reported, and never a reader's trouble. */
export async function attempt<R>(
  events: CacheListener,
  operation: string,
  run: () => Promise<R>,
): Promise<R | undefined> {
  try {
    return await run();
  } catch (error) {
    events.onSharedCacheFailed?.({ operation, error });
    return undefined;
  }
}
