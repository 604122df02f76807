/**
 * This process's copies of keys that are stored elsewhere, and how far they may be used (C8: what holds without Redis). Keys
 * that were not issued are cached apart from issued ones, so that made-up keys cannot push those out.
 */
import { LRUCache } from 'lru-cache';
import { atMost } from '../shares/at-most.ts';
import type { Connectivity } from '../redis/connectivity.ts';
import { SingleFlight } from '../time/single-flight.ts';
import type { ApiKey, KeyHash } from './key.ts';

export interface KeyCacheOptions {
  /** The key with that hash, null if none was issued. */
  readonly ask: (hash: KeyHash) => Promise<ApiKey | null>;
  /** Milliseconds of a clock that never goes back. */
  readonly nowMs: () => number;
  /** A copy is never used once it is older (KEY_GRACE); one of exactly that age still is. */
  readonly graceMs: number;
}

interface Copy {
  /** Null: not issued. */
  readonly key: ApiKey | null;
  /** When the source was asked, not when it answered. */
  readonly confirmedAtMs: number;
  readonly generation: number;
  confirmAtMs: number;
}

/** A key in use is confirmed in the background once its last confirmation is so old. */
const CONFIRM_EVERY_MS = 30_000;
/** How long a key that was not issued is refused without asking. */
const UNKNOWN_MS = 5000;
/** Pause before a background confirmation that failed is repeated. */
const RETRY_MS = 1000;
const MAX_KEYS = 10_000;

export class KeyCache {
  readonly #options: KeyCacheOptions;
  readonly #issued = new LRUCache<KeyHash, Copy>(atMost(MAX_KEYS));
  readonly #unknown = new LRUCache<KeyHash, Copy>(atMost(MAX_KEYS));
  readonly #loads = new SingleFlight<ApiKey | null>();
  /** Copies of older generations may be out of date. */
  #generation = 0;

  constructor(options: KeyCacheOptions) {
    this.#options = options;
  }

  /**
   * The key, null if it was not issued; undefined if the source must be asked. While `alone`, a key is used that the
   * source confirmed within the grace.
   */
  get(hash: KeyHash, connectivity: Connectivity): ApiKey | null | undefined {
    if (connectivity === 'deaf') return undefined;
    const { graceMs } = this.#options;
    const isHearing = connectivity === 'hearing';
    const copy = this.#issued.get(hash);
    if (copy !== undefined) {
      if (!this.#isUsable(copy, graceMs)) return undefined;
      if (isHearing) this.#confirmSoon(hash, copy);
      return copy.key;
    }
    const unknown = isHearing ? this.#unknown.get(hash) : undefined;
    return unknown !== undefined && this.#isUsable(unknown, UNKNOWN_MS) ? null : undefined;
  }

  /** Asks the source. Callers at the same time share one look-up. Rejects as the source does. */
  load(hash: KeyHash): Promise<ApiKey | null> {
    return this.#loads.join(hash, async (isCurrent) => {
      const askedAtMs = this.#options.nowMs();
      const key = await this.#options.ask(hash);
      // If the key changed meanwhile, the answer may be from before: its waiters asked before too, nobody else gets it.
      if (isCurrent()) this.#set(hash, key, askedAtMs);
      return key;
    });
  }

  /** The copy of an issued key if it was confirmed within the grace: for a caller that asked the source in vain. */
  lastConfirmed(hash: KeyHash): ApiKey | null {
    const copy = this.#issued.get(hash);
    return copy !== undefined && this.#ageMs(copy) <= this.#options.graceMs ? copy.key : null;
  }

  /** Drops the copy of a key that has changed: it is not used any more, not even within the grace. */
  delete(hash: KeyHash): void {
    this.#issued.delete(hash);
    this.#unknown.delete(hash);
    this.#loads.forget(hash);
  }

  /** After missed changes: each key is confirmed before it is used again, unless the source was asked in vain. */
  markStale(): void {
    this.#generation += 1;
    this.#loads.forgetAll();
  }

  #set(hash: KeyHash, key: ApiKey | null, confirmedAtMs: number): void {
    const confirmAtMs = confirmedAtMs + CONFIRM_EVERY_MS;
    this.delete(hash);
    const copies = key === null ? this.#unknown : this.#issued;
    copies.set(hash, { key, confirmedAtMs, generation: this.#generation, confirmAtMs });
  }

  /** A failure is no news: the grace bounds how long that may go on. */
  #confirmSoon(hash: KeyHash, copy: Copy): void {
    const nowMs = this.#options.nowMs();
    if (nowMs < copy.confirmAtMs) return;
    copy.confirmAtMs = nowMs + RETRY_MS;
    this.load(hash).catch(() => undefined);
  }

  #isUsable(copy: Copy, forMs: number): boolean {
    return copy.generation === this.#generation && this.#ageMs(copy) <= forMs;
  }

  #ageMs({ confirmedAtMs }: Copy): number {
    return this.#options.nowMs() - confirmedAtMs;
  }
}
