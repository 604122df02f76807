/** WebVTT, SubRip and SBV: what is a mark, and what are words (T2, T2a). */
import type { TranscriptFormat } from '../../../src/domain/vocabulary.ts';
import { describe, expect, test } from 'vitest';
import { parseTranscript, slicesOf, textsOf } from '../../support/transcript-at-once.ts';

function read(body: string, declared: TranscriptFormat | null = null) {
  const parsed = parseTranscript(body, declared);
  return [parsed.form, ...textsOf(parsed)];
}

/** A time range of SubRip. */
function range(at: number): string {
  return `00:00:0${at},000 --> 00:00:0${at + 1},000`;
}

describe('WebVTT', () => {
  test('T2: tags are dropped, voices named, references decoded; header, notes, styles and identifiers are marks', () => {
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
      'I <3 this, 2 < 3 & 5 > 4\ngo --> on',
      'next\n\nno timing here\nat all',
    ]);
    expect(slicesOf(parsed)[1]).toBe('00:00:04.000-->00:00:05.000\nI <3 this, 2 < 3 & 5 > 4\ngo --> on\n');
    expect(slicesOf(parsed)[0]).toMatch(/^\ufeffWEBVTT[^]*NOTE 00:03.000 is skipped\n\n$/);
  });

  test.each([
    ['two voices', '<v Anna>Hi</v> <v Bo>Hello</v>', 'Anna: Hi\nBo: Hello'],
    ['two voices on two lines', '<v Anna>Hi</v>\n<v Bo>Hello', 'Anna: Hi\nBo: Hello'],
    ['a voice after words', 'Later.\t <v Bo>Hello', 'Later.\nBo: Hello'],
    ['a voice without a name', '<v>Hi<v >!', 'Hi!'],
    ['what is no tag of WebVTT', '<verse Anna>Hi <laughs>', '<verse Anna>Hi <laughs>'],
    ['a tag over two lines', '<v Anna\nLee>Hi', 'Anna Lee: Hi'],
    ['a tag longer than any name', `<v ${'a b '.repeat(300)}>Hi`, `<v ${'a b '.repeat(300)}>Hi`],
    ['a lone bracket', 'a < b', 'a < b'],
    ['a bracket before white space', 'a < b > c', 'a < b > c'],
    ['ruby', '<ruby>漢<rt>kan</rt></ruby>', '漢kan'],
    ['a name before a colon', 'Anna: Hi', 'Anna: Hi'],
    ['an override', '{\\an8}Anna: Hi {no} {', 'Anna: Hi {no} {'],
    ['an unknown reference', '&nope; &', '&nope; &'],
    ['a surrogate by number', '&#xD83D;&#xDE00;', '\ufffd\ufffd'],
    ['metadata of Teams', '{"speakerName":"Anna Lee","spokenText":"Hi & bye."}', 'Anna Lee: Hi & bye.'],
    ['metadata without a name', '{"speakerName":"","spokenText":"Hi."}', 'Hi.'],
    ['other JSON', '{"at":1}', '{"at":1}'],
  ])('T2: %s', (_what, payload, text) => {
    for (const ending of ['\n', '\r\n', '\r']) {
      const body = `WEBVTT\n\n00:01.000 --> 00:02.000\n${payload}`.replaceAll('\n', ending);
      expect(read(body, 'webvtt')).toEqual(['webvtt', text.replaceAll('\r', '\n')]);
    }
  });

  test('a cue may follow the header without a blank line, and have nothing to say', () => {
    expect(read('WEBVTT\n00:01.000 --> 00:02.000\n\n00:03.000 --> 00:04.000\n00:05.000 --> 00:06.000\nx')).toEqual([
      'webvtt',
      '',
      '',
      'x',
    ]);
  });

  test('T7: a body without a cue has no turn and is one slice', () => {
    const parsed = parseTranscript('WEBVTT\n\nNOTE nothing\n', 'webvtt');
    expect([parsed.form, textsOf(parsed), slicesOf(parsed)]).toEqual(['webvtt', [], ['WEBVTT\n\nNOTE nothing\n']]);
  });

  test('T7: an identifier belongs to the slice of its own cue; several lines are none, and words of the cue before', () => {
    const cue = '00:01.000 --> 00:02.000\n';
    const slices = [`WEBVTT\nKind: x\n\nfirst\n${cue}a\n\n`, `second\n${cue}b\n\nnot an\nidentifier\n`, `${cue}c`];
    const parsed = parseTranscript(slices.join(''), 'webvtt');
    expect(slicesOf(parsed)).toEqual(slices);
    expect(textsOf(parsed)).toEqual(['a', 'b\n\nnot an\nidentifier', 'c']);
  });

  test('T10: an identifier of Webex names the speaker', () => {
    const body = `WEBVTT\n\n1 "Anna Lee" (123)\n${range(1)}\nOne.\n\n2 "Bo" (45)\n${range(2)}\n\nid\n${range(3)}\nx`;
    expect(read(body)).toEqual(['webvtt', 'Anna Lee: One.', 'Bo: ', 'x']);
  });

  test('T2a: a line above a range is an identifier, also if the first cue has none; a sentence is words', () => {
    expect(read(`WEBVTT\n\n${range(1)}\none\n\ntwo\n${range(2)}\nthree`)).toEqual(['webvtt', 'one', 'three']);
    expect(read(`WEBVTT\n\nid\n${range(1)}\none\n\nYes.\n${range(2)}\nthree`)).toEqual([
      'webvtt',
      'one\n\nYes.',
      'three',
    ]);
  });

  test('T10: the signature may be missing if the store says WebVTT, and be below blank lines', () => {
    const cue = '00:01.000 --> 00:02.000\n<v Anna>R&amp;D';
    expect(read(cue, 'webvtt')).toEqual(['webvtt', 'Anna: R&D']);
    expect(read(cue)).toEqual(['subrip', 'Anna: R&amp;D']);
    expect(read(`\n \n\u200eWEBVTT\n\n${cue}`)).toEqual(['webvtt', 'Anna: R&D']);
    expect(read(`WEBVTTS\n\n${cue}`)).toEqual(['subrip', 'WEBVTTS', 'Anna: R&amp;D']);
  });
});

