import { afterEach, beforeEach, expect, test } from 'vitest';
import { type NewKey, RegistryUnavailableError } from '../../src/keys/key.ts';
import { hashToken, newToken } from '../../src/keys/token.ts';
import { openRedis } from '../../src/redis/connection.ts';
import { createRedisRegistry, type RedisRegistry } from '../../src/keys/redis-registry.ts';
import { systemClock } from '../../src/clock.ts';
import { GRACE_MS, hears, type KeyFleet, startKeyFleet, until } from '../support/key-fleet.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { withClient } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const NEW_KEY: NewKey = {
  name: 'reporting',
  workspaceIds: ['aaaaaaaa-0000-4000-8000-000000000001'],
  scopes: ['reports.read'],
  expiresAtMs: null,
  limits: { perMinute: null, perHour: null },
};

let redis: TestRedis;
let clock: ManualClock;
let fleet: KeyFleet;
let registry: RedisRegistry;

beforeEach(async () => {
  redis = await startRedis({ controls: true });
  clock = new ManualClock();
  fleet = await startKeyFleet({ url: redis.url, clock });
  registry = fleet.registry;
});
afterEach(async () => {
  await fleet.close();
  await redis.close();
});

/** How often records of keys were read. */
function readings(): Promise<number> {
  return withClient(redis.url, async (client) => {
    return Number(/cmdstat_hget:calls=(\d+)/.exec(await client.info('commandstats'))?.[1] ?? 0);
  });
}

async function unavailable(hash: string): Promise<void> {
  expect(registry.peek(hash)).toBeUndefined();
  await expect(registry.find(hash)).rejects.toThrow(RegistryUnavailableError);
}

test('C8: while Redis is frozen a key that it has confirmed goes on, at once, and no other is let in', async () => {
  // Standing still, the clock would hide how long nothing is heard.
  const ticking = await startKeyFleet({ url: redis.url });
  registry = ticking.registry;
  const { key } = await registry.create(NEW_KEY);
  const { key: neverUsed } = await registry.create(NEW_KEY);
  await registry.find(key.hash);
  await redis.pause();
  const sinceMs = performance.now();
  while (performance.now() - sinceMs < 1500) {
    expect(registry.peek(key.hash)).toEqual(key);
    expect(await registry.find(key.hash)).toEqual(key);
    await new Promise((settle) => void setImmediate(settle));
  }
  await unavailable(neverUsed.hash);
  await unavailable(hashToken(newToken()));
  await expect(registry.create(NEW_KEY)).rejects.toThrow(RegistryUnavailableError);
  await expect(registry.list()).rejects.toThrow(RegistryUnavailableError);
  await redis.resume();
  // The connection may just be replaced by a new one.
  await until(async () => (await registry.find(neverUsed.hash)) !== null, 10_000);
  expect(await registry.find(key.hash)).toEqual(key);
  await until(async () => (await registry.find(hashToken(newToken()))) === null, 10_000);
  await ticking.close();
});

test('C8: without Redis a key stays good for the grace since it was confirmed, and no longer', async () => {
  const { key } = await registry.create(NEW_KEY);
  await registry.find(key.hash);
  await redis.kill();
  clock.advance(GRACE_MS);
  await until(() => registry.trust() === 'offline', 5000);
  expect(registry.peek(key.hash)).toEqual(key);
  clock.advance(1);
  await unavailable(key.hash);
});

test('C8: the grace begins with the last confirmation, not with the first look-up', async () => {
  const { key } = await registry.create(NEW_KEY);
  await registry.find(key.hash);
  clock.advance(30_000);
  await hears(registry);
  const before = await readings();
  expect(registry.peek(key.hash)).toEqual(key);
  await until(async () => (await readings()) > before, 1000);
  await redis.kill();
  await until(() => registry.trust() === 'offline', 5000);
  clock.advance(GRACE_MS - 1000);
  expect(registry.peek(key.hash)).toEqual(key);
  clock.advance(2000);
  await unavailable(key.hash);
});

test('C8: a Redis that comes back without its keys is believed', async () => {
  const { key } = await registry.create(NEW_KEY);
  await registry.find(key.hash);
  await redis.restart();
  await until(() => registry.trust() === 'heard' && registry.peek(key.hash) === undefined, 10_000);
  expect(await registry.find(key.hash)).toBeNull();
});

test('C8: a Redis that answers but lets no beats through is asked each time', async () => {
  const ticking = await startKeyFleet({ url: redis.url });
  registry = ticking.registry;
  const { key } = await registry.create(NEW_KEY);
  await registry.find(key.hash);
  await withClient(redis.url, (client) => client.call('ACL', 'SETUSER', 'default', '-eval', '-evalsha'));
  await until(() => registry.peek(key.hash) === undefined, 2000);
  const before = await readings();
  expect(await registry.find(key.hash)).toEqual(key);
  expect(await registry.find(key.hash)).toEqual(key);
  expect(await readings()).toBe(before + 4);
  expect(registry.trust()).toBe('deaf');
  await ticking.close();
});

test('a registry starts without Redis, and works once there is one', async () => {
  await redis.kill();
  const link = openRedis({ url: redis.url, role: 'state' });
  const early = createRedisRegistry({ link, clock: systemClock, graceMs: GRACE_MS });
  await expect(early.find(hashToken(newToken()))).rejects.toThrow(RegistryUnavailableError);
  expect(early.trust()).toBe('offline');
  await redis.restart();
  await hears(early);
  const { key } = await early.create(NEW_KEY);
  expect(await early.find(key.hash)).toEqual(key);
  expect(early.peek(key.hash)).toEqual(key);
  await early.close();
  await link.close();
});

test('a process ends without Redis too', async () => {
  const { key } = await registry.create(NEW_KEY);
  registry.touch(key);
  await redis.kill();
  await expect(registry.close()).resolves.toBeUndefined();
});
