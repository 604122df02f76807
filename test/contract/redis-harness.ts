/** The contract suites of what lies in Redis, over any Redis: one that stands alone, a Cluster, what Sentinels name. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { createRedisQuota } from '../../src/quota/redis-quota.ts';
import { openRedis, type RedisLink } from '../../src/redis/link.ts';
import { type CacheFleet, type CacheFleetOptions, startCacheFleet } from '../support/cache-fleet.ts';
import { startKeyFleet } from '../support/key-fleet.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { describeQuota } from './quota/suite.ts';
import { describeRegistry } from './registry/suite.ts';
import { trialLedgerContract } from './trial-ledger/cases.ts';

type Given = () => TestRedis;

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

export function trialLedgerOn(given: Given): void {
  trialLedgerContract(async () => {
    const { one, two } = await emptyFleet(given, { size: 2 });
    const isSame = (): boolean => JSON.stringify(one.trials.all()) === JSON.stringify(two.trials.all());
    return {
      ledger: one.trialLedger,
      beside: two.trialLedger,
      here: one.trials,
      times: one.times,
      heard: async () => void (await vi.waitUntil(isSame, { timeout: 5000, interval: 1 })),
    };
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
      quota: createRedisQuota({ client: held.link.client, clock: systemClock, windows }),
      // Redis's clock can't be handed in, so time has to go by.
      pass: (micros) => sleep(Math.ceil(micros / 1000) + 1),
      close: () => Promise.resolve(),
    };
  });
}
