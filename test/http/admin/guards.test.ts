/** The guards that each request to the admin listener passes before an endpoint. */
import { connect, Server } from 'node:net';
import { describe, expect, test, vi } from 'vitest';
import { auditOf, logOf, messageOf, readinessOf, TOKENS } from '../../support/admin.ts';
import { forFile, forTest } from '../../support/opened.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { WORKSPACE_A } from '../../support/records.ts';
import { createStoreServer } from '../../support/store-server.ts';

const ELSEWHERE = { ADMIN_TOKEN: 't', ADMIN_HOST: '0.0.0.0', ADMIN_ALLOWED_HOSTS: 'Admin.internal,fd00::1' };
const open = await forFile(startTestGateway());
const closed = await forFile(startTestGateway({ env: TOKENS }));
const elsewhere = await forFile(startTestGateway({ env: ELSEWHERE }));

const PROXIED = { TRUSTED_PROXIES: '127.0.0.1', ADMIN_ALLOWED_HOSTS: 'ops.example' };
const proxied = await forFile(startTestGateway({ env: PROXIED }));

type Headers = Readonly<Record<string, string>>;
const get = (headers: Headers) => open.adminRaw('GET', '/api/keys', { headers });
const getElsewhere = (host: string) =>
  elsewhere.adminRaw('GET', '/api/keys', { headers: { host, authorization: 'Bearer t' } });
const getClosed = (path: string, headers: Headers = {}) => closed.adminRaw('GET', path, { headers });
const post = (path: string, body: string | Buffer, headers: Headers = {}) =>
  open.adminRaw('POST', path, { headers: { 'content-type': 'application/json', ...headers }, body });
const postClosed = async (headers: Headers, body: string): Promise<number> =>
  (await closed.adminRaw('POST', '/api/keys', { headers, body })).status;

const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

describe('the Host header', () => {
  test.each(['localhost', 'LocalHost:1', '127.0.0.1', '127.8.9.10:65535', '[::1]', '[::1]:8081'])(
    '%s is loopback and passes',
    async (host) => {
      expect((await get({ host })).status).toBe(200);
    },
  );

  test.each([
    'evil.example:8081',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'localhost.',
    'localhost@evil.example',
    'user@localhost',
    '127.0.0.256',
    '128.0.0.1',
    '[::2]',
    '::1',
    '[localhost]',
    '0.0.0.0',
    'localhost:80:80',
    'localhost:http',
    'localhost:123456',
    'localhost/x',
    'localhost?x',
  ])('%j is refused with 403', async (host) => {
    const answer = await get({ host });
    expect(answer.status).toBe(403);
    expect(messageOf(answer)).toBe(
      `The Host header ${JSON.stringify(host)} is not one of this listener's. Allowed are localhost, 127.0.0.0/8, [::1], with any port. Use one of them, or configure the name under which the admin listener is reached.`,
    );
    expect(answer.headers).toMatchObject(SECURITY_HEADERS);
  });

  test('a configured name passes with any port and in any case, and loopback still does', async () => {
    for (const host of ['admin.INTERNAL:9000', '[fd00::1]:9000', 'localhost']) {
      expect((await getElsewhere(host)).status).toBe(200);
    }
    const refused = await getElsewhere('x.admin.internal');
    expect(refused.status).toBe(403);
    expect(messageOf(refused)).toContain('[::1], admin.internal, fd00::1, with any port');
  });

  test.each([
    ['none in HTTP/1.0', 'GET /api/keys HTTP/1.0\r\n\r\n', 403, 'The Host header (none) is not one of'],
    ['none in HTTP/1.1', 'GET /api/keys HTTP/1.1\r\n\r\n', 400, 'The request must have one Host header.'],
    ['no HTTP', 'hello\r\n\r\n', 400, '{"error":{"message":"'],
  ])('%s is refused in the same form', async (_, bytes, status, text) => {
    const answer = await open.adminBytes(bytes);
    expect([answer.status, answer.body]).toEqual([status, expect.stringContaining(text)]);
  });
});

