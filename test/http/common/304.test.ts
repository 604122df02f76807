import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, type EndpointRow, GET_CALL, GET_REPORT } from './endpoints.ts';
import { cachingOf, RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { keyFor, putSubject, type Subject } from './subject.ts';

const gateway = await forFile(startTestGateway());

/** A title that makes every body longer than what is worth compressing. */
const LONG_TITLE = 'Discovery call with Northwind '.repeat(60);

interface Reader {
  readonly subject: Subject;
  readonly ask: (headers?: Readonly<Record<string, string>>, method?: string) => Promise<Reply>;
  readonly etag: string;
}

async function read(endpoint: EndpointRow, title?: string): Promise<Reader> {
  const subject = putSubject(gateway.store, undefined, title === undefined ? {} : { title });
  const key = await keyFor(gateway, subject);
  const ask: Reader['ask'] = (headers = {}, method = 'GET') =>
    gateway.get(endpoint.path(subject), { key, headers, method });
  const { etag = '' } = (await ask()).headers;
  return { subject, ask, etag };
}

function expectNotModified(reply: Reply): void {
  expect(reply.status).toBe(304);
  expect(reply.bytes.length).toBe(0);
  expect(reply.headers['content-type']).toBeUndefined();
  expect(reply.headers['content-encoding']).toBeUndefined();
}

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test('C5: If-None-Match that names the ETag gets a 304 with the headers of the 200', async () => {
    const { ask, etag } = await read(endpoint);
    expect(etag).toMatch(/^"[A-Za-z0-9_-]{27}"$/);
    const [whole, short] = [await ask(), await ask({ 'if-none-match': etag })];
    expectNotModified(short);
    expect(whole.status).toBe(200);
    expect(cachingOf(short)).toEqual(cachingOf(whole));
    expect(Object.keys(cachingOf(short))).toHaveLength(4);
    expect(short.headers.vary).toBe('Authorization, Accept-Encoding');
    expect(Object.keys(rateLimitOf(short))).toEqual(RATE_LIMIT_NAMES);
  });

  test.each([
    ['weak', (etag: string) => `W/${etag}`],
    ['first of a list', (etag: string) => `${etag}, "other"`],
    ['last of a list', (etag: string) => `"a", W/"b" ,"c,d",${etag}`],
    ['weak in a list without spaces', (etag: string) => `"a",W/${etag},"b"`],
    ['with spaces around', (etag: string) => `  ${etag}  `],
    ['any at all', () => '*'],
    ['any at all, with spaces', () => ' * '],
  ])('C5: 304 where it is %s', async (_what, fieldOf) => {
    const { ask, etag } = await read(endpoint);
    expectNotModified(await ask({ 'if-none-match': fieldOf(etag) }));
    expectNotModified(await ask({ 'if-none-match': fieldOf(etag) }, 'HEAD'));
  });

  test.each([
    ['another', () => '"other"'],
    ['empty', () => ''],
    ['the empty ETag', () => '""'],
    ['not in quotes', (etag: string) => etag.slice(1, -1)],
    ['in other letters', (etag: string) => etag.toUpperCase()],
    ['part of a longer one', (etag: string) => `"x${etag.slice(1)}`],
    ['that of a coding', (etag: string) => `${etag.slice(0, -1)}-br"`],
    ['a star among others', (etag: string) => `"x${etag.slice(1, -1)}", "*"`],
    ['with a lower-case weakness', () => 'w/"other"'],
    ['a thousand others', () => Array.from({ length: 1000 }, (_, i) => `"${i}"`).join(',')],
  ])('C5: 200 where it is %s', async (_what, fieldOf) => {
    const { ask, etag } = await read(endpoint);
    const reply = await ask({ 'if-none-match': fieldOf(etag) });
    expect(reply.status).toBe(200);
    expect(reply.headers.etag).toBe(etag);
  });

  test('C5: If-Modified-Since, If-Match and Range change nothing', async () => {
    const { ask } = await read(endpoint);
    const plain = await ask();
    const headers = { 'if-modified-since': new Date().toUTCString(), 'if-match': '"x"', range: 'bytes=0-1' };
    const reply = await ask(headers);
    expect(reply.status).toBe(200);
    expect(reply.text).toBe(plain.text);
  });

  test('C5: a 304 costs the store nothing while the copy is fresh', async () => {
    const { ask, etag } = await read(endpoint);
    const before = gateway.store.calls();
    expectNotModified(await ask({ 'if-none-match': etag }));
    expect(gateway.store.calls()).toBe(before);
  });
});

test('C5: each coding has an ETag of its own, and a 304 is only for the coding that would be sent', async () => {
  const { ask } = await read(GET_REPORT, LONG_TITLE);
  const etags = new Map<string, string>();
  for (const coding of ['identity', 'br', 'zstd', 'gzip']) {
    etags.set(coding, (await ask({ 'accept-encoding': coding })).headers.etag ?? '');
  }
  expect(new Set(etags.values()).size).toBe(4);
  for (const [coding, etag] of etags) {
    for (const [other, otherEtag] of etags) {
      const reply = await ask({ 'accept-encoding': coding, 'if-none-match': otherEtag });
      expect(reply.status).toBe(coding === other ? 304 : 200);
      expect(reply.headers.etag).toBe(etag);
    }
  }
});

test('C5: the ETag is of the bytes: it goes on when the record is the same again, and changes with it', async () => {
  const { subject, ask, etag } = await read(GET_CALL);
  gateway.clock.advance(48 * 3_600_000);
  const again = await ask({ 'if-none-match': etag });
  expect(again.status).toBe(304);
  putSubject(gateway.store, subject, { title: 'Another title' });
  gateway.clock.advance(48 * 3_600_000);
  const changed = await ask({ 'if-none-match': etag });
  expect(changed.status).toBe(200);
  expect(changed.headers.etag).not.toBe(etag);
});

test('C5: the two forms of one record have ETags of their own', async () => {
  const { subject, etag } = await read(GET_REPORT);
  const key = await keyFor(gateway, subject);
  const call = await gateway.get(GET_CALL.path(subject), { key, headers: { 'if-none-match': etag } });
  expect(call.status).toBe(200);
});

test.each([
  ['revoked scope', { scopes: ['coaching.read'] as const }],
  ['another workspace', { workspaceIds: ['99999999-9999-4999-8999-999999999999'] }],
])('C5: compared only after authorization: %s gets no 304, not even for any at all', async (_what, wanted) => {
  const { subject, etag } = await read(GET_REPORT);
  const key = await keyFor(gateway, subject, wanted);
  for (const field of [etag, '*']) {
    const report = await gateway.get(GET_REPORT.path(subject), { key, headers: { 'if-none-match': field } });
    expect(report.status).toBe(403);
    expect(report.text).toBe(GET_REPORT.forbidden);
  }
});

test('C5: without a key there is no 304 either', async () => {
  const { subject, etag } = await read(GET_REPORT);
  const reply = await gateway.get(GET_REPORT.path(subject), { headers: { 'if-none-match': etag } });
  expect(reply.status).toBe(401);
});
