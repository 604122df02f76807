/** Reads a text whose lines are speech, by the shape that has most evidence. */
import { bareNameOf, type Sample, Sampler, type ShapeCount, speechStart } from './evidence.ts';
import { type Body, explainsMost, Measure, type Reading } from './form.ts';
import { LineHead } from './line-head.ts';
import { isBlank, isWhiteSpace, lineEndAt, Lines, skipBlanks, skipWhite } from './lines.ts';
import { isAddress, type Name } from './names.ts';
import { hasFeatures, isOfKind } from './shape.ts';
import type { Slices } from './slices.ts';
import { frontMatterEnd, isForeign, isNumbered, lineNumberEnd } from './surroundings.ts';
import { TurnWriter } from './turn-writer.ts';
import { judge, type Verdict } from './verdict.ts';

/** So many shapes are tried. */
const MAX_TRIES = 2;
/** So many lines below, and so much of each, may hold the time of a name or the name of a time. */
const MAX_LINES_BELOW = 3;
const MAX_UNITS_BELOW = 200;
/** So many lines of a list may have names that do not recur. */
const MAX_TOPICS = 3;

/** The reading by the best shape that explains most lines; null if none does. */
export function* readSpokenLines(body: Body): Slices<Reading | null> {
  if (isForeign(body.text)) return null;
  const sample = yield* sampleOf(body);
  const speech = judge(sample).filter(({ refusal }) => refusal === null);
  for (const { shape } of speech.slice(0, MAX_TRIES)) {
    const reading = yield* new TurnReader(body, sample, shape).read();
    if (reading !== null && explainsMost(reading)) return reading;
  }
  return null;
}

/** All shapes of the lines, the best first. */
export function* judgeLines(body: Body): Slices<Verdict[]> {
  return isForeign(body.text) ? [] : judge(yield* sampleOf(body));
}

function* sampleOf(body: Body): Slices<Sample> {
  const { text } = body;
  return yield* new Sampler(body).read(frontMatterEnd(text), yield* isNumbered(text));
}

/** Whether speakers speak again: those who do have at least half of the turns, keys above the speech aside. */
function speakersRecur({ top }: Sample, { names, recurring, turns }: ShapeCount, start: number): boolean {
  const keys = top.filter((line) => line.start < start && names.countOf(line.name) === 1).length;
  return names.repeats * 2 > names.once - keys && recurring.turns * 2 >= turns - keys;
}

