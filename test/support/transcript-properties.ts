/** The properties of every page of every transcript, whatever is in it. */
import * as fc from 'fast-check';
import { expect } from 'vitest';
import { TRANSCRIPT_FORMATS } from '../../src/domain/vocabulary.ts';
import { type PageRequest, type TranscriptPage, TranscriptPager } from '../../src/transcript/pager.ts';
import type { ParsedTranscript } from '../../src/transcript/turn-writer.ts';
import { anyBody, cueTurns, headedTurns, lineEnding } from './transcript-arbitraries.ts';
import { countPoints, oraclePages } from './transcript-oracle.ts';
import { renderTranscript } from './transcript-render.ts';
import { pageOf, parseTranscript, slicesOf, textsOf } from './transcript-at-once.ts';

export type Limits = Pick<PageRequest, 'pageSize' | 'maxChars'>;

const format = fc.constantFrom(...TRANSCRIPT_FORMATS);

export const anyTranscript: fc.Arbitrary<ParsedTranscript> = fc.oneof(
  fc.tuple(anyBody, fc.option(format)).map(([body, declared]) => parseTranscript(body, declared)),
  headedTurns.map((turns) => parseTranscript(renderTranscript(turns, 'headed turns'), null)),
  fc
    .tuple(cueTurns, format, lineEnding, fc.boolean())
    .map(([turns, declared, ending, isVerbose]) =>
      parseTranscript(renderTranscript(turns, declared, { lineEnding: ending, isVerbose }), declared),
    ),
);

/** All pages, from the first to the last. */
export function walk(pager: TranscriptPager, limits: Limits, raw: boolean): TranscriptPage[] {
  const pages: TranscriptPage[] = [];
  for (let page = 1; ; page += 1) {
    const found = pageOf(pager, { page, ...limits, raw });
    if (page > found.totalPages) return pages;
    pages.push(found);
    if (!found.hasMore) return pages;
  }
}

/** T5, T6: every page is what the rules written down plainly make it. */
export function expectPagesByOracle(parsed: ParsedTranscript, limits: Limits, raw: boolean): void {
  const texts = raw ? slicesOf(parsed) : textsOf(parsed);
  const expected = oraclePages(texts, raw ? '' : '\n', limits.pageSize, limits.maxChars);
  expect(walk(new TranscriptPager(parsed), limits, raw)).toEqual(expected);
}

/** T7, T8: a walk gives every turn whole, in order, once; raw pages put together are the body; no cap is broken. */
export function expectWholeWalk(parsed: ParsedTranscript, limits: Limits, raw: boolean): void {
  const pages = walk(new TranscriptPager(parsed), limits, raw);
  const turns: string[] = [];
  for (const { index, text } of pages.flatMap(({ segments }) => segments)) {
    expect([turns.length, turns.length - 1]).toContain(index);
    turns[index] = (turns[index] ?? '') + text;
  }
  expect(turns).toEqual(raw ? slicesOf(parsed) : textsOf(parsed));
  expect(raw ? pages.map(({ text }) => text).join('') : parsed.body).toBe(parsed.body);
  for (const { text, segments, totalCount, totalPages } of pages) {
    expect(text).toBe(segments.map((segment) => segment.text).join(raw ? '' : '\n'));
    expect(segments.every((segment) => segment.text.isWellFormed())).toBe(true);
    expect(countPoints(text)).toBeLessThanOrEqual(limits.maxChars);
    expect(segments.length).toBeLessThanOrEqual(limits.pageSize);
    expect([totalCount, totalPages]).toEqual([turns.length, pages.length]);
  }
}
