/** Turns below a line with the speaker's name and a time: `Mara Quint  0:03`, `[Mara] 11:02:09`, `0:03 - Mara`, ... */
import { type Body, type Form, Measure, type Reading } from './form.ts';
import { Lines, skipBlanks, skipFormatCharacters } from './lines.ts';
import type { Slices } from './slices.ts';
import { isName, SpeakerCounts, spokenLine } from './speakers.ts';
import { TIME_IN_BRACKETS as IN_BRACKETS, TIME_SPAN as TIME } from './times.ts';
import { TurnWriter } from './turn-writer.ts';

const MAX_HEADER_UNITS = 200;
const NAME = String.raw`(?<name>\S.{0,120}?)`;

/** How a header is written. Prose can look like the weak ones by chance (`We start at 10:30`). */
interface HeaderStyle {
  readonly pattern: RegExp;
  readonly isWeak: boolean;
}

/** The first that fits a line is its style. */
const STYLES: readonly HeaderStyle[] = [
  {
    pattern: new RegExp(String.raw`^\[(?<name>[^\[\]]{1,120})\][ \t]{0,8}(?:${TIME}|${IN_BRACKETS}):?$`),
    isWeak: false,
  },
  { pattern: new RegExp(String.raw`^${NAME}[ \t]{0,8}${IN_BRACKETS}[:：]?$`), isWeak: false },
  { pattern: new RegExp(String.raw`^${NAME}(?:\t|[ \t\u00a0]{2,40})${TIME}$`), isWeak: false },
  { pattern: new RegExp(String.raw`^${NAME}[ \t]{1,8}[-–—|•·][ \t]{1,8}${TIME}$`), isWeak: false },
  { pattern: new RegExp(String.raw`^(?:${TIME}|${IN_BRACKETS})[ \t]{1,8}[-–—|•·][ \t]{1,8}${NAME}$`), isWeak: false },
  { pattern: new RegExp(String.raw`^${NAME},? ${TIME}$`), isWeak: true },
  { pattern: new RegExp(String.raw`^(?:${TIME}|${IN_BRACKETS})[ \t\u00a0]{1,8}${NAME}$`), isWeak: true },
];

const A_TIME = /\d:\d\d/;
const SENTENCE_END = /[.,…]$/;
const SMALL_FIRST = /^\p{Ll}/u;
const SMALL_WORD = /(?:^|\s)\p{Ll}/u;

interface Header {
  readonly name: string;
  readonly style: HeaderStyle;
}

interface StyleCount {
  readonly style: HeaderStyle;
  readonly names: SpeakerCounts;
  total: number;
  /** How many of them begin a paragraph. */
  afterBlank: number;
}

/** The styles and the names of a body's lines that look like headers. */
class Headers {
  readonly #counts = new Map<HeaderStyle, StyleCount>();
  /** The most frequent style, once it was asked for. */
  #main: StyleCount | undefined;

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  add({ name, style }: Header, isAfterBlank: boolean): void {
    const count = this.#counts.get(style) ?? { style, names: new SpeakerCounts(), total: 0, afterBlank: 0 };
    count.names.add(name);
    count.total += 1;
    if (isAfterBlank) count.afterBlank += 1;
    this.#counts.set(style, count);
  }

  /**
   * Whether a line that looks like a header is one. A body has one style; a line of another is one if its name is that of
   * a speaker. With a weak style, names must speak repeatedly or look like names.
   */
  includes({ name, style }: Header, isAfterBlank: boolean): boolean {
    const main = (this.#main ??= [...this.#counts.values()].toSorted((a, b) => b.total - a.total)[0]);
    if (main === undefined) return false;
    if (style !== main.style) return main.names.of(name) > 0;
    if (!style.isWeak || main.names.of(name) > 1) return true;
    if (main.total === 1 || SENTENCE_END.test(name)) return false;
    if (isAfterBlank) return !SMALL_FIRST.test(name);
    return main.afterBlank * 2 < main.total && !SMALL_WORD.test(name);
  }
}

export const headedTurns: Form = {
  name: 'headed turns',
  *read({ text }: Body): Slices<Reading | null> {
    const headers = yield* findHeaders(text);
    if (headers.isEmpty) return null;
    const measure = new Measure();
    const writer = new TurnWriter(text);
    /** Those who speak in the words. */
    const speakers = new SpeakerCounts();
    const lines = new Lines(text);
    let [isAfterBlank, isFirstLine, turnsWithWords] = [true, false, 0];
    while (lines.advance()) {
      const { start, end, isBlank } = lines;
      if (lines.isDue) yield;
      const header = isBlank ? null : headerAt(text, start, end);
      if (header !== null && headers.includes(header, isAfterBlank)) {
        measure.turn(true);
        writer.beginTurn(start);
        writer.add(`${header.name}: `);
        isFirstLine = true;
      } else if (isBlank) {
        measure.blank();
        writer.blank(start, end);
      } else {
        measure.words();
        if (isFirstLine && header === null) turnsWithWords += 1;
        const spoken = spokenLine(text, start, end);
        if (spoken !== null) speakers.add(text.slice(spoken.nameStart, spoken.nameEnd));
        writer.words(isFirstLine ? skipBlanks(text, start, end) : start, end);
        isFirstLine = false;
      }
      isAfterBlank = isBlank;
    }
    // Titles of sections have times as well, and below them the lines of those who speak.
    if (speakers.repeats >= measure.turns) return null;
    // A list of chapters has such lines too, and nothing else below them.
    if (turnsWithWords * 2 < measure.turns) return null;
    return { transcript: writer.finish('headed turns'), explained: measure.explained() };
  },
};

function* findHeaders(text: string): Slices<Headers> {
  const headers = new Headers();
  let isAfterBlank = true;
  const lines = new Lines(text);
  while (lines.advance()) {
    if (lines.isDue) yield;
    const header = headerAt(text, lines.start, lines.end);
    if (header !== null) headers.add(header, isAfterBlank);
    isAfterBlank = lines.isBlank;
  }
  return headers;
}

/** The header that the line looks like, if it does. */
function headerAt(text: string, lineStart: number, end: number): Header | null {
  const start = skipFormatCharacters(text, lineStart, end);
  if (end - start > MAX_HEADER_UNITS) return null;
  const line = text.slice(start, end).trimEnd();
  if (!A_TIME.test(line)) return null;
  const bare = line.startsWith('**') ? line.replaceAll('**', '') : line;
  for (const style of STYLES) {
    const name = style.pattern.exec(bare)?.groups?.['name']?.trim();
    // A name that holds a time is half a range: another style may see the whole.
    if (name === undefined || A_TIME.test(name)) continue;
    return isName(name, 0, name.length) && !/[:：](?:\s|$)/.test(name) ? { name, style } : null;
  }
  return null;
}
