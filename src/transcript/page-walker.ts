/** Fills one page after another. This is the one place that decides where a page ends. */
import type { PageView } from './page-view.ts';

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
      const last = this.#view.graphemes.last(this.boundary, limit);
      if (last > this.offset) {
        this.offset = last;
        this.boundary = last;
        return;
      }
      this.boundary = this.#view.graphemes.next(this.offset, end);
    }
    this.offset = limit;
  }
}
