import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { TranscriptFormat } from '../../../src/domain/records.ts';
import { anyBody, cueTurns, lineEnding, runs, spokenTurns } from '../../support/transcript-arbitraries.ts';
import { salesCall } from '../../support/transcript-calls.ts';
import { renderTranscript, segmentText, type SpokenTurn } from '../../support/transcript-render.ts';
import { parseTranscript, slicesOf, textsOf } from '../../support/transcript-at-once.ts';

const FORMATS: readonly TranscriptFormat[] = ['speaker_text', 'webvtt', 'srt', 'utterances_json'];

function texts(body: string, format: TranscriptFormat | null): string[] {
  return textsOf(parseTranscript(body, format));
}

function turnsFor(format: TranscriptFormat): fc.Arbitrary<SpokenTurn[]> {
  return format === 'speaker_text' ? spokenTurns : cueTurns;
}

describe.each(FORMATS)('%s', (format) => {
  test('T2, T8: every turn comes back whole and in order, declared or detected', () => {
    fc.assert(
      fc.property(turnsFor(format), lineEnding, fc.boolean(), fc.boolean(), (turns, ending, isVerbose, isDeclared) => {
        const body = renderTranscript(turns, format, { lineEnding: ending, isVerbose });
        const parsed = parseTranscript(body, isDeclared ? format : null);
        expect(textsOf(parsed)).toEqual(turns.map((turn) => segmentText(turn).toWellFormed()));
        // An empty body could be any format.
        expect(parsed.form).toBe(body === '' && !isDeclared ? 'speaker_text' : format);
      }),
      runs(),
    );
  });

  test('T7: the slices make up the body, one a turn, and each holds its own turn', () => {
    const turns = salesCall(5_000, 7);
    const parsed = parseTranscript(renderTranscript(turns, format), format);
    const slices = slicesOf(parsed);
    expect(slices.join('')).toBe(parsed.body);
    const reparsed = slices.map((slice) => texts(asWhole(slice, format), format));
    expect(reparsed).toEqual(turns.map((turn) => [segmentText(turn)]));
  });

  test('a body that is another format than declared is read as what it is', () => {
    const turns = salesCall(500, 3);
    for (const actual of FORMATS) {
      const parsed = parseTranscript(renderTranscript(turns, actual), format);
      expect([parsed.form, parsed.turnCount]).toEqual([actual, turns.length]);
    }
  });

  test('T1: an empty or blank body is supported and has no turn', () => {
    for (const body of ['', '\n', ' \r\n\u00a0', '\ufeff']) {
      const parsed = parseTranscript(body, format);
      expect([parsed.form, parsed.turnCount, textsOf(parsed)]).toEqual([format, 0, []]);
      expect(slicesOf(parsed)).toEqual(body === '' ? [] : [body]);
    }
  });
});

/** A slice made into a body of its own: brackets, headers and commas of the whole are taken off or put on. */
function asWhole(slice: string, format: TranscriptFormat): string {
  if (format === 'webvtt') return slice.startsWith('WEBVTT') ? slice : `WEBVTT\n\n${slice}`;
  if (format !== 'utterances_json') return slice;
  return `[${slice.slice(slice.indexOf('{'), slice.lastIndexOf('}') + 1)}]`;
}

test('any body parses: its slices make it up, texts are well formed, and both columns have a place for every turn', () => {
  fc.assert(
    fc.property(anyBody, fc.constantFrom(null, ...FORMATS), (body, format) => {
      const parsed = parseTranscript(body, format);
      expect(parsed.body).toBe(body.toWellFormed());
      expect(slicesOf(parsed).join('')).toBe(parsed.body);
      expect(parsed.text.isWellFormed()).toBe(true);
      expect(parsed.textStarts.length).toBe(parsed.turnCount + 1);
      expect(slicesOf(parsed)).toHaveLength(parsed.turnCount === 0 && body !== '' ? 1 : parsed.turnCount);
      expect([...parsed.sliceStarts]).toEqual([...parsed.sliceStarts].toSorted((a, b) => a - b));
      expect(textsOf(parsed).join('\n')).toBe(parsed.text);
    }),
    runs(1000),
  );
});

