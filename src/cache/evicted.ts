/**
 * The entries that were evicted last: how much more memory would have kept each until it was read again. A cache that evicts
 * the least recently used holds, with X bytes more, the same entries and, of those that were evicted, the last X bytes that
 * were not stored again (Mattson et al., 1970: the inclusion property). Only the keys with certain hashes are followed, and
 * each stands for `SAMPLE` (Waldspurger et al., 2015: SHARDS). While a holder floods the cache, its copies go before older
 * ones of others (fair-lru.ts): then the figures are an estimate.
 */

/** One key in so many is followed. */
export const SAMPLE = 8;
/** Less than a megabyte; they stand for 130,000 entries. */
const MAX_FOLLOWED = 16_384;

export interface Evicted {
  readonly bytes: number;
  /** When the copy was asked for, Unix milliseconds. */
  readonly requestedAtMs: number;
}

export class EvictedEntries {
  /** By the hash of the key; the last evicted at the end. */
  readonly #entries = new Map<number, Evicted>();

  add(keyHash: number, entry: Evicted): void {
    if (keyHash % SAMPLE !== 0) return;
    this.#entries.delete(keyHash);
    this.#entries.set(keyHash, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > MAX_FOLLOWED && oldest !== undefined) this.#entries.delete(oldest);
  }

  /** To be called once a copy of the key is stored again, or purged. */
  delete(keyHash: number): void {
    this.#entries.delete(keyHash);
  }

  /** The entry, and how many bytes more would have kept it. Null if its key is not followed, or it left too long ago. */
  take(keyHash: number): (Evicted & { readonly moreBytes: number }) | null {
    const found = this.#entries.get(keyHash);
    if (found === undefined) return null;
    let bytes = 0;
    let isReached = false;
    for (const [hash, entry] of this.#entries) {
      isReached ||= hash === keyHash;
      if (isReached) bytes += entry.bytes;
    }
    this.#entries.delete(keyHash);
    return { ...found, moreBytes: bytes * SAMPLE };
  }
}
