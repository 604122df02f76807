import { connect } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { messageOf, type RunningAdmin, send, startAdmin, TOKEN, WORKSPACE } from './harness.ts';

let admin: RunningAdmin | undefined;
afterEach(async () => {
  await admin?.close();
  admin = undefined;
});

async function start(overrides: Parameters<typeof startAdmin>[0] = {}): Promise<RunningAdmin> {
  admin = await startAdmin(overrides);
  return admin;
}

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
  test.each(['localhost', 'localhost:8081', 'LocalHost:1', '127.0.0.1', '127.8.9.10:65535', '[::1]', '[::1]:8081'])(
    '%s is loopback and passes',
    async (host) => {
      const { get } = await start();
      expect((await get('/api/keys', { host })).status).toBe(200);
    },
  );

  test.each([
    'evil.example',
    'evil.example:8081',
    '127.0.0.1.evil.example',
    'localhost.evil.example',
    'localhost@evil.example',
    '128.0.0.1',
    '10.0.0.7:8081',
    '[::2]',
    '0.0.0.0',
    'localhost:80:80',
    'localhost:http',
  ])('%j is refused with 403', async (host) => {
    const { get } = await start();
    const answer = await get('/api/keys', { host });
    expect(answer.status).toBe(403);
    expect(messageOf(answer)).toBe(
      `The Host header ${JSON.stringify(host)} is not one of this listener's. Allowed are localhost, 127.0.0.0/8, [::1], with any port. Use one of them, or configure the name under which the admin listener is reached.`,
    );
    expect(answer.headers).toMatchObject(SECURITY_HEADERS);
  });

  test('a configured name passes with any port and in any case, and loopback still does', async () => {
    const { get } = await start({ allowedHosts: ['Admin.internal', '[fd00::1]'] });
    expect((await get('/api/keys', { host: 'admin.INTERNAL:9000' })).status).toBe(200);
    expect((await get('/api/keys', { host: '[fd00::1]:9000' })).status).toBe(200);
    expect((await get('/api/keys', { host: 'localhost' })).status).toBe(200);
    const refused = await get('/api/keys', { host: 'x.admin.internal' });
    expect(refused.status).toBe(403);
    expect(messageOf(refused)).toContain('[::1], admin.internal, fd00::1, with any port');
  });

  test.each(['/livez', '/readyz'])('%s may be probed by address but not under a foreign name', async (path) => {
    const { get } = await start();
    expect((await get(path, { host: '10.1.2.3:8081' })).status).toBe(200);
    expect((await get(path, { host: '[fd00::7]:8081' })).status).toBe(200);
    expect((await get(path, { host: 'evil.example' })).status).toBe(403);
  });

  test('a request of HTTP/1.0 without a Host is refused', async () => {
    const { port } = await start();
    const answer = await new Promise<string>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write('GET /api/keys HTTP/1.0\r\n\r\n'));
      let text = '';
      socket.on('data', (chunk) => (text += chunk.toString()));
      socket.on('end', () => resolve(text));
      socket.on('error', reject);
    });
    expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
    expect(answer).toContain('The Host header (none) is not one');
  });
});

