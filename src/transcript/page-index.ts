/** Where the pages of one (pageSize, maxChars) pair begin, so that a late page costs no more than an early one. */
import { at, Int32List } from './columns.ts';
import type { PageView } from './page-view.ts';
import { type PageStart, PageWalker } from './page-walker.ts';
import { Pace, type Steps } from './steps.ts';

/** A page's start is kept when so many pages have gone by since the last one kept, or so many units of a cut segment. */
const MIN_PAGES_APART = 4;
const UNITS_APART = 256;
/** With one character a page, a 2 MB body has two million pages: then fewer are kept, and each is further to walk to. */
const MAX_KEPT_BY_PAGE = 16_384;

/** What a page costs in the count of steps, next to a unit of a cut segment. */
const PAGE_COST = 16;

interface Checkpoint extends PageStart {
  /** From 1. */
  readonly page: number;
}

/** Starts of some of the pages, the first among them. */
export class PageIndex {
  readonly totalPages: number;
  readonly #pages: Int32Array;
  readonly #segments: Int32Array;
  readonly #offsets: Int32Array;
  readonly #boundaries: Int32Array;

  constructor(totalPages: number, checkpoints: CheckpointLists) {
    this.totalPages = totalPages;
    this.#pages = checkpoints.pages.toColumn();
    this.#segments = checkpoints.segments.toColumn();
    this.#offsets = checkpoints.offsets.toColumn();
    this.#boundaries = checkpoints.boundaries.toColumn();
  }

  get bytes(): number {
    return this.#pages.byteLength * 4;
  }

  /** The last checkpoint at or before a page that there is. */
  before(page: number): Checkpoint {
    let known = 0;
    let beyond = this.#pages.length;
    while (beyond - known > 1) {
      const middle = (known + beyond) >>> 1;
      if (at(this.#pages, middle) <= page) known = middle;
      else beyond = middle;
    }
    return {
      page: at(this.#pages, known),
      segment: at(this.#segments, known),
      offset: at(this.#offsets, known),
      boundary: at(this.#boundaries, known),
    };
  }
}

class CheckpointLists {
  readonly pages = new Int32List();
  readonly segments = new Int32List();
  readonly offsets = new Int32List();
  readonly boundaries = new Int32List();

  push(page: number, start: PageStart): void {
    this.pages.push(page);
    this.segments.push(start.segment);
    this.offsets.push(start.offset);
    this.boundaries.push(start.boundary);
  }
}

/** Walks all pages once. */
export function* indexSteps(view: PageView, pageSize: number, maxChars: number): Steps<PageIndex> {
  const walker = new PageWalker(view, pageSize, maxChars);
  const checkpoints = new CheckpointLists();
  const pace = new Pace();
  const pagesApart = Math.max(MIN_PAGES_APART, Math.ceil(maxPages(view, pageSize, maxChars) / MAX_KEPT_BY_PAGE));
  let page = 0;
  let keptPage = -pagesApart;
  let keptOffset = 0;
  let cost = 0;
  while (!walker.isAtEnd) {
    page += 1;
    if (page - keptPage >= pagesApart || (walker.isInSegment && walker.offset - keptOffset >= UNITS_APART)) {
      checkpoints.push(page, walker);
      keptPage = page;
      keptOffset = walker.offset;
    }
    const before = walker.offset;
    walker.nextPage();
    cost += PAGE_COST + (walker.isInSegment ? walker.offset - before : 0);
    if (pace.isDue(cost)) yield;
  }
  return new PageIndex(page, checkpoints);
}

/** How many pages there are at most: two that follow one another hold more than the cap, or the first is full. */
function maxPages(view: PageView, pageSize: number, maxChars: number): number {
  return Math.ceil((2 * (view.source.length + 1)) / maxChars) + Math.ceil(view.count / pageSize) + 1;
}
