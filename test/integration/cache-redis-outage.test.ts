import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Redis } from 'ioredis';
import type { RedisFleetHooks } from '../../src/cache/redis-fleet.ts';
import { type CacheMember, comesTrue, openMember } from '../support/cache-fleet.ts';
import { MessagesProxy } from '../support/messages-proxy.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { aStoredEvaluation, keyOfEvaluation } from '../support/stored-entry.ts';

const key = keyOfEvaluation('ev_1');
/** Until a Redis that went away is found to be so, or one that came back is joined. */
const NOTICED_MS = 5000;

let redis: TestRedis;
let proxy: MessagesProxy;
let raw: Redis;
/** Sees Redis through the proxy. */
let near: CacheMember;
/** Sees it directly. */
let far: CacheMember;
let hearings: string[];

beforeAll(async () => {
  redis = await startRedis({ controls: true });
});
afterAll(() => redis.close());
beforeEach(async () => {
  await redis.flush();
  raw = await connectWhenUp(redis.url, 5000);
  proxy = await MessagesProxy.start(redis.url);
  hearings = [];
  const hooks: RedisFleetHooks = { onHearing: ({ role, hearing }) => hearings.push(`${role} ${hearing}`) };
  near = await openMember({ url: proxy.url, hooks });
  far = await openMember({ url: redis.url });
});
afterEach(async () => {
  near.close();
  far.close();
  raw.disconnect();
  await proxy.close();
});

const statuses = (member: CacheMember): readonly string[] => member.health().map(({ status }) => status);
const isWhole = (): boolean => statuses(near).every((status) => status === 'ok');

/** Cuts the connections that go by that name. */
async function kill(name: string): Promise<void> {
  const clients = String(await raw.call('CLIENT', 'LIST')).split('\n');
  for (const client of clients.filter((line) => line.includes(` name=${name} `))) {
    await raw.call('CLIENT', 'KILL', 'ID', /id=(\d+)/.exec(client)?.[1] ?? '');
  }
}

/** Puts a copy into the memory of the near process, filled now. */
function remember(): void {
  near.memory.set(key, { ...aStoredEvaluation(Date.now()), position: near.purges.position() });
}

describe('C8: the subscription is lost but Redis answers', () => {
  test('memory is dropped at once, and used again once messages arrive', async () => {
    remember();
    hearings.length = 0;
    await raw.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    expect(await comesTrue(() => hearings.includes('state deaf') && hearings.includes('cache deaf'), NOTICED_MS)).toBe(
      true,
    );
    expect(near.memory.get(key)).toBeUndefined();
    expect(await comesTrue(isWhole, NOTICED_MS)).toBe(true);
    remember();
    expect(near.memory.get(key)).toBeDefined();
    expect(hearings.slice(-2).toSorted()).toEqual(['cache hearing', 'state hearing']);
  });

  test('memory is used again only when the messages of both roles arrive', async () => {
    const names = { state: 'evalgate-state-messages', cache: 'evalgate-cache-messages' };
    far.close();
    const over = new AbortController();
    const cacheIsKilledAgainAndAgain = (async (): Promise<void> => {
      while (!over.signal.aborted) await kill(names.cache);
    })();
    expect(await comesTrue(() => hearings.at(-1) === 'cache deaf', NOTICED_MS)).toBe(true);
    await kill(names.state);
    expect(await comesTrue(() => hearings.includes('state deaf'), NOTICED_MS)).toBe(true);
    expect(await comesTrue(() => hearings.at(-1) === 'state hearing', NOTICED_MS)).toBe(true);
    expect(near.memory.set(key, aStoredEvaluation(Date.now()))).toBe(false);
    over.abort();
    await cacheIsKilledAgainAndAgain;
    expect(await comesTrue(isWhole, NOTICED_MS)).toBe(true);
    expect(near.memory.set(key, aStoredEvaluation(Date.now()))).toBe(true);
  });

  test('a connection that stands and delivers nothing is found out, and memory dropped', async () => {
    remember();
    hearings.length = 0;
    expect(proxy.stallMessages()).toBe(1);
    expect(await comesTrue(() => hearings.includes('state deaf'), NOTICED_MS)).toBe(true);
    expect(near.memory.get(key)).toBeUndefined();
    expect(await comesTrue(isWhole, NOTICED_MS)).toBe(true);
  });

  test('a purge that its messages do not tell is known within a second all the same', async () => {
    const before = near.purges.position();
    proxy.stallMessages();
    await far.purges.purge(['class:list'], 'hard');
    expect(await comesTrue(() => near.purges.since(before, ['class:list']) === 'hard', 1000)).toBe(true);
  });
});

