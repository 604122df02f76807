/** Transcripts: parsed once per entry for both surfaces, and cut into pages, without blocking the event loop. */
import { LRUCache } from 'lru-cache';
import { Derivation } from '../cache/entry.ts';
import type { TranscriptRecord } from '../domain/records.ts';
import type { CallTranscript, ReportTranscript } from '../domain/transcript.ts';
import { type PageRequest, type TranscriptPage, TranscriptPager } from '../transcript/pager.ts';
import { parseSlices } from '../transcript/parse.ts';
import type { ReadContext, FoundRecord } from './read.ts';
import { pageLinks, Representation } from './respond.ts';
import { SliceQueue } from './slice-queue.ts';

type Transcript = FoundRecord<TranscriptRecord>;

/** Readers go through a transcript page by page; what many of them read is its beginning. */
const MAX_PAGES_PER_ENTRY = 8;

/** One queue per process: every transcript is read and cut here. */
const queue = new SliceQueue();
const pagers = new Derivation<Promise<TranscriptPager>>(() => 0);
const wholes = new Derivation<Promise<Representation>>(() => 0);
const pages = new Derivation<LRUCache<string, Representation>>(() => 0);

/** T1: the body as it is, and whether it can be parsed. */
export function wholeTranscript(found: Transcript, _request: unknown, { keyId }: ReadContext): Promise<Representation> {
  return wholes.of(found.entry, async () => {
    const { body, isFormatSupported } = await pagerOf(found, keyId);
    const made = new Representation({ transcript: body, isFormatSupported } satisfies ReportTranscript);
    found.entry.addDerivedBytes(made.weightBytes);
    return made;
  });
}

/** One page (T5: at most `pageSize` segments and `maxChars` code points). The pages asked for last stay with the entry. */
export async function transcriptPage(
  found: Transcript,
  request: PageRequest,
  { keyId, state }: ReadContext,
): Promise<Representation> {
  const known = pagesOf(found);
  const { page, pageSize, maxChars, raw } = request;
  const name = `${page} ${pageSize} ${maxChars} ${raw}`;
  const present = known.get(name);
  if (present !== undefined) return present;
  const pager = await pagerOf(found, keyId);
  const cut = await queue.run(keyId, () => pager.pageSlices(request), state.signal);
  const links = pageLinks({ page, totalPages: cut.totalPages }, { pageSize, maxChars, raw: raw ? 'true' : null });
  const made = new Representation(toCallTranscript(cut, request, pager.isFormatSupported), { Link: links });
  known.set(name, made);
  found.entry.addDerivedBytes(made.weightBytes);
  return made;
}

/** The body of one page. */
export function toCallTranscript(
  cut: TranscriptPage,
  { page, pageSize }: Pick<PageRequest, 'page' | 'pageSize'>,
  isFormatSupported: boolean,
): CallTranscript {
  return {
    transcript: { text: cut.text, is_format_supported: isFormatSupported, segments: [...cut.segments] },
    pagination: {
      page,
      page_size: pageSize,
      total_count: cut.totalCount,
      total_pages: cut.totalPages,
      has_more: cut.hasMore,
    },
    truncated: cut.truncated,
  };
}

/** Readers of one entry wait for the same reading of it, so it is not given up with the request that began it. */
function pagerOf({ entry, record }: Transcript, keyId: string): Promise<TranscriptPager> {
  return pagers.of(entry, async () => {
    const parsed = await queue.run(keyId, () => parseSlices(record.body, record.format));
    return new TranscriptPager(parsed, (bytes) => entry.addDerivedBytes(bytes));
  });
}

/** The bytes of a page that had to make room are no longer counted. */
function pagesOf({ entry }: Transcript): LRUCache<string, Representation> {
  const dispose = ({ weightBytes }: Representation): void => entry.addDerivedBytes(-weightBytes);
  return pages.of(entry, () => new LRUCache({ max: MAX_PAGES_PER_ENTRY, dispose }));
}
