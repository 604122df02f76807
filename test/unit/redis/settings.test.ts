import { expect, test } from 'vitest';
import { redisFaults, type RedisKind, type RedisSettings, type RedisUse } from '../../../src/redis/settings.ts';
import { settingsOf } from '../../../src/redis/settings.ts';

const SOUND: RedisSettings = {
  version: '7.0.15',
  mode: 'standalone',
  isReplica: false,
  replicas: 0,
  runId: 'r1',
  evictionPolicy: 'noeviction',
  maxMemoryBytes: 0,
  usedMemoryBytes: 1_000_000,
  appendsToFile: true,
  savesSnapshots: true,
  failedToWrite: false,
};
const UNTOLD: RedisSettings = {
  version: null,
  mode: null,
  isReplica: null,
  replicas: null,
  runId: null,
  evictionPolicy: null,
  maxMemoryBytes: null,
  usedMemoryBytes: null,
  appendsToFile: null,
  savesSnapshots: null,
  failedToWrite: false,
};

/** `severity about: remedy` of each fault. */
function faults(changed: Partial<RedisSettings>, use: RedisUse = 'state'): string[] {
  return redisFaults({ ...SOUND, ...changed }, use).map(
    ({ severity, about, remedy }) => `${severity} ${about}: ${remedy}`,
  );
}

const NOEVICTION =
  'Set maxmemory-policy noeviction there: `redis-cli CONFIG SET maxmemory-policy noeviction`, and the same line in redis.conf.';
const OWN = 'ive the response cache a Redis of its own with REDIS_CACHE_URL, which may evict.';

test.each(['state', 'both'] as const)('one that keeps all it has is sound for %s', (use) => {
  expect(faults({}, use)).toEqual([]);
});

test.each(['state', 'cache', 'both'] as const)('of what is not told nothing is said (%s)', (use) => {
  expect(redisFaults(UNTOLD, use)).toEqual([]);
});

test.each([
  ['7.0.15', []],
  ['6.0.0', []],
  ['10.1.0', []],
  ['5.9.9', ['fail version: Use Redis 6.0 or newer, or Valkey.']],
  ['unstable', []],
])('version %s', (version, expected) => {
  expect(faults({ version })).toEqual(expected);
  expect(faults({ version, evictionPolicy: 'allkeys-lru', maxMemoryBytes: 1 }, 'cache')).toEqual(expected);
});

test.each([
  [{ mode: 'cluster' }, 'Begin its address with redis+cluster:// (rediss+cluster:// for TLS).'],
  [
    { mode: 'sentinel' },
    'Give redis+sentinel://host:port,host:port/primary, with the name by which it knows the primary.',
  ],
  [{ isReplica: true }, 'Give the address of its primary.'],
])('%j is nothing to connect to', (changed, remedy) => {
  expect(faults(changed)).toEqual([`fail mode: ${remedy}`]);
});

test('state must not be in a Redis that may drop any key; that shared with the cache, the cache is to go', () => {
  expect(faults({ evictionPolicy: 'allkeys-lru' })).toEqual([`fail memory: ${NOEVICTION}`]);
  expect(faults({ evictionPolicy: 'allkeys-lru' }, 'both')).toEqual([`fail memory: ${NOEVICTION} And g${OWN}`]);
});

test('what is counted for rate limits expires, so a policy for what expires can be lived with at best', () => {
  expect(faults({ evictionPolicy: 'volatile-lru' })).toEqual([`warn memory: ${NOEVICTION}`]);
  expect(faults({ evictionPolicy: 'volatile-ttl' }, 'both')).toEqual([`warn memory: ${NOEVICTION} And g${OWN}`]);
});

test('a memory that evicts nothing is told of when four fifths of it are used', () => {
  const maxMemoryBytes = 1_000_000;
  expect(faults({ maxMemoryBytes, usedMemoryBytes: 800_000 })).toEqual([]);
  expect(faults({ maxMemoryBytes, usedMemoryBytes: 800_001 })).toEqual(['warn memory: Raise maxmemory there.']);
  expect(faults({ maxMemoryBytes, usedMemoryBytes: 990_000 }, 'both')).toEqual([
    `warn memory: Raise maxmemory there, or g${OWN}`,
  ]);
  const [fault] = redisFaults({ ...SOUND, maxMemoryBytes, usedMemoryBytes: 990_000 }, 'state');
  expect(fault?.finding).toBe('has 99 % of its maxmemory in use, and refuses all changes once it is full');
});

