import { afterAll, beforeAll, onTestFinished, vi } from 'vitest';
import { startCacheFleet } from '../../support/cache-fleet.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { purgeLogContract } from './cases.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

purgeLogContract(async () => {
  await redis.flush();
  const fleet = await startCacheFleet({ url: redis.url, size: 2 });
  onTestFinished(() => fleet.close());
  const { purges: one } = fleet.one;
  const { purges: two } = fleet.two;
  const isHeard = (): boolean => JSON.stringify(one.position()) === JSON.stringify(two.position());
  return { one, two, heard: async () => void (await vi.waitUntil(isHeard, { timeout: 5000, interval: 1 })) };
});
