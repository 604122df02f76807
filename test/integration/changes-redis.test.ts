/** Announcements and their feed over one Redis: nothing is lost between the two, and what is lost is never overlooked. */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { JOURNAL, loseLast } from '../support/journal.ts';
import { RunningClock } from '../support/manual-clock.ts';
import { forFile, forTest } from '../support/opened.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { atEach, namesIn, type TestClient, withClient } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';
import { startFleet, WITHIN } from '../support/world.ts';

const FEED = 'evalgate:{keys}:feed';
const FEED_OF_A = `${FEED}:${WORKSPACE_A}`;

let a: TestGateway;
let b: TestGateway;
let key: string;
const redis = await forFile(startRedis());
beforeEach(async () => {
  await redis.flush();
  const fleet = await forTest(startFleet(redis.url, { env: { CHANGES_ANNOUNCED: 'true' } }));
  [a, b] = [fleet.here, fleet.there];
  key = await a.issueKey({ perMinute: 100_000, perHour: 100_000 });
  await vi.waitUntil(async () => reachSchema.parse((await announce(['ev_0'])).json).processes === 2, WITHIN);
});

const reachSchema = z.object({ processes: z.number(), repeated: z.boolean() });
const pageSchema = z.object({
  changes: z.array(z.object({ id: z.string() })),
  cursor: z.string(),
  has_more: z.boolean(),
});

const entriesSchema = z.array(z.tuple([z.string(), z.array(z.string())]));

const announce = (ids: readonly string[], id: string | null = null, at: TestGateway = a, workspace = WORKSPACE_A) =>
  at.admin(
    'POST',
    '/api/changes',
    { changes: ids.map((evaluation) => ({ evaluation, workspace, kinds: ['evaluation'] })) },
    id === null ? {} : { 'webhook-id': id },
  );
const get = (query = '', at: TestGateway = b, asKey = key) => at.get(`/v2/changes${query}`, { key: asKey });
const read = async (query = '', at: TestGateway = b, asKey = key) =>
  pageSchema.parse((await get(query, at, asKey)).json);
/** The place behind all that was announced: that of now has what came a short while ago still before it. */
const readToEnd = async (at: TestGateway = b, asKey = key) => {
  const { cursor } = await read('', at, asKey);
  return read(`?after=${cursor}&limit=1000`, at, asKey);
};
const idsAfter = async (cursor: string, at: TestGateway = b): Promise<readonly string[]> =>
  (await read(`?after=${cursor}&limit=1000`, at)).changes.map(({ id }) => id);
const codeAfter = async (cursor: string): Promise<unknown> => (await get(`?after=${cursor}`)).headers['x-error-code'];
const raw = <T>(run: (client: TestClient) => Promise<T>): Promise<T> => withClient(redis.url, run);