test('a Redis for the cache alone should have a limit and evict; it need not save', () => {
  const unsaved = { appendsToFile: false, savesSnapshots: false };
  expect(faults({ ...unsaved, evictionPolicy: 'allkeys-lru', maxMemoryBytes: 1000 }, 'cache')).toEqual([]);
  expect(faults({ ...unsaved, evictionPolicy: 'volatile-ttl', maxMemoryBytes: 1000 }, 'cache')).toEqual([]);
  expect(faults({ evictionPolicy: 'allkeys-lru', maxMemoryBytes: 0 }, 'cache')).toEqual([
    'warn memory: Set maxmemory there to what the cache may use, and maxmemory-policy allkeys-lru.',
  ]);
  expect(faults({ maxMemoryBytes: 1000 }, 'cache')).toEqual([
    'warn memory: Set maxmemory-policy allkeys-lru there: `redis-cli CONFIG SET maxmemory-policy allkeys-lru`, and the same line in redis.conf.',
  ]);
});

const APPEND = 'Set appendonly yes there: `redis-cli CONFIG SET appendonly yes`, and the same line in redis.conf.';

test.each([
  [{ appendsToFile: false, savesSnapshots: false }, [`fail persistence: ${APPEND}`]],
  [{ appendsToFile: false, savesSnapshots: true }, [`warn persistence: ${APPEND}`]],
  [{ appendsToFile: false, savesSnapshots: null }, []],
  [{ appendsToFile: null, savesSnapshots: false }, []],
  [{ appendsToFile: true, savesSnapshots: false }, []],
  [
    { failedToWrite: true },
    ['fail persistence: Its log says why: often the disk is full, or its folder belongs to another user.'],
  ],
])('persistence of state: %j', (changed, expected) => {
  expect(faults(changed)).toEqual(expected);
  expect(faults(changed, 'both')).toEqual(expected);
});

test('INFO is read as Redis writes it', () => {
  const info = [
    '# Server',
    'redis_version:7.0.15',
    'redis_mode:standalone',
    'run_id:abc',
    '',
    '# Memory',
    'used_memory:123',
    'maxmemory:456',
    'maxmemory_policy:allkeys-lfu',
    '# Persistence',
    'aof_enabled:1',
    'rdb_last_bgsave_status:ok',
    'aof_last_write_status:err',
    '# Replication',
    'role:slave',
    'connected_slaves:2',
    'executable:/usr/bin/a:b',
  ].join('\r\n');
  expect(settingsOf(info, '')).toEqual({
    version: '7.0.15',
    mode: 'standalone',
    isReplica: true,
    replicas: 2,
    runId: 'abc',
    evictionPolicy: 'allkeys-lfu',
    maxMemoryBytes: 456,
    usedMemoryBytes: 123,
    appendsToFile: true,
    savesSnapshots: false,
    failedToWrite: true,
  });
  expect(settingsOf('', null)).toEqual(UNTOLD);
});

const found = (changed: Partial<RedisSettings>, kind: RedisKind, use: RedisUse = 'state'): string[] =>
  redisFaults({ ...SOUND, ...changed }, use, kind).map(({ severity, about }) => `${severity} ${about}`);

test('a node of a Cluster is right where a Cluster is meant, and a primary there should have a replica', () => {
  expect(found({ mode: 'cluster', replicas: 1 }, 'cluster')).toEqual([]);
  expect(found({ mode: 'cluster', replicas: 0 }, 'cluster')).toEqual(['warn replicas']);
  expect(found({ replicas: 0 }, 'sentinel')).toEqual(['warn replicas']);
  expect(found({ replicas: null }, 'sentinel')).toEqual([]);
  expect(found({ mode: 'cluster' }, 'sentinel')).toContain('fail mode');
  // What is lost of the cache is asked of the store again.
  const cache = { maxMemoryBytes: 1000, evictionPolicy: 'allkeys-lru' };
  expect(found({ ...cache, mode: 'cluster', replicas: 0 }, 'cluster', 'cache')).toEqual([]);
});
