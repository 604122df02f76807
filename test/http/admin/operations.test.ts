/** The reports of a gateway for orchestrators and operators: /livez, /readyz, /api/config, /api/audit, and the page at /. */
import { createHash } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { fileOf } from '../../support/files.ts';
import { forTest } from '../../support/opened.ts';
import { logOf, readinessOf, samplesOf, START, TOKENS } from '../../support/admin.ts';
import { startTestGateway, type TestGateway, type TestGatewayOptions } from '../../support/gateway.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';

const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;

let gateway: TestGateway;
let key: string;

async function start(env: TestGatewayOptions['env'] = {}): Promise<TestGateway> {
  gateway = await forTest(startTestGateway({ env }));
  gateway.store.put({ evaluations: [anEvaluation()] });
  key = await gateway.issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });
  return gateway;
}

const read = async (path: string = LIST): Promise<number> => (await gateway.get(path, { key })).status;
const get = (path: string, headers: Readonly<Record<string, string>> = {}) =>
  gateway.adminRaw('GET', path, { headers });

describe('/readyz', () => {
  test('of a worker is 503 "starting" until the first process counts a ready worker', async () => {
    let ready = 0;
    gateway = await forTest(
      startTestGateway({
        workers: {
          status: () => ({ ready, wanted: 2, sinceMs: Date.parse(START), silent: [], dependencies: [] }),
          metrics: async () => '',
          hasRedisAnswered: () => true,
          redisAnswered: () => undefined,
          counts: async () => [],
        },
      }),
    );
    const answer = await gateway.admin('GET', '/readyz');
    expect([answer.status, answer.json]).toMatchObject([503, { status: 'starting' }]);
    expect(answer.text).toContain('0 of 2 workers answer');
    ready = 1;
    const later = await gateway.admin('GET', '/readyz');
    expect([later.status, later.json]).toMatchObject([200, { status: 'ready' }]);
    expect(later.text).toContain('1 of 2 workers answer');
  });

  test('is JSON with one line per dependency, and 200 while the store is down', async () => {
    await start();
    await read();
    gateway.clock.advance(12_000);
    gateway.store.fail(503);
    for (const page of [2, 3, 4]) await read(`${LIST}?page=${page}`);
    const answer = await gateway.admin('GET', '/readyz');
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
    const lines = answer.text.split('\n');
    expect(lines.slice(0, 4)).toEqual([
      '{',
      '  "status": "ready",',
      '  "dependencies": [',
      '    {"name":"store","status":"degraded","since":"2026-01-15T12:00:12.000Z","detail":"last call failed: the store answered with 503 FAILURE (list)"},',
    ]);
    expect(lines.slice(-4)).toEqual([expect.stringMatching(/^ {4}\{"name":.*\}$/), '  ]', '}', '']);
    expect((await readinessOf(gateway)).statuses).toMatchObject({
      store: 'degraded',
      capacity: 'ok',
      maintenance: 'ok',
    });
  });

  test('is 503 while draining, with what is in flight still to be answered; /livez stays 200', async () => {
    await start();
    const gate = gateway.store.hold();
    const inFlight = read();
    await gateway.store.waitForCalls(1);
    const closed = gateway.close();
    await vi.waitFor(async () => {
      const { code, status } = await readinessOf(gateway);
      expect([code, status]).toEqual([503, 'draining']);
    });
    const readiness = await samplesOf(gateway, 'evalgate_readiness');
    expect(readiness).toMatchObject({
      'evalgate_readiness{status="ready"}': 0,
      'evalgate_readiness{status="draining"}': 1,
    });
    expect((await gateway.admin('GET', '/livez')).json).toEqual({ status: 'alive' });
    expect((await gateway.admin('GET', '/api/fleet')).json).toMatchObject({ members: [{ status: 'draining' }] });
    gate.release();
    expect(await inFlight).toBe(200);
    await closed;
    await expect(gateway.admin('GET', '/livez')).rejects.toThrow('ECONNREFUSED');
  });

  test('as many requests as may be: further ones are refused, which is reported for ten seconds', async () => {
    await start({ CONFIG_FILE: fileOf('{server: {maxInFlight: 1}, upstream: {adaptive: false}}') });
    const gate = gateway.store.hold();
    // As many as may wait for the store.
    const waiting = [read(), read(`${LIST}?page=2`)];
    await gateway.store.waitForCalls(2);
    expect(await read(`${LIST}?page=3`)).toBe(500);
    expect((await readinessOf(gateway)).of('capacity')).toMatchObject({
      status: 'degraded',
      since: START,
      detail:
        'it refuses some: the limit of requests (server.maxInFlight) or connections (server.maxConnections, server.maxConnectionsPerAddress) is reached',
    });
    expect(await samplesOf(gateway, 'evalgate_http_requests_shed_total')).toEqual({
      evalgate_http_requests_shed_total: 1,
    });
    gate.release();
    expect(await Promise.all(waiting)).toEqual([200, 200]);
    gateway.clock.advance(10_000);
    expect((await readinessOf(gateway)).of('capacity')?.status).toBe('ok');
    expect(logOf(gateway, 'no request or connection is refused any more')).toMatchObject([{ lastedMs: 10_000 }]);
  });
});

