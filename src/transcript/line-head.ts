/**
 * The head of a line: a time, a name, what sets them off, and where the words go on. A line is read without regard to the
 * others; the whole file shows whether what may be a name is one (evidence.ts).
 */
import type { Body } from './form.ts';
import { isPlainLetter, isWhiteSpace, skipWhite, trimmedEnd, unitsOf } from './lines.ts';
import { beginsName, isName, isSentenceMark, isSoundOrTag, MAX_NAME_UNITS, senderEnd } from './names.ts';
import { isDigit, linkEnd, type Time, timeAt } from './times.ts';

/** The end of a name. `line`: nothing else stands on the line. */
export type NameEnd = 'none' | 'colon' | 'time' | 'bracket' | 'bold' | 'gap' | 'dash' | 'line';

/** Where a time stands: before the name, behind it, or behind the colon. */
export type TimePlace = 'none' | 'before' | 'behind' | 'inside';

const COLON = 0x3a;
const WIDE_COLON = 0xff1a;
const PERIOD = 0x2e;
const TAB = 0x09;
const ASTERISK = 0x2a;
const UNDERSCORE = 0x5f;
const BACKSLASH = 0x5c;
const NUMBER_SIGN = 0x23;
const GREATER = 0x3e;
/** Signs that set a time or a name off, if white space surrounds them. */
const DASHES = unitsOf('-–—|•·@');
const BULLETS = unitsOf('-–—*•·▪');
const BRACKETS = unitsOf('[<');
const OPENING = unitsOf('[(（【<\\');
const LETTER = /\p{L}/u;
const MAX_BRACKETED_UNITS = 120;
/** A period behind one of these ends no name. */
const HONORIFIC = /(?:^|\s)(?:mr|mrs|ms|dr|hon|gen|sen|rep|adm|lt|col|sgt|st|jr|sr|prof|rev|messrs)$/i;

/** One object reads line after line; its members tell of the last. */
export class LineHead {
  readonly #text: string;
  readonly #timeText: string;
  /** Emphasis that is open where the name stands. */
  #open = 0;
  /** Where the line ends, less white space. */
  end = 0;
  /** `-`, `>`, `#` or `1.`: the mark before the line, if it has one. */
  mark = '';
  /** Where the line begins behind its mark and white space. */
  start = 0;
  timePlace: TimePlace = 'none';
  time: Time | null = null;
  timeStart = 0;
  /** Where the words go on if the time before them is all that is no words. */
  wordsAfterTime = 0;
  /** The end that the name has, if it is a name. */
  ending: NameEnd = 'none';
  #isName: boolean | null = null;
  /** `0:03 From Ann to Everyone:`, as in a chat. */
  #isSender = false;
  nameStart = 0;
  nameEnd = 0;
  /** The gap between a time and the name before it: `wide` is unlikely in prose. */
  gap: 'narrow' | 'wide' = 'wide';
  colon = -1;
  /** Behind the colon and what closes the emphasis of the name. */
  afterColon = 0;
  /** Where the words begin; `end` if there are none on the line. */
  wordsStart = 0;
  #mayBeBareName = false;
  /** Where a period ends what may be a name; -1 if none does. */
  period = -1;
  isBold = false;
  /** Emphasis that was opened before the name and not closed behind it: it marks the whole line. */
  openEmphasis = 0;

  constructor({ text, timeText }: Pick<Body, 'text' | 'timeText'>) {
    this.#text = text;
    this.#timeText = timeText;
  }

  /** Reads the line. `numberEnd`: behind its line number, if it has one. */
  read(start: number, end: number, numberEnd = start): void {
    const text = this.#text;
    const last = trimmedEnd(text, numberEnd, end);
    // A backslash at the end is a line break of Markdown.
    this.#reset(text.charCodeAt(last - 1) === BACKSLASH ? trimmedEnd(text, numberEnd, last - 1) : last);
    this.start = this.#skipMarks(numberEnd);
    const emphasis = this.#emphasisAt(this.start);
    const time = this.#timeAt(this.start + emphasis, this.end);
    if (time === null || this.#isCell(time)) {
      this.#readName(this.start, 0);
      return;
    }
    this.#setTime('before', time, this.start + emphasis);
    const closing = this.#emphasisAt(time.end);
    const afterTime = this.#skipSeparator(time.end + closing);
    this.wordsAfterTime = afterTime;
    this.wordsStart = afterTime;
    if (afterTime < this.end) this.#readName(afterTime, closing > 0 ? 0 : emphasis);
  }

  #timeAt(start: number, end: number): Time | null {
    return timeAt(this.#timeText, start, end);
  }

