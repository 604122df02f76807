/** Transcripts without pauses, as tests have nothing else to do meanwhile, and their columns as arrays of strings. */
import type { TranscriptFormat } from '../../src/domain/vocabulary.ts';
import type { Column } from '../../src/transcript/column.ts';
import type { PageRequest, TranscriptPage, TranscriptPager } from '../../src/transcript/pager.ts';
import { parseSlices } from '../../src/transcript/parse.ts';
import { runToEnd, type Slices } from '../../src/transcript/slices.ts';
import type { ParsedTranscript } from '../../src/transcript/turn-writer.ts';

export function parseTranscript(body: string, declared: TranscriptFormat | null): ParsedTranscript {
  return runToEnd(parseSlices(body, declared));
}

export function pageOf(pager: TranscriptPager, request: PageRequest): TranscriptPage {
  return runToEnd(pager.pageSlices(request));
}

/** Runs the computation and waits for `pause` (a turn of the event loop, say) after every slice. */
export async function runSlices<T>(slices: Slices<T>, pause: () => Promise<void>): Promise<T> {
  for (;;) {
    const slice = slices.next();
    if (slice.done === true) return slice.value;
    await pause();
  }
}

/** The segments of a parsed transcript. */
export function textsOf(parsed: ParsedTranscript): string[] {
  return cut(parsed.text, parsed.textStarts, 1);
}

export function slicesOf(parsed: ParsedTranscript): string[] {
  return cut(parsed.body, parsed.sliceStarts, 0);
}

function cut(source: string, starts: Column, gap: number): string[] {
  return Array.from({ length: starts.length - 1 }, (_, i) => source.slice(starts.at(i), starts.at(i + 1) - gap));
}