describe('an announcement at one gateway', () => {
  test('is in force in both when it is answered, and both have its events', async () => {
    const { cursor } = await readToEnd();
    const reply = await announce(['ev_1', 'ev_2']);
    expect([reply.status, reply.json]).toEqual([200, { changes: 2, repeated: false, reached: 2, processes: 2 }]);
    expect([await idsAfter(cursor, a), await idsAfter(cursor, b)]).toEqual([
      ['ev_1', 'ev_2'],
      ['ev_1', 'ev_2'],
    ]);
    const { json } = await b.admin('GET', '/api/changes');
    const { cursor: now } = z.object({ cursor: z.string() }).parse(json);
    await announce(['ev_3'], null, b);
    expect((await a.admin('GET', `/api/changes?after=${now}`)).json).toMatchObject({
      changes: [{ record: 'evaluation:ev_3' }],
    });
  });

  test.each([
    { from: WORKSPACE_A, to: WORKSPACE_B },
    { from: WORKSPACE_B, to: WORKSPACE_A },
  ])('of a move from $from to $to is a deletion and then a creation', async (move) => {
    const both = await a.issueKey({ workspaceIds: [WORKSPACE_A, WORKSPACE_B] });
    const placeSchema = z.object({ changes: z.array(z.object({ change: z.string() })), cursor: z.string() });
    const readBoth = async (query: string) => placeSchema.parse((await get(query, b, both)).json);
    const { cursor } = await readToEnd(b, both);
    const moved = { evaluation: 'ev_1', workspace: move.to, previousWorkspace: move.from };
    const deleted = { evaluation: 'ev_2', workspace: move.to, deleted: true };
    expect((await a.admin('POST', '/api/changes', { changes: [moved, deleted] })).status).toBe(200);
    const { changes } = await readBoth(`?after=${cursor}`);
    expect(changes.map(({ change }) => change)).toEqual(['deleted', 'created', 'created', 'created', 'deleted']);
    const first = await readBoth(`?after=${cursor}&limit=1`);
    expect(first.changes).toMatchObject([{ change: 'deleted' }]);
    expect((await readBoth(`?after=${first.cursor}&limit=1`)).changes).toMatchObject([{ change: 'created' }]);
  });

  test('of a short while ago is still before the place of now, which has no event of others before it', async () => {
    await announce(['ev_1', 'ev_2']);
    await announce(['ev_9'], null, a, WORKSPACE_B);
    const { cursor } = await read();
    expect((await idsAfter(cursor)).slice(-2)).toEqual(['ev_1', 'ev_2']);
    // Three seconds later it is not.
    await raw(async (client) => {
      const entries = entriesSchema.parse(await client.xrange(FEED_OF_A, '-', '+'));
      await client.del(FEED_OF_A);
      for (const [id, fields] of entries) {
        const at = fields.indexOf('at') + 1;
        const moved = id === entries.at(-1)?.[0] ? fields : fields.with(at, String(Number(fields[at]) - 3000));
        await client.xadd(FEED_OF_A, id, ...moved);
      }
    });
    expect(await idsAfter((await read()).cursor)).toEqual(['ev_2']);
  });

  test('is made once, whichever gateway it comes to again', async () => {
    const { cursor } = await readToEnd();
    expect((await announce(['ev_1'], 'msg_1')).json).toMatchObject({ repeated: false });
    expect((await announce(['ev_1'], 'msg_1', b)).json).toMatchObject({ repeated: true, reached: 2 });
    const both = await Promise.all([announce(['ev_2'], 'msg_2', a), announce(['ev_2'], 'msg_2', b)]);
    expect(both.filter(({ json }) => reachSchema.parse(json).repeated)).toHaveLength(1);
    expect(await idsAfter(cursor)).toEqual(['ev_1', 'ev_2']);
    const [name = ''] = await raw((client) => namesIn(client, 'evalgate:{keys}:announced:msg_1'));
    expect(await raw((client) => client.pttl(name))).toBeGreaterThan(86_000_000);
  });

  test('has no event to be read before a process that does not answer has had its second', async () => {
    const { cursor } = await readToEnd();
    // A process that was frozen: it beats no more, and counts as alive for ten seconds.
    await raw(async (client) => {
      const about = await client.hvals('evalgate:{members}');
      await client.hset('evalgate:{members}', 'frozen', about[0] ?? '');
      await client.zadd('evalgate:{members}:beats', Date.now(), 'frozen');
      await client.publish('evalgate:channel:members', '');
    });
    const state = () => raw((client) => client.hget(FEED, WORKSPACE_A));
    const before = await state();
    const reply = announce(['ev_1']);
    await vi.waitFor(async () => expect(await state()).not.toBe(before), WITHIN);
    const unread = [await idsAfter(cursor, a), await idsAfter(cursor, b), (await readToEnd()).cursor];
    const { json } = await reply;
    expect(json).toEqual({ changes: 1, repeated: false, reached: 2, processes: 3 });
    expect(unread).toEqual([[], [], cursor]);
    expect(await idsAfter(cursor)).toEqual(['ev_1']);
  });
});