/** Whether the lines of turns begin with a time, so that the times before other lines are no words either. */
function hasTimesBefore({ kind, features, sequence }: ShapeCount): boolean {
  if (kind === 'inline') return features.timePlace === 'before';
  return kind === 'named' && /^(?:\S{1,2} )?\[?time/.test(sequence);
}

/** `Ann Example -- Chief Executive`. */
const WITH_ROLE = /\S -- \S/;

/** The role of a line in the text: the first of a turn, or not. */
type Role = 'turn' | 'mark' | 'words';

/** Writes the turns of a text by its shape. */
class TurnReader {
  readonly #body: Body;
  readonly #shape: ShapeCount;
  readonly #writer: TurnWriter;
  readonly #measure = new Measure();
  readonly #head: LineHead;
  /** The name of the turn that the line begins; null if it has none. */
  #name: Name | null = null;
  /** The head of the line below, if names and times have lines of their own. */
  readonly #below: LineHead;
  readonly #isNumbered: boolean;
  readonly #contentStart: number;
  readonly #sampleEnd: number;
  readonly #speechStart: number;
  readonly #mark: string;
  readonly #hasTimesBefore: boolean;
  readonly #isRecurrent: boolean;
  readonly #isTimed: boolean;
  readonly #beginsParagraphs: boolean;
  readonly #areAllNames: boolean;
  /** The line that belongs to the one above it ends here. */
  #takenUntil = 0;
  #isFirstLine = false;
  #hasPreamble = false;
  /** Lines of keys among the turns. */
  #keys = 0;
  /** Lines above the first turn that explain themselves. */
  #headerLines = 0;
  #isAfterBlank = true;

  constructor(body: Body, sample: Sample, shape: ShapeCount) {
    this.#body = body;
    this.#head = new LineHead(body);
    this.#below = new LineHead(body);
    this.#shape = shape;
    this.#writer = new TurnWriter(body.text);
    this.#isNumbered = sample.isNumbered;
    this.#contentStart = sample.contentStart;
    this.#sampleEnd = sample.sampleEnd;
    this.#speechStart = shape.kind === 'named' ? speechStart(sample, shape) : sample.contentStart;
    this.#mark = shape.mark;
    this.#hasTimesBefore = hasTimesBefore(shape);
    this.#isTimed = shape.times * 2 > shape.turns;
    // If every paragraph begins with a name, so does that of one who speaks once.
    this.#areAllNames = shape.turns * 10 >= sample.paragraphs * 9;
    this.#beginsParagraphs = shape.afterBlank * 10 >= shape.turns * 7;
    this.#isRecurrent = this.#isTimed || speakersRecur(sample, shape, this.#speechStart);
  }

  *read(): Slices<Reading | null> {
    const { text, declared } = this.#body;
    const lines = new Lines(text);
    while (lines.advance()) {
      const { start, end } = lines;
      if (lines.isDue) yield;
      if (start < this.#takenUntil) continue;
      if (lines.isBlank) {
        this.#measure.blank();
        this.#writer.blank(start, end);
        this.#isAfterBlank = true;
        continue;
      }
      const from = this.#isNumbered ? lineNumberEnd(text, start, end) : start;
      if (this.#isNumbered && isBlank(text, from, end)) this.#measure.mark();
      else this.#line(start, from, end);
      this.#isAfterBlank = false;
    }
    const { kind } = this.#shape;
    const measure = this.#measure;
    if (measure.turns === 0) return null;
    if (kind !== 'named') return this.#finish(measure.explained(kind === 'timed' ? undefined : true));
    // In a call speakers speak again; the colons of a manual, of minutes or of a list of topics follow ever new words.
    if (!this.#isRecurrent) {
      const isProse = this.#hasPreamble && measure.turns * 2 <= measure.lines - this.#headerLines;
      const isList = this.#mark !== '' && measure.turns > MAX_TOPICS;
      if (isProse || isList || this.#keys > 0) return null;
    }
    const distant = declared === 'speaker_text' || (this.#isRecurrent ? undefined : false);
    return this.#finish(measure.explained(distant));
  }

  #finish(explained: number): Reading {
    const { lines } = this.#measure;
    return { transcript: this.#writer.finish('spoken lines', this.#shape.sequence), explained, lines };
  }

  #line(start: number, from: number, end: number): void {
    this.#head.read(start, end, from);
    this.#name = null;
    const role = start < this.#speechStart ? 'words' : this.#roleOf(end);
    if (this.#measure.turns === 0 && role !== 'turn') this.#preamble(role, from, end);
    else if (role === 'mark') this.#measure.mark();
    else if (role === 'turn') this.#turn(start, end);
    else this.#words(from, end);
  }

  /** A line above the first turn: a key, a heading, front matter or a time explains itself, other words do not. */
  #preamble(role: Role, from: number, end: number): void {
    const { text } = this.#body;
    const head = this.#head;
    const isClock = role === 'mark' && text.slice(head.timeStart, head.end).includes(':');
    // Among named lines, a colon that ends no name explains nothing below the header.
    const isInHeader = this.#shape.kind !== 'named' || end <= this.#speechStart;
    const isHeader = (head.nameEnds === 'colon' && isInHeader) || end <= this.#contentStart;
    if (isClock || isHeader) this.#measure.mark();
    else this.#measure.other();
    if (isHeader) this.#headerLines += 1;
    if (isClock) return;
    this.#hasPreamble = true;
    const isTimed = this.#hasTimesBefore && head.timePlace === 'before';
    this.#writer.words(isTimed ? head.wordsAfterTime : from, end);
  }

  #roleOf(end: number): Role {
    if (this.#beginsTurn(end)) return 'turn';
    return this.#head.isOnlyTime ? 'mark' : 'words';
  }

  #beginsTurn(end: number): boolean {
    const head = this.#head;
    const { kind, features, names } = this.#shape;
    if (kind === 'named') return this.#isNamed();
    if (kind === 'name, time') return this.#isNameAboveTime(end);
    if (kind === 'time, name') return this.#isTimeAboveName(end);
    if (kind === 'under name') return this.#isBareName();
    if (!isOfKind(head, kind)) return false;
    // The same time in other words, for those who listen (`0:02`, `2 seconds`).
    if (kind === 'under time' && this.#isFirstLine && !this.#isAfterBlank) return false;
    const isSame = hasFeatures(head, features, kind);
    if (kind === 'timed' || kind === 'under time') return isSame;
    const name = names.of(head.name);
    this.#name = name;
    if (name.count < 2 && name.isKey) return false;
    return isSame ? this.#mayBegin(name) : name.count > 1;
  }

  /** Whether a colon or a period ends a speaker's name. */
  #isNamed(): boolean {
    const head = this.#head;
    const { text } = this.#body;
    const { names, marks } = this.#shape;
    if (head.ending !== 'colon') return head.period !== -1 && this.#isWitness();
    if (head.nameEnds === 'none') return false;
    const name = head.start > this.#sampleEnd ? names.add(head.name) : names.of(head.name);
    this.#name = name;
    if (!name.isCounted) return false;
    const { count } = name;
    if (head.mark !== '' && (marks.get(head.mark) ?? 0) < 2 && count < 2) return false;
    if (head.mark === '#' && head.hasWords) return false;
    if (count > 1) return count * 20 >= names.most || name.isLikely;
    if (name.isKey) {
      this.#keys += 1;
      return false;
    }
    if (isAddress(text.slice(head.wordsStart, head.end))) return false;
    if (head.timePlace === 'none' && this.#isTimed) return name.isLikely;
    return names.repeats < 1 || name.isLikely;
  }

  #isWitness(): boolean {
    const { names } = this.#shape;
    const witness = this.#body.text.slice(this.#head.nameStart, this.#head.period);
    // A sentence may end there too, and is not remembered.
    if (names.countOf(witness) < 2) return false;
    this.#name = names.of(witness);
    return this.#name.isWitness;
  }

  /** Whether a turn may begin with the name. A phrase may end with a time too (`Let us meet at 10:30`). */
  #mayBegin({ count, isLikely }: Name): boolean {
    const { features, names, kind } = this.#shape;
    if (kind === 'inline' && features.timePlace === 'none') return count > 1 || isLikely;
    if (this.#beginsParagraphs && !this.#isAfterBlank && count < 2) return false;
    const isWeak = features.gap === 'narrow' || (features.timePlace === 'before' && names.repeats > 0);
    const areSmall = this.#shape.likely * 2 < this.#shape.turns;
    return !isWeak || (areSmall && count > 1) || isLikely;
  }

  #isBareName(): boolean {
    const name = this.#isAfterBlank ? bareNameOf(this.#body.text, this.#head) : null;
    return name !== null && this.#setBareName(name, this.#areAllNames || WITH_ROLE.test(name));
  }

  #isNameAboveTime(end: number): boolean {
    const name = bareNameOf(this.#body.text, this.#head);
    return name !== null && this.#readBelow(end) && this.#below.isOnlyTime && this.#setBareName(name, true);
  }

  #isTimeAboveName(end: number): boolean {
    if (!this.#head.isOnlyTime || !this.#readBelow(end)) return false;
    const name = bareNameOf(this.#body.text, this.#below);
    return name !== null && this.#setBareName(name, true);
  }

  /** Whether a line of its own is a name, because it recurs or, if `mayBeNew`, looks like one. */
  #setBareName(text: string, mayBeNew: boolean): boolean {
    const { names } = this.#shape;
    if (!mayBeNew && names.countOf(text) < 2) return false;
    const name = names.of(text);
    this.#name = name;
    return name.count > 1 || (name.isLikely && !name.isKey);
  }

  /** Reads the next line that is not blank; false if there is none near. */
  #readBelow(end: number): boolean {
    const { text } = this.#body;
    let lineEnd = end;
    for (let i = 0; i < MAX_LINES_BELOW; i += 1) {
      const start = lineEnd + (text.startsWith('\r\n', lineEnd) ? 2 : 1);
      if (start >= text.length) return false;
      lineEnd = lineEndAt(text, start, start + MAX_UNITS_BELOW);
      if (isBlank(text, start, lineEnd)) continue;
      this.#below.read(start, lineEnd);
      this.#belowEnd = lineEnd;
      return true;
    }
    return false;
  }

  #belowEnd = 0;

  #turn(start: number, end: number): void {
    const head = this.#head;
    const { kind } = this.#shape;
    const writer = this.#writer;
    writer.beginTurn(start);
    this.#isFirstLine = true;
    if (kind === 'named') {
      this.#measure.turn(!head.hasWords);
      this.#named(end);
      return;
    }
    const isOnTwoLines = kind === 'name, time' || kind === 'time, name';
    const hasWords = kind === 'timed' || kind === 'inline';
    this.#measure.turn(!hasWords);
    if (isOnTwoLines) {
      this.#measure.mark();
      this.#takenUntil = this.#belowEnd;
    }
    if (this.#name !== null) writer.add(this.#name.prefix);
    if (hasWords) this.#addWords(kind === 'timed' ? head.wordsAfterTime : head.wordsStart, end);
  }

  /** The name, the colon and the words as they are, less what marks them. */
  #named(end: number): void {
    const { text } = this.#body;
    const head = this.#head;
    const writer = this.#writer;
    if (head.ending !== 'colon') {
      writer.add(this.#name?.prefix ?? '');
      this.#addWords(skipWhite(text, head.period + 1, end), end);
      return;
    }
    if (!head.hasWords && head.timePlace === 'behind') {
      writer.add(this.#name?.prefix ?? '');
      return;
    }
    this.#isFirstLine = false;
    // As it is written, if nothing but the name stands before the colon.
    const isPlain = isBlank(text, head.nameEnd, head.colon);
    writer.words(head.nameStart, isPlain ? head.colon : head.nameEnd);
    writer.addRange(head.colon, head.colon + 1);
    // A time without brackets behind the colon is an answer.
    const isAnswer = head.timePlace === 'inside' && head.time?.isInBrackets === false && !head.hasWords;
    const wordsStart = isAnswer ? head.afterColon : head.wordsStart;
    const wordsEnd = this.#closesEmphasis() ? head.end - head.openEmphasis : end;
    if (wordsStart >= wordsEnd) return;
    if (wordsStart > head.colon + 1 && !isWhiteSpace(text.charCodeAt(wordsStart))) writer.add(' ');
    writer.addRange(wordsStart, wordsEnd);
  }

  /** Whether the emphasis that was opened before the name ends with the line: a question all in bold. */
  #closesEmphasis(): boolean {
    const { openEmphasis, nameStart, wordsStart, end } = this.#head;
    if (openEmphasis === 0 || end - openEmphasis < wordsStart) return false;
    const { text } = this.#body;
    return text.startsWith(text.slice(nameStart - openEmphasis, nameStart), end - openEmphasis);
  }

  #addWords(start: number, end: number): void {
    this.#isFirstLine = false;
    this.#writer.words(Math.min(start, end), end);
  }

  /** A line that goes on with the turn above it. */
  #words(from: number, end: number): void {
    const { text } = this.#body;
    const head = this.#head;
    this.#measure.words();
    let start = from;
    if (this.#isNumbered) start = skipWhite(text, from, end);
    else if (this.#isFirstLine) start = skipBlanks(text, from, end);
    if (this.#mark === '>' && head.mark === '>') start = head.start;
    if (this.#hasTimesBefore && head.timePlace === 'before' && this.#measure.turns > 0) start = head.wordsAfterTime;
    this.#writer.words(start, end);
    this.#isFirstLine = false;
  }
}
