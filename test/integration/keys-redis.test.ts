/** Keys in Redis: the records that lie there, and what several gateways know of each other's changes. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { metricOf, readinessOf } from '../support/admin.ts';
import { forFile, forTest } from '../support/opened.ts';
import { z } from 'zod';
import { hashToken, newToken } from '../../src/keys/token.ts';
import type { TestGateway } from '../support/gateway.ts';
import { type World, redisIsWell, startFleet, WITHIN, use } from '../support/world.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { connectToAny, namesIn } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';
import { WORKSPACE_A } from '../support/records.ts';

const RECORDS = 'evalgate:{keys}:records';
const IDS = 'evalgate:{keys}:ids';

let fleet: World;
let a: TestGateway;
let b: TestGateway;
const redis = await forFile(startRedis());
const client = await connectToAny(redis.url, 5000);
afterAll(() => client.disconnect());
beforeEach(async () => {
  await redis.flush();
  fleet = await forTest(startFleet(redis.url, { env: { TRUSTED_PROXIES: '127.0.0.1/32' } }));
  [a, b] = [fleet.here, fleet.there];
});

/** A key of another system, as it is imported. */
function foreign(token: string, keyId: string = `old-${randomUUID()}`): Record<string, unknown> {
  return { keyId, hash: hashToken(token), name: 'old', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };
}

const importAt = (gateway: TestGateway, ...keys: unknown[]) => gateway.admin('POST', '/api/keys/import', { keys });

const keysSchema = z.object({ keys: z.array(z.object({ keyId: z.string(), lastUsedAt: z.string().nullable() })) });

async function listed(gateway: TestGateway) {
  return keysSchema.parse((await gateway.admin('GET', '/api/keys')).json).keys;
}

/** Puts a record into Redis as a tool beside the gateways would, without a word to anybody. */
async function putRecord(token: string, change: Record<string, unknown> = {}): Promise<void> {
  const record = {
    keyId: `raw-${randomUUID()}`,
    hash: hashToken(token),
    name: 'raw',
    status: 'active',
    workspaceIds: [WORKSPACE_A],
    scopes: ['calls.read'],
    createdAtMs: 1_700_000_000_000,
    expiresAtMs: null,
    limits: { perMinute: null, perHour: null },
    quotaId: 'raw-quota',
    ...change,
  };
  await client.hset(RECORDS, hashToken(token), JSON.stringify(record));
  await client.hset(IDS, record.keyId, hashToken(token));
}

/** One more gateway, whose clock stands still. */
async function joinStanding(): Promise<TestGateway> {
  const gateway = await fleet.join({ clock: new ManualClock() });
  await redisIsWell(gateway);
  return gateway;
}

describe('the data in Redis', () => {
  test('K2: no token is anywhere in it, of none that was made, rotated, imported or used', async () => {
    const { keyId, token } = await a.issue();
    const rotated = await a.admin('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' });
    const { token: next } = z.object({ token: z.string() }).parse(rotated.json);
    const own = newToken();
    await importAt(b, foreign(own));
    for (const key of [token, next, own]) expect(await use(b, key)).toBe(200);
    await fleet.close();
    const parts: string[] = [];
    for (const name of await namesIn(client, '*')) {
      const type = await client.type(name);
      parts.push(name, type === 'hash' ? JSON.stringify(await client.hgetall(name)) : '');
      if (type === 'list') parts.push(...(await client.lrange(name, 0, -1)));
      if (type === 'string') parts.push((await client.get(name)) ?? '');
    }
    const held = parts.join('\n');
    expect(held).toContain(hashToken(token));
    for (const key of [token, next, own]) expect(held).not.toContain(key.slice(4, 20));
  });

  test.each([
    ['is no JSON', '{'],
    ['is null', 'null'],
    ['lacks its status', { status: undefined }],
    ['lacks its expiry', { expiresAtMs: undefined }],
    ['lacks its workspaces', { workspaceIds: undefined }],
    ['lacks its scopes', { scopes: undefined }],
    ['lacks its quota', { quotaId: undefined }],
    ['has a status that nobody knows', { status: 'paused' }],
    ['has a scope that nobody knows', { scopes: ['all'] }],
    ['has a limit of 0', { limits: { perMinute: 0, perHour: null } }],
    ['holds another hash', { hash: '0'.repeat(64) }],
  ])(
    'S2: a record that %s neither lets its holder in nor says that there is none, and hides no other',
    async (...row) => {
      const [, spoilt] = row;
      const whole = await a.issue();
      const token = newToken();
      if (typeof spoilt === 'string') {
        await putRecord(token, { keyId: 'broken' });
        await client.hset(RECORDS, hashToken(token), spoilt);
      } else await putRecord(token, { keyId: 'broken', ...spoilt });
      const reply = await b.get('/v2/calls', { key: token });
      expect(reply.status).toBe(500);
      expect(reply.text).not.toContain(hashToken(token));
      expect((await b.admin('GET', '/api/keys/broken')).status).toBe(503);
      expect((await listed(b)).map(({ keyId }) => keyId)).toEqual([whole.keyId]);
      expect(b.logLines.filter((line) => line.includes('a key in Redis is broken'))).not.toEqual([]);
      expect(await use(b, whole.token)).toBe(200);
      // K2: the log never holds a whole hash, by which a token could be recognised.
      for (const key of [token, whole.token]) expect(b.logLines.join('')).not.toContain(hashToken(key));
    },
  );
});

