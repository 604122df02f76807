import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { readRedisSettings, redisFaults } from '../../src/redis/settings.ts';
import { warnOfMissingDatabase, warnOfRedisSettings } from '../../src/redis-warnings.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

let redis: TestRedis;
let link: RedisLink;
const others: RedisLink[] = [];

function open(url: string): RedisLink {
  const other = openRedis({ url, role: 'state', timeoutMs: 5000 });
  others.push(other);
  return other;
}

beforeAll(async () => {
  redis = await startRedis({ controls: true });
  link = openRedis({ url: redis.url, role: 'state', timeoutMs: 5000 });
  await linkUp(link);
});
afterEach(async () => {
  await Promise.all(others.splice(0).map((other) => other.close()));
});
afterAll(async () => {
  await link.close();
  await redis.close();
});
beforeEach(async () => {
  await link.client.config('SET', 'save', '3600 1');
  await link.client.config('SET', 'appendonly', 'yes');
  await link.client.config('SET', 'maxmemory-policy', 'noeviction');
});

const faultsOf = async (of: RedisLink): Promise<string[]> =>
  redisFaults(await readRedisSettings(of), 'state').map(({ severity, about }) => `${severity} ${about}`);

test('a real Redis tells all that is asked of it', async () => {
  const settings = await readRedisSettings(link);
  expect(settings).toMatchObject({
    mode: 'standalone',
    isReplica: false,
    evictionPolicy: 'noeviction',
    maxMemoryBytes: 0,
    appendsToFile: true,
    savesSnapshots: true,
    failedToWrite: false,
  });
  expect(settings.version).toMatch(/^\d+\.\d+\.\d+$/);
  expect(settings.runId).toMatch(/^[0-9a-f]{40}$/);
  expect(settings.usedMemoryBytes).toBeGreaterThan(100_000);
  expect(await faultsOf(link)).toEqual([]);
});

test('what is set wrongly is found', async () => {
  await link.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await link.client.config('SET', 'appendonly', 'no');
  expect(await faultsOf(link)).toEqual(['fail memory', 'warn persistence']);
  await link.client.config('SET', 'save', '');
  await link.client.config('SET', 'maxmemory-policy', 'volatile-ttl');
  expect(await faultsOf(link)).toEqual(['warn memory', 'fail persistence']);
});

test('where a hosted Redis forbids CONFIG, only what is known is told', async () => {
  await link.client.config('SET', 'save', '');
  await link.client.config('SET', 'appendonly', 'no');
  await link.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  await link.client.acl('SETUSER', 'hosted', 'on', '>secret', '~*', '&*', '+@all', '-config');
  const hosted = open(redis.url.replace('redis://', 'redis://hosted:secret@'));
  await linkUp(hosted);
  expect((await readRedisSettings(hosted)).savesSnapshots).toBeNull();
  expect(await faultsOf(hosted)).toEqual(['fail memory']);
});

test('a gateway warns once, as soon as it answers, in sentences that say what to set', async () => {
  await link.client.config('SET', 'maxmemory-policy', 'allkeys-lru');
  const joined = open(redis.url);
  const early: string[] = [];
  const { promise: warned, resolve } = Promise.withResolvers<string>();
  warnOfRedisSettings(joined, (warning) => {
    early.push(warning);
    resolve(warning);
  });
  expect(await warned).toBe(
    'The Redis of REDIS_URL may drop API keys when its memory is full (maxmemory-policy allkeys-lru). ' +
      'Set maxmemory-policy noeviction there: `redis-cli CONFIG SET maxmemory-policy noeviction`, and the same line in redis.conf.',
  );
  const late = Promise.withResolvers<string>();
  warnOfRedisSettings(joined, late.resolve, 'both');
  expect(await late.promise).toMatch(/ And give the response cache a Redis of its own with REDIS_CACHE_URL/);
  expect(early).toHaveLength(1);
});

test('a database that is not there is told of, and one that is there is not', async () => {
  const missing = Promise.withResolvers<string>();
  warnOfMissingDatabase(open(`${redis.url}/99`), missing.resolve);
  expect(await missing.promise).toBe(
    'The Redis of REDIS_URL has no database 99, and what belongs there goes into database 0. Give another number in REDIS_URL, or raise "databases" in redis.conf.',
  );
  const present = open(`${redis.url}/3`);
  const warnings: string[] = [];
  await linkUp(present);
  warnOfMissingDatabase(present, (warning) => warnings.push(warning));
  await present.client.ping();
  await present.client.ping();
  expect(warnings).toEqual([]);
});

test('a Redis that comes later is looked at then', async () => {
  await redis.kill();
  const waiting = open(redis.url);
  const { promise: warned, resolve } = Promise.withResolvers<string>();
  warnOfRedisSettings(waiting, resolve);
  await redis.restart();
  // Started without persistence.
  expect(await warned).toMatch(/^The Redis of REDIS_URL loses all API keys when it restarts.*appendonly yes/);
  await linkUp(link);
});
