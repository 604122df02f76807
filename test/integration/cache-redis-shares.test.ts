/** API keys share the budget of the cache in Redis: none can freeze it for the others. */
import { beforeAll, describe, expect, test } from 'vitest';
import { GET_CALL, LIST_CALLS } from '../http/common/endpoints.ts';
import { newSubject, putSubject } from '../http/common/subject.ts';
import { HurriedTimers } from '../support/hurried-timers.ts';
import { atEach } from '../support/redis/client.ts';
import { anEvaluation } from '../support/records.ts';
import { HIT, MISS, type Reader, World } from '../support/world.ts';

const SAMPLE_EVERY_MS = 2000;
const MEGABYTE = 1_000_000;
const PER_PAGE = 100;

const timers = new HurriedTimers();
let world: World;

async function start(settings = ''): Promise<void> {
  world = await World.start('redis', { settings, timers });
}

/** Looks at Redis, in both gateways, until it is so. */
async function untilSampled(check: () => Promise<void>): Promise<void> {
  await world.eventually(async () => {
    timers.elapse(SAMPLE_EVERY_MS);
    await check();
  });
}

/** The bytes of all that is kept of answers. */
async function cacheBytes(): Promise<number> {
  const raw = await world.raw();
  const sizes = await Promise.all((await world.names('evalgate:{cache-*')).map((name) => raw.memory('USAGE', name)));
  return sizes.reduce<number>((sum, bytes) => sum + (bytes ?? 0), 0);
}

/** A key with default limits reads that many pages of 100 different calls, each of which is kept by itself as well. */
async function readPages(pages: number): Promise<void> {
  const { workspaceId } = newSubject();
  const evaluations = Array.from({ length: pages * PER_PAGE }, (_, n) =>
    anEvaluation({ _id: `listed_${workspaceId}_${n}`, workspaceId, createdAtMs: 1_700_000_000_000 - n }),
  );
  world.store.put({ evaluations });
  const key = await world.here.issueKey({ workspaceIds: [workspaceId] });
  for (let page = 1; page <= pages; page += 1) {
    const { status } = await world.here.get(`/v2/calls?pageSize=${PER_PAGE}&page=${page}`, { key });
    expect(status).toBe(200);
    timers.elapse(SAMPLE_EVERY_MS);
  }
}

/** Another key's record, read at one gateway: whether the other one then has it from Redis. */
async function isShared(reader: Reader): Promise<boolean> {
  expect((await reader.ask(world.here)).status).toBe(200);
  const seen = await reader.ask(world.there);
  expect(seen.status).toBe(200);
  return seen.cache !== MISS;
}

async function expectRoomForOthers(): Promise<void> {
  const shared = [];
  for (let n = 0; n < 20; n += 1) {
    shared.push(await isShared(await world.reader(GET_CALL)));
    timers.elapse(SAMPLE_EVERY_MS);
  }
  expect(shared).toEqual(shared.map(() => true));
}

describe.each([
  ['cache.redis', 'cache:\n  redis: 2MB', 2 * MEGABYTE],
  // The memory that connections and scripts take goes up and down.
  ["Redis's own maxmemory", '', 6 * MEGABYTE],
] as const)('beside a key whose lists bring more than fits (%s)', (_what, settings, limit) => {
  beforeAll(async () => {
    await start(settings);
    if (settings === '') {
      await atEach(world.redis ?? { servers: [] }, async (client) => {
        const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
        // Nine tenths of it leave the cache that much beside what is there.
        await client.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', Math.ceil((used + limit) / 0.9));
      });
    }
    timers.elapse(SAMPLE_EVERY_MS);
    await readPages((10 * limit) / MEGABYTE);
    return () => world.close();
  }, 60_000);

  test('others get room for what they read, and never more is used than a tenth above the limit', async () => {
    expect(await cacheBytes()).toBeGreaterThan(0.7 * limit);
    expect(await cacheBytes()).toBeLessThan(1.1 * limit);
    await expectRoomForOthers();
    expect(await cacheBytes()).toBeLessThan(1.1 * limit);
  });

  test('lists of others are stored as well, and what they bring', async () => {
    const reader = await world.reader(LIST_CALLS);
    expect(await isShared(reader)).toBe(true);
    const single = await world.readerOf(GET_CALL, reader.subject);
    expect((await single.ask(world.there)).cache).toEqual(HIT);
    expect(single.calls()).toBe(0);
  });

  test('a record that was read alone stays, while those that only came in lists make room', async () => {
    const reader = await world.reader(GET_CALL);
    expect(await isShared(reader)).toBe(true);
    const listed = async (): Promise<number> => (await world.names('evalgate:{cache-*listed_*}:copy-*')).length;
    const before = await listed();
    // Such reads bring more than the twentieth of the limit that is left free when copies make room.
    for (let bytes = 0; bytes < 0.1 * limit; bytes += 20 * 2000) await expectRoomForOthers();
    await untilSampled(async () => expect(await listed()).toBeLessThan(before));
    expect((await world.names(`evalgate:*${reader.subject.id}*}:copy-*`)).length).toBe(1);
  });
});

const MINUTE = 60_000;

/** For how long Redis keeps the copy of that evaluation. */
async function keptFor(id: string): Promise<number> {
  const [name = ''] = await world.names(`evalgate:{cache-*evaluation%3a${id}%7d}:copy-*`);
  return (await world.raw()).pttl(name);
}

describe('a record that came in a list', () => {
  beforeAll(async () => {
    await start();
    return () => world.close();
  });

  test('is kept to the end of its `stale`, and for its whole life once it is read alone', async () => {
    const reader = await world.reader(LIST_CALLS);
    await reader.ask(world.here);
    const { id } = reader.subject;
    await world.eventually(async () => expect(await keptFor(id)).toBeGreaterThan(0));
    expect(await keptFor(id)).toBeLessThanOrEqual(65 * MINUTE);
    const single = await world.readerOf(GET_CALL, reader.subject);
    expect((await single.ask(world.there)).cache).toEqual(HIT);
    expect(await keptFor(id)).toBeGreaterThan(24 * 60 * MINUTE);
    // A list that brings it again changes nothing of that.
    putSubject(world.store, reader.subject, { title: 'Another title' });
    world.clock.advance(10 * MINUTE);
    await reader.ask(world.here);
    await world.eventually(async () => expect(await reader.ask(world.here)).toMatchObject({ cache: HIT }));
    expect(await keptFor(id)).toBeGreaterThan(24 * 60 * MINUTE);
  });

  test('and is read only by purges and operators keeps its short life, also if times become longer', async () => {
    const reader = await world.reader(LIST_CALLS);
    await reader.ask(world.here);
    const { id } = reader.subject;
    await world.eventually(async () => expect(await keptFor(id)).toBeGreaterThan(0));
    await world.explain(`/v2/calls/${id}`, world.here, [reader.subject.workspaceId]);
    await world.setTimes('evaluation', { error: '100h' });
    expect(await keptFor(id)).toBeLessThanOrEqual(65 * MINUTE);
    const single = await world.readerOf(GET_CALL, reader.subject);
    expect((await single.ask(world.there)).cache).toEqual(HIT);
    expect(await keptFor(id)).toBeGreaterThan(100 * 60 * MINUTE);
  });
});
