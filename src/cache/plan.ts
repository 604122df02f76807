/**
 * Decides how a read is answered from the copies that are held. Pure. `explain` prints a Plan. Nothing else decides on
 * freshness: read-through.ts only applies `fallback` once the store has failed or is late.
 */
import type { MissReason } from '../telemetry/events.ts';
import { classOf, type StoredEntry } from './entry.ts';
import { mix32 } from './hash.ts';
import type { Maintenance } from './maintenance.ts';
import type { PurgeLog } from './purge-log.ts';
import type { Tier } from './reader.ts';
import { type CacheTtl, isCacheable, type TtlPolicy } from './ttl-policy.ts';

/**
 * - `fresh`: served as it is
 * - `stale`: served at once, while one refresh runs behind
 * - `usable-on-error`: served when the store fails or takes too long
 * - `expired`: never served; its validator may still save a transfer
 * - `purged`: never served, and no base for a conditional call either
 */
export type FreshnessState = 'fresh' | 'stale' | 'usable-on-error' | 'expired' | 'purged';

/** The freshness of an entry at one moment. */
export interface Freshness {
  readonly state: FreshnessState;
  /** How long it is still fresh; 0 or less if it is not. */
  readonly ttlMs: number;
  readonly ageMs: number;
}

/** A copy that was found in a tier, with its freshness at that moment. */
export interface CachedCopy<T = unknown> extends Freshness {
  readonly stored: StoredEntry<T>;
  readonly tier: Tier;
}

/** Freshness depends on this beside the entry and the time. */
export interface FreshnessPolicy {
  readonly ttl: Pick<TtlPolicy, 'of'>;
  readonly purges: Pick<PurgeLog, 'since'>;
}

/** By how much of itself freshness is shortened at most, so that what was filled together doesn't expire together. */
const MAX_JITTER = 0.1;

/** `keyHash` is `hash32` of the key that it is stored under. */
export function freshnessOf(
  keyHash: number,
  stored: StoredEntry,
  { ttl, purges }: FreshnessPolicy,
  nowMs: number,
): Freshness {
  const { entry, kind, tags, epoch } = stored;
  // A clock that was set back must not make an answer younger than new.
  const ageMs = Math.max(0, nowMs - entry.requestedAtMs);
  const purge = purges.since(epoch, tags);
  const classTtl = ttl.of(classOf(kind, entry));
  const leftMs = jitteredFreshMs(classTtl, jitterOf(keyHash, entry.requestedAtMs)) - ageMs;
  // A soft purge ends freshness: the entry counts as just expired, so that it is still served while it is refreshed.
  const ttlMs = purge === 'soft' ? Math.min(0, leftMs) : leftMs;
  return { state: purge === 'hard' ? 'purged' : stateAt(ttlMs, classTtl), ttlMs, ageMs };
}

/** The state of an entry that is fresh for that long; `staleMs` and `errorMs` both count from the end of freshness (C2). */
export function stateAt(ttlMs: number, { staleMs, errorMs }: CacheTtl): FreshnessState {
  if (ttlMs > 0) return 'fresh';
  if (-ttlMs < staleMs) return 'stale';
  return -ttlMs < errorMs ? 'usable-on-error' : 'expired';
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
  /** `held`: the copy that is not good enough; `fallback`: the same, if it is usable when the store fails. */
  | { readonly action: 'fetch'; readonly held: CachedCopy<T> | null; readonly fallback: CachedCopy<T> | null }
  /** There is nothing to serve, and the store must not be asked. */
  | { readonly action: 'refuse'; readonly held: CachedCopy<T> | null; readonly maintenance: Maintenance };

/** The copies that a reader may be served: its own, and the negative entry. */
export interface Held<T = unknown> {
  readonly copy: CachedCopy<T> | null;
  /** The negative entry of the reader's workspaces. */
  readonly negative: CachedCopy<T> | null;
}

/**
 * `maintenance`: set while the store must not be asked.
 *
 * A negative entry never takes the place of a good copy: the store may call a record another workspace's by mistake (C4).
 * While it is fresh the store is not asked again; if the record is truly gone, the copy was replaced (Q9).
 */
export function plan<T>({ copy, negative }: Held<T>, maintenance: Maintenance | null): Plan<T> {
  // A copy that was filled later says that the record is there for this reader after all.
  const denial = negative !== null && (copy === null || isNewer(negative, copy)) ? negative : null;
  if (copy === null || !isUsable(copy)) {
    return denial === null ? planOf(copy, copy, maintenance) : planOf(denial, copy ?? denial, maintenance);
  }
  const next = planOf(copy, copy, maintenance);
  if (denial?.state !== 'fresh') return next;
  return isServedAtOnce(copy) ? { action: 'serve', copy } : { action: 'serve-fallback', copy };
}

/** `held`: the copy that the store is asked to renew, if it is asked. */
function planOf<T>(copy: CachedCopy<T> | null, held: CachedCopy<T> | null, maintenance: Maintenance | null): Plan<T> {
  if (copy?.state === 'fresh') return { action: 'serve', copy };
  if (copy?.state === 'stale') return { action: maintenance === null ? 'serve-and-refresh' : 'serve', copy };
  const fallback = copy !== null && isUsable(copy) ? copy : null;
  if (maintenance === null) return { action: 'fetch', held, fallback };
  return fallback === null ? { action: 'refuse', held, maintenance } : { action: 'serve-fallback', copy: fallback };
}

/** Whether the reader is answered without waiting. */
export function isAtOnce({ action }: Plan): boolean {
  return action === 'serve' || action === 'serve-and-refresh';
}

export function isServedAtOnce({ state }: Freshness): boolean {
  return state === 'fresh' || state === 'stale';
}

/** Whether the copy may be served at all: at once, or when the store fails. */
export function isUsable({ state }: Freshness): boolean {
  return state !== 'purged' && state !== 'expired';
}

/**
 * The newer of two copies of one key, fresh or not: a copy must not be served once it was replaced. If both are
 * of the same millisecond and only the shared one is fresh, that is the newer.
 */
export function newerCopy<T>(local: CachedCopy<T> | null, shared: CachedCopy<T> | null): CachedCopy<T> | null {
  if (shared === null || local === null) return shared ?? local;
  const isTie = shared.ageMs === local.ageMs;
  const isReplaced = isTie ? shared.state === 'fresh' && local.state !== 'fresh' : shared.ageMs < local.ageMs;
  return isReplaced ? shared : local;
}

function isNewer(one: CachedCopy, other: CachedCopy): boolean {
  return one.stored.entry.requestedAtMs > other.stored.entry.requestedAtMs;
}

/** Why a read goes to the store. `ttl` is that of the class of the copy held, else of the request. */
export function missReasonOf(held: CachedCopy | null, ttl: CacheTtl, wasEvicted: boolean): MissReason {
  if (!isCacheable(ttl)) return 'not-cacheable';
  if (held !== null) return held.state === 'purged' ? 'purged' : 'expired';
  return wasEvicted ? 'evicted' : 'never-seen';
}
