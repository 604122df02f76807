import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { stateRedisWarnings } from '../../src/redis-warnings.ts';
import { openRedis, type RedisLink } from '../../src/redis.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let link: RedisLink;
beforeAll(async () => {
  redis = await startRedis({ controls: true });
  link = openRedis({ url: redis.url, role: 'state' });
  await linkUp(link);
});
afterAll(async () => {
  await link.close();
  await redis.close();
});
beforeEach(async () => {
  await link.client.config('SET', 'save', '3600 1');
  await link.client.config('SET', 'appendonly', 'no');
  await link.client.config('SET', 'maxmemory-policy', 'noeviction');
});

async function messages(): Promise<string[]> {
  return (await stateRedisWarnings(link.client)).map(({ message, remedy }) => `${message} ${remedy}`);
}

test('a Redis that saves and never evicts is fit for the state', async () => {
  expect(await messages()).toEqual([]);
});

test('one that may evict any key is warned of, with what to set', async () => {
  await link.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const [message, ...others] = await messages();
  expect(message).toMatch(/API keys.*allkeys-lru.*maxmemory-policy noeviction.*REDIS_CACHE_URL/);
  expect(others).toEqual([]);
});

test('one that may evict what expires is warned of, for that is what rate limits are counted by', async () => {
  await link.client.config('SET', 'maxmemory-policy', 'volatile-ttl');
  expect(await messages()).toEqual([expect.stringMatching(/rate limits.*volatile-ttl.*noeviction/)]);
});

test('one that saves nothing is warned of, with what to set', async () => {
  await link.client.config('SET', 'save', '');
  expect(await messages()).toEqual([expect.stringMatching(/loses everything.*appendonly yes/)]);
  await link.client.config('SET', 'appendonly', 'yes');
  expect(await messages()).toEqual([]);
});

test('where a hosted Redis forbids CONFIG, only what is known is warned of', async () => {
  await link.client.config('SET', 'save', '');
  await link.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await link.client.acl('SETUSER', 'hosted', 'on', '>secret', '~*', '&*', '+@all', '-config');
  const hosted = openRedis({ url: redis.url.replace('redis://', 'redis://hosted:secret@'), role: 'state' });
  await linkUp(hosted);
  const warnings = await stateRedisWarnings(hosted.client);
  await hosted.close();
  expect(warnings.map(({ message }) => message)).toEqual([expect.stringContaining('allkeys-lru')]);
});
