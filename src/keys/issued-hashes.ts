/**
 * Which hashes are those of issued keys, as a hint: so that a good key that this process hasn't seen yet is looked up
 * even from an address whose failed attempts are used up. Keys are never deleted, so the set only grows, and one that
 * misses some is only less of a help.
 */
import type { KeyHash } from './key.ts';

/** Some 10 MB. Keys beyond it are looked up like any other. */
const MAX_HASHES = 250_000;
/** 48 bits, which a number holds exactly. That another hash begins alike costs a look-up and happens to nobody. */
const PREFIX_DIGITS = 12;

export class IssuedHashes {
  readonly #prefixes = new Set<number>();
  readonly #read: () => AsyncIterable<readonly KeyHash[]>;
  readonly #maxHashes: number;
  #isReading = false;
  #isReadDue = true;

  /** `read` gives the hashes of all keys, in pages. */
  constructor(read: () => AsyncIterable<readonly KeyHash[]>, maxHashes = MAX_HASHES) {
    this.#read = read;
    this.#maxHashes = maxHashes;
  }

  has(hash: KeyHash): boolean {
    return this.#prefixes.has(prefixOf(hash));
  }

  add(hashes: readonly KeyHash[]): void {
    for (const hash of hashes) {
      if (this.#prefixes.size >= this.#maxHashes) return;
      this.#prefixes.add(prefixOf(hash));
    }
  }

  /** Some may be missing: they are read at the next `catchUp`. */
  doubt(): void {
    this.#isReadDue = true;
  }

  /** Reads all hashes where that is due. Never rejects: what failed is due again. */
  async catchUp(): Promise<void> {
    if (!this.#isReadDue || this.#isReading) return;
    this.#isReadDue = false;
    this.#isReading = true;
    try {
      for await (const page of this.#read()) this.add(page);
    } catch {
      this.#isReadDue = true;
    } finally {
      this.#isReading = false;
    }
  }
}

function prefixOf(hash: KeyHash): number {
  return Number.parseInt(hash.slice(0, PREFIX_DIGITS), 16);
}
