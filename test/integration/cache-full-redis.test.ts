/** C6b: what takes copies away, and what keeps calls from the store, works on a Redis that is out of memory. */
import assert from 'node:assert/strict';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { GET_CALL } from '../http/common/endpoints.ts';
import { auditOf } from '../support/admin.ts';
import { CacheWorld, type Reader } from '../support/cache-world.ts';
import { withClient } from '../support/redis/client.ts';
import { WORKSPACE_A } from '../support/records.ts';

let world: CacheWorld;
let reader: Reader;

/** Every server refuses what needs memory from now on. */
async function limitMemory(bytes: number): Promise<void> {
  for (const url of world.redis?.servers ?? []) {
    await withClient(url, (client) => client.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', bytes));
  }
}

beforeAll(async () => {
  world = await CacheWorld.start('redis');
});
afterAll(() => world.close());
beforeEach(async () => {
  await limitMemory(0);
  world.clock.advance(1000);
  reader = await world.reader(GET_CALL);
  for (const gateway of world.gateways) await reader.ask(gateway);
  await limitMemory(1);
  await assert.rejects((await world.raw()).set('more', 'memory'), /^ReplyError: OOM /);
});

const stateOf = async (gateway = world.here) => (await reader.explain(gateway)).memory?.state;

test.each(['hard', 'soft'])('a %s purge is in force everywhere', async (mode) => {
  const tags = [`evaluation:${reader.subject.id}`];
  expect((await world.change('POST', '/api/cache/purge', { tags, mode })).json).toMatchObject({ complete: true });
  for (const gateway of world.gateways) {
    await world.eventually(async () => expect(await stateOf(gateway)).toBe(mode === 'hard' ? 'purged' : 'stale'));
  }
  expect((await auditOf(world.there))[0]).toMatchObject({ action: 'cache.purge', to: { mode } });
});

test('so does lost history, which purges everything', async () => {
  await (await world.raw()).del('evalgate:{cache}:head', 'evalgate:{cache}:purges');
  for (const gateway of world.gateways) {
    await world.eventually(async () => expect(await stateOf(gateway)).toBe('purged'));
  }
});

test('maintenance begins and ends', async () => {
  const path = '/api/cache/maintenance';
  for (const active of [true, false]) {
    await (active ? world.change('PUT', path, { for: '1h' }) : world.change('DELETE', path));
    for (const gateway of world.gateways) {
      await world.eventually(async () => expect((await gateway.admin('GET', path)).json).toMatchObject({ active }));
    }
  }
});

test('TTLs are set, for a while too, and reset', async () => {
  const path = '/api/cache/ttl/evaluation';
  expect((await world.change('PUT', path, { fresh: '1s', for: '1h' })).json).toMatchObject({ fresh: '1s' });
  for (const gateway of world.gateways) {
    await world.eventually(async () =>
      expect((await gateway.admin('GET', '/api/cache/ttl')).text).toContain('"freshMs":1000,'),
    );
  }
  expect((await world.change('DELETE', path)).json).toMatchObject({ fresh: '5m' });
});

test('a change that needs memory fails, and says why and that it was not made', async () => {
  const before = await auditOf(world.here);
  const key = { name: 'a', workspaceIds: [WORKSPACE_A], scopes: ['calls.read'] };
  const answer = await world.here.admin('POST', '/api/keys', key);
  expect(answer.status).toBe(503);
  expect(answer.text).toContain('Redis is out of memory, so the change was not made.');
  expect(await auditOf(world.here)).toEqual(before);
});