describe('changes at several gateways at once', () => {
  test('a revoked key stays revoked however many change its status meanwhile', async () => {
    for (let round = 0; round < 5; round += 1) {
      const { keyId } = await a.issue();
      const path = `/api/keys/${keyId}`;
      const changes = [a, b, a, b].flatMap((gateway, i) => [
        i === 2 ? gateway.admin('DELETE', path) : gateway.admin('PATCH', path, { status: 'deprecated' }),
        gateway.admin('PATCH', path, { status: 'active' }),
      ]);
      for (const { status } of await Promise.all(changes)) expect([200, 409]).toContain(status);
      expect((await b.admin('GET', path)).json).toMatchObject({ key: { status: 'revoked' } });
    }
  });

  test.each([
    ['one hash under two ids', (i: number) => foreign('shared', `shared-${i}`)],
    ['two hashes under one id', (i: number) => foreign(`shared-${i}`, 'shared')],
  ])('of two imports that contradict each other (%s) one happens, and it happens whole', async (_what, shared) => {
    const replies = await Promise.all(
      [a, b].map((gateway, i) => importAt(gateway, foreign(`own-${i}`, `own-${i}`), shared(i))),
    );
    expect(new Set(replies.map(({ status }) => status))).toEqual(new Set([200, 409]));
    const winner = replies.findIndex(({ status }) => status === 200);
    const ids = (await listed(a)).map(({ keyId }) => keyId);
    expect(ids.toSorted()).toEqual([`own-${winner}`, String(shared(winner)['keyId'])].toSorted());
  });
});

