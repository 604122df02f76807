/** The dialects of cues: WebVTT (W3C), SubRip, and SBV, which is YouTube's. */
import type { Markup } from './cue-text.ts';
import type { Body } from './form.ts';
import { Lines, skipFormatCharacters } from './lines.ts';
import type { Slices } from './slices.ts';
import { arrowRangeAt, commaRangeAt, type CueRange } from './times.ts';
import type { FormName } from './turn-writer.ts';

/** How one kind of cues is written. */
export interface CueDialect {
  readonly name: FormName;
  readonly markup: Markup;
  /** A line with a time range holds this. */
  readonly arrow: string;
  /** The time range at the position of the body's `timeText`; null if there is none. */
  rangeAt(timeText: string, start: number): CueRange | null;
  /** Where the cues and what stands above them begin, after a signature and its header. */
  readonly contentStart: number;
  /** Whether a line above a range may be an identifier that is no number, and NOTE, STYLE and REGION begin blocks of marks. */
  readonly isSigned: boolean;
}

const SIGNATURE = 'WEBVTT';
/** SubRip has a comma there. */
const FRACTION_BY_DOT = /\d\.\d+[ \t]*-->/;
/** The most text that may stand above the first cue. */
const MAX_UNITS_TO_RANGE = 100_000;
const MAX_UNITS_OF_PATTERN = 10_000;
const COMMA_RANGE = /\d\.\d{1,9},[ \t]{0,4}\d{1,3}:/;

/** The dialects that the body may be in. */
export function* dialectsOf({ text, timeText, declared }: Body): Slices<CueDialect[]> {
  const dialects: CueDialect[] = [];
  const contentStart = yield* headerEnd(text, timeText);
  if (contentStart > 0 || text.slice(0, MAX_UNITS_TO_RANGE).includes('->')) {
    const isSigned = contentStart > 0;
    // Files without the signature are cues all the same; that the store calls them WebVTT decides on their markup.
    const isWebVtt = isSigned || (declared === 'webvtt' && FRACTION_BY_DOT.test(text.slice(0, MAX_UNITS_OF_PATTERN)));
    const arrows = { arrow: '>', rangeAt: arrowRangeAt, contentStart, isSigned };
    dialects.push(
      isWebVtt ? { ...arrows, name: 'webvtt', markup: 'webvtt' } : { ...arrows, name: 'subrip', markup: 'common' },
    );
  }
  if (COMMA_RANGE.test(text.slice(0, MAX_UNITS_OF_PATTERN))) {
    const commas = { arrow: ',', rangeAt: commaRangeAt, contentStart: 0, isSigned: false };
    dialects.push({ ...commas, name: 'sbv', markup: 'common' });
  }
  return dialects;
}

/** Where the header ends, at a blank line or a time range; 0 if there is no signature. Blank lines may stand above it. */
function* headerEnd(text: string, timeText: string): Slices<number> {
  const lines = new Lines(text);
  let isInHeader = false;
  while (lines.advance()) {
    const { start, end, isBlank } = lines;
    if (lines.isDue) yield;
    if (isInHeader && (isBlank || arrowRangeAt(timeText, start) !== null)) return start;
    if (isInHeader || isBlank) continue;
    if (!isSignature(text, skipFormatCharacters(text, start, end), end)) return 0;
    isInHeader = true;
  }
  return isInHeader ? text.length : 0;
}

/** `WEBVTT`, followed by white space or nothing. */
function isSignature(text: string, start: number, end: number): boolean {
  const following = start + SIGNATURE.length;
  return (
    text.startsWith(SIGNATURE, start) && (following === end || text[following] === ' ' || text[following] === '\t')
  );
}
