/** T1 to T11: transcripts as v1 has them, whole, and as v2 has them, in pages of turns. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { TranscriptRecord } from '../../src/domain/records.ts';
import { type Reply, startTestGateway } from '../support/gateway.ts';
import { forFile } from '../support/opened.ts';
import { aTranscript } from '../support/records.ts';
import { GET_CALL_TRANSCRIPT, GET_REPORT_TRANSCRIPT } from './common/endpoints.ts';
import { newSubject, readerOf, type Subject } from './common/subject.ts';

const gateway = await forFile(startTestGateway());

function putTranscript(body: string, format: TranscriptRecord['format'] = 'speaker_text'): Subject {
  const subject = newSubject();
  const { id: evaluationId, workspaceId } = subject;
  gateway.store.put({ transcripts: [aTranscript({ evaluationId, workspaceId, format, body })] });
  return subject;
}

async function read(subject: Subject, query = ''): Promise<Reply> {
  const { ask } = await readerOf(gateway, GET_CALL_TRANSCRIPT, { subject, scopes: ['calls.read'] });
  return ask({ query });
}

const reportReader = (subject: Subject) =>
  readerOf(gateway, GET_REPORT_TRANSCRIPT, { subject, scopes: ['reports.read'] });

const WEBVTT = 'WEBVTT\r\n\r\n00:01.000 --> 00:04.000\r\n<v Riley>Hello &amp; welcome';
const SRT = '1\n00:00:01,000 --> 00:00:02,000\nRiley: Hello\n';
const UTTERANCES = '[{"speaker":"Riley","startMs":0,"text":"Hello"}]';

describe('of a report', () => {
  test.each([
    ['speaker text', 'speaker_text', '[00:00:01] Riley: Hello\nSam: Hi \u{1f600}e\u0301\u202e', true],
    ['WebVTT', 'webvtt', WEBVTT, true],
    ['SubRip', 'srt', SRT, true],
    ['utterances', 'utterances_json', UTTERANCES, true],
    ['WebVTT where the store knows no format', null, WEBVTT, true],
    ['SubRip that the store takes for WebVTT', 'webvtt', SRT, true],
    ['an empty body', 'srt', '', true],
    ['an empty body of no known format', null, '', true],
    ['prose', null, 'Two people met.\n\nThey talked.', false],
    ['prose that the store takes for utterances', 'utterances_json', 'Two people met.', false],
    ...[10, 14_000, 16_000, 60_000].map(
      (length) =>
        [
          `${length} characters of any language`,
          'speaker_text',
          `Riley: ${'Größe ✓ 🎧 '.repeat(length)}`.slice(0, length).toWellFormed(),
          true,
        ] as const,
    ),
  ] as const)('T1, T11: %s: the body as it is, and whether it is read as one of the forms', async (...row) => {
    const [, format, body, isFormatSupported] = row;
    const { ask } = await reportReader(putTranscript(body, format));
    for (let time = 0; time < 2; time += 1) {
      const reply = await ask();
      expect(reply.headers['content-length']).toBe(String(reply.bytes.length));
      expect(reply.bytes.equals(Buffer.from(JSON.stringify({ transcript: body, isFormatSupported })))).toBe(true);
    }
  });

  test('T1: lone surrogates become U+FFFD on intake', async () => {
    const subject = putTranscript('');
    const record = aTranscript({ evaluationId: subject.id, workspaceId: subject.workspaceId });
    gateway.store.transcripts.set(subject.id, { ...record, body: 'Riley: a\ud800b\udc00' });
    const { text } = await (await reportReader(subject)).ask();
    expect(text).toBe('{"transcript":"Riley: a\ufffdb\ufffd","isFormatSupported":true}');
  });

  test('one of 2 MB comes whole, compressed', async () => {
    const body = 'Riley: What would a good quarter look like?\nSam: Hard to say.\n'.repeat(32_000);
    const reply = await (await reportReader(putTranscript(body))).ask({ headers: { 'accept-encoding': 'br' } });
    expect(reply.headers['content-encoding']).toBe('br');
    expect(reply.json).toEqual({ transcript: body, isFormatSupported: true });
  });
});

const pageSchema = z.object({
  transcript: z.object({
    text: z.string(),
    segments: z.array(z.object({ index: z.int(), text: z.string() })),
  }),
  pagination: z.object({ has_more: z.boolean() }),
});

interface Expected {
  readonly text: string;
  readonly segments: readonly (readonly [index: number, text: string])[];
  readonly pagination: readonly [page: number, pageSize: number, count: number, pages: number, hasMore: boolean];
  readonly truncated?: boolean;
  readonly isFormatSupported?: boolean;
}

/** The exact body. */
function bodyOf({ text, segments, pagination, truncated = false, isFormatSupported = true }: Expected): string {
  const [page, page_size, total_count, total_pages, has_more] = pagination;
  return JSON.stringify({
    transcript: {
      text,
      is_format_supported: isFormatSupported,
      segments: segments.map(([index, segment]) => ({ index, text: segment })),
    },
    pagination: { page, page_size, total_count, total_pages, has_more },
    truncated,
  });
}

