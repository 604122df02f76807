/** `evalgate doctor` in front of real Redis servers, set well and badly. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { readText } from '../support/deploy-files.ts';
import { fileOf } from '../support/files.ts';
import { forFile, forTest } from '../support/opened.ts';
import { withClient } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { findRedis } from './redis-findings.ts';

const set = (redis: TestRedis, name: string, value: string): Promise<unknown> =>
  withClient(redis.url, (client) => client.config('SET', name, value));

const state = await forFile(startRedis());
const cache = await forFile(startRedis());
beforeEach(async () => {
  for (const redis of [state, cache]) {
    await set(redis, 'maxmemory', '100mb');
    await redis.flush();
  }
  await set(state, 'appendonly', 'yes');
  await set(state, 'save', '');
  await set(state, 'maxmemory-policy', 'noeviction');
  await set(cache, 'maxmemory-policy', 'allkeys-lru');
});

const answers = (setting: string): RegExp => new RegExp(`^ok redis ${setting}: version [\\d.]+ answers in N ms`);
const WORKS = 'ok redis REDIS_URL: scripts, writes and messages work';
const AGREES = 'ok clock differs from that of REDIS_URL by less than a second';

test('a sound Redis passes, and nothing is left in it', async () => {
  const { ok, lines } = await findRedis({ REDIS_URL: state.url });
  expect(ok).toBe(true);
  expect(lines).toEqual([
    expect.stringMatching(answers('REDIS_URL')),
    'ok redis REDIS_URL: drops nothing (maxmemory-policy noeviction)',
    'ok redis REDIS_URL: keeps its data over a restart (appendonly yes)',
    WORKS,
    AGREES,
  ]);
  expect(await withClient(state.url, (client) => client.dbsize())).toBe(0);
});

test('the Redis that the tutorial starts passes without a warning', async () => {
  const commands = [...readText('docs/tutorial.md').matchAll(/redis-server ((?:--[a-z]+ \w+ ?)+)/g)];
  expect(commands).toHaveLength(2);
  for (const [, options = ''] of commands) {
    const config = options
      .split('--')
      .map((option) => option.trim())
      .filter((option) => option !== '');
    const redis = await forTest(startRedis({ config }));
    const { ok, lines } = await findRedis({ REDIS_URL: redis.url });
    expect([ok, lines.filter((line) => !line.startsWith('ok '))]).toEqual([true, []]);
  }
});

test('a second Redis for the cache is looked at for what a cache needs', async () => {
  const env = { REDIS_URL: state.url, REDIS_CACHE_URL: cache.url };
  const sound = await findRedis(env);
  expect([sound.ok, sound.lines.slice(5)]).toEqual([
    true,
    [
      expect.stringMatching(answers('REDIS_CACHE_URL')),
      'ok redis REDIS_CACHE_URL: makes room when its memory is full (maxmemory-policy allkeys-lru)',
      'ok redis REDIS_CACHE_URL: scripts, writes and messages work',
    ],
  ]);
  await set(cache, 'maxmemory', '0');
  const unbounded = await findRedis(env);
  expect([unbounded.ok, unbounded.found[6]]).toEqual([
    true,
    {
      name: 'redis',
      status: 'warn',
      message: 'REDIS_CACHE_URL: has no memory limit (maxmemory 0), and the response cache fills all there is',
      advice: 'Set maxmemory there to what the cache may use, and maxmemory-policy allkeys-lru.',
    },
  ]);
  await set(cache, 'maxmemory', '100mb');
  await set(cache, 'maxmemory-policy', 'noeviction');
  expect((await findRedis(env)).lines[6]).toBe(
    'warn redis REDIS_CACHE_URL: caches nothing more when its memory is full (maxmemory-policy noeviction)',
  );
});

const CONFIG_SET = (line: string): string =>
  `Set ${line} there: \`redis-cli CONFIG SET ${line}\`, and the same line in redis.conf.`;
const OWN_CACHE = 'And give the response cache a Redis of its own with REDIS_CACHE_URL, which may evict.';

test.each([
  {
    setting: ['maxmemory-policy', 'allkeys-lru'],
    status: 'fail',
    message: 'REDIS_URL: may drop API keys when its memory is full (maxmemory-policy allkeys-lru)',
    advice: `${CONFIG_SET('maxmemory-policy noeviction')} ${OWN_CACHE}`,
  },
  {
    setting: ['maxmemory-policy', 'volatile-ttl'],
    status: 'warn',
    message: 'REDIS_URL: may forget the use of rate limits when its memory is full (maxmemory-policy volatile-ttl)',
    advice: `${CONFIG_SET('maxmemory-policy noeviction')} ${OWN_CACHE}`,
  },
  {
    setting: ['maxmemory', '0'],
    status: 'warn',
    message: 'REDIS_URL: has no memory limit (maxmemory 0), and cached answers may take what keys and limits need',
    advice:
      'Set maxmemory there, a tenth of which the cache leaves free; or cache.redis to what the cache may use; or give the response cache a Redis of its own with REDIS_CACHE_URL, which may evict.',
  },
  {
    setting: ['appendonly', 'no'],
    status: 'fail',
    message: 'REDIS_URL: loses all API keys when it restarts: it saves nothing',
    advice: CONFIG_SET('appendonly yes'),
  },
  {
    setting: ['appendonly', 'no', 'save', '900 1'],
    status: 'warn',
    message:
      'REDIS_URL: saves snapshots only: when it crashes, the last minutes are lost, and keys revoked then work again',
    advice: CONFIG_SET('appendonly yes'),
  },
])('a state Redis with $setting is found, with what to set', async ({ setting, ...expected }) => {
  for (let at = 0; at < setting.length; at += 2) await set(state, setting[at] ?? '', setting[at + 1] ?? '');
  const { ok, found } = await findRedis({ REDIS_URL: state.url });
  expect([ok, found.filter(({ status }) => status !== 'ok')]).toEqual([
    expected.status === 'warn',
    [{ name: 'redis', ...expected }],
  ]);
});

test('a Redis without a memory limit is sound if the cache has a budget there, or is elsewhere', async () => {
  await set(state, 'maxmemory', '0');
  for (const env of [{ CONFIG_FILE: fileOf('cache:\n  redis: 512MB\n') }, { REDIS_CACHE_URL: cache.url }]) {
    const { found } = await findRedis({ REDIS_URL: state.url, ...env });
    expect(found.filter(({ status }) => status !== 'ok')).toEqual([]);
  }
});

test.each([
  [20, 'warn', 'every request waits for it', true],
  [260, 'fail', 'rate limits are not exact from 250 ms on', false],
])('a Redis that is %i ms away: %s', async (awayMs, status, words, isWell) => {
  const slow = await forTest(TcpProxy.start(state.url));
  slow.delay('downstream', awayMs);
  const { ok, found } = await findRedis({ REDIS_URL: slow.url });
  expect([ok, found[0]?.status]).toEqual([isWell, status]);
  expect(found[0]?.message).toMatch(new RegExp(`answers in \\d+ ms \\(median of 11 pings\\); ${words}$`));
  expect(found[0]?.advice).toContain('Run it near the gateways');
});

test.each([
  [90_400, /^warn clock this machine's clock is 90\.\d s ahead of that of REDIS_URL$/],
  [-90_400, /^warn clock this machine's clock is 90\.\d s behind that of REDIS_URL$/],
])('a clock that is %i ms on is found', async (offMs, message) => {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + offMs });
  try {
    const { ok, lines } = await findRedis({ REDIS_URL: state.url });
    expect([ok, lines.at(-1)]).toEqual([true, expect.stringMatching(message)]);
  } finally {
    vi.useRealTimers();
  }
});

test('two addresses of one server are one Redis', async () => {
  const { ok, lines } = await findRedis({ REDIS_URL: state.url, REDIS_CACHE_URL: `${state.url}/1` });
  expect([ok, lines.slice(5)]).toEqual([
    true,
    [
      'warn redis REDIS_CACHE_URL: leads to the same Redis as REDIS_URL, with one memory and one maxmemory-policy for both',
    ],
  ]);
  expect((await findRedis({ REDIS_URL: state.url, REDIS_CACHE_URL: state.url })).lines).toHaveLength(5);
});

test('a memory that is full refuses writes, and that is found', async () => {
  await set(state, 'maxmemory', '100kb');
  const { ok, found } = await findRedis({ REDIS_URL: state.url });
  expect(ok).toBe(false);
  const failure = found.find(({ status }) => status === 'fail');
  expect(failure?.message).toContain('REDIS_URL: refuses a command that a gateway needs (OOM ');
  expect(failure?.advice).toBe('Its memory is full: raise maxmemory there.');
  expect(found.find(({ status }) => status === 'warn')?.message).toMatch(/has \d+ % of its maxmemory in use/);
});

test('a replica is found', async () => {
  const { hostname, port } = new URL(cache.url);
  await withClient(state.url, (client) => client.replicaof(hostname, port));
  const { ok, found } = await findRedis({ REDIS_URL: state.url });
  await withClient(state.url, (client) => client.replicaof('NO', 'ONE'));
  expect(ok).toBe(false);
  expect(found.filter(({ status }) => status === 'fail').map(({ advice }) => advice)).toEqual([
    'Give the address of its primary.',
    'Set REDIS_URL to its primary.',
  ]);
});

const withUser = async (...rights: readonly string[]): Promise<string> => {
  await withClient(state.url, (client) => client.acl('SETUSER', 'name', 'reset', 'on', '>secret', ...rights));
  return state.url.replace('redis://', 'redis://name:secret@');
};
/** Without them it says what it could not look at, and makes nothing up. */
test('data without permission is reported as unknown', async () => {
  await set(state, 'appendonly', 'no');
  const warn = vi.spyOn(console, 'warn');
  const hosted = await findRedis({ REDIS_URL: await withUser(...DOCUMENTED) });
  expect(hosted.lines).toContain(
    'skipped redis REDIS_URL: it refuses CONFIG GET: whether it keeps its data over a restart is unknown',
  );
  const blind = await findRedis({ REDIS_URL: await withUser(...DOCUMENTED, '-info') });
  expect(blind.lines.slice(0, 2)).toEqual([
    'ok redis REDIS_URL: answers in N ms (median of 11 pings)',
    'skipped redis REDIS_URL: it refuses INFO: version, eviction and persistence are unknown',
  ]);
  // ioredis has a line of its own for that, which nobody could read among those of a log.
  expect(warn).not.toHaveBeenCalled();
});

