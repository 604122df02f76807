/**
 * Characters that never join a neighbour of the same kind into one grapheme cluster: no combining or spacing marks, no
 * joiners, no prepended signs, no conjoining jamo, no emoji, no Indic consonants (Unicode Standard Annex #29). Between
 * two of them (but CR LF) there is a boundary, and nobody needs to be asked. First and last unit of each range, sorted.
 */
const PLAIN_RANGES: readonly (readonly [number, number])[] = [
  [0x0000, 0x02ff], // ASCII, Latin
  [0x0370, 0x0482], // Greek, Cyrillic
  [0x048a, 0x0590], // Cyrillic, Armenian
  [0x05d0, 0x05ea], // Hebrew letters
  [0x0620, 0x064a], // Arabic letters
  [0x1e00, 0x1fff], // more Latin and Greek
  [0x2010, 0x2027], // dashes, quotes, the ellipsis
  [0x3000, 0x3029], // CJK punctuation
  [0x3041, 0x3096], // Hiragana
  [0x30a0, 0x30ff], // Katakana
  [0x3400, 0x9fff], // CJK ideographs
  [0xac00, 0xd7a3], // Hangul syllables
  [0xff01, 0xff60], // full-width forms
  [0xfffc, 0xfffd], // replacement characters, which lone surrogates become
];

const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;

/** Whether there is certainly a grapheme cluster boundary between two UTF-16 units; false means that it isn't known. */
export function isPlainBoundary(before: number, after: number): boolean {
  if (before === CARRIAGE_RETURN && after === LINE_FEED) return false;
  return isPlain(before) && isPlain(after);
}

export function isPlain(unit: number): boolean {
  for (const [first, last] of PLAIN_RANGES) if (unit <= last) return unit >= first;
  return false;
}
