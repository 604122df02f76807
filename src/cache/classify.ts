/** What an entry is good for at a given age. Pure. */
import { mix32 } from './hash.ts';
import type { CacheTtl } from './ttl-policy.ts';

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
  times: CacheTtl,
  { jitter, isOutdated }: { readonly jitter: number; readonly isOutdated: boolean },
): Classification {
  const freshMs = jitteredFreshMs(times, jitter);
  const ttlMs = isOutdated ? Math.min(0, freshMs - ageMs) : freshMs - ageMs;
  return { usability: usabilityOf(ttlMs, times), ttlMs };
}

/** How long an answer is fresh whose own number that is. */
export function jitteredFreshMs({ freshMs }: Pick<CacheTtl, 'freshMs'>, jitter: number): number {
  return Math.floor(freshMs * (1 - MAX_JITTER * jitter));
}

function usabilityOf(ttlMs: number, { staleMs, errorMs }: CacheTtl): Usability {
  if (ttlMs > 0) return 'fresh';
  if (-ttlMs < staleMs) return 'stale';
  return -ttlMs < errorMs ? 'usable-on-error' : 'gone';
}

/**
 * A number in [0, 1) that depends on the entry alone, so that every process computes the same. `keyHash` is `hash32` of
 * its key; `filledAtMs` is Unix milliseconds.
 */
export function jitterOf(keyHash: number, filledAtMs: number): number {
  const high = Math.floor(filledAtMs / 2 ** 32);
  return mix32(mix32(keyHash ^ filledAtMs) ^ high) / 2 ** 32;
}