const BODY = '[00:00:01] Riley: One\nSam: Two\nand more\nRiley: Three';

describe('the parsed turns', () => {
  test('T2, T4: the whole of a short transcript is one page', async () => {
    const reply = await read(putTranscript(BODY));
    expect(reply.status).toBe(200);
    expect(reply.text).toBe(
      bodyOf({
        text: 'Riley: One\nSam: Two\nand more\nRiley: Three',
        segments: [
          [0, 'Riley: One'],
          [1, 'Sam: Two\nand more'],
          [2, 'Riley: Three'],
        ],
        pagination: [1, 100, 3, 1, false],
      }),
    );
  });

  test.each([
    ['webvtt', 'WEBVTT\n\n00:01.000 --> 00:02.000\n<v Riley>Fish &amp; <b>chips</b>', 'Riley: Fish & chips'],
    ['srt', '1\n00:00:01,000 --> 00:00:02,000\nRiley: Hello\n', 'Riley: Hello'],
    ['utterances_json', '[{"speaker":"Riley","startMs":0,"text":"Hello"}]', 'Riley: Hello'],
    ['utterances_json', '[{"speaker":null,"startMs":0,"text":"Hello"}]', 'Hello'],
  ] as const)('T2, T3: %s: %j', async (format, body, text) => {
    const reply = await read(putTranscript(body, format));
    expect(reply.text).toBe(bodyOf({ text, segments: [[0, text]], pagination: [1, 100, 1, 1, false] }));
  });

  test('T1: an empty transcript has no pages and is of a supported format', async () => {
    const reply = await read(putTranscript('', null));
    expect(reply.text).toBe(bodyOf({ text: '', segments: [], pagination: [1, 100, 0, 0, false] }));
  });

  test('T9: a body of no format is cut at blank lines', async () => {
    const reply = await read(putTranscript('Two people met.\n\nThey talked.', null));
    expect(reply.text).toBe(
      bodyOf({
        text: 'Two people met.\nThey talked.',
        segments: [
          [0, 'Two people met.'],
          [1, 'They talked.'],
        ],
        pagination: [1, 100, 2, 1, false],
        isFormatSupported: false,
      }),
    );
  });
});

