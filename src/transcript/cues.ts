/**
 * Cues: a line with a time range above the words that are shown during it. WebVTT, SubRip and SBV differ in how they write
 * the range and in what may stand around it; the rest is here. No words are lost (T2a: what is not a mark at its place is
 * words): only marks at their place are.
 */
import { type Body, Measure, type Reading } from './form.ts';
import type { Markup } from './cue-text.ts';
import { CueWriter } from './cue-writer.ts';
import { Finder, isDigit, Lines, skipBlanks, skipFormatCharacters } from './lines.ts';
import type { Slices } from './slices.ts';
import { SpeakerCounts, spokenLine } from './speakers.ts';
import { matchEnd, type TimeRange } from './times.ts';
import type { FormName } from './turn-writer.ts';

/** How one kind of cues is written. */
export interface CueDialect {
  readonly name: FormName;
  readonly markup: Markup;
  /** A line with a time range holds this. */
  readonly arrow: string;
  /** The time range that begins between the two positions, behind white space; null if none does. */
  rangeAt(text: string, start: number, end: number): TimeRange | null;
  /** Where the cues and what stands above them begin, after a signature and its header. */
  readonly contentStart: number;
  /** Whether a line above a range may be an identifier that is no number. */
  readonly hasIdentifiers: boolean;
}

/** What the first look at a file finds out about it, for the second. */
interface CueHabits {
  /** Cues without fractions are cues only in a file that has no others. */
  hasExact: boolean;
  hasLoose: boolean;
  /** Whether the first cue, if there is one, has a line of its own above its range, and whether that is a number. */
  label: 'none' | 'counter' | 'identifier' | null;
  readonly speakers: SpeakerCounts;
  /** Lines of the header. */
  headerLines: number;
}

/** How the body reads as cues of the dialect; null if it has none. */
export function* readCues({ text }: Body, dialect: CueDialect): Slices<Reading | null> {
  const habits = yield* habitsOf(text, dialect);
  if (!habits.hasExact && !habits.hasLoose && dialect.contentStart === 0) return null;
  return yield* new CueReader(text, dialect, habits).read();
}

function* habitsOf(text: string, dialect: CueDialect): Slices<CueHabits> {
  const habits: CueHabits = {
    hasExact: false,
    hasLoose: false,
    label: null,
    speakers: new SpeakerCounts(),
    headerLines: 0,
  };
  const lines = new Lines(text);
  const arrows = new Finder(text, dialect.arrow);
  /** The line before, and how many lines its paragraph has. */
  let [labelStart, labelEnd, paragraphLines] = [0, 0, 0];
  while (lines.advance()) {
    const { start, end } = lines;
    if (lines.isDue) yield;
    if (start < dialect.contentStart) {
      if (!lines.isBlank) habits.headerLines += 1;
      continue;
    }
    const range = arrows.next(start) < end ? dialect.rangeAt(text, start, end) : null;
    if (range?.quality === 'exact') habits.hasExact = true;
    if (range?.quality === 'loose') habits.hasLoose = true;
    if (range !== null) {
      habits.label ??= labelOf(text.slice(labelStart, labelEnd), paragraphLines, dialect);
    } else if (lines.isBlank) {
      paragraphLines = 0;
      continue;
    } else if (end - start < MAX_VOICE_LINE_UNITS) {
      const name = speakerOf(text, start, end);
      if (name !== null) habits.speakers.add(name);
    }
    [labelStart, labelEnd] = [start, end];
    paragraphLines += 1;
  }
  return habits;
}

const MAX_VOICE_LINE_UNITS = 400;
const VOICE = /<v(?:\.[^ <>]*)? ([^<>]{1,100})>/i;

/** The speaker that a line of a cue names, by a voice tag or before a colon. */
function speakerOf(text: string, start: number, end: number): string | null {
  const voice = text.charCodeAt(start) === 0x3c ? VOICE.exec(text.slice(start, end)) : null;
  if (voice !== null) return voice[1]?.trim() ?? null;
  const spoken = spokenLine(text, start, end);
  return spoken === null ? null : text.slice(spoken.nameStart, spoken.nameEnd);
}

