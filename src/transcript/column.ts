/** A column of integers that grows piece by piece: growing never copies what is there. */

const CHUNK = 65_536;

export class Column {
  readonly #full: Int32Array[] = [];
  #last = new Int32Array(256);
  #lastLength = 0;

  get length(): number {
    return this.#full.length * CHUNK + this.#lastLength;
  }

  push(value: number): void {
    if (this.#lastLength === this.#last.length) this.#grow();
    this.#last[this.#lastLength] = value;
    this.#lastLength += 1;
  }

  toArray(): Int32Array {
    const all = new Int32Array(this.length);
    for (const [i, chunk] of this.#full.entries()) all.set(chunk, i * CHUNK);
    all.set(this.#last.subarray(0, this.#lastLength), this.#full.length * CHUNK);
    return all;
  }

  #grow(): void {
    if (this.#last.length < CHUNK) {
      const grown = new Int32Array(this.#last.length * 2);
      grown.set(this.#last);
      this.#last = grown;
      return;
    }
    this.#full.push(this.#last);
    this.#last = new Int32Array(CHUNK);
    this.#lastLength = 0;
  }
}