const DOCUMENTED = ['~evalgate:*', '&evalgate:*', '+@all', '-@dangerous', '+info'];

test('a user with the documented rights passes', async () => {
  const { ok, lines } = await findRedis({ REDIS_URL: await withUser(...DOCUMENTED) });
  expect([ok, lines.at(-2), lines.at(-1)]).toEqual([true, WORKS, AGREES]);
});

test.each([
  ['scripts', ['-evalsha', '-eval']],
  ['channels', ['resetchannels']],
  ['names', ['resetkeys', '~other:*']],
  ['a command of the scripts', ['-zadd']],
  ['messages', ['-subscribe']],
])('a user without the right to %s is found, and told the rights it needs', async (_, less) => {
  const { ok, found } = await findRedis({ REDIS_URL: await withUser(...DOCUMENTED, ...less) });
  expect(ok).toBe(false);
  const failures = found.filter(({ status }) => status === 'fail');
  expect(failures.map(({ advice }) => advice)).toEqual([
    'Give its user these rights: ACL SETUSER name ~evalgate:* &evalgate:* +@all -@dangerous +info',
  ]);
  expect(failures[0]?.message).toMatch(/^REDIS_URL: (?:refuses a command that a gateway needs|.* can't be used) \(/);
});

const host = (): string => state.url.replace('redis://', '');

test.each([
  [
    'Sentinels',
    () => 'redis+sentinel://:s3cret@127.0.0.1:1/main?sentinelPassword=s3cret',
    "REDIS_URL: the primary main of the Sentinels at 127.0.0.1:1 can't be used (no Sentinel answers: ",
    'Check that they run, host and port of each in REDIS_URL',
  ],
  [
    'a Cluster',
    () => 'redis+cluster://:s3cret@127.0.0.1:1,127.0.0.1:2',
    "REDIS_URL: the Cluster at 127.0.0.1:1, 127.0.0.1:2 can't be used (",
    'Check that it runs, and host, port and scheme (rediss:// for TLS) in REDIS_URL.',
  ],
  [
    'a wrong password',
    () => `redis://someone:s3cret@${host()}`,
    "can't be used (WRONGPASS",
    'Give a user and password that it takes in REDIS_URL: redis://user:password@host:port.',
  ],
])('%s: said plainly, without the password', async (_, url, message, advice) => {
  const { ok, found } = await findRedis({ REDIS_URL: url() });
  expect([ok, found[0]?.message, found[0]?.advice]).toEqual([
    false,
    expect.stringContaining(message),
    expect.stringContaining(advice),
  ]);
  expect(JSON.stringify(found)).not.toContain('s3cret');
});

test('a server that answers in another language is not Redis', async () => {
  const server = createServer((socket) => void socket.on('error', () => undefined).write('220 mail.example ESMTP\r\n'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = z.object({ port: z.int() }).parse(server.address());
  const { found } = await findRedis({ REDIS_URL: `redis://127.0.0.1:${port}` });
  server.close();
  expect(found[0]).toMatchObject({
    message: `REDIS_URL: Redis at 127.0.0.1:${port} can't be used (the server is not Redis)`,
    advice: 'Check that it runs, and host, port and scheme (rediss:// for TLS) in REDIS_URL.',
  });
});

test('a frozen Redis is given up on, and nothing hangs', async () => {
  await state.pause();
  try {
    const { found } = await findRedis({ REDIS_URL: state.url });
    expect(found[0]?.message).toMatch(/can't be used \((?:no answer within 5 s|Command timed out|ETIMEDOUT)\)/);
  } finally {
    await state.resume();
  }
});

test('one that cannot be reached, or is of another kind than its address, is wrong and stops no other check', async () => {
  const gone = await findRedis({ REDIS_URL: state.url, REDIS_CACHE_URL: 'redis://:s3cret@127.0.0.1:1' });
  expect([gone.ok, gone.found.length, gone.found.at(-1)]).toEqual([
    false,
    6,
    {
      name: 'redis',
      status: 'fail',
      message: "REDIS_CACHE_URL: Redis at 127.0.0.1:1 can't be used (ECONNREFUSED)",
      advice: 'Check that it runs, and host, port and scheme (rediss:// for TLS) in REDIS_CACHE_URL.',
    },
  ]);
  const single = await findRedis({ REDIS_URL: state.url.replace('redis:', 'redis+cluster:') });
  expect([single.ok, single.found.map(({ advice }) => advice)]).toEqual([
    false,
    ['It is no Cluster: begin REDIS_URL with redis:// or rediss://.'],
  ]);
  expect(single.found[0]?.message).toMatch(
    /^REDIS_URL: the Cluster at .* can't be used \(ERR This instance has cluster support disabled\)$/,
  );
});
