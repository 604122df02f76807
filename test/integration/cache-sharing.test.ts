/** One call for all who wait, and one copy for all gateways: in memory, and over Redis whatever lies in it. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { metricOf } from '../support/admin.ts';
import { GET_CALL, GET_CALL_TRANSCRIPT, GET_REPORT_TRANSCRIPT, LIST_CALLS } from '../http/common/endpoints.ts';
import { putSubject } from '../http/common/subject.ts';
import { BACKENDS, World, containing, HIT, MISS, ON_ERROR, type Reader, STALE } from '../support/world.ts';
import { GatewayProcess } from '../support/process.ts';
import { sumOf } from '../support/redis/client.ts';
import { aTranscript } from '../support/records.ts';
import { sendError } from '../support/store-server.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const SOME_TIME_LATER_MS = 20 * MINUTE;

let world: World;
afterAll(() => world.close());

/** Ten readers at each gateway, whose answer is held until all have come. */
async function createHerd(reader: Reader) {
  const hold = world.store.hold();
  const asked = Array.from({ length: 20 }, (_, i) => reader.ask(world.gateways[i % world.gateways.length]));
  await world.eventually(async () => {
    expect(hold.answers).toHaveLength(1);
    let open = 0;
    for (const gateway of world.gateways) {
      expect((await reader.explain(gateway)).flight.since).not.toBeNull();
      open += await metricOf(gateway, 'evalgate_http_connections{listener="public"}');
    }
    expect(open).toBeGreaterThanOrEqual(asked.length);
  });
  // When this is answered, everything before it has been read.
  for (const gateway of world.gateways) await gateway.get('/v2/calls?page=0', { key: reader.key });
  return { hold, asked };
}

const TITLE = 'Discovery call with Northwind';
const namesOf = ({ subject }: Reader): Promise<readonly string[]> => world.names(`evalgate:*${subject.id}*`);
/** The name of the copy of its reader, or of the negative entry. */
async function nameOf(reader: Reader): Promise<string> {
  return (await namesOf(reader)).find((name) => /\}:(copy|absent)-/.test(name)) ?? '';
}

const leaseOf = async (reader: Reader): Promise<string> =>
  (await namesOf(reader)).find((name) => name.endsWith(`:lease-${reader.subject.workspaceId}`)) ?? '';

const metaSchema = z.record(z.string(), z.unknown());
const metaOf = async (name: string): Promise<object> =>
  metaSchema.parse(JSON.parse((await (await world.raw()).hget(name, 'meta')) ?? ''));

/** How many bytes Redis has sent to its clients; to its replicas too, if it is one of before 7.0. */
async function bytesSent(): Promise<number> {
  return sumOf(world.redis ?? { servers: [] }, async (client) => {
    const stats = await client.info('stats');
    const toReplicas = Number(/total_net_repl_output_bytes:(\d+)/.exec(stats)?.[1] ?? 0);
    return Number(/total_net_output_bytes:(\d+)/.exec(stats)?.[1] ?? Number.NaN) - toReplicas;
  });
}

