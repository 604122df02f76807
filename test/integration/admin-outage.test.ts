/** Changes of operators while Redis is slow or dies, and what the audit of the fleet then has. */
import { beforeEach, expect, test, vi } from 'vitest';
import { hashToken } from '../../src/keys/token.ts';
import { auditOf, logOf, messageOf, readinessOf, TOKENS } from '../support/admin.ts';
import type { TestGateway } from '../support/gateway.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { forTest } from '../support/opened.ts';
import type { TestClient } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { WITHIN, World } from '../support/world.ts';

const REDIS_BACK = { 'redis-state': 'ok', 'redis-cache': 'ok', quota: 'ok' };
const REDIS_WELL = { ...REDIS_BACK, keys: 'ok' };
const UNKNOWN =
  'Redis gave no answer in time, so it is not known whether the change was made. GET /readyz tells which dependency is down; look whether it was made before you repeat it.';
const NOT_MADE =
  'Redis cannot be reached, so the change was not made. GET /readyz tells which dependency is down; repeat the change when it is back.';

const OUTCOME_UNKNOWN: unknown = expect.stringMatching(/^[a-z.]+: outcome unknown: /);

let redis: TestRedis;
let raw: TestClient;
let a: TestGateway;
let b: TestGateway;
beforeEach(async () => {
  redis = await forTest(startRedis());
  const world = await forTest(World.start('redis', { redisUrl: redis.url, env: TOKENS }));
  [a, b, raw] = [world.here, world.there, await world.raw()];
  await isWell(a);
});

async function isWell(gateway: TestGateway, expected: Readonly<Record<string, string>> = REDIS_WELL): Promise<void> {
  await vi.waitFor(async () => expect((await readinessOf(gateway)).statuses).toMatchObject(expected), WITHIN);
}

/** Redis goes on reading and writes nothing meanwhile; what was sent to be written is written afterwards. */
async function whileWritesWait(run: () => Promise<void>): Promise<void> {
  await raw.call('CLIENT', 'PAUSE', '60000', 'WRITE');
  try {
    await run();
  } finally {
    await raw.call('CLIENT', 'UNPAUSE');
  }
}

const HASH = hashToken('imported');
const IMPORTED = { keyId: 'k_2', hash: HASH, name: 'i', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };
const WANTED = { name: 'n', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };

test.each([
  ['PUT', '/api/cache/ttl/list', { fresh: '45s', error: '0s' }, { fresh: '45s', error: '0s' }],
  ['DELETE', '/api/cache/ttl/list', undefined, null],
  ['POST', '/api/cache/purge', { tags: ['all'], mode: 'soft' }, { mode: 'soft', tagCount: 1, tags: ['all'] }],
  ['PUT', '/api/cache/maintenance', { for: '30m' }, { until: '2026-01-15T12:30:00.000Z' }],
  ['DELETE', '/api/cache/maintenance', undefined, null],
  ['POST', '/api/keys', WANTED, { ...WANTED, limits: { perMinute: null, perHour: null }, expiresAt: null }],
  ['PATCH', '/api/keys/ID', { status: 'deprecated' }, { status: 'deprecated' }],
  ['DELETE', '/api/keys/ID', undefined, { status: 'revoked' }],
  ['POST', '/api/keys/ID/rotate', { overlap: '2h' }, { overlap: '2h' }],
  ['POST', '/api/keys/import', { keys: [IMPORTED] }, { keys: 1, keyIds: ['k_2'] }],
])(
  '%s %s without an answer: its outcome is unknown, and the audit of all has what was asked',
  async (method, path, body, asked) => {
    const { keyId, token } = await a.issue();
    const before = await auditOf(a);
    // If a write of the gateway's own has timed out first, the change is not even sent.
    await vi.waitFor(async () => {
      await isWell(a);
      await whileWritesWait(async () => {
        const reply = await a.admin(method, path.replace('ID', keyId), body);
        expect([reply.status, messageOf(reply)]).toEqual([503, UNKNOWN]);
        // It stands in the audit here before it can be written.
        expect((await auditOf(a))[0]).toMatchObject({ who: 'alice', from: null, to: { outcome: 'unknown', asked } });
      });
    }, WITHIN);
    expect(logOf(a, 'admin request failed').at(-1)).toMatchObject({
      level: 'error',
      status: 503,
      who: 'alice',
      reason: OUTCOME_UNKNOWN,
    });
    await vi.waitFor(async () => expect(await auditOf(b)).toHaveLength(before.length + 1), WITHIN);
    // Until Redis answers it again, a gateway shows only what it has not written yet.
    await vi.waitFor(async () => expect(await auditOf(a)).toEqual(await auditOf(b)), WITHIN);
    const written = JSON.stringify(await auditOf(b)) + a.logLines.join('');
    for (const secret of [token, HASH]) expect(written).not.toContain(secret);
  },
  30_000,
);

test('entries recorded while nothing can be written are there once afterwards, and push nothing out', async () => {
  await a.issue({ name: 'before' });
  await vi.waitFor(async () => {
    await isWell(a);
    await whileWritesWait(async () => {
      expect(messageOf(await a.admin('PUT', '/api/cache/maintenance', { for: '1s' }))).toBe(UNKNOWN);
      // A later change can't even be sent until Redis writes again.
      await vi.waitFor(async () => {
        expect(messageOf(await a.admin('PUT', '/api/cache/maintenance', { for: '2s' }))).toBe(NOT_MADE);
      }, WITHIN);
    });
  }, WITHIN);
  await isWell(a);
  await a.admin('POST', '/api/cache/purge', { tags: ['all'] });
  await vi.waitFor(async () => expect((await auditOf(b))[0]).toMatchObject({ action: 'cache.purge' }), WITHIN);
  const asked = (await auditOf(b)).map(({ action, to }) => [action, to]);
  expect(asked).toMatchObject([
    ['cache.purge', {}],
    ['cache.maintenance.on', { outcome: 'unknown', asked: { until: '2026-01-15T12:00:01.000Z' } }],
    ['key.create', { name: 'before' }],
  ]);
}, 60_000);