describe('probes', () => {
  const { host } = new URL(open.adminUrl);
  test.each([
    ['no Host', 'GET', '1.1', ''],
    ['an empty Host', 'GET', '1.1', 'Host:\r\n'],
    ['a foreign name', 'GET', '1.1', 'Host: evil.example\r\n'],
    ['an address of a pod', 'GET', '1.1', 'Host: 10.1.2.3:8081\r\n'],
    ['something that is no host', 'GET', '1.1', 'Host: a b/c@d:x\r\n'],
    ['two hosts', 'GET', '1.1', 'Host: a\r\nHost: b\r\n'],
    ['HTTP/1.0', 'GET', '1.0', ''],
    ["HAProxy's default check", 'OPTIONS', '1.0', ''],
    ['OPTIONS under a foreign name', 'OPTIONS', '1.1', 'Host: balancer.example\r\n'],
    ['HEAD', 'HEAD', '1.1', ''],
    [
      'a page of another origin',
      'GET',
      '1.1',
      `Host: ${host}\r\nOrigin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n`,
    ],
    ['a wrong token', 'GET', '1.1', `Host: ${host}\r\nAuthorization: Bearer wrong\r\n`],
  ] as const)('are answered with %s', async (_, method, version, headers) => {
    for (const gateway of [open, closed, elsewhere]) {
      for (const path of ['/livez', '/readyz', '/readyz?verbose']) {
        const request = `${method} ${path} HTTP/${version}\r\n${headers}Connection: close\r\n\r\n`;
        const { status, body } = await gateway.adminBytes(request);
        const text = path === '/livez' ? '"alive"' : '"status": "ready"';
        expect([path, status, body]).toEqual([path, 200, expect.stringContaining(method === 'HEAD' ? '' : text)]);
      }
    }
  });

  test('have no method that changes anything, and no other path is as open', async () => {
    for (const request of [
      'GET /api/keys HTTP/1.0',
      'GET / HTTP/1.0',
      'OPTIONS /metrics HTTP/1.0',
      'GET /livez/x HTTP/1.0',
      'GET /readyz/../api/keys HTTP/1.0',
    ]) {
      expect([request, (await open.adminBytes(`${request}\r\n\r\n`)).status]).toEqual([request, 403]);
    }
    expect((await open.adminBytes('POST /livez HTTP/1.0\r\n\r\n')).status).toBe(405);
    expect((await open.adminBytes('GET /livezz HTTP/1.1\r\n\r\n')).status).toBe(400);
  });
});

describe('the origin that a browser reports', () => {
  test.each([
    ['http://localhost:8081', 'LOCALHOST:8081'],
    ['https://localhost:8081', 'localhost:8081'],
    ['http://127.0.0.1', '127.0.0.1'],
  ])('Origin %s is own under Host %s', async (origin, host) => {
    expect((await get({ origin, host })).status).toBe(200);
  });

  test.each([
    'http://localhost:3000',
    'http://localhost',
    'http://127.0.0.1:8081',
    'http://localhost:8081.evil.example',
    'ftp://localhost:8081',
    'null',
  ])('Origin %j is foreign under Host localhost:8081: 403, on reads too', async (origin) => {
    const answer = await get({ origin, host: 'localhost:8081' });
    expect([answer.status, messageOf(answer)]).toEqual([
      403,
      `The Origin ${JSON.stringify(origin)} is foreign. Only pages of this listener itself (http://localhost:8081) may call it from a browser.`,
    ]);
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });

  test.each([
    ['https://ops.example:8443', 'ops.example:8443', undefined],
    ['https://ops.example', 'ops.example:443', undefined],
    ['http://ops.example', 'ops.example:80', undefined],
    // The proxy has dropped the port, or has put the name of this listener in the place of its own.
    ['https://ops.example:8443', 'ops.example', 'ops.example:8443'],
    ['https://ops.example:8443', '127.0.0.1:8081', 'ops.example:8443'],
    ['https://ops.example:8443', '127.0.0.1:8081', 'evil.example, OPS.example:8443'],
  ])(
    'behind a proxy on another port: Origin %s is own under Host %s, X-Forwarded-Host %s',
    async (origin, host, forwarded) => {
      const headers = { origin, host, ...(forwarded !== undefined && { 'x-forwarded-host': forwarded }) };
      expect((await proxied.adminRaw('GET', '/api/keys', { headers })).status).toBe(200);
    },
  );

  test.each([
    ['a name that is not allowed', 'https://evil.example', '127.0.0.1:8081', 'evil.example'],
    ['another port', 'https://ops.example:9443', 'ops.example', 'ops.example:8443'],
    [
      'what a client before the proxy has written',
      'https://ops.example:1',
      '127.0.0.1',
      'ops.example:1, ops.example:2',
    ],
  ])('X-Forwarded-Host makes %s no own origin', async (_, origin, host, forwarded) => {
    const headers = { origin, host, 'x-forwarded-host': forwarded };
    expect((await proxied.adminRaw('GET', '/api/keys', { headers })).status).toBe(403);
  });

  test('X-Forwarded-Host counts from trusted proxies only, and never in place of Host', async () => {
    const headers = { origin: 'https://admin.internal:8443', 'x-forwarded-host': 'admin.internal:8443' };
    const stranger = { ...headers, host: 'admin.internal', authorization: 'Bearer t' };
    expect((await elsewhere.adminRaw('GET', '/api/keys', { headers: stranger })).status).toBe(403);
    const rebound = { host: 'evil.example', 'x-forwarded-host': 'ops.example' };
    expect((await proxied.adminRaw('GET', '/api/keys', { headers: rebound })).status).toBe(403);
  });

  test.each(['same-origin', 'none'])('Sec-Fetch-Site %s passes', async (site) => {
    expect((await get({ 'sec-fetch-site': site })).status).toBe(200);
  });

  test.each(['same-site', 'cross-site', 'anything'])('Sec-Fetch-Site %s is 403', async (site) => {
    const answer = await get({ 'sec-fetch-site': site });
    expect([answer.status, messageOf(answer)]).toEqual([
      403,
      `Sec-Fetch-Site is "${site}": another site made this request. Allowed are same-origin and none. Open the address in the browser's address bar.`,
    ]);
  });

  test('a foreign page changes nothing, even with a right token', async () => {
    const body = { name: 'x', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };
    expect((await closed.admin('POST', '/api/keys', body, { origin: 'http://evil.example' })).status).toBe(403);
    expect((await closed.admin('GET', '/api/keys')).json).toEqual({ keys: [], nextCursor: null });
    expect(await auditOf(closed)).toEqual([]);
  });
});

