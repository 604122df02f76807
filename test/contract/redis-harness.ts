/** The contract suites of what lies in Redis, over any Redis: one that stands alone, a Cluster, what Sentinels name. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createRedisQuota } from '../../src/quota/redis-quota.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { type CacheFleet, type CacheFleetOptions, startCacheFleet } from '../support/cache-fleet.ts';
import { startKeyFleet } from '../support/key-fleet.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { cacheTierContract } from './cache-tier/cases.ts';
import { leasesContract } from './leases/cases.ts';
import { maintenanceContract } from './maintenance/cases.ts';
import { purgeLogContract } from './purge-log/cases.ts';
import { describeQuota } from './quota/suite.ts';
import { describeRegistry } from './registry/suite.ts';
import { timesControlContract } from './times-control/cases.ts';

type Given = () => TestRedis;

/** Leases lapse by the clock of Redis, which no test can move: short ones, so that the wait is. */
const LEASE_MS = 400;

/** One for all tests of a file. */
export function givenRedis(start: () => Promise<TestRedis> = startRedis): Given {
  const held: { redis: TestRedis | null } = { redis: null };
  beforeAll(async () => {
    held.redis = await start();
  });
  afterAll(() => held.redis?.close());
  return () => {
    if (held.redis === null) throw new Error('It is started before the first test.');
    return held.redis;
  };
}

async function emptyFleet(given: Given, options: Omit<CacheFleetOptions, 'url'> = {}): Promise<CacheFleet> {
  await given().flush();
  const fleet = await startCacheFleet({ url: given().url, ...options });
  onTestFinished(() => fleet.close());
  return fleet;
}

export function cacheTierOn(given: Given): void {
  cacheTierContract(async () => (await emptyFleet(given)).one.fleet.tier);
}

export function leasesOn(given: Given): void {
  leasesContract(async () => {
    const fleet = await emptyFleet(given, { size: 2, leaseMs: LEASE_MS });
    return { one: fleet.one.fleet, two: fleet.two.fleet, leaseMs: LEASE_MS, pass: (ms) => sleep(ms) };
  });
}

export function maintenanceOn(given: Given): void {
  maintenanceContract(async (clock) => (await emptyFleet(given, { clock })).one.maintenance);
}

export function purgeLogOn(given: Given): void {
  purgeLogContract(async () => {
    const fleet = await emptyFleet(given, { size: 2 });
    const { purges: one } = fleet.one;
    const { purges: two } = fleet.two;
    const isHeard = (): boolean => JSON.stringify(one.position()) === JSON.stringify(two.position());
    return { one, two, heard: async () => void (await vi.waitUntil(isHeard, { timeout: 5000, interval: 1 })) };
  });
}

export function timesControlOn(given: Given): void {
  timesControlContract(async () => {
    const { one } = await emptyFleet(given);
    return { times: one.times, control: one.timesControl };
  });
}

export function registryOn(given: Given, name: string): void {
  describeRegistry(name, async (clock) => {
    await given().flush();
    return startKeyFleet({ url: given().url, clock });
  });
}

export function quotaOn(given: Given, name: string): void {
  const held: { link: RedisLink | null } = { link: null };
  afterAll(() => held.link?.close());
  describeQuota(name, async (windows) => {
    held.link ??= openRedis({ url: given().url, role: 'state' });
    await linkUp(held.link);
    await given().flush();
    return {
      quota: createRedisQuota({ redis: held.link, clock: systemClock, windows }),
      // Redis's clock can't be handed in, so time has to go by.
      pass: (micros) => sleep(Math.ceil(micros / 1000) + 1),
      close: () => Promise.resolve(),
    };
  });
}
