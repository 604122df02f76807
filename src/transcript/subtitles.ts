/** WebVTT and SubRip: cues, each with a line of times above its words. */
import { cueTextSteps } from './cue-text.ts';
import { contentStart, Finder, isBlank, LineScanner, skipBlanks, skipDigits } from './lines.ts';
import { Pace, type Steps } from './steps.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';

const ARROW = '-->';
const SIGNATURE = 'WEBVTT';

/**
 * Parses WebVTT (W3C): a signature, then blocks between blank lines; a block with a timing line is a cue. Null if the
 * signature is missing. Follows "WebVTT file parsing" of the standard, but that a line with an arrow and no timestamps is
 * no timing and stays among the words. Header, notes, styles and regions are no turns.
 */
export function* webvttSteps(body: string): Steps<ParsedTranscript | null> {
  if (!hasSignature(body)) return null;
  const lines = new LineScanner(body);
  const arrows = new Finder(body, ARROW);
  const writer = new TurnWriter(body);
  const marked = ['<', '&', '\r'].map((mark) => new Finder(body, mark));
  const pace = new Pace();
  let isInCue = false;
  /** The words of the cue, once it has a line. */
  let wordsStart = -1;
  let wordsEnd = -1;
  /** Lines of the current block that belong to no cue; a single one above a timing line is the cue's identifier. */
  let blockLines = 0;
  let blockStart = 0;
  function* endCue(): Steps<void> {
    const isPlain = marked.every((finder) => finder.next(wordsStart) >= wordsEnd);
    if (isPlain) writer.addRange(wordsStart, wordsEnd);
    else writer.addString(yield* cueTextSteps(body.slice(wordsStart, wordsEnd)));
    wordsStart = -1;
  }
  lines.advance();
  while (lines.advance()) {
    const { start, end } = lines;
    if (pace.isDue(start)) yield;
    const isTiming = arrows.next(start) < end && isTimingLine(body, start, end);
    if (wordsStart !== -1 && (isTiming || start === end)) yield* endCue();
    if (isTiming) {
      writer.beginTurn(blockLines === 1 ? blockStart : start);
      isInCue = true;
      blockLines = 0;
    } else if (start === end) {
      isInCue = false;
      blockLines = 0;
    } else if (isInCue) {
      if (wordsStart === -1) wordsStart = start;
      wordsEnd = end;
    } else {
      if (blockLines === 0) blockStart = start;
      blockLines += 1;
    }
  }
  if (wordsStart !== -1) yield* endCue();
  return writer.finish('webvtt');
}

/** `WEBVTT` at the beginning, followed by white space or nothing. */
function hasSignature(body: string): boolean {
  const start = contentStart(body);
  if (!body.startsWith(SIGNATURE, start)) return false;
  const following = body[start + SIGNATURE.length];
  return following === undefined || [' ', '\t', '\n', '\r'].includes(following);
}

/**
 * Parses SubRip: a counter, a timing line, the words, a blank line; null if the body isn't it. A cue's words reach to the
 * next cue's counter or timing, blank lines among them included, because players show them so. `strict`: the body must
 * begin with a cue. `lenient`: lines before the first cue are passed over.
 */
export function* srtSteps(body: string, rule: 'strict' | 'lenient'): Steps<ParsedTranscript | null> {
  const lines = new LineScanner(body);
  const arrows = new Finder(body, ARROW);
  const writer = new TurnWriter(body);
  const pace = new Pace();
  /** The line before, if it is a number: the next cue's counter, if a timing follows. */
  let counterStart = -1;
  let counterEnd = -1;
  while (lines.advance()) {
    const { start, end } = lines;
    if (pace.isDue(start)) yield;
    if (arrows.next(start) < end && isTimingLine(body, start, end)) {
      writer.beginTurn(counterStart === -1 ? start : counterStart);
      counterStart = -1;
      continue;
    }
    if (counterStart !== -1) addWords(writer, counterStart, counterEnd);
    const mayBeCounter = isCounter(body, start, end);
    counterStart = mayBeCounter ? start : -1;
    counterEnd = end;
    if (mayBeCounter) continue;
    addWords(writer, start, end);
    if (rule === 'strict' && writer.turnCount === 0 && !isBlank(body, start, end)) return null;
  }
  if (counterStart !== -1) addWords(writer, counterStart, counterEnd);
  return writer.turnCount > 0 ? writer.finish('srt') : null;
}

/** Adds a line to the cue that is open; before the first cue there is none. */
function addWords(writer: TurnWriter, start: number, end: number): void {
  if (writer.turnCount === 0) return;
  if (start === end) writer.addBlankLine();
  else writer.addLine(start, end);
}

function isCounter(text: string, start: number, end: number): boolean {
  const digitsEnd = skipDigits(text, start, end);
  return digitsEnd > start && skipBlanks(text, digitsEnd, end) === end;
}

/**
 * Whether the line is a cue's timing: two timestamps around an arrow; what follows (settings, coordinates) is free.
 * One rule for WebVTT and SubRip, with hours or without, with `.` or `,` or no fraction: the times are not published,
 * so a cue with a sloppy one keeps its words rather than losing them.
 */
function isTimingLine(text: string, start: number, end: number): boolean {
  const from = skipTimestamp(text, skipBlanks(text, start, end), end);
  if (from === -1) return false;
  const arrow = skipBlanks(text, from, end);
  if (!text.startsWith(ARROW, arrow)) return false;
  return skipTimestamp(text, skipBlanks(text, arrow + ARROW.length, end), end) !== -1;
}

/** Where `h:mm:ss.ttt`, `mm:ss` and the like end; -1 if there is none at `start`. */
function skipTimestamp(text: string, start: number, end: number): number {
  let groups = 0;
  let position = start;
  for (;;) {
    const groupEnd = skipDigits(text, position, end);
    if (groupEnd === position) return -1;
    groups += 1;
    position = groupEnd;
    if (groups === 3 || text[position] !== ':') break;
    position += 1;
  }
  if (groups < 2) return -1;
  if (text[position] !== '.' && text[position] !== ',') return position;
  return Math.max(position, skipDigits(text, position + 1, end));
}
