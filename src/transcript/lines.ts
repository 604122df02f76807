/** Lines of a body, found in one pass. A line ends at LF, CR LF or CR, and nowhere else (not at U+2028). */
import { Pace } from './slices.ts';

const BYTE_ORDER_MARK = 0xfeff;
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

const LINE_FEED = 0x0a;
const CARRIAGE_RETURN = 0x0d;
/** The end of a line that is longer is searched for by a pattern. */
const SHORT_UNITS = 64;
const LINE_END = /[\n\r]/g;

/** Walks the lines of a text. A line ending at the very end of the text begins no further line. */
export class Lines {
  readonly #text: string;
  readonly #pace = new Pace();
  #next: number;
  /** The current line is `text.slice(start, end)`, without its line ending. */
  start = 0;
  end = 0;

  constructor(text: string) {
    this.#text = text;
    this.#next = text.charCodeAt(0) === BYTE_ORDER_MARK ? 1 : 0;
  }

  /** Goes to the next line; false if there is none. */
  advance(): boolean {
    const text = this.#text;
    if (this.#next >= text.length) return false;
    this.start = this.#next;
    const short = this.start + SHORT_UNITS;
    let end = lineEndAt(text, this.start, short);
    if (end === short) end = longLineEnd(text, end);
    this.end = end;
    const isPair = text.charCodeAt(end) === CARRIAGE_RETURN && text.charCodeAt(end + 1) === LINE_FEED;
    this.#next = end + (isPair ? 2 : 1);
    return true;
  }

  /** Whether the current line is blank. */
  get isBlank(): boolean {
    return isBlank(this.#text, this.start, this.end);
  }

  /** Whether so much has been walked through, to the end of the current line, that it is time to yield. */
  get isDue(): boolean {
    return this.#pace.isDue(this.end);
  }
}

/** Where the line that begins at `start` ends; `most` or the end of the text if that comes first. */
export function lineEndAt(text: string, start: number, most: number): number {
  const last = Math.min(text.length, most);
  let end = start;
  while (end < last && text.charCodeAt(end) !== LINE_FEED && text.charCodeAt(end) !== CARRIAGE_RETURN) end += 1;
  return end;
}

/** One search for both ends: one for CR alone takes long in a text of many zero-width joiners. */
function longLineEnd(text: string, start: number): number {
  LINE_END.lastIndex = start;
  return LINE_END.test(text) ? LINE_END.lastIndex - 1 : text.length;
}

/** Whether there is nothing but white space between the two positions. */
export function isBlank(text: string, start: number, end: number): boolean {
  for (let i = start; i < end; i += 1) if (!isWhiteSpace(text.charCodeAt(i))) return false;
  return true;
}

/** Unicode's white space, as `\s` has it. */
export function isWhiteSpace(unit: number): boolean {
  if (unit < 0x1680) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d) || unit === 0xa0;
  if (unit <= 0x200a) return unit >= 0x2000 || unit === 0x1680;
  return unit === 0x2028 || unit === 0x2029 || unit === 0x202f || unit === 0x205f || unit === 0x3000 || unit === 0xfeff;
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

/** The first position from `start` that holds neither white space nor a format character. */
export function skipWhite(text: string, start: number, end: number): number {
  let i = start;
  while (i < end) {
    const unit = text.charCodeAt(i);
    if (unit !== SPACE && !isWhiteSpace(unit) && !isFormatCharacter(unit)) break;
    i += 1;
  }
  return i;
}

/** Where the line ends, less white space. */
export function trimmedEnd(text: string, start: number, end: number): number {
  let last = end;
  while (last > start && isWhiteSpace(text.charCodeAt(last - 1))) last -= 1;
  return last;
}

/** Byte order mark, zero-width space, marks of direction: no words (T2). */
function isFormatCharacter(unit: number): boolean {
  if (unit < 0x200b || unit === 0x200c || unit === 0x200d) return false;
  if (unit <= 0x200f || unit === BYTE_ORDER_MARK) return true;
  return (unit >= 0x202a && unit <= 0x202e) || (unit >= 0x2066 && unit <= 0x2069);
}

/** The characters of a text by their units. */
export function unitsOf(chars: string): ReadonlySet<number> {
  return new Set(Array.from(chars, (char) => char.charCodeAt(0)));
}

/** Most units are letters that neither end a name nor set it off: the Latin ones, and those of other scripts. */
export function isPlainLetter(unit: number): boolean {
  if (unit < 0x80) return (unit > 0x60 && unit < 0x7b) || (unit > 0x40 && unit < 0x5b);
  return (unit > 0xbf && unit < 0x1680) || (unit > 0x303f && unit < 0xfe00);
}
