/** Columns: TSV, CSV and tables between bars (T10). */
import { expect, test } from 'vitest';
import { parseTranscript, slicesOf, textsOf } from '../../support/transcript-at-once.ts';

const TURNS = ['Anna: Good, morning.', 'Bo: Hello.', 'Anna: Bye.'];

test.each([
  [
    'TSV with a header',
    'Start\tEnd\tSpeaker\tText\n0:04\t0:08\tAnna\tGood, morning.\n0:09\t0:12\tBo\tHello.\n0:15\t0:18\tAnna\tBye.',
  ],
  ['TSV', '0:04\tAnna\tGood, morning.\n0:09\tBo\tHello.\n0:15\tAnna\tBye.'],
  ['TSV of names and words', 'Anna\tGood, morning.\nBo\tHello.\nAnna\tBye.'],
  ['CSV with quoted cells', 'speaker,start_time,text\nAnna,0.5,"Good, morning."\nBo,1.3,"Hello."\nAnna,2.5,Bye.'],
  [
    'CSV with commas in the last column',
    'start,speaker,text\n0:04,Anna,Good, morning.\n0:09,Bo,Hello.\n0:15,Anna,Bye.',
  ],
  [
    'semicolons',
    '"Speaker Name";"Start Time";"Text"\n"Anna";"00;00;04";"Good, morning."\n"Bo";"00;00;09";"Hello."\n"Anna";"00;00;15";"Bye."',
  ],
  [
    'bars',
    '| Time | Speaker | Text |\n|---|---|---|\n| 0:04 | Anna | Good, morning. |\n| 0:09 | Bo | Hello. |\n| 0:15 | Anna | Bye. |',
  ],
])('T10: %s', (_what, body) => {
  for (const ending of ['\n', '\r\n']) {
    const written = body.replaceAll('\n', ending);
    const parsed = parseTranscript(written, null);
    expect([parsed.form, ...textsOf(parsed).map((text) => text.replaceAll(/\s+/g, ' ').trim())]).toEqual([
      'columns',
      ...TURNS,
    ]);
    expect(slicesOf(parsed).join('')).toBe(written);
  }
});

test('T10: a quoted cell may hold line ends and quotes, a line without cells goes on with the words', () => {
  const body = 'speaker,start,text\nAnna,0:04,"Good\n""morning""."\nBo,0:09,Hello\nthere.\nAnna,0:15,Bye.';
  expect(textsOf(parseTranscript(body, null))).toEqual(['Anna: Good\n"morning".', 'Bo: Hello\nthere.', 'Anna: Bye.']);
});

test('T10: words alone with times', () => {
  expect(textsOf(parseTranscript('start\tend\ttext\n0\t1520\tGood morning.\n2320\t2980\tHello.', null))).toEqual([
    'Good morning.',
    'Hello.',
  ]);
  expect(textsOf(parseTranscript('time,text\n0:01,Anna: hi\n0:02,Bo: ho', null))).toEqual(['Anna: hi', 'Bo: ho']);
});

test.each([
  'id,note\n1,Anna: hi\n2,Bo: ho',
  'a\tb\tc\nd\te\tf\ng\th\ti',
  'text,score\nHi.,1\nHo.,2',
  'Anna: Good morning, Bo.\nBo: Hello, Anna.\nAnna: Yes, well.',
])('T12: %s is no table of speech', (body) => {
  expect(parseTranscript(body, null).form).not.toBe('columns');
});