describe('speaker text', () => {
  test('T2: a line without a speaker goes on with the turn before, joined by a line feed', () => {
    expect(texts('Anna: one\r\ntwo\rthree\n\nfour\n\n\nBo: five\n', 'speaker_text')).toEqual([
      'Anna: one\ntwo\nthree\n\nfour',
      'Bo: five',
    ]);
  });

  test('T2: U+2028, U+0085, vertical tab and form feed end no line', () => {
    expect(texts('Anna: a\u2028Bo: b\u0085Cy: c\vDi: d\fEd: e', 'speaker_text')).toEqual([
      'Anna: a\u2028Bo: b\u0085Cy: c\vDi: d\fEd: e',
    ]);
  });

  test('blank lines after a turn are no part of it, nor of the next', () => {
    expect(texts('Anna: one\n\n\nBo: two\nthree', 'speaker_text')).toEqual(['Anna: one', 'Bo: two\nthree']);
    expect(texts('Anna: one\n\ntwo\nthree', 'speaker_text')).toEqual(['Anna: one\n\ntwo\nthree']);
  });

  test('lines before the first speaker are a turn without a speaker', () => {
    expect(texts('Weekly sync\nin room 4\nAnna: hi', 'speaker_text')).toEqual(['Weekly sync\nin room 4', 'Anna: hi']);
  });

  test('a timestamp in front of a speaker is no part of the text; in front of anything else it is', () => {
    expect(
      texts('[00:00:01] Anna: hi\n[00:00:02] still me\n[0:00:03] Bo: no\n[00:00:04]Bo: yes', 'speaker_text'),
    ).toEqual(['Anna: hi\n[00:00:02] still me\n[0:00:03] Bo: no', 'Bo: yes']);
  });

  test.each([
    ['an empty turn', 'A: ', true],
    ['a digit first', '9: x', true],
    ['a letter of another script', 'Ünal: x', true],
    ['a letter beyond the BMP', '𝒳: x', true],
    ['60 code points', `${'𝒳'.repeat(60)}: x`, true],
    ['61 code points', `${'a'.repeat(61)}: x`, false],
    ['61 code points beyond the BMP', `${'𝒳'.repeat(61)}: x`, false],
    ['6 words', 'a b c d e f: x', true],
    ['7 words', 'a b c d e f g: x', false],
    ['words parted by no-break spaces', 'a\u00a0b\u00a0c\u00a0d\u00a0e\u00a0f\u00a0g: x', false],
    ['a colon in the name', 'Room 4:12 Anna: x', true],
    ['no space after the colon', 'Anna:x', false],
    ['nothing before the colon', ': x', false],
    ['a sign first', '(Anna): x', false],
    ['a combining mark first', '\u0301A: x', false],
    ['!', 'Stop! Anna: x', false],
    ['?', 'Who? Anna: x', false],
    [';', 'Anna; Bo: x', false],
    ['"', 'the "boss": x', false],
    ['blank first', ' Anna: x', false],
  ])('T3: %s', (_what, line, isSpeaker) => {
    const parsed = parseTranscript(`Zoe: first\n${line}`, 'speaker_text');
    expect(textsOf(parsed)).toEqual(isSpeaker ? ['Zoe: first', line] : [`Zoe: first\n${line}`]);
  });

  test('T3: only the first colon and space counts', () => {
    expect(texts('Zoe: hi\nwhat I said, and I stand by it; was: no', 'speaker_text')).toHaveLength(1);
    expect(texts('Zoe: hi\nOh! He: Bo: no', 'speaker_text')).toHaveLength(1);
  });
});

