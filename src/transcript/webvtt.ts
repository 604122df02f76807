/** WebVTT (W3C): a signature, then blocks between blank lines; a block with a timing line is a cue. */
import { cueTextSteps } from './cue-text.ts';
import { contentStart, Finder, LineScanner } from './lines.ts';
import { Pace, type Steps } from './steps.ts';
import { ARROW, isTimingLine } from './timing.ts';
import { TurnWriter } from './turn-writer.ts';
import type { ParsedTranscript } from './types.ts';

const SIGNATURE = 'WEBVTT';

/**
 * Parses WebVTT; null where the signature is missing. Follows "WebVTT file parsing" of the standard, but that a line
 * with an arrow and no timestamps is no timing and stays among the words. Header, notes, styles and regions are no turns.
 */
export function* webvttSteps(body: string): Steps<ParsedTranscript | null> {
  if (!hasSignature(body)) return null;
  const lines = new LineScanner(body);
  const arrows = new Finder(body, ARROW);
  const cues = new CueWriter(body);
  const pace = new Pace();
  lines.advance();
  /** Lines of the current block that belong to no cue; a single one above a timing line is the cue's identifier. */
  let blockLines = 0;
  let blockStart = 0;
  while (lines.advance()) {
    const { start, end } = lines;
    if (pace.isDue(start)) yield;
    if (start === end) {
      if (cues.isOpen) yield* cues.close();
      blockLines = 0;
    } else if (arrows.next(start) < end && isTimingLine(body, start, end)) {
      if (cues.isOpen) yield* cues.close();
      cues.open(blockLines === 1 ? blockStart : start);
      blockLines = 0;
    } else if (cues.isOpen) {
      cues.addLine(start, end);
    } else {
      if (blockLines === 0) blockStart = start;
      blockLines += 1;
    }
  }
  if (cues.isOpen) yield* cues.close();
  return cues.finish();
}

/** `WEBVTT` at the beginning, followed by white space or nothing. */
function hasSignature(body: string): boolean {
  const start = contentStart(body);
  if (!body.startsWith(SIGNATURE, start)) return false;
  const following = body[start + SIGNATURE.length];
  return following === undefined || [' ', '\t', '\n', '\r'].includes(following);
}

/** Takes the lines of one cue after another and writes each as a turn. */
class CueWriter {
  readonly #body: string;
  readonly #writer: TurnWriter;
  readonly #tags: Finder;
  readonly #references: Finder;
  readonly #carriageReturns: Finder;
  #payloadStart = -1;
  #payloadEnd = -1;
  isOpen = false;

  constructor(body: string) {
    this.#body = body;
    this.#writer = new TurnWriter(body);
    this.#tags = new Finder(body, '<');
    this.#references = new Finder(body, '&');
    this.#carriageReturns = new Finder(body, '\r');
  }

  open(sliceStart: number): void {
    this.#writer.beginTurn(sliceStart);
    this.#payloadStart = -1;
    this.isOpen = true;
  }

  addLine(start: number, end: number): void {
    if (this.#payloadStart === -1) this.#payloadStart = start;
    this.#payloadEnd = end;
  }

  *close(): Steps<void> {
    this.isOpen = false;
    const start = this.#payloadStart;
    const end = this.#payloadEnd;
    if (start === -1) return;
    const isPlain = [this.#tags, this.#references, this.#carriageReturns].every((finder) => finder.next(start) >= end);
    if (isPlain) this.#writer.addRange(start, end);
    else this.#writer.addString(yield* cueTextSteps(this.#body.slice(start, end)));
  }

  finish(): ParsedTranscript {
    return this.#writer.finish('webvtt');
  }
}