describe('request bodies', () => {
  test.each(['POST', 'PUT', 'PATCH'])('%s without application/json is 415, whatever the path', async (method) => {
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      'application/json; charset=latin1',
    ]) {
      const answer = await open.adminRaw(method, '/nowhere', { headers: { 'content-type': type }, body: '{}' });
      expect([answer.status, messageOf(answer)]).toEqual([
        415,
        `The Content-Type is ${JSON.stringify(type)}; ${method} takes application/json in UTF-8 only. Send the header "Content-Type: application/json".`,
      ]);
    }
    const none = await open.adminRaw(method, '/nowhere');
    expect([none.status, messageOf(none)]).toEqual([415, expect.stringContaining('The Content-Type is (none);')]);
  });

  test.each(['Application/JSON; charset=UTF-8', 'application/json;charset="utf-8"'])('%s is JSON', async (type) => {
    const answer = await post('/api/keys', '{}', { 'content-type': type });
    expect([answer.status, messageOf(answer)]).toEqual([400, expect.stringContaining('The body has 3 faults')]);
  });

  test('a compressed body is 415', async () => {
    const answer = await post('/api/keys', '{}', { 'content-encoding': 'gzip' });
    expect([answer.status, messageOf(answer)]).toEqual([
      415,
      'The Content-Encoding is "gzip"; bodies are taken uncompressed only. Send the body as it is, without that header.',
    ]);
  });

  test.each([
    ['/api/keys', 65_536],
    ['/api/keys/import', 1_048_576],
  ])('%s takes %i bytes and answers 413 to one more, declared or not', async (path, limit) => {
    const full = await post(path, '{}'.padEnd(limit));
    expect([full.status, messageOf(full)]).toEqual([400, expect.stringMatching(/^The body has [13] faults?; nothing/)]);
    for (const framing of [{}, { 'transfer-encoding': 'chunked' }]) {
      const over = await post(path, '{}'.padEnd(limit + 1), framing);
      expect([over.status, messageOf(over)]).toEqual([
        413,
        `The body is larger than ${limit} bytes, the most this endpoint takes. Send less at once.`,
      ]);
    }
  });

  test.each([
    ['{"name": ', 'The body of 9 bytes is not valid JSON. Send one JSON object.'],
    ['', 'The body is empty. Send a JSON object.'],
    [Buffer.from([0x22, 0xff, 0x22]), 'The body is not valid UTF-8. Send JSON in UTF-8.'],
    ['[1]', 'The body has 1 fault; nothing was changed.\n- the body: given an array of 1; allowed: a JSON object'],
    ['['.repeat(60_000), 'The body of 60000 bytes is not valid JSON. Send one JSON object.'],
    [
      '['.repeat(30_000) + ']'.repeat(30_000),
      'The body has 1 fault; nothing was changed.\n- the body: given an array of 1; allowed: a JSON object',
    ],
  ])('the body %# is 400 and says why', async (body, message) => {
    const answer = await post('/api/keys', body);
    expect([answer.status, messageOf(answer)]).toEqual([400, message]);
  });

  const HEAD = 'POST /api/keys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n';
  test.each([
    ['that ends before all of it has come', `${HEAD}Content-Length: 50\r\n\r\n{`],
    ['that breaks the protocol', `${HEAD}Transfer-Encoding: chunked\r\n\r\nno chunk\r\n`],
  ])('a body %s is refused, and the log holds none of its bytes', async (_, bytes) => {
    const before = logOf(closed, 'admin request refused').length;
    const { hostname, port } = new URL(closed.adminUrl);
    const socket = connect(Number(port), hostname, () => {
      socket.end(bytes.replace('\r\n', '\r\nAuthorization: Bearer correct-horse\r\n'));
    });
    socket.resume().on('error', () => {});
    await vi.waitFor(() =>
      expect(logOf(closed, 'admin request refused').slice(before)).toEqual([
        {
          level: 'warn',
          method: 'POST',
          route: '/api/keys',
          status: 400,
          who: 'alice',
          address: '127.0.0.1',
          reason: 'unreadable body',
        },
      ]),
    );
    socket.destroy();
    expect((await closed.admin('GET', '/livez')).json).toEqual({ status: 'alive' });
    const log = closed.logLines.join('');
    expect(log).not.toContain('correct-horse');
    expect(log).not.toContain('no chunk');
    expect(log).not.toContain('"level":"error"');
  });
});

