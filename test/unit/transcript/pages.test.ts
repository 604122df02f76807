import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TranscriptPager } from '../../../src/transcript/pager.ts';
import { pageLimits, runs } from '../../support/transcript-arbitraries.ts';
import {
  anyTranscript,
  expectPagesByOracle,
  expectWholeWalk,
  type Limits,
  walk,
} from '../../support/transcript-properties.ts';
import { pageOf, parseTranscript } from '../../support/transcript-at-once.ts';

describe('properties', () => {
  test('T5, T6: every page of every transcript is what the rules written down plainly make it', () => {
    const property = fc.property(anyTranscript, pageLimits, fc.boolean(), expectPagesByOracle);
    expect(() => fc.assert(property, runs(200))).not.toThrow();
  });

  test('T7, T8: walking to the end gives every turn or slice whole, in order, once, and breaks no cap', () => {
    const property = fc.property(anyTranscript, pageLimits, fc.boolean(), expectWholeWalk);
    expect(() => fc.assert(property, runs(200))).not.toThrow();
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
      fc.property(anyTranscript, requests, (parsed, asked) => {
        const used = new TranscriptPager(parsed);
        for (const [limits, page, raw] of asked) {
          const request = { page, ...limits, raw };
          expect(pageOf(used, request)).toEqual(pageOf(new TranscriptPager(parsed), request));
        }
      }),
      runs(40),
    );
  });
});

function pagesOf(texts: readonly string[], pageSize: number, maxChars: number): string[][] {
  return pagesWithFlags(texts, pageSize, maxChars).map(([segments]) => segments);
}

function pagesWithFlags(texts: readonly string[], pageSize: number, maxChars: number): [string[], boolean, boolean][] {
  const body = JSON.stringify(texts.map((text, start) => ({ start, text })));
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

  test('T5: cuts fall between grapheme clusters if one fits', () => {
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

  test('T4: a transcript without turns has no page; raw, a body that is not empty has one', () => {
    const nothing = { text: '', segments: [], totalCount: 0, totalPages: 0, hasMore: false, truncated: false };
    const limits = { page: 1, pageSize: 100, maxChars: 50 };
    const empty = new TranscriptPager(parseTranscript('', null));
    expect(pageOf(empty, { ...limits, raw: false })).toEqual(nothing);
    expect(pageOf(empty, { ...limits, raw: true })).toEqual(nothing);
    const cueless = new TranscriptPager(parseTranscript('WEBVTT\n', null));
    expect(pageOf(cueless, { ...limits, raw: false })).toEqual(nothing);
    expect(pageOf(cueless, { ...limits, raw: true })).toEqual({
      ...nothing,
      text: 'WEBVTT\n',
      segments: [{ index: 0, text: 'WEBVTT\n' }],
      totalCount: 1,
      totalPages: 1,
    });
  });

  test('the pager tells the body, and whether its format is supported', () => {
    const pager = new TranscriptPager(parseTranscript('A: x\nB: y 🙂', null));
    expect([pager.isFormatSupported, pager.body]).toEqual([true, 'A: x\nB: y 🙂']);
    expect(new TranscriptPager(parseTranscript('just words', 'srt')).isFormatSupported).toBe(false);
  });
});