describe.each(BACKENDS)('%s: one call at a time', (kind) => {
  beforeAll(async () => {
    world = await World.start(kind);
    return () => world.close();
  });
  beforeEach(() => world.clock.advance(SECOND));

  test('C5: a herd at every gateway costs one call, and all get its answer', async () => {
    const reader = await world.reader(GET_CALL);
    const { hold, asked } = await createHerd(reader);
    hold.release();
    const seen = await Promise.all(asked);
    expect(new Set(seen.map(({ status, text }) => `${status} ${text}`)).size).toBe(1);
    const count = (part: string): number => seen.filter(({ cache }) => cache.includes(part)).length;
    expect([count('stored'), count('collapsed') + count('; hit')]).toEqual([1, 19]);
    expect(reader.calls()).toBe(1);
  });

  test('S2: one failure is the answer to all who wait, and to who comes within a second', async () => {
    const reader = await world.reader(GET_CALL);
    const recover = world.store.fail(503, { 'retry-after': '9' });
    const { hold, asked } = await createHerd(reader);
    hold.release();
    recover();
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([500]));
    world.clock.advance(SECOND - 1);
    for (const gateway of world.gateways) expect((await reader.ask(gateway)).status).toBe(500);
    expect(reader.calls()).toBe(1);
    await world.eventually(async () => {
      world.clock.advance(SECOND);
      expect((await reader.ask(world.there)).status).toBe(200);
    });
  });

  test('waiters share the answer even if a class is never fresh', async () => {
    await world.setTimes('evaluation', { fresh: '0s', stale: '0s', error: '1s' });
    const reader = await world.reader(GET_CALL);
    const { hold, asked } = await createHerd(reader);
    hold.release();
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(reader.calls()).toBe(1);
    await world.resetTimes('evaluation');
  });

  test('a list backfills single records at every gateway, in place of none or of an older one only', async () => {
    const list = await world.reader(LIST_CALLS);
    const single = await world.readerOf(GET_CALL, list.subject);
    await list.ask();
    expect(await single.ask(world.here)).toMatchObject({ cache: HIT, age: '0' });
    world.clock.advance(MINUTE);
    putSubject(world.store, list.subject, { title: 'Renamed' });
    // The copy is stale: the list is refreshed behind.
    await list.ask();
    await world.eventually(async () => expect((await single.ask(world.here)).text).toContain('Renamed'));
    await world.eventually(async () => expect((await single.explain(world.there)).redis.entry?.ageMs ?? 0).toBe(0));
    expect(await single.ask(world.there)).toMatchObject({ cache: HIT, text: containing('Renamed') });
    expect(single.calls()).toBe(0);
  });

  test('a list replaces no record that was fetched while it was under way', async () => {
    const list = await world.reader(LIST_CALLS);
    const single = await world.readerOf(GET_CALL, list.subject);
    const hold = world.store.hold(/evaluations$/);
    const asked = list.ask();
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    world.clock.advance(SECOND);
    putSubject(world.store, list.subject, { title: 'Renamed' });
    expect((await single.ask()).text).toContain('Renamed');
    hold.release();
    expect((await asked).text).not.toContain('Renamed');
    for (const gateway of world.gateways) expect((await single.ask(gateway)).text).toContain('Renamed');
    expect(single.calls()).toBe(1);
  });

  test('Q9: what is gone for one reader is gone at every gateway, and what is not ready yet is asked for again after 15 s', async () => {
    const reader = await world.reader(GET_CALL_TRANSCRIPT);
    for (const gateway of world.gateways) await reader.ask(gateway);
    world.store.transcripts.delete(reader.subject.id);
    world.clock.advance(2 * HOUR);
    await reader.ask();
    await world.everywhere(async (gateway) => expect((await reader.ask(gateway)).status).toBe(404));
    expect(reader.calls()).toBe(2);
    putSubject(world.store, reader.subject);
    world.clock.advance(13 * SECOND);
    expect((await reader.ask(world.there)).status).toBe(404);
    world.clock.advance(2 * SECOND);
    expect((await reader.ask(world.there)).status).toBe(200);
    expect(reader.calls()).toBe(3);
  });
});

