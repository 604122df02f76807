/** K8a: a look at one's own key costs no quota, and has a limit of its own. */
import { beforeEach, describe, expect, test } from 'vitest';
import { metricOf } from '../../support/admin.ts';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { newToken } from '../../../src/keys/token.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { LIST_CALLS, TEXTS } from './endpoints.ts';
import { cachingOf, RATE_LIMIT_NAMES, rateLimitOf } from './headers.ts';
import { deprecateKey, importKey, inHours, revokeKey, rotateKey } from './keys.ts';
import { newSubject, putSubject, type Subject } from './subject.ts';

let subject: Subject;
/** Unix seconds at which the test began. */
let start: number;

const gateway = await forFile(startTestGateway({ env: { LOG_LEVEL: 'trace' } }));
beforeEach(() => {
  subject = putSubject(gateway.store);
  gateway.clock.advanceMicros(1_000_000 - (gateway.clock.nowMicros() % 1_000_000));
  start = gateway.clock.nowMicros() / 1_000_000;
});

const SURFACES = [
  { path: '/v1/key', error: (message: string) => JSON.stringify({ error: message }) },
  { path: '/v2/key', error: (message: string) => JSON.stringify({ error: { message } }) },
] as const;
const keySchema = z.object({ key: z.record(z.string(), z.unknown()) });

function keyIn(reply: Reply): Record<string, unknown> {
  expect(reply.status).toBe(200);
  return keySchema.parse(reply.json).key;
}

