/**
 * Which process follows which keys, by rendezvous hashing: where a process comes or goes, only its own keys change hands,
 * and all that know the same processes say the same. Pure.
 */
import { hash32, mix32 } from '../hash.ts';

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
    for (let index = 0; index < this.#seeds.length; index += 1) {
      const weight = mix32((this.#seeds[index] ?? 0) ^ keyHash);
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
