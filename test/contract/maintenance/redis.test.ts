import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { startCacheFleet } from '../../support/cache-fleet.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { maintenanceContract } from './cases.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

maintenanceContract(async (clock) => {
  await redis.flush();
  const fleet = await startCacheFleet({ url: redis.url, clock });
  onTestFinished(() => fleet.close());
  return fleet.one.maintenance;
});
