import { describe, expect, onTestFinished, test } from 'vitest';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import { sendError } from '../../support/store-server.ts';
import { type EndpointRow, PARTS, SINGLE_READS } from './endpoints.ts';
import { uncountedHeaders } from './headers.ts';
import { keyFor, newSubject, putSubject, readerOf, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway());

function expectNotFound(reply: Reply, endpoint: EndpointRow): void {
  expect([reply.status, reply.text]).toEqual([404, endpoint.notFound]);
}

/** With its first letter percent-encoded. */
const encoded = (id: string): string => `%${id.charCodeAt(0).toString(16)}${id.slice(1)}`;

/** The same answer to the last byte and header. */
function expectAlike(reply: Reply, none: Reply, endpoint: EndpointRow): void {
  expectNotFound(none, endpoint);
  expect(reply.bytes.equals(none.bytes)).toBe(true);
  expect(uncountedHeaders(reply)).toEqual(uncountedHeaders(none));
}

describe.each(SINGLE_READS)('$name', (endpoint) => {
  test('K5, K6, K7: none, a foreign one that is cached, and a foreign one that is not, answer alike byte for byte', async () => {
    const [mine, uncached] = [putSubject(gateway.store), putSubject(gateway.store)];
    const owner = await readerOf(gateway, endpoint);
    const theirs = await owner.ask();
    expect(theirs.status).toBe(200);
    const key = await keyFor(gateway, mine);
    const ask = (subject: Subject, headers = {}): Promise<Reply> =>
      gateway.get(endpoint.path({ ...subject, workspaceId: mine.workspaceId }), { key, headers });
    const none = await ask(newSubject());
    // C5: the copy's ETag must not be told before the reader is known to be let in.
    const asked = [{}, { 'if-none-match': theirs.headers.etag ?? '' }, { 'if-none-match': '*' }];
    for (const headers of asked) expectAlike(await ask(owner.subject, headers), none, endpoint);
    for (let time = 0; time < 2; time += 1) expectAlike(await ask(uncached), none, endpoint);
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
  ])('Q7: an id that is %s is none, and nothing is sent upstream', async (_what, given) => {
    const id = encodeURI(given).replaceAll('%25', '%');
    const { ask } = await readerOf(gateway, { path: (subject) => endpoint.path({ ...subject, id, scorecardId: id }) });
    const before = gateway.store.calls();
    expectNotFound(await ask(), endpoint);
    expect(gateway.store.calls()).toBe(before);
  });

  test.each(['a', '_', '-', '__proto__', 'constructor', '0'.repeat(64), 'A-_9'])(
    'Q7: %s is an id, and is asked for',
    async (id) => {
      // Past the time for which the absence that another endpoint was answered is remembered.
      gateway.clock.advance(15_000);
      const { ask } = await readerOf(gateway, endpoint, { subject: { ...newSubject(), id, scorecardId: id } });
      expectNotFound(await ask(), endpoint);
      expect(gateway.store.requests.at(-1)).toMatchObject({ resource: endpoint.resource, id });
    },
  );

  test('Q7: an id whose letters are percent-encoded is the same id', async () => {
    const { ask } = await readerOf(gateway, {
      path: ({ workspaceId, id, scorecardId }) =>
        endpoint.path({ workspaceId, id: encoded(id), scorecardId: encoded(scorecardId) }),
    });
    expect((await ask()).status).toBe(200);
  });
});

test.each(PARTS)('Q9, K7: a part that is not ready answers as one of no evaluation at all: $name', async (endpoint) => {
  const { subject, ask } = await readerOf(gateway, endpoint);
  for (const table of ['transcripts', 'scoredCards', 'dealInsights'] as const) gateway.store[table].delete(subject.id);
  const none = await readerOf(gateway, endpoint, { subject: newSubject(subject.workspaceId) });
  expectAlike(await ask(), await none.ask(), endpoint);
});

test.each(SINGLE_READS)(
  'Q9: 410 with the code NOT_FOUND is the 404 of none, and with another one a failure: $name',
  async (endpoint) => {
    const { subject, ask } = await readerOf(gateway, endpoint, { subject: newSubject() });
    const path = new RegExp(`/(?:${subject.id}|${subject.scorecardId})(?:/|$)`);
    const takeBack = gateway.store.override(path, (_, response) => sendError(response, 410, 'GONE'));
    expect((await ask()).status).toBe(500);
    takeBack();
    gateway.clock.advance(2000);
    onTestFinished(gateway.store.override(path, (_, response) => sendError(response, 410, 'NOT_FOUND')));
    expectNotFound(await ask(), endpoint);
  },
);
