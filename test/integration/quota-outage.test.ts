/** R5, R6: the rate limit while Redis is frozen, gone or full, and when it is back. */
import { beforeEach, expect, test, vi } from 'vitest';
import { forTest } from '../support/opened.ts';
import { SettableKey } from '../http/common/rate-limit-suite.ts';
import type { Reply, TestGateway } from '../support/gateway.ts';
import { dependency, FAILOVER, quotasAreExact, startFleet, WITHIN } from '../support/world.ts';
import { atEach, namesIn, withClient } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const LIMITS = { perMinute: 20, perHour: 1000 };

let redis: TestRedis;
beforeEach(async () => {
  redis = await forTest(startRedis({ isDurable: true }));
});

async function start(size: number) {
  const fleet = await forTest(startFleet(redis.url, { size }));
  const key = new SettableKey(fleet.here);
  await key.setLimits(LIMITS);
  return { gateways: fleet.gateways, key, gateway: fleet.here, other: fleet.there };
}

async function ask(key: SettableKey, count: number, at?: TestGateway): Promise<readonly Reply[]> {
  const replies: Reply[] = [];
  for (let i = 0; i < count; i += 1) replies.push(await key.ask(at));
  return replies;
}

/** How many were admitted; all others must have been refused by the quota. */
function admittedOf(replies: readonly Reply[]): number {
  for (const { status } of replies) expect([200, 429]).toContain(status);
  return replies.filter(({ status }) => status === 200).length;
}

/** The times in the key's log, which must be in order. */
async function timesOf({ keyId }: SettableKey): Promise<readonly number[]> {
  return withClient(redis.url, async (client) => {
    const [name = ''] = await namesIn(client, `evalgate:{quota-*}:${keyId}:log`);
    const times = (await client.lrange(name, 0, -1)).map(Number);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    return times;
  });
}

test('R5: while Redis is frozen each gateway admits its share of what was left as it last knew', async () => {
  const { gateways, gateway: first, other: second, key } = await start(2);
  for (const [count, at] of [[5, first] as const, [5, second] as const, [1, first] as const]) await ask(key, count, at);
  await redis.pause();
  const replies = await Promise.all([ask(key, 40, first), ask(key, 40, second)]);
  // Nine of the 20 were left as the first one knew it, ten as the second did: half of that each.
  expect(replies.map(admittedOf)).toEqual([4, 5]);
  for (const gateway of gateways) {
    const told = await dependency(gateway, 'quota');
    expect(told).toBe('degraded: Redis does not decide: this process goes on with its share, one of 2');
  }
});

test('R5: a gateway alone goes on from the use that it last knew, with exact headers, and a look costs nothing', async () => {
  const { key } = await start(1);
  await ask(key, 8);
  await redis.kill();
  const [first, ...others] = await ask(key, 30);
  expect(first?.headers).toMatchObject({
    'x-ratelimit-minute-limit': '20',
    'x-ratelimit-minute-remaining': '11',
    'x-ratelimit-hour-remaining': '991',
  });
  expect(admittedOf(others)).toBe(11);
  expect(others.at(-1)?.headers['retry-after']).toMatch(/^[1-6]?\d$/);
  for (let i = 0; i < 3; i += 1) expect((await key.look()).headers['x-ratelimit-hour-remaining']).toBe('980');
});

test('R5: a limit below the number of gateways leaves each of them one', async () => {
  const { gateways, key } = await start(3);
  await key.setLimits({ perMinute: 2, perHour: 90 });
  // Each has to know the key before it can go on without Redis.
  for (const gateway of gateways) expect((await key.look(gateway)).status).toBe(200);
  await redis.kill();
  const replies = await Promise.all(gateways.map((gateway) => ask(key, 5, gateway)));
  expect(replies.map(admittedOf)).toEqual([1, 1, 1]);
});

test('R5, R6: once a frozen Redis goes on it decides again, and what was admitted meanwhile counts', async () => {
  const { gateway, key } = await start(1);
  await ask(key, 4);
  await redis.pause();
  expect(admittedOf(await ask(key, 6))).toBe(6);
  await redis.resume();
  await quotasAreExact(gateway);
  // The one that got no answer may be counted by Redis too, when it goes on.
  await vi.waitFor(async () => expect([10, 11]).toContain((await timesOf(key)).length), WITHIN);
  const left = 20 - (await timesOf(key)).length;
  expect(admittedOf(await ask(key, 30))).toBe(left);
  expect(await timesOf(key)).toHaveLength(20);
});

