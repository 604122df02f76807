/** Purging by tag, by what readers get afterwards: in memory, and in every tier of two gateways over one Redis. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { GET_CALL, GET_CALL_TRANSCRIPT, GET_RUBRIC, LIST_CALLS } from '../http/common/endpoints.ts';
import { putSubject, type Subject } from '../http/common/subject.ts';
import { BACKENDS, World, containing, HIT, MISS, type Reader, STALE } from '../support/world.ts';
import { appendRaw, JOURNAL, loseLast, STATE } from '../support/journal.ts';
import { forTest } from '../support/opened.ts';
import type { TestClient } from '../support/redis/client.ts';
import { monitorRedis } from '../support/redis/monitor.ts';
import { startRedis } from '../support/redis.ts';

const PURGE = '/api/cache/purge';
const resultSchema = z.looseObject({ entries: z.number(), bytes: z.number() });

describe.each(BACKENDS)('%s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await World.start(kind);
    return () => world.close();
  });
  // No read begins in the millisecond of another's fetch.
  beforeEach(() => world.clock.advance(1000));

  async function purge(tags: readonly string[], options: object = {}) {
    const reply = await world.purge(tags, options);
    world.clock.advance(1);
    return resultSchema.parse(reply.json);
  }

  /** As `purge`, without what tells when it is in force, which would be held too. */
  async function purgeUnheld(tag: string): Promise<void> {
    await world.change('POST', PURGE, { tags: [tag] });
    world.clock.advance(1);
  }

  /** A read that began before the purge of its tag, whose answer the store has made already. */
  async function createOvertaken(tagOf: (subject: Subject) => string, endpoint = GET_CALL) {
    const reader = await world.reader(endpoint);
    const hold = world.store.hold();
    const before = reader.ask(world.here);
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    putSubject(world.store, reader.subject, { title: 'Renamed' });
    await purgeUnheld(tagOf(reader.subject));
    return { reader, hold, before };
  }
  const measure = async (tags: readonly string[]) =>
    resultSchema.parse((await world.change('POST', PURGE, { tags, dryRun: true })).json);

  /** One evaluation with a transcript, its scorecard and its list in each of two workspaces, all cached everywhere. */
  async function createWarm() {
    const [a, b] = [putSubject(world.store), putSubject(world.store)];
    const readers: Record<string, Reader> = {};
    for (const [name, subject] of Object.entries({ a, b })) {
      readers[`evaluation ${name}`] = await world.readerOf(GET_CALL, subject);
      readers[`transcript ${name}`] = await world.readerOf(GET_CALL_TRANSCRIPT, subject);
      readers[`rubric ${name}`] = await world.readerOf(GET_RUBRIC, subject);
      readers[`list ${name}`] = await world.readerOf(LIST_CALLS, subject);
    }
    /** The reads that miss, and are cached again; a hit there is in the tier that both share. */
    const missing = async (gateway = world.here): Promise<readonly string[]> => {
      const missed: string[] = [];
      for (const [name, reader] of Object.entries(readers)) {
        if ((await reader.ask(gateway)).cache.includes('fwd=')) missed.push(name);
      }
      return missed;
    };
    expect(await missing(world.here)).toHaveLength(8);
    expect(await missing(world.there)).toEqual([]);
    return { a, b, missing };
  }

  describe('purged entries', () => {
    const cases: readonly (readonly [string, (a: Subject, b: Subject) => string, readonly string[]])[] = [
      [
        'a workspace: all of it',
        (a) => `workspace:${a.workspaceId.toUpperCase()}`,
        ['evaluation a', 'transcript a', 'rubric a', 'list a'],
      ],
      ['a class: its answers', () => 'class:rubric', ['rubric a', 'rubric b']],
      [
        'C6: an evaluation: it, its parts and the lists of its workspace',
        (a) => `evaluation:${a.id}`,
        ['evaluation a', 'transcript a', 'list a'],
      ],
      [
        'C6: an evaluation that no copy tells the workspace of: all lists',
        () => 'evaluation:unknown',
        ['list a', 'list b'],
      ],
      [
        'a scorecard: its rubric and what refers to it',
        (_a, b) => `scorecard:${b.scorecardId}`,
        ['evaluation b', 'rubric b', 'list b'],
      ],
      [
        'all',
        () => 'all',
        ['a', 'b'].flatMap((name) => ['evaluation', 'transcript', 'rubric', 'list'].map((each) => `${each} ${name}`)),
      ],
    ];

    test.each(cases)('%s', async (_rule, tagOf, dropped) => {
      const { a, b, missing } = await createWarm();
      const counted = await measure([tagOf(a, b)]);
      expect(counted.entries).toBeGreaterThanOrEqual(dropped.length);
      expect(counted.bytes).toBeGreaterThan(100 * dropped.length);
      expect(await missing(world.here)).toEqual([]);
      await purge([tagOf(a, b)]);
      expect(await missing(world.there)).toEqual(dropped);
      expect(await missing(world.here)).toEqual([]);
    });

    test('a purge tells what it has dropped, and nothing is left to count', async () => {
      const { a } = await createWarm();
      const tags = [`evaluation:${a.id}`];
      const counted = await measure(tags);
      expect(counted.entries).toBe(3);
      // And what tells that it is in force.
      expect(await purge(tags)).toMatchObject({ entries: 4 });
      expect(await measure(tags)).toMatchObject({ entries: 0, bytes: 0 });
    });
  });

  describe('how', () => {
    test('C6: hard leaves nothing, not even for a failing store, and asks for no confirmation', async () => {
      const reader = await world.reader(GET_CALL_TRANSCRIPT);
      for (const gateway of world.gateways) await reader.ask(gateway);
      await purge([`evaluation:${reader.subject.id}`]);
      const recover = world.store.fail(503);
      expect((await reader.ask(world.there)).status).toBe(500);
      recover();
      await world.eventually(async () => {
        // A failure is remembered for a second, here by the clock and by Redis for the others.
        world.clock.advance(1000);
        expect((await reader.ask(world.here)).status).toBe(200);
      });
      expect(world.store.requests.at(-1)?.headers['if-none-match']).toBeUndefined();
    });

    test('soft makes fresh copies stale: they are served while one refresh runs', async () => {
      const reader = await world.reader(GET_CALL);
      for (const gateway of world.gateways) await reader.ask(gateway);
      putSubject(world.store, reader.subject, { title: 'Renamed' });
      await purge([`evaluation:${reader.subject.id}`], { mode: 'soft' });
      expect((await reader.explain(world.there)).next.text).toMatch(/from memory and starts one refresh behind\.$/);
      const first = await reader.ask(world.there);
      expect(first).toMatchObject({ status: 200, cache: STALE });
      expect(first.text).not.toContain('Renamed');
      await world.everywhere(async (gateway) => expect((await reader.ask(gateway)).text).toContain('Renamed'));
      expect(reader.calls()).toBe(2);
    });

    test('a soft purge after a hard one brings nothing back', async () => {
      const reader = await world.reader(GET_CALL);
      await reader.ask();
      await purge([`evaluation:${reader.subject.id}`]);
      await purge([`evaluation:${reader.subject.id}`], { mode: 'soft' });
      expect(await reader.ask(world.there)).toMatchObject({ cache: containing('fwd=') });
    });
  });

  describe('a purge while the store is asked', () => {
    test.each([
      ['of the record', (subject: Subject) => `evaluation:${subject.id}`],
      [
        'of the workspace, which nobody knew when the fetch began',
        (subject: Subject) => `workspace:${subject.workspaceId}`,
      ],
      ['of everything', () => 'all'],
    ])('%s: the late answer serves its own reader and nobody after', async (_what, tagOf) => {
      const { reader, hold, before } = await createOvertaken(tagOf);
      hold.release();
      const own = await before;
      expect(own).toMatchObject({ status: 200, cache: 'evalgate; fwd=uri-miss' });
      expect(own.text).not.toContain('Renamed');
      await world.everywhere(async (gateway) => expect((await reader.ask(gateway)).text).toContain('Renamed'));
      expect(reader.calls()).toBe(2);
    });

    test('who comes after it waits for a call of its own, and the store has one call at a time', async () => {
      const { reader, hold, before } = await createOvertaken((subject) => `evaluation:${subject.id}`);
      const after = [world.here, world.there].map((gateway) => reader.ask(gateway));
      await world.everywhere(async (gateway) => expect((await reader.explain(gateway)).flight.since).not.toBeNull());
      expect(reader.calls()).toBe(1);
      hold.release();
      expect((await before).text).not.toContain('Renamed');
      for (const read of after) expect((await read).text).toContain('Renamed');
      expect(reader.calls()).toBe(2);
    });

    test('a list backfills nothing', async () => {
      const { reader, hold, before } = await createOvertaken(({ id }) => `evaluation:${id}`, LIST_CALLS);
      hold.release();
      await before;
      const single = await world.readerOf(GET_CALL, reader.subject);
      expect(await single.ask()).toMatchObject({ cache: MISS, text: containing('Renamed') });
    });
  });
});

