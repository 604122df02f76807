/** Gateways over a primary that Sentinels watch: who takes over is found, and the old one is left, dead or alive. */
import { expect, test, vi } from 'vitest';
import { hashToken } from '../../src/keys/token.ts';
import type { TestGateway } from '../support/gateway.ts';
import { forFile, forTest } from '../support/opened.ts';
import { dependency, FAILOVER, type World, redisIsWell, startFleet, WITHIN } from '../support/world.ts';
import { connectWhenUp, withClient } from '../support/redis/client.ts';
import { spawnSentinels } from '../support/redis.ts';
import { findRedis } from './redis-findings.ts';

const group = await forFile(spawnSentinels({ replicas: 1, downAfterMs: 600 }));

const start = (url = group.url): Promise<World> => forTest(startFleet(url));

const use = async (gateway: TestGateway, key: string): Promise<number> =>
  (await gateway.get('/v2/calls', { key })).status;

const doctor = async (REDIS_URL: string): Promise<readonly string[]> => (await findRedis({ REDIS_URL })).lines;

test('the doctor asks the Sentinels, and says what is wrong with a name or a password', async () => {
  const { host } = new URL((await group.primary()).url);
  expect(await doctor(group.url)).toContain(`ok redis REDIS_URL: 3 of 3 Sentinels name the same primary, ${host}`);
  const [unknown] = await doctor(group.url.replace(/\/main$/, '/other'));
  expect(unknown).toMatch(
    /^fail redis REDIS_URL: the primary other of the Sentinels at .* can't be used \(the Sentinels know no primary of that name\)$/,
  );
  const [refused] = await doctor(group.url.replace('://', '://someone:s3cret@'));
  expect(refused).toMatch(
    /^fail redis REDIS_URL: the primary main of the Sentinels at [\d.:, ]* can't be used \(WRONGPASS/,
  );
  const server = new URL(group.servers[0] ?? '').host;
  expect((await doctor(`redis+sentinel://${server}/main`)).join()).toMatch(/^fail redis REDIS_URL: /);
});

test('the doctor names a primary that the Sentinels report and that does not answer', async () => {
  const url = group.url.replace(/\/main$/, '/gone');
  const hosts = group.url.replace(/^.*:\/\/|\/main$/g, '').split(',');
  const each = (...words: readonly string[]) =>
    Promise.all(hosts.map((host) => withClient(`redis://${host}`, (client) => client.call('SENTINEL', [...words]))));
  await each('MONITOR', 'gone', '127.0.0.1', '1', '2');
  try {
    const [failure, named] = await doctor(url);
    expect(failure).toMatch(
      /^fail redis REDIS_URL: the primary gone of the Sentinels at .* can't be used \(ECONNREFUSED\)$/,
    );
    expect(named).toBe('ok redis REDIS_URL: 3 of 3 Sentinels name the same primary, 127.0.0.1:1');
  } finally {
    await each('REMOVE', 'gone');
  }
});

test('Redis and its Sentinels each have a password of their own in the address', async () => {
  const hosts = group.url.replace('redis+sentinel://', '').replace('/main', '').split(',');
  const sentinels = await Promise.all(hosts.map((host) => connectWhenUp(`redis://${host}`, 5000)));
  const servers = await Promise.all(group.servers.map((url) => connectWhenUp(url, 5000)));
  const demand = async (user: string, password: string): Promise<void> => {
    for (const one of sentinels) await one.acl('SETUSER', 'default', 'resetpass', user);
    for (const one of servers) {
      await one.config('SET', 'masterauth', password);
      await one.config('SET', 'requirepass', password);
    }
  };
  try {
    await demand('>s3ntinel', 's3rver');
    const withBoth = group.url.replace('://', '://:s3rver@').concat('?sentinelPassword=s3ntinel');
    const fleet = await startFleet(withBoth, { size: 1 });
    const gateway = fleet.here;
    expect(await use(gateway, await gateway.issueKey())).toBe(200);
    await fleet.close();
    expect(gateway.logLines.join('')).not.toMatch(/s3rver|s3ntinel/);
    const [refused] = await doctor(group.url.replace('://', '://:s3rver@'));
    expect(refused).toMatch(/^fail redis REDIS_URL: .* can't be used \(no Sentinel answers: NOAUTH/);
    expect(JSON.stringify(await doctor(withBoth))).not.toMatch(/s3rver|s3ntinel/);
  } finally {
    await demand('nopass', '');
    for (const one of [...sentinels, ...servers]) one.disconnect();
  }
});

test('48.3: a revocation is confirmed by a replica, and says so if there is none that could have it when it takes over', async () => {
  const { here: gateway } = await start();
  const [first, second] = [await gateway.issue(), await gateway.issue()];
  expect((await gateway.admin('DELETE', `/api/keys/${first.keyId}`)).json).toMatchObject({ warning: null });
  const primary = await group.primary();
  const [replica = ''] = group.servers.filter((url) => url !== primary.url);
  const { hostname, port } = new URL(primary.url);
  const replicasAre = (count: number): Promise<void> =>
    vi.waitFor(async () => {
      const info = await withClient(primary.url, (client) => client.info('replication'));
      expect(info).toContain(`connected_slaves:${count}`);
    }, WITHIN);
  await withClient(replica, (client) => client.replicaof('NO', 'ONE'));
  try {
    await replicasAre(0);
    const { json } = await gateway.admin('DELETE', `/api/keys/${second.keyId}`);
    expect(json).toMatchObject({
      key: { status: 'revoked' },
      warning:
        'No replica of Redis has confirmed it: a failover now may undo it. After a failover look at the key again, and repeat this if it is active.',
    });
  } finally {
    await withClient(replica, (client) => client.replicaof(hostname, port));
    await replicasAre(1);
  }
});

test('C8, R5: a primary that freezes is left for the new one, with all that it knew, and never returned to', async () => {
  const { here: a, there: b } = await start();
  const { keyId, token: key } = await a.issue({ perMinute: 1000 });
  for (const gateway of [a, b]) expect(await use(gateway, key)).toBe(200);
  const old = await group.primary();
  // Changes that the replica did not receive may be lost, without a fault of a gateway.
  await withClient(old.url, (client) => client.wait(1, 5000));
  await old.pause();
  await vi.waitFor(async () => {
    expect(await use(a, key)).toBe(200);
    expect(await dependency(a, 'redis-state')).toMatch(/^degraded/);
  }, WITHIN);
  const next = await group.replaced(old);
  for (const gateway of [a, b]) {
    await redisIsWell(gateway);
    await vi.waitFor(async () => expect(await use(gateway, key)).toBe(200), FAILOVER);
    const lines = gateway.logLines.filter((line) => line.includes('Redis: the Sentinels name another primary'));
    expect(lines).toHaveLength(1);
    expect(gateway.logLines.filter((line) => line.includes('ConnectionLostError'))).toEqual([]);
  }
  await old.resume();
  const made = await a.issueKey();
  expect(await withClient(next.url, (client) => client.hexists('evalgate:{keys}:records', hashToken(made)))).toBe(1);
  expect(await use(b, made)).toBe(200);
  await a.admin('DELETE', `/api/keys/${keyId}`);
  await vi.waitFor(async () => expect(await use(b, key)).toBe(403), WITHIN);
}, 60_000);
