/** Collects the turns of a body while it is parsed. */
import type { TranscriptFormat } from '../domain/records.ts';
import { Int32List } from './columns.ts';
import type { ParsedTranscript } from './types.ts';

const LINE_FEED = 10;

/**
 * Builds one long string from ranges of a body and from other strings. Ranges that follow one another stay one range,
 * and pieces are joined as they come, so a body of tiny lines doesn't become a million small strings.
 */
class TextBuilder {
  static readonly #piecesPerBlock = 65_536;
  readonly #body: string;
  #blocks: string[] = [];
  #pieces: string[] = [];
  #rangeStart = 0;
  #rangeEnd = 0;
  /** Length of the whole so far, in UTF-16 units. */
  length = 0;

  constructor(body: string) {
    this.#body = body;
  }

  addRange(start: number, end: number): void {
    this.length += end - start;
    if (start === this.#rangeEnd) {
      this.#rangeEnd = end;
      return;
    }
    this.#closeRange();
    this.#rangeStart = start;
    this.#rangeEnd = end;
  }

  addString(text: string): void {
    if (text === '') return;
    this.length += text.length;
    this.#closeRange();
    this.#addPiece(text);
  }

  addLineFeed(): void {
    if (this.#body.charCodeAt(this.#rangeEnd) === LINE_FEED) this.addRange(this.#rangeEnd, this.#rangeEnd + 1);
    else this.addString('\n');
  }

  finish(): string {
    this.#closeRange();
    this.#blocks.push(this.#pieces.join(''));
    return this.#blocks.join('');
  }

  /** Leaves an empty range that only what begins at the same place can extend. */
  #closeRange(): void {
    if (this.#rangeEnd > this.#rangeStart) this.#addPiece(this.#body.slice(this.#rangeStart, this.#rangeEnd));
    this.#rangeStart = this.#rangeEnd;
  }

  #addPiece(piece: string): void {
    this.#pieces.push(piece);
    if (this.#pieces.length < TextBuilder.#piecesPerBlock) return;
    this.#blocks.push(this.#pieces.join(''));
    this.#pieces = [];
  }
}

/** Positions given to it are of the body and never go back. */
export class TurnWriter {
  readonly #body: string;
  readonly #text: TextBuilder;
  readonly #textStarts = new Int32List();
  readonly #sliceStarts = new Int32List();
  /** Whether the current turn has a line yet, and how many blank lines stand after its last one. */
  #hasLine = false;
  #blankLines = 0;

  constructor(body: string) {
    this.#body = body;
    this.#text = new TextBuilder(body);
  }

  get turnCount(): number {
    return this.#textStarts.length;
  }

  /** Begins a turn whose slice of the body begins at `sliceStart`; what stands before belongs to its neighbour. */
  beginTurn(sliceStart: number): void {
    if (this.turnCount > 0) this.#text.addLineFeed();
    this.#textStarts.push(this.#text.length);
    this.#sliceStarts.push(this.turnCount === 1 ? 0 : sliceStart);
    this.#hasLine = false;
  }

  /** Adds a line of the body to the current turn, joined to the line before by a line feed. */
  addLine(start: number, end: number): void {
    if (this.#hasLine) {
      this.#text.addLineFeed();
      if (this.#blankLines > 0) this.#text.addString('\n'.repeat(this.#blankLines));
    }
    this.#text.addRange(start, end);
    this.#hasLine = true;
    this.#blankLines = 0;
  }

  /** Notes a blank line: it is part of the turn's text only where another line of the same turn follows. */
  addBlankLine(): void {
    this.#blankLines += 1;
  }

  /** Adds a range of the body to the current turn as it is. */
  addRange(start: number, end: number): void {
    this.#text.addRange(start, end);
  }

  /** Adds text that does not stand in the body in this form. */
  addString(text: string): void {
    this.#text.addString(text);
  }

  finish(format: TranscriptFormat | null): ParsedTranscript {
    const turnCount = this.turnCount;
    if (turnCount === 0 && this.#body !== '') this.#sliceStarts.push(0);
    this.#sliceStarts.push(this.#body.length);
    this.#textStarts.push(turnCount === 0 ? 0 : this.#text.length + 1);
    return {
      body: this.#body,
      format,
      turnCount,
      text: this.#text.finish(),
      textStarts: this.#textStarts.toColumn(),
      sliceStarts: this.#sliceStarts.toColumn(),
    };
  }
}
