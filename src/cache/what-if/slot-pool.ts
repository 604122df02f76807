/**
 * What is held of the keys that are followed, of all classes: typed arrays in blocks that are allocated as they are
 * needed, found by an open-addressed index. 37 bytes a key, and 64 kB of the index.
 */
import { GHOSTS } from './candidates.ts';
import { mix32 } from '../hash.ts';

const BLOCK_BITS = 10;
const BLOCK_SLOTS = 2 ** BLOCK_BITS;
const BLOCK_MASK = BLOCK_SLOTS - 1;
const INDEX_SIZE = 2 ** 15;
const INDEX_MASK = INDEX_SIZE - 1;
/** Where nothing is kept. */
const NOBODY = 0xff;

/** The slots whose numbers begin alike; a slot's place in it is `placeOf` its number. */
export interface Block {
  /** When each ghost's copy was filled, GHOSTS a slot, in that ghost's units. */
  readonly fills: Uint16Array;
  readonly hashes: Uint32Array;
  /** Of the last read. */
  readonly ticks: Uint32Array;
  /** Reads, halved from time to time. */
  readonly counts: Uint16Array;
  /** Whose key it is; NOBODY where there is none. */
  readonly owners: Uint8Array;
  /** 1 for heads. */
  readonly heads: Uint8Array;
}

export function placeOf(slot: number): number {
  return slot & BLOCK_MASK;
}

export class SlotPool {
  readonly #blocks: Block[] = [];
  /** Slot number + 1; 0 where there is none. */
  readonly #index = new Uint16Array(INDEX_SIZE);
  readonly #maxBlocks: number;
  /** Where the next free slot is looked for. */
  #cursor = 0;
  #used = 0;

  /** Of 1,024 slots each, 28 at most. */
  constructor(maxBlocks: number) {
    this.#maxBlocks = Math.min(maxBlocks, 28);
  }

  /** How many there can be in all. */
  get size(): number {
    return this.#maxBlocks * BLOCK_SLOTS;
  }

  get free(): number {
    return this.size - this.#used;
  }

  /** Of the arrays. */
  get bytes(): number {
    return this.#index.byteLength + this.#blocks.length * BLOCK_SLOTS * (2 * GHOSTS + 12);
  }

  blockOf(slot: number): Block {
    const block = this.#blocks[slot >>> BLOCK_BITS];
    if (block === undefined) throw new RangeError(`there is no slot ${slot}`);
    return block;
  }

  /** -1 where the key is not followed. */
  find(owner: number, hash: number): number {
    for (let at = home(owner, hash); ; at = (at + 1) & INDEX_MASK) {
      const slot = (this.#index[at] ?? 0) - 1;
      if (slot < 0 || this.#isOf(slot, owner, hash)) return slot;
    }
  }

  /** A slot for a key that has none; -1 where all are taken. What stands in its arrays is another key's. */
  take(owner: number, hash: number): number {
    if (this.free === 0) return -1;
    const slot = this.#nextFree();
    const block = this.blockOf(slot);
    const place = placeOf(slot);
    block.owners[place] = owner;
    block.hashes[place] = hash;
    block.counts[place] = 0;
    block.heads[place] = 0;
    this.#used += 1;
    let at = home(owner, hash);
    while (this.#index[at] !== 0) at = (at + 1) & INDEX_MASK;
    this.#index[at] = slot + 1;
    return slot;
  }

  release(slot: number): void {
    const { owners, hashes } = this.blockOf(slot);
    const place = placeOf(slot);
    let at = home(owners[place] ?? 0, hashes[place] ?? 0);
    while (this.#index[at] !== slot + 1) at = (at + 1) & INDEX_MASK;
    owners[place] = NOBODY;
    this.#used -= 1;
    this.#closeGap(at);
  }

  /** Every slot in use; `visit` may release the one it is given. */
  each(visit: (slot: number, block: Block, place: number) => void): void {
    for (const [number, block] of this.#blocks.entries()) {
      for (let place = 0; place < BLOCK_SLOTS; place++) {
        if (block.owners[place] !== NOBODY) visit(number * BLOCK_SLOTS + place, block, place);
      }
    }
  }

  #isOf(slot: number, owner: number, hash: number): boolean {
    const { owners, hashes } = this.blockOf(slot);
    const place = placeOf(slot);
    return hashes[place] === hash && owners[place] === owner;
  }

  #nextFree(): number {
    if (this.#used === this.#blocks.length * BLOCK_SLOTS) {
      this.#cursor = this.#used;
      this.#blocks.push(createBlock());
      return this.#cursor;
    }
    const total = this.#blocks.length * BLOCK_SLOTS;
    while (this.blockOf(this.#cursor).owners[placeOf(this.#cursor)] !== NOBODY) {
      this.#cursor = (this.#cursor + 1) % total;
    }
    return this.#cursor;
  }

  /** What was put further on because this place was taken moves back, so that a search may end at the first empty one. */
  #closeGap(emptied: number): void {
    let gap = emptied;
    for (let at = (gap + 1) & INDEX_MASK; this.#index[at] !== 0; at = (at + 1) & INDEX_MASK) {
      const slot = (this.#index[at] ?? 0) - 1;
      const { owners, hashes } = this.blockOf(slot);
      const wanted = home(owners[placeOf(slot)] ?? 0, hashes[placeOf(slot)] ?? 0);
      if (((at - wanted) & INDEX_MASK) < ((at - gap) & INDEX_MASK)) continue;
      this.#index[gap] = slot + 1;
      gap = at;
    }
    this.#index[gap] = 0;
  }
}

function home(owner: number, hash: number): number {
  return mix32(hash + owner) & INDEX_MASK;
}

function createBlock(): Block {
  return {
    fills: new Uint16Array(BLOCK_SLOTS * GHOSTS),
    hashes: new Uint32Array(BLOCK_SLOTS),
    ticks: new Uint32Array(BLOCK_SLOTS),
    counts: new Uint16Array(BLOCK_SLOTS),
    owners: new Uint8Array(BLOCK_SLOTS).fill(NOBODY),
    heads: new Uint8Array(BLOCK_SLOTS),
  };
}
