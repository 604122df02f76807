/** Writes cues as turns: the text of each, with its speakers named. */
import { CueText, type Markup } from './cue-text.ts';
import { Finder } from './lines.ts';
import type { Slices } from './slices.ts';
import type { Names } from './names.ts';
import { type FormName, type ParsedTranscript, TurnWriter } from './turn-writer.ts';

const MAX_NAME_UNITS = 120;
/** Longer ones stay as they are: JSON.parse cannot be interrupted. */
const MAX_METADATA_UNITS = 65_536;

/** Takes the lines of cues in order. The words of a cue are one range of the body, unless a note parts them. */
export class CueWriter {
  readonly #text: string;
  readonly #words: CueText;
  readonly #speakers: Names;
  readonly #writer: TurnWriter;
  /** Payloads without any of these are words as they stand. */
  readonly #marks: readonly Finder[];
  /** The words that are not written yet. */
  #start = -1;
  #end = -1;
  #isInCue = false;
  /** Whether words of the cue have been written, those above a note. */
  #hasWords = false;

  constructor(text: string, markup: Markup, speakers: Names) {
    this.#text = text;
    this.#words = new CueText(text, markup);
    this.#speakers = speakers;
    this.#writer = new TurnWriter(text);
    const marks = markup === 'webvtt' ? ['<', '{', '\r', '&'] : ['<', '{', '\r'];
    this.#marks = marks.map((mark) => new Finder(text, mark));
  }

  /** `speaker` is empty if nothing but the cue's words names one. */
  beginCue(sliceStart: number, speaker: string): void {
    this.#writer.beginTurn(sliceStart);
    if (speaker !== '') this.#writer.add(`${speaker}: `);
    this.#isInCue = true;
    this.#hasWords = false;
  }

  words(start: number, end: number): void {
    if (!this.#isInCue) {
      this.#writer.words(start, end);
      return;
    }
    if (this.#start === -1) this.#start = start;
    this.#end = end;
  }

  blank(start: number, end: number): void {
    if (!this.#isInCue) this.#writer.blank(start, end);
    else if (start < end) this.words(start, end);
  }

  /** Writes the words since the cue or the note began. */
  *endPart(): Slices<void> {
    if (this.#start === -1) return;
    const payload = this.#text.slice(this.#start, this.#end);
    const isPlain = this.#marks.every((finder) => finder.next(this.#start) >= this.#end);
    const text = isPlain ? payload : (spokenMetadata(payload) ?? (yield* this.#words.read(this.#start, this.#end)));
    if (this.#hasWords) this.#writer.add('\n\n');
    const firstLineEnd = text.slice(0, MAX_NAME_UNITS).indexOf('\n');
    const name = firstLineEnd === -1 ? '' : text.slice(0, firstLineEnd).trim();
    this.#writer.add(this.#speakers.countOf(name) > 0 ? `${name}: ${text.slice(firstLineEnd + 1)}` : text);
    this.#start = -1;
    this.#hasWords = true;
  }

  *finish(form: FormName): Slices<ParsedTranscript> {
    yield* this.endPart();
    return this.#writer.finish(form, 'time range ⏎ words');
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
