/** `speaker_text`: one turn a line, `[hh:mm:ss] Name: words` or `Name: words`; other lines go on with the turn before. */
import { isDigit, skipBlanks } from './ascii.ts';
import { Finder, isBlank, LineScanner } from './lines.ts';
import { isSpeaker } from './speaker.ts';
import { Pace, type Steps } from './steps.ts';
import { TurnWriter } from './turn-writer.ts';
import type { ParsedTranscript } from './types.ts';

/**
 * Parses a body whose lines begin with speakers; null where it isn't one. Lines before the first speaker are a turn
 * without a speaker. `strict`: the first line must have a speaker, or most lines, because a colon somewhere in prose
 * makes no conversation. `lenient`: one line with a speaker will do.
 */
export function* speakerTextSteps(body: string, rule: 'strict' | 'lenient'): Steps<ParsedTranscript | null> {
  if (!(yield* isConversationSteps(body, rule))) return null;
  const lines = new SpeakerLines(body);
  const writer = new TurnWriter(body);
  const pace = new Pace();
  for (let kind = lines.advance(); kind !== 'none'; kind = lines.advance()) {
    if (pace.isDue(lines.start)) yield;
    if (kind === 'blank') {
      writer.addBlankLine();
      continue;
    }
    if (kind === 'spoken' || writer.turnCount === 0) writer.beginTurn(lines.start);
    writer.addLine(lines.wordsStart, lines.end);
  }
  return writer.finish('speaker_text');
}

/** Decides before anything is written down; most conversations are known by their first line. */
function* isConversationSteps(body: string, rule: 'strict' | 'lenient'): Steps<boolean> {
  const lines = new SpeakerLines(body);
  const pace = new Pace();
  let spokenLines = 0;
  let otherLines = 0;
  for (let kind = lines.advance(); kind !== 'none'; kind = lines.advance()) {
    if (pace.isDue(lines.start)) yield;
    if (kind === 'spoken' && (rule === 'lenient' || otherLines === 0)) return true;
    if (kind === 'spoken') spokenLines += 1;
    if (kind === 'other') otherLines += 1;
  }
  return spokenLines > otherLines;
}

/** Walks the lines of a body and tells those with a speaker from the others. */
class SpeakerLines {
  readonly #body: string;
  readonly #lines: LineScanner;
  readonly #colons: Finder;
  /** Where the line's text begins: in front of the speaker where there is one, behind the timestamp. */
  wordsStart = 0;

  constructor(body: string) {
    this.#body = body;
    this.#lines = new LineScanner(body);
    this.#colons = new Finder(body, ': ');
  }

  get start(): number {
    return this.#lines.start;
  }

  get end(): number {
    return this.#lines.end;
  }

  advance(): 'spoken' | 'other' | 'blank' | 'none' {
    if (!this.#lines.advance()) return 'none';
    const { start, end } = this.#lines;
    if (isBlank(this.#body, start, end)) return 'blank';
    const nameStart = skipTimestamp(this.#body, start, end);
    const nameEnd = this.#colons.next(nameStart);
    const isSpoken = nameEnd < end && isSpeaker(this.#body, nameStart, nameEnd);
    this.wordsStart = isSpoken ? nameStart : start;
    return isSpoken ? 'spoken' : 'other';
  }
}

const TIMESTAMP = '[00:00:00]';

/** Where the line goes on after `[hh:mm:ss]` and blanks; `start` where it doesn't begin so. */
function skipTimestamp(body: string, start: number, end: number): number {
  if (end - start < TIMESTAMP.length || body.charCodeAt(start) !== TIMESTAMP.charCodeAt(0)) return start;
  for (let i = 0; i < TIMESTAMP.length; i += 1) {
    const expected = TIMESTAMP.charCodeAt(i);
    const unit = body.charCodeAt(start + i);
    if (isDigit(expected) ? !isDigit(unit) : unit !== expected) return start;
  }
  return skipBlanks(body, start + TIMESTAMP.length, end);
}