describe('tokens', () => {
  test.each([
    '/metrics',
    '/api/whoami',
    '/api/config',
    '/api/keys',
    '/api/audit',
    '/api/cache',
    '/api/cache/pulse',
    '/nowhere',
    '/livez/',
  ])('%s without one is 401 and names the scheme', async (path) => {
    const answer = await getClosed(path);
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="evalgate admin"');
    expect(messageOf(answer)).toBe(
      'No admin token was given. Send one of the tokens of ADMIN_TOKEN as "Authorization: Bearer <token>".',
    );
    expect(answer.headers).toMatchObject(SECURITY_HEADERS);
  });

  test.each([
    'Bearer correct-horseX',
    'Bearer orrect-horse',
    'Bearer Correct-horse',
    'Bearer alice',
    'Bearer alice=correct-horse',
    'Bearer',
    'Bearer ',
    'Basic correct-horse',
    'correct-horse',
    'Bearer correct-horse correct-horse',
  ])('the credentials %j are 401, and stand in no log', async (authorization) => {
    const before = logOf(closed, 'admin request refused').length;
    const answer = await getClosed('/api/keys', { authorization });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="evalgate admin", error="invalid_token"');
    expect(messageOf(answer)).not.toContain('horse');
    expect(logOf(closed, 'admin request refused').slice(before)).toEqual([
      {
        level: 'warn',
        method: 'GET',
        route: null,
        status: 401,
        who: null,
        address: '127.0.0.1',
        reason: 'unknown admin token',
      },
    ]);
    expect(closed.logLines.join('')).not.toContain('horse');
  });

  test.each(['Bearer correct-horse', 'bEARER  correct-horse ', 'Bearer battery-staple'])('%j passes', async (given) => {
    expect((await getClosed('/api/keys', { authorization: given })).status).toBe(200);
  });

  test('/livez and /readyz need none', async () => {
    expect([(await getClosed('/livez')).status, (await getClosed('/readyz')).status]).toEqual([200, 200]);
  });

  test('nobody unknown gets a body read: 401 comes before 413, 415 and 400, after 403', async () => {
    const json = { 'content-type': 'application/json' };
    expect([
      await postClosed(json, 'x'.repeat(70_000)),
      await postClosed(json, '{'),
      await postClosed({}, '{'),
      await postClosed({ host: 'evil.example' }, ''),
    ]).toEqual([401, 401, 401, 403]);
  });

  test('without any configured, everybody passes', async () => {
    expect((await open.adminRaw('GET', '/api/keys', { headers: { authorization: 'Bearer any' } })).status).toBe(200);
  });
});

