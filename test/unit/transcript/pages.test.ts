import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TranscriptFormat } from '../../../src/domain/records.ts';
import { TranscriptPager } from '../../../src/transcript/pager.ts';
import { parseTranscript } from '../../../src/transcript/parse.ts';
import type { PageRequest, TranscriptPage } from '../../../src/transcript/pager.ts';
import type { ParsedTranscript } from '../../../src/transcript/turn-writer.ts';
import { anyBody, cueTurns, lineEnding, pageLimits, runs } from '../../support/transcript-arbitraries.ts';
import { countPoints, oraclePages } from '../../support/transcript-oracle.ts';
import { slicesOf, textsOf } from '../../support/transcript-read.ts';
import { renderTranscript } from '../../support/transcript-render.ts';

type Limits = Pick<PageRequest, 'pageSize' | 'maxChars'>;

const FORMATS: readonly TranscriptFormat[] = ['speaker_text', 'webvtt', 'srt', 'utterances_json'];

const parsedTranscript: fc.Arbitrary<ParsedTranscript> = fc.oneof(
  fc.tuple(anyBody, fc.constantFrom(null, ...FORMATS)).map(([body, format]) => parseTranscript(body, format)),
  fc
    .tuple(cueTurns, fc.constantFrom(...FORMATS), lineEnding, fc.boolean())
    .map(([turns, format, ending, isVerbose]) =>
      parseTranscript(renderTranscript(turns, format, { lineEnding: ending, isVerbose }), format),
    ),
);

function walk(pager: TranscriptPager, limits: Limits, raw: boolean): TranscriptPage[] {
  const pages: TranscriptPage[] = [];
  for (let page = 1; ; page += 1) {
    const found = pager.page({ page, ...limits, raw });
    if (page > found.totalPages) return pages;
    pages.push(found);
    if (!found.hasMore) return pages;
  }
}

/** The segments of all pages, those of one index put together. */
function joinedByIndex(pages: readonly TranscriptPage[]): string[] {
  const joined: string[] = [];
  for (const { index, text } of pages.flatMap((page) => page.segments)) {
    if (index !== joined.length && index !== joined.length - 1) throw new Error(`segment ${index} is out of order`);
    joined[index] = (joined[index] ?? '') + text;
  }
  return joined;
}

describe('properties', () => {
  test('T5, T6: every page of every transcript is what the rules written down plainly make it', () => {
    fc.assert(
      fc.property(parsedTranscript, pageLimits, fc.boolean(), (parsed, limits, raw) => {
        const texts = raw ? slicesOf(parsed) : textsOf(parsed);
        const expected = oraclePages(texts, raw ? '' : '\n', limits.pageSize, limits.maxChars);
        expect(walk(new TranscriptPager(parsed), limits, raw)).toEqual(expected);
      }),
      runs(1000),
    );
  });

  test('T8: walking to the end gives every turn whole, in order, once, and breaks no cap', () => {
    fc.assert(
      fc.property(parsedTranscript, pageLimits, (parsed, limits) => {
        const pages = walk(new TranscriptPager(parsed), limits, false);
        expect(joinedByIndex(pages)).toEqual(textsOf(parsed));
        for (const page of pages) {
          expect(page.text).toBe(page.segments.map((segment) => segment.text).join('\n'));
          expect(page.text.isWellFormed()).toBe(true);
          expect(page.segments.every((segment) => segment.text.isWellFormed())).toBe(true);
          expect(countPoints(page.text)).toBeLessThanOrEqual(limits.maxChars);
          expect(page.segments.length).toBeLessThanOrEqual(limits.pageSize);
          expect([page.totalCount, page.totalPages]).toEqual([parsed.turnCount, pages.length]);
        }
      }),
      runs(),
    );
  });

  test('T7: the raw pages put together are the body, and the slices are whole', () => {
    fc.assert(
      fc.property(parsedTranscript, pageLimits, (parsed, limits) => {
        const pages = walk(new TranscriptPager(parsed), limits, true);
        expect(pages.map((page) => page.text).join('')).toBe(parsed.body);
        expect(joinedByIndex(pages)).toEqual(slicesOf(parsed));
        for (const page of pages) {
          expect(page.text).toBe(page.segments.map((segment) => segment.text).join(''));
          expect(page.text.isWellFormed()).toBe(true);
          expect(countPoints(page.text)).toBeLessThanOrEqual(limits.maxChars);
          expect(page.totalPages).toBe(pages.length);
        }
      }),
      runs(),
    );
  });

  test('the same request gives the same page, whatever was asked before', () => {
    const requests = fc.array(
      fc.tuple(
        fc.constantFrom<Limits>(
          { pageSize: 2, maxChars: 9 },
          { pageSize: 1, maxChars: 1 },
          { pageSize: 200, maxChars: 40 },
        ),
        fc.integer({ min: 1, max: 60 }),
        fc.boolean(),
      ),
      { minLength: 1, maxLength: 12 },
    );
    fc.assert(
      fc.property(parsedTranscript, requests, (parsed, asked) => {
        const used = new TranscriptPager(parsed);
        for (const [limits, page, raw] of asked) {
          const request = { page, ...limits, raw };
          expect(used.page(request)).toEqual(new TranscriptPager(parsed).page(request));
        }
      }),
      runs(200),
    );
  });
});

