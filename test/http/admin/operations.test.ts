import { afterEach, describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/admin/metrics/metrics.ts';
import type { Readiness } from '../../../src/admin/readiness.ts';
import { messageOf, type RunningAdmin, startAdmin } from './harness.ts';

let admin: RunningAdmin | undefined;
afterEach(async () => {
  await admin?.close();
  admin = undefined;
});

async function start(overrides: Parameters<typeof startAdmin>[0] = {}): Promise<RunningAdmin> {
  admin = await startAdmin(overrides);
  return admin;
}

test('/livez is 200 while the process runs, even while it drains', async () => {
  const { get } = await start({ isReady: () => ({ status: 'draining', dependencies: [] }) });
  const answer = await get('/livez');
  expect(answer.status).toBe(200);
  expect(answer.json).toEqual({ status: 'alive' });
});

describe('/readyz', () => {
  const since = '2026-01-15T11:59:48.000Z';
  const redis = { name: 'redis', status: 'degraded', since, detail: 'no answer' } as const;
  const upstream = { name: 'upstream', status: 'ok', since, detail: '3 "calls"' } as const;

  test('is JSON with a line a dependency, and 200 where a dependency is down', async () => {
    const { get } = await start({ isReady: () => ({ status: 'ready', dependencies: [redis, upstream] }) });
    const answer = await get('/readyz');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.json).toEqual({ status: 'ready', dependencies: [redis, upstream] });
    expect(answer.text.split('\n')).toEqual([
      '{',
      '  "status": "ready",',
      '  "dependencies": [',
      '    {"name":"redis","status":"degraded","since":"2026-01-15T11:59:48.000Z","detail":"no answer"},',
      '    {"name":"upstream","status":"ok","since":"2026-01-15T11:59:48.000Z","detail":"3 \\"calls\\""}',
      '  ]',
      '}',
      '',
    ]);
  });

  test('is 503 only while starting or draining, asked anew each time', async () => {
    let readiness: Readiness = { status: 'starting', dependencies: [] };
    const { get } = await start({ isReady: () => readiness });
    const starting = await get('/readyz');
    expect([starting.status, starting.json]).toEqual([503, { status: 'starting', dependencies: [] }]);
    readiness = { status: 'ready', dependencies: [] };
    expect((await get('/readyz')).status).toBe(200);
    readiness = { status: 'draining', dependencies: [] };
    const draining = await get('/readyz');
    expect([draining.status, draining.json]).toEqual([503, { status: 'draining', dependencies: [] }]);
  });
});

test('/metrics is the Prometheus text of the gateway', async () => {
  const metrics = createMetrics({ version: '1.2.3' });
  metrics.quotaRefused({ window: 'hour' });
  const { get } = await start({ metrics });
  const answer = await get('/metrics');
  metrics.close();
  expect(answer.status).toBe(200);
  expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
  expect(answer.text).toContain('\nevalgate_quota_refusals_total{window="hour"} 1\n');
});

test('/api/config is what the gateway gives as its configuration', async () => {
  const { get } = await start({ config: () => ({ port: 8080, upstream: { timeout: '10s' } }) });
  const answer = await get('/api/config');
  expect([answer.status, answer.text]).toEqual([200, '{"port":8080,"upstream":{"timeout":"10s"}}']);
});

test('/api/audit has the entries, newest first', async () => {
  const { get, audit, clock } = await start();
  expect((await get('/api/audit')).json).toEqual({ entries: [] });
  await audit.record({ who: 'ops', action: 'a', target: 't', from: null, to: { x: 1 } });
  clock.advance(1500);
  await audit.record({ who: 'ci', action: 'b', target: 't', from: { x: 1 }, to: null });
  expect((await get('/api/audit')).json).toEqual({
    entries: [
      { at: '2026-01-15T12:00:01.500Z', who: 'ci', action: 'b', target: 't', from: { x: 1 }, to: null },
      { at: '2026-01-15T12:00:00.000Z', who: 'ops', action: 'a', target: 't', from: null, to: { x: 1 } },
    ],
  });
});

