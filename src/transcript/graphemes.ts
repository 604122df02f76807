/** Grapheme cluster boundaries of parts of a long string, at a cost that goes by what is asked for, not by its length. */

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
const SEGMENTER = new Intl.Segmenter('und', { granularity: 'grapheme' });

/** How far apart two positions may be for the boundaries between them to be found one by one and remembered. */
const NEAR_UNITS = 512;
const WINDOW_UNITS = 2 * NEAR_UNITS;

/**
 * Finds boundaries in one source. Texts within it (turns) are looked at each on its own: `end` is always the end of
 * the text that `from` is in, and `from` a boundary of it. Segmenting from any true boundary gives the boundaries of
 * the whole, because the rules look back no further than the current cluster (UAX #29, GB9c, GB11, GB12).
 */
export class Graphemes {
  readonly #source: string;
  /** Which of the positions from `#windowStart` to `#windowEnd` are boundaries: 1 at their distance from the start. */
  readonly #marks = new Uint8Array(WINDOW_UNITS + 1);
  #windowStart = 0;
  #windowEnd = -1;

  constructor(source: string) {
    this.#source = source;
  }

  /** The last boundary from `from` to `limit`, both included; `limit` lies before `end`. */
  last(from: number, limit: number, end: number): number {
    if (from === limit) return limit;
    if (isPlainBoundary(this.#source.charCodeAt(limit - 1), this.#source.charCodeAt(limit))) return limit;
    if (limit - from > NEAR_UNITS) return this.#clusterStart(from, limit, end);
    if (from < this.#windowStart || limit > this.#windowEnd) this.#moveWindow(from, end);
    let position = limit;
    while (position > from && this.#marks[position - this.#windowStart] === 0) position -= 1;
    return position;
  }

  /** The first boundary after `from`, where `from` lies before `end`. */
  next(from: number, end: number): number {
    if (from >= this.#windowStart) {
      for (let position = from + 1; position <= this.#windowEnd; position += 1) {
        if (this.#marks[position - this.#windowStart] === 1) return position;
      }
    }
    // A cluster may be as long as the text. Doubling finds its end at a cost linear in its length.
    for (let units = WINDOW_UNITS; ; units *= 2) {
      const part = this.#source.slice(from, Math.min(end, from + units));
      const length = SEGMENTER.segment(part).containing(0)?.segment.length ?? part.length;
      // One unit of distance: the last one may be half of a pair and say nothing of what follows.
      if (length < part.length - 1 || from + part.length === end) return from + length;
    }
  }

  /** Where the cluster begins that `position` is in. ICU looks back only as far as it must. */
  #clusterStart(from: number, position: number, end: number): number {
    const part = this.#source.slice(from, Math.min(end, position + 2));
    return from + (SEGMENTER.segment(part).containing(position - from)?.index ?? 0);
  }

  #moveWindow(from: number, end: number): void {
    const part = this.#source.slice(from, Math.min(end, from + WINDOW_UNITS));
    this.#marks.fill(0);
    for (const cluster of SEGMENTER.segment(part)) this.#marks[cluster.index] = 1;
    const isWhole = from + part.length === end;
    if (isWhole) this.#marks[part.length] = 1;
    this.#windowStart = from;
    // What follows the last units is not in the window, so nothing is known of them.
    this.#windowEnd = from + part.length - (isWhole ? 0 : 2);
  }
}

/** Whether there is certainly a grapheme cluster boundary between two UTF-16 units; false means that it isn't known. */
export function isPlainBoundary(before: number, after: number): boolean {
  if (before === CARRIAGE_RETURN && after === LINE_FEED) return false;
  return isPlain(before) && isPlain(after);
}

export function isPlain(unit: number): boolean {
  for (const [first, last] of PLAIN_RANGES) if (unit <= last) return unit >= first;
  return false;
}