test('R5, R6: after a restart of Redis all gateways together are exact again, with what each admitted alone', async () => {
  const { gateways, key } = await start(2);
  for (const gateway of gateways) await ask(key, 2, gateway);
  await redis.kill();
  const alone = await Promise.all(gateways.map((gateway) => ask(key, 3, gateway)));
  expect(alone.map(admittedOf)).toEqual([3, 3]);
  await redis.restart();
  for (const gateway of gateways) await quotasAreExact(gateway);
  await vi.waitFor(async () => expect(await timesOf(key)).toHaveLength(10), WITHIN);
  const burst = await Promise.all(Array.from({ length: 40 }, (_, i) => key.ask(gateways[i % 2])));
  expect(admittedOf(burst)).toBe(10);
});

test('R5: what was admitted alone counts also in a Redis that comes back with nothing in it', async () => {
  redis = await forTest(startRedis());
  const { gateway, key } = await start(1);
  await ask(key, 1);
  await redis.kill();
  expect(admittedOf(await ask(key, 10))).toBe(10);
  await redis.restart();
  // The key is lost with all else, which is reported until somebody acknowledges it.
  await vi.waitFor(async () => expect(await dependency(gateway, 'quota')).toMatch(/^ok/), FAILOVER);
  await key.setLimits(LIMITS);
  expect(admittedOf(await ask(key, 30))).toBe(10);
});

test('R2, R5: a refusal that was given before goes on without Redis, to the same time', async () => {
  const { key } = await start(1);
  const before = (await ask(key, 21)).at(-1);
  await redis.kill();
  const after = await key.ask();
  expect([before?.status, after.status]).toEqual([429, 429]);
  expect(after.headers['x-ratelimit-minute-reset']).toBe(before?.headers['x-ratelimit-minute-reset']);
  expect(Number(after.headers['retry-after'])).toBeLessThanOrEqual(Number(before?.headers['retry-after']));
});

function limitMemory(bytes: string): Promise<unknown> {
  return atEach(redis, (client) => client.config('SET', 'maxmemory', bytes));
}

test('R5: a full Redis refuses to count: a gateway goes on alone, and is exact again when there is room', async () => {
  const { gateway, key } = await start(1);
  await ask(key, 3);
  await limitMemory('1');
  expect(admittedOf(await ask(key, 5))).toBe(5);
  expect(await dependency(gateway, 'quota')).toMatch(/^degraded: /);
  await limitMemory('0');
  await vi.waitFor(async () => {
    expect(await timesOf(key)).toHaveLength(8);
    expect(await dependency(gateway, 'quota')).toMatch(/^ok/);
  }, WITHIN);
  expect(admittedOf(await ask(key, 30))).toBe(12);
});

test.each([
  ['of another kind', (name: string) => withClient(redis.url, async (client) => void (await client.set(name, 'x')))],
  ['of words', (name: string) => withClient(redis.url, async (client) => void (await client.rpush(name, 'x', 'y')))],
])('R5: a log that another application has left %s takes only its own quota off Redis', async (_, spoil) => {
  const { gateway: first, other: second, key } = await start(2);
  const other = new SettableKey(first);
  await other.setLimits(LIMITS);
  await ask(key, 2, first);
  const [name = ''] = await withClient(redis.url, (client) => namesIn(client, `evalgate:{quota-*}:${key.keyId}:log`));
  await withClient(redis.url, (client) => client.del(name));
  await spoil(name);
  const own = await Promise.all([ask(key, 30, first), ask(key, 30, second)]);
  // Each with its share: nine of the 18 left as the first knew it, ten of 20 as the second did.
  expect(own.map(admittedOf)).toEqual([9, 10]);
  const all = await Promise.all([ask(other, 30, first), ask(other, 30, second)]);
  expect(all.map(admittedOf).reduce((sum, one) => sum + one)).toBe(LIMITS.perMinute);
  expect(await dependency(first, 'quota')).toBe(
    `degraded: Redis cannot decide on 1, whose logs hold something else: ${name}; all others are exact. Another application writes into the names of evalgate: give it a Redis or a database of its own, and move what it wrote away (RENAME)`,
  );
  expect(await dependency(first, 'redis-state')).toMatch(/^ok/);
  const warned = first.logLines.filter((line) => line.includes('Redis cannot decide on one quota'));
  expect(warned).toHaveLength(1);
  // No log of evalgate is ever to be deleted.
  expect(first.logLines.join('')).not.toMatch(/delete/i);
  await withClient(redis.url, (client) => client.rename(name, `${name}:of-another`));
  for (const gateway of [first, second]) await quotasAreExact(gateway);
  // The requests that were admitted meanwhile are in the log again.
  await vi.waitFor(async () => expect(await timesOf(key)).toHaveLength(19), WITHIN);
});
