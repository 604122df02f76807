import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { type EndpointRow, GET_RUBRIC, PARTS, SINGLE_READS } from './endpoints.ts';
import { cachingOf, RATE_LIMIT_NAMES, rateLimitOf, uncountedHeaders } from './headers.ts';
import { keyFor, newSubject, putSubject, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway());

/** The endpoint's path with another id in it, which needs no encoding or has it. */
function pathWithId(endpoint: EndpointRow, subject: Subject, id: string): string {
  return endpoint.path({ ...subject, id, scorecardId: id });
}

function expectNotFound(reply: Reply, endpoint: EndpointRow): void {
  expect(reply.status).toBe(404);
  expect(reply.text).toBe(endpoint.notFound);
  expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
  expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
  expect(Object.keys(rateLimitOf(reply))).toEqual(RATE_LIMIT_NAMES);
}

describe.each(SINGLE_READS)('$name', (endpoint) => {
  test('K5, K6, K7: none, a foreign one that is cached, and a foreign one that is not, answer alike byte for byte', async () => {
    const mine = putSubject(gateway.store);
    const cached = putSubject(gateway.store);
    const uncached = putSubject(gateway.store);
    const theirs = await gateway.get(endpoint.path(cached), { key: await keyFor(gateway, cached) });
    expect(theirs.status).toBe(200);
    const key = await keyFor(gateway, mine);
    const ask = ({ id, scorecardId }: Subject, headers = {}): Promise<Reply> =>
      gateway.get(endpoint.path({ workspaceId: mine.workspaceId, id, scorecardId }), { key, headers });
    const none = await ask(newSubject());
    expectNotFound(none, endpoint);
    const theirEtag = theirs.headers.etag ?? '';
    const replies = [
      await ask(cached),
      await ask(uncached),
      await ask(uncached),
      // C5: what the copy is compared with must not be told before the reader is known to be let in.
      await ask(cached, { 'if-none-match': theirEtag }),
      await ask(cached, { 'if-none-match': '*' }),
    ];
    for (const reply of replies) {
      expectNotFound(reply, endpoint);
      expect(reply.bytes.equals(none.bytes)).toBe(true);
      expect(uncountedHeaders(reply)).toEqual(uncountedHeaders(none));
    }
  });

  test.each([
    ['too long', 'a'.repeat(65)],
    ['a dot', '.'],
    ['dots', '..'],
    ['an encoded dot', '%2e%2e'],
    ['dots and slashes', '..%2f..%2fapi-keys%2f1'],
    ['backslashes', '..%5c..'],
    ['a space', 'a%20b'],
    ['NUL', 'a%00'],
    ['a line break', 'a%0d%0aX-Evil:%201'],
    ['no UTF-8', '%ff%fe'],
    ['overlong UTF-8', '%c0%ae'],
    ['no percent encoding', '%zz'],
    ['half a percent encoding', 'a%2'],
    ['a letter beyond ASCII', 'é'],
    ['a full-width letter', '%EF%BC%A1'],
    ['a colon', 'a:b'],
    ['a semicolon', 'a;b=c'],
    ['a plus', 'a+b'],
    ['an encoded question mark', 'a%3Fq=1'],
    ['an encoded hash', 'a%23b'],
    ['a brace of a template', '%7Bid%7D'],
  ])('Q7: an id that is %s is none, and nothing is sent upstream', async (_what, id) => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    const before = gateway.store.calls();
    const path = pathWithId(endpoint, subject, encodeURI(id).replaceAll('%25', '%'));
    expectNotFound(await gateway.get(path, { key }), endpoint);
    expect(gateway.store.calls()).toBe(before);
  });

  test.each(['a', '_', '-', '__proto__', 'constructor', '0'.repeat(64), 'A-_9'])(
    'Q7: %s is an id, and is asked for',
    async (id) => {
      // Past the time for which the absence that another endpoint was answered is remembered.
      gateway.clock.advance(15_000);
      const subject = newSubject();
      const key = await keyFor(gateway, subject);
      expectNotFound(await gateway.get(pathWithId(endpoint, subject, id), { key }), endpoint);
      expect(gateway.store.requests.at(-1)).toMatchObject({ resource: endpoint.resource, id });
    },
  );

  test('Q7: an id whose letters are percent-encoded is the same id', async () => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    const id = endpoint.resource === 'rubric' ? subject.scorecardId : subject.id;
    const encoded = `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`;
    expect((await gateway.get(pathWithId(endpoint, subject, encoded), { key })).status).toBe(200);
  });
});

describe.each(PARTS)('$name', (endpoint) => {
  test('Q9, K7: a part that is not ready answers as one of no evaluation at all', async () => {
    const subject = putSubject(gateway.store);
    const parts = { transcript: 'transcripts', scorecard: 'scoredCards', dealInsights: 'dealInsights' } as const;
    for (const records of Object.values(parts)) gateway.store[records].delete(subject.id);
    const key = await keyFor(gateway, subject);
    const notReady = await gateway.get(endpoint.path(subject), { key });
    const none = await gateway.get(endpoint.path({ ...newSubject(subject.workspaceId) }), { key });
    expectNotFound(notReady, endpoint);
    expect(notReady.bytes.equals(none.bytes)).toBe(true);
    expect(uncountedHeaders(notReady)).toEqual(uncountedHeaders(none));
  });
});

describe('remembered absence', () => {
  test('C1: costs one call to the store in 15 s, and is looked for again after them', async () => {
    const subject = newSubject();
    const key = await keyFor(gateway, subject);
    const before = gateway.store.calls('rubric');
    expectNotFound(await gateway.get(GET_RUBRIC.path(subject), { key }), GET_RUBRIC);
    gateway.clock.advance(13_000);
    expectNotFound(await gateway.get(GET_RUBRIC.path(subject), { key }), GET_RUBRIC);
    expect(gateway.store.calls('rubric') - before).toBe(1);
    putSubject(gateway.store, subject);
    gateway.clock.advance(2000);
    expect((await gateway.get(GET_RUBRIC.path(subject), { key })).status).toBe(200);
    expect(gateway.store.calls('rubric') - before).toBe(2);
  });
});
