/** Columns of 32-bit integers: four bytes a value, where an array of objects would take dozens. */

/** A column that grows by doubling. */
export class Int32List {
  #values = new Int32Array(64);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: number): void {
    if (this.#length === this.#values.length) {
      const grown = new Int32Array(this.#length * 2);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[this.#length] = value;
    this.#length += 1;
  }

  /** A copy of exactly the values pushed. */
  toColumn(): Int32Array {
    return this.#values.slice(0, this.#length);
  }
}

/** The value at an index that must be there. Throws RangeError where it is not. */
export function at(column: Int32Array, index: number): number {
  const value = column[index];
  if (value === undefined) throw new RangeError(`no value ${index} in a column of ${column.length}`);
  return value;
}
