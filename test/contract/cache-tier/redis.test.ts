import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { startCacheFleet } from '../../support/cache-fleet.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { cacheTierContract } from './cases.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

cacheTierContract(async () => {
  await redis.flush();
  const fleet = await startCacheFleet({ url: redis.url });
  onTestFinished(() => fleet.close());
  return fleet.one.fleet.tier;
});
