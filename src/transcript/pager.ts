/** Pages of a parsed transcript. */
import { at } from './columns.ts';
import { indexSteps, type PageIndex } from './page-index.ts';
import { endOf, type PageView, viewOf } from './page-view.ts';
import { PageWalker } from './page-walker.ts';
import { finishSteps, type Steps } from './steps.ts';
import type { PageRequest, ParsedTranscript, Segment, TranscriptPage } from './types.ts';

/** For so many combinations of page size, cap and `raw` the pages' starts are kept; the one longest unused goes first. */
const MAX_INDEXES = 4;

/**
 * Cuts any page. The first page asked for with a combination of `pageSize`, `maxChars` and `raw` costs a pass over the
 * turns; further ones cost what they hold. Equal requests give equal pages in every process of one Node.js version.
 */
export interface TranscriptPager {
  /** The upstream body, well formed. */
  readonly body: string;
  /** Whether the body is in one of the four formats. */
  readonly isFormatSupported: boolean;
  /** What is held at the moment besides the body itself. Indexes of page starts add at most 2 MB to a fresh pager's. */
  readonly weightBytes: number;
  /** A page past the end is empty and has the true counts. The request's numbers must be integers in their ranges. */
  page(request: PageRequest): TranscriptPage;
  /** The same in steps, for `runSteps`: a first page can take some hundred milliseconds of a hostile 2 MB body. */
  pageSteps(request: PageRequest): Steps<TranscriptPage>;
}

export function createPager(parsed: ParsedTranscript): TranscriptPager {
  return new IndexedPager(parsed);
}

class IndexedPager implements TranscriptPager {
  readonly #parsed: ParsedTranscript;
  #textView: PageView | null = null;
  #rawView: PageView | null = null;
  /** In the order of their last use. */
  readonly #indexes = new Map<string, PageIndex>();

  constructor(parsed: ParsedTranscript) {
    this.#parsed = parsed;
  }

  get body(): string {
    return this.#parsed.body;
  }

  get isFormatSupported(): boolean {
    return this.#parsed.format !== null;
  }

  get weightBytes(): number {
    const { text, textStarts, sliceStarts } = this.#parsed;
    let bytes = text.length * 2 + textStarts.byteLength + sliceStarts.byteLength;
    for (const view of [this.#textView, this.#rawView]) bytes += view?.pairsBefore?.byteLength ?? 0;
    for (const index of this.#indexes.values()) bytes += index.bytes;
    return bytes;
  }

  page(request: PageRequest): TranscriptPage {
    return finishSteps(this.pageSteps(request));
  }

  *pageSteps(request: PageRequest): Steps<TranscriptPage> {
    const view = this.#viewFor(request.raw);
    const index = yield* this.#indexFor(view, request);
    return cutPage(view, index, request);
  }

  #viewFor(raw: boolean): PageView {
    if (raw) return (this.#rawView ??= viewOf(this.#parsed, true));
    return (this.#textView ??= viewOf(this.#parsed, false));
  }

  *#indexFor(view: PageView, request: PageRequest): Steps<PageIndex> {
    const key = `${request.pageSize}:${request.maxChars}:${request.raw}`;
    const index = this.#indexes.get(key) ?? (yield* indexSteps(view, request.pageSize, request.maxChars));
    this.#indexes.delete(key);
    this.#indexes.set(key, index);
    const [oldest] = this.#indexes.keys();
    if (this.#indexes.size > MAX_INDEXES && oldest !== undefined) this.#indexes.delete(oldest);
    return index;
  }
}

function cutPage(view: PageView, index: PageIndex, request: PageRequest): TranscriptPage {
  const counts = { totalCount: view.count, totalPages: index.totalPages };
  if (request.page > index.totalPages) return { text: '', segments: [], ...counts, hasMore: false, truncated: false };
  const walker = new PageWalker(view, request.pageSize, request.maxChars);
  const checkpoint = index.before(request.page);
  walker.moveTo(checkpoint);
  for (let page = checkpoint.page; page < request.page; page += 1) walker.nextPage();
  const start = walker.offset;
  const first = walker.segment;
  walker.nextPage();
  const end = walker.isInSegment ? walker.offset : at(view.starts, walker.segment) - view.gap;
  const last = walker.isInSegment ? walker.segment : walker.segment - 1;
  const segments: Segment[] = [];
  for (let i = first; i <= last; i += 1) {
    const from = Math.max(start, at(view.starts, i));
    segments.push({ index: i, text: view.source.slice(from, Math.min(end, endOf(view, i))) });
  }
  const hasMore = !walker.isAtEnd;
  // A page that ends within a segment was ended by the cap, however many segments it holds.
  const truncated = hasMore && (walker.isInSegment || segments.length < request.pageSize);
  return { text: view.source.slice(start, end), segments, ...counts, hasMore, truncated };
}
