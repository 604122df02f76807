/** A text put together from a million small pieces, at no cost that grows with their number at any one time. */
import { STRIDE } from './slices.ts';

const MAX_PIECES = 4096;
/** So many of the last pieces can still be changed. */
const MAX_OPEN = 64;

export class Pieces {
  #text = '';
  #pieces: string[] = [];
  #units = 0;

  add(piece: string): void {
    this.#pieces.push(piece);
    this.#units += piece.length;
    // By length as well: a piece may be a chain of parts, which are copied when they are joined.
    if (this.#pieces.length < MAX_PIECES && this.#units < STRIDE) return;
    this.#text += this.#pieces.slice(0, -MAX_OPEN).join('');
    this.#pieces = this.#pieces.slice(-MAX_OPEN);
    this.#units = 0;
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