describe('the keys that a gateway knows', () => {
  test('K4: every change at one gateway is in force at the others', async () => {
    const { keyId, token } = await a.issue();
    expect(await use(b, token)).toBe(200);
    for (const [status, seen] of [['deprecated', 403] as const, ['active', 200] as const]) {
      await a.admin('PATCH', `/api/keys/${keyId}`, { status });
      await vi.waitFor(async () => expect(await use(b, token)).toBe(seen), WITHIN);
    }
    await a.admin('PATCH', `/api/keys/${keyId}`, { name: 'renamed', perMinute: 7 });
    await vi.waitFor(async () => {
      const reply = await b.get('/v2/key', { key: token });
      expect([reply.headers['x-ratelimit-minute-limit'], reply.text.includes('renamed')]).toEqual(['7', true]);
    }, WITHIN);
    await b.admin('POST', `/api/keys/${keyId}/rotate`, { overlap: '0s' });
    await vi.waitFor(async () => expect(await use(a, token)).toBe(403), WITHIN);
  });

  test('a key that is not there is looked for again after five seconds, or as soon as it is made', async () => {
    const late = await joinStanding();
    const [quiet, told] = [newToken(), newToken()];
    expect([await use(late, quiet), await use(late, told)]).toEqual([401, 401]);
    await putRecord(quiet);
    expect(await use(late, quiet)).toBe(401);
    await importAt(a, foreign(told));
    await vi.waitFor(async () => expect(await use(late, told)).toBe(200), WITHIN);
    late.clock.advance(5001);
    expect(await use(late, quiet)).toBe(200);
  });

  test('C8: a key in use is confirmed again every 30 s, so that a change that nobody told of is in force then', async () => {
    const late = await joinStanding();
    const token = newToken();
    await putRecord(token);
    expect(await use(late, token)).toBe(200);
    await putRecord(token, { status: 'revoked' });
    expect(await use(late, token)).toBe(200);
    late.clock.advance(30_000);
    await vi.waitFor(async () => expect(await use(late, token)).toBe(403), WITHIN);
  });

  test('an import of more keys than a message can name is in force everywhere, for keys known and unknown before', async () => {
    const tokens = Array.from({ length: 1001 }, (_, i) => `token-${i}`);
    const [known = '', unknown = ''] = tokens;
    await importAt(a, foreign(known, 'old-0'));
    expect([await use(b, known), await use(b, unknown)]).toEqual([200, 401]);
    const keys = tokens.map((token, i) => ({ ...foreign(token, `old-${i}`), status: 'deprecated' }));
    expect((await importAt(a, ...keys)).json).toEqual({ added: 1000, replaced: 1, unchanged: 0, leftOut: 0 });
    for (const token of [known, unknown, tokens.at(-1) ?? '']) {
      await vi.waitFor(async () => expect(await use(b, token)).toBe(403), WITHIN);
    }
  });

  test('K9: a key that was issued is let in from an address whose failures are used up, though it is new to the gateway', async () => {
    const early = await a.issue();
    const late = await fleet.join();
    const from = (key: string) => late.get('/v2/key', { key, headers: { 'x-forwarded-for': '203.0.113.9' } });
    for (let time = 0; time < 60; time += 1) await from(newToken());
    expect((await from(newToken())).headers['retry-after']).toBeDefined();
    const after = await a.issue();
    for (const { token } of [early, after]) {
      await vi.waitFor(async () => expect((await from(token)).status).toBe(200), WITHIN);
    }
    expect((await from(newToken())).headers['retry-after']).toBeDefined();
  });

  test('the time of the last use is told to all when a gateway ends, and never goes back', async () => {
    const { keyId, token } = await a.issue();
    const other = await fleet.join();
    await use(other, token);
    fleet.clock.advance(5000);
    const usedFromMs = fleet.clock.nowMs();
    await use(b, token);
    const usedUntilMs = fleet.clock.nowMs();
    const lastUsed = async (): Promise<string | null | undefined> =>
      (await listed(a)).find((key) => key.keyId === keyId)?.lastUsedAt;
    expect(await lastUsed()).toBeNull();
    await b.close();
    const told = Date.parse((await lastUsed()) ?? '');
    expect(told).toBeGreaterThanOrEqual(usedFromMs);
    expect(told).toBeLessThanOrEqual(usedUntilMs);
    await other.close();
    expect(Date.parse((await lastUsed()) ?? '')).toBe(told);
    await a.admin('PATCH', `/api/keys/${keyId}`, { status: 'deprecated' });
    expect(Date.parse((await lastUsed()) ?? '')).toBe(told);
  });
});

test('a key that is lost with the data of Redis was good: its 401 names it, and /readyz says that consumers fail', async () => {
  const { keyId, token } = await a.issue();
  expect(await use(a, token)).toBe(200);
  await redis.flush();
  await vi.waitFor(async () => expect(await use(a, token)).toBe(401), WITHIN);
  for (let i = 0; i < 20; i += 1) {
    await use(a, token);
    // A stranger's key was never good.
    await use(a, newToken());
  }
  expect((await readinessOf(a)).of('answers')?.detail).toContain('are 401 for keys that were good within the hour');
  const refused = a.logLines.filter((line) => line.includes('"status":401') && line.includes(keyId));
  expect(refused.length).toBeGreaterThanOrEqual(20);
  expect(await metricOf(a, 'evalgate_known_keys_refused_total')).toBe(refused.length);
});
