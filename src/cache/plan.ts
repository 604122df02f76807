/**
 * Decides how a read is answered from the copies that were found: fresh ones are served, stale ones too while one refresh
 * runs, older ones if the store fails. No I/O; it only remembers which entries were seen to be from the future. `explain`
 * prints a Plan. read-through.ts only applies `fallback` once the store has failed or is late; a waiter takes what another
 * process just brought (flights.ts).
 */
import type { MissReason } from './events.ts';
import { ageOf, classOf, sinceFutureMs, type StoredEntry } from './entry.ts';
import { setOfOwner, type WorkspaceSet } from './address.ts';
import { type CacheRequest, mix32 } from './request.ts';
import type { Maintenance } from '../journal/journal.ts';
import type { PurgeLog } from './purge-log.ts';
import type { Tier } from './reader.ts';
import { type CacheTtl, isCacheable, type TtlPolicy } from './ttl-policy.ts';

/**
 * `fresh` is RFC 9111's word. The others divide what RFC 9111 calls stale by what it is still good for:
 * - `fresh`: served as it is
 * - `stale`: served at once, while one refresh runs in the background
 * - `changed`: renewed before it is served, and served if that fails or may not be done (C11: a part is never older than the
 *   change that its reader has seen)
 * - `usable-on-error`: served when the store fails or takes too long
 * - `unusable`: never served; its validator may still save a transfer
 * - `purged`: never served, and no base for a conditional call either
 */
export type FreshnessState = 'fresh' | 'stale' | 'changed' | 'usable-on-error' | 'unusable' | 'purged';

export interface Freshness {
  readonly state: FreshnessState;
  readonly ttlMs: number;
  /** Null if it is unknown: the copy is from the future (C9: its age is unknown). */
  readonly ageMs: number | null;
}

/** A copy that was found in a tier, with its freshness at that moment. */
export interface CachedCopy<T = unknown> extends Freshness {
  readonly stored: StoredEntry<T>;
  readonly tier: Tier;
}

/** Freshness depends on this beside the entry and the time. */
export interface FreshnessPolicy {
  readonly ttl: Pick<TtlPolicy, 'of'>;
  readonly purges: Pick<PurgeLog, 'since' | 'changeOf'>;
}

/** By how much of itself freshness is shortened at most, so that what was fetched together doesn't become stale together. */
export const MAX_JITTER = 0.1;

/** For whom a copy's freshness is asked. */
export interface FreshFor {
  readonly request: Pick<CacheRequest<unknown>, 'keyHash'>;
  /** A negative entry goes by the changes of these workspaces; null if it is not known who reads. */
  readonly set: Pick<WorkspaceSet, 'ids'> | null;
}

export function freshnessOf(
  { request: { keyHash }, set }: FreshFor,
  stored: StoredEntry,
  { ttl, purges }: FreshnessPolicy,
  nowMs: number,
): Freshness {
  const { entry, kind, tags, position } = stored;
  const purge = purges.since(position, tags);
  const change = purges.changeOf(stored, nowMs, set?.ids);
  const classTtl = ttl.of(classOf(kind, entry));
  const ageMs = ageOf(entry, nowMs);
  const leftMs =
    ageMs === null
      ? 0 - sinceFutureMs(entry, nowMs)
      : jitteredFreshMs(classTtl, jitterOf(keyHash, entry.requestedAtMs)) - ageMs;
  // A soft purge ends freshness: the entry counts as just stale, so that it is still served while it is refreshed.
  const ttlMs = purge === 'soft' || change !== null ? Math.min(0, leftMs) : leftMs;
  if (purge === 'hard' || change === 'hard') return { state: 'purged', ttlMs, ageMs };
  const state = stateAt(leftMs, classTtl);
  if (change === 'soft' && state !== 'unusable') return { state: 'changed', ttlMs, ageMs };
  return { state: purge === 'soft' ? stateAt(ttlMs, classTtl) : state, ttlMs, ageMs };
}

/**
 * The state of an entry that is fresh for that long; `staleMs` and `errorMs` both count from the end of freshness (C2: the
 * times in force apply to stored copies).
 */
export function stateAt(ttlMs: number, { staleMs, errorMs }: CacheTtl): FreshnessState {
  if (ttlMs > 0) return 'fresh';
  if (-ttlMs < staleMs) return 'stale';
  return -ttlMs < errorMs ? 'usable-on-error' : 'unusable';
}

