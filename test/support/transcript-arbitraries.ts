/** Arbitrary conversations and bodies for property tests, made of what breaks parsers and pagers. */
import * as fc from 'fast-check';
import { cases } from './cases.ts';
import type { SpokenTurn } from './transcript-render.ts';

export function runs(numRuns = 100): { readonly numRuns: number } {
  return { numRuns: cases(numRuns) };
}

/** Pieces of text without line endings. */
const piece = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.constantFrom('so ', 'yes', ' ', 'I think, ', 'a', '42', 'Note: this', ': ', ':', '-', '!'),
  },
  { weight: 2, arbitrary: fc.constantFrom('👩‍👩‍👧‍👦', '🇩🇪', '🇫🇷🇪🇸🇮', '👍🏽', '🏴󠁧󠁢󠁥󠁮󠁧󠁿', '❤️', '©', '1️⃣', '🙂') },
  {
    weight: 2,
    arbitrary: fc.constantFrom('e\u0301', '\u0301', 'Z\u0351\u036b\u0343', '\u200d', '\ufe0f', '\u3099', '\u200c'),
  },
  { weight: 2, arbitrary: fc.constantFrom('שלום', 'שָׁ', 'مرحبا', 'مَرْ', '\u202e', '\u200f', '\u0600١') },
  {
    weight: 2,
    arbitrary: fc.constantFrom('क्षत्रिय', 'நி', 'ก็', '한국', '\u1100\u1161\u11a8', '漢字', 'が', 'か\u3099'),
  },
  { weight: 1, arbitrary: fc.constantFrom('\ud83d', '\ude00', '\udc00\ud800', '𝒳', '\u{10ffff}', '\u{e0100}') },
  {
    weight: 1,
    arbitrary: fc.constantFrom('\u2028', '\u0085', '\u00a0', '\ufeff', '\t', '\v', '\f', '\u0001', '\u001f'),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('<b>', '</v>', '<v Bo>', '& ', '&amp;', '&lt', '<', '>', '"', '\\', '{', '[', '}],'),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(fc.constantFrom('x', '\u0301', 'ha ', '🇩🇪', 'क्', '👍🏽'), fc.nat(90))
      .map(([unit, times]) => unit.repeat(times)),
  },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 4 }).map(withoutLineEndings) },
);

const line = fc.array(piece, { maxLength: 6 }).map((pieces) => pieces.join(''));

/** A line that every form takes for more words of the same turn: no speaker, no time, no number, no mark of a cue. */
const laterLine = line
  .map((text) =>
    text
      .replaceAll(/:(?=\s|\\?$)/g, ',')
      .replaceAll('-->', '->')
      .replaceAll(/\d:/g, '1'),
  )
  .filter((text) => text.trim() !== '' && !/^\d+[ \t]*$/.test(text));

const firstLine = line.map((text) => text.replaceAll('-->', '->').replaceAll(/\d:/g, '1'));

const words = fc
  .tuple(firstLine, fc.array(laterLine, { maxLength: 2 }))
  .map(([first, later]) => [first, ...later].join('\n'));

const nameWord = fc.constantFrom(...`Anna Grad O’Neil J.-P. 2 Élodie 王芳 مريم 𝒳avier (Sales) d'Arc Bo👍🏽`.split(' '));

/** Names that may stand before `: `. */
const speakerName = fc
  .tuple(fc.constantFrom('Anna', 'Élodie', '王芳', 'مريم', '9th', '𝒳', 'क्षमा'), fc.array(nameWord, { maxLength: 5 }))
  .map(([first, others]) => [first, ...others].join(' '))
  .filter((name) => Array.from(name).length <= 60);

/** Turns that all have a speaker, which every format can write. */
export const spokenTurns: fc.Arbitrary<SpokenTurn[]> = fc.array(fc.record({ speaker: speakerName, text: words }), {
  maxLength: 12,
});

/** Turns as headers and words below them, which begin and end with neither blank lines nor white space. */
export const headedTurns: fc.Arbitrary<SpokenTurn[]> = fc.array(
  fc.record({
    speaker: speakerName,
    text: fc.array(laterLine, { minLength: 1, maxLength: 3 }).map((lines) => lines.join('\n').trim()),
  }),
  { minLength: 1, maxLength: 12 },
);

/** Turns for the forms that need no speaker. */
export const cueTurns: fc.Arbitrary<SpokenTurn[]> = fc.array(
  fc.oneof(
    fc.record({ speaker: speakerName, text: words }),
    fc.record({
      speaker: fc.constant(null),
      text: fc.oneof(
        fc.constant(''),
        // Neither a speaker nor the name of one alone on the first line.
        words
          .map((text) => text.replaceAll(':', '.').replaceAll('𝒳', 'X'))
          .filter((text) => !text.startsWith('\n') && text !== ''),
      ),
    }),
  ),
  { maxLength: 12 },
);

/** The same without what marks text in every cue, and what no cue can escape. */
export const plainCueTurns = cueTurns.map((turns) =>
  turns.map(({ speaker, text }) => ({ speaker, text: text.replaceAll(/[<{]/g, '(') })),
);

/** Bodies of anything at all, and of what nearly is one of the forms. */
export const anyBody: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: piece },
      { weight: 3, arbitrary: fc.constantFrom('\n', '\r\n', '\r', '\n\n', '\r\n\r\n', '\n \n') },
      {
        weight: 4,
        arbitrary: fc.constantFrom(
          'Anna: ',
          '[00:00:01] Bo: ',
          '**Cy:** ',
          '00:00:01\n',
          'Anna  0:03\n',
          '0:09 - Bo\n',
          'Title: x\n',
          'WEBVTT',
          'WEBVTT\n\n',
          '00:01.000 --> 00:02.000\n',
          '00:00:03,000 --> 00:00:04,000 ',
          '-->',
          '0:1',
          '1\n',
          '2\n\n',
          '0:00:01.000,0:00:02.000\n',
          '00:00:01:000 -> 00:00:02:000\n',
          'NOTE',
          'STYLE\n',
          '---\n',
          '[{"speaker":"A","text":"x"}]',
          '[',
          '{"speaker":null,"text":"',
          '"}',
          ',',
          ']',
          '{"utterances":[',
          '{"speakerName":"A","spokenText":"x"}',
          '{\\an8}',
          '<v Anna>',
          '：',
        ),
      },
    ),
    { maxLength: 30 },
  )
  .map((pieces) => pieces.join(''));

/** Small caps and sizes are tried more often: they cut more. */
export const pageLimits = fc.record({
  pageSize: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 200 })),
  maxChars: fc.oneof(
    fc.integer({ min: 1, max: 12 }),
    fc.integer({ min: 1, max: 300 }),
    fc.integer({ min: 1, max: 50_000 }),
  ),
});

export const lineEnding = fc.constantFrom('\n', '\r\n', '\r');

function withoutLineEndings(text: string): string {
  return text.replaceAll(/[\r\n]/g, '');
}
