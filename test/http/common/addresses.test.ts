import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type RawReply, startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, LIST_CALLS, TEXTS } from './endpoints.ts';
import { RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { keyFor, newSubject, putSubject, readerOf } from './subject.ts';

const gateway = await forFile(startTestGateway());

const NEW_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const V1 = JSON.stringify({ error: TEXTS.noAddress });
const V2 = JSON.stringify({ error: { message: TEXTS.noAddress } });

describe('A1: the addresses', () => {
  test.each(ENDPOINTS)('$name answers below its prefix, and nowhere else', async (endpoint) => {
    const { path, key, ask } = await readerOf(gateway, endpoint);
    expect((await ask()).status).toBe(200);
    const other = endpoint.surface === 'v1' ? '/v2' : '/v1';
    for (const wrong of [path.slice(3), other + path.slice(3), `/v3${path.slice(3)}`, `${path}/`, `/${path}`]) {
      expect((await gateway.get(wrong, { key, isUndocumented: true })).status).toBe(404);
    }
  });

  test.each(['/openapi.json', '/docs'])('%s needs no key, and counts against none', async (path) => {
    const key = await keyFor(gateway, newSubject());
    for (const credential of [{}, { key }, { key: 'evg_wrong' }]) {
      const reply = await gateway.get(path, { ...credential, isUndocumented: true });
      expect([reply.status, rateLimitOf(reply)]).toEqual([200, {}]);
    }
  });
});

describe('A2: an unknown path is a 404 in the form of its surface', () => {
  test.each([
    ...[
      '/v1',
      '/v1/',
      '/v1/reports',
      '/v1/workspaces',
      '/v1/workspaces/x',
      '/v1/workspaces/x/reports/',
      '/v1/workspaces//reports',
      '/v1/workspaces/x/Reports',
      '/v1/workspaces/x/reports/y/rubric',
      '/v1/workspaces/x/reports/y/transcript/z',
      '/v2%2fcalls',
      '/v2x',
      '/V2/calls',
      '//',
      '//v2/calls',
      '/internal/v1/evaluations',
      '/metrics',
      '/livez',
      '/api/keys',
      '/favicon.ico',
      '/docs/',
      '/docs/../openapi.json',
      '/docs/%2e%2e/package.json',
      '/%',
    ].map((path) => [path, V1] as const),
    ...[
      '/v2',
      '/v2/',
      '/v2/calls/',
      '/v2/calls//transcript',
      '/v2/Calls',
      '/v2/calls/x/deal-insights',
      '/v2/calls/x/transcript/',
      '/v2/scorecards',
      '/v2/scorecards/x',
      '/v2/../v2/calls',
      '/v2/calls;x',
      '/v2/calls%20',
      '/v2/%',
    ].map((path) => [path, V2] as const),
  ])('%s', async (path, body) => {
    const key = await keyFor(gateway, newSubject());
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const { status, text, headers } = await gateway.get(path, { key, method, isUndocumented: true });
      expect([status, headers['x-error-code'], text]).toEqual([404, 'path_unknown', body]);
      expect(headers).toMatchObject({ 'content-type': 'application/json; charset=utf-8', 'cache-control': 'no-store' });
      expect(headers.allow).toBeUndefined();
    }
  });

  test.each(['/v1/none', '/v2/none'])('R2, K8: %s counts for an active key, and needs none', async (path) => {
    const key = await keyFor(gateway, newSubject(), { perMinute: 1, perHour: 9 });
    const [first, second] = [
      await gateway.get(path, { key, isUndocumented: true }),
      await gateway.get(path, { key, isUndocumented: true }),
    ];
    expect([first.status, Object.keys(rateLimitOf(first)), second.status]).toEqual([404, RATE_LIMIT_NAMES, 429]);
    for (const headers of [{}, { authorization: 'Bearer evg_wrong' }, { authorization: 'Basic x' }]) {
      const reply = await gateway.get(path, { headers, isUndocumented: true });
      expect([reply.status, rateLimitOf(reply)]).toEqual([404, {}]);
    }
  });
});

async function askFor(target: string): Promise<RawReply> {
  const key = await keyFor(gateway, putSubject(gateway.store));
  return await gateway.raw(
    `GET ${target} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer ${key}\r\nConnection: close\r\n\r\n`,
  );
}

describe('request targets that are no path (RFC 9112 section 3.2)', () => {
  test.each([
    'http://gateway.example/v2/calls',
    'HTTP://gateway.example:8080/v2/calls',
    'http://user:password@gateway.example/v2/calls',
    'http://[::1]:8080/v2/calls',
    'http://[not-an-address/v2/calls',
    'http://a:99999999/v2/calls',
    'http://%zz/v2/calls',
    'http:///v2/calls',
    '/v2/calls#fragment',
    '/v2/calls?#fragment',
  ])('%s is the address behind its authority', async (target) => {
    const reply = await askFor(target);
    expect(reply.status).toBe(200);
    expect(reply.headers['x-request-id']).toMatch(NEW_ID);
  });

  test.each(['http://', 'http://?', 'http://gateway.example', 'http://[', 'http://gateway.example?x=1', '/#'])(
    '%s is the way to the docs',
    async (target) => {
      const reply = await askFor(target);
      expect([reply.status, reply.headers['location']]).toEqual([302, '/docs']);
      expect(reply.headers['x-request-id']).toMatch(NEW_ID);
    },
  );

  test.each(['*', '//[/v2/calls'])('%s is no address of the API', async (target) => {
    const reply = await askFor(target);
    expect(reply.status).toBe(404);
    expect(reply.body).toBe(V1);
    expect(reply.headers['x-request-id']).toMatch(NEW_ID);
  });
});

