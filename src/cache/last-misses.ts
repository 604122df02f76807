/**
 * Why the last read of a key missed in this process, and when. A table of fixed size, by the hash of
 * the key; a key that comes to another's place takes it over, so that the lately missed ones are known and no traffic
 * makes it grow.
 */
import { hash32 } from './hash.ts';
import type { MissReason, ReadReport } from '../telemetry/events.ts';

export interface LastMiss {
  readonly reason: MissReason;
  /** Unix milliseconds. */
  readonly atMs: number;
}

/** A power of two. Some 210 kB in all. */
const PLACES = 16_384;

const REASONS = ['never-seen', 'expired', 'evicted', 'purged', 'not-cacheable'] as const satisfies MissReason[];

export class LastMisses {
  readonly #hashes = new Uint32Array(PLACES);
  readonly #times = new Float64Array(PLACES);
  /** By place; 0 if nothing was noted, else one more than the reason's number. */
  readonly #reasons = new Uint8Array(PLACES);

  /** Takes every read and ignores those that were answered at once. `atMs`: Unix milliseconds. */
  note({ keyHash: hash, missReason }: Pick<ReadReport, 'keyHash' | 'missReason'>, atMs: number): void {
    if (missReason === null) return;
    const place = hash % PLACES;
    this.#hashes[place] = hash;
    this.#times[place] = atMs;
    this.#reasons[place] = REASONS.indexOf(missReason) + 1;
  }

  /** Null if none is remembered. */
  of(key: string): LastMiss | null {
    const hash = hash32(key);
    const place = hash % PLACES;
    const reason = REASONS[(this.#reasons[place] ?? 0) - 1];
    if (reason === undefined || this.#hashes[place] !== hash) return null;
    return { reason, atMs: this.#times[place] ?? 0 };
  }
}
