/** Spoken lines, names and times above the words, and bodies in no form. */
import type { TranscriptFormat } from '../../../src/domain/vocabulary.ts';
import { describe, expect, test } from 'vitest';
import { parseTranscript, slicesOf, textsOf } from '../../support/transcript-at-once.ts';

function read(body: string, declared: TranscriptFormat | null = null) {
  const parsed = parseTranscript(body, declared);
  return [parsed.form, ...textsOf(parsed)];
}

describe('spoken lines', () => {
  test('T2: a line without a speaker goes on with the turn before, joined by a line feed', () => {
    expect(read('Anna: one\r\ntwo\rthree\n\nfour\n \n\nBo: five\n', 'speaker_text')).toEqual([
      'spoken lines',
      'Anna: one\ntwo\nthree\n\nfour',
      'Bo: five',
    ]);
    expect(read('Anna: one\n \t\ntwo\nAnna: x')).toEqual(['spoken lines', 'Anna: one\n \t\ntwo', 'Anna: x']);
  });

  test('T2: U+2028, U+0085, vertical tab and form feed end no line', () => {
    const body = 'Anna: a\u2028Bo: b\u0085Cy: c\vDi: d\fEd: e';
    expect(read(body)).toEqual(['spoken lines', body]);
  });

  test.each([
    ['[00:00:01] Anna: x', 'Anna: x'],
    ['[00:00:01]Anna: x', 'Anna: x'],
    ['(1:02:22) Anna: x', 'Anna: x'],
    ['00:00:01 Anna: x', 'Anna: x'],
    ['00:00:01.250 Anna: x', 'Anna: x'],
    ['[0:01 - 0:04] Anna: x', 'Anna: x'],
    ['0:01 - Anna: x', 'Anna: x'],
    ['10:02 AM Anna: x', 'Anna: x'],
    ['**Anna:** x', 'Anna: x'],
    ['**Anna**: x', 'Anna: x'],
    ['[0:01] **Anna:** x', 'Anna: x'],
    ['**[0:01] Anna:** x', 'Anna: x'],
    ['\u200eAnna: x', 'Anna: x'],
    ['アンナ：x', 'アンナ：x'],
    ['[2031-03-12 10:03:22] Anna: x', 'Anna: x'],
    ['12.3.2031, 10:03 Anna: x', 'Anna: x'],
    ['00:00:01:05 Anna: x', 'Anna: x'],
    ['Anna [0:01]: x', 'Anna: x'],
    ['Anna (0:01 - 0:04): x', 'Anna: x'],
    ['**Anna (0:01):** x', 'Anna: x'],
    ['**Anna** (0:01): x', 'Anna: x'],
    ['アンナ（0:01）：x', 'アンナ：x'],
    ['【0:01】アンナ：x', 'アンナ：x'],
    ['Anna (CFO): x', 'Anna (CFO): x'],
  ])('T10: %s', (line, text) => {
    expect(read(`Bo: y\n${line}\nBo: z`)).toEqual(['spoken lines', 'Bo: y', text, 'Bo: z']);
  });

  test.each([
    '[00:00:02] still me',
    '10:30: not a name',
    '**bold** words',
    '**Bo',
    'see https://example.com/',
    '12:30',
    '### 00:50:00',
  ])('T10: %s is no spoken line', (line) => {
    const isTime = line === '12:30' || line.startsWith('#');
    expect(read(`Bo: y\n${line}\nBo: z`)).toEqual(['spoken lines', isTime ? 'Bo: y' : `Bo: y\n${line}`, 'Bo: z']);
  });

  test.each([
    ['an empty turn', 'A: ', true],
    ['nothing after the colon', 'A:', true],
    ['a digit first', '9: x', true],
    ['a letter of another script', 'Ünal: x', true],
    ['a letter beyond the BMP', '𝒳: x', true],
    ['60 code points', `${'𝒳'.repeat(60)}: x`, true],
    ['61 code points', `${'a'.repeat(61)}: x`, false],
    ['61 code points beyond the BMP', `${'𝒳'.repeat(61)}: x`, false],
    ['8 words', 'a b c d e f g h: x', true],
    ['9 words', 'a b c d e f g h i: x', false],
    ['8 words and parentheses', 'a b c d e f g h (i j k): x', true],
    ['words parted by no-break spaces', 'a\u00a0b\u00a0c\u00a0d\u00a0e\u00a0f\u00a0g\u00a0h\u00a0i: x', false],
    ['a colon in the name', 'Room 4:12 Anna: x', true],
    ['no space after the colon', 'Anna:x', false],
    ['nothing before the colon', ': x', false],
    ['a parenthesis first', '(Anna): x', true],
    ['a bracket first', '[SPEAKER_03]: x', true],
    ['a plus first', '+1 (555) 010-**12: x', true],
    ['a quotation mark', 'Bob "B" Lee: x', true],
    ['a dash first', '- Anna: x', false],
    ['a combining mark first', '\u0301A: x', false],
    ['!', 'Stop! Anna: x', false],
    ['?', 'Who? Anna: x', false],
    [';', 'Anna; Bo: x', false],
    ['an earlier colon that ends no name', 'Oh! He: Bo: no', false],
  ])('T3: %s', (_what, line, isSpeaker) => {
    expect(read(`Zoe: first\n${line}`)).toEqual([
      'spoken lines',
      ...(isSpeaker ? ['Zoe: first', line] : [`Zoe: first\n${line}`]),
    ]);
  });

  test('T11: a title, front matter and keys above a conversation are nobody', () => {
    const speech = 'Anna: hi\nBo: hello\nAnna: so\nBo: yes';
    const turns = ['Anna: hi', 'Bo: hello', 'Anna: so', 'Bo: yes'];
    expect(read(`Call with Acme\n\n${speech}`)).toEqual(['spoken lines', 'Call with Acme', ...turns]);
    expect(read(`---\nguest: Bo\n---\n${speech}`)).toEqual(['spoken lines', '---\nguest: Bo\n---', ...turns]);
    expect(read(`Title: A\nDate: B\n${speech}`)).toEqual(['spoken lines', 'Title: A\nDate: B', ...turns]);
    expect(read(`Projekt: A\nKunde: B\n\n${speech}`)).toEqual(['spoken lines', 'Projekt: A\nKunde: B', ...turns]);
    expect(read(`Host: Welcome.\n\n${speech}`)).toEqual(['spoken lines', 'Host: Welcome.', ...turns]);
  });

  test('T11: one spoken line and wrapped lines are a turn; a key above prose is not', () => {
    expect(read('Anna: one\ntwo\nthree\nfour')).toEqual(['spoken lines', 'Anna: one\ntwo\nthree\nfour']);
    for (const body of [
      'From: Anna\nTo: Bo\nDate: today\n\nHi Bo,\n\nsee you.',
      'Note: one\ntwo\nthree',
      'Plan: more\n\nWe met.\n\nWe agreed.\n\nBest',
      'We met on Monday.\n\nPresent: Anna and Bo.\n\nNothing was decided.',
    ]) {
      for (const hint of [null, 'webvtt'] as const) expect(parseTranscript(body, hint).form).toBe(null);
    }
  });
});

