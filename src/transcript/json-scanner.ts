/** Walks a JSON text token by token, without making values of it. */
import { Finder } from './lines.ts';

/** Deeper than any transcript is, and shallow enough that nothing downstream is at risk. */
const MAX_DEPTH = 64;
/** So many escapes of one string, or so much white space, is passed at once. */
const MAX_ESCAPES = 4096;
const MAX_SPACES = 65_536;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET_OPEN = 0x5b;
const BRACKET_CLOSE = 0x5d;
const BRACE_OPEN = 0x7b;
const BRACE_CLOSE = 0x7d;
const SCALAR = /-?\d[\d.eE+-]*|true|false|null/y;

/** `scalar`: a number, `true`, `false` or `null`. `open` and `close`: an array or an object begins or ends. */
export type Token = 'key' | 'string' | 'scalar' | 'open' | 'close';

/**
 * Checks the grammar between the tokens. It does not check what stands in strings, nor that a number is well formed: that
 * is for JSON.parse, which sees those that matter.
 */
export class JsonScanner {
  readonly #text: string;
  readonly #quotes: Finder;
  readonly #backslashes: Finder;
  /** Whether each container around the position is an object. */
  readonly #isObject: boolean[] = [];
  #position = 0;
  /** The next token: `first` is a member or a closing bracket, `next` a comma or a closing bracket. */
  #expects: 'value' | 'first' | 'key' | 'colon' | 'next' = 'value';
  /** Where the search for the end of a long string goes on; -1 outside of one. */
  #stringPosition = -1;
  #keyStart = 0;
  #keyEnd = 0;
  /** The current token is `text.slice(start, end)`. */
  start = 0;
  end = 0;

  constructor(text: string, position: number) {
    this.#text = text;
    this.#position = position;
    this.#quotes = new Finder(text, '"');
    this.#backslashes = new Finder(text, '\\');
  }

  /** Goes to where a value begins, further on in the text. */
  moveTo(position: number): void {
    this.#position = position;
    this.#isObject.length = 0;
    this.#expects = 'value';
    this.#stringPosition = -1;
  }

  /** How many containers are open. */
  get depth(): number {
    return this.#isObject.length;
  }

  /** The beginning of the last key, long enough to know it by. */
  get key(): string {
    return this.#text.slice(this.#keyStart + 1, Math.min(this.#keyEnd - 1, this.#keyStart + 50));
  }

  /** Goes to the next token. `later`: it takes long, call again. Null: the text is over, goes too deep or is no JSON. */
  next(): Token | 'later' | null {
    if (this.#stringPosition !== -1) return this.#endString();
    this.#skipSpace();
    let unit = this.#text.charCodeAt(this.#position);
    if (unit === COMMA && this.#expects === 'next' && this.depth > 0) {
      this.#expects = this.#isObject.at(-1) === true ? 'key' : 'value';
      unit = this.#skipMark();
    } else if (unit === COLON && this.#expects === 'colon') {
      this.#expects = 'value';
      unit = this.#skipMark();
    }
    const position = this.#position;
    this.start = position;
    if (isSpace(unit)) return 'later';
    if (unit === BRACKET_CLOSE || unit === BRACE_CLOSE) return this.#close(unit === BRACE_CLOSE);
    if (this.#expects === 'next' || this.#expects === 'colon') return null;
    if (unit === QUOTE) {
      this.#stringPosition = position + 1;
      return this.#endString();
    }
    if (this.#expectsKey()) return null;
    if (unit === BRACE_OPEN || unit === BRACKET_OPEN) return this.#open(unit === BRACE_OPEN);
    SCALAR.lastIndex = position;
    if (!SCALAR.test(this.#text)) return null;
    return this.#found('scalar', SCALAR.lastIndex);
  }

  /** After a whole value, lets another one follow (JSON Lines); false if nothing but white space does. */
  beginAnother(): boolean {
    if (this.depth > 0 || this.#expects !== 'next') return false;
    this.#skipSpace();
    if (this.#text.charCodeAt(this.#position) !== BRACE_OPEN) return false;
    this.#expects = 'value';
    return true;
  }

  /** Whether the text was one value, and nothing stands after it. */
  get isComplete(): boolean {
    return this.depth === 0 && this.#expects === 'next' && this.#position === this.#text.length;
  }

  #expectsKey(): boolean {
    return this.#expects === 'key' || (this.#expects === 'first' && this.#isObject.at(-1) === true);
  }

  #open(isObject: boolean): Token | null {
    if (this.depth === MAX_DEPTH) return null;
    this.#isObject.push(isObject);
    this.end = this.start + 1;
    this.#position = this.end;
    this.#expects = 'first';
    return 'open';
  }

  #close(isObject: boolean): Token | null {
    if (this.#isObject.at(-1) !== isObject || (this.#expects !== 'first' && this.#expects !== 'next')) return null;
    this.#isObject.pop();
    return this.#found('close', this.start + 1);
  }

  #endString(): Token | 'later' | null {
    for (let i = 0; i < MAX_ESCAPES; i += 1) {
      const quote = this.#quotes.next(this.#stringPosition);
      const backslash = this.#backslashes.next(this.#stringPosition);
      if (quote > backslash) {
        this.#stringPosition = backslash + 2;
        continue;
      }
      this.#stringPosition = -1;
      if (quote === this.#text.length) return null;
      if (!this.#expectsKey()) return this.#found('string', quote + 1);
      this.#keyStart = this.start;
      this.#keyEnd = quote + 1;
      return this.#found('key', quote + 1);
    }
    return 'later';
  }

  #found(token: Token, end: number): Token {
    this.end = end;
    this.#position = end;
    this.#expects = token === 'key' ? 'colon' : 'next';
    return token;
  }

  /** Skips the mark at the position and white space. Returns the unit that follows. */
  #skipMark(): number {
    this.#position += 1;
    this.#skipSpace();
    return this.#text.charCodeAt(this.#position);
  }

  #skipSpace(): void {
    let position = this.#position;
    const last = position + MAX_SPACES;
    while (position < last && isSpace(this.#text.charCodeAt(position))) position += 1;
    this.#position = position;
  }
}

function isSpace(unit: number): boolean {
  return unit < 0x21 && (unit === 0x20 || unit === 0x0a || unit === 0x0d || unit === 0x09);
}
