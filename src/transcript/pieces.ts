/** A text put together from a million small pieces, at no cost that grows with their number at any one time. */
import { STRIDE } from './slices.ts';

const MAX_PIECES = 4096;
/** So many of the last pieces, and so much of them, can still be changed. */
const MAX_OPEN = 64;
const MAX_OPEN_UNITS = 1000;

export class Pieces {
  #text = '';
  #pieces: string[] = [];
  #units = 0;

  add(piece: string): void {
    this.#pieces.push(piece);
    this.#units += piece.length;
    // By length as well: a piece may be a chain of parts, which are copied when they are joined.
    if (this.#pieces.length < MAX_PIECES && this.#units < STRIDE) return;
    const closed = this.#closed();
    this.#text += this.#pieces.slice(0, closed).join('');
    this.#pieces = this.#pieces.slice(closed);
    this.#units = 0;
  }

  /** How many of the pieces are not changed any more: long ones are joined at once. */
  #closed(): number {
    const { length } = this.#pieces;
    let open = 0;
    for (let units = 0; open < MAX_OPEN && open < length; open += 1) {
      units += this.#pieces[length - open - 1]?.length ?? 0;
      if (units > MAX_OPEN_UNITS) break;
    }
    return length - open;
  }

  /** Takes spaces and tabs off the end, then adds a line feed unless the text is empty or ends with one. */
  endLine(): void {
    for (let last = this.#pieces.pop(); last !== undefined; last = this.#pieces.pop()) {
      let end = last.length;
      while (end > 0 && (last[end - 1] === ' ' || last[end - 1] === '\t')) end -= 1;
      if (end === 0) continue;
      this.#pieces.push(last.slice(0, end));
      break;
    }
    const last = this.#pieces.at(-1) ?? this.#text;
    if (last !== '' && !last.endsWith('\n')) this.add('\n');
  }

  toString(): string {
    return this.#text + this.#pieces.join('');
  }
}
