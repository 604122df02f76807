/**
 * Often-read copies are renewed before they are stale, so that their readers get none that is: by a read in the last tenth of
 * the copy's freshness, if it was read so often that ten reads come in the time that it is fresh, and the store has room. It
 * is an ordinary renewal in all else: one call for all processes, which no reader waits for.
 *
 * Reads are counted per process and copy. A copy that several processes read is hot for each by its own reads; what another
 * has renewed comes with the next look, and begins to be counted anew.
 */
import { classOf, type Entry, type StoredEntry } from './entry.ts';
import type { StoreCalls } from './copies.ts';
import type { CachedCopy } from './plan.ts';
import type { TtlPolicy } from './ttl-policy.ts';

/** The part of a copy that decides. */
interface ReadCopy extends Pick<CachedCopy, 'ttlMs'> {
  readonly stored: Pick<StoredEntry, 'entry' | 'kind'>;
}

export interface EarlyRenewalParts {
  readonly ttl: Pick<TtlPolicy, 'of'>;
  readonly store: Pick<StoreCalls, 'hasRoom'>;
}

/** The share of its freshness before whose end a copy is renewed. */
export const EARLY_SHARE = 1 / 10;
/** Only a copy that is read so often while it is fresh is renewed early. */
export const HOT_READS = 10;

export class EarlyRenewal {
  readonly #options: EarlyRenewalParts;
  /** By copy: how often it was read here. */
  readonly #reads = new WeakMap<Entry<unknown>, number>();

  constructor(options: EarlyRenewalParts) {
    this.#options = options;
  }

  /** How often the copy was read here. */
  readsOf({ stored }: ReadCopy): number {
    return this.#reads.get(stored.entry) ?? 0;
  }

  /** Counts a read that a fresh copy answers. Returns whether the copy is to be renewed now. */
  isDue({ stored, ttlMs }: ReadCopy): boolean {
    const { entry, kind } = stored;
    const reads = (this.#reads.get(entry) ?? 0) + 1;
    this.#reads.set(entry, reads);
    if (reads < HOT_READS * (1 - EARLY_SHARE)) return false;
    const { freshMs } = this.#options.ttl.of(classOf(kind, entry));
    return ttlMs > 0 && ttlMs <= freshMs * EARLY_SHARE && this.#options.store.hasRoom();
  }
}
