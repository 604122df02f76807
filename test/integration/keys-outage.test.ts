/** C8: keys while Redis is frozen, gone or deaf, and when it is back. */
import { connect } from 'node:net';
import { z } from 'zod';
import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { hashToken, newToken } from '../../src/keys/token.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { dependency, type World, redisIsWell, startFleet, WITHIN, use } from '../support/world.ts';
import { forTest } from '../support/opened.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { atEach, cutSubscribers, namesIn, type TestClient, withClient } from '../support/redis/client.ts';
import { isOneServer, startRedis, type TestRedis } from '../support/redis.ts';
import { auditOf, samplesOf } from '../support/admin.ts';
import { runCli } from '../support/cli.ts';

const GRACE_MS = 300_000;

let redis: TestRedis;
beforeEach(async () => {
  redis = await forTest(startRedis());
});

const start = (size = 1): Promise<World> => forTest(startFleet(redis.url, { size, env: { KEY_GRACE: '5m' } }));
const one = async (): Promise<TestGateway> => (await start()).here;

function keysAre(gateway: TestGateway, status: RegExp): Promise<void> {
  return vi.waitFor(async () => expect(await dependency(gateway, 'keys')).toMatch(status), WITHIN);
}

/** As a tool beside the gateways would, without a word to anybody. */
function changeRecord(key: string, from: string, to: string): Promise<unknown> {
  return withClient(redis.url, async (client) => {
    const record = (await client.hget('evalgate:{keys}:records', hashToken(key))) ?? '';
    await client.hset('evalgate:{keys}:records', hashToken(key), record.replace(from, to));
  });
}

const LOST =
  /^degraded: Redis lost its data at \d\d:\d\d; 0 of 2 keys are left; import a backup: `evalgate state import FILE`, or acknowledge/;
const keyCounts = (gateway: TestGateway) => samplesOf(gateway, 'evalgate_keys');
const OFFLINE = /^degraded: Redis cannot be asked: keys that it confirmed within 5m stay good/;
const DEAF = /^degraded: changes may be missed: each key is confirmed at Redis before it is used/;

test('C8: while Redis is frozen a key that it has confirmed goes on, and no other is let in', async () => {
  const gateway = await one();
  const [used, unused] = [await gateway.issueKey(), await gateway.issueKey()];
  expect(await use(gateway, used)).toBe(200);
  await redis.pause();
  await vi.waitFor(async () => {
    // All the while, also before the gateway calls it an outage.
    expect(await use(gateway, used)).toBe(200);
    expect(await dependency(gateway, 'keys')).toMatch(OFFLINE);
  }, WITHIN);
  for (const key of [unused, newToken()]) {
    const reply = await gateway.get('/v2/calls', { key });
    expect([reply.status, reply.headers['x-error-code']]).toEqual([500, 'keys_unavailable']);
    expect(Number(reply.headers['retry-after'])).toBeGreaterThan(0);
    expect(reply.headers['x-ratelimit-limit']).toBeUndefined();
  }
  const wanted = { name: 'x', workspaceIds: ['11111111-1111-4111-8111-111111111111'], scopes: ['calls.read'] };
  expect((await gateway.admin('POST', '/api/keys', wanted)).status).toBe(503);
  expect((await gateway.admin('GET', '/api/keys')).status).toBe(503);
  await redis.resume();
  await vi.waitFor(async () => {
    expect([await use(gateway, unused), await use(gateway, newToken()), await use(gateway, used)]).toEqual([
      200, 401, 200,
    ]);
  }, WITHIN);
});

test('C8: without Redis a key is good for the grace since it was confirmed, and no longer', async () => {
  const gateway = await one();
  const key = await gateway.issueKey();
  expect(await use(gateway, key)).toBe(200);
  await redis.kill();
  await keysAre(gateway, OFFLINE);
  gateway.clock.advance(GRACE_MS - 60_000);
  expect(await use(gateway, key)).toBe(200);
  gateway.clock.advance(60_001);
  expect(await use(gateway, key)).toBe(500);
  await keysAre(gateway, /^degraded: Redis could not be asked for 5m: no key is let in/);
  expect(gateway.logLines.join('')).toContain(
    'keys: Redis could not be asked for too long; no key is let in until it answers',
  );
});

