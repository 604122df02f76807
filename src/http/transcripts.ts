/** Transcripts: parsed once per entry for both surfaces, and cut into pages, without blocking the event loop. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { Derivation, type Entry } from '../cache/entry.ts';
import type { TranscriptRecord } from '../domain/records.ts';
import { toCallTranscript, toReportTranscript } from '../domain/transcript.ts';
import { TranscriptPager } from '../transcript/pager.ts';
import { parseSteps } from '../transcript/parse.ts';
import { runSteps } from '../transcript/steps.ts';
import type { PageRequest } from '../transcript/pager.ts';
import { pageLinks } from './page-links.ts';
import { Representation } from './representation.ts';

/** Readers go through a transcript page by page; what many of them read is its beginning. */
const MAX_PAGES_PER_ENTRY = 8;

export class Transcripts {
  readonly #pagers = new Derivation<Promise<TranscriptPager>>(() => 0);
  readonly #whole = new Derivation<Promise<Representation>>(() => 0);
  readonly #pages = new Derivation<LRUCache<string, Representation>>(() => 0);

  /** The body as it is, and whether it can be parsed (T1). */
  whole(entry: Entry<TranscriptRecord>, record: TranscriptRecord): Promise<Representation> {
    return this.#whole.of(entry, async () => {
      const made = new Representation(toReportTranscript(await this.#pagerOf(entry, record)));
      entry.addDerivedBytes(made.weightBytes);
      return made;
    });
  }

  /** One page (T5). The pages that were asked for last stay with the entry. */
  async page(
    entry: Entry<TranscriptRecord>,
    record: TranscriptRecord,
    request: PageRequest,
    signal: AbortSignal,
  ): Promise<Representation> {
    const pages = this.#pagesOf(entry);
    const name = `${request.page} ${request.pageSize} ${request.maxChars} ${request.raw}`;
    const known = pages.get(name);
    if (known !== undefined) return known;
    const pager = await this.#pagerOf(entry, record);
    signal.throwIfAborted();
    const page = await runSteps(pager.pageSteps(request), pause);
    const { isFormatSupported } = pager;
    const links = pageLinks(
      { page: request.page, totalPages: page.totalPages },
      {
        pageSize: request.pageSize,
        maxChars: request.maxChars,
        raw: request.raw ? 'true' : null,
      },
    );
    const made = new Representation(toCallTranscript({ ...page, ...request, isFormatSupported }), links);
    pages.set(name, made);
    entry.addDerivedBytes(made.weightBytes);
    return made;
  }

  #pagerOf(entry: Entry<TranscriptRecord>, record: TranscriptRecord): Promise<TranscriptPager> {
    return this.#pagers.of(entry, async () => {
      const pager = new TranscriptPager(await runSteps(parseSteps(record.body, record.format), pause));
      entry.addDerivedBytes(pager.weightBytes);
      return pager;
    });
  }

  /** The bytes of a page that had to make room are no longer counted. */
  #pagesOf(entry: Entry<TranscriptRecord>): LRUCache<string, Representation> {
    return this.#pages.of(
      entry,
      () =>
        new LRUCache({
          max: MAX_PAGES_PER_ENTRY,
          dispose: ({ weightBytes }) => entry.addDerivedBytes(-weightBytes),
        }),
    );
  }
}

async function pause(): Promise<void> {
  await nextTurn();
}
