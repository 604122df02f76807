/** A form of transcripts, and the measure by which one is chosen (T11: the one that explains most lines). */
import type { TranscriptFormat } from '../domain/vocabulary.ts';
import { withAsciiDigits } from './digits.ts';
import type { Slices } from './slices.ts';
import type { ParsedTranscript } from './turn-writer.ts';

/** A body that is to be read. */
export interface Body {
  /** Well formed. */
  readonly text: string;
  /** The text in which times are looked for: the same, with the digits of all scripts as ASCII ones. */
  readonly timeText: string;
  /** The store's opinion; null if it has none. A hint: it settles a doubt, and nothing else. */
  readonly declared: TranscriptFormat | null;
}

/** `text` must be well formed. */
export function* bodyOf(text: string, declared: TranscriptFormat | null): Slices<Body> {
  return { text, timeText: yield* withAsciiDigits(text), declared };
}

export interface Reading {
  readonly transcript: ParsedTranscript;
  /** How many of the body's lines that are not blank this form explains, by the `Measure` below. */
  readonly explained: number;
  /** How many lines are not blank. */
  readonly lines: number;
}

/** Whether a form explains more than half of the lines (T11). */
export function explainsMost({ explained, lines }: Reading): boolean {
  return explained * 2 > lines;
}

/** Paragraphs count with a turn above them only if at least one in so many begins with a turn. */
const MAX_PARAGRAPHS_PER_TURN = 8;

/**
 * Counts the lines that are not blank, and those that a form explains: lines that begin a turn, marks, and words that go on
 * with a turn. Words in the paragraph of their turn always count, and so does the paragraph below a line that only names who
 * speaks. Paragraphs further down count if turns are dense enough: a colon somewhere in an essay does not explain the essay.
 */
export class Measure {
  turns = 0;
  lines = 0;
  #near = 0;
  #distant = 0;
  #paragraphs = 0;
  #paragraphsOfTurns = 0;
  #isAfterBlank = true;
  #isNear = false;
  #isBare = false;

  /** A line that begins a turn. `isBare`: the words are expected below it. */
  turn(isBare: boolean): void {
    if (this.#isAfterBlank) this.#paragraphsOfTurns += 1;
    this.#line();
    this.turns += 1;
    this.#near += 1;
    this.#isNear = true;
    this.#isBare = isBare;
  }

  mark(): void {
    this.lines += 1;
    this.#near += 1;
  }

  /** A line that nothing explains. */
  other(): void {
    this.lines += 1;
  }

  /** A line of words, which belongs to the turn above it, if there is one. */
  words(): void {
    if (this.turns === 0) return this.other();
    this.#line();
    if (this.#isNear || this.#isBare) this.#near += 1;
    else this.#distant += 1;
    this.#isNear ||= this.#isBare;
    this.#isBare = false;
  }

  blank(): void {
    this.#isAfterBlank = true;
    this.#isNear = false;
  }

  /** `distant` settles whether words far from their turn count, when something else than their density tells. */
  explained(distant?: boolean): number {
    const isDense = this.turns > 1 && this.#paragraphsOfTurns * MAX_PARAGRAPHS_PER_TURN >= this.#paragraphs;
    return this.#near + ((distant ?? isDense) ? this.#distant : 0);
  }

  #line(): void {
    this.lines += 1;
    if (this.#isAfterBlank) this.#paragraphs += 1;
    this.#isAfterBlank = false;
  }
}
