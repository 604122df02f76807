/** Gateways over a Cluster, under what befalls one: slots that move, slots that are lost, a primary that dies. */
import { beforeEach, expect, test, vi } from 'vitest';
import { samplesOf } from '../support/admin.ts';
import { hashToken } from '../../src/keys/token.ts';
import { forFile } from '../support/opened.ts';
import { dependency, quotasAreExact, redisIsWell, startFleet, WITHIN, use } from '../support/world.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';
import { withClient } from '../support/redis/client.ts';
import { spawnCluster, type TestRedis } from '../support/redis.ts';
import { findRedis } from './redis-findings.ts';

const RECORDS = 'evalgate:{keys}:records';
const REPORT = `/v1/workspaces/${WORKSPACE_A}/reports/${EVALUATION_ID}`;

const cluster = await forFile(spawnCluster({ replicas: 1, nodeTimeoutMs: 1500 }));
const fleet = await forFile(startFleet(cluster.url));
const [a, b] = [fleet.here, fleet.there];
/**
 * Without limits that polling could reach. Issued long before Redis fails: the message that a key was issued, which reaches a
 * Cluster's nodes late, drops a copy of it.
 */
const known = await a.issue({ perMinute: 1_000_000, perHour: 1_000_000 });
beforeEach(async () => {
  fleet.store.put({ evaluations: [anEvaluation()] });
  // So that both have a copy of it long before Redis fails: an answer that a change overtakes is not kept.
  for (const gateway of [a, b]) await use(gateway, known.token);
});

function slotOf(name: string): Promise<number> {
  return withClient(cluster.primaries[0]?.url ?? '', (client) => client.cluster('KEYSLOT', name));
}

/** Expects all uses of a Redis to work: keys, quotas, the cache, purges and messages, at both gateways. */
async function expectServed(): Promise<void> {
  const { keyId, token: key } = await a.issue({ perMinute: 4 });
  const [first, second] = [await a.get(REPORT, { key }), await b.get(REPORT, { key })];
  expect([first.status, second.status]).toEqual([200, 200]);
  expect(second.headers['x-ratelimit-minute-remaining']).toBe('2');
  expect(second.headers['cache-status']).toMatch(/^evalgate; hit/);
  const title = `Renamed ${key.slice(-6)}`;
  fleet.store.put({ evaluations: [anEvaluation({ title })] });
  expect((await a.admin('POST', '/api/cache/purge', { tags: [`evaluation:${EVALUATION_ID}`] })).status).toBe(200);
  const reader = await b.issueKey({ perMinute: 10_000 });
  await vi.waitFor(async () => expect((await b.get(REPORT, { key: reader })).text).toContain(title), WITHIN);
  await a.admin('DELETE', `/api/keys/${keyId}`);
  await vi.waitFor(async () => expect(await use(b, key)).toBe(403), WITHIN);
}

test('R1: quotas of many keys, on all nodes, are each exact over both gateways', async () => {
  const keys = await Promise.all(Array.from({ length: 40 }, () => a.issueKey({ perMinute: 2 })));
  const statuses: (readonly number[])[] = [];
  for (const gateway of [a, b, a]) {
    const replies = await Promise.all(keys.map((key) => gateway.get('/v2/calls', { key })));
    statuses.push([...new Set(replies.map(({ status }) => status))]);
  }
  expect(statuses).toEqual([[200], [200], [429]]);
});

test('48.3: a revocation is confirmed by a replica of the primary that has the keys, and says so if it is not', async () => {
  const [first, second] = [await a.issue(), await a.issue()];
  expect((await a.admin('DELETE', `/api/keys/${first.keyId}`)).json).toMatchObject({ warning: null });
  for (const replica of cluster.replicas) await replica.pause();
  const { json } = await a.admin('DELETE', `/api/keys/${second.keyId}`);
  for (const replica of cluster.replicas) await replica.resume();
  expect(json).toMatchObject({
    key: { status: 'revoked' },
    warning:
      'No replica of Redis has confirmed it: a failover now may undo it. After a failover look at the key again, and repeat this if it is active.',
  });
});

test('nothing is lost while the slot of the keys moves to another node, and afterwards', async () => {
  const key = await a.issueKey();
  const slot = await slotOf(RECORDS);
  const from = await cluster.ownerOf(slot);
  const to = cluster.primaries.find((node) => node !== from) ?? from;
  await cluster.beginMove(slot, to);
  expect(await use(b, key)).toBe(200);
  await cluster.endMove(slot, to);
  await redisIsWell(a);
  await redisIsWell(b);
  const made = await a.issueKey();
  expect([await use(b, key), await use(b, made)]).toEqual([200, 200]);
  expect(await withClient(to.url, (client) => client.hexists(RECORDS, hashToken(made)))).toBe(1);
  await expectServed();
});

