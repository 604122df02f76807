/** `speaker_text`: one turn a line, `[hh:mm:ss] Name: words` or `Name: words`; other lines go on with the turn before. */
import { Finder, isBlank, isDigit, LineScanner, skipBlanks } from './lines.ts';
import { Pace, type Steps } from './steps.ts';
import { type ParsedTranscript, TurnWriter } from './turn-writer.ts';

const TIMESTAMP = '[00:00:00]';
const MAX_NAME_POINTS = 60;
const MAX_NAME_WORDS = 6;
const LETTER_OR_DIGIT = /^[\p{L}\p{Nd}]/u;
const WHITE_SPACE = /\s/u;
/** `!`, `"`, `;` and `?`: signs of a sentence, not of a name. */
const SENTENCE_MARKS: ReadonlySet<number> = new Set([0x21, 0x22, 0x3b, 0x3f]);

/**
 * Parses a body whose lines begin with speakers; null if it isn't one. Lines before the first speaker are a turn without
 * a speaker. `strict`: the first line must have a speaker, or most lines, because a colon somewhere in prose makes no
 * conversation. `lenient`: one line with a speaker will do.
 */
export function* speakerTextSteps(body: string, rule: 'strict' | 'lenient'): Steps<ParsedTranscript | null> {
  const lines = new LineScanner(body);
  const colons = new Finder(body, ': ');
  const writer = new TurnWriter(body);
  const pace = new Pace();
  let spokenLines = 0;
  let otherLines = 0;
  let isConversation = false;
  while (lines.advance()) {
    const { start, end } = lines;
    if (pace.isDue(start)) yield;
    if (isBlank(body, start, end)) {
      writer.addBlankLine();
      continue;
    }
    const nameStart = skipTimestamp(body, start, end);
    const nameEnd = colons.next(nameStart);
    const isSpoken = nameEnd < end && isSpeaker(body, nameStart, nameEnd);
    if (isSpoken) spokenLines += 1;
    else otherLines += 1;
    if (isSpoken && (rule === 'lenient' || otherLines === 0)) isConversation = true;
    if (isSpoken || writer.turnCount === 0) writer.beginTurn(start);
    writer.addLine(isSpoken ? nameStart : start, end);
  }
  return isConversation || spokenLines > otherLines ? writer.finish('speaker_text') : null;
}

/** Where the line goes on after `[hh:mm:ss]` and blanks; `start` if it doesn't begin so. */
function skipTimestamp(body: string, start: number, end: number): number {
  if (end - start < TIMESTAMP.length || body.charCodeAt(start) !== TIMESTAMP.charCodeAt(0)) return start;
  for (let i = 0; i < TIMESTAMP.length; i += 1) {
    const expected = TIMESTAMP.charCodeAt(i);
    const unit = body.charCodeAt(start + i);
    if (isDigit(expected) ? !isDigit(unit) : unit !== expected) return start;
  }
  return skipBlanks(body, start + TIMESTAMP.length, end);
}

/**
 * Whether what stands between the two positions is a speaker (T3): 1 to 60 code points, at most 6 words, beginning with a
 * letter or digit, without `!`, `?`, `;` or `"`. Reads at most 120 UTF-16 units, so a long line costs no more.
 */
function isSpeaker(text: string, start: number, end: number): boolean {
  if (start >= end || end - start > 2 * MAX_NAME_POINTS) return false;
  if (!LETTER_OR_DIGIT.test(String.fromCodePoint(text.codePointAt(start) ?? 0))) return false;
  let points = 0;
  let words = 0;
  let inWord = false;
  for (let i = start; i < end; i += 1) {
    const unit = text.charCodeAt(i);
    if (SENTENCE_MARKS.has(unit)) return false;
    const isLowSurrogate = unit >= 0xdc00 && unit <= 0xdfff;
    if (!isLowSurrogate) points += 1;
    const isSpace = isWhiteSpace(unit);
    if (!isSpace && !inWord) words += 1;
    inWord = !isSpace;
  }
  return points <= MAX_NAME_POINTS && words <= MAX_NAME_WORDS;
}

function isWhiteSpace(unit: number): boolean {
  if (unit < 0x80) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  return WHITE_SPACE.test(String.fromCharCode(unit));
}
