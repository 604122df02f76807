/** Pages of a parsed transcript (T5: filled greedily; T6: what `truncated` says; T7: raw slices are the body). */
import { LRUCache } from 'lru-cache';
import { PageView } from './page-view.ts';
import { PageWalker } from './page-walker.ts';
import { Pace, type Slices } from './slices.ts';
import type { ParsedTranscript } from './turn-writer.ts';

/** The numbers are integers in their ranges. */
export interface PageRequest {
  /** From 1. */
  readonly page: number;
  /** At most so many segments a page: 1 to 200. */
  readonly pageSize: number;
  /** At most so many code points of text a page: 1 to 50,000. */
  readonly maxChars: number;
  /** Exact slices of the body instead of the turns' texts. */
  readonly raw: boolean;
}

export interface Segment {
  readonly index: number;
  readonly text: string;
}

export interface TranscriptPage {
  readonly text: string;
  readonly segments: readonly Segment[];
  readonly totalCount: number;
  readonly totalPages: number;
  readonly hasMore: boolean;
  /** The character cap, not the segment count, ended the page before the end of the transcript. */
  readonly truncated: boolean;
}

/** For so many combinations of page size, cap and `raw` the pages' starts are kept. */
const MAX_INDEXES = 4;

/**
 * Cuts any page (T8: a walk over all pages gives every turn whole, in order, once; T4: turns are counted, not pages). Where a
 * text may be cut is found out once. The first page asked for with a combination of `pageSize`, `maxChars` and `raw` costs a
 * walk over all pages, of some nanoseconds each; further ones cost what they hold. Equal requests give equal pages in every
 * process of one Node.js version.
 */
export class TranscriptPager {
  readonly #parsed: ParsedTranscript;
  readonly #onGrowth: (bytes: number) => void;
  readonly #views = new Map<boolean, PageView>();
  readonly #indexes: LRUCache<string, PageIndex>;

  /** `onGrowth` is notified of the bytes that are held besides the body, now and later. */
  constructor(parsed: ParsedTranscript, onGrowth: (bytes: number) => void = () => undefined) {
    this.#parsed = parsed;
    this.#onGrowth = onGrowth;
    const dispose = ({ starts }: PageIndex): void => onGrowth(-starts.byteLength);
    this.#indexes = new LRUCache({ max: MAX_INDEXES, dispose });
    onGrowth(parsed.text.length * 2 + parsed.textStarts.byteLength + parsed.sliceStarts.byteLength);
  }

  /** The upstream body, well formed. */
  get body(): string {
    return this.#parsed.body;
  }

  /** Whether the body is in a form that can be read (T10: its table of forms). */
  get isFormatSupported(): boolean {
    return this.#parsed.form !== null;
  }

  /**
   * A page past the end is empty and has the true counts. In slices, because the first page of a hostile 2 MB body
   * can take some hundred milliseconds.
   */
  *pageSlices(request: PageRequest): Slices<TranscriptPage> {
    const { pageSize, maxChars, raw } = request;
    const view = yield* this.#viewOf(raw);
    if (view.longest > maxChars) yield* this.#prepareCuts(view);
    const key = `${pageSize}:${maxChars}:${raw}`;
    const known = this.#indexes.get(key);
    const index = known ?? (yield* indexSlices(view, pageSize, maxChars));
    if (known === undefined) {
      this.#indexes.set(key, index);
      this.#onGrowth(index.starts.byteLength);
    }
    return cutPage(view, index, request);
  }

  *#viewOf(raw: boolean): Slices<PageView> {
    const known = this.#views.get(raw);
    if (known !== undefined) return known;
    const view = yield* PageView.of(this.#parsed, raw);
    this.#views.set(raw, view);
    this.#onGrowth(view.weightBytes);
    return view;
  }

  *#prepareCuts(view: PageView): Slices<void> {
    const before = view.weightBytes;
    yield* view.prepareCuts();
    this.#onGrowth(view.weightBytes - before);
  }
}

function cutPage(view: PageView, index: PageIndex, request: PageRequest): TranscriptPage {
  const { totalPages, pagesApart, starts } = index;
  const counts = { totalCount: view.count, totalPages };
  if (request.page > totalPages) return { text: '', segments: [], ...counts, hasMore: false, truncated: false };
  const walker = new PageWalker(view, request.pageSize, request.maxChars);
  const kept = Math.floor((request.page - 1) / pagesApart);
  const [segment = 0, offset = 0, boundary = 0] = starts.subarray(kept * VALUES_PER_START);
  walker.moveTo({ segment, offset, boundary });
  for (let page = kept * pagesApart + 1; page < request.page; page += 1) walker.nextPage();
  const { offset: start, segment: first } = walker;
  walker.nextPage();
  const last = walker.isInSegment ? walker.segment : walker.segment - 1;
  const end = walker.isInSegment ? walker.offset : view.endOf(last);
  const segments: Segment[] = [];
  for (let i = first; i <= last; i += 1) {
    const text = view.source.slice(Math.max(start, view.startOf(i)), Math.min(end, view.endOf(i)));
    segments.push({ index: i, text });
  }
  const hasMore = !walker.isAtEnd;
  // A page that ends within a segment was ended by the cap, however many segments it holds.
  const truncated = hasMore && (walker.isInSegment || segments.length < request.pageSize);
  return { text: view.source.slice(start, end), segments, ...counts, hasMore, truncated };
}

/** Where pages of one `pageSize` and `maxChars` begin, so that a late page costs no more than an early one. */
interface PageIndex {
  readonly totalPages: number;
  /** The starts of the first page and of each so many pages on are kept. */
  readonly pagesApart: number;
  /** Three values for each: segment, offset, boundary. */
  readonly starts: Int32Array;
}

const VALUES_PER_START = 3;
/** With one character a page, a 2 MB body has two million pages: then a page is reached from one a little before it. */
const MAX_KEPT = 16_384;
/** The cost of a page in the count of steps; a unit of a cut segment costs 1. */
const PAGE_COST = 8;

/** Walks all pages once. */
function* indexSlices(view: PageView, pageSize: number, maxChars: number): Slices<PageIndex> {
  // Two pages that follow one another hold more than the cap, or the first is full.
  const maxPages = Math.ceil((2 * (view.source.length + 1)) / maxChars) + Math.ceil(view.count / pageSize) + 1;
  const pagesApart = Math.ceil(maxPages / MAX_KEPT);
  const walker = new PageWalker(view, pageSize, maxChars);
  const starts: number[] = [];
  const pace = new Pace();
  let totalPages = 0;
  let cost = 0;
  while (!walker.isAtEnd) {
    if (totalPages % pagesApart === 0) starts.push(walker.segment, walker.offset, walker.boundary);
    totalPages += 1;
    const before = walker.offset;
    walker.nextPage();
    cost += PAGE_COST + (walker.isInSegment ? walker.offset - before : 0);
    if (pace.isDue(cost)) yield;
  }
  return { totalPages, pagesApart, starts: Int32Array.from(starts) };
}
