/** Writes cues as turns: the text of each, with its speakers named. */
import { cueTextSlices, type Markup } from './cue-text.ts';
import { Finder } from './lines.ts';
import { Preamble } from './plain.ts';
import type { Slices } from './slices.ts';
import type { SpeakerCounts } from './speakers.ts';
import { type FormName, type ParsedTranscript, TurnWriter } from './turn-writer.ts';

const MAX_NAME_UNITS = 120;
/** Longer ones stay as they are: JSON.parse cannot be interrupted. */
const MAX_METADATA_UNITS = 65_536;

/** Is told of every line, in order. What it returns is run before the next line. */
export interface CueSink {
  /** A cue begins: its slice of the body at `sliceStart`, words on the line of its range at `wordsStart`, if before `end`. */
  range(sliceStart: number, wordsStart: number, end: number): Slices<void> | null;
  /** A counter or an identifier, right before its range. */
  mark(): void;
  /** A line of a note, a style or a region. */
  note(): Slices<void> | null;
  blank(start: number, end: number): void;
  /** Words of the cue, or of what stands above the first. */
  words(start: number, end: number): void;
}

export class CueWriter implements CueSink {
  readonly #text: string;
  readonly #markup: Markup;
  readonly #speakers: SpeakerCounts;
  readonly #writer: TurnWriter;
  readonly #preamble: Preamble;
  /** Payloads without any of these are words as they stand. */
  readonly #marks: readonly Finder[];
  readonly #lineFeeds: Finder;
  /** The words of the cue that are not written yet; a note parts those before it from those after it. */
  #start = -1;
  #end = -1;
  #isInCue = false;
  #hasWords = false;

  constructor(text: string, markup: Markup, speakers: SpeakerCounts) {
    this.#text = text;
    this.#markup = markup;
    this.#speakers = speakers;
    this.#writer = new TurnWriter(text);
    this.#preamble = new Preamble(this.#writer);
    const marks = markup === 'webvtt' ? ['<', '{', '\r', '&'] : ['<', '{', '\r'];
    this.#marks = marks.map((mark) => new Finder(text, mark));
    this.#lineFeeds = new Finder(text, '\n');
  }

  range(sliceStart: number, wordsStart: number, end: number): Slices<void> | null {
    if (!this.#isPlain()) return this.#endAndBegin(sliceStart, wordsStart, end);
    this.#writePlain();
    this.#begin(sliceStart, wordsStart, end);
    return null;
  }

  mark(): void {
    // It belongs to the slice of the cue that follows.
  }

  note(): Slices<void> | null {
    if (!this.#isInCue || this.#start === -1) return null;
    return this.#endPart();
  }

  blank(start: number, end: number): void {
    if (!this.#isInCue) this.#preamble.endParagraph();
    else if (start < end) this.words(start, end);
  }

  words(start: number, end: number): void {
    if (!this.#isInCue) {
      this.#preamble.line(start, end);
      return;
    }
    if (this.#start === -1) this.#start = start;
    this.#end = end;
  }

  *finish(form: FormName): Slices<ParsedTranscript> {
    yield* this.#endPart();
    return this.#writer.finish(form);
  }

  *#endAndBegin(sliceStart: number, wordsStart: number, end: number): Slices<void> {
    yield* this.#endPart();
    this.#begin(sliceStart, wordsStart, end);
  }

  #begin(sliceStart: number, wordsStart: number, end: number): void {
    this.#writer.beginTurn(sliceStart);
    this.#isInCue = true;
    this.#hasWords = false;
    if (wordsStart < end) this.words(wordsStart, end);
  }

  #isPlain(): boolean {
    return this.#start === -1 || this.#marks.every((finder) => finder.next(this.#start) >= this.#end);
  }

  *#endPart(): Slices<void> {
    if (this.#isPlain()) {
      this.#writePlain();
      return;
    }
    const payload = this.#text.slice(this.#start, this.#end);
    this.#beginPart();
    const text = spokenMetadata(payload) ?? (yield* cueTextSlices(payload, this.#markup));
    const firstLineEnd = text.slice(0, MAX_NAME_UNITS).indexOf('\n');
    const isNamed = firstLineEnd !== -1 && this.#speakers.of(text.slice(0, firstLineEnd).trim()) > 0;
    this.#writer.addString(isNamed ? `${text.slice(0, firstLineEnd).trim()}: ${text.slice(firstLineEnd + 1)}` : text);
  }

  #writePlain(): void {
    if (this.#start === -1) return;
    const [start, end] = [this.#start, this.#end];
    this.#beginPart();
    const lineEnd = this.#lineFeeds.next(start);
    const isShort = lineEnd < end && lineEnd - start <= MAX_NAME_UNITS;
    if (!isShort || this.#speakers.of(this.#text.slice(start, lineEnd).trim()) === 0) {
      this.#writer.addRange(start, end);
      return;
    }
    this.#writer.addString(`${this.#text.slice(start, lineEnd).trim()}: `);
    this.#writer.addRange(lineEnd + 1, end);
  }

  #beginPart(): void {
    if (this.#hasWords) this.#writer.addString('\n\n');
    this.#hasWords = true;
    this.#start = -1;
  }
}

/** The words of a cue of Teams' that is JSON (`{"speakerName": ..., "spokenText": ...}`); null if it is none. */
function spokenMetadata(payload: string): string | null {
  if (payload.length > MAX_METADATA_UNITS || !/^\s{0,99}\{/.test(payload) || !payload.includes('"spokenText"'))
    return null;
  const metadata = parseOrNull(payload);
  if (typeof metadata !== 'object' || metadata === null) return null;
  if (!('spokenText' in metadata) || typeof metadata.spokenText !== 'string') return null;
  const words = metadata.spokenText.toWellFormed();
  const name = 'speakerName' in metadata && typeof metadata.speakerName === 'string' ? metadata.speakerName.trim() : '';
  return name === '' ? words : `${name.toWellFormed()}: ${words}`;
}

function parseOrNull(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}