describe('events of several workspaces', () => {
  test('are in the order of their announcements, over pages', async () => {
    const both = await a.issueKey({ workspaceIds: [WORKSPACE_A, WORKSPACE_B], perMinute: 100_000, perHour: 100_000 });
    const start = await readToEnd(b, both);
    const expected: string[] = [];
    for (let index = 0; index < 6; index += 1) {
      const ids = Array.from({ length: 70 }, (_, number) => `ev_${index}_${number}`);
      await announce(ids, null, index % 2 === 0 ? a : b, index % 3 === 0 ? WORKSPACE_B : WORKSPACE_A);
      expected.push(...ids);
    }
    const found: string[] = [];
    for (let page = { ...start, has_more: true }; page.has_more;) {
      page = await read(`?after=${page.cursor}&limit=33`, found.length % 2 === 0 ? a : b, both);
      found.push(...page.changes.map(({ id }) => id));
    }
    expect(found).toEqual(expected);
  });
});

describe('a cursor', () => {
  test.each([
    ['Redis was emptied', () => redis.flush()],
    ['the hash of the feed is gone', () => raw((client) => client.del(FEED))],
    ['the stream of a workspace is gone', () => raw((client) => client.del(FEED_OF_A))],
    ['the oldest event that follows it is gone', () => raw((client) => client.call('XTRIM', FEED_OF_A, 'MAXLEN', '1'))],
    ['the journal is gone', () => raw((client) => client.del(JOURNAL))],
    ['the journal has lost its last event', () => raw((client) => loseLast(client))],
  ])('expires if %s', async (_, lose) => {
    const { cursor } = await readToEnd();
    await announce(['ev_1']);
    await announce(['ev_2']);
    await lose();
    await vi.waitFor(async () => {
      // If the keys are lost too, that is not the point here.
      key = await a.issueKey({ perMinute: 100_000, perHour: 100_000 });
      expect(await codeAfter(cursor)).toBe('cursor_expired');
    }, WITHIN);
    const { cursor: next } = await readToEnd();
    await announce(['ev_3']);
    expect(await idsAfter(next)).toEqual(['ev_3']);
    expect(await codeAfter(cursor)).toBe('cursor_expired');
  });

  test('at the end goes on, although all events before it are gone', async () => {
    await announce(['ev_1']);
    const { cursor } = await readToEnd();
    await raw((client) => client.del(FEED_OF_A));
    expect(await idsAfter(cursor)).toEqual([]);
    await announce(['ev_2']);
    expect(await idsAfter(cursor)).toEqual(['ev_2']);
  });
});

test('a gateway without the feed goes on with that of others, and begins none', async () => {
  await raw((client) => client.del(FEED));
  const without = await forTest(startTestGateway({ env: { REDIS_URL: redis.url }, clock: new RunningClock() }));
  expect((await announce(['ev_1'], null, without)).status).toBe(200);
  expect(await raw((client) => client.exists(FEED))).toBe(0);
  const { cursor } = await readToEnd();
  expect((await announce(['ev_2'], null, without)).status).toBe(200);
  await vi.waitFor(async () => expect(await idsAfter(cursor)).toEqual(['ev_2']), WITHIN);
});

describe('without Redis', () => {
  test('nothing is announced and nothing is read; the same again later is taken', async () => {
    const { cursor } = await readToEnd();
    await redis.pause();
    const refused = await announce(['ev_1'], 'msg_1');
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '2']);
    const unread = await get(`?after=${cursor}`);
    expect([unread.status, unread.headers['x-error-code'], unread.headers['retry-after']]).toEqual([
      500,
      'changes_unavailable',
      '5',
    ]);
    await redis.resume();
    await vi.waitFor(async () => expect((await announce(['ev_1'], 'msg_1')).status).toBe(200), WITHIN);
    await vi.waitFor(async () => expect(await idsAfter(cursor)).toEqual(['ev_1']), WITHIN);
  });

  test('a full one takes announcements', async () => {
    const { cursor } = await readToEnd();
    await atEach(redis, (client) => client.config('SET', 'maxmemory-policy', 'noeviction', 'maxmemory', '1'));
    try {
      expect((await announce(['ev_1'], 'msg_1')).status).toBe(200);
    } finally {
      await atEach(redis, (client) => client.config('SET', 'maxmemory', '0'));
    }
    await vi.waitFor(async () => expect(await idsAfter(cursor)).toEqual(['ev_1']), WITHIN);
  });
});
