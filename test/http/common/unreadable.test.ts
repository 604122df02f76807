/** Input that no layer of the application sees: Node rejects it, and the answer still has the public form. */
import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../../support/records.ts';

const TOO_LARGE = 'The request could not be read: its address and headers are too large.';

const gateway = await forFile(startTestGateway());

test.each([
  ['a header line that is none', 'GET /v1 HTTP/1.1\r\nHost: a\r\nno header\r\n\r\n', 'it is not proper HTTP'],
  ['no HTTP at all', 'hello\r\n\r\n', 'it is not proper HTTP'],
  [
    'too large a header',
    `GET /v1 HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
    'its address and headers are too large',
  ],
  [
    'too long an address',
    `GET /v1?${'x'.repeat(20_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
    'its address and headers are too large',
  ],
])('A3, S1: %s is answered with 400, a body and a request id', async (_, bytes, reason) => {
  const reply = await gateway.raw(bytes);
  expect(reply.status).toBe(400);
  expect(reply.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  expect(reply.headers['vary']).toBe('Authorization, Accept-Encoding');
  expect(JSON.parse(reply.body)).toEqual({ error: `The request could not be read: ${reason}.` });
});

test.each([
  ['/v2/calls', { error: { message: TOO_LARGE } }],
  ['/v2/calls/ev_1?x=1', { error: { message: TOO_LARGE } }],
  [`/v1/workspaces/${WORKSPACE_A}/reports?page=1`, { reports: [], error: TOO_LARGE }],
  [`/v1/workspaces/${WORKSPACE_A}/reports/ev_1`, { error: TOO_LARGE }],
  ['/elsewhere', { error: TOO_LARGE }],
])('S3: what could not be read of %s is answered in the form of its surface', async (address, body) => {
  const reply = await gateway.raw(`GET ${address} HTTP/1.1\r\nHost: a\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`);
  expect([reply.status, JSON.parse(reply.body)]).toEqual([400, body]);
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

test.each([
  ['no Host header', 'GET /v2/calls HTTP/1.1\r\n\r\n'],
  ['two Host headers', 'GET /v2/calls HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n'],
])('A3: %s is answered with a body and a request id', async (_, bytes) => {
  const reply = await gateway.raw(bytes);
  expect(reply.status).toBe(400);
  expect(reply.headers['x-request-id']).toMatch(/^[A-Za-z0-9._-]{1,64}$/);
  expect(JSON.parse(reply.body)).toEqual({ error: { message: 'The request must have one Host header.' } });
});

test('HTTP/1.0 needs no Host header', async () => {
  const reply = await gateway.raw('GET /v2/calls HTTP/1.0\r\n\r\n');
  expect(reply.status).toBe(401);
});

test('a request gets its own answer, whatever follows it on the connection', async () => {
  gateway.store.put({ evaluations: [anEvaluation()] });
  const key = await gateway.issueKey();
  const gate = gateway.store.hold();
  const reply = gateway.raw(
    `GET /v2/calls/${EVALUATION_ID} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\nthis is no HTTP\r\n\r\n`,
  );
  await gateway.store.waitForCalls(1, 'evaluation');
  gate.release();
  expect((await reply).status).toBe(200);
});