test('T11: a manual with ever new words before its colons is no conversation, many guests with a host are', () => {
  const chapters = Array.from({ length: 12 }, (_, i) => `Step ${i + 1}: do this\nthen that\n\nor this`);
  const manual = `How to\n\n${chapters.join('\n\n')}\n\nNote well: a\n\nNote well: b`;
  expect(parseTranscript(manual, null).form).toBe(null);
  const questions = Array.from({ length: 12 }, (_, i) => `Guest ${i + 1}: why?\n\nHost: so.\n\nAnd so on.`);
  expect(parseTranscript(`Evening\n\n${questions.join('\n\n')}`, null).form).toBe('spoken lines');
});

describe('spoken lines', () => {
  test.each([
    ['Anna Lee  0:03', 'Bo  0:09'],
    ['Anna Lee\t00:03', 'Bo\t00:09'],
    ['Anna Lee (00:03):', 'Bo (00:09):'],
    ['Anna Lee (1:00:03)', 'Bo (1:00:09)'],
    ['[Anna Lee] 11:02:09', '[Bo] 11:02:15'],
    ['0:03 - Anna Lee', '0:09 - Bo'],
    ['0:03 | Anna Lee', '0:09 | Bo'],
    ['**Anna Lee** [0:00]', '**Bo** [0:09]'],
    ['Anna Lee | 0:03', 'Bo | 0:09'],
    ['Anna Lee 0:03', 'Bo 0:09'],
    ['[0:03] Anna Lee', '[0:09] Bo'],
    ['Anna Lee  0:03 - 0:08', 'Bo  0:09 - 0:10'],
    ['Anna Lee 0:03 - 0:08', 'Bo 0:09 - 0:10'],
    ['Anna Lee  03/12/2031 10:03 AM', 'Bo  03/12/2031 10:04 AM'],
    ['Anna Lee（0:03）：', 'Bo（0:09）：'],
    ['+1 (555) 010-1234  0:03', 'Bo  0:09'],
  ])('T10: %s', (anna, bo) => {
    const name = anna.startsWith('+') ? '+1 (555) 010-1234' : 'Anna Lee';
    for (const gap of ['\n', '\n\n']) {
      const body = `${anna}${gap}Our plan is this: x.\nAt 10:30\n\n${bo}${gap}Yes.\n\n${anna}${gap}No.`;
      expect(read(body)).toEqual([
        'spoken lines',
        `${name}: Our plan is this: x.\nAt 10:30`,
        'Bo: Yes.',
        `${name}: No.`,
      ]);
    }
  });

  test('T7: a slice begins at its header; what stands above belongs to nobody', () => {
    const slices = ['Planning\n\n', 'March\n', 'Anna  0:03\nHi.\n\n', 'Bo  0:09\nHo.\n'];
    const parsed = parseTranscript(slices.join(''), null);
    expect(slicesOf(parsed)).toEqual(slices);
    expect(textsOf(parsed)).toEqual(['Planning', 'March', 'Anna: Hi.', 'Bo: Ho.']);
  });

  test('T10: names before a time by one space look like names, or repeat', () => {
    expect(read('Anna Lee 10:02 AM\nHi.\nBo Ray 10:03 AM\nWe start at 10:30\nAnna Lee 10:04 AM\nYes.')).toEqual([
      'spoken lines',
      'Anna Lee: Hi.',
      'Bo Ray: We start at 10:30',
      'Anna Lee: Yes.',
    ]);
  });

  test('T11: a title with a time is not the speaker of those who speak below it', () => {
    const speech = ['Anna: Hi.', 'Bo: Ho.', 'Anna: So.'];
    for (const title of ['Kick-off (10:30)', 'Weekly - 10:30', 'Call at 10:30 --> 11:30']) {
      expect(read(`${title}\n\n${speech.join('\n')}\n00:01 --> 00:02`)).toEqual(['spoken lines', title, ...speech]);
    }
    const [part] = read(`One (0:00)\n\n${speech.join('\n')}\n\nTwo (9:30)\n\n${speech.join('\n')}`);
    expect(part).toBe('spoken lines');
    expect(read('Anna (0:03)\nPrice: ten\nTime: two\nand so on')).toEqual([
      'spoken lines',
      'Anna: Price: ten\nTime: two\nand so on',
    ]);
  });

  test('a list of chapters and a sentence that ends with a time are none', () => {
    expect(parseTranscript('Intro  0:03\nPricing  5:10\nNext steps  9:59', null).form).toBe(null);
    expect(parseTranscript('0:03 Intro\n5:10 Pricing\n9:59 Next steps', null).form).toBe(null);
    expect(parseTranscript('We start at 10:30\nand end late.\n\nPlease come.', null).form).toBe(null);
  });
});