describe.each(SURFACES)('GET $path', ({ path, error }) => {
  const ask = (key: string, method = 'GET'): Promise<Reply> => gateway.get(path, { key, method });

  test('tells the key, its scopes, workspaces and expiry, and both windows', async () => {
    const other = newSubject();
    const expiresAt = inHours(gateway, 48);
    const { keyId, token: key } = await gateway.issue({
      name: 'nightly “export”',
      scopes: ['calls.read', 'reports.read'],
      workspaceIds: [subject.workspaceId, other.workspaceId],
      perMinute: 5,
      perHour: 100,
      expiresAt,
    });
    await gateway.get(LIST_CALLS.path(subject), { key });
    gateway.clock.advance(10_000);
    await gateway.get(LIST_CALLS.path(subject), { key });
    const reply = await ask(key);
    expect(reply.json).toEqual({
      key: {
        id: keyId,
        name: 'nightly “export”',
        status: 'active',
        scopes: ['calls.read', 'reports.read'],
        workspace_ids: [subject.workspaceId, other.workspaceId],
        expires_at: expiresAt,
        rate_limit: {
          minute: { limit: 5, remaining: 3, reset: start + 70 },
          hour: { limit: 100, remaining: 98, reset: start + 3610 },
        },
      },
    });
  });

  test('shows the body to the byte, of a key without expiry and with the limits of the gateway', async () => {
    const { keyId, token: key } = await gateway.issue({
      name: 'x',
      scopes: ['coaching.read'],
      workspaceIds: [subject.workspaceId],
    });
    expect((await ask(key)).text).toBe(
      `{"key":{"id":"${keyId}","name":"x","status":"active","scopes":["coaching.read"],"workspace_ids":["${subject.workspaceId}"],"expires_at":null,` +
        `"rate_limit":{"minute":{"limit":120,"remaining":120,"reset":${start}},"hour":{"limit":3000,"remaining":3000,"reset":${start}}}}}`,
    );
  });

  test('is answered also if the quota is used up, without Retry-After', async () => {
    const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId], perMinute: 1, perHour: 9 });
    await gateway.get(LIST_CALLS.path(subject), { key });
    expect((await gateway.get(LIST_CALLS.path(subject), { key })).status).toBe(429);
    const reply = await ask(key);
    expect(keyIn(reply)['rate_limit']).toEqual({
      minute: { limit: 1, remaining: 0, reset: start + 60 },
      hour: { limit: 9, remaining: 8, reset: start + 3600 },
    });
    expect(reply.headers['retry-after']).toBeUndefined();
  });

  test('is kept by nobody, has no validator and asks the store nothing', async () => {
    const before = gateway.store.calls();
    const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId] });
    const reply = await gateway.get(path, { key, headers: { 'if-none-match': '*' } });
    expect(reply.status).toBe(200);
    expect(cachingOf(reply)).toEqual({ 'cache-control': 'no-store' });
    expect(gateway.store.calls()).toBe(before);
  });

  test('A2: any other method is a 405, which counts as everywhere', async () => {
    const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId], perMinute: 9, perHour: 9 });
    const reply = await ask(key, 'POST');
    expect(reply.status).toBe(405);
    expect(reply.text).toBe(error(TEXTS.methodNotAllowed('POST')));
    expect(reply.headers.allow).toBe('GET, HEAD');
    expect(reply.headers['x-ratelimit-remaining']).toBe('8');
  });

  test.each(['reports.read', 'calls.read', 'coaching.read'] as const)('%s alone is enough', async (scope) => {
    const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId], scopes: [scope] });
    expect(keyIn(await ask(key))['scopes']).toEqual([scope]);
  });

  test.each([
    ['no key', undefined, TEXTS.missing],
    ['a key that was never issued', newToken(), TEXTS.invalid],
    ['a key with a wrong checksum', `evg_${'a'.repeat(38)}`, TEXTS.invalid],
  ])('K4: %s is a 401', async (_what, key, message) => {
    const reply = await gateway.get(path, key === undefined ? {} : { key });
    expect([reply.status, reply.text, rateLimitOf(reply)]).toEqual([401, error(message), {}]);
  });

  test.each([
    ['deprecated', deprecateKey],
    ['revoked', revokeKey],
    ['expired', async () => gateway.clock.advance(3_600_000)],
  ] as const)('K4, K7: a key that is %s learns nothing about itself', async (_what, end) => {
    const { keyId, token: key } = await gateway.issue({
      workspaceIds: [subject.workspaceId],
      expiresAt: inHours(gateway, 1),
    });
    expect((await ask(key)).status).toBe(200);
    await end(gateway, keyId);
    const reply = await ask(key);
    expect([reply.status, reply.text, rateLimitOf(reply)]).toEqual([403, error(TEXTS.inactive), {}]);
  });

  test('each key sees only itself, and nobody else’s use', async () => {
    const keys = await Promise.all(
      ['one', 'two', 'three'].map((name) =>
        gateway.issue({ name, workspaceIds: [newSubject().workspaceId], perMinute: 50 }),
      ),
    );
    for (const [index, { token }] of keys.entries()) {
      for (let i = 0; i <= index; i += 1) await gateway.get('/v2/calls', { key: token });
    }
    const replies = await Promise.all([...keys, ...keys, ...keys].map(({ token }) => ask(token)));
    const told = replies.map((reply) => [keyIn(reply)['id'], reply.headers['x-ratelimit-minute-remaining']]);
    const expected = keys.map(({ keyId }, index) => [keyId, String(49 - index)]);
    expect(told).toEqual([...expected, ...expected, ...expected]);
    for (const reply of replies) expect(reply.text.match(/key_\w+/g)).toHaveLength(1);
  });

  test('K3: a rotated key and its successor show the one quota that they share', async () => {
    const { keyId, token: old } = await gateway.issue({ perMinute: 9, perHour: 9 });
    const successor = await rotateKey(gateway, keyId, '1h');
    await gateway.get(LIST_CALLS.path(subject), { key: old });
    await gateway.get(LIST_CALLS.path(subject), { key: successor });
    const [ofOld, ofSuccessor] = [keyIn(await ask(old)), keyIn(await ask(successor))];
    expect(ofOld['rate_limit']).toEqual(ofSuccessor['rate_limit']);
    expect(ofOld['rate_limit']).toMatchObject({ minute: { remaining: 7 } });
    expect(ofOld['id']).not.toBe(ofSuccessor['id']);
    expect(ofOld['expires_at']).toBe(inHours(gateway, 1));
    expect(ofSuccessor['expires_at']).toBeNull();
  });

  test('K2: neither the token nor its hash is in the answer, nor is anything that was imported with the key', async () => {
    const token = `a-key-of-another-form-for-${path}`;
    await importKey(gateway, subject, token);
    const reply = await ask(token);
    expect(Object.keys(keyIn(reply))).toEqual([
      'id',
      'name',
      'status',
      'scopes',
      'workspace_ids',
      'expires_at',
      'rate_limit',
    ]);
    expect(reply.text).not.toMatch(/a-key-of-another-form|[0-9a-f]{64}/);
  });

  test('is in the log by its route, without a cache, and in the metrics', async () => {
    const { keyId, token: key } = await gateway.issue({ workspaceIds: [subject.workspaceId] });
    const reply = await ask(key);
    await gateway.admin('GET', '/livez');
    const lines = gateway.logLines.filter((line) => line.includes(String(reply.headers['x-request-id'])));
    expect(lines.map((line): unknown => JSON.parse(line))).toEqual([
      expect.objectContaining({ level: 'info', keyId, route: path, method: 'GET', status: 200, cache: null }),
    ]);
    const surface = path.slice(1, 3);
    for (const sample of [
      `evalgate_http_requests_total{surface="${surface}",route="${path}",method="GET",status="200"}`,
      `evalgate_http_request_duration_seconds_count{surface="${surface}",route="${path}",cache="none"}`,
    ]) {
      expect(await metricOf(gateway, sample)).toBeGreaterThan(0);
    }
  });

  test('has no question behind it that could be explained', async () => {
    const reply = await gateway.admin('GET', `/api/cache/explain?path=${encodeURIComponent(path)}`);
    expect(reply.text).toContain(`${path} is answered by the gateway itself: nothing of it is cached.`);
  });

  test('an address of more than 8192 bytes is a 400, which costs nothing either', async () => {
    const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId], perMinute: 9 });
    const longest = `${path}?${'x'.repeat(8192 - path.length - 1)}`;
    expect((await gateway.get(longest, { key })).text).not.toContain('longer than');
    const reply = await gateway.get(`${longest}x`, { key });
    expect(reply.status).toBe(400);
    expect(reply.text).toBe(error('The address is longer than 8192 bytes.'));
    expect(reply.headers['x-ratelimit-minute-remaining']).toBe('9');
  });
});

