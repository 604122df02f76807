/** Tables of delimited cells: TSV, CSV with quoted cells, and cells between bars. */
import { Finder } from './lines.ts';

export type Delimiter = '\t' | ',' | ';' | '|';

/** Where a cell stands, without its quotes. */
export interface Cell {
  readonly start: number;
  readonly end: number;
  readonly isQuoted: boolean;
}

/** A quoted cell this long is none: a quote was not closed. */
const MAX_QUOTED_UNITS = 100_000;
const QUOTE = '"';
const MAX_CELLS = 64;

/** Walks the rows of a table. A quoted cell may hold line ends; a line without delimiters is a row of one cell. */
export class Rows {
  readonly #text: string;
  readonly #delimiter: Delimiter;
  readonly #quotes: Finder;
  #next = 0;
  start = 0;
  end = 0;
  cells: Cell[] = [];

  constructor(text: string, delimiter: Delimiter, start: number) {
    this.#text = text;
    this.#delimiter = delimiter;
    this.#quotes = new Finder(text, QUOTE);
    this.#next = start;
  }

  /** Goes to the next row that is not blank; false if there is none. */
  advance(): boolean {
    do {
      if (this.#next >= this.#text.length) return false;
      this.start = this.#next;
      this.cells = [];
      this.#readRow();
    } while (this.cells.length === 1 && this.textOf(0).trim() === '');
    return true;
  }

  /** The text of a cell, its doubled quotes made single ones. */
  textOf(index: number): string {
    const cell = this.cells[index];
    if (cell === undefined) return '';
    const text = this.#text.slice(cell.start, cell.end);
    return cell.isQuoted ? text.replaceAll('""', QUOTE) : text.trim();
  }

  #readRow(): void {
    const text = this.#text;
    let i = this.#next;
    if (this.#delimiter === '|' && text[i] === '|') i += 1;
    for (;;) {
      const cell = this.#cellAt(i);
      if (this.cells.length < MAX_CELLS) this.cells.push(cell);
      const after = cell.isQuoted ? cell.end + 1 : cell.end;
      if (text[after] !== this.#delimiter) {
        this.end = after;
        break;
      }
      i = after + 1;
      if (this.#delimiter === '|' && (i >= text.length || isLineEnd(text[i]))) {
        this.end = i;
        break;
      }
    }
    this.#next = this.end + (text.startsWith('\r\n', this.end) ? 2 : 1);
  }

  #cellAt(start: number): Cell {
    const text = this.#text;
    if (text[start] === QUOTE && this.#delimiter !== '|') {
      const quoted = this.#quotedCellAt(start + 1);
      if (quoted !== null) return quoted;
    }
    let end = start;
    while (end < text.length && text[end] !== this.#delimiter && !isLineEnd(text[end])) end += 1;
    return { start, end, isQuoted: false };
  }

  /** Null if the quote is not closed, or more than white space follows it in its cell. */
  #quotedCellAt(start: number): Cell | null {
    const text = this.#text;
    let end = this.#quotes.next(start);
    while (text[end + 1] === QUOTE) end = this.#quotes.next(end + 2);
    if (end >= text.length || end - start > MAX_QUOTED_UNITS) return null;
    const next = text[end + 1];
    return next === undefined || next === this.#delimiter || isLineEnd(next) ? { start, end, isQuoted: true } : null;
  }
}

function isLineEnd(char: string | undefined): boolean {
  return char === '\n' || char === '\r';
}
