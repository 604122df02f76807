import { describe, expect, test } from 'vitest';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { forFile } from '../../support/opened.ts';
import { ENDPOINTS, type EndpointRow, GET_CALL, GET_REPORT } from './endpoints.ts';
import { cachingOf, RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { keyFor, newSubject, putSubject, readerOf } from './subject.ts';

const gateway = await forFile(startTestGateway());

/** A title that makes every body longer than what is worth compressing. */
const LONG_TITLE = 'Discovery call with Northwind '.repeat(60);

/** Somebody who has read a record, and asks again with If-None-Match. */
async function read(endpoint: EndpointRow, title = 'Short') {
  const subject = putSubject(gateway.store, newSubject(), { title });
  const { key, ask } = await readerOf(gateway, endpoint, { subject });
  const { etag = '' } = (await ask()).headers;
  const match = (field: string, method = 'GET') => ask({ headers: { 'if-none-match': field }, method });
  return { subject, key, ask, etag, match };
}

function expectNotModified(reply: Reply): void {
  expect([reply.status, reply.bytes.length]).toEqual([304, 0]);
  expect(reply.headers['content-encoding']).toBeUndefined();
}

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test('C5: If-None-Match that names the ETag gets a 304 with the headers of the 200, without a call to the store', async () => {
    const { ask, etag, match } = await read(endpoint);
    expect(etag).toMatch(/^"[A-Za-z0-9_-]{27}"$/);
    const before = gateway.store.calls();
    const [whole, short] = [await ask(), await match(etag)];
    expectNotModified(short);
    expect(whole.status).toBe(200);
    expect(cachingOf(short)).toEqual(cachingOf(whole));
    expect(Object.keys(cachingOf(short))).toHaveLength(4);
    expect(Object.keys(rateLimitOf(short))).toEqual(RATE_LIMIT_NAMES);
    expect(gateway.store.calls()).toBe(before);
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
    const { etag, match } = await read(endpoint);
    expectNotModified(await match(fieldOf(etag)));
    expectNotModified(await match(fieldOf(etag), 'HEAD'));
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
    const { etag, match } = await read(endpoint);
    const { status, headers } = await match(fieldOf(etag));
    expect([status, headers.etag]).toEqual([200, etag]);
  });

  test('C5: If-Modified-Since, If-Match and Range change nothing', async () => {
    const { ask } = await read(endpoint);
    const headers = { 'if-modified-since': new Date().toUTCString(), 'if-match': '"x"', range: 'bytes=0-1' };
    const [plain, reply] = [await ask(), await ask({ headers })];
    expect([reply.status, reply.text]).toEqual([200, plain.text]);
  });
});

test('C5: each coding has an ETag of its own, and a 304 is only for the coding that would be sent', async () => {
  const { ask } = await read(GET_REPORT, LONG_TITLE);
  const etags = new Map<string, string>();
  for (const coding of ['identity', 'br', 'zstd', 'gzip']) {
    etags.set(coding, (await ask({ headers: { 'accept-encoding': coding } })).headers.etag ?? '');
  }
  expect(new Set(etags.values()).size).toBe(4);
  for (const [coding, etag] of etags) {
    for (const [other, otherEtag] of etags) {
      const reply = await ask({ headers: { 'accept-encoding': coding, 'if-none-match': otherEtag } });
      expect([reply.status, reply.headers.etag]).toEqual([coding === other ? 304 : 200, etag]);
    }
  }
});

test('C5: the ETag is of the bytes: it goes on when the record is the same again, and changes with it', async () => {
  const { subject, etag, match } = await read(GET_CALL, 'A title');
  gateway.clock.advance(48 * 3_600_000);
  expect((await match(etag)).status).toBe(304);
  putSubject(gateway.store, subject, { title: 'Another title' });
  gateway.clock.advance(48 * 3_600_000);
  const changed = await match(etag);
  expect(changed.status).toBe(200);
  expect(changed.headers.etag).not.toBe(etag);
});

test('C5: the two forms of one record have ETags of their own', async () => {
  const { subject, key, etag } = await read(GET_REPORT);
  const call = await gateway.get(GET_CALL.path(subject), { key, headers: { 'if-none-match': etag } });
  expect(call.status).toBe(200);
});

test.each([
  ['no key', null, 401],
  ['a scope that was taken away', { scopes: ['coaching.read'] as const }, 403],
  ['another workspace', { workspaceIds: ['99999999-9999-4999-8999-999999999999'] }, 403],
])('C5: compared only after authorization: %s gets no 304, not even for any at all', async (_what, wanted, status) => {
  const { subject, etag } = await read(GET_REPORT);
  const credential = wanted === null ? {} : { key: await keyFor(gateway, subject, wanted) };
  for (const field of [etag, '*']) {
    const report = await gateway.get(GET_REPORT.path(subject), { ...credential, headers: { 'if-none-match': field } });
    expect(report.status).toBe(status);
  }
});
