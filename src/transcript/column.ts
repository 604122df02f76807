/** A column of integers that grows chunk by chunk, so that neither growing nor finishing a long one copies it. */

const CHUNK = 65_536;

export class Column {
  readonly #chunks: Int32Array[] = [];
  #last = new Int32Array(256);
  #lastLength = 0;

  constructor() {
    this.#chunks.push(this.#last);
  }

  get length(): number {
    return (this.#chunks.length - 1) * CHUNK + this.#lastLength;
  }

  get byteLength(): number {
    return (this.#chunks.length - 1) * CHUNK * Int32Array.BYTES_PER_ELEMENT + this.#last.byteLength;
  }

  push(value: number): void {
    if (this.#lastLength === this.#last.length) this.#grow();
    this.#last[this.#lastLength] = value;
    this.#lastLength += 1;
  }

  /** Throws a RangeError if the column has no value there. */
  at(index: number): number {
    const value = index < this.length ? this.#chunks[Math.floor(index / CHUNK)]?.[index % CHUNK] : undefined;
    if (value === undefined) throw new RangeError(`no value ${index} in a column of ${this.length}`);
    return value;
  }

  #grow(): void {
    if (this.#last.length === CHUNK) {
      this.#last = new Int32Array(CHUNK);
      this.#lastLength = 0;
    } else {
      const grown = new Int32Array(this.#last.length * 2);
      grown.set(this.#last);
      this.#last = grown;
      this.#chunks.pop();
    }
    this.#chunks.push(this.#last);
  }
}
