/** Finds the copies of a request: in memory first, then in the shared cache. */
import type { Clock } from '../time/clock.ts';
import type { CacheListener } from './events.ts';
import type { Timers } from '../time/timers.ts';
import type { Fetch } from '../upstream/store.ts';
import type { StoredEntry } from './entry.ts';
import type { MaintenanceWatch } from '../upstream/maintenance.ts';
import type { MemoryTier } from './memory-tier.ts';
import { ageOf, type CachedCopy, freshnessOf, type FreshnessPolicy, newerCopy, type VisibleCopies } from './plan.ts';
import type { PurgeLog } from './purge-log.ts';
import { isOfKind, isVisible, type Reader, type Tier, workspaceSetOf } from './reader.ts';
import type { CacheRequest } from './request.ts';
import { NOTHING, type Shared, type SharedCache } from './shared-cache.ts';
import type { TtlPolicy } from './ttl-policy.ts';

/** The parts that the cache is made of. */
export interface ReadThroughParts {
  readonly fetch: Fetch;
  readonly memory: MemoryTier;
  readonly sharedCache: SharedCache;
  readonly ttl: Pick<TtlPolicy, 'of'>;
  readonly purges: PurgeLog;
  /** While it is on, no call to the store is begun. */
  readonly maintenance: MaintenanceWatch;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly events: CacheListener;
  /** How long a flight may take, the wait for another process included; longer than `upstream.timeout`. */
  readonly maxWaitMs: number;
}

/** The copies that the tiers hold for a request, before it is decided which of them the reader may see. */
export interface FoundCopies<T> {
  readonly newest: CachedCopy<T> | null;
  /**
   * When the last answer was fetched, if the reader gets no copy of it: an older copy was replaced by it. Unix milliseconds.
   */
  readonly replacedAtMs: number | null;
  /** The negative entry of the reader's workspaces. */
  readonly negative: CachedCopy<T> | null;
}

export class Copies {
  readonly #options: ReadThroughParts;
  /** Readers of one key who miss at once look it up together. */
  readonly #lookUps = new Map<string, Promise<Shared>>();

  constructor(options: ReadThroughParts) {
    this.#options = options;
  }

  inMemory<T>(request: CacheRequest<T>, reader: Reader): FoundCopies<T> {
    const { memory } = this.#options;
    return {
      newest: assess(request, memory.get(request, reader), 'memory', this.#options),
      replacedAtMs: null,
      negative: assess(request, memory.negative(request.key, reader), 'memory', this.#options),
    };
  }

  /** Copies into memory everything that it finds. Finds nothing if the shared cache does not answer. */
  async inSharedCache<T>(request: CacheRequest<T>, reader: Reader): Promise<FoundCopies<T>> {
    const name = `${request.key} ${workspaceSetOf(reader)}`;
    let lookUp = this.#lookUps.get(name);
    if (lookUp === undefined) {
      lookUp = this.#lookUp(request.key, reader).finally(() => this.#lookUps.delete(name));
      this.#lookUps.set(name, lookUp);
    }
    // Several readers may wait for it, each for as long as it still may (R6: a request waits for Redis 250 ms in all).
    const shared = reader.redisWait === undefined ? lookUp : reader.redisWait.within(lookUp).catch(() => NOTHING);
    return this.adopt(request, reader, await shared);
  }

  /** Copies into memory everything found in the shared cache that is newer than the copy there. */
  adopt<T>(request: CacheRequest<T>, reader: Reader, { entry, replacedAtMs, negative }: Shared): FoundCopies<T> {
    const { memory, clock } = this.#options;
    const { key } = request;
    const nowMs = clock.nowMs();
    if (entry !== null && isNewer(entry, memory.peek(key) ?? null, nowMs)) memory.set(key, entry, reader);
    if (negative !== null && isNewer(negative, memory.negative(key, reader), nowMs)) {
      memory.setNegative(key, reader, negative);
    }
    return {
      newest: assess(request, entry, 'redis', this.#options),
      replacedAtMs,
      negative: assess(request, negative, 'redis', this.#options),
    };
  }

  async #lookUp(key: string, reader: Reader): Promise<Shared> {
    try {
      return await this.#options.sharedCache.lookUp(key, reader);
    } catch (error) {
      this.#options.events.onSharedCacheFailed?.({ operation: 'get', error });
      return NOTHING;
    }
  }
}

/** The entry with its freshness now; null for one that is no answer to the request. */
export function assess<T>(
  request: CacheRequest<T>,
  stored: StoredEntry | null,
  tier: Tier,
  policy: FreshnessPolicy & { readonly clock: Clock },
): CachedCopy<T> | null {
  if (stored === null || !isOfKind(request, stored)) return null;
  return { stored, tier, ...freshnessOf(request.keyHash, stored, policy, policy.clock.nowMs()) };
}

/**
 * The copies that the reader may be served. Called on every read, hits included (C4: who may see a record is decided per
 * request; K7: nobody else learns of it).
 */
export function visibleCopies<T>(
  found: FoundCopies<T>,
  request: CacheRequest<T>,
  reader: Pick<Reader, 'workspaceIds'>,
): VisibleCopies<T> {
  const { newest, negative } = found;
  const isOwn = newest !== null && isVisible(request, newest.stored, reader);
  return { copy: isOwn ? newest : null, negative };
}

export function newerOf<T>(local: FoundCopies<T>, shared: FoundCopies<T>): FoundCopies<T> {
  const { replacedAtMs } = shared;
  const newest = newerCopy(local.newest, shared.newest);
  const isReplaced = newest !== null && replacedAtMs !== null && newest.stored.entry.requestedAtMs < replacedAtMs;
  return { newest: isReplaced ? null : newest, replacedAtMs, negative: newerCopy(local.negative, shared.negative) };
}

/** Whether its fetch began later. Any entry beats none; one from the future beats no other (C9: its age is unknown). */
export function isNewer(one: StoredEntry, other: StoredEntry | null, nowMs: number): boolean {
  if (other === null) return true;
  const [oneAgeMs, otherAgeMs] = [one, other].map(({ entry }) => ageOf(entry, nowMs));
  if (oneAgeMs === null) return false;
  return otherAgeMs === null || one.entry.requestedAtMs > other.entry.requestedAtMs;
}