describe('A3: on every response', () => {
  const REQUESTS: readonly (readonly [status: number, method: string, path: string, keyed: boolean])[] = [
    [200, 'GET', LIST_CALLS.path(newSubject()), true],
    [200, 'HEAD', LIST_CALLS.path(newSubject()), true],
    [400, 'GET', '/v2/calls?page=0', true],
    [401, 'GET', '/v2/calls', false],
    [403, 'GET', '/v1/workspaces/x/reports', true],
    [404, 'GET', '/v2/calls/none', true],
    [404, 'GET', '/nowhere', false],
    [405, 'POST', '/v2/calls', true],
    [405, 'POST', '/docs', false],
    [200, 'GET', '/openapi.json', false],
    [302, 'GET', '/', false],
    [200, 'GET', '/docs', false],
    [200, 'GET', '/docs/swagger-ui.css', false],
  ];

  test.each(REQUESTS)(
    '%i of %s %s: X-Request-Id, Vary, and the headers that keep browsers from harm',
    async (...request) => {
      const [status, method, path, keyed] = request;
      const key = keyed ? { key: await keyFor(gateway, newSubject()) } : {};
      const reply = await gateway.get(path, { ...key, method, isUndocumented: true });
      expect(reply.status).toBe(status);
      expect(reply.headers['x-request-id']).toMatch(NEW_ID);
      expect(reply.headers.vary).toBe('Authorization, Accept-Encoding');
      expect(reply.headers['x-content-type-options']).toBe('nosniff');
      expect(reply.headers['referrer-policy']).toBe('no-referrer');
      expect(reply.headers['content-security-policy']).toMatch(/^default-src 'none'; .*frame-ancestors 'none'$/);
      for (const telling of ['server', 'x-powered-by', 'access-control-allow-origin', 'set-cookie']) {
        expect(reply.headers[telling]).toBeUndefined();
      }
    },
  );

  test('also on 304, 429 and 500', async () => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject, { perMinute: 2, perHour: 9 });
    const end = gateway.store.fail(500);
    const statuses: unknown[] = [];
    for (let request = 0; request < 3; request += 1) {
      if (request === 1) {
        end();
        gateway.clock.advance(1000);
      }
      const reply = await gateway.get('/v2/calls', { key, headers: { 'if-none-match': '*' } });
      statuses.push(reply.status);
      expect(reply.headers['x-request-id']).toMatch(NEW_ID);
      expect(reply.headers.vary).toBe('Authorization, Accept-Encoding');
    }
    expect(statuses).toEqual([500, 304, 429]);
  });

  test.each(['a', 'A.b_c-9', '0'.repeat(64), '...', 'b5e0c1de-6f0e-4bb4-9a53-6d5a1f0c8e11'])(
    "the client's own X-Request-Id comes back and goes to the store: %s",
    async (id) => {
      const { ask } = await readerOf(gateway, LIST_CALLS);
      const reply = await ask({ headers: { 'x-request-id': id } });
      expect(reply.headers['x-request-id']).toBe(id);
      expect(gateway.store.requests.at(-1)?.headers['x-request-id']).toBe(id);
      const failed = await ask({ query: '?page=0', headers: { 'x-request-id': id } });
      expect(failed.headers['x-request-id']).toBe(id);
    },
  );

  const KEY = `evg_${'a'.repeat(38)}`;
  test.each(['', ' ', '0'.repeat(65), 'a b', 'a,b', 'é', 'a\tb', '<script>', 'a/b', '%41', '{}', 'a;b', "a'b", KEY])(
    'an X-Request-Id that is not of the form, or a key (K2), is replaced, here and to the store: %j',
    async (id) => {
      const { ask } = await readerOf(gateway, LIST_CALLS);
      const reply = await ask({ headers: { 'x-request-id': id } });
      expect(reply.headers['x-request-id']).toMatch(NEW_ID);
      expect(gateway.store.requests.at(-1)?.headers['x-request-id']).toBe(reply.headers['x-request-id']);
    },
  );

  test('two X-Request-Ids are none', async () => {
    const reply = await gateway.raw(
      'GET /v2/calls HTTP/1.1\r\nHost: h\r\nX-Request-Id: a\r\nX-Request-Id: b\r\nConnection: close\r\n\r\n',
    );
    expect(reply.headers['x-request-id']).toMatch(NEW_ID);
  });
});

describe('traceparent', () => {
  const VALID = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

  test.each([
    '',
    'x',
    VALID.toUpperCase(),
    VALID.slice(0, -1),
    `${VALID}-00`,
    `${VALID}, ${VALID}`,
    VALID.replace('4b', 'zz'),
    VALID.replace(/^00/, 'ff'),
    VALID.replace(/[0-9a-f]{32}/, '0'.repeat(32)),
    VALID.replace(/-[0-9a-f]{16}-/, `-${'0'.repeat(16)}-`),
  ])('is left out where it is not of the form: %j', async (traceparent) => {
    const { ask } = await readerOf(gateway, LIST_CALLS);
    await ask({ headers: { traceparent } });
    expect(gateway.store.requests.at(-1)?.resource).toBe('list');
    expect(gateway.store.requests.at(-1)?.headers['traceparent']).toBeUndefined();
  });
});