describe('pages', () => {
  test('T5, T6: pageSize ends a page without truncation', async () => {
    const subject = putTranscript(BODY);
    expect((await read(subject, '?pageSize=2')).text).toBe(
      bodyOf({
        text: 'Riley: One\nSam: Two\nand more',
        segments: [
          [0, 'Riley: One'],
          [1, 'Sam: Two\nand more'],
        ],
        pagination: [1, 2, 3, 2, true],
      }),
    );
    expect((await read(subject, '?pageSize=2&page=2')).text).toBe(
      bodyOf({ text: 'Riley: Three', segments: [[2, 'Riley: Three']], pagination: [2, 2, 3, 2, false] }),
    );
  });

  test('T5, T6: maxChars ends a page with truncation, and a turn that is too long goes on with its index', async () => {
    const subject = putTranscript('A: abcde\nB: abcdefghijkl\nC: a');
    const pages = await Promise.all([1, 2, 3].map((page) => read(subject, `?maxChars=10&page=${page}`)));
    expect(pages.map(({ text }) => text)).toEqual([
      bodyOf({ text: 'A: abcde', segments: [[0, 'A: abcde']], pagination: [1, 100, 3, 3, true], truncated: true }),
      bodyOf({ text: 'B: abcdefg', segments: [[1, 'B: abcdefg']], pagination: [2, 100, 3, 3, true], truncated: true }),
      bodyOf({
        text: 'hijkl\nC: a',
        segments: [
          [1, 'hijkl'],
          [2, 'C: a'],
        ],
        pagination: [3, 100, 3, 3, false],
      }),
    ]);
  });

  test('T5: maxChars counts code points and does not cut within a grapheme cluster if one fits', async () => {
    const family = '👨‍👩‍👧'; // 5 code points
    const subject = putTranscript(`A: ${family}${family}`);
    const pages = await Promise.all([1, 2].map((page) => read(subject, `?maxChars=9&page=${page}`)));
    expect(pages.map(({ json }) => json)).toMatchObject([
      { transcript: { text: `A: ${family}` }, truncated: true },
      { transcript: { text: family }, truncated: false },
    ]);
  });

  test.each([
    ['', 1, 100],
    ['?pageSize=1', 1, 1],
    ['?pageSize=200', 1, 200],
    ['?maxChars=1', 1, 100],
    ['?maxChars=50000', 1, 100],
    ['?page=999999999', 999_999_999, 100],
  ])('Q3: both bounds of each parameter are allowed: %s', async (query, page, pageSize) => {
    const reply = await read(putTranscript(BODY), query);
    expect(reply.status).toBe(200);
    expect(reply.json).toMatchObject({ pagination: { page, page_size: pageSize, total_count: 3 } });
  });

  test('Q6: a page past the end is empty and has the true counts', async () => {
    expect((await read(putTranscript(BODY), '?page=3&pageSize=2')).text).toBe(
      bodyOf({ text: '', segments: [], pagination: [3, 2, 3, 2, false] }),
    );
  });

  test.each([false, true])('T7, T8: walking the pages gives every character once, raw: %s', async (raw) => {
    const body = Array.from({ length: 60 }, (_, i) => `Speaker ${i % 3}: ${'words and 😀 '.repeat(i % 9)}${i}`).join(
      '\r\n',
    );
    const subject = putTranscript(body);
    let text = '';
    const turns = new Map<number, string>();
    for (let page = 1, hasMore = true; hasMore; page += 1) {
      const reply = await read(subject, `?page=${page}&pageSize=7&maxChars=60&raw=${raw}`);
      const { transcript, pagination } = pageSchema.parse(reply.json);
      for (const part of transcript.segments) turns.set(part.index, (turns.get(part.index) ?? '') + part.text);
      text += transcript.text;
      hasMore = pagination.has_more;
    }
    const expected = body.split('\r\n');
    const ended = expected.map((line, i) => (raw && i < expected.length - 1 ? `${line}\r\n` : line));
    expect([...turns.keys()]).toEqual(expected.map((_, i) => i));
    expect([...turns.values()]).toEqual(ended);
    // Parsed, a line feed stands between turns but not where a page ends.
    expect(text.replaceAll(/\r?\n/g, '')).toBe(body.replaceAll('\r\n', ''));
    expect(text.includes('\r')).toBe(raw);
  });
});

describe('raw', () => {
  const slices: readonly string[] = ['[00:00:01] Riley: One\n', 'Sam: Two\nand more\n', 'Riley: Three'];
  const raw = bodyOf({
    text: BODY,
    segments: slices.map((slice, index) => [index, slice] as const),
    pagination: [1, 100, 3, 1, false],
  });

  test.each(['?raw', '?raw=', '?raw=true', '?raw=1', '?raw=0', '?raw=FALSE', '?raw=no', '?raw=%20false'])(
    'Q3, T7: %s gives the exact slices of the body',
    async (query) => {
      expect((await read(putTranscript(BODY), query)).text).toBe(raw);
    },
  );

  test('Q3: raw=false gives the parsed turns', async () => {
    const subject = putTranscript(BODY);
    const [said, unsaid] = [await read(subject, '?raw=false'), await read(subject)];
    expect(said.text).toBe(unsaid.text);
    expect(said.text).not.toBe(raw);
  });
});

test('C4: pages of one transcript, parsed or raw, and the report transcript cost one call to the store', async () => {
  const { subject, ask } = await readerOf(gateway, GET_CALL_TRANSCRIPT);
  const before = gateway.store.calls('transcript');
  for (const query of ['', '?page=2', '?pageSize=1', '?raw', '?maxChars=3&page=4']) await ask({ query });
  await (await reportReader(subject)).ask();
  expect(gateway.store.calls('transcript') - before).toBe(1);
});
