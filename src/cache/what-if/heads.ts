/** The busiest keys of a class: which they are, and which of them is the least busy. */
import { placeOf, type SlotPool } from './slot-pool.ts';

const MAX_HEADS = 1024;
/** A key must have been read this much more often than a head to take its place, so that equals don't swap for ever. */
const MARGIN = 1.25;
const MARGIN_READS = 2;

export class Heads {
  readonly #pool: SlotPool;
  readonly #slots = new Uint16Array(MAX_HEADS);
  #size = 0;
  /** No head had fewer reads when that was last looked at. */
  #leastReads = 0;

  constructor(pool: SlotPool) {
    this.#pool = pool;
  }

  /** Of the array. */
  get bytes(): number {
    return this.#slots.byteLength;
  }

  /** Anew: the busiest half of the owner's keys, 1,024 at most. */
  choose(owner: number): void {
    const keys: { readonly slot: number; readonly reads: number }[] = [];
    this.#pool.each((slot, block, place) => {
      if (block.owners[place] !== owner) return;
      block.heads[place] = 0;
      keys.push({ slot, reads: block.counts[place] ?? 0 });
    });
    keys.sort((a, b) => b.reads - a.reads);
    this.#size = 0;
    for (const { slot } of keys.slice(0, Math.min(MAX_HEADS, keys.length >>> 1))) this.add(slot);
    this.#leastReads = 0;
  }

  get size(): number {
    return this.#size;
  }

  get isFull(): boolean {
    return this.#size === MAX_HEADS;
  }

  add(slot: number): void {
    this.#slots[this.#size++] = slot;
    this.#pool.blockOf(slot).heads[placeOf(slot)] = 1;
  }

  /** Whether a key with so many reads is clearly busier than a head. */
  isOutdoneBy(reads: number): boolean {
    if (reads <= this.#neededReads()) return false;
    this.#leastReads = this.#readsOf(this.#weakest());
    return reads > this.#neededReads();
  }

  /** The least busy head, which is none from now on. */
  dismiss(): number {
    const at = this.#weakest();
    const slot = this.#slots[at] ?? 0;
    this.#slots[at] = this.#slots[--this.#size] ?? 0;
    this.#pool.blockOf(slot).heads[placeOf(slot)] = 0;
    return slot;
  }

  #neededReads(): number {
    return MARGIN * this.#leastReads + MARGIN_READS;
  }

  #weakest(): number {
    let weakest = 0;
    for (let at = 1; at < this.#size; at++) if (this.#readsOf(at) < this.#readsOf(weakest)) weakest = at;
    return weakest;
  }

  #readsOf(at: number): number {
    const slot = this.#slots[at] ?? 0;
    return this.#pool.blockOf(slot).counts[placeOf(slot)] ?? 0;
  }
}