describe('where a browser says the request comes from', () => {
  test.each([
    ['http://localhost:8081', 'localhost:8081'],
    ['http://localhost:8081', 'LOCALHOST:8081'],
    ['https://localhost:8081', 'localhost:8081'],
    ['http://127.0.0.1', '127.0.0.1'],
  ])('Origin %s is own under Host %s', async (origin, host) => {
    const { get } = await start();
    expect((await get('/api/keys', { origin, host })).status).toBe(200);
  });

  test.each([
    'http://localhost:3000',
    'http://localhost',
    'http://127.0.0.1:8081',
    'http://evil.example',
    'http://localhost:8081.evil.example',
    'ftp://localhost:8081',
    'null',
    '',
  ])('Origin %j is foreign under Host localhost:8081: 403, on reads too', async (origin) => {
    const { get } = await start();
    const answer = await get('/api/keys', { origin, host: 'localhost:8081' });
    expect(answer.status).toBe(403);
    expect(messageOf(answer)).toBe(
      `The Origin ${JSON.stringify(origin)} is foreign. Only pages of this listener itself (http://localhost:8081) may call it from a browser.`,
    );
    expect(answer.headers['access-control-allow-origin']).toBeUndefined();
  });

  test.each(['same-origin', 'none'])('Sec-Fetch-Site %s passes', async (site) => {
    const { get } = await start();
    expect((await get('/api/keys', { 'sec-fetch-site': site })).status).toBe(200);
  });

  test.each(['same-site', 'cross-site', 'anything'])('Sec-Fetch-Site %s is 403', async (site) => {
    const { get } = await start();
    const answer = await get('/api/keys', { 'sec-fetch-site': site });
    expect([answer.status, messageOf(answer)]).toEqual([
      403,
      `Sec-Fetch-Site is "${site}": another site made this request. Allowed are same-origin and none. Open the address in the browser's address bar.`,
    ]);
  });

  test('a foreign page changes nothing, even with a right token', async () => {
    const { call, registry, audit } = await start({ tokens: [{ name: 'ops', token: TOKEN }] });
    const body = { name: 'x', workspaceIds: [WORKSPACE], scopes: ['calls.read'] };
    const headers = { authorization: `Bearer ${TOKEN}`, origin: 'http://evil.example' };
    expect((await call('POST', '/api/keys', body, headers)).status).toBe(403);
    expect(await registry.list()).toEqual([]);
    expect(await audit.entries()).toEqual([]);
  });
});

