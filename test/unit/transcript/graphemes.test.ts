import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Graphemes } from '../../../src/transcript/graphemes.ts';
import { runs } from '../../support/transcript-arbitraries.ts';

const SEGMENTER = new Intl.Segmenter('und', { granularity: 'grapheme' });

function boundariesOf(text: string): number[] {
  const boundaries: number[] = [];
  for (const cluster of SEGMENTER.segment(text)) boundaries.push(cluster.index);
  return [...boundaries, text.length];
}

test('characters below U+0300 never join one another, but CR and LF', () => {
  for (let code = 0; code < 0x0300; code += 1) {
    const character = String.fromCharCode(code);
    const text = `x${character}x${character}${character}\r${character}\n${character}`;
    const graphemes = new Graphemes(text);
    const boundaries = boundariesOf(text);
    for (let limit = 1; limit < text.length; limit += 1) {
      const expected = boundaries.findLast((boundary) => boundary <= limit);
      expect([code, graphemes.last(0, limit, text.length)]).toEqual([code, expected]);
    }
  }
});

const unit = fc.constantFrom(
  'a',
  'é\u00ad',
  'e\u0301',
  '\u0301',
  '\u200d',
  '👩',
  '👩‍👩‍👧',
  '🇩🇪',
  '🇫',
  'क',
  '्',
  'क्ष',
  '\u1100',
  '각',
  '\u0600',
  '\r',
  '\n',
  '\ufe0f',
  '𝒳',
);
const longText = fc
  .array(fc.tuple(unit, fc.oneof(fc.constant(1), fc.nat(5), fc.nat(1500))), { minLength: 1, maxLength: 12 })
  .map((parts) => parts.map(([text, times]) => text.repeat(times)).join('') + 'a')
  .map((text) => text.slice(0, 6000).toWellFormed());

test('boundaries found from part of a text are those of the whole, in any order of asking', () => {
  const question = fc.record({ from: fc.nat(), ahead: fc.oneof(fc.nat(10), fc.nat(700), fc.nat(6000)) });
  fc.assert(
    fc.property(longText, fc.nat(20), fc.array(question, { minLength: 1, maxLength: 8 }), (text, offset, questions) => {
      const boundaries = boundariesOf(text);
      // The text stands within a longer source, of which nothing may be seen.
      const source = `${'\u0600'.repeat(offset)}${text}\u0301\u0301`;
      const end = offset + text.length;
      const graphemes = new Graphemes(source);
      for (const { from, ahead } of questions) {
        const index = from % (boundaries.length - 1);
        const start = boundaries[index] ?? 0;
        const limit = Math.min(start + ahead, text.length - 1);
        const isMidPair = text.charCodeAt(limit) >= 0xdc00 && text.charCodeAt(limit) <= 0xdfff;
        // Callers only ask about places between code points.
        const asked = Math.max(start, isMidPair ? limit - 1 : limit);
        const expected = boundaries.findLast((boundary) => boundary <= asked) ?? 0;
        expect(graphemes.last(offset + start, offset + asked, end)).toBe(offset + expected);
        expect(graphemes.next(offset + start, end)).toBe(offset + (boundaries[index + 1] ?? 0));
      }
    }),
    runs(),
  );
});

test.each(['e\u0301', '🇩🇪', '👍🏽', 'क्ष', '\r\n'])(
  'walking through many windows of %j misses no boundary, wherever the windows end',
  (cluster) => {
    for (let shift = 0; shift < 6; shift += 1) {
      const text = 'a'.repeat(shift) + cluster.repeat(Math.ceil(2600 / cluster.length));
      const graphemes = new Graphemes(text);
      const boundaries = boundariesOf(text);
      const found = [0];
      const seen: number[] = [];
      const wanted: number[] = [];
      for (let from = 0; from < text.length;) {
        const next = graphemes.next(from, text.length);
        // Every place up to the next boundary belongs to the cluster that begins here; the boundary itself doesn't.
        seen.push(
          graphemes.last(from, from + 1, text.length),
          graphemes.last(from, Math.min(next, text.length - 1), text.length),
        );
        wanted.push(next === from + 1 ? next : from, next < text.length ? next : from);
        found.push(next);
        from = next;
      }
      expect(found).toEqual(boundaries);
      expect(seen).toEqual(wanted);
    }
  },
);

test('a cluster that goes on with half of a pair at the end of what was looked at is found whole', () => {
  // U+E0100 joins what stands before it and is two units long; sizes are tried by doubling.
  for (let marks = 1015; marks < 1030; marks += 1) {
    const cluster = `e${'\u0301'.repeat(marks)}\u{e0100}`;
    expect(new Graphemes(`${cluster}xyz`).next(0, cluster.length + 3)).toBe(cluster.length);
  }
});
