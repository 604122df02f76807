import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { heartbeatsKey, instancesKey } from '../../src/redis/names.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import type { InstanceInfo } from '../../src/redis/instances.ts';
import { singleInstance, type Instances } from '../../src/redis/instances.ts';
import { openMembers } from '../support/members.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let opened: { readonly link: RedisLink; readonly members: Instances }[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());
beforeEach(() => redis.flush());
afterEach(async () => {
  for (const { link, members } of opened) {
    await members.close();
    await link.close();
  }
  opened = [];
});

async function join(about: Partial<InstanceInfo> = {}): Promise<Instances> {
  const link = openRedis({ url: redis.url, role: 'state' });
  await linkUp(link);
  const members = openMembers(link, about);
  opened.push({ link, members });
  return members;
}

function idsOf(members: Instances): readonly string[] {
  return members.list().map(({ id }) => id);
}

test('each process knows all others and what they tell of themselves', async () => {
  const [one, two] = [await join({ host: 'a', pid: 1 }), await join({ host: 'b', pid: 2, status: 'starting' })];
  const known = [one.id, two.id].toSorted();
  await vi.waitFor(() => expect([idsOf(one), idsOf(two)]).toEqual([known, known]));
  expect(one.list().find(({ id }) => id === two.id)).toEqual({
    id: two.id,
    host: 'b',
    pid: 2,
    version: '1.2.3',
    startedAtMs: Date.UTC(2026, 0, 15, 12),
    status: 'starting',
    store: 'test',
  });
  expect([one.count(), two.count()]).toEqual([2, 2]);
});

test('how a process is from now on is told to the others', async () => {
  const [one, two] = [await join(), await join({ status: 'starting' })];
  two.setStatus('draining');
  await vi.waitFor(() =>
    expect(
      one
        .list()
        .map(({ status }) => status)
        .toSorted(),
    ).toEqual(['draining', 'ready']),
  );
});

test('who comes, changes or goes is known at once, long before the next beat', async () => {
  const slow = openRedis({ url: redis.url, role: 'state' });
  await linkUp(slow);
  await vi.waitFor(() => expect(slow.subscriber.isUp()).toBe(true));
  const one = openMembers(slow, {}, 60_000);
  opened.push({ link: slow, members: one });
  const statuses = (): readonly string[] => one.list().map(({ status }) => status);
  const two = await join({ status: 'starting' });
  await vi.waitFor(() => expect(statuses().toSorted()).toEqual(['ready', 'starting']));
  two.setStatus('draining');
  await vi.waitFor(() => expect(statuses().toSorted()).toEqual(['draining', 'ready']));
  await two.close();
  await vi.waitFor(() => expect(statuses()).toEqual(['ready']));
});

test('peers are those in front of the same store, while all are counted', async () => {
  const [one, two, other] = [await join(), await join(), await join({ store: 'other' })];
  const peers = [one.id, two.id].toSorted();
  await vi.waitFor(() => expect([one.peers(), two.peers(), other.peers()]).toEqual([peers, peers, [other.id]]));
  await vi.waitFor(() => expect([one, two, other].map((members) => members.count())).toEqual([3, 3, 3]));
});

test('a process that ends is known no more, and leaves nothing behind', async () => {
  const [one, two] = [await join(), await join()];
  await vi.waitFor(() => expect(idsOf(one)).toHaveLength(2));
  await two.close();
  await vi.waitFor(() => expect(idsOf(one)).toEqual([one.id]));
  const client = opened[0]?.link.client;
  expect(await client?.hkeys(instancesKey())).toEqual([one.id]);
  expect(await client?.zrange(heartbeatsKey(), '0', '-1')).toEqual([one.id]);
});

test('a process that was killed is known no more once its beats are too long ago', async () => {
  const one = await join();
  const client = opened[0]?.link.client;
  const about = JSON.stringify({ ...one.list()[0], id: undefined });
  await client?.hset(instancesKey(), { killed: about, alive: about });
  await client?.zadd(heartbeatsKey(), String(Date.now() - 10_100), 'killed', String(Date.now() - 5000), 'alive');
  await vi.waitFor(() => expect(idsOf(one)).toEqual(['alive', one.id].toSorted()));
  await vi.waitFor(async () => expect(await client?.hexists(instancesKey(), 'killed')).toBe(0));
});

test('a process that tells in another way counts, and is not listed', async () => {
  const one = await join();
  const client = opened[0]?.link.client;
  await client?.hset(instancesKey(), { foreign: '{"host":7}', broken: '{' });
  await client?.zadd(heartbeatsKey(), String(Date.now()), 'foreign', String(Date.now()), 'broken');
  await vi.waitFor(() => expect(one.count()).toBe(3));
  expect(idsOf(one)).toEqual([one.id]);
});

test('without Redis what was last known holds, and an end does not wait for it', async () => {
  const one = await join();
  await join();
  await vi.waitFor(() => expect(idsOf(one)).toHaveLength(2));
  await opened[0]?.link.close();
  await sleep(60);
  expect(idsOf(one)).toHaveLength(2);
  await one.close();
});

test('a process that is alone knows itself', () => {
  const about: InstanceInfo = { host: 'a', pid: 1, version: '1', startedAtMs: 5, status: 'starting', store: 's' };
  const members = singleInstance(about);
  members.setStatus('ready');
  expect(members.list()).toEqual([{ ...about, id: members.id, status: 'ready' }]);
  expect([members.count(), members.peers()]).toEqual([1, [members.id]]);
});
