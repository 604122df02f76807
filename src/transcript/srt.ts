/** SubRip: a counter, a timing line, the words, a blank line. */
import { skipBlanks, skipDigits } from './ascii.ts';
import { Finder, isBlank, LineScanner } from './lines.ts';
import { Pace, type Steps } from './steps.ts';
import { ARROW, isTimingLine } from './timing.ts';
import { TurnWriter } from './turn-writer.ts';
import type { ParsedTranscript } from './types.ts';

/**
 * Parses SubRip; null where the body isn't it. A cue's words reach to the next cue's counter or timing, blank lines
 * among them included, because players show them so. `strict`: the body must
 * begin with a cue. `lenient`: lines before the first cue are passed over.
 */
export function* srtSteps(body: string, rule: 'strict' | 'lenient'): Steps<ParsedTranscript | null> {
  const lines = new LineScanner(body);
  const arrows = new Finder(body, ARROW);
  const writer = new TurnWriter(body);
  const pace = new Pace();
  /** The line before, where it is a number: the next cue's counter, if a timing follows. */
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
