import { describe, expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { type RawReply, startTestGateway } from '../../support/gateway.ts';
import { ENDPOINTS, LIST_CALLS } from './endpoints.ts';
import { cachingOf, RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { keyFor, newSubject, putSubject } from './subject.ts';

const gateway = await forFile(startTestGateway());

const NEW_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const NO_ADDRESS = 'There is no such address in this API. GET /docs describes it.';
const V1 = JSON.stringify({ error: NO_ADDRESS });
const V2 = JSON.stringify({ error: { message: NO_ADDRESS } });

describe('A1: the addresses', () => {
  test.each(ENDPOINTS)('$name answers below its prefix, and nowhere else', async (endpoint) => {
    const subject = putSubject(gateway.store);
    const key = await keyFor(gateway, subject);
    const path = endpoint.path(subject);
    expect((await gateway.get(path, { key })).status).toBe(200);
    const other = endpoint.surface === 'v1' ? '/v2' : '/v1';
    for (const wrong of [path.slice(3), other + path.slice(3), `/v3${path.slice(3)}`, `${path}/`, `/${path}`]) {
      expect((await gateway.get(wrong, { key, isUndocumented: true })).status).toBe(404);
    }
  });

  test.each(['/openapi.json', '/docs'])('%s needs no key, answers HEAD, and counts against none', async (path) => {
    const key = await keyFor(gateway, newSubject());
    for (const credential of [{}, { key }, { key: 'evg_wrong' }]) {
      const reply = await gateway.get(path, { ...credential, isUndocumented: true });
      expect(reply.status).toBe(200);
      expect(rateLimitOf(reply)).toEqual({});
      expect(reply.headers.vary).toBe('Authorization, Accept-Encoding');
    }
    const head = await gateway.get(path, { method: 'HEAD', isUndocumented: true });
    expect(head.status).toBe(200);
    expect(head.bytes.length).toBe(0);
  });

  test.each(['/openapi.json', '/docs'])('A2: other methods on %s are 405 with Allow', async (path) => {
    const reply = await gateway.get(path, { method: 'POST', isUndocumented: true });
    expect(reply.status).toBe(405);
    expect(reply.text).toBe('{"error":"The method POST is not allowed here; use GET or HEAD."}');
    expect(reply.headers.allow).toBe('GET, HEAD');
  });
});

describe('A2: an unknown path is a 404 in the form of its surface', () => {
  test.each([
    ['/v1', V1],
    ['/v1/', V1],
    ['/v1/reports', V1],
    ['/v1/workspaces', V1],
    ['/v1/workspaces/x', V1],
    ['/v1/workspaces/x/reports/', V1],
    ['/v1/workspaces//reports', V1],
    ['/v1/workspaces/x/Reports', V1],
    ['/v1/workspaces/x/reports/y/rubric', V1],
    ['/v1/workspaces/x/reports/y/transcript/z', V1],
    ['/v2', V2],
    ['/v2/', V2],
    ['/v2/calls/', V2],
    ['/v2/calls//transcript', V2],
    ['/v2/Calls', V2],
    ['/v2/calls/x/deal-insights', V2],
    ['/v2/calls/x/transcript/', V2],
    ['/v2/scorecards', V2],
    ['/v2/scorecards/x', V2],
    ['/v2/../v2/calls', V2],
    ['/v2/calls;x', V2],
    ['/v2/calls%20', V2],
    ['/v2%2fcalls', V1],
    ['/v2x', V1],
    ['/V2/calls', V1],
    ['//', V1],
    ['//v2/calls', V1],
    ['/internal/v1/evaluations', V1],
    ['/metrics', V1],
    ['/livez', V1],
    ['/api/keys', V1],
    ['/favicon.ico', V1],
    ['/docs/', V1],
    ['/docs/../openapi.json', V1],
    ['/docs/%2e%2e/package.json', V1],
    ['/%', V1],
    ['/v2/%', V2],
  ])('%s', async (path, body) => {
    const key = await keyFor(gateway, newSubject());
    for (const method of ['GET', 'POST', 'OPTIONS']) {
      const reply = await gateway.get(path, { key, method, isUndocumented: true });
      expect(reply.status).toBe(404);
      expect(reply.text).toBe(body);
      expect(reply.headers['content-type']).toBe('application/json; charset=utf-8');
      expect(reply.headers.allow).toBeUndefined();
      expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
    }
  });

  test.each(['/v1/none', '/v2/none'])(
    'R2, K8: %s counts for an active key, and is a 429 past its limit',
    async (path) => {
      const key = await keyFor(gateway, newSubject(), { perMinute: 1, perHour: 9 });
      const [first, second] = [
        await gateway.get(path, { key, isUndocumented: true }),
        await gateway.get(path, { key, isUndocumented: true }),
      ];
      expect(first.status).toBe(404);
      expect(Object.keys(rateLimitOf(first))).toEqual(RATE_LIMIT_NAMES);
      expect(second.status).toBe(429);
    },
  );

  test.each(['/v1/none', '/v2/none'])('%s needs no key to be a 404', async (path) => {
    for (const headers of [{}, { authorization: 'Bearer evg_wrong' }, { authorization: 'Basic x' }]) {
      const reply = await gateway.get(path, { headers, isUndocumented: true });
      expect(reply.status).toBe(404);
      expect(rateLimitOf(reply)).toEqual({});
    }
  });
});

async function ask(target: string): Promise<RawReply> {
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
    const reply = await ask(target);
    expect(reply.status).toBe(200);
    expect(reply.headers['x-request-id']).toMatch(NEW_ID);
  });

  test.each(['http://', 'http://?', 'http://gateway.example', 'http://[', 'http://gateway.example?x=1', '/#'])(
    '%s is the way to the docs',
    async (target) => {
      const reply = await ask(target);
      expect([reply.status, reply.headers['location']]).toEqual([302, '/docs']);
      expect(reply.headers['x-request-id']).toMatch(NEW_ID);
    },
  );

  test.each(['*', '//[/v2/calls'])('%s is no address of the API', async (target) => {
    const reply = await ask(target);
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
      const subject = putSubject(gateway.store);
      const key = await keyFor(gateway, subject);
      const reply = await gateway.get('/v2/calls', { key, headers: { 'x-request-id': id } });
      expect(reply.headers['x-request-id']).toBe(id);
      expect(gateway.store.requests.at(-1)?.headers['x-request-id']).toBe(id);
      const failed = await gateway.get('/v2/calls/none', { key, headers: { 'x-request-id': id } });
      expect(failed.headers['x-request-id']).toBe(id);
    },
  );

  test.each(['', ' ', '0'.repeat(65), 'a b', 'a,b', 'é', 'a\tb', '<script>', 'a/b', '%41', '{}', 'a;b', "a'b"])(
    'an X-Request-Id that is not of the form is replaced, here and to the store: %j',
    async (id) => {
      const subject = putSubject(gateway.store);
      const key = await keyFor(gateway, subject);
      const reply = await gateway.get('/v2/calls', { key, headers: { 'x-request-id': id } });
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

  test('is passed on to the store as it came', async () => {
    const key = await keyFor(gateway, putSubject(gateway.store));
    await gateway.get('/v2/calls', { key, headers: { traceparent: VALID } });
    expect(gateway.store.requests.at(-1)?.headers['traceparent']).toBe(VALID);
  });

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
    const key = await keyFor(gateway, putSubject(gateway.store));
    await gateway.get('/v2/calls', { key, headers: { traceparent } });
    expect(gateway.store.requests.at(-1)?.resource).toBe('list');
    expect(gateway.store.requests.at(-1)?.headers['traceparent']).toBeUndefined();
  });
});

test('nothing else of what the client sends reaches the store', async () => {
  const key = await keyFor(gateway, putSubject(gateway.store));
  const headers = {
    cookie: 'session=secret',
    'x-forwarded-for': '203.0.113.9',
    'user-agent': 'secret-agent',
    referer: 'https://secret.example/',
    'accept-language': 'xx',
    'x-secret': 'secret',
    'cache-control': 'no-cache',
    'if-none-match': '"secret"',
    baggage: 'secret=1',
    tracestate: 'secret=1',
  };
  await gateway.get('/v2/calls?search=x', { key, headers });
  const seen = gateway.store.requests.at(-1);
  expect(Object.keys(seen?.headers ?? {}).toSorted()).toEqual([
    'accept',
    'accept-encoding',
    'authorization',
    'connection',
    'host',
    'user-agent',
    'x-request-id',
  ]);
  expect(seen?.headers.authorization).toBe(`Bearer ${gateway.store.token}`);
  expect(seen?.headers['user-agent']).toBe('evalgate');
});
