/** Collects the turns of a body while it is read. */
import { Column } from './column.ts';
import { Pieces } from './pieces.ts';

export type FormName = 'json' | 'webvtt' | 'subrip' | 'sbv' | 'columns' | 'spoken lines';

/**
 * A body that was read, from which any page can be cut. Turns are columns of numbers, not objects, because a 2 MB body may
 * hold a million of them. All positions are UTF-16 units; every string is well formed.
 */
export interface ParsedTranscript {
  /** The upstream body; lone surrogates have become U+FFFD. */
  readonly body: string;
  /** The form that the body is in, whatever the store declared; null if it is in none. */
  readonly form: FormName | null;
  /** How its turns are written, such as `[time] name: words`; null if nothing shows it. */
  readonly shape: string | null;
  readonly turnCount: number;
  /** The texts of all turns (`Name: words`, or just the words), joined by one line feed. */
  readonly text: string;
  /** `turnCount + 1` values: the text of turn i is `text.slice(textStarts.at(i), textStarts.at(i + 1) - 1)`. */
  readonly textStarts: Column;
  /**
   * The slice of turn i is `body.slice(sliceStarts.at(i), sliceStarts.at(i + 1))`; the slices make up the body.
   * `turnCount + 1` values, except that a body that is not empty and has no turn is one slice.
   */
  readonly sliceStarts: Column;
}

const LINE_FEED = 0x0a;

/**
 * Positions given to it are of the body and never go back. Ranges of the body that follow one another stay one range: the
 * text of a body of plain spoken lines is the body itself, and takes no memory of its own.
 */
export class TurnWriter {
  readonly #body: string;
  readonly #pieces = new Pieces();
  /** Not yet among the pieces. */
  #rangeStart = 0;
  #rangeEnd = 0;
  #textLength = 0;
  readonly #textStarts = new Column();
  readonly #sliceStarts = new Column();
  /** Whether no turn of the form has begun yet. */
  #isPreamble = true;
  #isAfterBlank = true;
  /** Whether the current turn has a line yet. */
  #hasLine = false;
  /** The blank lines after the turn's last line, if there are any. */
  #blanks: Pieces | null = null;

  constructor(body: string) {
    this.#body = body;
  }

  get turnCount(): number {
    return this.#textStarts.length;
  }

  /** Begins a turn whose slice of the body begins at `sliceStart`; what stands before belongs to its neighbour. */
  beginTurn(sliceStart: number): void {
    this.#isPreamble = false;
    this.#begin(sliceStart);
  }

  /**
   * Adds a line of words. It goes on with the current turn, joined to the line before by a line feed. A line above the
   * first turn is nobody's (T11: one turn without a speaker per paragraph).
   */
  words(start: number, end: number): void {
    if (this.#isPreamble && this.#isAfterBlank) this.#begin(start);
    this.#isAfterBlank = false;
    this.#goOn();
    this.addRange(start, end);
    this.#hasLine = true;
  }

  /** Notes a blank line: it is part of the turn's text only if another line of the same turn follows. */
  blank(start: number, end: number): void {
    this.#isAfterBlank = true;
    if (this.#isPreamble || !this.#hasLine) return;
    this.#blanks ??= new Pieces();
    this.#blanks.add(`${this.#body.slice(start, end)}\n`);
  }

  /** Adds a range of the body to the current turn as it is. */
  addRange(start: number, end: number): void {
    this.#textLength += end - start;
    if (start !== this.#rangeEnd) {
      this.#endRange();
      this.#rangeStart = start;
    }
    this.#rangeEnd = end;
  }

  /** Adds text that does not stand in the body in this form. */
  add(text: string): void {
    this.#textLength += text.length;
    this.#endRange();
    this.#pieces.add(text);
  }

  finish(form: FormName | null, shape: string | null): ParsedTranscript {
    const { turnCount } = this;
    this.#endRange();
    if (turnCount === 0 && this.#body !== '') this.#sliceStarts.push(0);
    this.#sliceStarts.push(this.#body.length);
    this.#textStarts.push(turnCount === 0 ? 0 : this.#textLength + 1);
    return {
      body: this.#body,
      form,
      shape,
      turnCount,
      text: this.#pieces.toString(),
      textStarts: this.#textStarts,
      sliceStarts: this.#sliceStarts,
    };
  }

  #begin(sliceStart: number): void {
    if (this.turnCount > 0) this.#addLineFeed();
    this.#sliceStarts.push(this.turnCount === 0 ? 0 : sliceStart);
    this.#textStarts.push(this.#textLength);
    this.#hasLine = false;
    this.#blanks = null;
  }

  /** Goes to a new line of the turn, if it has one already, and writes the blank lines that were noted before it. */
  #goOn(): void {
    if (this.#hasLine) this.#addLineFeed();
    if (this.#blanks !== null) this.add(this.#blanks.toString());
    this.#blanks = null;
  }

  #addLineFeed(): void {
    if (this.#body.charCodeAt(this.#rangeEnd) === LINE_FEED) this.addRange(this.#rangeEnd, this.#rangeEnd + 1);
    else this.add('\n');
  }

  #endRange(): void {
    if (this.#rangeEnd > this.#rangeStart) this.#pieces.add(this.#body.slice(this.#rangeStart, this.#rangeEnd));
    this.#rangeStart = this.#rangeEnd;
  }
}
