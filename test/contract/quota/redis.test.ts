import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { createRedisQuota } from '../../../src/quota/redis-quota.ts';
import { openRedis, type RedisLink } from '../../../src/redis/link.ts';
import { linkUp } from '../../support/redis-link.ts';
import { startRedis, type TestRedis } from '../../support/redis.ts';
import { describeQuota } from './suite.ts';

let redis: TestRedis;
let link: RedisLink;
beforeAll(async () => {
  redis = await startRedis();
  link = openRedis({ url: redis.url, role: 'state' });
  await linkUp(link);
});
afterAll(async () => {
  await link.close();
  await redis.close();
});

describeQuota('Redis', async (windows) => {
  await redis.flush();
  return {
    quota: createRedisQuota({ client: link.client, clock: systemClock, windows }),
    // Redis's clock can't be handed in, so time has to go by.
    pass: (micros) => sleep(Math.ceil(micros / 1000) + 1),
    close: () => Promise.resolve(),
  };
});
