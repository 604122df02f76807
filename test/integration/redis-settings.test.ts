/** The log lines about an unsuitable Redis, and the addresses that a gateway refuses. */
import { afterAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { loadConfig } from '../../src/config/load.ts';
import { fileOf } from '../support/files.ts';
import { linesOf, readinessOf, samplesOf } from '../support/admin.ts';
import { HurriedTimers } from '../support/hurried-timers.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { forFile, forTest } from '../support/opened.ts';
import { dependency, redisIsWell, WITHIN } from '../support/world.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const redis = await forFile(startRedis());
let client = await connectWhenUp(redis.url, 5000);
afterAll(() => client.disconnect());
beforeEach(async () => {
  await set({ save: '', appendonly: 'yes', 'maxmemory-policy': 'noeviction', maxmemory: '1gb' });
});

async function set(settings: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, value] of Object.entries(settings)) await client.config('SET', name, value);
}

const start = (env: Readonly<Record<string, string>> = {}): Promise<TestGateway> =>
  forTest(startTestGateway({ env: { REDIS_URL: redis.url, ...env } }));

/** Warnings and errors about how Redis is set. */
function warnings(of: TestGateway): readonly string[] {
  const lines = linesOf(of).filter(({ msg }) => msg.startsWith('The Redis of '));
  return lines.map(({ level, msg }) => `${level}: ${msg}`);
}

function warns(of: TestGateway, expected: readonly string[]): Promise<void> {
  return vi.waitFor(() => expect(warnings(of)).toEqual(expected), WITHIN);
}

const OWN = 'give the response cache a Redis of its own with REDIS_CACHE_URL, which may evict.';
const toSet = (line: string): string =>
  `Set ${line} there: \`redis-cli CONFIG SET ${line}\`, and the same line in redis.conf.`;

describe('a gateway warns once of a Redis', () => {
  test.each([
    [{ appendonly: 'no' }, `loses all API keys when it restarts: it saves nothing. ${toSet('appendonly yes')}`],
  ])('that is set as %j', async (settings, warning) => {
    await set(settings);
    const running = await start();
    await warns(running, [`warn: The Redis of REDIS_URL ${warning}`]);
    await redisIsWell(running);
    expect(warnings(running)).toHaveLength(1);
  });

  test('that has no memory limit though the cache is in it, unless the cache has a budget', async () => {
    await set({ maxmemory: '0' });
    const unlimited = await start();
    await warns(unlimited, [
      `warn: The Redis of REDIS_URL has no memory limit (maxmemory 0), and cached answers may take what keys and limits need. Set maxmemory there, a tenth of which the cache leaves free; or cache.redis to what the cache may use; or ${OWN}`,
    ]);
    await unlimited.close();
    const running = await start({ CONFIG_FILE: fileOf('cache:\n  redis: 512MB\n') });
    await redisIsWell(running);
    expect(warnings(running)).toEqual([]);
  });

  test('that forbids CONFIG: only of what is known', async () => {
    await set({ appendonly: 'no', 'maxmemory-policy': 'allkeys-lru' });
    await client.acl('SETUSER', 'hosted', 'on', '>secret', '~*', '&*', '+@all', '-config');
    const running = await start({ REDIS_URL: redis.url.replace('redis://', 'redis://hosted:secret@') });
    await redisIsWell(running);
    await vi.waitFor(() => expect(running.logLines.join('')).toContain('may drop API keys'), WITHIN);
    expect(warnings(running)).toEqual([]);
    expect(running.logLines.join('')).not.toContain('secret');
  });

  test('and of none that is set well, whatever a second one for the cache is set to', async () => {
    const running = await start({ REDIS_URL: `${redis.url}/2`, REDIS_CACHE_URL: `${redis.url}/3` });
    await redisIsWell(running);
    expect(warnings(running)).toEqual([]);
  });
});

const detailOf = (running: TestGateway) => dependency(running, 'eviction');

