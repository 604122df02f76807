/** `evalgate doctor` in front of real Redis servers, set well and badly. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { withClient } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { evalgate } from '../unit/cli/support.ts';

const reportSchema = z.object({
  ok: z.boolean(),
  checks: z.array(
    z.object({ name: z.string(), status: z.string(), message: z.string(), advice: z.string().nullable() }),
  ),
});

let state: TestRedis;
let cache: TestRedis;

const set = (redis: TestRedis, name: string, value: string): Promise<unknown> =>
  withClient(redis.url, (client) => client.config('SET', name, value));

beforeAll(async () => {
  [state, cache] = await Promise.all([startRedis({ controls: true }), startRedis({ controls: true })]);
});
beforeEach(async () => {
  for (const redis of [state, cache]) {
    await set(redis, 'maxmemory', '0');
    await redis.flush();
  }
  await set(state, 'appendonly', 'yes');
  await set(state, 'save', '');
  await set(state, 'maxmemory-policy', 'noeviction');
  await set(cache, 'maxmemory', '100mb');
  await set(cache, 'maxmemory-policy', 'allkeys-lru');
});
afterAll(async () => {
  await Promise.all([state.close(), cache.close()]);
});

/** What is found of Redis and its clock. */
async function doctor(env: Record<string, string>) {
  const args = ['doctor', '--json', '--admin', 'http://127.0.0.1:1'];
  const { code, stdout, stderr } = await evalgate(args, { env });
  const { ok, checks } = reportSchema.parse(JSON.parse(stdout));
  expect(code).toBe(ok ? 0 : 1);
  const found = checks.filter(({ name }) => name === 'redis' || name === 'clock');
  return {
    code,
    stderr,
    found,
    lines: found.map(({ name, status, message }) => `${status} ${name} ${message.replace(/\d+(\.\d+)? ms/, 'N ms')}`),
  };
}

const answers = (setting: string): RegExp => new RegExp(`^ok redis ${setting}: version [\\d.]+ answers in N ms`);
const WORKS = 'ok redis REDIS_URL: scripts, writes and messages work';
const AGREES = 'ok clock agrees with that of REDIS_URL to within a second';

test('a sound Redis passes, and nothing is left in it', async () => {
  const { code, stderr, lines } = await doctor({ REDIS_URL: state.url });
  expect([code, stderr]).toEqual([0, '']);
  expect(lines).toEqual([
    expect.stringMatching(answers('REDIS_URL')),
    'ok redis REDIS_URL: drops nothing (maxmemory-policy noeviction)',
    'ok redis REDIS_URL: keeps what it has over a restart (appendonly yes)',
    WORKS,
    AGREES,
  ]);
  expect(await withClient(state.url, (client) => client.dbsize())).toBe(0);
});

test('a second Redis for the cache is looked at for what a cache needs', async () => {
  const env = { REDIS_URL: state.url, REDIS_CACHE_URL: cache.url };
  const sound = await doctor(env);
  expect([sound.code, sound.lines.slice(5)]).toEqual([
    0,
    [
      expect.stringMatching(answers('REDIS_CACHE_URL')),
      'ok redis REDIS_CACHE_URL: makes room when its memory is full (maxmemory-policy allkeys-lru)',
      'ok redis REDIS_CACHE_URL: scripts, writes and messages work',
    ],
  ]);
  await set(cache, 'maxmemory', '0');
  const unbounded = await doctor(env);
  expect([unbounded.code, unbounded.found[6]]).toEqual([
    0,
    {
      name: 'redis',
      status: 'warn',
      message: 'REDIS_CACHE_URL: has no limit of memory (maxmemory 0), and the response cache fills all there is',
      advice: 'Set maxmemory there to what the cache may use, and maxmemory-policy allkeys-lru.',
    },
  ]);
});

test('a state Redis that drops keys and saves nothing is wrong, with what to set', async () => {
  await set(state, 'maxmemory-policy', 'allkeys-lru');
  await set(state, 'appendonly', 'no');
  const { code, found } = await doctor({ REDIS_URL: state.url });
  expect(code).toBe(1);
  expect(found.filter(({ status }) => status === 'fail')).toEqual([
    {
      name: 'redis',
      status: 'fail',
      message: 'REDIS_URL: may drop API keys when its memory is full (maxmemory-policy allkeys-lru)',
      advice:
        'Set maxmemory-policy noeviction there: `redis-cli CONFIG SET maxmemory-policy noeviction`, and the same line in redis.conf. And give the response cache a Redis of its own with REDIS_CACHE_URL, which may evict.',
    },
    {
      name: 'redis',
      status: 'fail',
      message: 'REDIS_URL: loses all API keys when it restarts: it saves nothing',
      advice: 'Set appendonly yes there: `redis-cli CONFIG SET appendonly yes`, and the same line in redis.conf.',
    },
  ]);
});