describe('the address that the listener is bound to', () => {
  test.each(['0.0.0.0', '::', '10.0.0.7', 'admin.internal'])('%j is refused without a token', async (host) => {
    await expect(startTestGateway({ env: { ADMIN_HOST: host } })).rejects.toThrow('ADMIN_TOKEN');
  });

  test.each(['127.0.0.2', 'localhost'])('%s needs no token', async (host) => {
    const gateway = await startTestGateway({ env: { ADMIN_HOST: host } });
    expect((await readinessOf(gateway)).status).toBe('ready');
    await gateway.close();
  });

  test('elsewhere it demands the token', async () => {
    expect((await elsewhere.adminRaw('GET', '/api/keys')).status).toBe(401);
    expect((await elsewhere.admin('GET', '/api/keys')).status).toBe(200);
  });

  test('`::` takes clients of both families', async () => {
    const gateway = await forTest(startTestGateway({ env: { ADMIN_HOST: '::', HOST: '::', ADMIN_TOKEN: 't' } }));
    for (const url of [gateway.adminUrl, gateway.publicUrl]) {
      expect(url).toMatch(/^http:\/\/127\.0\.0\.1:/);
      for (const host of ['127.0.0.1', '[::1]']) {
        const { status } = await fetch(`http://${host}:${new URL(url).port}/`, { redirect: 'manual' });
        expect([host, status < 400]).toEqual([host, true]);
      }
    }
  });

  test('`::` takes clients of IPv4 if the system has no IPv6', async () => {
    const store = await forTest(createStoreServer());
    // The first of the gateway's listeners is the admin listener.
    vi.spyOn(Server.prototype, 'listen').mockImplementationOnce(function (this: Server) {
      queueMicrotask(() => this.emit('error', Object.assign(new Error('listen'), { code: 'EAFNOSUPPORT' })));
      return this;
    });
    const gateway = await forTest(startTestGateway({ env: { ADMIN_HOST: '::', ADMIN_TOKEN: 't' }, store }));
    vi.restoreAllMocks();
    expect(gateway.adminUrl).toMatch(/^http:\/\/127\.0\.0\.1:/);
    expect((await readinessOf(gateway)).status).toBe('ready');
  });

  test('a port that is taken ends the start with its name', async () => {
    const { port } = new URL(open.adminUrl);
    await expect(startTestGateway({ env: { ADMIN_PORT: port } })).rejects.toThrow('ADMIN_PORT');
  });
});

describe('unknown paths', () => {
  test.each([
    '/nowhere',
    '/api',
    '/api/',
    '/API/keys',
    '/api/keys/',
    '/api/keys/a/b',
    '/api/caches',
    '/dashboard/x.js',
  ])('%s is 404', async (path) => {
    const answer = await open.admin('GET', path);
    expect([answer.status, messageOf(answer)]).toEqual([
      404,
      'There is no such endpoint. GET / lists those that there are.',
    ]);
    expect(answer.headers).toMatchObject(SECURITY_HEADERS);
  });

  test.each([
    ['DELETE', '/livez', 'GET, HEAD, OPTIONS'],
    ['DELETE', '/', 'GET, HEAD'],
    ['OPTIONS', '/metrics', 'GET, HEAD'],
    ['DELETE', '/api/keys', 'GET, HEAD, POST'],
    ['OPTIONS', '/api/keys/key_1', 'GET, HEAD, PATCH, DELETE'],
    ['GET', '/api/keys/key_1/rotate', 'POST'],
    ['OPTIONS', '/api/cache/ttl/list', 'PUT, DELETE'],
  ])('%s %s is 405 and allows %s', async (method, path, allow) => {
    const answer = await open.admin(method, path);
    expect([answer.status, answer.headers.allow]).toEqual([405, allow]);
    expect(messageOf(answer)).toBe(`${method} is not possible here. Allowed: ${allow}.`);
  });

  test('HEAD answers as GET does, without a body', async () => {
    for (const path of ['/', '/livez', '/readyz', '/api/config', '/api/keys', '/api/cache/ttl', '/api/audit']) {
      const [head, whole] = [await open.admin('HEAD', path), await open.admin('GET', path)];
      expect([path, head.status, head.text]).toEqual([path, 200, '']);
      expect(head.headers['content-type']).toBe(whole.headers['content-type']);
      expect(head.headers['content-length']).toBe(String(Buffer.byteLength(whole.text)));
    }
  });
});