describe('C8: without Redis', () => {
  test('what memory holds stays usable, new copies are kept, and the fleet is refused at once', async () => {
    remember();
    await redis.kill();
    expect(await comesTrue(() => statuses(near).every((status) => status === 'degraded'), NOTICED_MS)).toBe(true);
    expect(near.memory.get(key)).toBeDefined();
    expect(near.memory.set(keyOfEvaluation('ev_2'), aStoredEvaluation(Date.now(), { id: 'ev_2' }))).toBe(true);
    await expect(near.fleet.tier.get(key)).rejects.toThrow('does not answer');
    await expect(near.fleet.leases.acquire(key)).rejects.toThrow('does not answer');
    await expect(near.purges.purge(['all'], 'hard')).rejects.toThrow('does not answer');
    await redis.restart();
  });

  test('a frozen Redis is one that does not answer, and nothing is lost when it goes on', async () => {
    remember();
    const before = near.purges.position();
    await redis.pause();
    expect(await comesTrue(() => statuses(near).every((status) => status === 'degraded'), NOTICED_MS)).toBe(true);
    expect(near.memory.get(key)).toBeDefined();
    await redis.resume();
    expect(await comesTrue(isWhole, NOTICED_MS)).toBe(true);
    expect(near.memory.get(key)).toBeDefined();
    expect(near.purges.position()).toEqual(before);
  });

  test('a purge that this process could not hear of rules what it holds once Redis is back', async () => {
    remember();
    const held = near.memory.get(key);
    proxy.cut();
    expect(await comesTrue(() => statuses(near).every((status) => status === 'degraded'), NOTICED_MS)).toBe(true);
    await far.purges.purge(['evaluation:ev_1'], 'hard');
    expect(near.purges.since(near.purges.position(), held?.tags ?? [])).toBeNull();
    const position = held?.position ?? near.purges.position();
    proxy.heal();
    expect(await comesTrue(isWhole, NOTICED_MS)).toBe(true);
    expect(near.purges.since(position, held?.tags ?? [])).toBe('hard');
  });

  test('what others have stored meanwhile replaces the copy once Redis is back; other copies stay', async () => {
    remember();
    const other = keyOfEvaluation('ev_2');
    near.memory.set(other, aStoredEvaluation(Date.now(), { id: 'ev_2' }));
    proxy.cut();
    expect(await comesTrue(() => statuses(near).every((status) => status === 'degraded'), NOTICED_MS)).toBe(true);
    await far.fleet.tier.set(key, aStoredEvaluation(Date.now() + 1, { title: 'Newer' }));
    proxy.heal();
    expect(await comesTrue(() => near.memory.get(key) === undefined, NOTICED_MS)).toBe(true);
    expect(near.memory.get(other)).toBeDefined();
    expect(hearings).not.toContain('cache deaf');
  });

  test('a Redis that comes back empty counts as a purge of everything', async () => {
    remember();
    const before = near.purges.position();
    await redis.restart();
    expect(await comesTrue(() => near.purges.since(before, ['evaluation:ev_1']) === 'hard', NOTICED_MS)).toBe(true);
    expect(await comesTrue(() => near.purges.position().history === far.purges.position().history, NOTICED_MS)).toBe(
      true,
    );
  });

  test('a process starts without Redis, and joins the fleet when it comes', async () => {
    await redis.kill();
    const startedMs = performance.now();
    const lone = await openMember({ url: redis.url });
    expect(performance.now() - startedMs).toBeLessThan(2000);
    const detail = 'does not answer: this process goes on by itself';
    expect(lone.health()).toEqual([
      { name: 'redis-state', status: 'degraded', detail },
      { name: 'redis-cache', status: 'degraded', detail },
    ]);
    const before = lone.purges.position();
    expect(lone.memory.set(key, aStoredEvaluation(Date.now()))).toBe(true);
    await redis.restart();
    expect(await comesTrue(() => statuses(lone).every((status) => status === 'ok'), NOTICED_MS)).toBe(true);
    expect(lone.purges.since(before, ['all'])).toBe('hard');
    expect((await lone.fleet.leases.acquire(key)).kind).toBe('acquired');
    lone.close();
  });

  test('where only the cache Redis is gone, purges go on', async () => {
    const cache = await startRedis({ controls: true });
    const member = await openMember({ url: redis.url, cacheUrl: cache.url });
    await cache.kill();
    expect(await comesTrue(() => statuses(member).includes('degraded'), NOTICED_MS)).toBe(true);
    expect(member.health().map(({ name, status }) => [name, status])).toEqual([
      ['redis-state', 'ok'],
      ['redis-cache', 'degraded'],
    ]);
    const before = member.purges.position();
    await far.purges.purge(['class:list'], 'hard');
    expect(await comesTrue(() => member.purges.since(before, ['class:list']) === 'hard', 1000)).toBe(true);
    member.close();
    await cache.close();
  });

  test('a process that has never read the purge log adds nothing to the fleet', async () => {
    const cache = await startRedis({ controls: true });
    await redis.kill();
    const lone = await openMember({ url: redis.url, cacheUrl: cache.url });
    await expect(lone.fleet.leases.acquire(key)).rejects.toThrow('the purge log was not read yet');
    lone.close();
    await redis.restart();
    await cache.close();
  });
});
