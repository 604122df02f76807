/**
 * What this process remembers of keys that are kept elsewhere, known and unknown ones, and how far that can be trusted.
 * Pure but for its state: the time and the trust are handed in.
 */
import { LRUCache } from 'lru-cache';
import type { ApiKey, KeyHash } from './key.ts';

/**
 * - `heard`: every change is heard of, so what is remembered holds
 * - `deaf`: changes may be missed although the source can be asked, so nothing is used without asking
 * - `offline`: the source can't be asked; what it has confirmed lately is the best that there is
 */
export type Trust = 'heard' | 'deaf' | 'offline';

export type Recollection =
  /** `isDue`: it is to be confirmed again behind the caller's back. */
  | { readonly kind: 'key'; readonly key: ApiKey; readonly isDue: boolean }
  | { readonly kind: 'none' }
  /** The source must be asked. */
  | { readonly kind: 'unsure' };

export interface KnownKeysOptions {
  /** A key in use is confirmed again when its last confirmation is so old. */
  readonly confirmEveryMs: number;
  /** Used without asking until then, where changes are heard of. */
  readonly trustMs: number;
  /** Never used beyond, whatever happens. */
  readonly graceMs: number;
  /** How long an unknown key stays unknown without asking. */
  readonly unknownMs: number;
  readonly maxKnown?: number;
  readonly maxUnknown?: number;
}

interface Known {
  readonly key: ApiKey;
  readonly confirmedAtMs: number;
  readonly epoch: number;
  dueAtMs: number;
}

interface Unknown {
  readonly confirmedAtMs: number;
  readonly epoch: number;
}

const MAX_KEYS = 10_000;
/** A confirmation that came to nothing is tried again after this time. */
const RETRY_MS = 1000;

/** Times are Unix milliseconds of a clock that never goes back. */
export class KnownKeys {
  readonly #options: KnownKeysOptions;
  readonly #known: LRUCache<KeyHash, Known>;
  /** Apart from the known ones, so that made-up keys can't push those out. */
  readonly #unknown: LRUCache<KeyHash, Unknown>;
  #epoch = 0;
  /** Older epochs hold nothing that can be used without having asked. */
  #oldestTrusted = 0;

  constructor(options: KnownKeysOptions) {
    this.#options = options;
    this.#known = new LRUCache({ max: options.maxKnown ?? MAX_KEYS });
    this.#unknown = new LRUCache({ max: options.maxUnknown ?? MAX_KEYS });
  }

  /** What can be said of the hash without asking. A key that is due is due once, until it is remembered again. */
  recall(hash: KeyHash, nowMs: number, trust: Trust): Recollection {
    const known = this.#known.get(hash);
    if (known === undefined) {
      const isUnknown = trust === 'heard' && this.#isStillUnknown(this.#unknown.get(hash), nowMs);
      return isUnknown ? { kind: 'none' } : { kind: 'unsure' };
    }
    if (!this.#holds(known, nowMs, trust)) return { kind: 'unsure' };
    const isDue = trust === 'heard' && nowMs >= known.dueAtMs;
    if (isDue) known.dueAtMs = nowMs + RETRY_MS;
    return { kind: 'key', key: known.key, isDue };
  }

  /** The key where it was confirmed within the grace: for when asking has failed. */
  withinGrace(hash: KeyHash, nowMs: number): ApiKey | null {
    const known = this.#known.get(hash);
    return known !== undefined && nowMs - known.confirmedAtMs <= this.#options.graceMs ? known.key : null;
  }

  /** Whether a key with that hash was ever confirmed, however long ago. */
  has(hash: KeyHash): boolean {
    return this.#known.has(hash);
  }

  /** `confirmedAtMs` is when the source was asked, not when it answered. */
  remember(hash: KeyHash, key: ApiKey | null, confirmedAtMs: number): void {
    this.forget(hash);
    const epoch = this.#epoch;
    if (key === null) this.#unknown.set(hash, { confirmedAtMs, epoch });
    else this.#known.set(hash, { key, confirmedAtMs, epoch, dueAtMs: confirmedAtMs + this.#options.confirmEveryMs });
  }

  /** Of a key that has changed, nothing may be used any more, not even within the grace. */
  forget(hash: KeyHash): void {
    this.#known.delete(hash);
    this.#unknown.delete(hash);
  }

  /** From now on everything must be confirmed before it is used, but for when the source can't be asked. */
  doubtAll(): void {
    this.#epoch += 1;
  }

  /**
   * From now on nothing is used that was not asked for again. What is known already is of use only where that was tried
   * and came to nothing, within the grace.
   */
  distrustAll(): void {
    this.#epoch += 1;
    this.#oldestTrusted = this.#epoch;
  }

  #holds(known: Known, nowMs: number, trust: Trust): boolean {
    const ageMs = nowMs - known.confirmedAtMs;
    if (ageMs > this.#options.graceMs || known.epoch < this.#oldestTrusted) return false;
    if (trust === 'offline') return true;
    return trust === 'heard' && known.epoch === this.#epoch && ageMs <= this.#options.trustMs;
  }

  #isStillUnknown(unknown: Unknown | undefined, nowMs: number): boolean {
    if (unknown === undefined || unknown.epoch !== this.#epoch) return false;
    return nowMs - unknown.confirmedAtMs <= this.#options.unknownMs;
  }
}