describe('two gateways share in Redis', () => {
  beforeAll(async () => {
    world = await World.start('redis');
  });
  beforeEach(() => world.clock.advance(SECOND));

  test('C2: what one has fetched is a hit at the other, fresh for as long, and from then on in its memory', async () => {
    const reader = await world.reader(GET_CALL);
    await reader.ask(world.here);
    expect((await reader.explain(world.there)).next.from).toBe('redis');
    const shared = await reader.ask(world.there);
    expect(shared).toMatchObject({ cache: HIT });
    expect(await reader.ask(world.here)).toEqual(shared);
    expect((await reader.explain(world.there)).next.from).toBe('memory');
    expect(reader.calls()).toBe(1);
  });

  test('a stale copy is refreshed once for both, and the new one replaces it in both', async () => {
    const reader = await world.reader(GET_CALL);
    for (const gateway of world.gateways) await reader.ask(gateway);
    putSubject(world.store, reader.subject, { title: 'Renamed' });
    world.clock.advance(SOME_TIME_LATER_MS);
    expect(await reader.ask(world.here)).toMatchObject({ cache: STALE });
    await world.everywhere(async (gateway) => expect((await reader.ask(gateway)).text).toContain('Renamed'));
    expect(reader.calls()).toBe(2);
  });

  test('a refresh of a copy that is held here transfers no record from Redis', async () => {
    const reader = await world.reader(GET_REPORT_TRANSCRIPT);
    const { id: evaluationId, workspaceId } = reader.subject;
    const body = Array.from({ length: 4000 }, () => `Riley: ${randomUUID()}${randomUUID()}\n`).join('');
    world.store.put({ transcripts: [aTranscript({ evaluationId, workspaceId, body })] });
    await reader.ask();
    world.clock.advance(2 * HOUR);
    const before = await bytesSent();
    expect(await reader.ask()).toMatchObject({ cache: STALE });
    await world.eventually(async () => expect((await reader.ask()).cache).toEqual(HIT));
    expect((await bytesSent()) - before).toBeLessThan(body.length / 4);
    expect(reader.calls()).toBe(2);
  });

  test('K7a: who may not see a record does not wait for Redis to send it', async () => {
    const reader = await world.reader(GET_CALL_TRANSCRIPT);
    const { id: evaluationId, workspaceId } = reader.subject;
    const body = Array.from({ length: 4000 }, () => `Riley: ${randomUUID()}${randomUUID()}\n`).join('');
    world.store.put({ transcripts: [aTranscript({ evaluationId, workspaceId, body })] });
    await reader.ask();
    const prober = await world.readerOf(GET_CALL_TRANSCRIPT, { ...reader.subject, workspaceId: randomUUID() });
    const before = await bytesSent();
    for (const gateway of world.gateways) expect((await prober.ask(gateway)).status).toBe(404);
    expect((await bytesSent()) - before).toBeLessThan(body.length / 4);
  });

  test('K6, C4: a record that has moved is there for its new readers at once, wherever its old ones have a copy', async () => {
    const reader = await world.reader(GET_CALL);
    for (const gateway of world.gateways) await reader.ask(gateway);
    const moved = putSubject(world.store, { ...reader.subject, workspaceId: randomUUID() });
    const owner = await world.readerOf(GET_CALL, moved);
    world.clock.advance(SECOND);
    expect(await owner.ask(world.there)).toMatchObject({ status: 200 });
    for (const gateway of world.gateways) expect(await owner.ask(gateway)).toMatchObject({ status: 200, cache: HIT });
    expect(owner.calls()).toBe(1);
  });

  test('C1: the copy in Redis serves a gateway without one, stale or while the store fails', async () => {
    const stale = await world.reader(GET_CALL);
    const expired = await world.reader(GET_CALL);
    await Promise.all([stale.ask(), expired.ask()]);
    world.clock.advance(SOME_TIME_LATER_MS);
    expect(await stale.ask(world.there)).toMatchObject({ cache: STALE, age: String(SOME_TIME_LATER_MS / SECOND) });
    world.clock.advance(2 * HOUR);
    const recover = world.store.fail(503);
    expect(await expired.ask(world.there)).toMatchObject({ status: 200, cache: ON_ERROR });
    recover();
  });

  test.each([
    ['any text', 'Riley: \u{1F600} \u0000 “déjà vu” \\ \u2028 \r\nSam: {"a":[1]}'],
    ['an empty text', ''],
    ['a text that is worth compressing', 'Riley: hello there\n'.repeat(5000)],
    ['a text of a megabyte', 'Sam: áéíóú \u{1F600}\n'.repeat(50_000)],
  ])('T1: %s comes back as it was', async (_what, body) => {
    const reader = await world.reader(GET_REPORT_TRANSCRIPT);
    const { id: evaluationId, workspaceId } = reader.subject;
    world.store.put({ transcripts: [aTranscript({ evaluationId, workspaceId, body })] });
    const first = await reader.ask(world.here);
    const second = await reader.ask(world.there);
    expect(second.cache).toEqual(HIT);
    expect(second.text === first.text && JSON.stringify(first.text).length > body.length).toBe(true);
    expect(reader.calls()).toBe(1);
  });

  test('C2, C6a: an entry lies in Redis for all of its times, a negative one for its own', async () => {
    const [found, absent] = [await world.reader(GET_CALL), await world.reader(GET_CALL, { isStored: false })];
    await Promise.all([found.ask(), absent.ask()]);
    const raw = await world.raw();
    const keptMs = await raw.pttl(await nameOf(found));
    expect(keptMs).toBeGreaterThan(24 * HOUR);
    expect(keptMs).toBeLessThanOrEqual(5 * MINUTE + HOUR + 24 * HOUR);
    const absentMs = await raw.pttl(await nameOf(absent));
    expect(absentMs).toBeGreaterThan(0);
    expect(absentMs).toBeLessThanOrEqual(15 * SECOND);
  });

  test('K2, C4: an entry holds nothing of who has read it, and lies in one slot with what belongs to it', async () => {
    const reader = await world.reader(GET_CALL);
    const recover = world.store.fail(503);
    await reader.ask();
    recover();
    const failed = await namesOf(reader);
    await world.eventually(async () => {
      world.clock.advance(SECOND);
      expect((await reader.ask()).status).toBe(200);
    });
    const hold = world.store.hold();
    world.clock.advance(SOME_TIME_LATER_MS);
    await reader.ask();
    await world.eventually(async () => expect(await namesOf(reader)).toHaveLength(3));
    const names = [...failed, ...(await namesOf(reader))];
    hold.release();
    expect(new Set(names).size).toBe(4);
    expect(new Set(names.map((name) => /\{(.+?)\}/.exec(name)?.[1])).size).toBe(1);
    const text = JSON.stringify(await (await world.raw()).hgetall(await nameOf(reader)));
    expect(text).toContain(TITLE);
    expect(text).not.toContain(reader.key);
  });

  const GARBAGE: readonly (readonly [string, string, (name: string, other: string) => Promise<unknown>])[] = [
    ['is cut off', 'unreadable', async (name) => (await world.raw()).hset(name, 'meta', '{"format":1')],
    [
      'is of another release',
      'unreadable',
      async (name) => (await world.raw()).hset(name, 'meta', JSON.stringify({ ...(await metaOf(name)), format: 0 })),
    ],
    ['has no record', 'asked', async (name) => (await world.raw()).hdel(name, 'body')],
    ['has a broken record', 'unreadable', async (name) => (await world.raw()).hset(name, 'body', `{"title":"${TITLE}`)],
    [
      'has a record that lacks everything',
      'unreadable',
      async (name) => {
        const meta = await metaOf(name);
        const answer = { kind: 'found', etag: null, bytes: 2, coding: 'identity', decodedBytes: 2 };
        await (await world.raw()).hset(name, { meta: JSON.stringify({ ...meta, answer }), body: '{}' });
      },
    ],
    [
      'has the record of another id',
      'unreadable',
      async (name, other) => {
        const body = (await (await world.raw()).hgetBuffer(other, 'body')) ?? '';
        await (await world.raw()).hset(name, 'body', body);
      },
    ],
    [
      'is the entry of another key',
      'unreadable',
      async (name, other) => {
        // Not COPY, since in a Cluster they may lie at two nodes.
        const raw = await world.raw();
        await raw.restore(name, await raw.pttl(other), await raw.dumpBuffer(other), 'REPLACE');
      },
    ],
    ['is no hash', 'unreachable', async (name) => (await world.raw()).set(name, 'a string')],
    [
      'says that it holds less than it does',
      'unreadable',
      async (name) => {
        const text = JSON.stringify(await metaOf(name)).replace(/"decodedBytes":\d+/, '"decodedBytes":10');
        await (await world.raw()).hset(name, 'meta', text);
      },
    ],
  ];
  test.each(GARBAGE)(
    'C4: an entry that %s counts as nothing, is replaced, and stays out of the log',
    async (_how, state, spoil) => {
      const [reader, other] = [await world.reader(GET_CALL), await world.reader(GET_CALL)];
      putSubject(world.store, reader.subject, { title: `${TITLE} ${'and others '.repeat(3000)}` });
      const [first] = await Promise.all([reader.ask(), other.ask()]);
      await spoil(await nameOf(reader), await nameOf(other));
      const tags = [`evaluation:${reader.subject.id}`];
      expect((await world.there.admin('POST', '/api/cache/purge', { tags, dryRun: true })).status).toBe(200);
      expect((await reader.explain(world.there)).redis).toMatchObject({ state, entry: null });
      expect(await reader.ask(world.there)).toMatchObject({ status: 200, cache: MISS, text: first.text });
      expect(reader.calls()).toBe(2);
      expect((await reader.explain(world.there)).redis.entry).toMatchObject({ state: 'fresh' });
      expect(world.there.logLines.join('')).not.toContain(TITLE);
    },
  );

  test('a lease is renewed as long as the store takes', async () => {
    const reader = await world.reader(GET_CALL);
    const hold = world.store.hold();
    const asked = reader.ask();
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    const raw = await world.raw();
    const lease = await leaseOf(reader);
    for (let renewal = 0; renewal < 2; renewal += 1) {
      await world.eventually(async () => expect(await raw.pttl(lease)).toBeLessThan(1700));
      await world.eventually(async () => expect(await raw.pttl(lease)).toBeGreaterThan(1800));
    }
    hold.release();
    expect(await asked).toMatchObject({ status: 200, cache: MISS });
    // The copy, who has one, and what was seen of the call: but no lease.
    await world.eventually(async () => expect(await namesOf(reader)).toHaveLength(3));
    expect(await raw.exists(lease)).toBe(0);
  });

  test('a gateway that lost its lease overwrites nothing and keeps nothing', async () => {
    const reader = await world.reader(GET_CALL);
    const hold = world.store.hold();
    const paused = reader.ask(world.here);
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    await (await world.raw()).del(await leaseOf(reader));
    putSubject(world.store, reader.subject, { title: 'Renamed' });
    const leading = reader.ask(world.there);
    await world.eventually(() => expect(hold.answers).toHaveLength(2));
    hold.answers[1]?.send();
    expect(await leading).toMatchObject({ cache: MISS, text: containing('Renamed') });
    hold.release();
    expect(await paused).toMatchObject({ cache: 'evalgate; fwd=uri-miss', text: containing(TITLE) });
    for (const gateway of world.gateways) expect((await reader.ask(gateway)).text).toContain('Renamed');
    expect(reader.calls()).toBe(2);
  });

  test('who waits for a gateway that was killed takes over when its lease lapses', async () => {
    const reader = await world.reader(GET_CALL);
    const { store, redis } = world;
    const env = { REDIS_URL: redis?.url ?? '', UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token };
    const killed = await GatewayProcess.start({ env });
    const hold = store.hold();
    const headers = { authorization: `Bearer ${reader.key}` };
    const lost = fetch(killed.publicUrl + reader.path, { headers }).then(({ status }) => status, String);
    await world.eventually(() => expect(hold.answers).toHaveLength(1));
    const waiting = reader.ask(world.there);
    await world.eventually(async () => expect((await reader.explain(world.there)).flight.since).not.toBeNull());
    await killed.kill();
    expect(await lost).toContain('fetch failed');
    await world.eventually(() => expect(hold.answers).toHaveLength(2));
    hold.release();
    expect(await waiting).toMatchObject({ status: 200, cache: MISS });
  });

  test('a call that only one gateway held back is made by the other', async () => {
    const reader = await world.reader(GET_CALL);
    const end = world.store.override(/^/, (_request, response) => sendError(response, 429, 'TOO_MANY_REQUESTS'));
    await reader.ask(world.here);
    end();
    await world.eventually(async () => {
      world.clock.advance(SECOND);
      expect((await reader.ask(world.there)).status).toBe(200);
    });
  });
});
