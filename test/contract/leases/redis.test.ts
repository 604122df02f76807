import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { startCacheFleet } from '../../support/cache-fleet.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { leasesContract } from './cases.ts';

/** Leases lapse by the clock of Redis, which no test can move: short ones, so that the wait is. */
const LEASE_MS = 400;

let redis: TestRedis;
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());

leasesContract(async () => {
  await redis.flush();
  const fleet = await startCacheFleet({ url: redis.url, size: 2, leaseMs: LEASE_MS });
  onTestFinished(() => fleet.close());
  return { one: fleet.one.fleet, two: fleet.two.fleet, leaseMs: LEASE_MS, pass: (ms) => sleep(ms) };
});
