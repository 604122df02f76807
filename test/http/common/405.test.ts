import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, errorText, GET_CALL, GET_REPORT } from './endpoints.ts';
import { cachingOf, RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const gateway = await forFile(startTestGateway());

const METHODS = ['POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PURGE', 'QUERY'];

describe.each(ENDPOINTS)('$name', (endpoint) => {
  test.each(METHODS)('A2: %s is not allowed', async (method) => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    const reply = await gateway.get(endpoint.path(subject), { key, method });
    expect(reply.status).toBe(405);
    expect(reply.text).toBe(errorText(endpoint, 405, `The method ${method} is not allowed here; use GET or HEAD.`));
    expect(reply.headers.allow).toBe('GET, HEAD');
    expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
    expect(Object.keys(rateLimitOf(reply))).toEqual(RATE_LIMIT_NAMES);
    expect(gateway.store.calls()).toBe(0);
  });

  test('A2: nor is it without a key, which is not asked for then', async () => {
    const reply = await gateway.get(endpoint.path(newSubject()), { method: 'DELETE' });
    expect(reply.status).toBe(405);
    expect(reply.headers['www-authenticate']).toBeUndefined();
    expect(rateLimitOf(reply)).toEqual({});
  });
});

test('A2: a method that would override another by a header is taken as it is', async () => {
  const subject = putSubject(gateway.store);
  const key = await keyFor(gateway, subject);
  const headers = { 'x-http-method-override': 'DELETE', 'x-method-override': 'POST' };
  const reply = await gateway.get(GET_CALL.path(subject), { key, headers });
  expect(reply.status).toBe(200);
});

test('A2: what a body holds is not looked at', async () => {
  const subject = newSubject();
  const key = await keyFor(gateway, subject);
  const body = '{"page":1}';
  const reply = await gateway.raw(
    `POST ${GET_REPORT.path(subject)} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n` +
      `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  expect(reply.status).toBe(405);
});
