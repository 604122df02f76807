/** A Cluster under what befalls one: slots that move, a primary that dies or freezes, and who hears of what. */
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { z } from 'zod';
import { systemClock } from '../../src/clock.ts';
import { createRedisQuota } from '../../src/quota/redis-quota.ts';
import { QUOTA_BUCKETS, registryKey, taggedKey } from '../../src/redis/names.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { defineScript, runScript } from '../../src/redis/script.ts';
import { hears, NEW_KEY, startKeyFleet } from '../support/key-fleet.ts';
import { scriptStats } from '../support/quota-cost.ts';
import { withClient } from '../support/redis/client.ts';
import { spawnCluster, type TestCluster } from '../support/redis.ts';
import { linkDown, linkUp } from '../support/redis-link.ts';
import { evalgate } from '../unit/cli/support.ts';

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await spawnCluster({ replicas: 1, nodeTimeoutMs: 1500 });
});
afterAll(async () => {
  await cluster.close();
});

async function open(): Promise<RedisLink> {
  const link = openRedis({ url: cluster.url, role: 'state' });
  onTestFinished(() => link.close());
  await linkUp(link);
  await vi.waitFor(() => expect(link.subscriber.isUp()).toBe(true), 5000);
  return link;
}

const BOTH = defineScript('both', `redis.call('INCR', KEYS[1]) return redis.call('INCR', KEYS[2])`);

test('quotas of many keys go in one call a bucket, however many there are', async () => {
  const link = await open();
  const quota = createRedisQuota({ redis: link, clock: systemClock, answerWithinMs: 5000 });
  const calls = async (): Promise<number> => {
    const all = await Promise.all(link.servers().map(({ client }) => scriptStats(client)));
    return all.reduce((sum, one) => sum + one.calls, 0);
  };
  const take = (count: number) =>
    Promise.all(Array.from({ length: count }, async (_, i) => quota.take(`key_${i}`, { perMinute: 1, perHour: 1 })));
  // The first one at each node sends the script itself.
  await take(300);
  const before = await calls();
  const limits = { perMinute: 5, perHour: 5 };
  const decisions = await Promise.all(Array.from({ length: 300 }, async (_, i) => quota.take(`key_${i}`, limits)));
  expect(decisions.every(({ admitted, minute }) => admitted && minute.remaining === 3)).toBe(true);
  expect((await calls()) - before).toBe(QUOTA_BUCKETS);
});

test('reads and scripts follow their keys while a slot moves to another node, and afterwards', async () => {
  const link = await open();
  const [one, two] = [taggedKey('moving', 'one'), taggedKey('moving', 'two')];
  const slot = Number(await link.servers()[0]?.client.cluster('KEYSLOT', one));
  await link.client.set(one, '1');
  const from = await cluster.ownerOf(slot);
  const to = cluster.primaries.find((node) => node !== from) ?? from;
  await cluster.beginMove(slot, to);
  // There is no key left where it was: ASK.
  expect(await link.client.get(one)).toBe('1');
  // The one is there, the other nowhere: TRYAGAIN, until the slot is handed over. It is done once.
  const both = runScript(link, BOTH, { keys: [one, two], args: [] });
  await cluster.endMove(slot, to);
  expect(await both).toBe(1);
  expect(await link.client.mget(one, two)).toEqual(['2', '1']);
  expect(link.isUp()).toBe(true);
});

test('a message published at any node is heard by all', async () => {
  const [one, two] = [await open(), await open()];
  const heard: string[] = [];
  await one.subscriber.subscribe('news', (message) => heard.push(`one ${message}`));
  await two.subscriber.subscribe('news', (message) => heard.push(`two ${message}`));
  for (const [i, { client }] of one.servers().entries()) await client.publish('news', String(i));
  await vi.waitFor(() => expect(heard.length).toBe(6), 5000);
  expect(new Set(heard).size).toBe(6);
});

const reportSchema = z.object({
  checks: z.array(z.object({ name: z.string(), status: z.string(), message: z.string() })),
});

async function doctor(env: Record<string, string>): Promise<readonly string[]> {
  const { stdout } = await evalgate(['doctor', '--json', '--admin', 'http://127.0.0.1:1'], { env });
  const { checks } = reportSchema.parse(JSON.parse(stdout));
  return checks
    .filter(({ name }) => name === 'redis')
    .map(({ status, message }) => `${status} ${message.replace(/[\d.]+ ms/, 'N ms')}`);
}

