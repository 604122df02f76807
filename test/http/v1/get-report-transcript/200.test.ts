import { expect, test } from 'vitest';
import { forFile } from '../../../support/opened.ts';
import { startTestGateway } from '../../../support/gateway.ts';
import { aTranscript } from '../../../support/records.ts';
import { GET_REPORT_TRANSCRIPT } from '../../common/endpoints.ts';
import { keyFor, newSubject, putSubject } from '../../common/subject.ts';

const gateway = await forFile(startTestGateway());

const WEBVTT = 'WEBVTT\r\n\r\n00:01.000 --> 00:04.000\r\n<v Riley>Hello &amp; welcome';
const SRT = '1\n00:00:01,000 --> 00:00:02,000\nRiley: Hello\n';
const UTTERANCES = '[{"speaker":"Riley","startMs":0,"text":"Hello"}]';

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
] as const)(
  'T1, T11: %s: the body as it is, and whether it is read as one of the forms',
  async (_what, format, body, isFormatSupported) => {
    const subject = newSubject();
    const { id: evaluationId, workspaceId } = subject;
    gateway.store.put({ transcripts: [aTranscript({ evaluationId, workspaceId, format, body })] });
    const key = await keyFor(gateway, subject, { scopes: ['reports.read'] });
    const reply = await gateway.get(GET_REPORT_TRANSCRIPT.path(subject), { key });
    expect(reply.status).toBe(200);
    expect(reply.text).toBe(JSON.stringify({ transcript: body, isFormatSupported }));
  },
);

test('T1: lone surrogates become U+FFFD on intake', async () => {
  const subject = newSubject();
  const { id: evaluationId, workspaceId } = subject;
  gateway.store.transcripts.set(
    evaluationId,
    aTranscript({ evaluationId, workspaceId, body: 'Riley: a\ud800b\udc00' }),
  );
  const reply = await gateway.get(GET_REPORT_TRANSCRIPT.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.text).toBe('{"transcript":"Riley: a\ufffdb\ufffd","isFormatSupported":true}');
});

test.each([10, 14_000, 16_000, 60_000])(
  '%i characters of any language arrive as they were, and again',
  async (length) => {
    const subject = newSubject();
    const { id: evaluationId, workspaceId } = subject;
    const body = `Riley: ${'Größe ✓ 🎧 '.repeat(length)}`.slice(0, length).toWellFormed();
    gateway.store.put({ transcripts: [aTranscript({ evaluationId, workspaceId, body })] });
    const key = await keyFor(gateway, subject);
    for (let time = 0; time < 2; time += 1) {
      const reply = await gateway.get(GET_REPORT_TRANSCRIPT.path(subject), { key });
      expect(reply.headers['content-length']).toBe(String(reply.bytes.length));
      expect(reply.bytes.equals(Buffer.from(JSON.stringify({ transcript: body, isFormatSupported: true })))).toBe(true);
    }
  },
);

test('a transcript of 2 MB comes whole, compressed', async () => {
  const subject = newSubject();
  const { id: evaluationId, workspaceId } = subject;
  const body = 'Riley: What would a good quarter look like?\nSam: Hard to say.\n'.repeat(32_000);
  gateway.store.put({ transcripts: [aTranscript({ evaluationId, workspaceId, body })] });
  const reply = await gateway.get(GET_REPORT_TRANSCRIPT.path(subject), {
    key: await keyFor(gateway, subject),
    headers: { 'accept-encoding': 'br' },
  });
  expect(reply.headers['content-encoding']).toBe('br');
  expect(reply.json).toEqual({ transcript: body, isFormatSupported: true });
});

test('Q5: that of a report that is not completed is served if the store has it', async () => {
  const subject = putSubject(gateway.store, newSubject(), { state: 'QUEUED' });
  const reply = await gateway.get(GET_REPORT_TRANSCRIPT.path(subject), { key: await keyFor(gateway, subject) });
  expect(reply.status).toBe(200);
});
