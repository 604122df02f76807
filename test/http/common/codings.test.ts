import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { aScorecard, aScoredCard, aTranscript, dealInsights } from '../../support/records.ts';
import { ENDPOINTS, type EndpointRow, GET_CALL, GET_REPORT } from './endpoints.ts';
import { keyFor, newSubject, putSubject, readerOf, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway());

const CODINGS = ['br', 'zstd', 'gzip'] as const;
const LONG_TITLE = 'Gespräch über 😀 '.repeat(100);

/** One whose every body is worth compressing. */
function putLong(): Subject {
  const subject = putSubject(gateway.store, newSubject(), { title: LONG_TITLE });
  const part = { evaluationId: subject.id, workspaceId: subject.workspaceId };
  const scorecard = { name: LONG_TITLE, sections: [] };
  gateway.store.put({
    transcripts: [aTranscript({ ...part, body: `Riley: ${LONG_TITLE}` })],
    scoredCards: [aScoredCard({ ...part, scorecard })],
    dealInsights: [dealInsights({ ...part, insights: { text: LONG_TITLE } })],
    scorecards: [aScorecard({ _id: subject.scorecardId, workspaceId: subject.workspaceId, name: LONG_TITLE })],
  });
  return subject;
}

async function reader(endpoint: EndpointRow, subject = putLong()) {
  const { ask } = await readerOf(gateway, endpoint, { subject });
  return (accept?: string): Promise<Reply> =>
    ask({ headers: accept === undefined ? {} : { 'accept-encoding': accept } });
}

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test('C5: br, zstd and gzip hold the bytes of identity, and each has an ETag of its own', async () => {
    const ask = await reader(endpoint);
    const plain = await ask();
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(plain.headers.etag).toMatch(/^"[A-Za-z0-9_-]{27}"$/);
    for (const coding of CODINGS) {
      const coded = await ask(coding);
      expect([coded.status, coded.headers['content-encoding']]).toEqual([200, coding]);
      expect(coded.headers['content-length']).toBe(String(coded.bytes.length));
      expect(coded.bytes.length).toBeLessThan(plain.bytes.length);
      expect(coded.text).toBe(plain.text);
      expect(coded.headers.etag).toBe(`${plain.headers.etag?.slice(0, -1)}-${coding}"`);
    }
  });
});

test.each([
  [undefined, undefined],
  ['', undefined],
  ['identity', undefined],
  ['deflate', undefined],
  ['compress, deflate', undefined],
  ['*;q=0', undefined],
  ['identity;q=0', undefined],
  ['br;q=0', undefined],
  ['br;q=0, gzip;q=0, zstd;q=0', undefined],
  ['nonsense;;;', undefined],
  [';', undefined],
  ['br', 'br'],
  ['BR', 'br'],
  ['gzip, deflate, br, zstd', 'br'],
  ['gzip, deflate', 'gzip'],
  ['zstd, gzip', 'zstd'],
  ['gzip, zstd', 'zstd'],
  ['gzip;q=1.0, br;q=0.5', 'gzip'],
  ['br;q=0.1, zstd;q=0.9', 'zstd'],
  ['identity;q=0.5, gzip;q=0.4', undefined],
  ['identity, gzip;q=0.9', undefined],
  ['br;q=0, *', 'zstd'],
  ['*', 'br'],
  ['*;q=0.1', 'br'],
] as const)('Accept-Encoding %j is answered with %s', async (accept, coding) => {
  const ask = await reader(GET_CALL);
  const reply = await ask(accept);
  expect(reply.status).toBe(200);
  expect(reply.headers['content-encoding']).toBe(coding);
  expect(reply.text).toBe((await ask()).text);
});

test('a short body is sent as it is, whatever is accepted', async () => {
  const ask = await reader(GET_REPORT, putSubject(gateway.store));
  const [coded, plain] = [await ask('br, gzip'), await ask()];
  expect(plain.bytes.length).toBeLessThan(1024);
  expect(coded.headers['content-encoding']).toBeUndefined();
  expect(coded.bytes.equals(plain.bytes)).toBe(true);
  expect(coded.headers.etag).toBe(plain.headers.etag);
});

test.each(['br', 'gzip'])('errors are never coded: %s', async (coding) => {
  const key = await keyFor(gateway, newSubject());
  const names = Array.from({ length: 60 }, (_, i) => `parameter${i}=`).join('&');
  const reply = await gateway.get(`/v2/calls?${names}`, { key, headers: { 'accept-encoding': coding } });
  expect(reply.status).toBe(400);
  expect(reply.bytes.length).toBeGreaterThan(1024);
  expect(reply.headers['content-encoding']).toBeUndefined();
});

test('many readers of one coding at once get the same bytes', async () => {
  const ask = await reader(GET_CALL);
  const replies = await Promise.all(Array.from({ length: 20 }, (_, i) => ask(i % 2 === 0 ? 'br' : 'zstd')));
  expect(new Set(replies.map(({ bytes }) => bytes.toString('base64'))).size).toBe(2);
  expect(new Set(replies.map(({ text }) => text)).size).toBe(1);
});
