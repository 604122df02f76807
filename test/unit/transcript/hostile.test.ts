import { expect, test } from 'vitest';
import { TranscriptPager } from '../../../src/transcript/pager.ts';
import { hostileBodies } from '../../support/transcript-hostile.ts';
import { pageOf, parseTranscript } from '../../support/transcript-at-once.ts';

// A parser that isn't linear would take minutes for these, and the test's time limit is 20 s. Exact costs: the benchmark.
test.each(hostileBodies(300_000))('$name: parsed, paged and put together again', ({ body, declared, turns }) => {
  const parsed = parseTranscript(body, declared);
  expect(parsed.turnCount).toBe(turns);
  const pager = new TranscriptPager(parsed);
  for (const maxChars of [50_000, 3]) {
    const limits = { pageSize: 200, maxChars, raw: true };
    const { totalPages } = pageOf(pager, { page: 1, ...limits });
    const last = pageOf(pager, { page: totalPages, ...limits });
    expect(last.hasMore).toBe(false);
    expect(body.endsWith(last.text)).toBe(true);
    if (maxChars === 3) continue;
    const pages = Array.from({ length: totalPages }, (_, i) => pageOf(pager, { page: i + 1, ...limits }).text);
    expect(pages.join('')).toBe(body);
  }
});