describe('purges in the journal', () => {
  let world: World;
  let reader: Reader;
  beforeAll(async () => {
    world = await World.start('redis');
    return () => world.close();
  });
  beforeEach(async () => {
    world.clock.advance(1000);
    reader = await world.reader(GET_CALL);
    // So that there is one that can be lost.
    await world.change('POST', PURGE, { tags: ['class:dealInsights'] });
    for (const gateway of world.gateways) await reader.ask(gateway);
  });

  async function expectPurged(): Promise<void> {
    await world.everywhere(async (gateway) => expect((await reader.explain(gateway)).memory).toBeNull());
    world.clock.advance(1);
    expect(await reader.ask(world.there)).toMatchObject({ status: 200, cache: MISS });
  }

  test.each([
    ['a purge by another process', { kind: 'purge', mode: 'hard', tags: ['class:evaluation'] }],
    ['a purge in words of another release purges everything', { kind: 'purge', mode: 'gently', tags: ['tenant:1'] }],
    ['a purge of unknown tags purges everything', { kind: 'purge', mode: 'soft', tags: ['tenant:1'] }],
    ['an event that is no JSON purges everything', 'nonsense'],
  ])('%s', async (_rule, event) => {
    await appendRaw(await world.raw(), event);
    await expectPurged();
  });

  test.each<[string, lose: (raw: TestClient) => Promise<unknown>]>([
    ['Redis was emptied', (raw) => raw.del(STATE, JOURNAL)],
    ['Redis has evicted the stream', (raw) => raw.del(JOURNAL)],
    ['Redis has evicted what all events have left', (raw) => raw.del(STATE)],
    ['Redis lost the last event', loseLast],
    [
      'Redis lost the last event and has another in its place',
      async (raw) => {
        await loseLast(raw);
        await appendRaw(raw, { kind: 'purge', mode: 'hard', tags: ['class:rubric'] });
      },
    ],
    [
      'Redis lost some events, and has more than before',
      async (raw) => {
        await loseLast(raw);
        for (const word of ['one', 'two', 'three']) await appendRaw(raw, { kind: 'keys', hashes: [] }, word);
      },
    ],
  ])('C8: lost history counts as a purge of everything: %s', async (_how, lose) => {
    await lose(await world.raw());
    await expectPurged();
  });

  test('C6: a purge is appended before anything is counted', async () => {
    const monitor = await monitorRedis(...(world.redis?.servers ?? []));
    const placeOf = (pattern: RegExp): number => monitor.commands.findIndex((words) => pattern.test(words.join(' ')));
    await world.change('POST', PURGE, { tags: ['all'] });
    await world.eventually(() => expect(placeOf(/^scan /i)).toBeGreaterThanOrEqual(0));
    monitor.close();
    const appended = placeOf(/^xadd .*"kind":"purge"/i);
    expect(appended).toBeGreaterThanOrEqual(0);
    expect(placeOf(/^scan /i)).toBeGreaterThan(appended);
  });

  test('C6: purges of two gateways at once are all in force at both', async () => {
    const readers = await Promise.all(Array.from({ length: 20 }, () => world.reader(GET_CALL)));
    for (const gateway of world.gateways) for (const each of readers) await each.ask(gateway);
    await Promise.all(
      readers.map(({ subject }, i) =>
        world.change('POST', PURGE, { tags: [`evaluation:${subject.id}`] }, world.gateways[i % 2]),
      ),
    );
    for (const gateway of world.gateways) {
      for (const each of readers) {
        await world.eventually(async () => expect((await each.explain(gateway)).memory).toBeNull());
      }
    }
  });

  test('a gateway that starts later knows the purges before it, and trusts what was filled after them', async () => {
    const kept = await world.reader(GET_CALL);
    await world.change('POST', PURGE, { tags: [`evaluation:${reader.subject.id}`] });
    await kept.ask(world.here);
    const late = await world.join();
    expect(await kept.ask(late)).toMatchObject({ cache: HIT });
    expect(await reader.ask(late)).toMatchObject({ cache: MISS });
  });
});

test('C6: a cache Redis that is gone stops no purge; the answer counts memory and says that this is not all', async () => {
  const cache = await forTest(startRedis());
  const world = await forTest(World.start('redis', { env: { REDIS_CACHE_URL: cache.url } }));
  const reader = await world.reader(GET_CALL);
  for (const gateway of world.gateways) await reader.ask(gateway);
  await cache.kill();
  const reply = await world.change('POST', PURGE, { tags: [`evaluation:${reader.subject.id}`] });
  expect(reply.json).toMatchObject({ entries: 1, complete: false, lists: { entries: 0, workspaces: 1 } });
  await world.everywhere(async (gateway) => expect((await reader.explain(gateway)).memory).toBeNull());
});