async function doctor(REDIS_URL: string): Promise<readonly string[]> {
  return (await findRedis({ REDIS_URL })).lines.filter((line) => !line.includes(' clock '));
}

test('the doctor looks at every primary, and names the one that is set otherwise', async () => {
  const [first] = cluster.primaries;
  const address = first?.url.replace('redis://', '');
  await withClient(first?.url ?? '', (client) => client.config('SET', 'appendonly', 'yes'));
  const lines = await doctor(cluster.url);
  await withClient(first?.url ?? '', (client) => client.config('SET', 'appendonly', 'no'));
  expect(lines.slice(1).toSorted()).toEqual(
    [
      'ok redis REDIS_URL: a Cluster of 3 primaries and 3 replicas, all slots served',
      ...cluster.primaries.map(({ url }) =>
        url === first?.url
          ? `ok redis REDIS_URL (${address}): keeps its data over a restart (appendonly yes)`
          : `fail redis REDIS_URL (${url.replace('redis://', '')}): loses all API keys when it restarts: it saves nothing`,
      ),
      'warn redis REDIS_URL: has no memory limit (maxmemory 0), and cached answers may take what keys and limits need',
      'ok redis REDIS_URL: scripts, writes and messages work',
    ].toSorted(),
  );
  const plain = await doctor(first?.url ?? '');
  expect(plain).toEqual([expect.stringMatching(/^fail redis REDIS_URL: Redis at .* can't be used \(MOVED .*\)$/)]);
  expect(a.logLines.join('')).toMatch(/The node 127\.0\.0\.1:\d+ of REDIS_URL loses all API keys when it restarts/);
});

const limit = (bytes: number): Promise<unknown> =>
  withClient(cluster.primaries[0]?.url ?? '', (client) => client.config('SET', 'maxmemory', bytes));

test('the cache leaves memory to keys and limits as soon as one primary is short of it', async () => {
  const name = 'evalgate_redis_cache_over_budget';
  const isOver = (value: 0 | 1) =>
    vi.waitFor(async () => expect(await samplesOf(a, name)).toEqual({ [name]: value }), WITHIN);
  await isOver(0);
  await limit(1);
  await isOver(1);
  await limit(0);
  await isOver(0);
  await redisIsWell(a);
  await redisIsWell(b);
  await expectServed();
});

test('C8: if a Cluster does not serve all of its slots, known keys go on, and the doctor says how to find out', async () => {
  const key = known.token;
  expect(await use(a, key)).toBe(200);
  // Another one than that of the keys, whose node then knows that it is not whole.
  const slot = await slotOf('another');
  const tell = (what: 'ADDSLOTS' | 'DELSLOTS', nodes: readonly Pick<TestRedis, 'url'>[]) =>
    Promise.all(nodes.map(({ url }) => withClient(url, (client) => client.call('CLUSTER', what, slot))));
  const owner = await cluster.ownerOf(slot);
  await tell('DELSLOTS', cluster.primaries);
  try {
    await vi.waitFor(
      async () => expect(await dependency(a, 'keys')).toMatch(/^degraded: Redis cannot be asked/),
      WITHIN,
    );
    expect((await a.get('/v2/calls', { key })).status).toBe(200);
    const [failure] = (await findRedis({ REDIS_URL: cluster.url })).found;
    expect(failure?.status).toBe('fail');
    expect(failure?.message).toMatch(/^REDIS_URL: the Cluster at .* can't be used \(/);
    expect(failure?.advice).toContain('redis-cli --cluster check 127.0.0.1:');
  } finally {
    await tell('ADDSLOTS', [owner]);
  }
  await redisIsWell(a);
  await redisIsWell(b);
  await expectServed();
});

test('C8, R5: a primary that dies: known keys go on, and its replica takes over with keys, revocations and quotas', async () => {
  const { keyId, token: key } = known;
  for (const gateway of [a, b]) expect(await use(gateway, key)).toBe(200);
  const gone = await cluster.ownerOf(await slotOf(RECORDS));
  // Changes that the replica did not receive may be lost, without a fault of a gateway.
  await withClient(gone.url, (client) => client.wait(1, 5000));
  await gone.kill();
  await vi.waitFor(async () => {
    expect((await a.get('/v2/calls', { key })).status).toBe(200);
    expect(await dependency(a, 'keys')).toMatch(/^degraded/);
  }, WITHIN);
  for (const gateway of [a, b]) await quotasAreExact(gateway);
  await a.admin('DELETE', `/api/keys/${keyId}`);
  await vi.waitFor(async () => expect(await use(b, key)).toBe(403), WITHIN);
  await expectServed();
}, 60_000);
