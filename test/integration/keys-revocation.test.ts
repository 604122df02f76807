import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { Redis } from 'ioredis';
import type { NewKey } from '../../src/keys/key.ts';
import type { RedisRegistry } from '../../src/keys/redis-registry.ts';
import { hears, type KeyFleet, startKeyFleet, until } from '../support/key-fleet.ts';
import { MessagesProxy } from '../support/messages-proxy.ts';
import { isProving, sized } from '../support/prove.ts';
import { connectWhenUp } from '../support/redis-client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const REVOCATIONS = sized(1000);
const CUTS = sized(50);
const PROCESSES = 4;
/** What is never exceeded; how much faster it usually is the proof shows. */
const NEVER_STALE_BEYOND_MS = 1000;
const NEW_KEY: NewKey = {
  name: 'reporting',
  workspaceIds: ['aaaaaaaa-0000-4000-8000-000000000001'],
  scopes: ['reports.read'],
  expiresAtMs: null,
  limits: { perMinute: null, perHour: null },
};

let redis: TestRedis;
let client: Redis;
const fleets: KeyFleet[] = [];

async function start(url: string, size: number): Promise<KeyFleet> {
  const fleet = await startKeyFleet({ url, size });
  fleets.push(fleet);
  return fleet;
}

beforeAll(async () => {
  redis = await startRedis();
  client = await connectWhenUp(redis.url, 5000);
});
afterEach(async () => {
  await Promise.all(fleets.splice(0).map((fleet) => fleet.close()));
});
afterAll(async () => {
  client.disconnect();
  await redis.close();
});

function isAdmitted(registry: RedisRegistry, hash: string): boolean {
  return registry.peek(hash)?.status === 'active';
}

/** Only after the word of its creation: that makes a process forget what it has looked up before. */
async function becomeKnown(registries: readonly RedisRegistry[], hash: string): Promise<void> {
  await until(() => registries.every((registry) => registry.isIssued(hash)), 5000);
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

function report(what: string, samplesMs: readonly number[]): void {
  if (!isProving) return;
  const sorted = samplesMs.toSorted((a, b) => a - b);
  const at = (share: number): string => (sorted[Math.ceil(sorted.length * share) - 1] ?? Number.NaN).toFixed(1);
  console.log(`${what}: ${sorted.length} times, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`);
}

test(
  `a revocation is seen by every process (${REVOCATIONS} times)`,
  async () => {
    const { registries, registry } = await start(redis.url, PROCESSES);
    const samplesMs: number[] = [];
    for (let i = 0; i < REVOCATIONS; i += 1) {
      const { key } = await registry.create(NEW_KEY);
      await becomeKnown(registries, key.hash);
      const sinceMs = performance.now();
      await (registries[i % PROCESSES] ?? registry).setStatus(key.keyId, 'revoked');
      samplesMs.push(await staleMs(registries, key.hash, sinceMs));
      const statuses = await Promise.all(registries.map(async (one) => (await one.find(key.hash))?.status));
      expect(statuses).toEqual(registries.map(() => 'revoked'));
    }
    report('revocation seen by 4 processes', samplesMs);
    expect(Math.max(...samplesMs)).toBeLessThan(NEVER_STALE_BEYOND_MS);
  },
  isProving ? 300_000 : 30_000,
);

test(
  `C8: a process whose subscription is cut is never stale for long (${CUTS} times)`,
  async () => {
    const { registries, registry } = await start(redis.url, PROCESSES);
    const samplesMs: number[] = [];
    for (let i = 0; i < CUTS; i += 1) {
      const { key } = await registry.create(NEW_KEY);
      await Promise.all(registries.map(hears));
      await becomeKnown(registries, key.hash);
      // The revocation reads before it writes, so that it is told when nobody listens any more.
      const kill = client.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
      const sinceMs = performance.now();
      const revoke = (registries[i % PROCESSES] ?? registry).setStatus(key.keyId, 'revoked');
      expect(await kill).toBe(PROCESSES);
      await revoke;
      samplesMs.push(await staleMs(registries, key.hash, sinceMs));
      const statuses = await Promise.all(registries.map(async (one) => (await one.find(key.hash))?.status));
      expect(statuses).toEqual(registries.map(() => 'revoked'));
    }
    report('revocation while subscriptions are cut', samplesMs);
    expect(Math.max(...samplesMs)).toBeLessThan(NEVER_STALE_BEYOND_MS);
  },
  isProving ? 300_000 : 30_000,
);

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
  expect(isAdmitted(registry, revoked.key.hash)).toBe(true);
  expect(isAdmitted(registry, untouched.key.hash)).toBe(true);
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
