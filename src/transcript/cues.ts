/**
 * Cues: a line with a time range above the words that are shown during it. WebVTT, SubRip and SBV differ in how they write
 * the range and in what may stand around it; the rest is here. No words are lost (T2a): only marks at their place are.
 */
import { type Body, type FormName, Measure, type Reading } from './form.ts';
import type { Markup } from './cue-text.ts';
import { countLines, Finder, isBlank, isDigit, LineScanner, skipBlanks, skipFormatCharacters } from './lines.ts';
import { CueWriter } from './cue-writer.ts';
import { Pace, type Slices } from './slices.ts';
import { SpeakerCounts, spokenLine } from './speakers.ts';
import { matchEnd, type TimeRange } from './times.ts';
import type { ParsedTranscript } from './turn-writer.ts';

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
}

/** Is told of every line, in order. What it returns is run before the next line. */
export interface CueSink {
  /** A cue begins: its slice of the body at `sliceStart`, words on the line of its range at `wordsStart`, if before `end`. */
  range(sliceStart: number, wordsStart: number, end: number): Slices<void> | null;
  /** A counter, an identifier, a line of a note. */
  mark(): Slices<void> | null;
  blank(start: number, end: number): void;
  /** Words of the cue, or of what stands above the first. */
  words(start: number, end: number): void;
}

/** How the body reads as cues of the dialect; null if it has none. */
export function* recogniseCues(body: Body, dialect: CueDialect): Slices<Reading | null> {
  const { text } = body;
  const habits = yield* habitsOf(text, dialect);
  if (!habits.hasExact && !habits.hasLoose && dialect.contentStart === 0) return null;
  const measure = new Measure();
  yield* scanCues(text, dialect, habits, {
    range: (_sliceStart, wordsStart, end) => {
      measure.turn(wordsStart === end);
      return null;
    },
    mark: () => {
      measure.mark();
      return null;
    },
    blank: () => measure.blank(),
    words: () => measure.words(),
  });
  const headerLines = yield* countLines(text.slice(0, dialect.contentStart));
  const explained = measure.explained() + headerLines;
  return { explained, turns: () => readCues(text, dialect, habits) };
}

function* readCues(text: string, dialect: CueDialect, habits: CueHabits): Slices<ParsedTranscript> {
  const writer = new CueWriter(text, dialect.markup, habits.speakers);
  yield* scanCues(text, dialect, habits, writer);
  return yield* writer.finish(dialect.name);
}

function* habitsOf(text: string, dialect: CueDialect): Slices<CueHabits> {
  const habits: CueHabits = { hasExact: false, hasLoose: false, label: null, speakers: new SpeakerCounts() };
  const lines = new LineScanner(text);
  const arrows = new Finder(text, dialect.arrow);
  const pace = new Pace();
  /** The line before, and how many lines its paragraph has. */
  let [labelStart, labelEnd, paragraphLines] = [0, 0, 0];
  while (lines.advance()) {
    const { start, end } = lines;
    if (pace.isDue(start)) yield;
    if (start < dialect.contentStart) continue;
    const range = arrows.next(start) < end ? dialect.rangeAt(text, start, end) : null;
    if (range?.quality === 'exact') habits.hasExact = true;
    if (range?.quality === 'loose') habits.hasLoose = true;
    if (range !== null) {
      habits.label ??= labelOf(text.slice(labelStart, labelEnd), paragraphLines, dialect);
    } else if (isBlank(text, start, end)) {
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

/** Finds out what every line is, and reports it. */
function* scanCues(text: string, dialect: CueDialect, habits: CueHabits, sink: CueSink): Slices<void> {
  const lines = new LineScanner(text);
  const arrows = new Finder(text, dialect.arrow);
  const pace = new Pace();
  let held: HeldLine | null = null;
  let counter: number | null = null;
  let [isAfterBlank, isInNote] = [true, false];
  const release = (): void => {
    if (held === null) return;
    sink.words(held.start, held.end);
    for (const { start, end } of held.blanks) sink.blank(start, end);
    held = null;
  };
  while (lines.advance()) {
    const { start, end } = lines;
    if (pace.isDue(start)) yield;
    if (start < dialect.contentStart) continue;
    const mayBeRange = arrows.next(start) < end;
    const isBetweenCues = isAfterBlank || held !== null;
    const range = mayBeRange ? wordsOnRange(text, start, end, dialect, habits, isBetweenCues) : null;
    if (range !== null) {
      if (held !== null && !isLabel(text, held, counter)) release();
      if (held !== null) yield* run(sink.mark());
      counter = held?.counter ?? counter;
      yield* run(sink.range(held?.start ?? start, range, end));
      [held, isAfterBlank, isInNote] = [null, false, false];
    } else if (isBlank(text, start, end)) {
      if (held === null || held.counter === null || held.blanks.length === MAX_BLANKS_BELOW_COUNTER) {
        release();
        sink.blank(start, end);
      } else {
        held.blanks.push({ start, end });
      }
      [isAfterBlank, isInNote] = [true, false];
    } else {
      release();
      isInNote ||= isAfterBlank && matchEnd(NOTE, text, start, end) !== null;
      if (isInNote) yield* run(sink.mark());
      else held = heldLine(text, start, end, habits, isAfterBlank);
      if (!isInNote && held === null) sink.words(start, end);
      isAfterBlank = false;
    }
  }
  release();
}

/** The line, if it may turn out to be a counter or an identifier, by what the file's first cue has. */
function heldLine(
  text: string,
  start: number,
  end: number,
  { label }: CueHabits,
  isAfterBlank: boolean,
): HeldLine | null {
  if (label === null || label === 'none' || end - start > MAX_LABEL_UNITS) return null;
  const counter = counterOf(text.slice(start, end));
  if (counter === null && (label === 'counter' || !isAfterBlank)) return null;
  return { start, end, isAfterBlank, counter, blanks: [] };
}

/** Whether the line above a range is its counter or its identifier, `before` being the counter of the cue before. */
function isLabel(text: string, line: HeldLine, before: number | null): boolean {
  if (line.counter === null) return !SENTENCE_END.test(text.slice(line.start, line.end));
  if (before === null || line.counter === before + 1) return true;
  return line.isAfterBlank && line.blanks.length === 0;
}

/**
 * Where the words begin that stand on a line with a time range, `end` if none do; null if the line is none. A range without
 * fractions is one only in a file that has no better, a damaged one only between the cues of a file that has sound ones.
 */
function wordsOnRange(
  text: string,
  start: number,
  end: number,
  dialect: CueDialect,
  { hasExact, hasLoose }: CueHabits,
  isBetweenCues: boolean,
): number | null {
  const range = dialect.rangeAt(text, start, end);
  if (range === null) return null;
  if (range.quality === 'loose' && hasExact) return null;
  if (range.quality === 'damaged' && !(isBetweenCues && (hasExact || hasLoose))) return null;
  const wordsStart = skipSettings(text, range.end, end);
  return range.quality === 'loose' && wordsStart < end && !range.hasHours ? null : wordsStart;
}

const SETTING = /[ \t]{0,16}(?:align|line|position|size|vertical|region|[XY][12]):[^ \t\r\n]{1,100}(?=[ \t\r\n]|$)/y;

/** Where the words begin after a time range and its settings; `end` if there are none. */
function skipSettings(text: string, start: number, end: number): number {
  let position = start;
  for (;;) {
    const next = matchEnd(SETTING, text, position, end);
    if (next === null) break;
    position = next;
  }
  return skipBlanks(text, position, end);
}

function* run(work: Slices<void> | null): Slices<void> {
  if (work !== null) yield* work;
}
