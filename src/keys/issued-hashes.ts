/**
 * A hint which hashes are those of issued keys: a good key that is new to this process is looked up even from an address
 * whose failed attempts are used up (K9). Keys are never deleted, so the set only grows; a missing one only helps less.
 */
import type { KeyHash } from './key.ts';

/** Some 10 MB. */
const MAX_HASHES = 250_000;
/** 48 bits, which a number holds exactly. Another hash that begins alike costs one look-up. */
const PREFIX_DIGITS = 12;

export class IssuedHashes {
  readonly #prefixes = new Set<number>();
  readonly #read: () => AsyncIterable<readonly KeyHash[]>;
  #isReading = false;
  #isComplete = false;

  /** `read` returns the hashes of all keys, in pages. */
  constructor(read: () => AsyncIterable<readonly KeyHash[]>) {
    this.#read = read;
  }

  has(hash: KeyHash): boolean {
    return this.#prefixes.has(prefixOf(hash));
  }

  add(hashes: readonly KeyHash[]): void {
    for (const hash of hashes) if (this.#prefixes.size < MAX_HASHES) this.#prefixes.add(prefixOf(hash));
  }

  /** Some may be missing: `refresh` reads them. */
  markIncomplete(): void {
    this.#isComplete = false;
  }

  /** Reads all hashes if some may be missing. Never rejects: a reading that failed is repeated by the next call. */
  async refresh(): Promise<void> {
    if (this.#isComplete || this.#isReading) return;
    this.#isComplete = true;
    this.#isReading = true;
    try {
      for await (const page of this.#read()) this.add(page);
    } catch {
      this.#isComplete = false;
    } finally {
      this.#isReading = false;
    }
  }
}

function prefixOf(hash: KeyHash): number {
  return Number.parseInt(hash.slice(0, PREFIX_DIGITS), 16);
}
