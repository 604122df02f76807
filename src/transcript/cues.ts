/**
 * Cues: a line with a time range above the words that are shown during it. WebVTT, SubRip and SBV differ in how they write
 * the range and in what may stand around it; the rest is here. No words are lost (T2a: what is not a mark at its place is
 * words): only marks at their place are.
 */
import { type CueDialect, dialectsOf } from './cue-dialects.ts';
import { CueRanges } from './cue-ranges.ts';
import { CueWriter } from './cue-writer.ts';
import { type Body, Measure, type Reading } from './form.ts';
import { LineHead } from './line-head.ts';
import { Finder, Lines, skipBlanks, skipFormatCharacters } from './lines.ts';
import { MAX_NAME_UNITS, Names } from './names.ts';
import type { Slices } from './slices.ts';
import { isDigit, matchEnd } from './times.ts';

/** The findings of the first look at a file, for the second. */
interface CueHabits {
  /** Cues without fractions are cues only in a file that has no others. */
  hasExact: boolean;
  hasLoose: boolean;
  damaged: number;
  /** Whether the first cue, if there is one, has a line of its own above its range, and whether that is a number. */
  label: 'none' | 'counter' | 'identifier' | null;
  readonly ranges: CueRanges;
  readonly speakers: Names;
  /** Lines of the header. */
  headerLines: number;
}

/** How the body reads as cues of the dialect that explains most lines; null if it has none. */
export function* readCues(body: Body): Slices<Reading | null> {
  let best: Reading | null = null;
  for (const dialect of yield* dialectsOf(body)) {
    const reading = yield* readDialect(body, dialect);
    if (reading !== null && reading.explained > (best?.explained ?? 0)) best = reading;
  }
  return best;
}

function* readDialect(body: Body, dialect: CueDialect): Slices<Reading | null> {
  const habits = yield* habitsOf(body, dialect);
  if (habits === null) return null;
  // A program that writes them all with the same mistake.
  if (!habits.hasExact && !habits.hasLoose && habits.damaged >= MIN_DAMAGED) habits.hasExact = true;
  if (!habits.hasExact && !habits.hasLoose && !dialect.isSigned) return null;
  return yield* new CueReader(body.text, dialect, habits).read();
}

/** Null if most lines that look like time ranges are none. */
function* habitsOf(body: Body, dialect: CueDialect): Slices<CueHabits | null> {
  const habits: CueHabits = {
    hasExact: false,
    hasLoose: false,
    damaged: 0,
    label: null,
    ranges: new CueRanges(),
    speakers: new Names(),
    headerLines: 0,
  };
  const { text, timeText } = body;
  const lines = new Lines(text);
  const arrows = new Finder(text, dialect.arrow);
  const [colons, voices] = [new Finder(text, ':'), new Finder(text, '<v')];
  const head = new LineHead(body);
  const firstLines = new FirstLines();
  /** The line before, and how many lines its paragraph has. */
  let [labelStart, labelEnd, paragraphLines] = [0, 0, 0];
  let misses = 0;
  while (lines.advance()) {
    const { start, end } = lines;
    if (lines.isDue) yield;
    if (start < dialect.contentStart) {
      if (!lines.isBlank) habits.headerLines += 1;
      continue;
    }
    const hasArrow = arrows.next(start) < end;
    const range = hasArrow ? dialect.rangeAt(timeText, rangeStart(text, start)) : null;
    if (hasArrow && range === null && isDigit(text.charCodeAt(start))) {
      misses += 1;
      if (misses > MAX_MISSES && misses > habits.ranges.length) return null;
    }
    if (range !== null) habits.ranges.add(start, range);
    if (range?.quality === 'exact') habits.hasExact = true;
    if (range?.quality === 'loose') habits.hasLoose = true;
    if (range?.quality === 'damaged') habits.damaged += 1;
    firstLines.next(text, start, end, range !== null);
    if (range !== null) {
      habits.label ??= labelOf(text.slice(labelStart, labelEnd), paragraphLines, dialect);
    } else if (lines.isBlank) {
      paragraphLines = 0;
      continue;
    } else if (
      !habits.speakers.isFull &&
      end - start < MAX_VOICE_LINE_UNITS &&
      Math.min(colons.next(start), voices.next(start)) < end
    ) {
      const name = speakerOf(head, text, start, end);
      if (name !== null) habits.speakers.add(name);
    }
    labelStart = start;
    labelEnd = end;
    paragraphLines += 1;
  }
  for (const name of firstLines.speakers()) habits.speakers.add(name);
  return habits;
}

/** The first of several lines of a cue may be the speaker's name, if the same few names stand there again and again. */
class FirstLines {
  readonly #names = new Names();
  /** Lines of the cue so far; -1 outside of any. */
  #lines = -1;
  #first = '';
  #cues = 0;