describe('what a body may be', () => {
  test.each(['POST', 'PUT', 'PATCH'])('%s without application/json is 415, whatever the path', async (method) => {
    const { port } = await start();
    for (const type of [
      'text/plain',
      'application/x-www-form-urlencoded',
      'application/jsonp',
      'application/json; charset=latin1',
    ]) {
      const answer = await send(port, method, '/nowhere', { headers: { 'content-type': type }, body: '{}' });
      expect(answer.status).toBe(415);
      expect(messageOf(answer)).toBe(
        `The Content-Type is ${JSON.stringify(type)}; ${method} takes application/json in UTF-8 only. Send the header "Content-Type: application/json".`,
      );
    }
    const none = await send(port, method, '/nowhere');
    expect(none.status).toBe(415);
    expect(messageOf(none)).toContain('The Content-Type is (none);');
  });

  test.each(['application/json', 'Application/JSON; charset=UTF-8', 'application/json;charset="utf-8"'])(
    '%s is JSON',
    async (type) => {
      const { port } = await start();
      const answer = await send(port, 'POST', '/api/keys', { headers: { 'content-type': type }, body: '{}' });
      expect(answer.status).toBe(400);
      expect(messageOf(answer)).toContain('The body has 3 faults');
    },
  );

  test('a compressed body is 415', async () => {
    const { port } = await start();
    const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' };
    const answer = await send(port, 'POST', '/api/keys', { headers, body: '{}' });
    expect(answer.status).toBe(415);
    expect(messageOf(answer)).toBe(
      'The Content-Encoding is "gzip"; bodies are taken uncompressed only. Send the body as it is, without that header.',
    );
  });

  test.each([
    ['/api/keys', 65_536],
    ['/api/keys/import', 1_048_576],
  ])('%s takes %i bytes and answers 413 to one more, declared or not', async (path, limit) => {
    const { port } = await start();
    const headers = { 'content-type': 'application/json' };
    const full = await send(port, 'POST', path, { headers, body: '{}'.padEnd(limit) });
    expect(full.status).toBe(400);
    expect(messageOf(full)).toMatch(/^The body has [13] faults?; nothing was changed\./);
    for (const framing of [{}, { 'transfer-encoding': 'chunked' }]) {
      const over = await send(port, 'POST', path, {
        headers: { ...headers, ...framing },
        body: '{}'.padEnd(limit + 1),
      });
      expect(over.status).toBe(413);
      expect(messageOf(over)).toBe(
        `The body is larger than ${limit} bytes, the most this endpoint takes. Send less at once.`,
      );
    }
  });

  test.each([
    ['{"name": ', 'The body of 9 bytes is not valid JSON. Send one JSON object.'],
    ['', 'The body is empty. Send a JSON object.'],
    [Buffer.from([0x22, 0xff, 0x22]), 'The body is not valid UTF-8. Send JSON in UTF-8.'],
    ['[1]', 'The body has 1 fault; nothing was changed.\n- the body: given an array of 1; allowed: a JSON object'],
    ['['.repeat(60_000), 'The body of 60000 bytes is not valid JSON. Send one JSON object.'],
  ])('the body %# is 400 and says why', async (body, message) => {
    const { port } = await start();
    const answer = await send(port, 'POST', '/api/keys', { headers: { 'content-type': 'application/json' }, body });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toBe(message);
  });

  test('deeply nested JSON is a fault like any other', async () => {
    const { port } = await start();
    const body = '['.repeat(30_000) + ']'.repeat(30_000);
    const answer = await send(port, 'POST', '/api/keys', { headers: { 'content-type': 'application/json' }, body });
    expect(answer.status).toBe(400);
    expect(messageOf(answer)).toContain('the body: given an array of 1; allowed: a JSON object');
  });

  test('a client that leaves in the middle of its body harms nobody', async () => {
    const { port, get, log } = await start();
    await new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => {
        socket.write(
          'POST /api/keys HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{',
          () => socket.destroy(),
        );
      });
      socket.on('close', () => resolve());
      socket.on('error', reject);
    });
    await vi.waitFor(() =>
      expect(log).toContainEqual({
        level: 'warn',
        fields: { method: 'POST', route: '/api/keys', status: 400, who: 'anonymous', reason: 'unreadable body' },
        message: 'admin request refused',
      }),
    );
    expect((await get('/livez')).status).toBe(200);
    expect(log.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('a body that breaks the protocol is refused, and the log holds none of its bytes', async () => {
    const { port, log } = await start({ tokens: [{ name: 'ops', token: TOKEN }] });
    const request = `POST /api/keys HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n`;
    await new Promise<void>((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(request));
      socket.resume();
      socket.on('close', () => resolve());
      socket.on('error', reject);
    });
    await vi.waitFor(() => expect(log).toContainEqual(expect.objectContaining({ message: 'admin request refused' })));
    const broke = log.filter(({ message }) => message === 'admin connection broke');
    expect(broke.map(({ fields }) => Object.keys(fields))).toEqual(broke.map(() => ['reason']));
    expect(JSON.stringify(log)).not.toContain(TOKEN);
  });
});

