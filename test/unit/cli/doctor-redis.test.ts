import { expect, test } from 'vitest';
import { checkLatency, checkRedisClock, checkRefusal, checkSettings } from '../../../src/cli/doctor/redis.ts';
import { settingsOf } from '../../../src/redis/settings.ts';

const SOUND = settingsOf('redis_version:7.2.4\r\nmaxmemory_policy:noeviction\r\nmaxmemory:0\r\naof_enabled:1\r\n', '');

test.each([
  ['state', 0.24, 'ok', 'REDIS_URL: version 7.2.4 answers in 0.2 ms (median of 11 pings)'],
  ['state', 10, 'ok', 'REDIS_URL: version 7.2.4 answers in 10 ms (median of 11 pings)'],
  ['state', 79.9, 'warn', 'REDIS_URL: version 7.2.4 answers in 80 ms (median of 11 pings); every request waits for it'],
  [
    'state',
    80,
    'fail',
    'REDIS_URL: version 7.2.4 answers in 80 ms (median of 11 pings); rate limits are not exact from 80 ms on',
  ],
  [
    'cache',
    300,
    'warn',
    'REDIS_CACHE_URL: version 7.2.4 answers in 300 ms (median of 11 pings); every request waits for it',
  ],
] as const)('latency of the %s Redis, %d ms: %s', (role, latencyMs, status, message) => {
  expect(checkLatency({ latencyMs, servers: [{ name: 'h:1', settings: SOUND }] }, role, 80)).toMatchObject({
    status,
    message,
  });
});

test('where INFO is refused nothing is made up', () => {
  expect(checkLatency({ latencyMs: 1, servers: [{ name: 'h:1', settings: null }] }, 'state', 80).message).toBe(
    'REDIS_URL: answers in 1.0 ms (median of 11 pings)',
  );
  expect(checkSettings(null, 'cache', { use: 'cache', kind: 'single' })).toEqual([
    {
      name: 'redis',
      status: 'skipped',
      message: "REDIS_CACHE_URL: it refuses INFO: version, eviction and persistence can't be told",
      advice: null,
    },
  ]);
});

const brief = (info: string, role: 'state' | 'cache' = 'state'): string[] =>
  checkSettings(settingsOf(info, null), role, { use: role, kind: 'single' }).map(
    ({ status, message }) => `${status} ${message}`,
  );

test('what is well is told with the setting that makes it so, and what is not told as such', () => {
  expect(brief('maxmemory_policy:noeviction\naof_enabled:1')).toEqual([
    'ok REDIS_URL: drops nothing (maxmemory-policy noeviction)',
    'ok REDIS_URL: keeps what it has over a restart (appendonly yes)',
  ]);
  expect(brief('aof_enabled:0')).toEqual([
    'skipped REDIS_URL: it does not tell its maxmemory-policy',
    "skipped REDIS_URL: it refuses CONFIG GET: whether it keeps what it has over a restart can't be told",
  ]);
  expect(brief('maxmemory_policy:allkeys-lru\nmaxmemory:1000', 'cache')).toEqual([
    'ok REDIS_CACHE_URL: makes room when its memory is full (maxmemory-policy allkeys-lru)',
  ]);
});

const RIGHTS = 'Give its user these rights: ACL SETUSER name ~evalgate:* &evalgate:* +@all -@dangerous +info';

test.each([
  ["OOM command not allowed when used memory > 'maxmemory'.", 'Its memory is full: raise maxmemory there.'],
  ["READONLY You can't write against a read only replica.", 'Set REDIS_URL to its primary.'],
  ['MISCONF Redis is configured to save RDB snapshots', 'It cannot save to its disk; its log says why.'],
  ["NOPERM this user has no permissions to run the 'eval' command", RIGHTS],
  ["ERR The user executing the script can't run this command or subcommand script: 87a9f7", RIGHTS],
  ['ACL failure in script: No permissions to access a key', RIGHTS],
  ['a message that was published did not arrive', 'Its log, and `redis-cli ACL LOG`, may say more.'],
])('a refusal says what to do: %s', (refusal, advice) => {
  expect(checkRefusal(refusal, 'REDIS_URL')).toEqual({
    name: 'redis',
    status: 'fail',
    message: `REDIS_URL: what a gateway does there is refused (${refusal})`,
    advice,
  });
});

const NOW_MS = Date.UTC(2026, 0, 20, 10);
const clock = (offMs: number, tookMs = 0) =>
  checkRedisClock({
    theirsMs: NOW_MS,
    sentAtMs: NOW_MS + offMs - tookMs / 2,
    answeredAtMs: NOW_MS + offMs + tookMs / 2,
  });

test.each([
  [1000, 'ok', 'agrees with that of REDIS_URL to within a second'],
  [-1000, 'ok', 'agrees with that of REDIS_URL to within a second'],
  [1001, 'warn', "this machine's clock is 1.0 s ahead of that of REDIS_URL"],
  [-90_400, 'warn', "this machine's clock is 90.4 s behind that of REDIS_URL"],
])('a clock that is %i ms on: %s', (offMs, status, message) => {
  expect(clock(offMs)).toMatchObject({ name: 'clock', status, message });
});

test('a slow answer makes the comparison of clocks less sure, by half the time it took', () => {
  expect([clock(1500, 998).status, clock(1500, 1000).status]).toEqual(['warn', 'ok']);
  expect(checkRedisClock(null)).toMatchObject({ status: 'skipped', message: 'REDIS_URL: it refuses TIME' });
});
