/** Names of speakers, and lines that begin with one (T3: what may be a name). */
import { isBlank, skipBlanks, skipFormatCharacters } from './lines.ts';
import { isOnlyTime, nameEndBeforeTime, skipTimeBefore } from './times.ts';

const MAX_NAME_POINTS = 60;
const MAX_NAME_WORDS = 8;
const COLON = 0x3a;
const WIDE_COLON = 0xff1a;
const PARENTHESIS_OPEN = 0x28;
const PARENTHESIS_CLOSE = 0x29;
const NAME_BEGINS = /^[\p{L}\p{Nd}+([@_"]/u;
const WHITE_SPACE = /\s/u;
/** `!`, `;` and `?`: signs of a sentence, not of a name. */
const SENTENCE_MARKS: ReadonlySet<number> = new Set([0x21, 0x3b, 0x3f]);
const BOLD = '**';

/** Where the parts of a line with a speaker are. Its text is the name, the colon and the words, less what marks them. */
export interface SpokenLine {
  readonly nameStart: number;
  readonly nameEnd: number;
  readonly colon: number;
  /** Right after the colon, or after the asterisks that close a bold name. */
  readonly wordsStart: number;
}

/** The parts of a line that begins with a speaker, a time beside it or not; null if it does not. Reads a few hundred units. */
export function spokenLine(text: string, start: number, end: number): SpokenLine | null {
  const lineStart = skipFormatCharacters(text, start, end);
  const afterTime = skipFormatCharacters(text, skipTimeBefore(text, lineStart, end), end);
  if (text.startsWith(BOLD, afterTime)) return boldLine(text, afterTime, end);
  const colon = speakerEnd(text, afterTime, end);
  if (colon === -1 || isOnlyTime(text, afterTime, colon)) return null;
  return { nameStart: afterTime, nameEnd: nameEndBeforeTime(text, afterTime, colon), colon, wordsStart: colon + 1 };
}

/** `**Name:** words` or `**Name**: words`, with a time beside the name or not. */
function boldLine(text: string, start: number, end: number): SpokenLine | null {
  const close = text.slice(start + BOLD.length, Math.min(end, start + 4 * MAX_NAME_POINTS)).indexOf(BOLD);
  if (close === -1) return null;
  const nameStart = skipTimeBefore(text, start + BOLD.length, end);
  const nameClose = start + BOLD.length + close;
  const afterName = nameClose + BOLD.length;
  const isColonBold = isColon(text.charCodeAt(nameClose - 1));
  const colon = isColonBold ? nameClose - 1 : skipTimeBefore(text, skipBlanks(text, afterName, end), end);
  const nameEnd = nameEndBeforeTime(text, nameStart, isColonBold ? colon : nameClose);
  if ((!isColonBold && !endsSpeaker(text, colon, end)) || !isName(text, nameStart, nameEnd)) return null;
  return { nameStart, nameEnd, colon, wordsStart: isColonBold ? afterName : colon + 1 };
}

/**
 * Where the colon stands that ends the speaker: the first `:` before white space or the end of the line, or the first
 * `：`; -1 if there is none or what stands before it is no name.
 */
function speakerEnd(text: string, start: number, end: number): number {
  const last = Math.min(end, start + 2 * MAX_NAME_POINTS + 1);
  for (let i = start; i < last; i += 1) {
    const unit = text.charCodeAt(i);
    if (isColon(unit) && endsSpeaker(text, i, end)) return isName(text, start, i) ? i : -1;
    if (SENTENCE_MARKS.has(unit)) return -1;
  }
  return -1;
}

function isColon(unit: number): boolean {
  return unit === COLON || unit === WIDE_COLON;
}

function endsSpeaker(text: string, position: number, end: number): boolean {
  if (position >= end) return false;
  if (text.charCodeAt(position) === WIDE_COLON) return true;
  if (text.charCodeAt(position) !== COLON) return false;
  return position + 1 === end || isWhiteSpace(text.charCodeAt(position + 1));
}

/**
 * Whether what stands between the two positions can be a speaker's name (T3): 1 to 60 code points, at most 8 words outside
 * parentheses, beginning with a letter, a digit or one of `+ ( [ @ _ "`, without `!`, `?` and `;`.
 */
export function isName(text: string, start: number, end: number): boolean {
  if (start >= end || end - start > 2 * MAX_NAME_POINTS) return false;
  if (!NAME_BEGINS.test(String.fromCodePoint(text.codePointAt(start) ?? 0))) return false;
  let [points, words, depth] = [0, 0, 0];
  let inWord = false;
  for (let i = start; i < end; i += 1) {
    const unit = text.charCodeAt(i);
    if (SENTENCE_MARKS.has(unit)) return false;
    const isLowSurrogate = unit >= 0xdc00 && unit <= 0xdfff;
    if (!isLowSurrogate) points += 1;
    if (unit === PARENTHESIS_OPEN) depth += 1;
    const isSpace = isWhiteSpace(unit);
    if (!isSpace && !inWord && depth === 0) words += 1;
    inWord = !isSpace;
    if (unit === PARENTHESIS_CLOSE && depth > 0) depth -= 1;
  }
  return points <= MAX_NAME_POINTS && words <= MAX_NAME_WORDS && !isBlank(text, start, end);
}

function isWhiteSpace(unit: number): boolean {
  if (unit < 0x80) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
  return WHITE_SPACE.test(String.fromCharCode(unit));
}

/** Counts how often each speaker speaks. It remembers so many names, more than any call has, and no more. */
export class SpeakerCounts {
  static readonly #MAX_NAMES = 4096;
  readonly #counts = new Map<string, number>();
  /** Lines of speakers who had spoken before. */
  repeats = 0;
  /** How many speakers have spoken once. */
  once = 0;

  add(name: string): void {
    const count = this.of(name);
    if (count === 0 && this.#counts.size >= SpeakerCounts.#MAX_NAMES) return;
    this.#counts.set(name, count + 1);
    if (count === 0) this.once += 1;
    else this.repeats += 1;
    if (count === 1) this.once -= 1;
  }

  of(name: string): number {
    return this.#counts.get(name) ?? 0;
  }
}