describe('tokens', () => {
  const tokens = [
    { name: 'ops', token: TOKEN },
    { name: 'ci', token: 'zweites-Gehölz' },
  ];

  test.each(['/metrics', '/api/config', '/api/keys', '/api/audit', '/nowhere'])(
    '%s without one is 401 and tells the scheme',
    async (path) => {
      const { get } = await start({ tokens });
      const answer = await get(path);
      expect(answer.status).toBe(401);
      expect(answer.headers['www-authenticate']).toBe('Bearer realm="evalgate admin"');
      expect(answer.json).toEqual({
        error: {
          message:
            'No admin token was given. Send one of the tokens of ADMIN_TOKEN as "Authorization: Bearer <token>".',
        },
      });
      expect(answer.headers).toMatchObject(SECURITY_HEADERS);
    },
  );

  test.each([
    `Bearer ${TOKEN}x`,
    `Bearer ${TOKEN.slice(1)}`,
    'Bearer',
    'Bearer ',
    `Basic ${TOKEN}`,
    TOKEN,
    `Bearer ${TOKEN} ${TOKEN}`,
  ])('the credentials %j are 401', async (authorization) => {
    const { get, log } = await start({ tokens });
    const answer = await get('/api/keys', { authorization });
    expect(answer.status).toBe(401);
    expect(answer.headers['www-authenticate']).toBe('Bearer realm="evalgate admin", error="invalid_token"');
    expect(messageOf(answer)).not.toContain(TOKEN);
    expect(JSON.stringify(log)).not.toContain(TOKEN);
    expect(log).toEqual([
      {
        level: 'warn',
        fields: { method: 'GET', route: null, status: 401, who: null, reason: 'unknown admin token' },
        message: 'admin request refused',
      },
    ]);
  });

  test('any of the tokens passes, the scheme in any case, and one sent as UTF-8', async () => {
    const { get } = await start({ tokens });
    expect((await get('/api/keys', { authorization: `Bearer ${TOKEN}` })).status).toBe(200);
    expect((await get('/api/keys', { authorization: `bEARER  ${TOKEN}` })).status).toBe(200);
    const asSent = Buffer.from('zweites-Gehölz', 'utf8').toString('latin1');
    expect((await get('/api/keys', { authorization: `Bearer ${asSent}` })).status).toBe(200);
  });

  test('/livez and /readyz need none, their neighbours do', async () => {
    const { get } = await start({ tokens });
    expect((await get('/livez')).status).toBe(200);
    expect((await get('/readyz')).status).toBe(200);
    expect((await get('/livez/')).status).toBe(401);
    expect((await get('/readyz/x')).status).toBe(401);
  });

  test('nobody unknown gets a body read: 401 comes before 413 and 400, after 403 and 415', async () => {
    const { port } = await start({ tokens });
    const json = { 'content-type': 'application/json' };
    expect((await send(port, 'POST', '/api/keys', { headers: json, body: 'x'.repeat(70_000) })).status).toBe(401);
    expect((await send(port, 'POST', '/api/keys', { headers: json, body: '{' })).status).toBe(401);
    expect((await send(port, 'POST', '/api/keys', { body: '{' })).status).toBe(415);
    expect((await send(port, 'POST', '/api/keys', { headers: { host: 'evil.example' } })).status).toBe(403);
  });

  test('without any configured, everybody passes', async () => {
    const { get } = await start();
    expect((await get('/api/keys')).status).toBe(200);
    expect((await get('/api/keys', { authorization: 'Bearer whatever' })).status).toBe(200);
  });
});

describe('what is not there', () => {
  test.each(['/nowhere', '/api', '/api/', '/API/keys', '/api/keys/', '/api/keys/a/b', '/api/caches'])(
    '%s is 404',
    async (path) => {
      const { get } = await start();
      const answer = await get(path);
      expect(answer.status).toBe(404);
      expect(messageOf(answer)).toBe('There is no such endpoint. GET / lists those that there are.');
      expect(answer.headers).toMatchObject(SECURITY_HEADERS);
    },
  );

  test.each([
    ['DELETE', '/livez', 'GET, HEAD'],
    ['DELETE', '/', 'GET, HEAD'],
    ['OPTIONS', '/metrics', 'GET, HEAD'],
    ['DELETE', '/api/keys', 'GET, HEAD, POST'],
    ['OPTIONS', '/api/keys/key_1', 'GET, HEAD, PATCH, DELETE'],
    ['GET', '/api/keys/key_1/rotate', 'POST'],
  ])('%s %s is 405 and allows %s', async (method, path, allow) => {
    const { call } = await start();
    const answer = await call(method, path);
    expect(answer.status).toBe(405);
    expect(answer.headers.allow).toBe(allow);
    expect(messageOf(answer)).toBe(`${method} is not possible here. Allowed: ${allow}.`);
  });
});