  next(text: string, start: number, end: number, isRange: boolean): void {
    if (isRange) {
      this.#cues += 1;
      this.#lines = 0;
      return;
    }
    if (this.#lines === -1 || this.#lines > 1) return;
    this.#lines += 1;
    if (this.#lines === 1) this.#first = end - start < MAX_NAME_UNITS ? text.slice(start, end).trim() : '';
    else if (start < end && this.#first !== '' && this.#names.of(this.#first).isLikely) this.#names.add(this.#first);
  }

  /** The names, if they stand in most cues and recur. */
  speakers(): readonly string[] {
    const { repeats, size } = this.#names;
    return (repeats + size) * 10 >= this.#cues * 8 && size * 3 <= 2 * (repeats + size) ? this.#names.all() : [];
  }
}

/** So many lines of cues may look like time ranges and be none. */
const MAX_MISSES = 1000;
const MIN_DAMAGED = 2;
const MAX_VOICE_LINE_UNITS = 400;
const VOICE = /^<v(?:\.[^ <>]{0,100})? ([^<>]{1,100})>/i;

/** The speaker that a line of a cue names, by a voice tag or before a colon. */
function speakerOf(head: LineHead, text: string, start: number, end: number): string | null {
  if (text.charCodeAt(start) === 0x3c) {
    const voice = VOICE.exec(text.slice(start, end));
    if (voice !== null) return voice[1]?.trim() ?? null;
  }
  head.read(start, end);
  return head.nameEnds === 'colon' && head.timePlace === 'none' ? head.name : null;
}

function labelOf(line: string, paragraphLines: number, dialect: CueDialect): CueHabits['label'] {
  if (counterOf(line) !== null) return 'counter';
  return dialect.isSigned && paragraphLines === 1 ? 'identifier' : 'none';
}

/** The number that a line consists of; null if it does not. */
function counterOf(line: string): number | null {
  const [start, end] = [skipFormatCharacters(line, 0, line.length), line.length];
  let digits = start;
  while (digits < end && isDigit(line.charCodeAt(digits))) digits += 1;
  if (digits === start || skipBlanks(line, digits, end) < end) return null;
  return Number(line.slice(start, digits));
}

/** The beginning of a block that is nobody's words. */
const NOTE = /(?:NOTE(?=[ \t\r\n]|$)|(?:STYLE|REGION)[ \t]{0,16}(?=[\r\n]|$))/y;
const MAX_LABEL_UNITS = 200;
/** An identifier does not end like words do, and has no tags. */
const WORDS = /[.!?,…][ \t]{0,99}$|<\/?[a-z]/i;

/** The identifiers of Webex, `1 "Mara Quint" (3465757440)`, name the speaker. */
const NAMING_LABEL = /^\d+ "([^"]{1,100})" \(\d+\)[ \t]*$/;
/** No range that belongs to a label is farther from it. */
const MAX_UNITS_TO_RANGE = 1000;
/** So many blank lines may stand between a counter and its range. */
const BLANK_LINES = /(?:[^\S\r\n]{0,99}(?:\r\n|[\r\n])){0,3}/y;

/** Finds out what every line is, and writes the cues. */
class CueReader {
  readonly #text: string;
  readonly #dialect: CueDialect;
  readonly #habits: CueHabits;
  readonly #measure = new Measure();
  readonly #writer: CueWriter;
  /** Where the counter or the identifier begins whose range comes next; -1 if none does. */
  #labelStart = -1;
  /** The speaker whom it names. */
  #labelName = '';
  /** The counter of the cue before, or of the one that comes. */
  #counter: number | null = null;
  #isAfterBlank = true;
  #isInNote = false;

  constructor(text: string, dialect: CueDialect, habits: CueHabits) {
    this.#text = text;
    this.#dialect = dialect;
    this.#habits = habits;
    this.#writer = new CueWriter(text, dialect.markup, habits.speakers);
  }

