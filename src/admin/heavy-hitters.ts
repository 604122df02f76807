/** Who carries most of a load, among far more names than are remembered. */

/** What is known of a name since it has its place: never more than its own. */
export interface Hitter<A> {
  readonly name: string;
  readonly about: A;
  readonly calls: number;
  readonly ms: number;
}

interface Cell<A> {
  name: string;
  about: A;
  calls: number;
  ms: number;
  /** What its place stands for: its own load, and that of those that had the place before. */
  weight: number;
  /** Where it is in the heap. */
  at: number;
}

/**
 * Space-Saving (Metwally, Agrawal and El Abbadi, 2005), weighted: a name that is not counted takes the place of the
 * lightest, together with its weight, so that whoever carries more than its share of the load is always counted. The
 * lightest is found by a binary heap, since under calls for ever new names each of them drops one.
 */
export class HeavyHitters<A> {
  readonly #most: number;
  readonly #cells = new Map<string, Cell<A>>();
  /** No cell is lighter than the one at half its place. */
  readonly #heap: Cell<A>[] = [];

  constructor(most: number) {
    this.#most = most;
  }

  add(name: string, about: A, ms: number): void {
    const cell = this.#cells.get(name) ?? this.#place(name, about);
    cell.calls += 1;
    cell.ms += ms;
    // A call that takes no time is load too.
    cell.weight += 1 + ms;
    this.#sink(cell);
  }

  counted(): readonly Hitter<A>[] {
    return this.#heap.map(({ name, about, calls, ms }) => ({ name, about, calls, ms }));
  }

  #place(name: string, about: A): Cell<A> {
    const lightest = this.#heap.length < this.#most ? undefined : this.#heap[0];
    const cell = lightest ?? { name, about, calls: 0, ms: 0, weight: 0, at: this.#heap.length };
    if (lightest === undefined) {
      this.#heap.push(cell);
      this.#rise(cell);
    } else {
      this.#cells.delete(lightest.name);
      Object.assign(lightest, { name, about, calls: 0, ms: 0 });
    }
    this.#cells.set(name, cell);
    return cell;
  }

  #rise(cell: Cell<A>): void {
    for (;;) {
      const above = cell.at === 0 ? undefined : this.#heap[(cell.at - 1) >> 1];
      if (above === undefined || above.weight <= cell.weight) return;
      this.#swap(above, cell);
    }
  }

  #sink(cell: Cell<A>): void {
    for (;;) {
      const left = this.#heap[2 * cell.at + 1];
      const right = this.#heap[2 * cell.at + 2];
      const lighter = right !== undefined && left !== undefined && right.weight < left.weight ? right : left;
      if (lighter === undefined || lighter.weight >= cell.weight) return;
      this.#swap(cell, lighter);
    }
  }

  #swap(above: Cell<A>, below: Cell<A>): void {
    const { at } = above;
    above.at = below.at;
    below.at = at;
    this.#heap[above.at] = above;
    this.#heap[below.at] = below;
  }
}
