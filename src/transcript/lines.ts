/** Lines of a body, found in one pass. A line ends at LF, CR LF or CR, and nowhere else (not at U+2028). */
import { Column } from './column.ts';
import { Pace, type Slices } from './slices.ts';

const BYTE_ORDER_MARK = 0xfeff;
const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;

/**
 * Finds the next occurrence of a needle, for positions that never go back. It remembers what it found, so that all
 * look-ups over a text together read the text once, however many lines lack the needle.
 */
export class Finder {
  readonly #text: string;
  readonly #needle: string;
  #found = -1;

  constructor(text: string, needle: string) {
    this.#text = text;
    this.#needle = needle;
  }

  /** Where the needle next begins at or after `from`; the text's length if it never does. */
  next(from: number): number {
    if (this.#found < from) {
      const found = this.#text.indexOf(this.#needle, from);
      this.#found = found === -1 ? this.#text.length : found;
    }
    return this.#found;
  }
}

/** Where the lines of a text are. A line ending at the very end of the text begins no further line. */
export class LineTable {
  readonly text: string;
  /** How many lines hold more than white space. */
  readonly filledCount: number;
  readonly #starts: Int32Array;

  private constructor(text: string, starts: Int32Array, filledCount: number) {
    this.text = text;
    this.#starts = starts;
    this.filledCount = filledCount;
  }

  static *of(text: string): Slices<LineTable> {
    const starts = new Column();
    const pace = new Pace();
    let [start, filledCount] = [text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0, 0];
    for (let i = start; i < text.length; i += 1) {
      if (pace.isDue(i)) yield;
      const unit = text.charCodeAt(i);
      const isEnd = unit === LINE_FEED || (unit === CARRIAGE_RETURN && text.charCodeAt(i + 1) !== LINE_FEED);
      if (!isEnd && i + 1 < text.length) continue;
      starts.push(start);
      if (!isBlank(text, start, i + 1)) filledCount += 1;
      start = i + 1;
    }
    starts.push(text.length);
    return new LineTable(text, starts.toArray(), filledCount);
  }

  get count(): number {
    return this.#starts.length - 1;
  }

  startOf(line: number): number {
    return this.#starts[line] ?? this.text.length;
  }

  /** Where the line ends, without its line ending. */
  endOf(line: number): number {
    const start = this.startOf(line);
    const next = this.startOf(line + 1);
    const last = this.text.charCodeAt(next - 1);
    if (next === start || (last !== LINE_FEED && last !== CARRIAGE_RETURN)) return next;
    const isPair = last === LINE_FEED && next - 2 >= start && this.text.charCodeAt(next - 2) === CARRIAGE_RETURN;
    return isPair ? next - 2 : next - 1;
  }
}

/** Walks the lines of a text. */
export class LineScanner {
  readonly #table: LineTable;
  readonly #pace = new Pace();
  #line = 0;
  /** The current line is `text.slice(start, end)`, without its line ending. */
  start = 0;
  end = 0;

  constructor(table: LineTable) {
    this.#table = table;
  }

  /** Goes to the next line; false if there is none. */
  advance(): boolean {
    if (this.#line >= this.#table.count) return false;
    this.start = this.#table.startOf(this.#line);
    this.end = this.#table.endOf(this.#line);
    this.#line += 1;
    return true;
  }

  /** Whether so much has been walked through that it is time to yield. */
  get isDue(): boolean {
    return this.#pace.isDue(this.start);
  }
}

/** Whether there is nothing but white space (Unicode's) between the two positions. */
export function isBlank(text: string, start: number, end: number): boolean {
  if (start === end) return true;
  const first = text.charCodeAt(start);
  if (first > SPACE && first < 0x80) return false;
  return text.slice(start, end).trim() === '';
}

export function isDigit(unit: number): boolean {
  return unit >= 0x30 && unit <= 0x39;
}

/** The first position from `start` that holds no space and no tab. */
export function skipBlanks(text: string, start: number, end: number): number {
  let i = start;
  while (i < end && (text.charCodeAt(i) === SPACE || text.charCodeAt(i) === TAB)) i += 1;
  return i;
}

/**
 * The first position from `start` that holds no format character: byte order mark, U+200E, U+200F, embeddings (T2: no
 * words).
 */
export function skipFormatCharacters(text: string, start: number, end: number): number {
  let i = start;
  while (i < end && isFormatCharacter(text.charCodeAt(i))) i += 1;
  return i;
}

function isFormatCharacter(unit: number): boolean {
  if (unit < 0x200e) return false;
  if (unit <= 0x200f || unit === BYTE_ORDER_MARK) return true;
  return (unit >= 0x202a && unit <= 0x202e) || (unit >= 0x2066 && unit <= 0x2069);
}
