/**
 * Which process follows which keys, by rendezvous hashing: where a process comes or goes, only its own keys change hands,
 * and all that know the same processes say the same. Pure.
 */
import { hash32 } from '../classify.ts';

export class Owners {
  /** In order. */
  readonly ids: readonly string[];
  readonly #seeds: Uint32Array;

  /** `ids` are in order, so that all processes see them alike; at least one. */
  constructor(ids: readonly string[]) {
    this.ids = ids;
    this.#seeds = Uint32Array.from(ids, hash32);
  }

  /** The place in `ids` of the process that follows the key. */
  of(keyHash: number): number {
    let best = 0;
    let most = -1;
    for (const [index, seed] of this.#seeds.entries()) {
      const weight = mixed(seed ^ keyHash);
      if (weight > most) {
        most = weight;
        best = index;
      }
    }
    return best;
  }

  isOf(ids: readonly string[]): boolean {
    return ids.length === this.ids.length && ids.every((id, index) => id === this.ids[index]);
  }
}

/** MurmurHash3's finalizer: each bit of what goes in changes about half of those that come out. */
function mixed(value: number): number {
  let hash = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
