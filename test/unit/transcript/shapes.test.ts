/** Spoken lines: shapes are counted, not listed, and what stands around the turns is nobody's (T10, T11, T12). */
import { describe, expect, test } from 'vitest';
import { parseTranscript, textsOf } from '../../support/transcript-at-once.ts';
import { CLOCKS, SHAPES } from '../../support/transcript-shapes.ts';

const TURNS = [
  ['Anna Lee', 'Good morning, everybody.'],
  ['Bo', 'Hello there.'],
  ['Anna Lee', 'Shall we begin with the price: is it fine?'],
  ['Bo', 'It is.'],
  ['Cy (Acme)', 'And for us, at 10:30 or so.'],
  ['Anna Lee', 'Good.'],
  ['Cy (Acme)', 'Thanks.'],
] as const;

function read(body: string): (string | null)[] {
  const parsed = parseTranscript(body, null);
  return [parsed.form, ...textsOf(parsed).map((text) => text.replaceAll(/\s+/g, ' ').replace(' : ', ': ').trim())];
}

describe.each([...SHAPES])('%s', (look, { render, hasName }) => {
  test.each(Object.entries(CLOCKS))('T10, T12: a call in it, its times written as %s', (_clock, timeOf) => {
    const body = TURNS.map(([name, words], i) => render({ name, words, time: timeOf(3 + i * 4) })).join('');
    const form = look.includes('<tab>name<tab>') ? 'columns' : 'spoken lines';
    const expected = TURNS.map(([name, words]) => (hasName ? `${name}: ${words}` : words));
    for (const ending of ['\n', '\r\n']) expect(read(body.replaceAll('\n', ending))).toEqual([form, ...expected]);
    // Above a table stands its header, or nothing.
    const isTable = form === 'columns';
    const header = isTable ? '' : '---\ntitle: A call\n---\n\n# Kick-off\n\n';
    const above = isTable ? [] : ['--- title: A call ---', '# Kick-off'];
    expect(read(header + body)).toEqual([form, ...above, ...expected]);
  });
});

const SPEECH = 'Anna: Hi.\nBo: Hello.\nAnna: So.\nBo: Yes.\n';
const SPOKEN = ['Anna: Hi.', 'Bo: Hello.', 'Anna: So.', 'Bo: Yes.'];

test.each([
  ['keys in bold', '**Call Date:** 2031-02-10\n**Length:** 9 minutes\n\n---\n\n'],
  ['keys of no list', 'Client: Acme\nRep: Anna\nStage: Discovery\n\n'],
  ['a title with a colon among keys', 'Project Heron: Review\nDate: 2 February\n\n'],
  ['a key and a list', '**Participants:**\n- Anna (Acme)\n- Bo\n\n'],
  ['links', 'Slides: https://example.com/slides\nRecording of it: https://example.com/talk\n\n'],
  ['times of a meeting', 'Meeting start: 10:00\nMeeting end: 10:30\n\n'],
])('T11: above the speech, %s', (_what, header) => {
  const above = header.trim().split(/\n\n/);
  expect(textsOf(parseTranscript(header + SPEECH, null))).toEqual([...above, ...SPOKEN]);
  const once = 'Anna: Hi.\n\nBo: Hello.\n\nAnna: So.\n';
  expect(textsOf(parseTranscript(header + once, null))).toEqual([...above, ...SPOKEN.slice(0, 3)]);
});

test.each([
  [
    'a phrase before a colon on a wrapped line',
    'Anna: We have two\nand the other thing is: wait.\nBo: Fine.\nAnna: So.\nBo: Yes.',
    1,
  ],
  ['a full-width colon behind a comma', '安娜：他还说。\n接着补充，我们都同意：下周再谈。\n博：好。\n安娜：好。', 1],
  ['a key', 'Anna: Hi.\nNote: not said by a Note.\nBo: Hello.\nAnna: So.\nBo: Yes.', 1],
  [
    'a phrase that ends with a time',
    'Anna 0:03\nLet us meet at 10:30\nif you can.\n\nBo 0:09\nFine.\n\nAnna 0:12\nLet us meet at 11:30\nthen.',
    2,
  ],
  [
    'who examines from here on',
    'THE COURT: Go on.\nBY MR. LEE:\n   Q.  Did you?\n   A.  Yes.\n   Q.  When?\n   A.  In May.',
    1,
  ],
  ['what is heard', 'Anna: Hi.\n[Music]\nBo: Hello.\nAnna: So.\nBo: Yes.', 1],
])('T12: %s is no speaker', (_what, body, line) => {
  const [first = ''] = textsOf(parseTranscript(body, null));
  expect(first.split('\n')).toContain(body.split('\n')[line]?.trim());
});

test('T12: line numbers, indents and marks of quotations are no words', () => {
  expect(
    read(
      '1       THE COURT: Good morning.\n2       MR. LEE: We are ready for\n3   the witness.\n4       THE COURT: Call him.',
    ),
  ).toEqual([
    'spoken lines',
    'THE COURT: Good morning.',
    'MR. LEE: We are ready for the witness.',
    'THE COURT: Call him.',
  ]);
  expect(read('> Anna: Hi,\n> all.\n> Bo: Hello.\n> Anna: So.')).toEqual([
    'spoken lines',
    'Anna: Hi, all.',
    'Bo: Hello.',
    'Anna: So.',
  ]);
  expect(read('\u00a0Anna: Hi.\n\u200bBo: Hello.\n\tAnna: So.')).toEqual([
    'spoken lines',
    'Anna: Hi.',
    'Bo: Hello.',
    'Anna: So.',
  ]);
});

test('T12: in courts and hearings a period ends the name', () => {
  expect(read('   Q.  Did you see it?\n   A.  Yes.\n   Q.  When?\n   A.  In May.')).toEqual([
    'spoken lines',
    'Q: Did you see it?',
    'A: Yes.',
    'Q: When?',
    'A: In May.',
  ]);
  expect(
    read(
      '    The Chair. Order.\n    Mr. LEE of Ohio. Thank you. I have\none point.\n    The Chair. Please.\n    Mr. LEE of Ohio. Fine.',
    ),
  ).toEqual([
    'spoken lines',
    'The Chair: Order.',
    'Mr. LEE of Ohio: Thank you. I have one point.',
    'The Chair: Please.',
    'Mr. LEE of Ohio: Fine.',
  ]);
});

test('T12: a question all in bold is a turn', () => {
  expect(read('**Anna: How?**\n\nBo: So.\n\n**Anna: And then?**\n\nBo: Then **this**.')).toEqual([
    'spoken lines',
    'Anna: How?',
    'Bo: So.',
    'Anna: And then?',
    'Bo: Then **this**.',
  ]);
});

test('T12: speech may end like the line of a program', () => {
  expect(read('Anna: yes;\nBo: the others (\nAnna: so {')).toEqual([
    'spoken lines',
    'Anna: yes;',
    'Bo: the others (',
    'Anna: so {',
  ]);
  expect(read('[0:03] anna: yes;\n[0:05] bo: no;')).toEqual(['spoken lines', 'anna: yes;', 'bo: no;']);
});

test('T2a: a time without brackets behind the colon is an answer', () => {
  expect(read('Anna: When?\nBo: 10:30\nAnna: Fine.')).toEqual([
    'spoken lines',
    'Anna: When?',
    'Bo: 10:30',
    'Anna: Fine.',
  ]);
});

test('T2a: am may be a word', () => {
  expect(read('0:03 am I late\n0:05 no you are not\n0:09 am so glad')).toEqual([
    'spoken lines',
    'am I late',
    'no you are not',
    'am so glad',
  ]);
});
