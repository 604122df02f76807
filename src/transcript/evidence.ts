/**
 * Counts the shapes of a file's lines and judges which of them begins its turns (T12: evidence decides, not the vendor):
 * times that do not go back, names that recur and are few beside the lines, words where words are expected.
 */
import type { Body } from './form.ts';
import { Lines } from './lines.ts';
import { LineHead } from './line-head.ts';
import { isAddress, isKey, isSpeakerLabel, looksLikeName, looksLikeWitness, Names } from './names.ts';
import { type Features, featuresOf, type Kind, kindsOf, sequenceOf } from './shape.ts';
import type { Slices } from './slices.ts';
import { lineNumberEnd } from './surroundings.ts';
import { secondsOf } from './times.ts';

/** So many lines show the shape of a file; the rest is read by it. */
const SAMPLE_LINES = 3000;
/** So many times of a shape are looked at. */
const SAMPLE_TIMES = 1000;
/** So many lines with a name before a colon are looked at for a block of `Key: value` lines. */
const MAX_TOP_LINES = 100;
const YIELD_LINES = 256;

/** How often a shape occurs, and with which names and times. */
export class ShapeCount {
  readonly kind: Kind;
  /** The features that lines of the shape have in common. */
  readonly features: Features;
  /** How it is written: several ways for `named`, one for all others. */
  readonly sequences = new Map<string, number>();
  readonly marks = new Map<string, number>();
  readonly names = new Names();
  turns = 0;
  /** How many lines stand above the first. */
  readonly firstLine: number;
  /** Lines whose name looks like one. */
  likely = 0;
  times = 0;
  /** How often a time goes back. */
  backs = 0;
  #first = 0;
  #last = 0;
  /** Lines with others below them that are words and no more. */
  followed = 0;
  /** How many of those below are items of a list. */
  lists = 0;
  /** Lines with a name before a colon that end like a line of a program. */
  code = 0;
  afterBlank = 0;
  /** Turns whose words, beside the time, look like a title. */
  titles = 0;
  /** Lines whose words are cells of another format, and labels whose value is a speaker. */
  cells = 0;
  /** Lines with a key before a colon, below some with a name: not those of a header. */
  keys = 0;
  /** Lines with a name before a colon whose words are numbers. */
  numbers = 0;
  /** Lines with a name before a colon whose words end like a sentence. */
  sentences = 0;
  /** How often the same names follow one another in a paragraph. */
  readonly records = new Map<string, number>();
  readonly labelled = new Map<string, number>();

  constructor(kind: Kind, features: Features, firstLine: number) {
    this.kind = kind;
    this.firstLine = firstLine;
    this.features = features;
  }

