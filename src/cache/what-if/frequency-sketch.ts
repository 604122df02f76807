/**
 * About how often keys were read of late, without holding them: a count-min sketch with conservative update (Estan and
 * Varghese, 2002), whose counts are halved as it fills, as TinyLFU does, so that it forgets. Never too few of what it
 * has counted since.
 */
import { mix32 } from '../hash.ts';

const ROWS = 4;
const ROW_BITS = 14;
const ROW_SIZE = 2 ** ROW_BITS;
const MAX_COUNT = 255;
/** Counts a row are halved after so many reads a counter: the more, the longer the memory and the larger the error. */
const READS_PER_COUNTER = 8;

export class FrequencySketch {
  readonly #counters = new Uint8Array(ROWS * ROW_SIZE);
  readonly #places = new Uint32Array(ROWS);
  readonly #onHalved: () => void;
  #reads = 0;
  /** Since when it would have counted what it holds, had it never forgotten. */
  #sinceMs: number;

  /** `onHalved`: whoever compares other counts with these halves them too. */
  constructor(atMs: number, onHalved: () => void) {
    this.#sinceMs = atMs;
    this.#onHalved = onHalved;
  }

  get bytes(): number {
    return this.#counters.byteLength;
  }

  /** Counts one read, and tells how many there were of the key. */
  add(hash: number, atMs: number): number {
    if (++this.#reads > READS_PER_COUNTER * ROW_SIZE) this.#halve(atMs);
    const least = this.#locate(hash);
    if (least >= MAX_COUNT) return least;
    for (const place of this.#places) if (this.#counters[place] === least) this.#counters[place] = least + 1;
    return least + 1;
  }

  /** Reads a millisecond of a key that has so many. */
  rateOf(reads: number, atMs: number): number {
    return reads / Math.max(1, atMs - this.#sinceMs);
  }

  #locate(hash: number): number {
    let least = MAX_COUNT;
    for (let row = 0; row < ROWS; row++) {
      const place = row * ROW_SIZE + (mix32(hash + Math.imul(row + 1, 0x9e3779b9)) >>> (32 - ROW_BITS));
      this.#places[row] = place;
      least = Math.min(least, this.#counters[place] ?? 0);
    }
    return least;
  }

  #halve(atMs: number): void {
    for (let place = 0; place < this.#counters.length; place++) {
      this.#counters[place] = (this.#counters[place] ?? 0) >>> 1;
    }
    this.#reads >>>= 1;
    this.#sinceMs = atMs - Math.floor((atMs - this.#sinceMs) / 2);
    this.#onHalved();
  }
}
