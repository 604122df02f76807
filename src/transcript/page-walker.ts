/** Fills one page after another. This is the one place that decides where a page ends. */
import { Graphemes } from './graphemes.ts';
import type { ParsedTranscript } from './turn-writer.ts';

/** What pages are cut from, the turns' texts or the raw slices of the body: every page's text is one range of it. */
export class PageView {
  readonly source: string;
  /** Segment i is `source.slice(startOf(i), endOf(i))`. */
  readonly count: number;
  /** How many units part two segments: one line feed between texts, nothing between raw slices. */
  readonly gap: 0 | 1;
  readonly #starts: Int32Array;
  /** How many surrogate pairs stand before each start; null if the source has none at all. */
  readonly #pairsBefore: Int32Array | null;

  /** Costs one pass over the text. */
  constructor(parsed: ParsedTranscript, raw: boolean) {
    this.source = raw ? parsed.body : parsed.text;
    this.gap = raw ? 0 : 1;
    this.#starts = raw ? parsed.sliceStarts : parsed.textStarts;
    this.count = this.#starts.length - 1;
    this.#pairsBefore = countPairs(this.source, this.#starts);
  }

  startOf(segment: number): number {
    return at(this.#starts, segment);
  }

  endOf(segment: number): number {
    return at(this.#starts, segment + 1) - this.gap;
  }

  /** Code points of the segments from `first` to before `end`, with one gap for each of them. */
  pointsBetween(first: number, end: number): number {
    const units = at(this.#starts, end) - at(this.#starts, first);
    if (this.#pairsBefore === null) return units;
    return units - (at(this.#pairsBefore, end) - at(this.#pairsBefore, first));
  }

  /** Where `points` code points after `from` end, in a source that has as many. */
  advance(from: number, points: number): number {
    if (this.#pairsBefore === null) return from + points;
    let position = from;
    for (let left = points; left > 0; left -= 1) position += isHighSurrogate(this.source.charCodeAt(position)) ? 2 : 1;
    return position;
  }

  /** Code points between two positions, or `cap + 1` if there are more than `cap`; reads at most `2 * cap` units. */
  pointsUpTo(from: number, end: number, cap: number): number {
    const units = end - from;
    if (this.#pairsBefore === null || units <= 0) return Math.min(units, cap + 1);
    if (units > 2 * cap) return cap + 1;
    let points = units;
    for (let i = from; i < end; i += 1) if (isHighSurrogate(this.source.charCodeAt(i))) points -= 1;
    return Math.min(points, cap + 1);
  }
}

function countPairs(source: string, starts: Int32Array): Int32Array | null {
  if (!/[\ud800-\udbff]/.test(source)) return null;
  const pairsBefore = new Int32Array(starts.length);
  let pairs = 0;
  let position = 0;
  for (const [i, start] of starts.entries()) {
    for (; position < start; position += 1) if (isHighSurrogate(source.charCodeAt(position))) pairs += 1;
    pairsBefore[i] = pairs;
  }
  return pairsBefore;
}

function isHighSurrogate(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** The value at an index that must be there. Throws a RangeError if it is not. */
function at(column: Int32Array, index: number): number {
  const value = column[index];
  if (value === undefined) throw new RangeError(`no value ${index} in a column of ${column.length}`);
  return value;
}

/** Where a page begins. */
interface PageStart {
  readonly segment: number;
  /** Position in the view's source; past the segment's own start if the page goes on with a cut segment. */
  readonly offset: number;
  /** The first grapheme boundary of the segment at or after `offset`; further on if a cluster itself was cut. */
  readonly boundary: number;
}

/** Stands at the start of a page and goes on page by page. */
export class PageWalker implements PageStart {
  readonly #view: PageView;
  readonly #pageSize: number;
  readonly #maxChars: number;
  /** Made when a segment is cut, which most transcripts never need. */
  #graphemes: Graphemes | null = null;
  segment = 0;
  offset = 0;
  boundary = 0;

  constructor(view: PageView, pageSize: number, maxChars: number) {
    this.#view = view;
    this.#pageSize = pageSize;
    this.#maxChars = maxChars;
  }

  /** Whether no page begins here any more. */
  get isAtEnd(): boolean {
    return this.segment >= this.#view.count;
  }

  /** Whether the page that begins here goes on with a segment that the page before has begun. */
  get isInSegment(): boolean {
    return !this.isAtEnd && this.offset > this.#view.startOf(this.segment);
  }

  moveTo({ segment, offset, boundary }: PageStart): void {
    this.segment = segment;
    this.offset = offset;
    this.boundary = boundary;
  }

  /** Goes to where the next page begins. Must not be called at the end. */
  nextPage(): void {
    const points = this.#headPoints();
    if (points > this.#maxChars) {
      this.#cut();
      return;
    }
    this.segment = this.#firstUnfit(this.#maxChars - points);
    this.offset = this.#view.startOf(this.segment);
    this.boundary = this.offset;
  }

  /** Code points of what is left of the segment that the page begins with; some number over the cap if it is more. */
  #headPoints(): number {
    if (!this.isInSegment) return this.#view.pointsBetween(this.segment, this.segment + 1) - this.#view.gap;
    return this.#view.pointsUpTo(this.offset, this.#view.endOf(this.segment), this.#maxChars);
  }

  /** The first segment that no longer fits after the head, by the character cap or the segment count. */
  #firstUnfit(room: number): number {
    const first = this.segment + 1;
    let fits = first;
    let tooMany = Math.min(this.#view.count, this.segment + this.#pageSize) + 1;
    while (tooMany - fits > 1) {
      const middle = (fits + tooMany) >>> 1;
      if (this.#view.pointsBetween(first, middle) <= room) fits = middle;
      else tooMany = middle;
    }
    return fits;
  }

  /** Ends the page within its first segment: at the last grapheme boundary under the cap, else at the cap itself. */
  #cut(): void {
    const end = this.#view.endOf(this.segment);
    const limit = this.#view.advance(this.offset, this.#maxChars);
    if (this.boundary <= limit) {
      this.#graphemes ??= new Graphemes(this.#view.source);
      const last = this.#graphemes.last(this.boundary, limit, end);
      if (last > this.offset) {
        this.offset = last;
        this.boundary = last;
        return;
      }
      this.boundary = this.#graphemes.next(this.offset, end);
    }
    this.offset = limit;
  }
}