describe('WebVTT', () => {
  test('T2: tags are dropped, voices named, references decoded', () => {
    const body = [
      '\ufeffWEBVTT Kind: captions',
      'X-TIMESTAMP-MAP=LOCAL:00:00:00.000',
      '',
      'STYLE',
      '::cue { color: lime }',
      '',
      'intro',
      '00:01.000 --> 00:02.000 line:0',
      '<v.first  Anna &amp;\tBo >Hi <b.loud>there</b> <00:01.500>&lt;3 &copy &hearts; &#x1F600;&#0;</v>',
      '',
      'NOTE 00:03.000 is skipped',
      '',
      '00:00:04.000-->00:00:05.000',
      'I <3 this, 2 < 3 & 5 > 4',
      'go --> on',
      '00:06.000 --> 00:07.000',
      '<i>next</i>',
      '',
      'no timing here',
      'at all',
    ].join('\n');
    const parsed = parseTranscript(body, null);
    expect(textsOf(parsed)).toEqual([
      'Anna & Bo: Hi there <3 © ♥ 😀\ufffd',
      // By the standard `<3 this, 2 < 3 & 5 >` is one tag.
      'I  4\ngo --> on',
      'next',
    ]);
    expect(slicesOf(parsed)[1]).toBe('00:00:04.000-->00:00:05.000\nI <3 this, 2 < 3 & 5 > 4\ngo --> on\n');
    expect(slicesOf(parsed)[0]).toMatch(/^\ufeffWEBVTT[^]*NOTE 00:03.000 is skipped\n\n$/);
    expect(slicesOf(parsed)[2]).toMatch(/^00:06.000[^]*at all$/);
  });

  test.each([
    ['two voices', '<v Anna>Hi</v> <v Bo>Hello</v>', 'Anna: Hi\nBo: Hello'],
    ['two voices on two lines', '<v Anna>Hi</v>\n<v Bo>Hello', 'Anna: Hi\nBo: Hello'],
    ['a voice after words', 'Later.\t <v Bo>Hello', 'Later.\nBo: Hello'],
    ['a voice without a name', '<v>Hi<v >!', 'Hi!'],
    ['another tag that begins with v', '<verse Anna>Hi', 'Hi'],
    ['a tag over two lines', '<v Anna\nLee>Hi', 'Anna Lee: Hi'],
    ['a lone bracket', 'a < b', 'a < b'],
    ['a bracket before white space', 'a < b > c', 'a < b > c'],
    ['ruby', '<ruby>漢<rt>kan</rt></ruby>', '漢kan'],
    ['a name before a colon', 'Anna: Hi', 'Anna: Hi'],
    ['an unknown reference', '&nope; &', '&nope; &'],
    ['a surrogate by number', '&#xD83D;&#xDE00;', '\ufffd\ufffd'],
  ])('T2: %s', (_what, payload, text) => {
    for (const ending of ['\n', '\r\n', '\r']) {
      const body = `WEBVTT\n\n00:01.000 --> 00:02.000\n${payload}`.replaceAll('\n', ending);
      expect(texts(body, 'webvtt')).toEqual([text]);
    }
  });

  test('a cue may follow the header without a blank line, and have nothing to say', () => {
    expect(
      texts('WEBVTT\n00:01.000 --> 00:02.000\n\n00:03.000 --> 00:04.000\n00:05.000 --> 00:06.000\nx', null),
    ).toEqual(['', '', 'x']);
  });

  test('T7: a body without a cue has no turn and is one slice', () => {
    const parsed = parseTranscript('WEBVTT\n\nNOTE nothing\n', 'webvtt');
    expect([parsed.form, textsOf(parsed), slicesOf(parsed)]).toEqual(['webvtt', [], ['WEBVTT\n\nNOTE nothing\n']]);
  });

  test('T7: an identifier belongs to the slice of its own cue, a line that is none to the one before', () => {
    const cue = '00:01.000 --> 00:02.000\n';
    const slices = ['WEBVTT\nKind: x\n\n', `first\n${cue}a\n\n`, `second\n${cue}b\n\nnot an\nidentifier\n`, `${cue}c`];
    const [header, first, second, third] = slices;
    const parsed = parseTranscript(slices.join(''), 'webvtt');
    expect(slicesOf(parsed)).toEqual([`${header}${first}`, second, third]);
    expect(textsOf(parsed)).toEqual(['a', 'b', 'c']);
    const inHeader = parseTranscript(`WEBVTT\nKind: x\n${cue}a\n${cue}b`, 'webvtt');
    expect(slicesOf(inHeader)).toEqual([`WEBVTT\nKind: x\n${cue}a\n`, `${cue}b`]);
  });

  test('a word that begins like the signature is none', () => {
    expect(parseTranscript('WEBVTTS\n\n00:01.000 --> 00:02.000\nx', 'webvtt').form).toBe(null);
  });
});

describe('SubRip', () => {
  test('T2: counters and timings are no words; blank lines within a cue are', () => {
    const body =
      '1\n00:00:01,000 --> 00:00:02,000 X1:1\n<i>Anna: one</i>\n42\n\ntwo\n\n\n2 \n00:00:03,000 --> 00:00:04,000\n\n3\n00:00:05,5 --> 00:00:06\n7\n';
    const parsed = parseTranscript(body, null);
    expect(textsOf(parsed)).toEqual(['<i>Anna: one</i>\n42\n\ntwo', '', '7']);
    expect(slicesOf(parsed).map((slice) => slice.slice(0, 3))).toEqual(['1\n0', '2 \n', '3\n0']);
  });

  test('lines before the first cue are ignored if the store says SubRip, and are not SubRip otherwise', () => {
    const body = 'recorded by\nsomebody\n\n1\n00:00:01,000 --> 00:00:02,000\nhi';
    expect(texts(body, 'srt')).toEqual(['hi']);
    expect(parseTranscript(body, null).form).toBe(null);
  });

  test.each(['00:00:01,000 -> 00:00:02,000', '00:00:01,000 -->', '--> 00:00:02,000', '1 --> 2', 'a 00:01 --> 00:02'])(
    '%s is no timing',
    (line) => {
      expect(parseTranscript(`1\n${line}\nhi`, 'srt').form).toBe(null);
    },
  );
});