  /** Whether a bare time is a cell of a table. */
  #isCell({ end, isInBrackets }: Time): boolean {
    return !isInBrackets && ',;'.includes(this.#text.charAt(end)) && end + 1 < this.end && !this.#endsWord(end + 1);
  }

  get hasWords(): boolean {
    return this.wordsStart < this.end;
  }

  /** Whether a time is all there is on the line. */
  get isOnlyTime(): boolean {
    return this.timePlace === 'before' && this.wordsAfterTime >= this.end;
  }

  /** The end of the name. The name is looked at only when this is read, as most lines have none. */
  get nameEnds(): NameEnd {
    if (this.ending === 'none') return 'none';
    this.#isName ??=
      isName(this.#text, this.nameStart, this.nameEnd) &&
      this.#timeAt(this.nameStart, this.nameEnd)?.end !== this.nameEnd;
    return this.#isName ? this.ending : 'none';
  }

  /** Whether the whole line, or what follows the time on it, may be a name. */
  get isBareName(): boolean {
    return this.#mayBeBareName && isName(this.#text, this.nameStart, this.end);
  }

  get name(): string {
    return this.#text.slice(this.nameStart, this.nameEnd);
  }

  #reset(end: number): void {
    this.end = end;
    this.mark = '';
    this.timePlace = 'none';
    this.time = null;
    this.ending = 'none';
    this.#isName = null;
    this.#isSender = false;
    this.gap = 'wide';
    this.colon = -1;
    this.wordsStart = end;
    this.wordsAfterTime = end;
    this.#mayBeBareName = false;
    this.period = -1;
    this.isBold = false;
    this.openEmphasis = 0;
    this.#open = 0;
  }

