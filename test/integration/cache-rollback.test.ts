/**
 * A cache Redis of its own that goes back to an older state: what was purged or has left its workspace meanwhile does not come
 * back, whether the journal still knows of it or not.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { LATE_MS } from '../../src/cache/purge-log.ts';
import { GET_CALL } from '../http/common/endpoints.ts';
import { linesOf } from '../support/admin.ts';
import { HurriedTimers } from '../support/hurried-timers.ts';
import { forTest } from '../support/opened.ts';
import { connectToAny, namesIn, withClient } from '../support/redis/client.ts';
import { launchRedis, onHost } from '../support/redis/server.ts';
import { redisSource } from '../support/redis/source.ts';
import { spawnCluster, spawnSentinels } from '../support/redis.ts';
import { FAILOVER, HIT, MISS, redisIsWell, World } from '../support/world.ts';
import { putSubject } from '../http/common/subject.ts';
import { STATE } from '../support/journal.ts';

/** How far apart the rounds in the background are. */
const ROUND_MS = 5000;
const ROLLED_BACK = 'The cache Redis has gone back to an older state';

/** A cache Redis that can go back to how it was. */
interface Rewindable {
  readonly url: string;
  /** Remembers how it is now. */
  readonly remember: () => Promise<void>;
  readonly goBack: () => Promise<void>;
}

const save = (url: string): Promise<unknown> => withClient(url, (client) => client.call('SAVE'));

/** It loads the snapshot when it starts. */
async function fromSnapshot(): Promise<Rewindable> {
  const redis = await forTest(onHost(await redisSource(), 1, (host, [port = 0]) => launchRedis(host, port)));
  return { url: redis.url, remember: async () => void (await save(redis.url)), goBack: () => redis.restart() };
}

async function ofPromotedReplica(): Promise<Rewindable> {
  const group = await forTest(spawnSentinels({ replicas: 1, downAfterMs: 600 }));
  const primary = await group.primary();
  const replicas = group.servers.filter((url) => url !== primary.url);
  const each = (run: (url: string) => Promise<unknown>): Promise<unknown> => Promise.all(replicas.map(run));
  return {
    url: group.url,
    // From now on it misses everything.
    remember: async () => {
      await withClient(primary.url, (client) => client.wait(1, 5000));
      await each((url) => withClient(url, (client) => client.call('REPLICAOF', 'NO', 'ONE')));
    },
    goBack: async () => {
      await primary.kill();
      await group.replaced(primary);
    },
  };
}

async function ofCluster(): Promise<Rewindable> {
  const cluster = await forTest(spawnCluster());
  return {
    url: cluster.url,
    remember: async () => void (await Promise.all(cluster.primaries.map(({ url }) => save(url)))),
    goBack: () => cluster.restart(),
  };
}

const timers = new HurriedTimers();

async function start(cache: Rewindable): Promise<World> {
  const world = await forTest(World.start('redis', { timers, env: { REDIS_CACHE_URL: cache.url } }));
  for (const gateway of world.gateways) await redisIsWell(gateway);
  return world;
}

async function untilBack(world: World, cache: Rewindable): Promise<void> {
  await cache.goBack();
  for (const gateway of world.gateways) {
    await vi.waitFor(async () => {
      await redisIsWell(gateway);
    }, FAILOVER);
  }
  world.clock.advance(1000);
}

const saysSo = (world: World): boolean =>
  world.gateways.some((gateway) => linesOf(gateway).some(({ msg }) => msg.startsWith(ROLLED_BACK)));

/** Lets rounds in the background pass until no purge of evaluations is remembered. */
async function untilForgotten(world: World): Promise<void> {
  const raw = await world.raw();
  await world.eventually(async () => {
    world.clock.advance(LATE_MS);
    timers.elapse(ROUND_MS);
    expect((await raw.hkeys(STATE)).filter((field) => field.startsWith('purge:evaluation:'))).toEqual([]);
  });
}