test('K8a: 60 looks a minute are answered to each key, on both surfaces together, then 429 in no quota', async () => {
  const issue = () => gateway.issueKey({ workspaceIds: [subject.workspaceId], perMinute: 9, perHour: 90 });
  const [key, other] = [await issue(), await issue()];
  for (let i = 0; i < 30; i += 1) {
    for (const { path } of SURFACES) expect((await gateway.get(path, { key })).status).toBe(200);
  }
  for (const { path, error } of SURFACES) {
    const refused = await gateway.get(path, { key });
    const text = "Too many requests for this key's details. Try again after the time in Retry-After.";
    expect([refused.status, refused.text]).toEqual([429, error(text)]);
    expect(refused.headers['retry-after']).toMatch(/^[1-9]\d?$/);
    expect(refused.headers['x-ratelimit-remaining']).toBe('9');
    expect((await gateway.get(path, { key: other })).status).toBe(200);
  }
  expect((await gateway.get(LIST_CALLS.path(subject), { key })).headers['x-ratelimit-remaining']).toBe('8');
});

test('Q2: v1 ignores parameters', async () => {
  const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId] });
  const plain = await gateway.get('/v1/key', { key });
  expect((await gateway.get('/v1/key?page=0&x=1&x=2', { key })).text).toBe(plain.text);
});

test('Q4: v2 refuses parameters, at no cost', async () => {
  const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId], perMinute: 9, perHour: 9 });
  const reply = await gateway.get('/v2/key?page=1&x', { key });
  expect(reply.status).toBe(400);
  expect(reply.text).toBe(
    '{"error":{"message":"Unknown query parameter \'page\'. This endpoint takes none. Unknown query parameter \'x\'. This endpoint takes none."}}',
  );
  expect(Object.keys(rateLimitOf(reply))).toEqual(RATE_LIMIT_NAMES);
  expect(reply.headers['x-ratelimit-remaining']).toBe('9');
});

test.each(['/v1/key/', '/v1/keys', '/v2/key/x', '/key'])('A2: %s is nowhere', async (path) => {
  const key = await gateway.issueKey({ workspaceIds: [subject.workspaceId] });
  expect((await gateway.get(path, { key, isUndocumented: true })).status).toBe(404);
});