describe('SubRip', () => {
  test('T2: counters and ranges are no words; empty lines within a cue are', () => {
    const body = `1\n${range(1)} X1:1\n<i>Anna: one</i>\n42\n\ntwo\n\n\n2 \n${range(3)}\n\n3\n${range(5)}\n7\n`;
    const parsed = parseTranscript(body, null);
    expect(textsOf(parsed)).toEqual(['Anna: one\n42\n\ntwo', '', '7']);
    expect(slicesOf(parsed).map((slice) => slice.slice(0, 3))).toEqual(['1\n0', '2 \n', '3\n0']);
  });

  test('T2: format characters around counters and ranges are skipped', () => {
    const body = `\ufeff\u200e1\n\u202a${range(1)}\u202c\nAnna: one\n\n\u200e2\n\u202a${range(2)}\u202c\ntwo`;
    expect(read(body)).toEqual(['subrip', 'Anna: one', 'two']);
  });

  test('T2a: a number above a range is a counter only in a file that has counters, and in their order', () => {
    expect(read(`${range(1)}\nHow many?\n\n${range(2)}\n250\n${range(3)}\nNo.`)).toEqual([
      'subrip',
      'How many?',
      '250',
      'No.',
    ]);
    expect(read(`1\n${range(1)}\nHow many?\n\n2\n${range(2)}\n250\n${range(3)}\nNo.`)).toEqual([
      'subrip',
      'How many?',
      '250',
      'No.',
    ]);
  });

  test.each([
    ['words on the line of the range', `${range(2)} Bo: two`, 'Bo: two'],
    ['settings and words there', `${range(2)} X1:10 X2:20 Bo: two`, 'Bo: two'],
    ['a colon without a space there', `${range(2)} Bo:two`, 'Bo:two'],
    ['a negative time', `-${range(2)}\ntwo`, 'two'],
    ['a short arrow', '00:00:02,000 -> 00:00:03,000\ntwo', 'two'],
    ['four colons', '00:00:02:000 --> 00:00:03:000\ntwo', 'two'],
    ['a space after the comma', '00:00:02, 000 --> 00:00:03, 000\ntwo', 'two'],
  ])('T2a: %s', (_what, cue, text) => {
    expect(read(`1\n${range(1)}\none\n\n2\n${cue}\n\n3\n${range(3)}\nthree`)).toEqual(['subrip', 'one', text, 'three']);
  });

  test('T2a: a line that resembles a range is words', () => {
    for (const line of ['10:30 --> 11:30 on Friday', '10:30 --> 11:30', 'a 00:01 --> 00:02', '00:00:01,000 -->']) {
      expect(read(`${range(1)}\nSee you\n${line}`)).toEqual(['subrip', `See you\n${line}`]);
    }
  });

  test.each(['00:00:01,000 -> 00:00:02,000', '00:00:01,000 -->', '--> 00:00:02,000', '1 --> 2', 'a 00:01 --> 00:02'])(
    '%s alone makes no cues',
    (line) => {
      expect(parseTranscript(`1\n${line}\nhi`, 'srt').form).toBe(null);
    },
  );

  test('T11: lines above the first cue are nobody, a turn per paragraph', () => {
    const body = `Planning\nRoom 4\n\nrecorded by Bo\n\n1\n${range(1)}\nhi\n\n2\n${range(2)}\nho\n\n3\n${range(3)}\nhe`;
    expect(read(body)).toEqual(['subrip', 'Planning\nRoom 4', 'recorded by Bo', 'hi', 'ho', 'he']);
  });

  test('T10: a known speaker alone on the first line is the speaker', () => {
    expect(read(`${range(1)}\nAnna: one\n\n${range(2)}\nAnna\ntwo\nthree\n\n${range(3)}\nAnna`)).toEqual([
      'subrip',
      'Anna: one',
      'Anna: two\nthree',
      'Anna',
    ]);
  });

  test('T12: notes are words in all but WebVTT', () => {
    const body = `${range(1)}\none\n\nNOTE this\n\n${range(2)}\ntwo`;
    expect(read(body)).toEqual(['subrip', 'one\n\nNOTE this', 'two']);
    expect(read(`WEBVTT\n\n${body}`)).toEqual(['webvtt', 'one', 'two']);
  });
});

test('SBV: a range per cue, several speakers in one', () => {
  const body =
    '0:00:01.000,0:00:03.000\nAnna: Hi.\nBo: <i>Hello</i>.\n\n0:00:03.000,0:00:05.000\n\n0:00:05.000,0:00:06.000\n1,000';
  expect(read(body)).toEqual(['sbv', 'Anna: Hi.\nBo: Hello.', '', '1,000']);
});