/** How long an answer with that jitter, a number in [0, 1), is fresh. */
export function jitteredFreshMs({ freshMs }: Pick<CacheTtl, 'freshMs'>, jitter: number): number {
  return Math.floor(freshMs * (1 - MAX_JITTER * jitter));
}

/**
 * A number in [0, 1) that depends on the entry alone, so that every process computes the same. `keyHash` is `hash32` of
 * its key; `requestedAtMs` is Unix milliseconds.
 */
export function jitterOf(keyHash: number, requestedAtMs: number): number {
  const high = Math.floor(requestedAtMs / 2 ** 32);
  return mix32(mix32(keyHash ^ requestedAtMs) ^ high) / 2 ** 32;
}

export type Plan<T = unknown> =
  | { readonly action: 'serve' | 'serve-and-refresh' | 'serve-fallback'; readonly copy: CachedCopy<T> }
  /** `previous`: the copy that is not good enough; `fallback`: the same, if it is usable when the store fails. */
  | { readonly action: 'fetch'; readonly previous: CachedCopy<T> | null; readonly fallback: CachedCopy<T> | null }
  /** There is nothing to serve, and the store must not be asked. */
  | { readonly action: 'refuse'; readonly previous: CachedCopy<T> | null; readonly maintenance: Maintenance };

/**
 * The plan of a read by the last answer that there is for its reader: a copy, or a negative entry; null for none (C4: nothing
 * outlives what the store says, so nothing older counts). `maintenance`: set while the store must not be asked.
 */
export function plan<T>(copy: CachedCopy<T> | null, maintenance: Maintenance | null): Plan<T> {
  if (copy?.state === 'fresh') return { action: 'serve', copy };
  if (copy?.state === 'stale') return { action: maintenance === null ? 'serve-and-refresh' : 'serve', copy };
  const fallback = copy !== null && isUsable(copy) ? copy : null;
  if (maintenance === null) return { action: 'fetch', previous: copy, fallback };
  if (fallback === null) return { action: 'refuse', previous: copy, maintenance };
  return { action: 'serve-fallback', copy: fallback };
}

/** Whether the reader is answered without waiting for the shared cache or the store. */
export function isAtOnce({ action }: Plan): boolean {
  return action === 'serve' || action === 'serve-and-refresh';
}

export function isServedAtOnce({ state }: Freshness): boolean {
  return state === 'fresh' || state === 'stale';
}

/** Whether the copy may be served at all: at once, or when the store fails. */
export function isUsable({ state }: Freshness): boolean {
  return state !== 'purged' && state !== 'unusable';
}

/**
 * The newer of two copies of one key, fresh or not: a copy must not be served once it was replaced. If both are
 * of the same millisecond and only the shared one is fresh, that is the newer. It goes by the ages that were assessed, not by
 * `isNewer` (entry.ts), so that the plan and what it was made from are of one moment.
 */
export function newerCopy<T>(local: CachedCopy<T> | null, shared: CachedCopy<T> | null): CachedCopy<T> | null {
  if (shared === null || local === null) return shared ?? local;
  const [sharedAgeMs, localAgeMs] = [shared.ageMs ?? Infinity, local.ageMs ?? Infinity];
  const isTie = sharedAgeMs === localAgeMs;
  const isReplaced = isTie ? shared.state === 'fresh' && local.state !== 'fresh' : sharedAgeMs < localAgeMs;
  return isReplaced ? shared : local;
}

/**
 * The readers that a call to the store is made for share one flight and one lease (C10: a cold record costs a call per set of
 * workspaces). A renewal of a copy is for all who may see it, so it is the call of the copy's workspace. Any other call is
 * the reader's own set's: a reader who gets no copy must not notice what readers of other sets do (K7a: a foreign record looks
 * like none).
 */
export function flightSet(readers: WorkspaceSet, previous: CachedCopy | null): WorkspaceSet {
  return previous !== null && isUsable(previous) ? setOfOwner(previous.stored.owner, readers) : readers;
}

/**
 * Why a read goes to the store. `ttl` is that of the class of the previous copy, else of the request; `dropped`: why there is
 * no copy any more, if that is known.
 */
export function missReasonOf(
  previous: CachedCopy | null,
  ttl: CacheTtl,
  dropped: 'evicted' | 'purged' | null,
): MissReason {
  if (!isCacheable(ttl)) return 'not-cacheable';
  if (previous !== null) {
    return previous.state === 'purged' || previous.state === 'changed' ? previous.state : 'expired';
  }
  return dropped ?? 'never-seen';
}
