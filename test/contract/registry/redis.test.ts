import { expect, test } from 'vitest';
import { createRedisKeyStore } from '../../../src/keys/redis-key-store.ts';
import { openRedis } from '../../../src/redis/connection.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { linkUp } from '../../support/redis-link.ts';
import { givenRedis, registryOn } from '../redis-harness.ts';

const redis = givenRedis();

registryOn(redis, 'Redis');

test('a registry for one command asks Redis each time and holds nothing', async () => {
  await redis().flush();
  const link = openRedis({ url: redis().url, role: 'state' });
  await linkUp(link);
  const store = createRedisKeyStore({ redis: link, clock: new ManualClock() });
  const { key } = await store.create({
    name: 'n',
    workspaceIds: ['aaaaaaaa-0000-4000-8000-000000000001'],
    scopes: ['calls.read'],
    expiresAtMs: null,
    limits: { perMinute: null, perHour: null },
  });
  expect(await store.find(key.hash)).toEqual(key);
  expect(store.peek(key.hash)).toBeUndefined();
  await link.close();
});
