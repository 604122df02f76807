/** Which keys are read most, and the times of the keys that a simulator follows: numbers side by side, to take little room. */
import { mix32 } from '../request.ts';

/** How a key stands when it is read: `turning` at the read that makes it hot. */
export type Heat = 'tail' | 'turning' | 'hot';

const BUCKETS = 2048;
const KEYS_PER_BUCKET = 4;
/** A key with so many votes is hot. Fewer make keys hot and cold again all day, and each change costs accuracy. */
const HOT_VOTES = 12;
const MAX_VOTES = 127;
const HOT = 128;

/**
 * The keys that are read most, found without counting every key. A sample by hash is far off if one of them is missing
 * from it, so all of them are followed.
 *
 * Each key belongs to one bucket, and a bucket remembers four keys with votes (Boyer and Moore's majority vote, 1981): a
 * read of a remembered key is a vote for it, any other read of the bucket one against the weakest. Only a key that is read
 * far more often than its neighbours gathers many votes, and one that is read no more loses them again.
 */
export class HotKeys {
  readonly #ids = new Uint32Array(BUCKETS * KEYS_PER_BUCKET);
  /** The votes, and HOT if the key has become hot: it stays so until another takes its place. */
  readonly #votes = new Uint8Array(BUCKETS * KEYS_PER_BUCKET);

  /** Counts a read of the key. The answer must not depend on whether the key is sampled. */
  vote(id: number): Heat {
    // The bits are not those by which keys are sampled.
    const first = (mix32(id ^ 0x51ed270b) % BUCKETS) * KEYS_PER_BUCKET;
    let place = first;
    while (place < first + KEYS_PER_BUCKET && (this.#ids[place] !== id || this.#votes[place] === 0)) place++;
    if (place === first + KEYS_PER_BUCKET) {
      this.#voteAgainst(first, id);
      return 'tail';
    }
    const votes = this.#votes[place] ?? 0;
    const count = Math.min(MAX_VOTES, (votes & MAX_VOTES) + 1);
    const isTurning = votes < HOT && count >= HOT_VOTES;
    this.#votes[place] = count | (isTurning ? HOT : votes & HOT);
    if (isTurning) return 'turning';
    return votes >= HOT ? 'hot' : 'tail';
  }

  #voteAgainst(first: number, id: number): void {
    let weakest = first;
    for (let place = first; place < first + KEYS_PER_BUCKET; place++) {
      if (this.#countAt(place) < this.#countAt(weakest)) weakest = place;
    }
    const isWon = this.#countAt(weakest) === 0;
    if (isWon) this.#ids[weakest] = id;
    this.#votes[weakest] = isWon ? 1 : (this.#votes[weakest] ?? 0) - 1;
  }

  #countAt(place: number): number {
    return (this.#votes[place] ?? 0) & MAX_VOTES;
  }
}

const ROWS = 14_200;
/** A fuller table would have to probe too long. */
export const MAX_KEYS = 11_800;
/** The cells of a row: the key's id, its state, which is 0 in a free row, and what the caller keeps of it. */
export const STATE = 1;

/** An open-addressed table with linear probing: a key's row is the first from its home on that was free. */
export class KeyTable {
  readonly cells: Uint32Array<ArrayBuffer>;
  /** Cells of one row. */
  readonly width: number;
  #size = 0;

  constructor(width: number) {
    this.width = width;
    this.cells = new Uint32Array(ROWS * width);
  }

  get free(): number {
    return MAX_KEYS - this.#size;
  }

  /** Where the key's row begins in the cells; -1 if it has none. */
  find(id: number): number {
    const row = this.#search(id);
    return this.cells[row + STATE] === 0 ? -1 : row;
  }

  /** Adds a row for a key that has none. The rest of it is another key's. `free` must not be 0. */
  add(id: number, state: number): number {
    const row = this.#search(id);
    this.cells[row] = id;
    this.cells[row + STATE] = state;
    this.#size += 1;
    return row;
  }

  /** Removes every row for which `isGone` returns true. It may be called more than once for a row. */
  removeIf(isGone: (row: number) => boolean): void {
    for (let row = 0; row < this.cells.length; row += this.width) {
      // A removal may move another row, which was not looked at yet, to this place.
      while (this.cells[row + STATE] !== 0 && isGone(row)) this.#remove(row);
    }
  }

  /** Moves the rows behind it up, so that a search may end at the first free row. */
  #remove(row: number): void {
    const { cells } = this;
    cells[row + STATE] = 0;
    this.#size -= 1;
    for (let from = this.#next(row); cells[from + STATE] !== 0; from = this.#next(from)) {
      const to = this.#search(cells[from] ?? 0);
      if (to === from) continue;
      cells.copyWithin(to, from, from + this.width);
      cells[from + STATE] = 0;
    }
  }

  /** The key's row, or the free one where it would be added. */
  #search(id: number): number {
    const { cells } = this;
    let row = (mix32(id) % ROWS) * this.width;
    while (cells[row + STATE] !== 0 && cells[row] !== id) row = this.#next(row);
    return row;
  }

  #next(row: number): number {
    return row + this.width === this.cells.length ? 0 : row + this.width;
  }
}