test('the doctor looks at every primary, and names the one that is set otherwise', async () => {
  const [first] = cluster.primaries;
  const address = first?.url.replace('redis://', '');
  await withClient(first?.url ?? '', (client) => client.config('SET', 'appendonly', 'yes'));
  const lines = await doctor({ REDIS_URL: cluster.url });
  await withClient(first?.url ?? '', (client) => client.config('SET', 'appendonly', 'no'));
  expect(lines.slice(1).toSorted()).toEqual(
    [
      'ok REDIS_URL: a Cluster of 3 primaries and 3 replicas, all slots served',
      ...cluster.primaries.map(({ url }) =>
        url === first?.url
          ? `ok REDIS_URL (${address}): keeps what it has over a restart (appendonly yes)`
          : `fail REDIS_URL (${url.replace('redis://', '')}): loses all API keys when it restarts: it saves nothing`,
      ),
      'ok REDIS_URL: drops nothing (maxmemory-policy noeviction)',
      'ok REDIS_URL: scripts, writes and messages work',
    ].toSorted(),
  );
  const plain = await doctor({ REDIS_URL: first?.url ?? '' });
  expect(plain).toContain('fail REDIS_URL: is a node of a Cluster, and holds only some of the keys');
});

test('where a Cluster does not serve all of its slots, keys count as not to be asked, and the doctor says what is missing', async () => {
  const fleet = await startKeyFleet({ url: cluster.url, size: 1 });
  onTestFinished(() => fleet.close());
  const [registry] = fleet.registries;
  await vi.waitFor(() => expect(registry?.trust()).toBe('heard'), 5000);
  // Another one than that of the keys, whose node then knows that it is not whole.
  const slot = await withClient(cluster.primaries[0]?.url ?? '', (client) => client.cluster('KEYSLOT', 'another'));
  const tell = (what: 'ADDSLOTS' | 'DELSLOTS', nodes: readonly { readonly url: string }[]) =>
    Promise.all(nodes.map(({ url }) => withClient(url, (client) => client.call('CLUSTER', what, slot))));
  const owner = await cluster.ownerOf(slot);
  await tell('DELSLOTS', cluster.primaries);
  try {
    await vi.waitFor(() => expect(registry?.trust()).toBe('offline'), 10_000);
    const [failure, view] = await doctor({ REDIS_URL: cluster.url });
    expect(failure).toMatch(/^fail REDIS_URL: the Cluster at .* can't be used \(/);
    expect(view).toMatch(/^warn REDIS_URL: as 127\.0\.0\.1:\d+ sees it, 1 of 16384 slots belong to no node$/);
  } finally {
    await tell('ADDSLOTS', [owner]);
  }
  await vi.waitFor(() => expect(registry?.trust()).toBe('heard'), 10_000);
});

test('a primary that dies: down at once, up with its replica, messages arrive again, and nothing is done twice', async () => {
  const link = await open();
  const fleet = await startKeyFleet({ url: cluster.url, size: 2 });
  onTestFinished(() => fleet.close());
  const [one, two] = fleet.registries;
  const { key } = await fleet.registry.create(NEW_KEY);
  expect(await two?.find(key.hash)).toEqual(key);
  // That with the registry of keys.
  const slot = Number(await link.servers()[0]?.client.cluster('KEYSLOT', registryKey('records')));
  const counter = registryKey('counter');
  const tally = { sent: 0, answered: 0, isOver: false };
  const counting = (async () => {
    while (!tally.isOver) {
      tally.sent += 1;
      await link.client.incr(counter).then(
        () => (tally.answered += 1),
        () => new Promise((resume) => setTimeout(resume, 5)),
      );
    }
  })();
  await vi.waitFor(() => expect(tally.answered).toBeGreaterThan(100), 5000);
  await (await cluster.ownerOf(slot)).kill();
  await linkDown(link);
  await linkUp(link);
  const answeredBefore = tally.answered;
  await vi.waitFor(() => expect(tally.answered).toBeGreaterThan(answeredBefore + 100), 5000);
  tally.isOver = true;
  await counting;
  expect(Number(await link.client.get(counter))).toBeLessThanOrEqual(tally.sent);
  // The one that the replica has not been told of may be lost, and is the whole of it.
  expect(Number(await link.client.get(counter))).toBeGreaterThan(tally.answered - 100);
  if (one === undefined || two === undefined) throw new RangeError('There are two.');
  await Promise.all([hears(one), hears(two)]);
  await one.setStatus(key.keyId, 'revoked');
  await vi.waitFor(async () => expect((await two.find(key.hash))?.status).toBe('revoked'), 2000);
});