function pagesOf(texts: readonly string[], pageSize: number, maxChars: number): string[][] {
  return pagesWithFlags(texts, pageSize, maxChars).map(([segments]) => segments);
}

function pagesWithFlags(texts: readonly string[], pageSize: number, maxChars: number): [string[], boolean, boolean][] {
  const body = JSON.stringify(texts.map((text) => ({ text })));
  const pager = new TranscriptPager(parseTranscript(body, 'utterances_json'));
  return walk(pager, { pageSize, maxChars }, false).map((page) => [
    page.segments.map((segment) => `${segment.index}:${segment.text}`),
    page.truncated,
    page.hasMore,
  ]);
}

describe('filling', () => {
  test('T5: the line feed between two segments counts', () => {
    expect(pagesOf(['abc', 'def', 'g'], 200, 7)).toEqual([['0:abc', '1:def'], ['2:g']]);
    expect(pagesOf(['abc', 'def', 'g'], 200, 6)).toEqual([['0:abc'], ['1:def', '2:g']]);
  });

  test('T5: empty turns are segments', () => {
    expect(pagesOf(['', '', ''], 200, 1)).toEqual([['0:', '1:'], ['2:']]);
    expect(pagesOf(['', '', ''], 2, 50)).toEqual([['0:', '1:'], ['2:']]);
  });

  test('T5: a turn too long for any page starts on a new one, and its rest shares a page with what follows', () => {
    expect(pagesOf(['a', 'bcdefghij', 'k', 'l'], 200, 4)).toEqual([
      ['0:a'],
      ['1:bcde'],
      ['1:fghi'],
      ['1:j', '2:k'],
      ['3:l'],
    ]);
  });

  test('T5: a turn that fits a page of its own is never cut', () => {
    expect(pagesOf(['ab', 'cdef'], 200, 4)).toEqual([['0:ab'], ['1:cdef']]);
  });

  test('T5: characters are code points', () => {
    expect(pagesOf(['😀😀', '😀'], 200, 4)).toEqual([['0:😀😀', '1:😀']]);
    expect(pagesOf(['😀😀', '😀'], 200, 3)).toEqual([['0:😀😀'], ['1:😀']]);
  });

  test('T5: cuts fall between grapheme clusters where one fits', () => {
    expect(pagesOf(['ab🇩🇪🇫🇷c'], 200, 3)).toEqual([['0:ab'], ['0:🇩🇪'], ['0:🇫🇷c']]);
    expect(pagesOf(['xe\u0301e\u0301'], 200, 2)).toEqual([['0:x'], ['0:e\u0301'], ['0:e\u0301']]);
    expect(pagesOf(['a\r\nb'], 200, 2)).toEqual([['0:a'], ['0:\r\n'], ['0:b']]);
  });

  test('T5: a cluster longer than a page is cut between code points, and what follows it goes on at boundaries', () => {
    expect(pagesOf(['👩‍👩‍👧e\u0301e\u0301'], 200, 3)).toEqual([['0:👩‍👩'], ['0:\u200d👧'], ['0:e\u0301'], ['0:e\u0301']]);
    expect(pagesOf([`e${'\u0301'.repeat(4)}f`], 200, 2)).toEqual([['0:e\u0301'], ['0:\u0301\u0301'], ['0:\u0301f']]);
    expect(pagesOf(['a\r\n'], 200, 1)).toEqual([['0:a'], ['0:\r'], ['0:\n']]);
  });

  test('T6: truncated tells that the cap ended the page', () => {
    expect(pagesWithFlags(['ab', 'cd', 'ef'], 1, 50)).toEqual([
      [['0:ab'], false, true],
      [['1:cd'], false, true],
      [['2:ef'], false, false],
    ]);
    expect(pagesWithFlags(['ab', 'cd', 'ef'], 2, 4)).toEqual([
      [['0:ab'], true, true],
      [['1:cd'], true, true],
      [['2:ef'], false, false],
    ]);
    // Both would end the page: the segment count came first.
    expect(pagesWithFlags(['ab', 'cd'], 1, 2)[0]).toEqual([['0:ab'], false, true]);
    // One segment a page, and the segment was cut.
    expect(pagesWithFlags(['abcd'], 1, 2)).toEqual([
      [['0:ab'], true, true],
      [['0:cd'], false, false],
    ]);
  });

  test('Q6: a page past the end is empty and has the true counts', () => {
    const pager = new TranscriptPager(parseTranscript('A: x\nB: y', 'speaker_text'));
    const limits = { pageSize: 1, maxChars: 50, raw: false };
    for (const page of [3, 999_999_999]) {
      expect(pager.page({ page, ...limits })).toEqual({
        text: '',
        segments: [],
        totalCount: 2,
        totalPages: 2,
        hasMore: false,
        truncated: false,
      });
    }
  });

  test('T4: a transcript without turns has no page; raw, a body that is not empty has one', () => {
    const nothing = { text: '', segments: [], totalCount: 0, totalPages: 0, hasMore: false, truncated: false };
    const limits = { page: 1, pageSize: 100, maxChars: 50 };
    const empty = new TranscriptPager(parseTranscript('', null));
    expect(empty.page({ ...limits, raw: false })).toEqual(nothing);
    expect(empty.page({ ...limits, raw: true })).toEqual(nothing);
    const cueless = new TranscriptPager(parseTranscript('WEBVTT\n', null));
    expect(cueless.page({ ...limits, raw: false })).toEqual(nothing);
    expect(cueless.page({ ...limits, raw: true })).toEqual({
      ...nothing,
      text: 'WEBVTT\n',
      segments: [{ index: 0, text: 'WEBVTT\n' }],
      totalCount: 1,
      totalPages: 1,
    });
  });

  test('the pager tells whether the format is supported, and its weight grows with what it keeps', () => {
    const pager = new TranscriptPager(parseTranscript('A: x\nB: y 🙂', null));
    expect([pager.isFormatSupported, pager.body]).toEqual([true, 'A: x\nB: y 🙂']);
    expect(new TranscriptPager(parseTranscript('just words', 'srt')).isFormatSupported).toBe(false);
    const fresh = pager.weightBytes;
    const weights = [1, 2, 3, 4, 5, 6].map((maxChars) => {
      pager.page({ page: 1, pageSize: 1, maxChars, raw: false });
      return pager.weightBytes;
    });
    expect(weights[0]).toBeGreaterThan(fresh);
    // Four indexes are kept, no more: the later ones are no larger than those they replace.
    expect(weights[5]).toBeLessThanOrEqual(weights[3] ?? 0);
  });
});
