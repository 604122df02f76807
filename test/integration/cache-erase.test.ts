/** Erasing an evaluation or a workspace: what is gone afterwards, and when the proof is refused. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { GET_CALL, GET_CALL_TRANSCRIPT, LIST_CALLS } from '../http/common/endpoints.ts';
import { auditOf } from '../support/admin.ts';
import { BACKENDS, type BackendKind, World } from '../support/world.ts';
import { forTest } from '../support/opened.ts';
import { runCli } from '../support/cli.ts';
import { isOneServer, startRedis } from '../support/redis.ts';

const MEMBERS = 'evalgate:{members}';

const receiptSchema = z.object({
  unknownGone: z.array(z.string()),
  erased: z.boolean(),
  refetched: z.boolean(),
  redis: z.object({ deleted: z.number(), complete: z.boolean() }),
  lists: z.number(),
  processes: z.array(z.object({ id: z.string(), reached: z.boolean(), dropped: z.number().nullable() })),
  at: z.string(),
});

async function start(kind: BackendKind) {
  const world = await forTest(World.start(kind));
  const call = await world.reader(GET_CALL);
  const readers = [call];
  for (const endpoint of [GET_CALL_TRANSCRIPT, LIST_CALLS]) readers.push(await world.readerOf(endpoint, call.subject));
  for (const gateway of world.gateways) for (const reader of readers) await reader.ask(gateway);
  const erase = async (body: object) =>
    receiptSchema.parse((await world.change('POST', '/api/cache/erase', body, world.there)).json);
  return { world, call, readers, erase, subject: call.subject };
}

describe.each(BACKENDS)('%s', (kind) => {
  test('an evaluation: its parts and the lists that held it, in every process and in Redis', async () => {
    const { world, readers, erase, subject } = await start(kind);
    const receipt = await erase({ evaluation: subject.id });
    expect(receipt).toMatchObject({ erased: true, refetched: false, lists: 1 });
    expect(receipt.processes.map(({ reached, dropped }) => [reached, dropped])).toEqual(
      world.gateways.map(() => [true, 2]),
    );
    expect(receipt.redis).toEqual({ deleted: kind === 'redis' ? 3 : 0, complete: true });
    for (const gateway of world.gateways) {
      for (const reader of readers)
        expect(await reader.explain(gateway)).toMatchObject({ memory: null, redis: { entry: null } });
    }
    const [entry] = await auditOf(world.here);
    expect(entry).toMatchObject({ action: 'cache.erase', target: `evaluation:${subject.id}`, to: { erased: true } });
  });

  test('a workspace', async () => {
    const { world, readers, erase, subject } = await start(kind);
    expect(await erase({ workspace: subject.workspaceId.toUpperCase() })).toMatchObject({ erased: true });
    for (const gateway of world.gateways) {
      for (const reader of readers)
        expect(await reader.explain(gateway)).toMatchObject({ memory: null, redis: { entry: null } });
    }
  });

  test('a call that was under way is waited for, and what it brought is kept nowhere', async () => {
    const { world, call, erase, subject } = await start(kind);
    await erase({ evaluation: subject.id });
    const hold = world.store.hold();
    const read = call.ask(world.here);
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    const erasing = erase({ evaluation: subject.id });
    await world.eventually(async () => expect((await call.explain(world.here)).flight.since).not.toBeNull());
    hold.release();
    expect((await read).status).toBe(200);
    expect(await erasing).toMatchObject({ erased: true });
    expect((await call.explain(world.here)).memory).toBeNull();
  });

  test('what somebody reads again while the store still has it is no proof', async () => {
    const { world, call, erase, subject } = await start(kind);
    const other = await world.reader(GET_CALL);
    const hold = world.store.hold(new RegExp(other.subject.id));
    const read = other.ask(world.there);
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    // It waits for the other call.
    const erasing = erase({ evaluation: subject.id });
    await world.eventually(async () => expect((await call.explain(world.here)).memory).toBeNull());
    world.clock.advance(1);
    expect((await call.ask(world.here)).status).toBe(200);
    hold.release();
    await read;
    expect(await erasing).toMatchObject({ erased: false, refetched: true });
  });
});

test('the command prints the receipt, and fails while a process that vanished is not named as gone', async () => {
  const { world, erase, subject } = await start('redis');
  const raw = await world.raw();
  await raw.zadd(`${MEMBERS}:vanished`, Date.now(), 'stopped');
  const erased = await runCli(['cache', 'erase', '--evaluation', subject.id, '--admin', world.here.adminUrl]);
  expect(erased.status).toBe(1);
  expect(erased.stderr).toContain('stopped');
  const receipt = receiptSchema.parse(JSON.parse(erased.stdout));
  expect(receipt).toMatchObject({ erased: false, redis: { complete: true } });
  expect(receipt.processes.filter(({ reached }) => !reached).map(({ id }) => id)).toEqual(['stopped']);
  expect(await erase({ evaluation: subject.id, gone: ['stopped'] })).toMatchObject({ erased: true });
  const args = ['cache', 'erase', '--evaluation', subject.id, '--gone', 'nope', '--admin', world.here.adminUrl];
  const { status, stdout, stderr } = await runCli(args);
  expect([status, stderr]).toEqual([0, 'No process is known by nope: --gone changed nothing.\n']);
  expect(receiptSchema.parse(JSON.parse(stdout)).unknownGone).toEqual(['nope']);
  // It is remembered.
  expect(await erase({ evaluation: subject.id })).toMatchObject({ erased: true });
});

test('copies that 0.3 left in Redis are gone with any erasure', async () => {
  const { world, erase, subject } = await start('redis');
  const client = await world.raw();
  const [own = ''] = await world.names(`evalgate:{cache-*${subject.id}*}:copy-*`);
  const entry = own.slice(0, own.indexOf('}:copy-') + 1).replace('-v3%3a', '-v2%3a');
  const names = ['', ':absent-a', ':lease-a', ':failure-a'].map((part) => entry + part);
  for (const name of names) await client.set(name, 'of 0.3');
  expect(await erase({ evaluation: subject.id })).toMatchObject({ erased: true });
  expect(await client.exists(...names)).toBe(0);
});

test('copies that no process reads any more are gone with any erasure: of another store, or in the state Redis', async () => {
  const { world, erase } = await start('redis');
  const client = await world.raw();
  const names = () => world.names('evalgate:{cache-*}:copy-*');
  const own = (await names()).toSorted();
  expect(own.length).toBeGreaterThan(0);
  for (const name of own) await client.set(name.replace(/cache-[^-]*/, 'cache-other'), 'of another store');
  expect(await erase({ evaluation: 'ev_none' })).toMatchObject({ erased: true });
  expect((await names()).filter((name) => name.includes('cache-other'))).toEqual([]);

  const kept = (await names()).toSorted();
  expect(kept.length).toBeGreaterThan(0);
  const url = world.redis?.url ?? '';
  const alike = await world.join({
    env: { REDIS_CACHE_URL: url.includes('?') ? `${url}&family=4` : `${url}?family=4` },
  });
  await world.change('POST', '/api/cache/erase', { evaluation: 'ev_none' }, alike);
  expect((await names()).toSorted()).toEqual(kept);

  const cache = await forTest(startRedis());
  const since = await world.join({ env: { REDIS_CACHE_URL: cache.url } });
  for (const name of own) await client.set(name, 'from before');
  expect((await world.change('POST', '/api/cache/erase', { evaluation: 'ev_none' }, since)).status).toBe(200);
  expect(await names()).toEqual([]);
});

test.skipIf(!isOneServer)('one Redis for all need not say which server it is', async () => {
  const { world, erase, subject } = await start('redis');
  const client = await world.raw();
  await client.acl('SETUSER', 'default', '-info');
  expect(await erase({ evaluation: subject.id })).toMatchObject({ erased: true, redis: { complete: true } });
});
