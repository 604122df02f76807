import { createHash } from 'node:crypto';
import { afterEach, describe, expect, test } from 'vitest';
import { createMetrics } from '../../../src/admin/metrics.ts';
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
  const redis = { name: 'redis', status: 'degraded', detail: 'no answer for 12 s' } as const;
  const upstream = { name: 'upstream', status: 'ok', detail: '3 "calls"' } as const;

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
      '    {"name":"redis","status":"degraded","detail":"no answer for 12 s"},',
      '    {"name":"upstream","status":"ok","detail":"3 \\"calls\\""}',
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
    const rows = [...answer.text.matchAll(/<tr><td>([A-Z]+)<\/td><td>(?:<a href="[^"]+">)?([^<]+)/g)];
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
      'GET /api/cache/ttl',
      'PUT /api/cache/ttl/{class}',
      'DELETE /api/cache/ttl/{class}',
      'POST /api/cache/purge',
    ]);
    for (const [, href] of answer.text.matchAll(/<a href="([^"]+)">/g)) {
      expect((await get(href ?? '')).status).toBe(200);
    }
    const missing = await call('DELETE', '/api/keys/key_none');
    expect([missing.status, messageOf(missing)]).toEqual([
      404,
      'There is no key with the id key_none. GET /api/keys lists the ids.',
    ]);
  });

  test('runs no script and lets in its own style sheet alone', async () => {
    const { get } = await start();
    const answer = await get('/');
    const style = /<style>([^]*?)<\/style>/.exec(answer.text)?.[1] ?? '';
    const digest = createHash('sha256').update(style).digest('base64');
    expect(answer.headers['content-security-policy']).toBe(
      `default-src 'none'; style-src 'sha256-${digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
    );
    expect(answer.text).not.toMatch(/<script|style=|src=|https?:/);
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