test('C8: the grace begins with the last confirmation of a key in use, not with its first look-up', async () => {
  const gateway = await one();
  const key = await gateway.issueKey();
  expect(await use(gateway, key)).toBe(200);
  gateway.clock.advance(GRACE_MS - 60_000);
  await keysAre(gateway, /^ok/);
  // The new name, which no message announces, shows when the key was confirmed.
  await changeRecord(key, '"name":"test"', '"name":"seen again"');
  await vi.waitFor(async () => expect((await gateway.get('/v2/key', { key })).text).toContain('seen again'), WITHIN);
  await redis.kill();
  await keysAre(gateway, OFFLINE);
  gateway.clock.advance(120_000);
  expect(await use(gateway, key)).toBe(200);
});

test('C8: a Redis that comes back without its keys is believed', async () => {
  const gateway = await one();
  const key = await gateway.issueKey();
  expect(await use(gateway, key)).toBe(200);
  await redis.restart();
  await vi.waitFor(async () => expect(await use(gateway, key)).toBe(401), WITHIN);
});

test('a Redis that lost its keys is reported by all, also by later processes, until they are back or somebody acknowledges it', async () => {
  const fleet = await start(2);
  const { here: a, there: b } = fleet;
  const env = { REDIS_URL: redis.url, EVALGATE_ADMIN_URL: a.adminUrl };
  await a.issueKey();
  await a.issueKey();
  const { stdout: exported } = await runCli(['keys', 'export'], { env });
  await vi.waitFor(async () => expect(await keyCounts(b)).toEqual({ evalgate_keys: 2, evalgate_keys_lost: 0 }), WITHIN);
  await redis.flush();
  for (const gateway of [a, b, await fleet.join()]) await keysAre(gateway, LOST);
  expect(await keyCounts(b)).toEqual({ evalgate_keys: 0, evalgate_keys_lost: 2 });
  const doctor = await runCli(['doctor'], { env });
  expect([doctor.status, doctor.stdout]).toEqual([1, expect.stringMatching(/fail +keys +Redis lost its data at/)]);
  // The note of the loss is lost too, and made again.
  await redis.flush();
  await keysAre(b, LOST);
  await runCli(['keys', 'import', '-'], { env, stdin: exported });
  for (const gateway of [a, b]) await keysAre(gateway, /^ok: changes arrive/);
  await redis.flush();
  await keysAre(a, LOST);
  const acknowledged = await runCli(['keys', 'acknowledge-loss', '--as', 'ann'], { env });
  expect(acknowledged.stdout).toMatch(/^Acknowledged: the loss of 2 keys at /);
  for (const gateway of [a, b, await fleet.join()]) await keysAre(gateway, /^ok: changes arrive/);
  expect((await auditOf(a))[0]).toMatchObject({
    who: 'ann',
    action: 'key.loss.acknowledge',
    from: { keys: 2 },
    to: null,
  });
});

test('a key that is lost right after its creation is reported too', async () => {
  const gateway = await one();
  await gateway.issueKey();
  await redis.flush();
  await keysAre(gateway, /^degraded: Redis lost its data at \d\d:\d\d; 0 of 1 key is left/);
  expect(await keyCounts(gateway)).toEqual({ evalgate_keys: 0, evalgate_keys_lost: 1 });
});