  *read(): Slices<Reading> {
    const lines = new Lines(this.#text);
    while (lines.advance()) {
      const { start, end } = lines;
      if (lines.isDue) yield;
      if (start < this.#dialect.contentStart) continue;
      const isBetweenCues = this.#isAfterBlank || this.#labelStart !== -1;
      const wordsStart = this.#wordsOnRange(start, isBetweenCues);
      if (wordsStart !== null) yield* this.#range(start, wordsStart, end);
      else if (lines.isBlank) this.#blank(start, end);
      else if (this.#isNote(start, end)) {
        this.#measure.mark();
        // Words below the note are parted from those above it.
        yield* this.#writer.endPart();
      } else this.#line(start, end);
    }
    const transcript = yield* this.#writer.finish(this.#dialect.name);
    const { headerLines } = this.#habits;
    return { transcript, explained: this.#measure.explained() + headerLines, lines: this.#measure.lines + headerLines };
  }

  *#range(start: number, wordsStart: number, end: number): Slices<void> {
    this.#measure.turn(wordsStart === end);
    yield* this.#writer.endPart();
    this.#writer.beginCue(this.#labelStart === -1 ? start : this.#labelStart, this.#labelName);
    if (wordsStart < end) this.#writer.words(wordsStart, end);
    this.#labelStart = -1;
    this.#labelName = '';
    this.#isAfterBlank = false;
    this.#isInNote = false;
  }

  #blank(start: number, end: number): void {
    this.#isAfterBlank = true;
    this.#isInNote = false;
    // It stands between a counter and its range, not in the cue before.
    if (this.#labelStart !== -1) return;
    this.#measure.blank();
    this.#writer.blank(start, end);
  }

  #isNote(start: number, end: number): boolean {
    this.#isInNote ||= this.#dialect.isSigned && this.#isAfterBlank && matchEnd(NOTE, this.#text, start, end) !== null;
    return this.#isInNote;
  }

  #line(start: number, end: number): void {
    if (this.#isLabel(start, end)) {
      this.#measure.mark();
      this.#labelStart = start;
    } else {
      this.#measure.words();
      this.#writer.words(start, end);
      this.#isAfterBlank = false;
    }
  }

  /**
   * Whether the line is the counter or the identifier of the range below it: in WebVTT one line after a blank one, in
   * others a number in a file whose first cue has one. A counter may stand there twice.
   */
  #isLabel(start: number, end: number): boolean {
    const { label } = this.#habits;
    const { isSigned } = this.#dialect;
    if ((!isSigned && label !== 'counter') || end - start > MAX_LABEL_UNITS) return false;
    if (this.#habits.ranges.next(end) > end + MAX_UNITS_TO_RANGE) return false;
    const line = this.#text.slice(start, end);
    const counter = counterOf(line);
    if (counter === null && (!isSigned || !this.#isAfterBlank || WORDS.test(line))) return false;
    const isExpected = this.#counter === null || counter === this.#counter + 1;
    const isInOrder = label === 'counter' && counter !== null && isExpected;
    if (!isInOrder && !this.#isAfterBlank) return false;
    const below = end + (this.#text.startsWith('\r\n', end) ? 2 : 1);
    const rangeLine = matchEnd(BLANK_LINES, this.#text, below, this.#text.length) ?? below;
    if (!isInOrder && rangeLine > below) return false;
    if (isInOrder && this.#isAfterBlank && this.#repeats(line, rangeLine)) return true;
    if (this.#wordsOnRange(rangeLine, true) === null) return false;
    this.#counter = counter ?? this.#counter;
    this.#labelName = NAMING_LABEL.exec(line)?.[1]?.trim() ?? '';
    return true;
  }

  /** Whether the same counter stands there too, and its range below it. */
  #repeats(counter: string, start: number): boolean {
    if (!this.#text.startsWith(counter, start)) return false;
    const end = start + counter.length;
    if (!'\r\n'.includes(this.#text.charAt(end))) return false;
    return this.#wordsOnRange(end + (this.#text.startsWith('\r\n', end) ? 2 : 1), true) !== null;
  }

  /**
   * Where the words begin that stand on a line with a time range, its end if none do; null if the line is none. A range
   * without fractions is one only in a file that has no better, a damaged one only between cues of a file with sound ones.
   */
  #wordsOnRange(lineStart: number, isBetweenCues: boolean): number | null {
    const { hasExact, hasLoose, ranges } = this.#habits;
    const range = ranges.at(lineStart);
    if (range === null) return null;
    // Whole seconds may stand among others, as a program writes them.
    if (range.quality === 'loose' && hasExact && !(range.hasHours && isBetweenCues)) return null;
    if (range.quality === 'damaged' && !(isBetweenCues && (hasExact || hasLoose))) return null;
    const wordsStart = skipSettings(this.#text, range.end);
    const hasWords = !'\r\n'.includes(this.#text.charAt(wordsStart));
    return range.quality === 'loose' && hasWords && !range.hasHours ? null : wordsStart;
  }
}

const SETTING = /[ \t]{0,16}(?:align|line|position|size|vertical|region|[XY][12]):[^ \t\r\n]{1,100}(?=[ \t\r\n]|$)/y;

/** Where the words begin after a time range and its settings; the end of the line if there are none. */
function skipSettings(text: string, start: number): number {
  let position = start;
  for (;;) {
    const next = matchEnd(SETTING, text, position, text.length);
    if (next === null) return skipBlanks(text, position, text.length);
    position = next;
  }
}

/** Where a range may begin on the line, after format characters and blanks. */
function rangeStart(text: string, lineStart: number): number {
  return skipBlanks(text, skipFormatCharacters(text, lineStart, text.length), text.length);
}
