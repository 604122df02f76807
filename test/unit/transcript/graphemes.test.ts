import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { Graphemes } from '../../../src/transcript/graphemes.ts';
import { runs } from '../../support/transcript-arbitraries.ts';
import { runToEnd } from '../../../src/transcript/slices.ts';

const SEGMENTER = new Intl.Segmenter('und', { granularity: 'grapheme' });

function boundariesOf(text: string): number[] {
  const boundaries: number[] = [];
  for (const cluster of SEGMENTER.segment(text)) boundaries.push(cluster.index);
  return [...boundaries, text.length];
}

/** The boundaries that the graphemes know, by asking about every place. */
function foundIn(text: string): number[] {
  const graphemes = runToEnd(Graphemes.of(text));
  const found = [0];
  for (let from = 0; from < text.length;) {
    const next = graphemes.next(from, text.length);
    for (let limit = from; limit < next; limit += 1) if (graphemes.last(from, limit) !== from) found.push(-limit);
    found.push(next);
    from = next;
  }
  return found;
}

test('every character of the Basic Multilingual Plane has the boundaries that ICU gives it, next to itself and to letters', () => {
  for (let code = 0; code < 0x1_0000; code += 256) {
    const characters = Array.from({ length: 256 }, (_, i) => String.fromCharCode(code + i).toWellFormed());
    const text = characters.map((character) => `x${character}я${character}${character}か`).join('\r\n');
    expect(foundIn(text)).toEqual(boundariesOf(text));
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

test('the boundaries of any text are those that ICU gives it', () => {
  fc.assert(
    fc.property(longText, (text) => {
      expect(foundIn(text)).toEqual(boundariesOf(text));
    }),
    runs(),
  );
});

test.each(['e\u0301', '🇩🇪', '👍🏽', 'क्ष', '\r\n', 'я', 'か\u3099'])(
  'many windows of %j miss no boundary, wherever the windows end',
  (cluster) => {
    for (let shift = 0; shift < 6; shift += 1) {
      const text = 'a'.repeat(shift) + cluster.repeat(Math.ceil(9000 / cluster.length));
      expect(foundIn(text)).toEqual(boundariesOf(text));
    }
  },
);

test('a cluster longer than what is looked at together is found whole', () => {
  for (const cluster of [`e${'\u0301'.repeat(9000)}`, '👩\u200d'.repeat(4000), `e${'\u{e0100}'.repeat(5001)}`]) {
    expect(foundIn(`ab${cluster}xyz`)).toEqual(boundariesOf(`ab${cluster}xyz`));
  }
});