test('keys that are created after a loss stand for none that was lost', async () => {
  const { here: a, there: b } = await start(2);
  await a.issueKey();
  await a.issueKey();
  const exported = (await runCli(['keys', 'export', '--admin', a.adminUrl])).stdout;
  await vi.waitFor(async () => expect(await keyCounts(b)).toMatchObject({ evalgate_keys: 2 }), WITHIN);
  await withClient(redis.url, (client) => client.del('evalgate:{keys}:records'));
  // Before anybody has noticed; the second is hashed elsewhere.
  await b.issueKey();
  await keysAre(a, LOST);
  const foreign = { keyId: 'key_foreign', hash: hashToken(newToken()), name: 'x', scopes: ['calls.read'] };
  const workspaceIds = ['11111111-1111-4111-8111-111111111111'];
  expect((await a.admin('POST', '/api/keys/import', { keys: [{ ...foreign, workspaceIds }] })).status).toBe(200);
  for (const gateway of [a, b]) {
    await vi.waitFor(
      async () => expect(await keyCounts(gateway)).toEqual({ evalgate_keys: 2, evalgate_keys_lost: 2 }),
      WITHIN,
    );
    await keysAre(gateway, LOST);
  }
  await runCli(['keys', 'import', '-', '--admin', a.adminUrl], { stdin: exported });
  for (const gateway of [a, b]) await keysAre(gateway, /^ok: changes arrive/);
  expect(await keyCounts(b)).toEqual({ evalgate_keys: 4, evalgate_keys_lost: 0 });
});

test('a loss that no gateway has lived through is known by the cache Redis, if that is another one, until it is acknowledged', async () => {
  const cache = await forTest(startRedis());
  const env = { REDIS_URL: redis.url, REDIS_CACHE_URL: cache.url };
  const began = await startTestGateway({ env });
  await began.issueKey();
  await began.issueKey();
  await vi.waitFor(
    async () => expect(await withClient(cache.url, (client) => client.get('evalgate:{keys}:known'))).toBe('2'),
    WITHIN,
  );
  await began.close();
  await redis.flush();
  const later = await forTest(startTestGateway({ env }));
  await keysAre(later, LOST);
  await runCli(['keys', 'acknowledge-loss', '--admin', later.adminUrl]);
  await keysAre(later, /^ok: changes arrive/);
  await redis.flush();
  const last = await forTest(startTestGateway({ env }));
  await vi.waitFor(
    async () => expect(await samplesOf(last, 'evalgate_keys')).toMatchObject({ evalgate_keys: 0 }),
    WITHIN,
  );
  await keysAre(last, /^ok: changes arrive/);
});

test.each<[string, lose: (client: TestClient, hash: string) => Promise<unknown>, left: number]>([
  ['their records', (client) => client.del('evalgate:{keys}:records'), 0],
  ['all but its journal', (client) => client.del('evalgate:{keys}:records', 'evalgate:{keys}:ids'), 0],
  ['the record of one', (client, hash) => client.hdel('evalgate:{keys}:records', hash), 1],
])('a Redis that evicts or loses of the keys %s is reported, whatever else it kept', async (_what, lose, left) => {
  const gateway = await one();
  const [first] = [await gateway.issueKey(), await gateway.issueKey()];
  await vi.waitFor(async () => expect(await keyCounts(gateway)).toMatchObject({ evalgate_keys: 2 }), WITHIN);
  await withClient(redis.url, (client) => lose(client, hashToken(first)));
  const what = left === 0 ? 'its data' : 'keys';
  await keysAre(
    gateway,
    new RegExp(`^degraded: Redis lost ${what} at \\d\\d:\\d\\d; ${left} of 2 keys (?:is|are) left; import`),
  );
  expect(await keyCounts(gateway)).toEqual({ evalgate_keys: left, evalgate_keys_lost: 2 - left });
});

const loseIds = (): Promise<unknown> => withClient(redis.url, (client) => client.del('evalgate:{keys}:ids'));