/** The connections of both gateways for commands. */
async function connectionIds(): Promise<readonly string[]> {
  const lines = String(await raw.call('CLIENT', 'LIST')).split('\n');
  return lines.filter((line) => line.includes(' name=evalgate-state ')).map((line) => line.split(' ', 1)[0] ?? '');
}

test('a change that a read-only Redis refuses was not made: it is in no audit, and may be repeated', async () => {
  const { keyId } = await a.issue();
  await a.admin('DELETE', `/api/keys/${keyId}`);
  const audited = await auditOf(a);
  const before = await connectionIds();
  await raw.call('REPLICAOF', '127.0.0.1', '1');
  // The first refusal of a heartbeat makes a gateway connect again; what is under way then has no known outcome.
  await vi.waitFor(async () => {
    const now = await connectionIds();
    expect([now.length, now.filter((id) => before.includes(id))]).toEqual([2, []]);
    const detail =
      "Redis is a read-only replica (READONLY You can't write against a read only replica.); limits are per process; changes fail";
    expect((await readinessOf(a)).of('redis-state')).toMatchObject({ status: 'degraded', detail });
  }, WITHIN);
  const notMade =
    "Redis is a read-only replica (READONLY You can't write against a read only replica.), so the change was not made. GET /readyz tells which dependency is down; repeat the change when it is back.";
  for (const [method, path, body] of [
    ['POST', '/api/cache/purge', { tags: ['all'] }],
    ['PUT', '/api/cache/ttl/list', { fresh: '45s' }],
    // Even one that was made before.
    ['DELETE', `/api/keys/${keyId}`],
  ] as const) {
    const reply = await a.admin(method, path, body);
    expect([reply.status, messageOf(reply)]).toEqual([503, notMade]);
  }
  await raw.call('REPLICAOF', 'NO', 'ONE');
  await isWell(a);
  expect(await auditOf(a)).toEqual(audited);
}, 30_000);

test('a change that a Redis out of reach was not even sent was not made: it is in no audit, and may be repeated', async () => {
  const { keyId } = await a.issue();
  await redis.kill();
  await vi.waitFor(
    async () => expect((await readinessOf(a)).statuses).toMatchObject({ 'redis-state': 'degraded' }),
    WITHIN,
  );
  const purge = await a.admin('POST', '/api/cache/purge', { tags: ['all'] });
  expect([purge.status, messageOf(purge)]).toEqual([503, NOT_MADE]);
  for (const [method, path] of [
    ['GET', '/api/keys'],
    ['GET', `/api/keys/${keyId}`],
    ['DELETE', `/api/keys/${keyId}`],
  ] as const) {
    const reply = await a.admin(method, path);
    expect([reply.status, messageOf(reply)]).toEqual([
      503,
      'The key registry cannot be asked at the moment. GET /readyz tells which dependency is down; try again when it is back.',
    ]);
  }
  const time = { kind: 'time', class: 'list', name: 'fresh', ttl: '45s', until: null };
  const cannotBeRead =
    'Redis cannot be reached. GET /readyz tells which dependency is down; try again when it is back.';
  for (const [method, path, body] of [
    ['GET', '/api/state', undefined],
    ['POST', '/api/state/import', { records: [time], dryRun: true }],
    ['POST', '/api/state/import', { records: [time] }],
  ] as const) {
    const reply = await a.admin(method, path, body);
    expect([path, reply.status, messageOf(reply)]).toEqual([path, 503, cannotBeRead]);
  }
  // Reading endpoints go on, with the data of this process.
  for (const path of ['/api/cache', '/api/cache/ttl', '/api/cache/maintenance', '/api/fleet', '/api/cache/history']) {
    expect([path, (await a.admin('GET', path)).status]).toEqual([path, 200]);
  }
  expect(await auditOf(a)).toEqual([]);
  // A page that is open asks for the keys again and again; the outage has its own line.
  expect(logOf(a, 'admin request failed').map(({ method }) => method)).toEqual(['POST', 'DELETE', 'POST', 'POST']);
  expect(a.logLines.join('')).not.toContain(new URL(redis.url).host);

  await redis.restart();
  // Without its keys, which are reported as lost if the gateway knew of them.
  await isWell(a, REDIS_BACK);
  expect((await a.admin('POST', '/api/cache/purge', { tags: ['all'] })).status).toBe(200);
  expect(await auditOf(a)).toMatchObject([{ action: 'cache.purge' }]);
}, 30_000);

test('the fleet keeps the last thousand changes, newest first', async () => {
  for (let batch = 0; batch < 101; batch += 1) {
    const tags = Array.from({ length: 10 }, (_, index) => `evaluation:ev_${10 * batch + index}`);
    await Promise.all(tags.map((tag) => a.admin('POST', '/api/cache/purge', { tags: [tag] })));
  }
  const kept = await auditOf(b);
  expect(kept).toHaveLength(1000);
  expect(JSON.stringify(kept[0])).toContain('"evaluation:ev_100');
  expect(JSON.stringify(kept)).not.toContain('"evaluation:ev_9"');
}, 60_000);
