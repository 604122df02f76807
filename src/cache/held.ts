/** A copy that a read has found, and what it is good for. Pure. */
import type { CacheRead } from './reader.ts';
import type { Judgement, StoredEntry } from './stored.ts';

export type Tier = NonNullable<CacheRead<unknown>['tier']>;

/** A copy that was found, and what it was good for then. */
export interface Held<T> extends Judgement {
  readonly stored: StoredEntry<T>;
  readonly tier: Tier;
}

export function isServedAtOnce({ usability }: Judgement): boolean {
  return usability === 'fresh' || usability === 'stale';
}

export function isServedOnError({ usability }: Judgement): boolean {
  return usability !== 'purged' && usability !== 'gone';
}

/**
 * The newer one, whatever it is worth: what has replaced a copy must not be passed over for it. Of two of the same
 * millisecond that differ in what they are worth, a fresh shared one is the newer.
 */
export function newer<T>(local: Held<T> | null, shared: Held<T> | null): Held<T> | null {
  if (shared === null || local === null) return shared ?? local;
  return isReplacedBy(local, shared) ? shared : local;
}

type Worth = Pick<Judgement, 'ageMs' | 'usability'>;

/** Whether the shared copy is the newer one. */
export function isReplacedBy(local: Worth, shared: Worth): boolean {
  if (shared.ageMs !== local.ageMs) return shared.ageMs < local.ageMs;
  return shared.usability === 'fresh' && local.usability !== 'fresh';
}