test('two addresses of one server are one Redis', async () => {
  const { code, lines } = await doctor({ REDIS_URL: state.url, REDIS_CACHE_URL: `${state.url}/1` });
  expect([code, lines.slice(5)]).toEqual([
    0,
    [
      'warn redis REDIS_CACHE_URL: leads to the same Redis as REDIS_URL, with one memory and one maxmemory-policy for both',
    ],
  ]);
  expect((await doctor({ REDIS_URL: state.url, REDIS_CACHE_URL: state.url })).lines).toHaveLength(5);
});

test('a memory that is full refuses writes, and that is found', async () => {
  await set(state, 'maxmemory', '100kb');
  const { code, found } = await doctor({ REDIS_URL: state.url });
  expect(code).toBe(1);
  const failure = found.find(({ status }) => status === 'fail');
  expect(failure?.message).toContain('REDIS_URL: what a gateway does there is refused (OOM ');
  expect(failure?.advice).toBe('Its memory is full: raise maxmemory there.');
  expect(found.find(({ status }) => status === 'warn')?.message).toMatch(/has \d+ % of its maxmemory in use/);
});

test('a replica is found', async () => {
  const { hostname, port } = new URL(cache.url);
  await withClient(state.url, (client) => client.replicaof(hostname, port));
  const { code, found } = await doctor({ REDIS_URL: state.url });
  await withClient(state.url, (client) => client.replicaof('NO', 'ONE'));
  expect(code).toBe(1);
  expect(found.filter(({ status }) => status === 'fail').map(({ advice }) => advice)).toEqual([
    'Give the address of its primary.',
    'Set REDIS_URL to its primary.',
  ]);
});

const withUser = async (...rights: readonly string[]): Promise<string> => {
  await withClient(state.url, (client) => client.acl('SETUSER', 'name', 'reset', 'on', '>secret', ...rights));
  return state.url.replace('redis://', 'redis://name:secret@');
};
const DOCUMENTED = ['~evalgate:*', '&evalgate:*', '+@all', '-@dangerous', '+info'];

test('a user with the documented rights passes', async () => {
  const { code, stderr, lines } = await doctor({ REDIS_URL: await withUser(...DOCUMENTED) });
  expect([code, stderr, lines.at(-2), lines.at(-1)]).toEqual([0, '', WORKS, AGREES]);
});

test.each([
  ['scripts', ['-evalsha', '-eval']],
  ['channels', ['resetchannels']],
  ['names', ['resetkeys', '~other:*']],
  ['a command of the scripts', ['-zadd']],
  ['messages', ['-subscribe']],
])('a user without the right to %s is found, and told the rights it needs', async (_, less) => {
  const { code, found } = await doctor({ REDIS_URL: await withUser(...DOCUMENTED, ...less) });
  expect(code).toBe(1);
  const failures = found.filter(({ status }) => status === 'fail');
  expect(failures.map(({ advice }) => advice)).toEqual([
    'Give its user these rights: ACL SETUSER name ~evalgate:* &evalgate:* +@all -@dangerous +info',
  ]);
  expect(failures[0]?.message).toContain('REDIS_URL: what a gateway does there is refused (');
});

test('one that cannot be reached, or is of another kind than its address, is wrong and stops no other check', async () => {
  const gone = await doctor({ REDIS_URL: state.url, REDIS_CACHE_URL: 'redis://:s3cret@127.0.0.1:1' });
  expect([gone.code, gone.found.length, gone.found.at(-1)]).toEqual([
    1,
    6,
    {
      name: 'redis',
      status: 'fail',
      message: "REDIS_CACHE_URL: Redis at 127.0.0.1:1 can't be used (ECONNREFUSED)",
      advice: 'Check that it runs, and host, port and scheme (rediss:// for TLS) in REDIS_CACHE_URL.',
    },
  ]);
  const single = await doctor({ REDIS_URL: state.url.replace('redis:', 'redis+cluster:') });
  expect([single.code, single.found.map(({ advice }) => advice)]).toEqual([
    1,
    ['It is no Cluster: begin REDIS_URL with redis:// or rediss://.'],
  ]);
  expect(single.found[0]?.message).toMatch(
    /^REDIS_URL: the Cluster at .* can't be used \(ERR This instance has cluster support disabled\)$/,
  );
});
