import { expect, test } from 'vitest';
import { parseRedisAddress } from '../../../src/redis/address.ts';
import { clusterOptions, redisOptions, retryDelayMs, watchOptions } from '../../../src/redis/options.ts';

const ABOUT = { name: 'evalgate-state', commandTimeoutMs: 500 };

test('over TLS Sentinels are asked over TLS too, each side with credentials of its own', () => {
  const address = parseRedisAddress(
    'rediss+sentinel://user:pw@a,b:1/main/2?sentinelUsername=su&sentinelPassword=sp&tlsServerName=redis.example',
  );
  expect(redisOptions(address, ABOUT)).toMatchObject({
    sentinels: [
      { host: 'a', port: 26_379 },
      { host: 'b', port: 1 },
    ],
    name: 'main',
    db: 2,
    username: 'user',
    password: 'pw',
    tls: { servername: 'redis.example' },
    enableTLSForSentinelMode: true,
    sentinelUsername: 'su',
    sentinelPassword: 'sp',
    sentinelTLS: { servername: 'redis.example' },
  });
  expect(watchOptions(address, address.nodes[0], 'watch')).toMatchObject({
    host: 'a',
    port: 26_379,
    username: 'su',
    password: 'sp',
    tls: { servername: 'redis.example' },
  });
});

test('without TLS and credentials none are handed on', () => {
  const address = parseRedisAddress('redis+sentinel://a/main');
  const names = Object.keys(redisOptions(address, ABOUT));
  expect(names.filter((name) => /tls|username|password/i.test(name))).toEqual([]);
  expect(
    Object.keys(watchOptions(address, address.nodes[0], 'w')).filter((name) => /tls|user|pass/i.test(name)),
  ).toEqual([]);
});

test('no connection sends a command a second time that may have been done', () => {
  const cluster = clusterOptions(parseRedisAddress('redis+cluster://a'), ABOUT);
  expect([cluster.retryDelayOnFailover, cluster.retryDelayOnClusterDown]).toEqual([0, 0]);
  expect(cluster.redisOptions.autoResendUnfulfilledCommands).toBe(false);
  const one = redisOptions(parseRedisAddress('redis://a'), ABOUT);
  expect([one.autoResendUnfulfilledCommands, one.enableOfflineQueue, one.maxRetriesPerRequest]).toEqual([
    false,
    false,
    0,
  ]);
});

test('the names of nodes stay names, so that certificates are checked by them', () => {
  const told: unknown[] = [];
  clusterOptions(parseRedisAddress('rediss+cluster://redis.example'), ABOUT).dnsLookup(
    'redis.example',
    (error, address) => told.push(error, address),
  );
  expect(told).toEqual([null, 'redis.example']);
});

test.each([
  [1, 25, 50],
  [2, 50, 100],
  [6, 500, 1000],
  [1000, 500, 1000],
])('try %i comes after %i to %i ms', (attempt, least, most) => {
  const delays = Array.from({ length: 200 }, () => retryDelayMs(attempt));
  expect(Math.min(...delays)).toBeGreaterThanOrEqual(least);
  expect(Math.max(...delays)).toBeLessThanOrEqual(most);
});