describe('utterances', () => {
  test('T3: a speaker of any form is named; none, an empty or a missing one is not', () => {
    const body = JSON.stringify([
      { speaker: 'the VP of Sales (EMEA), who said: "hello!"', startMs: 0, text: 'a' },
      { speaker: null, startMs: 0, text: 'b\r\nc' },
      { speaker: '', startMs: 0, text: 'd' },
      { startMs: 0, text: 'e' },
    ]);
    expect(texts(body, null)).toEqual(['the VP of Sales (EMEA), who said: "hello!": a', 'b\r\nc', 'd', 'e']);
  });

  test('T1: an escaped lone surrogate becomes U+FFFD, two escaped halves a character', () => {
    expect(texts('[{"speaker":"A\\udc00","text":"x\\ud83d"},{"text":"\\ud83d\\ude00"}]', null)).toEqual([
      'A\ufffd: x\ufffd',
      '😀',
    ]);
  });

  test('T7: slices begin at the brace of their utterance', () => {
    const body = ' [ {"text":"}{"} ,\n{"text":"\\\\\\"]"}, {"text":"","x":[{}]} ] \n';
    const parsed = parseTranscript(body, 'utterances_json');
    expect(slicesOf(parsed)).toEqual([' [ {"text":"}{"} ,\n', '{"text":"\\\\\\"]"}, ', '{"text":"","x":[{}]} ] \n']);
    expect(textsOf(parsed)).toEqual(['}{', '\\"]', '']);
  });

  test.each([
    '[',
    '[{"text":"x"}',
    '[{"text":"x"},]',
    '[,{"text":"x"}]',
    '[{"text":"x"}{"text":"x"}]',
    '[{"text":"x"}] x',
    '[{"text":"x"}][]',
    '[{"text":1}]',
    '[{"speaker":1,"text":"x"}]',
    '[{"speaker":"A"}]',
    '[null]',
    '[[{"text":"x"}]]',
    '{"text":"x"}',
    '"x"',
    "[{'text':'x'}]",
    '[{"text":"x",}]',
    '[{"text":"\n"}]',
    `[{"text":"x","deep":${'['.repeat(70)}${']'.repeat(70)}}]`,
  ])('%s is not utterances', (body) => {
    expect(parseTranscript(body, 'utterances_json').form).toBe(null);
  });

  test('one bad utterance among many makes the body unsupported', () => {
    const utterances = salesCall(200_000, 5).map((turn) => JSON.stringify({ ...turn, startMs: 0 }));
    expect(parseTranscript(`[${utterances.join(',')}]`, null).turnCount).toBe(utterances.length);
    expect(parseTranscript(`[${utterances.join(',')},{"speaker":"A"}]`, null).form).toBe(null);
  });
});

describe('other bodies', () => {
  test('T9: paragraphs are the segments if there are several', () => {
    const parsed = parseTranscript('\n\none\r\ntwo\n \nthree\n\n', null);
    expect([parsed.form, textsOf(parsed)]).toEqual([null, ['one\ntwo', 'three']]);
    expect(slicesOf(parsed)).toEqual(['\n\none\r\ntwo\n \n', 'three\n\n']);
  });

  test('T9: lines are the segments if there is only one paragraph', () => {
    expect(texts('\none\rtwo\nthree\n\n', null)).toEqual(['one', 'two', 'three']);
    expect(texts('one', 'webvtt')).toEqual(['one']);
  });

  test('T9: a colon somewhere in prose makes no conversation, unless the store says so', () => {
    const prose = 'We met on Monday.\n\nPresent: Anna and Bo.\n\nNothing was decided.';
    expect(parseTranscript(prose, null).form).toBe(null);
    expect(parseTranscript(prose, 'speaker_text').form).toBe('speaker_text');
    expect(parseTranscript('We met.\n\nNothing was decided.', 'speaker_text').form).toBe(null);
  });

  test('a title above a conversation is no obstacle', () => {
    const parsed = parseTranscript('Call with Acme\n\nAnna: hi\nBo: hello\n', null);
    expect([parsed.form, textsOf(parsed)]).toEqual(['speaker_text', ['Call with Acme', 'Anna: hi', 'Bo: hello']]);
  });

  test('T1: lone surrogates of the body become U+FFFD', () => {
    const parsed = parseTranscript('Anna: \ud83d\n\ude00Bo: x', 'speaker_text');
    expect(parsed.body).toBe('Anna: \ufffd\n\ufffdBo: x');
    expect(textsOf(parsed)).toEqual(['Anna: \ufffd\n\ufffdBo: x']);
  });
});
