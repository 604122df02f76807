import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createRedisRegistry, type RedisRegistry } from '../../src/keys/redis-registry.ts';
import { openRedis } from '../../src/redis/connection.ts';
import { hears, type KeyFleet, NEW_KEY, startKeyFleet, until } from '../support/key-fleet.ts';
import { MessagesProxy } from '../support/messages-proxy.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const NEVER_STALE_BEYOND_MS = 1000;
const DEAF_AFTER_MS = 900;

let redis: TestRedis;
const fleets: KeyFleet[] = [];

async function start(url: string, size: number): Promise<KeyFleet> {
  const fleet = await startKeyFleet({ url, size });
  fleets.push(fleet);
  return fleet;
}

beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  await Promise.all(fleets.splice(0).map((fleet) => fleet.close()));
});
afterAll(async () => {
  await redis.close();
});

function isAdmitted(registry: RedisRegistry, hash: string): boolean {
  return registry.peek(hash)?.status === 'active';
}

/**
 * Only after the word of its creation, which makes a process forget what it has looked up before. Who hears now has heard
 * a beat that was sent less than 900 ms ago, and with it all that was said before that.
 */
async function becomeKnown(registries: readonly RedisRegistry[], hash: string): Promise<void> {
  const sinceMs = performance.now();
  const hasHeard = (registry: RedisRegistry): boolean =>
    registry.trust() === 'heard' && performance.now() - sinceMs > DEAF_AFTER_MS;
  await until(() => registries.every(hasHeard), 10_000);
  await until(async () => {
    await Promise.all(registries.map((registry) => registry.find(hash)));
    return registries.every((registry) => isAdmitted(registry, hash));
  }, 5000);
}

/** How long after `sinceMs` the last of them let the key in without asking. Each look is at all of them. */
async function staleMs(registries: readonly RedisRegistry[], hash: string, sinceMs: number): Promise<number> {
  let lastMs = 0;
  await until(() => {
    const isStale = registries.some((registry) => isAdmitted(registry, hash));
    if (isStale) lastMs = performance.now() - sinceMs;
    return !isStale;
  }, 5000);
  return lastMs;
}

test('C8: a subscription that stands but delivers nothing is noticed within a second, and replaced', async () => {
  const proxy = await MessagesProxy.start(redis.url);
  const [{ registry: operator }, { registry }] = [await start(redis.url, 1), await start(proxy.url, 1)];
  const { key } = await operator.create(NEW_KEY);
  await becomeKnown([registry], key.hash);
  expect(proxy.stallMessages()).toBe(1);
  const sinceMs = performance.now();
  await operator.setStatus(key.keyId, 'revoked');
  expect(await staleMs([registry], key.hash, sinceMs)).toBeLessThan(NEVER_STALE_BEYOND_MS);
  expect(registry.trust()).toBe('deaf');
  expect((await registry.find(key.hash))?.status).toBe('revoked');
  await hears(registry);
  expect((await registry.find(key.hash))?.status).toBe('revoked');
  expect(registry.peek(key.hash)?.status).toBe('revoked');
  await Promise.all(fleets.splice(0).map((fleet) => fleet.close()));
  await proxy.close();
});

test('where messages come from another server than answers do, the connection for them is made anew', async () => {
  const other = await startRedis({ controls: true });
  const [asked, heard] = [redis, other].map(({ url }) => openRedis({ url, role: 'state' }));
  if (asked === undefined || heard === undefined) throw new RangeError('There are two.');
  await Promise.all([linkUp(asked), linkUp(heard)]);
  let renewals = 0;
  heard.subscriber.onDown(() => (renewals += 1));
  const link = { ...asked, subscriber: heard.subscriber };
  const registry = createRedisRegistry({ link, clock: systemClock, graceMs: 60_000 });
  await until(() => registry.trust() === 'deaf', 5000);
  await until(() => renewals > 0, 10_000);
  await until(() => heard.subscriber.isUp(), 5000);
  expect([asked.isUp(), heard.isUp()]).toEqual([true, true]);
  await registry.close();
  await Promise.all([asked.close(), heard.close(), other.close()]);
});

test('C8: a change made while a process could not reach Redis is known to it before it trusts its memory', async () => {
  const proxy = await MessagesProxy.start(redis.url);
  const [{ registry: operator }, { registry }] = [await start(redis.url, 1), await start(proxy.url, 1)];
  const revoked = await operator.create(NEW_KEY);
  const untouched = await operator.create(NEW_KEY);
  await becomeKnown([registry], revoked.key.hash);
  await becomeKnown([registry], untouched.key.hash);
  proxy.cut();
  await until(() => registry.trust() === 'offline', 5000);
  await operator.setStatus(revoked.key.keyId, 'revoked');
  // Nothing can tell it otherwise, and the grace is not over.
  expect((await registry.find(revoked.key.hash))?.status).toBe('active');
  expect((await registry.find(untouched.key.hash))?.status).toBe('active');
  proxy.heal();
  await until(() => registry.trust() !== 'offline', 10_000);
  expect(isAdmitted(registry, revoked.key.hash)).toBe(false);
  await hears(registry);
  expect(isAdmitted(registry, revoked.key.hash)).toBe(false);
  expect((await registry.find(revoked.key.hash))?.status).toBe('revoked');
  expect((await registry.find(untouched.key.hash))?.status).toBe('active');
  await Promise.all(fleets.splice(0).map((fleet) => fleet.close()));
  await proxy.close();
});
