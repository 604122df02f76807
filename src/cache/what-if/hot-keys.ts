/**
 * The keys that are read most, found without counting every key. A sample by hash is far off if one of them is missing
 * from it, so the simulator follows all of them.
 *
 * Each key belongs to one bucket, and a bucket remembers four keys with votes (Boyer and Moore's majority vote, 1981): a
 * read of a remembered key is a vote for it, any other read of the bucket one against the weakest. Only a key that is read
 * far more often than its neighbours gathers many votes, and one that is read no more loses them again.
 */
import { mix32 } from '../hash.ts';

/** How a key stands when it is read: `turning` at the read that makes it hot. */
export type Heat = 'tail' | 'turning' | 'hot';

const BUCKETS = 2048;
const KEYS_PER_BUCKET = 4;
/** A key with so many votes is hot. Fewer make keys hot and cold again all day, and each change costs accuracy. */
const HOT_VOTES = 12;
const MAX_VOTES = 127;
const HOT = 128;

export class HotKeys {
  readonly #ids = new Uint32Array(BUCKETS * KEYS_PER_BUCKET);
  /** The votes, and HOT if the key has become hot: it stays so until another takes its place. */
  readonly #votes = new Uint8Array(BUCKETS * KEYS_PER_BUCKET);

  get bytes(): number {
    return this.#ids.byteLength + this.#votes.byteLength;
  }

  /** Counts a read of the key. The answer must not depend on whether the key is sampled. */
  vote(id: number): Heat {
    const first = firstOf(id);
    const place = this.#find(id, first);
    if (place >= 0) return this.#voteFor(place);
    let weakest = first;
    for (let other = first + 1; other < first + KEYS_PER_BUCKET; other++) {
      if (this.#votesOf(other) < this.#votesOf(weakest)) weakest = other;
    }
    if (this.#votesOf(weakest) > 0) {
      this.#votes[weakest] = (this.#votes[weakest] ?? 0) - 1;
    } else {
      this.#ids[weakest] = id;
      this.#votes[weakest] = 1;
    }
    return 'tail';
  }

  /** Without a vote. */
  has(id: number): boolean {
    const place = this.#find(id, firstOf(id));
    return place >= 0 && (this.#votes[place] ?? 0) >= HOT;
  }

  #voteFor(place: number): Heat {
    const votes = this.#votes[place] ?? 0;
    if (this.#votesOf(place) < MAX_VOTES) this.#votes[place] = votes + 1;
    if (votes >= HOT) return 'hot';
    if (votes + 1 < HOT_VOTES) return 'tail';
    this.#votes[place] = HOT | (votes + 1);
    return 'turning';
  }

  #votesOf(place: number): number {
    return (this.#votes[place] ?? 0) & MAX_VOTES;
  }

  #find(id: number, first: number): number {
    for (let place = first; place < first + KEYS_PER_BUCKET; place++) {
      if (this.#ids[place] === id && this.#votes[place] !== 0) return place;
    }
    return -1;
  }
}

/** Independent of the bits by which keys are sampled. */
function firstOf(id: number): number {
  return (mix32(id ^ 0x51ed270b) % BUCKETS) * KEYS_PER_BUCKET;
}