test('ids of keys that Redis alone has lost are written anew, also by a revocation or an import that needs them', async () => {
  const gateway = await one();
  const [first, second] = [await gateway.issue(), await gateway.issue()];
  await loseIds();
  expect((await gateway.admin('DELETE', `/api/keys/${first.keyId}`)).status).toBe(200);
  expect(await use(gateway, first.token)).toBe(403);
  const exported = (await runCli(['keys', 'export', '--admin', gateway.adminUrl])).stdout;
  await loseIds();
  await runCli(['keys', 'import', '-', '--admin', gateway.adminUrl], { stdin: exported });
  expect((await gateway.admin('GET', `/api/keys/${second.keyId}`)).status).toBe(200);
  await loseIds();
  await vi.waitFor(
    async () => expect(await withClient(redis.url, (client) => client.hlen('evalgate:{keys}:ids'))).toBe(2),
    WITHIN,
  );
  expect(gateway.logLines.join('')).toContain('Redis had lost ids of keys: they are written anew from the keys');
  expect(await dependency(gateway, 'keys')).toBe('ok: changes arrive');
  expect(await keyCounts(gateway)).toEqual({ evalgate_keys: 2, evalgate_keys_lost: 0 });
});

const UNCONFIRMED = /No replica of Redis has confirmed it: a failover now may undo it/;
const warningOf = ({ json }: { json: unknown }) => z.object({ warning: z.string() }).parse(json).warning;

test.skipIf(!isOneServer)(
  'a revocation that no replica has confirmed says so to whoever made it, in the log and in the audit',
  async () => {
    const gateway = await one();
    const [alone, replicated] = [await gateway.issue(), await gateway.issue()];
    const { json } = await gateway.admin('DELETE', `/api/keys/${alone.keyId}`);
    expect(json).toMatchObject({ key: { status: 'revoked' }, warning: null });
    expect((await auditOf(gateway))[0]).toMatchObject({ action: 'key.revoke', to: { status: 'revoked' } });
    // A replica that takes everything and confirms nothing.
    const { hostname, port } = new URL(redis.url);
    const replica = connect({ host: hostname, port: Number(port) });
    onTestFinished(() => void replica.destroy());
    replica.resume().write('SYNC\r\n');
    await vi.waitFor(
      async () =>
        expect(await withClient(redis.url, (client) => client.info('replication'))).toContain('connected_slaves:1'),
      WITHIN,
    );
    const to = { status: 'revoked', replicas: 'none has confirmed it' };
    const { status, stdout } = await runCli(['keys', 'revoke', replicated.keyId, '--admin', gateway.adminUrl]);
    expect([status, stdout]).toEqual([0, expect.stringMatching(UNCONFIRMED)]);
    expect(gateway.logLines.join('')).toMatch(UNCONFIRMED);
    const audited = await auditOf(gateway);
    expect(audited[0]).toMatchObject({ action: 'key.revoke', to });
    const repeated = await gateway.admin('DELETE', `/api/keys/${replicated.keyId}`);
    expect(warningOf(repeated)).toMatch(UNCONFIRMED);
    const other = `/api/keys/${(await gateway.issue()).keyId}`;
    for (let time = 0; time < 2; time += 1) {
      expect(warningOf(await gateway.admin('PATCH', other, { status: 'deprecated' }))).toMatch(UNCONFIRMED);
    }
    // Repeated, they change nothing.
    expect((await auditOf(gateway)).filter(({ action }) => action === 'key.revoke')).toHaveLength(2);
    expect(await use(gateway, replicated.token)).toBe(403);
  },
);

test('a Redis that evicts the requests of a quota is named in the log', async () => {
  const gateway = await one();
  const { keyId, token } = await gateway.issue();
  const lost = (): boolean => gateway.logLines.join('').includes('Redis has lost the requests of a quota');
  for (let time = 0; time < 2; time += 1) await gateway.get('/v2/calls', { key: token });
  expect(lost()).toBe(false);
  await withClient(redis.url, async (client) => client.del(...(await namesIn(client, `*${keyId}:log`))));
  await gateway.get('/v2/calls', { key: token });
  expect(lost()).toBe(true);
});

test('an empty Redis that nobody has seen with keys is no loss', async () => {
  const gateway = await one();
  await keysAre(gateway, /^ok: changes arrive/);
  expect(await keyCounts(gateway)).toEqual({ evalgate_keys: 0, evalgate_keys_lost: 0 });
  expect((await gateway.admin('DELETE', '/api/key-loss')).json).toEqual({ lostAt: null, keys: 0 });
});

