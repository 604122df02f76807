/** No word is lost: bodies mixed of all forms and of what is none, with words that can be told from marks. */
import * as fc from 'fast-check';
import type { TranscriptFormat } from '../../src/domain/vocabulary.ts';
import { parseTranscript, slicesOf } from './transcript-at-once.ts';
import { CLOCKS, SHAPES } from './transcript-shapes.ts';

/** Words end like those of a sentence, so that none is an identifier; the number is put in later. */
const WORD = 'w#q';
const word = fc.constantFrom(
  WORD,
  WORD,
  `${WORD}, ${WORD}`,
  `${WORD} ${WORD} ${WORD}`,
  `${WORD}: ${WORD}`,
  `**${WORD}**`,
);
const words = word.map((text) => `${text}.`);
const name = fc.constantFrom('Anna', 'Bo', 'Cy (Acme)', 'Dr. Di', 'SPEAKER_01', '安娜');
const clock = fc.constantFrom(...Object.values(CLOCKS));
const seconds = fc.nat(3000);

/** A few turns in one shape. */
const spoken = fc
  .tuple(
    fc.constantFrom(...SHAPES.values()),
    clock,
    fc.array(fc.tuple(name, words, seconds), { minLength: 1, maxLength: 6 }),
  )
  .map(([{ render }, timeOf, turns]) =>
    turns.map(([speaker, text, at]) => render({ name: speaker, words: text, time: timeOf(at) })).join(''),
  );

const range = fc.constantFrom(
  '00:01.000 --> 00:02.000\n',
  '00:00:03,000 --> 00:00:04,000\n',
  '00:00:03,000 --> 00:00:04,000 ',
  '0:00:01.000,0:00:02.000\n',
  '0.860 --> 7.380\n',
  '0:00:07 --> 0:00:09\n',
  '-00:00:01,0 --> 00:00:02:000\n',
  '00 : 00 : 01,000 --> 00 : 00 : 02,000\n',
);
const counter = fc.constantFrom('', '', '1\n', '2\n', '7\n\n', '3\n\n3\n');
const cue = fc.tuple(counter, range, words).map(([above, time, text]) => `${above}${time}${text}\n\n`);

const oddity = fc.oneof(
  words.map((text) => `${text}\n`),
  words.map((text) => `${text}\n\n`),
  words.map((text) => `Note: ${text}\n`),
  words.map((text) => `**Date:** ${text}\n`),
  words.map((text) => `10:30 --> 11:30 on ${text}\n`),
  words.map((text) => `Dialogue: 0,0:00:01.00,0:00:02.00,Anna,${text}\n`),
  words.map((text) => `1,Anna: ${text},2\n\n`),
  words.map((text) => `{"speaker": "Anna", "text": "${text}"},\n`),
  words.map((text) => `[{'speaker': 'Anna', 'text': '${text}'}]\n\n`),
  words.map((text) => `[00:01.00]${text}\n`),
  words.map((text) => `<p>${text}</p>\n`),
  words.map((text) => `<v Bo>${text}</v>\n`),
  words.map((text) => `4   ${text}\n`),
  words.map((text) => `- ${text}\n`),
  words.map((text) => `   Q.  ${text}\n`),
  words.map((text) => `Anna: Bo: ${text}\n`),
  words.map((text) => `${text} Anna 0:03\n\n`),
  words.map((text) => `## ${text}\n\n`),
  fc.constantFrom(
    '---\n',
    '\n',
    '\r',
    ' \n',
    '\n\n',
    '0:03\n',
    '[Music]\n',
    'Anna\n',
    '12\n',
    '**',
    ': ',
    '：',
    '"',
    '[',
    '\t',
    '|',
    '\ufeff',
    '\u200b',
  ),
);
const head = fc.constantFrom(
  '',
  '',
  '',
  'WEBVTT\n\n',
  '1\n00:00:00,000 --> 00:00:01,000\n',
  '---\ntitle: x\n---\n',
  '\ufeff',
  '[ti:x]\n',
);

export const mixedBody: fc.Arbitrary<string> = fc
  .tuple(
    head,
    fc.array(
      fc.oneof({ weight: 3, arbitrary: spoken }, { weight: 2, arbitrary: cue }, { weight: 2, arbitrary: oddity }),
      {
        maxLength: 12,
      },
    ),
  )
  .map(([top, parts]) => {
    let count = 0;
    return (top + parts.join('')).replaceAll(WORD, () => `w${(count += 1)}q`);
  });

/** The words of a body, and those of its turns; and whether its slices make it up. */
export function wordsOfTurns(body: string, hint: TranscriptFormat | null) {
  const parsed = parseTranscript(body, hint);
  return { written: wordsOf(body), read: wordsOf(parsed.text), isWhole: slicesOf(parsed).join('') === parsed.body };
}

function wordsOf(text: string): string[] {
  return text.match(/w\d+q/g) ?? [];
}
