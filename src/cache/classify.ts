/** What an entry is good for at a given age. Pure. */
import type { CacheTimes } from './times.ts';

/**
 * - `fresh`: served as it is
 * - `stale`: served at once, while one refresh runs behind
 * - `usable-on-error`: served when the store fails or takes too long
 * - `gone`: never served; its validator may still save a transfer
 */
export type Usability = 'fresh' | 'stale' | 'usable-on-error' | 'gone';

export interface Classification {
  readonly usability: Usability;
  /** How long it is still fresh; 0 or less when it is not. */
  readonly ttlMs: number;
}

/** By how much of itself freshness is shortened at most, so that what was filled together doesn't expire together. */
const MAX_JITTER = 0.1;

/**
 * `jitter` is the entry's own number in [0, 1). `isOutdated` says that a soft purge has ended its freshness, however
 * young it is; it then counts as just expired, so that it is still served while it is refreshed.
 */
export function classify(
  ageMs: number,
  times: CacheTimes,
  { jitter, isOutdated }: { readonly jitter: number; readonly isOutdated: boolean },
): Classification {
  const freshMs = jitteredFreshMs(times, jitter);
  const ttlMs = isOutdated ? Math.min(0, freshMs - ageMs) : freshMs - ageMs;
  return { usability: usabilityOf(ttlMs, times), ttlMs };
}

/** How long an answer is fresh whose own number that is. */
export function jitteredFreshMs({ freshMs }: Pick<CacheTimes, 'freshMs'>, jitter: number): number {
  return Math.floor(freshMs * (1 - MAX_JITTER * jitter));
}

function usabilityOf(ttlMs: number, { staleMs, errorMs }: CacheTimes): Usability {
  if (ttlMs > 0) return 'fresh';
  if (-ttlMs < staleMs) return 'stale';
  return -ttlMs < errorMs ? 'usable-on-error' : 'gone';
}

/**
 * A number in [0, 1) that depends on the entry alone, so that every process computes the same: FNV-1a over the key and
 * the time of the fill, then MurmurHash3's finalizer, because FNV's high bits hardly differ for strings that differ
 * only at their ends.
 */
export function jitterOf(key: string, filledAtMs: number): number {
  return hash32(`${key}@${filledAtMs}`) / 2 ** 32;
}

/** A 32-bit hash of a string, as an unsigned integer. Not cryptographic. */
export function hash32(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