describe('a state Redis that may evict is a trouble of its own', () => {
  const ofKeys = 'degraded: Redis may drop API keys when its memory is full (maxmemory-policy allkeys-lru). ';

  test('from the moment on when it is set so, until it is not', async () => {
    const timers = new HurriedTimers();
    const running = await forTest(startTestGateway({ env: { REDIS_URL: redis.url }, timers }));
    await vi.waitFor(
      async () => expect(await detailOf(running)).toBe('ok: Redis evicts nothing (maxmemory-policy noeviction)'),
      WITHIN,
    );
    await set({ 'maxmemory-policy': 'allkeys-lru' });
    await vi.waitFor(async () => {
      timers.elapse(10_000);
      expect(await detailOf(running)).toBe(`${ofKeys}${toSet('maxmemory-policy noeviction')} And ${OWN}`);
    }, WITHIN);
    expect(await samplesOf(running, 'evalgate_dependency_up{dependency="eviction"')).toEqual({
      'evalgate_dependency_up{dependency="eviction"}': 0,
    });
    expect(await dependency(running, 'redis-state')).toMatch(/^ok/);
    expect((await readinessOf(running)).status).toBe('ready');
    await set({ 'maxmemory-policy': 'volatile-ttl' });
    await vi.waitFor(async () => {
      timers.elapse(10_000);
      expect(await detailOf(running)).toMatch(/^degraded: Redis may forget the use of rate limits /);
    }, WITHIN);
    await set({ 'maxmemory-policy': 'noeviction' });
    await vi.waitFor(async () => {
      timers.elapse(10_000);
      expect(await detailOf(running)).toMatch(/^ok: /);
    }, WITHIN);
    const lines = linesOf(running).map(({ msg }) => msg);
    expect(lines).toContain('Redis may drop API keys when its memory is full (maxmemory-policy allkeys-lru)');
    expect(lines).toContain('Redis evicts nothing any more');
  });

  test('with nothing to say of the cache if that has another one, and named as the cause when keys are lost', async () => {
    await set({ 'maxmemory-policy': 'allkeys-lru' });
    const running = await start({ REDIS_URL: `${redis.url}/2`, REDIS_CACHE_URL: `${redis.url}/3` });
    await vi.waitFor(
      async () => expect(await detailOf(running)).toBe(`${ofKeys}${toSet('maxmemory-policy noeviction')}`),
      WITHIN,
    );
    await running.issueKey();
    await vi.waitFor(
      async () => expect(await samplesOf(running, 'evalgate_keys')).toMatchObject({ evalgate_keys: 1 }),
      WITHIN,
    );
    await client.select(2);
    await client.del('evalgate:{keys}:records');
    await client.select(0);
    await vi.waitFor(
      async () =>
        expect(await dependency(running, 'keys')).toMatch(
          /^degraded: Redis lost its data at \d\d:\d\d; 0 of 1 key is left; it has probably evicted them \(maxmemory-policy allkeys-lru\): set noeviction there first; import/,
        ),
      WITHIN,
    );
  });
});

test('a Redis that comes only after the gateway is looked at then', async () => {
  await redis.kill();
  const running = await start();
  await redis.restart();
  client.disconnect();
  client = await connectWhenUp(redis.url, 5000);
  await vi.waitFor(() => expect(warnings(running)).toHaveLength(2), WITHIN);
  expect(warnings(running)).toEqual([
    expect.stringContaining('has no memory limit'),
    `warn: The Redis of REDIS_URL loses all API keys when it restarts: it saves nothing. ${toSet('appendonly yes')}`,
  ]);
});

describe('an address of Redis is refused with the reason, and never shown', () => {
  test.each([
    ['http://s3cret@a', 'it is none of redis://host:port'],
    ['redis://', 'it is none of redis://host:port'],
    ['redis+other://a', 'it is none of redis://host:port'],
    ['redis://a,b', 'it names several hosts: a Cluster begins with redis+cluster://'],
    ['redis://a:70000', 'a port is at most 65535'],
    ['redis+cluster://a,,b', 'a host in it is neither a name nor an IP address'],
    ['redis+cluster://a/1', 'a Cluster has database 0 alone'],
    ['redis://a/one', 'its database is no number'],
    ['redis+sentinel://a:26379', 'it lacks the name of the primary'],
    ['redis+sentinel://a/main/1/2', 'what follows the name of the primary is its database, and no more'],
    ['redis://a?family=5', 'its option family is 4, 6 or 0 (either)'],
    ['redis://a?tlsCaFile=x', 'it has no option tlsCaFile: there are family'],
    ['rediss://a?commandTimeout=1', 'it has no option commandTimeout: there are family, tlsCaFile'],
    ['redis://a?s3cret%3D', 'it has no option of another name'],
    ['rediss://a?tlsCertFile=s3cret.pem', 'its options tlsCertFile and tlsKeyFile go together'],
    ['rediss+sentinel://a/main?tlsKeyFile=s3cret.pem', 'its options tlsCertFile and tlsKeyFile go together'],
    ['redis://:100%s3cret@a', 'write %25 for it'],
  ])('%s: %s', (url, reason) => {
    const load = (): unknown =>
      loadConfig({ env: { REDIS_URL: url, UPSTREAM_URL: 'http://store', UPSTREAM_TOKEN: 'x' } });
    expect(load).toThrow(reason);
    expect(load).not.toThrow('s3cret');
  });

  test.each([
    'REDIS://10.0.0.1:7000/',
    'redis://user:p%40ss%3A@[fd00::1]:7000/2?family=6',
    'rediss://:pw@redis?tlsCaFile=/etc/ca%20file.pem&tlsCertFile=c.pem&tlsKeyFile=k.pem&tlsServerName=r.example',
    'rediss+cluster://a:1,b/0',
    'redis+sentinel://user:pw@a,b:1/my-primary/3?sentinelUsername=s&sentinelPassword=t%26u',
  ])('%s is taken', (url) => {
    const env = { REDIS_URL: url, UPSTREAM_URL: 'http://store', UPSTREAM_TOKEN: 'x' };
    expect(loadConfig({ env }).config.redis.url).toBe(url);
  });
});
