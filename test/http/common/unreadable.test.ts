/** What no layer of the application sees: Node answers it, and in the public form all the same. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
});
afterAll(() => gateway.close());

test.each([
  ['a header line that is none', 'GET /v1 HTTP/1.1\r\nHost: a\r\nno header\r\n\r\n', 400, 'Bad Request'],
  ['no HTTP at all', 'hello\r\n\r\n', 400, 'Bad Request'],
  [
    'too large a header',
    `GET /v1 HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    431,
    'Request Header Fields Too Large',
  ],
])('A3, S1: %s is answered with a body and a request id', async (_, bytes, status, reason) => {
  const reply = await gateway.raw(bytes);
  expect(reply.status).toBe(status);
  expect(reply.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  expect(reply.headers['vary']).toBe('Authorization, Accept-Encoding');
  expect(JSON.parse(reply.body)).toEqual({ error: `The request could not be read: ${reason}.` });
});

test('A2: CONNECT is answered with 405', async () => {
  const reply = await gateway.raw('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n');
  expect(reply.status).toBe(405);
  expect(reply.headers['allow']).toBe('GET, HEAD');
  expect(JSON.parse(reply.body)).toEqual({ error: 'CONNECT is not allowed here.' });
});

test('A3: an expectation that is not known is ignored', async () => {
  const reply = await gateway.raw('GET /v2/calls HTTP/1.1\r\nHost: a\r\nExpect: miracles\r\nConnection: close\r\n\r\n');
  expect(reply.status).toBe(401);
  expect(reply.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
});
