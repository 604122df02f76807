/** Fills one page after another. This is the one place that decides where a page ends. */
import { at } from './columns.ts';
import { Graphemes } from './graphemes.ts';
import { advance, endOf, type PageView, pointsBetween, pointsUpTo } from './page-view.ts';

/** Where a page begins. */
export interface PageStart {
  readonly segment: number;
  /** Position in the view's source; past the segment's own start where the page goes on with a cut segment. */
  readonly offset: number;
  /** The first grapheme boundary of the segment at or after `offset`; further on where a cluster itself was cut. */
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
    return !this.isAtEnd && this.offset > at(this.#view.starts, this.segment);
  }

  moveTo(start: PageStart): void {
    this.segment = start.segment;
    this.offset = start.offset;
    this.boundary = start.boundary;
  }

  /** Goes to where the next page begins. Must not be called at the end. */
  nextPage(): void {
    const points = this.#headPoints();
    if (points > this.#maxChars) this.#cut();
    else this.#moveToStartOf(this.#lastFitting(this.#maxChars - points));
  }

  /** Code points of what is left of the segment that the page begins with; some number over the cap where it is more. */
  #headPoints(): number {
    if (!this.isInSegment) return pointsBetween(this.#view, this.segment, this.segment + 1) - this.#view.gap;
    return pointsUpTo(this.#view, this.offset, endOf(this.#view, this.segment), this.#maxChars);
  }

  /** The first segment that no longer fits after the head, by the character cap or the segment count. */
  #lastFitting(room: number): number {
    const first = this.segment + 1;
    let fits = first;
    let tooMany = Math.min(this.#view.count, this.segment + this.#pageSize) + 1;
    while (tooMany - fits > 1) {
      const middle = (fits + tooMany) >>> 1;
      if (pointsBetween(this.#view, first, middle) <= room) fits = middle;
      else tooMany = middle;
    }
    return fits;
  }

  #moveToStartOf(segment: number): void {
    this.segment = segment;
    this.offset = at(this.#view.starts, segment);
    this.boundary = this.offset;
  }

  /** Ends the page within its first segment: at the last grapheme boundary under the cap, else at the cap itself. */
  #cut(): void {
    const end = endOf(this.#view, this.segment);
    const limit = advance(this.#view, this.offset, this.#maxChars);
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
