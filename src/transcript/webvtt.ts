/** WebVTT (W3C): a signature and a header, then cues. */
import { readCues } from './cues.ts';
import type { Body, Form, Reading } from './form.ts';
import { Lines, skipFormatCharacters } from './lines.ts';
import type { Slices } from './slices.ts';
import { arrowRangeAt } from './times.ts';

const SIGNATURE = 'WEBVTT';

/** SubRip has a comma there. */
const FRACTION_BY_DOT = /\d\.\d+[ \t]*-->/;
const MAX_UNITS_TO_RANGE = 10_000;

export const webVtt: Form = {
  name: 'webvtt',
  *read(body: Body): Slices<Reading | null> {
    const contentStart = yield* headerEnd(body.text);
    // Files without the signature are cues all the same; that the store calls them WebVTT decides on their markup.
    const isUnsigned = contentStart === 0;
    if (isUnsigned && !(body.declared === 'webvtt' && FRACTION_BY_DOT.test(body.text.slice(0, MAX_UNITS_TO_RANGE))))
      return null;
    return yield* readCues(body, {
      name: 'webvtt',
      markup: 'webvtt',
      arrow: '>',
      rangeAt: arrowRangeAt,
      contentStart,
      hasIdentifiers: !isUnsigned,
    });
  },
};

/** Where the header ends, at a blank line or a time range; 0 if there is no signature. Blank lines may stand above it. */
function* headerEnd(text: string): Slices<number> {
  const lines = new Lines(text);
  let isInHeader = false;
  while (lines.advance()) {
    const { start, end, isBlank } = lines;
    if (lines.isDue) yield;
    if (isInHeader && (isBlank || arrowRangeAt(text, start) !== null)) return start;
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