test('C8: a gateway that starts without Redis lets no key in, and all of them once there is one', async () => {
  const fleet = await start();
  await redis.kill();
  const late = await fleet.join();
  expect(await use(late, newToken())).toBe(500);
  await keysAre(late, /^degraded: Redis could not be asked since this process started: no key is let in/);
  await redis.restart();
  await redisIsWell(late);
  await vi.waitFor(async () => expect(await use(late, await fleet.here.issueKey())).toBe(200), WITHIN);
});

const waiting = (rule: '-xread' | '+xread'): Promise<unknown> =>
  atEach(redis, (client) => client.call('ACL', 'SETUSER', 'default', rule));

test('C8: if Redis answers but changes may be missed, each key is confirmed before it is used', async () => {
  const gateway = await one();
  const key = await gateway.issueKey();
  expect(await use(gateway, key)).toBe(200);
  await waiting('-xread');
  gateway.clock.advance(1000);
  await keysAre(gateway, DEAF);
  // Also when it was just confirmed.
  expect(await use(gateway, key)).toBe(200);
  await changeRecord(key, '"active"', '"revoked"');
  gateway.clock.advance(1000);
  expect(await use(gateway, key)).toBe(403);
  await waiting('+xread');
  await keysAre(gateway, /^ok: changes arrive/);
  expect(await use(gateway, key)).toBe(403);
});

test('C8: a revocation is seen although the subscription was cut', async () => {
  const { here: operator, there: gateway } = await start(2);
  const { keyId, token } = await operator.issue();
  expect(await use(gateway, token)).toBe(200);
  expect(await cutSubscribers(redis)).toBeGreaterThanOrEqual(2);
  await operator.admin('DELETE', `/api/keys/${keyId}`);
  await vi.waitFor(async () => expect(await use(gateway, token)).toBe(403), WITHIN);
  await redisIsWell(gateway);
  expect(await use(gateway, token)).toBe(403);
});

/** A gateway that issues and revokes, and one that sees Redis through a proxy. */
async function startBehindProxy() {
  const fleet = await start();
  const proxy = await forTest(TcpProxy.start(redis.url));
  const gateway = await fleet.join({ env: { REDIS_URL: proxy.url } });
  await redisIsWell(gateway);
  return { operator: fleet.here, gateway, proxy };
}

describe.skipIf(!isOneServer)('a gateway of which Redis is cut off', () => {
  test('C8: a subscription that stands but delivers nothing is noticed, a revocation is seen, and it is made anew', async () => {
    const { operator, gateway, proxy } = await startBehindProxy();
    const { keyId, token } = await operator.issue();
    expect(await use(gateway, token)).toBe(200);
    expect(proxy.stall('evalgate-state-journal')).toBe(1);
    await operator.admin('DELETE', `/api/keys/${keyId}`);
    await vi.waitFor(async () => expect(await use(gateway, token)).toBe(403), WITHIN);
    await redisIsWell(gateway);
    expect(await use(gateway, token)).toBe(403);
  });

  test('C8: a change made while a gateway could not reach Redis is known to it before it trusts its memory', async () => {
    const { operator, gateway, proxy } = await startBehindProxy();
    const [revoked, untouched] = [await operator.issue(), await operator.issue()];
    for (const { token } of [revoked, untouched]) expect(await use(gateway, token)).toBe(200);
    proxy.cut();
    await keysAre(gateway, OFFLINE);
    await operator.admin('DELETE', `/api/keys/${revoked.keyId}`);
    // Nothing can tell it otherwise, and the grace is not over.
    expect([await use(gateway, revoked.token), await use(gateway, untouched.token)]).toEqual([200, 200]);
    proxy.heal();
    await redisIsWell(gateway);
    expect([await use(gateway, revoked.token), await use(gateway, untouched.token)]).toEqual([403, 200]);
  });
});