test('/api/config is the effective configuration, and holds no secret', async () => {
  await start({ ...TOKENS, RATE_LIMIT_PER_MINUTE: '77' });
  const { json, text } = await gateway.admin('GET', '/api/config');
  expect(json).toMatchObject({
    settings: {
      rateLimit: { perMinute: { value: 77, origin: 'environment', from: 'RATE_LIMIT_PER_MINUTE' } },
      cache: { classes: { list: { fresh: { value: '30s', origin: 'default', from: null } } } },
      admin: { token: { value: '(set, not shown)' } },
    },
  });
  for (const secret of ['correct-horse', 'battery-staple', gateway.store.token]) expect(text).not.toContain(secret);
  gateway.reload({ RATE_LIMIT_PER_MINUTE: '78' });
  expect((await gateway.admin('GET', '/api/config')).json).toMatchObject({
    settings: { rateLimit: { perMinute: { value: 78 } } },
  });
});

test('the start is one line with what the gateway stands on, and no address but its own', async () => {
  await start();
  const started = logOf(gateway, 'started');
  expect(started).toMatchObject([
    {
      level: 'info',
      public: gateway.publicUrl,
      admin: gateway.adminUrl,
      workers: 1,
      store: 'configured',
      redis: 'none',
    },
  ]);
  for (const secret of [gateway.store.url, gateway.store.token]) expect(JSON.stringify(started)).not.toContain(secret);
});

describe('the page at /', () => {
  test('lists every endpoint, and each of them is there', async () => {
    await start();
    const answer = await gateway.admin('GET', '/');
    expect([answer.status, answer.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    const rows = [...answer.text.matchAll(/<tr><td>([A-Z]+)<\/td><td><code>([^<]+)<\/code>/g)];
    expect(rows.map(([, method, path]) => `${method} ${path}`)).toEqual(
      expect.arrayContaining([
        'GET /livez',
        'PATCH /api/keys/{keyId}',
        'DELETE /api/cache/ttl/{class}',
        'GET /api/fleet',
      ]),
    );
    expect(rows.length).toBeGreaterThan(20);
    for (const [, method = '', path = ''] of rows) {
      const reply = await gateway.admin(
        method,
        path.replaceAll(/\{\w+\}/g, 'x'),
        method.startsWith('P') ? {} : undefined,
      );
      // Whatever an endpoint makes of an empty request, it is there.
      expect([`${method} ${path}`, reply.status]).not.toEqual([`${method} ${path}`, 405]);
      expect([`${method} ${path}`, reply.text]).not.toEqual([
        `${method} ${path}`,
        expect.stringContaining('no such endpoint'),
      ]);
    }
  });

  test('lets in scripts and styles of this listener only, none inline but the import map, and loads all of its files', async () => {
    await start();
    const answer = await gateway.admin('GET', '/');
    const [, importMap = ''] = /<script type="importmap">(.*?)<\/script>/.exec(answer.text) ?? [];
    const hash = createHash('sha256').update(importMap).digest('base64');
    expect(answer.headers['content-security-policy']).toBe(
      `default-src 'none'; script-src 'self' 'sha256-${hash}'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(answer.text).not.toMatch(/<style| style=|<script>| on[a-z]+=|https?:\/\/(?!www\.w3\.org\/2000\/svg)/);
    // Relative addresses, so that the page works behind a prefix.
    const files = [...answer.text.matchAll(/(?:src|href)="(?!#|data:)([^"]+)"/g)].map(([, path = '']) => path);
    const { imports } = z.object({ imports: z.record(z.string(), z.string()) }).parse(JSON.parse(importMap));
    expect(files.map((path) => `./${path}`)).toEqual(expect.arrayContaining(Object.values(imports)));
    expect(files.length).toBeGreaterThan(3);
    for (const path of files) {
      const file = await gateway.admin('GET', `/${path}`);
      expect([path, file.status]).toEqual([path, 200]);
      expect(file.headers['content-type']).toMatch(path.endsWith('.css') ? /^text\/css/ : /^text\/javascript/);
    }
  });

  test('its files need no token, are sent compressed, and not again to a browser that has them', async () => {
    await start(TOKENS);
    const [, script = ''] = /src="([^"]+)"/.exec((await get('/')).text) ?? [];
    const whole = await get(`/${script}`);
    const coded = await get(`/${script}`, { 'accept-encoding': 'gzip' });
    expect([whole.status, coded.headers['content-encoding'], coded.text]).toEqual([200, 'gzip', whole.text]);
    expect(coded.headers).toMatchObject({ vary: 'Accept-Encoding', 'cache-control': 'private, no-cache' });
    const again = await get(`/${script}`, { 'if-none-match': String(whole.headers['etag']) });
    expect([again.status, again.text]).toEqual([304, '']);
    expect((await get('/dashboard/nothing.js')).status).toBe(401);
  });
});