describe('the page at /', () => {
  test('lists every endpoint, and each of them is there', async () => {
    const { get, call } = await start();
    const answer = await get('/');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    const rows = [...answer.text.matchAll(/<tr><td>([A-Z]+)<\/td><td><code>([^<]+)<\/code>/g)];
    expect(rows.map(([, method, path]) => `${method} ${path}`)).toEqual([
      'GET /livez',
      'GET /readyz',
      'GET /metrics',
      'GET /api/config',
      'GET /api/audit',
      'GET /api/keys',
      'POST /api/keys',
      'POST /api/keys/import',
      'GET /api/keys/{keyId}',
      'PATCH /api/keys/{keyId}',
      'DELETE /api/keys/{keyId}',
      'POST /api/keys/{keyId}/rotate',
      'GET /api/cache',
      'GET /api/cache/top',
      'GET /api/cache/explain',
      'GET /api/cache/ttl',
      'PUT /api/cache/ttl/{class}',
      'DELETE /api/cache/ttl/{class}',
      'POST /api/cache/purge',
      'GET /api/cache/maintenance',
      'PUT /api/cache/maintenance',
      'DELETE /api/cache/maintenance',
      'GET /api/cache/advice',
      'GET /api/cache/history',
      'GET /api/fleet',
      'GET /api/cache/pulse',
    ]);
    for (const [, method = '', path = ''] of rows.filter(([, , template = '']) => !template.includes('{'))) {
      // Whatever an endpoint makes of an empty request, it is there.
      expect([404, 405]).not.toContain((await call(method, path)).status);
    }
    const missing = await call('DELETE', '/api/keys/key_none');
    expect([missing.status, messageOf(missing)]).toEqual([
      404,
      'There is no key with the id key_none. GET /api/keys lists the ids.',
    ]);
  });

  test('lets in scripts and styles of this listener alone, none that stand in the page, and asks nobody else', async () => {
    const { get } = await start();
    const answer = await get('/');
    expect(answer.headers['content-security-policy']).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(answer.text).not.toMatch(/<style| style=|<script>| on[a-z]+=|https?:\/\/(?!www\.w3\.org\/2000\/svg)/);
    const files = [...answer.text.matchAll(/(?:src|href)="(dashboard\/[^"]+)"/g)].map(([, path = '']) => path);
    expect(files.length).toBeGreaterThan(30);
    for (const path of files) {
      const file = await get(`/${path}`);
      expect([path, file.status]).toEqual([path, 200]);
      expect(file.headers['content-type']).toMatch(path.endsWith('.css') ? /^text\/css/ : /^text\/javascript/);
    }
  });

  test('its files need no token, are sent compressed, and are not sent again where they are the same', async () => {
    const { get } = await start({ tokens: [{ name: 'ops', token: 'correct-horse' }] });
    const path = '/dashboard/uPlot.iife.min.js';
    const whole = await get(path);
    const coded = await get(path, { 'accept-encoding': 'gzip' });
    expect([whole.status, coded.headers['content-encoding']]).toEqual([200, 'gzip']);
    const again = await get(path, { 'if-none-match': String(whole.headers['etag']) });
    expect([again.status, again.text]).toEqual([304, '']);
    expect((await get('/dashboard/nothing.js')).status).toBe(401);
    expect((await get('/api/cache/pulse')).status).toBe(401);
  });
});

test('HEAD answers as GET does, without a body', async () => {
  const { call, get } = await start();
  for (const path of [
    '/',
    '/livez',
    '/readyz',
    '/metrics',
    '/api/config',
    '/api/keys',
    '/api/cache',
    '/api/cache/ttl',
    '/api/audit',
  ]) {
    const [head, whole] = [await call('HEAD', path), await get(path)];
    expect([head.status, head.text]).toEqual([200, '']);
    expect(head.headers['content-type']).toBe(whole.headers['content-type']);
    expect(head.headers['content-length']).toBe(String(Buffer.byteLength(whole.text)));
  }
});

test('an unexpected failure is a 500 that tells nothing, and the log tells all', async () => {
  const { get, log } = await start({
    config: () => {
      throw new Error('secret detail');
    },
  });
  const answer = await get('/api/config');
  expect(answer.status).toBe(500);
  expect(messageOf(answer)).toBe('The gateway failed in an unexpected way. Its log says why.');
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(log).toEqual([
    {
      level: 'error',
      fields: {
        method: 'GET',
        route: '/api/config',
        status: 500,
        who: 'anonymous',
        reason: 'unexpected failure',
        err: new Error('secret detail'),
      },
      message: 'admin request failed',
    },
  ]);
});
