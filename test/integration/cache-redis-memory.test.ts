/**
 * The cache leaves memory of Redis to keys and limits: where nothing makes room for it, nothing new is stored there. And
 * C6b: what takes copies away, and what keeps calls from the store, works on a Redis that is out of memory.
 */
import assert from 'node:assert/strict';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { GET_CALL, LIST_CALLS } from '../http/common/endpoints.ts';
import { auditOf, logOf, readinessOf, samplesOf } from '../support/admin.ts';
import { World, HIT, MISS, type Reader } from '../support/world.ts';
import { HurriedTimers } from '../support/hurried-timers.ts';
import { JOURNAL, STATE } from '../support/journal.ts';
import { atEach } from '../support/redis/client.ts';

const OVER = 'the cache is at its limit in Redis: copies make room for others';
const WITHIN = 'the cache is well within its limit in Redis again';

/** Between two samples of a gateway. */
const SAMPLE_EVERY_MS = 2000;

const timers = new HurriedTimers();
let world: World;
/** The common prefix of the names of entries, for anything that should look like one. */
let prefix: string;

async function start(settings: string, env: Readonly<Record<string, string>> = {}): Promise<void> {
  world = await World.start('redis', { settings, env, timers });
  await (await world.reader(GET_CALL)).ask();
  const [name = ''] = await world.names('evalgate:{cache-*');
  prefix = /^evalgate:\{cache-[^-]+-/.exec(name)?.[0] ?? '';
}

/** The names in Redis that belong to the reader's record. */
const namesOf = ({ subject }: Reader): Promise<readonly string[]> => world.names(`evalgate:*${subject.id}*`);

/** Every gateway has noticed. */
async function budgetIs(state: 'over' | 'within'): Promise<void> {
  const name = 'evalgate_redis_cache_over_budget';
  await world.everywhere(async (gateway) => {
    timers.elapse(SAMPLE_EVERY_MS);
    expect(await samplesOf(gateway, name)).toEqual({ [name]: Number(state === 'over') });
  });
}

async function detail(): Promise<string | undefined> {
  const { code, of } = await readinessOf(world.here);
  expect([code, of('redis-cache')?.status]).toEqual([200, 'ok']);
  return of('redis-cache')?.detail;
}

describe('above cache.redis', () => {
  let before: Reader;
  beforeAll(async () => {
    await start('cache:\n  redis: 1MB');
    await budgetIs('within');
    before = await world.reader(GET_CALL);
    await before.ask();
    const raw = await world.raw();
    for (let i = 0; i < 5; i += 1) await raw.hset(`${prefix}filling-${i}}`, 'body', 'x'.repeat(500_000));
    await budgetIs('over');
    return () => world.close();
  });

  test('a new answer is kept in the memory of the process that asked, and no other gets it', async () => {
    const reader = await world.reader(GET_CALL);
    expect((await reader.ask(world.here)).cache).toBe(MISS);
    expect((await reader.ask(world.here)).cache).toEqual(HIT);
    expect(await namesOf(reader)).toEqual([]);
    expect((await reader.ask(world.there)).cache).toBe(MISS);
    expect((await reader.ask(world.here)).cache).toEqual(HIT);
    expect(reader.calls()).toBe(2);
  });

  test('readers at both gateways who wait for one answer all get it', async () => {
    const reader = await world.reader(GET_CALL);
    const hold = world.store.hold();
    const asked = Array.from({ length: 10 }, (_, i) => reader.ask(i % 2 === 0 ? world.here : world.there));
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    hold.release();
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual(asked.map(() => 200));
    expect(reader.calls()).toBeLessThanOrEqual(2);
  });

  test('entries that are there are read, and replaced by newer ones', async () => {
    expect((await before.ask(world.there)).cache).toEqual(HIT);
    expect(before.calls()).toBe(1);
    await world.purge([`evaluation:${before.subject.id}`], { mode: 'soft' });
    expect((await before.explain()).redis.entry?.state).toBe('stale');
    await before.ask();
    await world.eventually(async () => expect((await before.explain()).redis.entry?.state).toBe('fresh'));
    await before.ask(world.there);
    expect(before.calls()).toBe(2);
  });

  test('a record that is not there is remembered in Redis', async () => {
    const reader = await world.reader(GET_CALL, { isStored: false });
    expect((await reader.ask()).status).toBe(404);
    expect(await namesOf(reader)).not.toEqual([]);
    expect((await reader.ask(world.there)).status).toBe(404);
    expect(reader.calls()).toBe(1);
  });

  test('a page leaves its evaluations in memory only', async () => {
    const reader = await world.reader(LIST_CALLS);
    expect((await reader.ask()).status).toBe(200);
    const single = await world.readerOf(GET_CALL, reader.subject);
    expect((await single.ask()).cache).toEqual(HIT);
    expect(await namesOf(single)).toEqual([]);
  });

  test('/readyz says so, the log has one line for its begin and one for its end, and then new answers are stored', async () => {
    expect(await detail()).toMatch(
      /^answers, and its messages arrive; copies make room for others: the cache has some \d+\.\d MB of 1\.0 MB \(cache\.redis\); cached records are not encrypted$/,
    );
    expect(logOf(world.here, OVER)).toMatchObject([{ level: 'warn', limit: 'budget' }]);
    const raw = await world.raw();
    for (const name of await world.names(`${prefix}filling-*`)) await raw.del(name);
    await budgetIs('within');
    expect([logOf(world.here, OVER).length, logOf(world.here, WITHIN)]).toMatchObject([1, [{ level: 'info' }]]);
    expect(await detail()).toBe('answers, and its messages arrive; cached records are not encrypted');
    const reader = await world.reader(GET_CALL);
    await reader.ask();
    expect(await namesOf(reader)).not.toEqual([]);
  });
});

/** At every server: that share of what is used of the memory; 0 for no limit. */
async function limitMemory(share: number): Promise<void> {
  await atEach(world.redis ?? { servers: [] }, async (client) => {
    const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
    await client.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', Math.round(used * share));
  });
}

describe('with keys and limits in the same Redis', () => {
  beforeAll(async () => {
    await start('');
    // The rest, such as buffers of connections, goes up and down.
    await (await world.raw()).setrange('most-of-it', 20_000_000, 'x');
    return () => world.close();
  });

  test('the last tenth of maxmemory is for them', async () => {
    await budgetIs('within');
    await limitMemory(1.02);
    await budgetIs('over');
    expect(await detail()).toMatch(
      /; copies make room for others: \d+\.\d MB are in use, and above \d+\.\d MB the memory \(maxmemory\) is for keys and limits; cached records are not encrypted$/,
    );
    expect(logOf(world.here, OVER)).toMatchObject([{ limit: 'reserve' }]);
    const reader = await world.reader(GET_CALL);
    expect((await reader.ask()).status).toBe(200);
    expect(await namesOf(reader)).toEqual([]);
    await limitMemory(2);
    await budgetIs('within');
    expect(logOf(world.here, WITHIN)).toHaveLength(1);
  });
});

describe('out of memory', () => {
  let reader: Reader;
  beforeAll(async () => {
    world = await World.start('redis');
    return () => world.close();
  });
  beforeEach(async () => {
    await limitMemory(0);
    world.clock.advance(1000);
    reader = await world.reader(GET_CALL);
    for (const gateway of world.gateways) await reader.ask(gateway);
    await limitMemory(0.1);
    await assert.rejects((await world.raw()).set('more', 'memory'), /^ReplyError: OOM /);
  });

  const stateOf = async (gateway = world.here) => (await reader.explain(gateway)).memory?.state;

  test.each(['hard', 'soft'])('a %s purge is in force everywhere', async (mode) => {
    const tags = [`evaluation:${reader.subject.id}`];
    expect((await world.change('POST', '/api/cache/purge', { tags, mode })).json).toMatchObject({ complete: true });
    await world.everywhere(async (gateway) =>
      expect(await stateOf(gateway)).toBe(mode === 'hard' ? undefined : 'stale'),
    );
    expect((await auditOf(world.there))[0]).toMatchObject({ action: 'cache.purge', to: { mode } });
  });

  test('so does lost history, which purges everything', async () => {
    await (await world.raw()).del(STATE, JOURNAL);
    await world.everywhere(async (gateway) => expect(await stateOf(gateway)).toBeUndefined());
  });

  test('maintenance begins and ends', async () => {
    const path = '/api/cache/maintenance';
    for (const active of [true, false]) {
      await (active ? world.change('PUT', path, { for: '1h' }) : world.change('DELETE', path));
      await world.everywhere(async (gateway) =>
        expect((await gateway.admin('GET', path)).json).toMatchObject({ active }),
      );
    }
  });

  test('TTLs are set, for a while too, and reset', async () => {
    const path = '/api/cache/ttl/evaluation';
    expect((await world.change('PUT', path, { fresh: '1s', for: '1h' })).json).toMatchObject({ fresh: '1s' });
    await world.everywhere(async (gateway) =>
      expect((await gateway.admin('GET', '/api/cache/ttl')).text).toContain('"freshMs":1000,'),
    );
    expect((await world.change('DELETE', path)).json).toMatchObject({ fresh: '5m' });
  });
});