describe('other bodies', () => {
  test('T9: paragraphs are the segments', () => {
    const parsed = parseTranscript('\n\none\r\ntwo\n \nthree\n\n', null);
    expect([parsed.form, textsOf(parsed)]).toEqual([null, ['one\ntwo', 'three']]);
    expect(slicesOf(parsed)).toEqual(['\n\none\r\ntwo\n \n', 'three\n\n']);
    expect(read('one\rtwo\nthree')).toEqual([null, 'one\ntwo\nthree']);
  });

  test('T9: a paragraph of more than 4,000 code points is cut at its lines', () => {
    const [line, longer] = ['😀'.repeat(1999), '😀'.repeat(2001)];
    expect(read(`${line}\nx${line}\n\nend`)).toEqual([null, `${line}\nx${line}`, 'end']);
    expect(read(`a\n${line}\n${longer}\nb\n\nend`)).toEqual([null, 'a', line, longer, 'b', 'end']);
  });

  test('T1: lone surrogates of the body become U+FFFD', () => {
    const parsed = parseTranscript('Anna: \ud83d\n\ude00Bo: x', 'speaker_text');
    expect(parsed.body).toBe('Anna: \ufffd\n\ufffdBo: x');
    expect(textsOf(parsed)).toEqual(['Anna: \ufffd\n\ufffdBo: x']);
  });
});
