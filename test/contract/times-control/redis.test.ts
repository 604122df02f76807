import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { startCacheFleet } from '../../support/cache-fleet.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { timesControlContract } from './cases.ts';

let redis: TestRedis;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

timesControlContract(async () => {
  await redis.flush();
  const fleet = await startCacheFleet({ url: redis.url });
  onTestFinished(() => fleet.close());
  return { times: fleet.one.times, control: fleet.one.timesControl };
});
