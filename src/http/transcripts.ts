/** Transcripts parsed once an entry, for both surfaces, without holding the event loop. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Derivation, type Entry } from '../cache/entry.ts';
import type { TranscriptRecord } from '../domain/records.ts';
import { createPager, type TranscriptPager } from '../transcript/pager.ts';
import { parseSteps } from '../transcript/parse.ts';
import { runSteps } from '../transcript/steps.ts';
import type { PageRequest, TranscriptPage } from '../transcript/types.ts';

export class Transcripts {
  readonly #pagers = new Derivation<Promise<TranscriptPager>>(() => 0);

  /** The entry's transcript, parsed. */
  pagerOf(entry: Entry<TranscriptRecord>, record: TranscriptRecord): Promise<TranscriptPager> {
    return this.#pagers.of(entry, async () => {
      const pager = createPager(await runSteps(parseSteps(record.body, record.format), pause));
      entry.addDerivedBytes(pager.weightBytes);
      return pager;
    });
  }
}

/** One page, cut in steps like the parse. */
export function cutPage(pager: TranscriptPager, request: PageRequest): Promise<TranscriptPage> {
  return runSteps(pager.pageSteps(request), pause);
}

async function pause(): Promise<void> {
  await nextTurn();
}