  #setTime(place: TimePlace, time: Time, start: number): void {
    this.timePlace = place;
    this.time = time;
    this.timeStart = start;
  }

  /** Skips white space and format characters, then one mark of a list, a quotation or a heading. */
  #skipMarks(start: number): number {
    const i = this.#skipBlanks(start);
    const unit = this.#text.charCodeAt(i);
    if (isPlainLetter(unit)) return i;
    let after = i;
    if (unit === NUMBER_SIGN) after = this.#runEnd(i, NUMBER_SIGN, 6);
    else if (unit === GREATER) after = this.#runEnd(i, GREATER, 3);
    else if (isDigit(unit)) after = this.#listNumberEnd(i);
    else if (BULLETS.has(unit)) after = i + 1;
    if (after === i) return i;
    const content = this.#skipBlanks(after);
    if (content === after && unit !== GREATER && !this.#isDashBeforeName(i)) return i;
    this.mark = isDigit(unit) ? '1.' : unit === NUMBER_SIGN ? '#' : unit === GREATER ? '>' : '-';
    return content;
  }

  /** `-Ann: words`. */
  #isDashBeforeName(position: number): boolean {
    return '-–—•'.includes(this.#text.charAt(position)) && LETTER.test(this.#text.charAt(position + 1));
  }

  #runEnd(start: number, unit: number, most: number): number {
    let i = start;
    while (i < start + most && this.#text.charCodeAt(i) === unit) i += 1;
    return i;
  }

  /** Behind `12.` or `12)`; `start` if there is no such number. */
  #listNumberEnd(start: number): number {
    let i = start;
    while (i < start + 4 && isDigit(this.#text.charCodeAt(i))) i += 1;
    return '.)'.includes(this.#text.charAt(i)) && i < this.end ? i + 1 : start;
  }

  #skipBlanks(start: number): number {
    return skipWhite(this.#text, start, this.end);
  }

  /** How many asterisks or underscores of emphasis stand at the position. */
  #emphasisAt(position: number): number {
    const unit = this.#text.charCodeAt(position);
    if (unit !== ASTERISK && unit !== UNDERSCORE) return 0;
    const length = this.#runEnd(position, unit, 3) - position;
    return position + length > this.end || (unit === UNDERSCORE && length < 2) ? 0 : length;
  }

  #skipEmphasis(position: number): number {
    return position + this.#emphasisAt(position);
  }

  /** Skips white space, and a dash, a bar or a colon that white space follows. */
  #skipSeparator(start: number): number {
    const i = this.#skipBlanks(start);
    const unit = this.#text.charCodeAt(i);
    if (i >= this.end || !(unit === COLON || DASHES.has(unit))) return i;
    const after = this.#runEnd(i, unit, 2);
    return this.#endsWord(after) ? this.#skipBlanks(after) : i;
  }

  /** `open`: emphasis that was opened before the time. */
  #readName(from: number, open: number): void {
    const text = this.#text;
    const start = this.#skipToName(from, open);
    if (start >= this.end) return;
    if (BRACKETS.has(text.charCodeAt(start)) && this.#readBracketedName(start)) return;
    if (!beginsName(text, start)) return;
    this.nameStart = start;
    const emphasis = this.#open;
    let dash = -1;
    let dashWords = -1;
    const last = Math.min(this.end, start + MAX_NAME_UNITS + 1);
    for (let i = start; i < last; i += 1) {
      const unit = text.charCodeAt(i);
      if (isPlainLetter(unit)) continue;
      if (unit === COLON || unit === WIDE_COLON) {
        if (this.#readColon(i, emphasis)) return;
      } else if (unit === ASTERISK || unit === UNDERSCORE) {
        if (emphasis > 0 && this.#emphasisAt(i) >= emphasis) {
          this.#readAfterBold(i, i + emphasis);
          return;
        }
      } else if (unit === PERIOD) {
        if (this.period === -1 && this.#endsWord(i + 1) && !this.#isAbbreviation(start, i)) this.period = i;
      } else if (isSentenceMark(unit)) {
        if (dash !== -1) this.#setName('dash', dash, dashWords);
        return;
      } else if (OPENING.has(unit) && i > start) {
        const time = this.#timeAt(i, this.end);
        if (time !== null) {
          this.#readAfterTime(i, time, i);
          return;
        }
      } else if (isWhiteSpace(unit)) {
        const next = this.#skipBlanks(i);
        const isWide = next - i > 1 || unit === TAB;
        const afterDash = DASHES.has(text.charCodeAt(next))
          ? this.#skipBlanks(this.#runEnd(next, text.charCodeAt(next), 2))
          : next;
        const hasDash = afterDash > next + 1;
        const timeStart = this.#skipEmphasis(hasDash ? afterDash : next);
        const time = i > start ? this.#timeAt(timeStart, this.end) : null;
        if (time !== null && !time.isInBrackets && this.#readBareTime(i, time, timeStart, isWide || hasDash)) return;
        if (time === null && isWide && !hasDash && next < this.end) {
          this.#setName('gap', i, next);
          return;
        }
        if (hasDash && dash === -1) [dash, dashWords] = [i, afterDash];
        i = next - 1;
      }
    }
    if (last < this.end) {
      if (dash !== -1) this.#setName('dash', dash, dashWords);
      return;
    }
    this.#mayBeBareName = emphasis === 0;
    if (dash !== -1) this.#setName('dash', dash, dashWords);
    else this.#setName('line', this.end, this.end);
  }

  /** Where what may be a name begins, behind its emphasis and a sender's `From`. */
  #skipToName(from: number, open: number): number {
    const first = this.#skipBlanks(from);
    const start = first + this.#emphasisAt(first);
    this.#open = Math.max(open, start - first);
    this.#isSender = this.timePlace === 'before' && this.#text.startsWith('From ', start);
    return this.#isSender ? this.#skipBlanks(start + 'From '.length) : start;
  }

  /** `name:`, `**name:**`, `name: [time]`. */
  #readColon(position: number, emphasis: number): boolean {
    const text = this.#text;
    let after = position + 1;
    const closing = emphasis > 0 ? this.#emphasisAt(after) : 0;
    if (closing >= emphasis) after += closing;
    else this.openEmphasis = emphasis;
    const isColon = text.charCodeAt(position) === WIDE_COLON || closing > 0 || this.#endsWord(after);
    if (!isColon) {
      this.openEmphasis = 0;
      return false;
    }
    this.#setName('colon', position, after);
    this.colon = position;
    this.afterColon = after;
    this.isBold = emphasis > 0;
    const time = this.#timeFrom(after);
    if (time !== null && this.timePlace === 'none') this.#setTime('inside', time.time, time.start);
    if (time !== null) this.wordsStart = Math.max(after, this.#skipEmphasis(time.time.end));
    return true;
  }

  /** A time in brackets or between tabs, or one that is all that follows (`name: 0:03`, the words below). */
  #timeFrom(after: number): { readonly time: Time; readonly start: number } | null {
    const start = this.#skipEmphasis(this.#skipBlanks(after));
    const time = this.#timeAt(start, this.end);
    if (time === null) return null;
    const isCell = this.#text.charCodeAt(after) === TAB && this.#text.charCodeAt(time.end) === TAB;
    return time.isInBrackets || isCell || this.#skipBlanks(time.end) >= this.end ? { time, start } : null;
  }

  #readAfterBold(nameEnd: number, close: number): void {
    this.isBold = true;
    const next = this.#skipBlanks(close);
    const timeStart = this.#skipEmphasis(this.#skipSeparator(close));
    const time = this.#timeAt(timeStart, this.end);
    if (time !== null && this.#readAfterTime(nameEnd, time, timeStart)) return;
    if (this.#isColonAt(next)) {
      this.#setName('colon', nameEnd, next + 1);
      this.colon = next;
      this.afterColon = next + 1;
      const inside = this.#timeFrom(next + 1);
      if (inside !== null && this.timePlace === 'none') this.#setTime('inside', inside.time, inside.start);
      if (inside !== null) this.wordsStart = inside.time.end;
      return;
    }
    const words = this.#skipSeparator(close);
    this.#setName(words >= this.end ? 'line' : 'bold', nameEnd, words);
  }

  /** `name (time): words`, `name (time)`, `name (time) words`. */
  #readAfterTime(end: number, time: Time, timeStart: number): boolean {
    const after = this.#skipBlanks(this.#skipEmphasis(time.end));
    const nameEnd = trimComma(this.#text, trimmedEnd(this.#text, this.nameStart, end));
    if (this.#isColonAt(after)) {
      this.afterColon = this.#open > 0 ? this.#skipEmphasis(after + 1) : after + 1;
      this.#setName('colon', nameEnd, this.afterColon);
      this.colon = after;
    } else {
      this.#setName('time', nameEnd, this.#skipSeparator(after));
    }
    if (this.timePlace === 'none') this.#setTime('behind', time, timeStart);
    return true;
  }

  /** `name 0:03`, and the same with a colon or, if the gap is wide, words. */
  #readBareTime(nameEnd: number, time: Time, timeStart: number, isWide: boolean): boolean {
    const after = this.#skipBlanks(this.#skipEmphasis(time.end));
    if (after < this.end && !this.#isColonAt(after) && !isWide) return false;
    this.gap = isWide ? 'wide' : 'narrow';
    return this.#readAfterTime(nameEnd, time, timeStart);
  }

  /** `[name]`, `[name 0:03]`, `<name>`; false if it is neither, or a name that only begins with a bracket. */
  #readBracketedName(open: number): boolean {
    const text = this.#text;
    const closing = text.charAt(open) === '[' ? ']' : '>';
    const most = Math.min(this.end, open + MAX_BRACKETED_UNITS);
    let close = open + 1;
    while (close < most && text.charAt(close) !== closing) close += 1;
    if (close >= most || this.#isColonAt(close + 1) || isSoundOrTag(text.slice(open + 1, close))) return false;
    this.nameStart = open + 1;
    // A name may be a link.
    const next = this.#skipBlanks(this.#skipEmphasis(linkEnd(text, close + 1, this.end)));
    for (let i = open + 2; i < close; i += 1) {
      if (!isWhiteSpace(text.charCodeAt(i))) continue;
      const timeStart = this.#skipSeparator(i);
      const time = this.#timeAt(timeStart, close);
      if (time === null || skipWhite(text, time.end, close) < close) continue;
      this.#setTime('behind', time, timeStart);
      this.#setName('bracket', trimComma(text, i), next);
      return true;
    }
    const time = this.#timeAt(next, this.end);
    if (time !== null) {
      this.#readAfterTime(close, time, next);
      return true;
    }
    this.#setName(next >= this.end ? 'line' : 'bracket', close, next);
    return this.nameEnds !== 'none';
  }

  #setName(ending: NameEnd, nameEnd: number, wordsStart: number): void {
    this.ending = ending;
    this.#isName = null;
    this.nameEnd = trimmedEnd(this.#text, this.nameStart, nameEnd);
    this.wordsStart = Math.min(wordsStart, this.end);
    if (this.#isSender) this.nameEnd = senderEnd(this.#text, this.nameStart, this.nameEnd);
  }

  #isColonAt(position: number): boolean {
    const unit = this.#text.charCodeAt(position);
    if (position >= this.end) return false;
    if (unit === WIDE_COLON) return true;
    return (
      unit === COLON &&
      (this.#endsWord(position + 1) || (this.#open > 0 && this.#emphasisAt(position + 1) >= this.#open))
    );
  }

  #endsWord(position: number): boolean {
    return position >= this.end || isWhiteSpace(this.#text.charCodeAt(position));
  }

  #isAbbreviation(start: number, period: number): boolean {
    return HONORIFIC.test(this.#text.slice(Math.max(start, period - 8), period));
  }
}

function trimComma(text: string, end: number): number {
  return text.charAt(end - 1) === ',' ? end - 1 : end;
}
