/** Grapheme cluster boundaries of parts of a long string, at a cost that goes by what is asked for, not by its length. */

/** Below it, where ASCII and Latin letters are, only CR and LF make one grapheme cluster: combining marks begin here. */
const FIRST_MARK = 0x0300;
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
    if (this.#isBetweenLatin(limit)) return limit;
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

  /** Whether there is certainly a boundary, which is cheap to tell; false means that it isn't known. */
  #isBetweenLatin(position: number): boolean {
    const [before, after] = [this.#source.charCodeAt(position - 1), this.#source.charCodeAt(position)];
    return before < FIRST_MARK && after < FIRST_MARK && !this.#source.startsWith('\r\n', position - 1);
  }
}