describe.each([
  ['a snapshot that is restored', fromSnapshot],
  ['a replica that lags and takes over', ofPromotedReplica],
  ['a Cluster whose primaries restart from older snapshots', ofCluster],
])('%s', (_what, open) => {
  test('C6: a purge that was forgotten meanwhile holds, and the bytes are deleted once more', async () => {
    const cache = await open();
    const world = await start(cache);
    const [purged, kept] = [await world.reader(GET_CALL), await world.reader(GET_CALL)];
    for (const reader of [purged, kept]) {
      expect(await reader.ask(world.here)).toMatchObject({ cache: MISS });
      expect(await reader.ask(world.there)).toMatchObject({ cache: HIT });
    }
    await cache.remember();
    await world.change('POST', '/api/cache/purge', { tags: [`evaluation:${purged.subject.id}`] });
    await untilForgotten(world);
    await untilBack(world, cache);
    const recover = world.store.fail(503);
    for (const gateway of world.gateways) expect((await purged.ask(gateway)).status).toBe(500);
    recover();
    expect(saysSo(world)).toBe(true);
    const raw = await connectToAny(cache.url, 5000);
    try {
      await world.eventually(async () => {
        timers.elapse(ROUND_MS);
        expect(await namesIn(raw, `*${purged.subject.id}*:copy-*`)).toEqual([]);
      });
    } finally {
      raw.disconnect();
    }
  }, 60_000);

  test('C4: a record that has left its workspace meanwhile is not served to its old readers', async () => {
    const cache = await open();
    const world = await start(cache);
    const reader = await world.reader(GET_CALL);
    for (const gateway of world.gateways) expect((await reader.ask(gateway)).status).toBe(200);
    await cache.remember();
    world.clock.advance(20 * 3_600_000);
    putSubject(world.store, { ...reader.subject, workspaceId: randomUUID() });
    expect((await reader.ask()).status).toBe(404);
    await untilBack(world, cache);
    world.clock.advance(60_000);
    world.store.fail(503);
    for (const gateway of world.gateways) expect((await reader.ask(gateway)).status).toBe(500);
    expect(saysSo(world)).toBe(true);
  }, 60_000);
});

test('what processes have in memory stays, and what was added since is only fetched again', async () => {
  const cache = await fromSnapshot();
  const world = await start(cache);
  const [ended, held] = [await world.reader(GET_CALL), await world.reader(GET_CALL)];
  expect((await held.ask(world.here)).status).toBe(200);
  await ended.ask(world.here);
  await cache.remember();
  await world.change('POST', '/api/cache/purge', { tags: [`evaluation:${ended.subject.id}`] });
  await untilForgotten(world);
  const late = await world.reader(GET_CALL);
  expect((await late.ask(world.here)).status).toBe(200);
  await untilBack(world, cache);
  expect((await ended.ask(world.there)).status).toBe(200);
  const recover = world.store.fail(503);
  for (const reader of [held, late]) expect((await reader.ask(world.here)).status).toBe(200);
  recover();
  expect(saysSo(world)).toBe(true);
});

test('a cache Redis that restarts without having lost an ending is used on as it is', async () => {
  const cache = await fromSnapshot();
  const world = await start(cache);
  const reader = await world.reader(GET_CALL);
  expect((await reader.ask(world.here)).status).toBe(200);
  await cache.remember();
  await untilBack(world, cache);
  expect(await reader.ask(world.there)).toMatchObject({ cache: HIT });
  expect(reader.calls()).toBe(1);
  expect(saysSo(world)).toBe(false);
});

test('C6: an answer that was under way when its record was purged and the cache went back is served to nobody else', async () => {
  const cache = await fromSnapshot();
  const world = await start(cache);
  const [ended, other] = [await world.reader(GET_CALL), await world.reader(GET_CALL)];
  for (const reader of [ended, other]) await reader.ask();
  await cache.remember();
  for (const { subject } of [ended, other]) {
    await world.change('POST', '/api/cache/purge', { tags: [`evaluation:${subject.id}`] });
  }
  await untilForgotten(world);
  const hold = world.store.hold(new RegExp(`/${other.subject.id}$`));
  const before = other.calls();
  const underWay = other.ask(world.here);
  await world.eventually(() => expect(other.calls()).toBe(before + 1));
  await world.change('POST', '/api/cache/purge', { tags: [`evaluation:${other.subject.id}`] });
  await untilBack(world, cache);
  await ended.ask(world.there);
  hold.release();
  expect((await underWay).status).toBe(200);
  world.store.fail(503);
  for (const gateway of world.gateways) expect((await other.ask(gateway)).status).toBe(500);
});

test('C6: with one Redis for both, its journal shows that an older copy was restored', async () => {
  const redis = await fromSnapshot();
  const world = await forTest(World.start('redis', { timers, redisUrl: redis.url }));
  for (const gateway of world.gateways) await redisIsWell(gateway);
  const reader = await world.reader(GET_CALL);
  for (const gateway of world.gateways) expect((await reader.ask(gateway)).status).toBe(200);
  await redis.remember();
  await world.change('POST', '/api/cache/purge', { tags: [`evaluation:${reader.subject.id}`] });
  await untilForgotten(world);
  await untilBack(world, redis);
  world.store.fail(503);
  for (const gateway of world.gateways) expect((await reader.ask(gateway)).status).toBe(500);
  expect(world.gateways.some((gateway) => linesOf(gateway).some(({ msg }) => msg.startsWith('Redis has lost')))).toBe(
    true,
  );
});
