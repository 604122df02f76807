/** C6b: keys are revoked although Redis is out of memory and evicts nothing; what needs memory says so. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { forFile, forTest } from '../support/opened.ts';
import { z } from 'zod';
import { hashToken, newToken } from '../../src/keys/token.ts';
import { auditOf, messageOf } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { dependency, startFleet, WITHIN, use } from '../support/world.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { atEach, withClient } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const FULL =
  'Redis is out of memory, so the change was not made. Raise maxmemory there or free memory, then repeat the change. Keys can be revoked and deprecated meanwhile.';
const WANTED = { name: 'n', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };
const IMPORTED = { ...WANTED, keyId: 'imported', hash: hashToken('imported') };

let a: TestGateway;
let b: TestGateway;
const redis = await forFile(startRedis());
beforeEach(async () => {
  const fleet = await forTest(startFleet(redis.url));
  [a, b] = [fleet.here, fleet.there];
});
afterEach(async () => {
  await atEach(redis, (client) => client.config('SET', 'maxmemory', '0'));
  await redis.flush();
});

/** Leaves each server with more in it than it may hold, so that it refuses every command that takes memory. */
async function fill(): Promise<void> {
  await atEach(redis, (client) => client.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '1'));
  await withClient(redis.url, (client) => expect(client.set('more', 'x')).rejects.toThrow('OOM'));
}

const recordSchema = z.looseObject({ status: z.string() });

async function storedStatus(token: string): Promise<string> {
  const record = await withClient(redis.url, (client) => client.hget('evalgate:{keys}:records', hashToken(token)));
  return recordSchema.parse(JSON.parse(record ?? '')).status;
}

test.each([
  ['DELETE', 'revoked', 'key.revoke', (id: string) => a.admin('DELETE', `/api/keys/${id}`)],
  [
    'PATCH',
    'deprecated',
    'key.deprecate',
    (id: string) => a.admin('PATCH', `/api/keys/${id}`, { status: 'deprecated' }),
  ],
])('C6b: %s makes a key %s, in force in every process and in the audit of all', async (...row) => {
  const [, status, action, change] = row;
  const { keyId, token } = await a.issue();
  expect([await use(a, token), await use(b, token)]).toEqual([200, 200]);
  await fill();
  const reply = await change(keyId);
  expect([reply.status, reply.json]).toMatchObject([200, { key: { keyId, status } }]);
  expect(await use(a, token)).toBe(403);
  await vi.waitFor(async () => expect(await use(b, token)).toBe(403), WITHIN);
  expect(await storedStatus(token)).toBe(status);
  expect(await auditOf(b)).toMatchObject([{ action, target: keyId, to: { status } }, { action: 'key.create' }]);
  expect(await dependency(a, 'keys')).toMatch(/^ok/);
});

test('keys go on being let in or refused as before', async () => {
  const { token } = await a.issue();
  const other = await a.issue();
  expect(await use(a, token)).toBe(200);
  await fill();
  expect([await use(a, token), await use(b, other.token), await use(b, newToken())]).toEqual([200, 200, 401]);
});

test('a change that needs memory is not made, says why, and is in no audit', async () => {
  const { keyId } = await a.issue();
  await fill();
  const replies = [
    await a.admin('POST', '/api/keys', WANTED),
    await a.admin('POST', '/api/keys/import', { keys: [IMPORTED] }),
    await a.admin('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' }),
  ];
  expect(replies.map((reply) => [reply.status, messageOf(reply)])).toEqual(replies.map(() => [503, FULL]));
  const listed = z
    .object({ keys: z.array(z.object({ keyId: z.string(), expiresAt: z.null() })) })
    .parse((await b.admin('GET', '/api/keys')).json);
  expect(listed.keys.map((key) => key.keyId)).toEqual([keyId]);
  expect((await auditOf(a)).map(({ action }) => action)).toEqual(['key.create']);
});

test('all that /readyz says of a full Redis is so: what it names as refused is, and everything else works', async () => {
  const { keyId } = await a.issue();
  const active = await a.issue();
  await fill();
  const statusOf = async (method: 'POST' | 'PATCH' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<number> =>
    (await a.admin(method, path, body)).status;
  const deprecated = { status: 'deprecated' };
  const works = [
    await statusOf('PATCH', `/api/keys/${keyId}`, deprecated),
    await statusOf('POST', '/api/cache/purge', { tags: ['all'] }),
    await statusOf('PUT', '/api/cache/ttl/list', { fresh: '31s' }),
    await statusOf('DELETE', '/api/cache/ttl/list'),
    await statusOf('PUT', '/api/cache/maintenance', { for: '5m' }),
    await statusOf('DELETE', '/api/cache/maintenance'),
  ];
  const refused = [
    await statusOf('POST', '/api/keys', WANTED),
    await statusOf('POST', '/api/keys/import', { keys: [IMPORTED] }),
    await statusOf('PATCH', `/api/keys/${keyId}`, { status: 'active' }),
    await statusOf('PATCH', `/api/keys/${active.keyId}`, { name: 'other' }),
    await statusOf('POST', `/api/keys/${active.keyId}/rotate`, { overlap: '1h' }),
  ];
  expect([works, refused]).toEqual([works.map(() => 200), refused.map(() => 503)]);
  expect(await statusOf('DELETE', `/api/keys/${keyId}`)).toBe(200);
  await vi.waitFor(
    async () =>
      expect(await dependency(a, 'redis-state')).toContain(
        'no key can be created, activated, edited, rotated or imported; revoking and deprecating keys, purges, times and maintenance work',
      ),
    WITHIN,
  );
});