  addTime(seconds: number): void {
    if (this.times === 0) this.#first = seconds;
    else if (seconds < this.#last) this.backs += 1;
    this.#last = seconds;
    this.times += 1;
  }

  get isOrdered(): boolean {
    return this.backs * 20 <= this.times;
  }

  /** Seconds from one turn to the next, on average. */
  get meanGap(): number {
    return this.times < 2 ? 0 : (this.#last - this.#first) / (this.times - 1);
  }

  get sequence(): string {
    return mostFrequent(this.sequences);
  }

  /** The mark before most of its lines. */
  get mark(): string {
    return mostFrequent(this.marks);
  }

  /** Names that occur several times, and their lines. */
  get recurring(): { readonly names: number; readonly turns: number } {
    const names = this.names.size - this.names.once;
    return { names, turns: this.names.repeats + names };
  }
}

function mostFrequent(counts: ReadonlyMap<string, number>): string {
  return [...counts].reduce((most, next) => (next[1] > most[1] ? next : most), ['', 0])[0];
}

/** The evidence in the sample of a file. */
export interface Sample {
  readonly shapes: readonly ShapeCount[];
  readonly sampleEnd: number;
  /** Lines with a key before a colon. */
  readonly keys: number;
  /** Lines that are not blank, paragraphs, and characters, of the sample. */
  readonly lines: number;
  readonly paragraphs: number;
  readonly units: number;
  /** Lines with a name before a colon, from the top. */
  readonly top: readonly TopLine[];
  /** Whether all lines are numbered, as in court. */
  readonly isNumbered: boolean;
  /** Where the lines begin that may be speech: behind front matter. */
  readonly contentStart: number;
}

interface TopLine {
  readonly start: number;
  readonly name: string;
  readonly value: string;
  readonly paragraph: number;
}

/** The features of a line that are kept for the lines below it. */
interface Neighbour {
  readonly isOnlyTime: boolean;
  /** Null if it cannot be a name. */
  readonly name: string | null;
  readonly time: string;
  /** Its shapes. */
  readonly shapes: readonly ShapeCount[];
}

const NO_LINE: Neighbour = { isOnlyTime: false, name: null, time: '', shapes: [] };

/** Reads the sample and counts. */
export class Sampler {
  readonly #text: string;
  readonly #timeText: string;
  readonly #head: LineHead;
  readonly #shapes = new Map<string, ShapeCount>();
  readonly #top: TopLine[] = [];
  readonly #bareNames = new Names();
  #previous = NO_LINE;
  #beforePrevious = NO_LINE;
  #isAfterBlank = true;
  #lines = 0;
  #paragraphs = 0;
  #keys = 0;
  /** The names before colons in the paragraph that was read last. */
  #record = '';
  #recordParagraph = 0;

  constructor(body: Body) {
    this.#text = body.text;
    this.#timeText = body.timeText;
    this.#head = new LineHead(body);
  }

  *read(contentStart: number, isNumbered: boolean): Slices<Sample> {
    const text = this.#text;
    const lines = new Lines(text);
    while (this.#lines < SAMPLE_LINES && lines.advance()) {
      if (this.#lines % YIELD_LINES === YIELD_LINES - 1 || lines.isDue) yield;
      if (lines.start < contentStart) continue;
      if (lines.isBlank) {
        this.#isAfterBlank = true;
        continue;
      }
      this.#lines += 1;
      if (this.#isAfterBlank) this.#paragraphs += 1;
      const start = isNumbered ? lineNumberEnd(text, lines.start, lines.end) : lines.start;
      this.#head.read(lines.start, lines.end, start);
      this.#countLine(lines.start);
      this.#isAfterBlank = false;
    }
    const shapes = [...this.#shapes.values()];
    const named = this.#shapes.get('named');
    if (named !== undefined) this.#endRecord(named);
    const units = lines.end - contentStart;
    const sampleEnd = lines.end;
    return {
      shapes,
      sampleEnd,
      keys: this.#keys,
      lines: this.#lines,
      paragraphs: this.#paragraphs,
      units,
      top: this.#top,
      isNumbered,
      contentStart,
    };
  }

  #countLine(lineStart: number): void {
    const head = this.#head;
    const counted = kindsOf(head).flatMap((kind) => this.#countKind(kind) ?? []);
    const { shapes: above } = this.#previous;
    for (const shape of head.timePlace === 'before' ? [] : above) {
      if (counted.includes(shape)) continue;
      shape.followed += 1;
      if (head.mark === '-' || head.mark === '1.') shape.lists += 1;
    }
    const turnName = this.#turnName();
    if (turnName !== null) this.#addTopLine(lineStart, turnName);
    const bareName = this.#bareName();
    const time = head.timePlace === 'none' ? '' : this.#writtenTime();
    const [lineAbove, aboveIt] = [this.#previous, this.#beforePrevious];
    const shapes = [...counted];
    if (head.isOnlyTime && lineAbove.name !== null && !aboveIt.isOnlyTime) {
      shapes.push(this.#countLines('name, time', lineAbove.name, time));
    }
    if (lineAbove.isOnlyTime && bareName !== null)
      shapes.push(this.#countLines('time, name', bareName, lineAbove.time));
    this.#beforePrevious = lineAbove;
    this.#previous = { isOnlyTime: head.isOnlyTime, name: bareName, time, shapes };
  }

  /** A shape of one line; null if the line is none of the kind after all. */
  #countKind(kind: Kind): ShapeCount | null {
    const head = this.#head;
    if (kind === 'named') return this.#countNamed();
    if (kind === 'under name') {
      // Words may look like a name as well, but stand below one.
      const name = this.#isAfterBlank ? this.#bareName() : null;
      return name === null ? null : this.#count(kind, name);
    }
    const name = kind === 'timed' || kind === 'under time' ? null : head.name;
    if (name !== null && isKey(name)) return null;
    const shape = this.#count(kind, name);
    const isLikely = name === null || shape.names.of(name).isLikely;
    if (isLikely && head.time !== null && shape.times < SAMPLE_TIMES) shape.addTime(secondsOf(this.#writtenTime()));
    const words = this.#text.slice(kind === 'timed' ? head.wordsAfterTime : head.wordsStart, head.end);
    if ((kind === 'timed' || kind === 'inline') && looksLikeTitle(words)) shape.titles += 1;
    return shape;
  }

  /** A name before a colon or a period. Keys are no names. */
  #countNamed(): ShapeCount | null {
    const head = this.#head;
    const isColon = head.nameEnds === 'colon';
    const name = this.#turnName();
    if (name === null) return null;
    if (isKey(name)) {
      this.#keys += 1;
      const named = this.#shapes.get('named');
      if (named !== undefined && named.turns >= MIN_TURNS_ABOVE_KEYS) named.keys += 1;
      return null;
    }
    const value = isColon ? this.#text.slice(head.wordsStart, head.end) : '';
    const shape = this.#count('named', name);
    if (SENTENCE_ENDS.test(value)) shape.sentences += 1;
    if (NUMBER.test(value)) shape.numbers += 1;
    if (CODE_ENDS.test(value) && head.time === null && PROGRAM_NAME.test(name)) shape.code += 1;
    this.#countRecord(shape, name);
    if (CELLS.test(value.slice(0, MAX_CELL_UNITS))) shape.cells += 1;
    if (isSpeakerLabel(name) && value !== '' && looksLikeName(value)) {
      shape.labelled.set(value, (shape.labelled.get(value) ?? 0) + 1);
    }
    if (head.time !== null && shape.times < SAMPLE_TIMES) shape.addTime(secondsOf(this.#writtenTime()));
    return shape;
  }

  /** The name before a colon, or that of a witness before a period; null if there is neither. */
  #turnName(): string | null {
    const { nameEnds, name, nameStart, period } = this.#head;
    if (nameEnds === 'colon') return name;
    const witness = period === -1 ? '' : this.#text.slice(nameStart, period);
    return looksLikeWitness(witness) ? witness : null;
  }

  #addTopLine(start: number, name: string): void {
    if (this.#top.length >= MAX_TOP_LINES) return;
    const { nameEnds, afterColon, period, end } = this.#head;
    const valueStart = nameEnds === 'colon' ? afterColon : period + 1;
    const value = this.#text.slice(Math.max(valueStart, end - MAX_VALUE_UNITS), end).trim();
    this.#top.push({ start, name, value, paragraph: this.#paragraphs });
  }

  /** Notes which names follow one another in the paragraph. */
  #countRecord(shape: ShapeCount, name: string): void {
    if (this.#recordParagraph === this.#paragraphs) this.#record += `${name}\n`;
    else {
      this.#endRecord(shape);
      this.#record = `${name}\n`;
      this.#recordParagraph = this.#paragraphs;
    }
  }

  #endRecord(shape: ShapeCount): void {
    if (this.#record === '' || shape.records.size >= MAX_RECORDS) return;
    shape.records.set(this.#record, (shape.records.get(this.#record) ?? 0) + 1);
  }

  #countLines(kind: Kind, name: string, time: string): ShapeCount {
    const shape = this.#count(kind, name);
    if (shape.times < SAMPLE_TIMES) shape.addTime(secondsOf(time));
    return shape;
  }

  #count(kind: Kind, name: string | null): ShapeCount {
    const sequence = sequenceOf(this.#head, kind);
    const key = kind === 'named' ? kind : `${kind} ${sequence}`;
    let shape = this.#shapes.get(key);
    if (shape === undefined)
      this.#shapes.set(key, (shape = new ShapeCount(kind, featuresOf(this.#head), this.#lines - 1)));
    shape.marks.set(this.#head.mark, (shape.marks.get(this.#head.mark) ?? 0) + 1);
    shape.sequences.set(sequence, (shape.sequences.get(sequence) ?? 0) + 1);
    shape.turns += 1;
    if (this.#isAfterBlank) shape.afterBlank += 1;
    if (name !== null && shape.names.add(name).isLikely) shape.likely += 1;
    return shape;
  }

  /** The line, if it may be a name and nothing else. */
  #bareName(): string | null {
    const name = bareNameOf(this.#text, this.#head);
    return name !== null && !isKey(name) && this.#bareNames.of(name.split(ROLE, 1)[0] ?? '').isLikely ? name : null;
  }

  #writtenTime(): string {
    const { time, timeStart } = this.#head;
    return time === null ? '' : this.#timeText.slice(timeStart, time.end);
  }
}

/** The separator between a name and a role: `Ann Example -- Chief Executive`, `Ann Example, Sales`. */
const ROLE = /,|\s[-–—]{1,2}\s/;

/** The name that a line without a time consists of; null if it is none. */
export function bareNameOf(text: string, head: LineHead): string | null {
  if (head.timePlace !== 'none') return null;
  if (head.nameEnds === 'line') return head.name;
  return head.isBareName ? text.slice(head.nameStart, head.end) : null;
}

const MAX_VALUE_UNITS = 400;
const MAX_RECORDS = 50;
const MIN_TURNS_ABOVE_KEYS = 3;
/** A character reference ends so too, and is none. */
const CODE_ENDS = /(?:[{}([]|(?<!&#?\w{1,12});)\s*$/;
/** Speakers' names have capitals, in scripts that have them; those of a program and its settings seldom begin with one. */
const PROGRAM_NAME = /^[\p{Ll}_@$]/u;
const NUMBER = /^\s{0,9}[-+$€£~<]?\d[\d.,:/–-]{0,20}\s?(?:%|°|[a-z]{1,3})?$/i;
const MAX_CELL_UNITS = 40;
const CELLS = /[,;|\t]\s?\d{1,3}:\d\d/;
const MAX_TITLE_UNITS = 60;
const MAX_TITLE_WORDS = 6;
const TITLE_BEGINS = /^["'(]?[\p{Lu}\p{Lo}\p{N}]/u;
const SENTENCE_ENDS = /[.?!…,;。？！，、"”]$/;

/** A few words with a capital and no sign of a sentence. */
function looksLikeTitle(words: string): boolean {
  if (words.length > MAX_TITLE_UNITS || !TITLE_BEGINS.test(words)) return false;
  return !SENTENCE_ENDS.test(words) && !words.includes(',') && words.split(' ').length <= MAX_TITLE_WORDS;
}

/**
 * Where speech begins in a file of named lines. `Key: value` lines stand above it: keys, and lines of names that never
 * recur, several in a paragraph, whose values are no sentences.
 */
export function speechStart({ top, contentStart }: Sample, { names }: ShapeCount): number {
  const recurs = (line: TopLine): boolean => !isKey(line.name) && names.countOf(line.name) > 1;
  const firstRecurring = top.findIndex(recurs);
  const above = firstRecurring === -1 ? top : top.slice(0, firstRecurring);
  const isHeader = (line: TopLine): boolean => {
    if (isKey(line.name) || isAddress(line.value)) return true;
    // `Rep: Ann`, and Ann speaks below.
    if (names.countOf(line.value) > 1) return true;
    if (line.paragraph === (top[firstRecurring]?.paragraph ?? line.paragraph)) return false;
    if (above.length > 1 && above.every(({ value }) => value !== '' && !SENTENCE_ENDS.test(value))) return true;
    if (line.value === '' || SENTENCE_ENDS.test(line.value)) return false;
    return above.filter(({ paragraph }) => paragraph === line.paragraph).length > 1;
  };
  const lastHeader = above.findLastIndex(isHeader);
  if (firstRecurring === -1) return top.find((line) => !isHeader(line))?.start ?? contentStart;
  return lastHeader === -1 ? contentStart : (top[lastHeader + 1]?.start ?? contentStart);
}
