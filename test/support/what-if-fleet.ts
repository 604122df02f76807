/** Reads for what-if models. */
import { hash32 } from '../../src/cache/hash.ts';
import type { ReadReport } from '../../src/cache/hooks.ts';
import { SeededRandom } from './random.ts';

export function aRead(key: string): ReadReport {
  const served = { outcome: 'hit', tier: 'memory', missReason: null, ageMs: 1, durationMs: 0.1 } as const;
  return { class: 'list', key, keyHash: hash32(key), ...served };
}

/** Keys by Zipf's law: the n-th is read 1/n as often as the first. */
export class ZipfKeys {
  readonly #cumulative: Float64Array;
  readonly #random: SeededRandom;

  constructor(keys: number, seed: number) {
    this.#random = new SeededRandom(seed);
    this.#cumulative = new Float64Array(keys);
    let sum = 0;
    for (let index = 0; index < keys; index += 1) this.#cumulative[index] = sum += 1 / (index + 1);
  }

  next(): string {
    const at = this.#random.next() * (this.#cumulative.at(-1) ?? 0);
    let [low, high] = [0, this.#cumulative.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#cumulative[middle] ?? 0) < at) low = middle + 1;
      else high = middle;
    }
    return `v1:{list:${low}}`;
  }
}