function labelOf(line: string, paragraphLines: number, dialect: CueDialect): CueHabits['label'] {
  if (counterOf(line) !== null) return 'counter';
  return dialect.hasIdentifiers && paragraphLines === 1 ? 'identifier' : 'none';
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
/** An identifier does not end like words do. */
const SENTENCE_END = /[.!?,…][ \t]*$/;

/** A line that is a counter or an identifier if a time range follows. */
interface HeldLine {
  readonly start: number;
  readonly end: number;
  readonly isAfterBlank: boolean;
  /** Null if it is no number. */
  readonly counter: number | null;
  /** The blank lines after it. */
  readonly blanks: { readonly start: number; readonly end: number }[];
}

/** So many blank lines may stand between a counter and its range. */
const MAX_BLANKS_BELOW_COUNTER = 3;

/** Finds out what every line is, and writes the cues. */
class CueReader {
  readonly #text: string;
  readonly #dialect: CueDialect;
  readonly #habits: CueHabits;
  readonly #measure = new Measure();
  readonly #writer: CueWriter;
  #held: HeldLine | null = null;
  /** The counter of the cue before. */
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
    const arrows = new Finder(this.#text, this.#dialect.arrow);
    while (lines.advance()) {
      const { start, end } = lines;
      if (lines.isDue) yield;
      if (start < this.#dialect.contentStart) continue;
      const wordsStart = arrows.next(start) < end ? this.#wordsOnRange(start, end) : null;
      if (wordsStart !== null) yield* this.#range(start, wordsStart, end);
      else if (lines.isBlank) this.#blank(start, end);
      else yield* this.#line(start, end);
    }
    this.#release();
    const transcript = yield* this.#writer.finish(this.#dialect.name);
    return { transcript, explained: this.#measure.explained() + this.#habits.headerLines };
  }

  *#range(start: number, wordsStart: number, end: number): Slices<void> {
    if (this.#held !== null && !this.#isLabel(this.#held)) this.#release();
    const label = this.#held;
    if (label !== null) this.#measure.mark();
    this.#counter = label?.counter ?? this.#counter;
    [this.#held, this.#isAfterBlank, this.#isInNote] = [null, false, false];
    this.#measure.turn(wordsStart === end);
    yield* this.#writer.endPart();
    this.#writer.beginCue(label?.start ?? start);
    if (wordsStart < end) this.#writer.words(wordsStart, end);
  }

  #blank(start: number, end: number): void {
    const held = this.#held;
    [this.#isAfterBlank, this.#isInNote] = [true, false];
    if (held !== null && held.counter !== null && held.blanks.length < MAX_BLANKS_BELOW_COUNTER) {
      held.blanks.push({ start, end });
      return;
    }
    this.#release();
    this.#measure.blank();
    this.#writer.blank(start, end);
  }

  *#line(start: number, end: number): Slices<void> {
    this.#release();
    this.#isInNote ||= this.#isAfterBlank && matchEnd(NOTE, this.#text, start, end) !== null;
    if (this.#isInNote) {
      this.#measure.mark();
      // Words below the note are parted from those above it.
      yield* this.#writer.endPart();
      return;
    }
    this.#held = this.#heldLine(start, end);
    if (this.#held === null) this.#words(start, end);
    this.#isAfterBlank = false;
  }

  #words(start: number, end: number): void {
    this.#measure.words();
    this.#writer.words(start, end);
  }

  /** Reports the held line as words. */
  #release(): void {
    if (this.#held === null) return;
    this.#words(this.#held.start, this.#held.end);
    for (const { start, end } of this.#held.blanks) {
      this.#measure.blank();
      this.#writer.blank(start, end);
    }
    this.#held = null;
  }

  /** The line, if it may turn out to be a counter or an identifier, by what the file's first cue has. */
  #heldLine(start: number, end: number): HeldLine | null {
    const { label } = this.#habits;
    if (label === null || label === 'none' || end - start > MAX_LABEL_UNITS) return null;
    const counter = counterOf(this.#text.slice(start, end));
    if (counter === null && (label === 'counter' || !this.#isAfterBlank)) return null;
    return { start, end, isAfterBlank: this.#isAfterBlank, counter, blanks: [] };
  }

  /** Whether a line above a range is its counter or its identifier. */
  #isLabel(line: HeldLine): boolean {
    if (line.counter === null) return !SENTENCE_END.test(this.#text.slice(line.start, line.end));
    if (this.#counter === null || line.counter === this.#counter + 1) return true;
    return line.isAfterBlank && line.blanks.length === 0;
  }

  /**
   * Where the words begin that stand on a line with a time range, `end` if none do; null if the line is none. A range
   * without fractions is one only in a file that has no better, a damaged one only between cues of a file with sound ones.
   */
  #wordsOnRange(start: number, end: number): number | null {
    const { hasExact, hasLoose } = this.#habits;
    const range = this.#dialect.rangeAt(this.#text, start, end);
    if (range === null) return null;
    if (range.quality === 'loose' && hasExact) return null;
    const isBetweenCues = this.#isAfterBlank || this.#held !== null;
    if (range.quality === 'damaged' && !(isBetweenCues && (hasExact || hasLoose))) return null;
    const wordsStart = skipSettings(this.#text, range.end, end);
    return range.quality === 'loose' && wordsStart < end && !range.hasHours ? null : wordsStart;
  }
}

const SETTING = /[ \t]{0,16}(?:align|line|position|size|vertical|region|[XY][12]):[^ \t\r\n]{1,100}(?=[ \t\r\n]|$)/y;

/** Where the words begin after a time range and its settings; `end` if there are none. */
function skipSettings(text: string, start: number, end: number): number {
  let position = start;
  for (;;) {
    const next = matchEnd(SETTING, text, position, end);
    if (next === null) return skipBlanks(text, position, end);
    position = next;
  }
}
