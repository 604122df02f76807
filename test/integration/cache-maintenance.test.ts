/** Whole gateways over one Redis: maintenance begun at one is in force at all; and what Redis holds is explained. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';
import { atEach, connectToAny, namesIn, type TestClient } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const PATH = '/api/cache/maintenance';
const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
const REPORT = `${LIST}/${EVALUATION_ID}`;

const SOME_MS: unknown = expect.any(Number);
const TAGS: unknown = expect.arrayContaining([`evaluation:${EVALUATION_ID}`, `workspace:${WORKSPACE_A}`]);

let redis: TestRedis;
let raw: TestClient;
const gateways: TestGateway[] = [];

beforeAll(async () => {
  redis = await startRedis();
  raw = await connectToAny(redis.url, 5000);
});
afterAll(async () => {
  raw.disconnect();
  await redis.close();
});
beforeEach(() => redis.flush());
afterEach(async () => {
  for (const gateway of gateways.splice(0).toReversed()) await gateway.close();
});

/** In front of the first one's store, with a clock of its own. */
async function start(url: string = redis.url): Promise<TestGateway> {
  const [first] = gateways;
  const store = first === undefined ? {} : { store: first.store };
  const gateway = await startTestGateway({ env: { REDIS_URL: url }, clock: new ManualClock(), ...store });
  gateways.push(gateway);
  return gateway;
}

async function startThree(): Promise<readonly [TestGateway, TestGateway, TestGateway]> {
  const first = await start();
  first.store.put({ evaluations: [anEvaluation()] });
  return [first, await start(), await start()];
}

const stateSchema = z.looseObject({ active: z.boolean(), by: z.string().nullable(), until: z.string().nullable() });
const stateAt = async (gateway: TestGateway) => stateSchema.parse((await gateway.admin('GET', PATH)).json);
const explain = async (gateway: TestGateway) =>
  (await gateway.admin('GET', `/api/cache/explain?path=${encodeURIComponent(REPORT)}`)).json;

async function untilAllAre(active: boolean): Promise<void> {
  await vi.waitFor(
    async () => {
      const states = await Promise.all(gateways.map(stateAt));
      expect(states.map((state) => state.active)).toEqual(gateways.map(() => active));
    },
    { timeout: 5000, interval: 5 },
  );
}

describe('maintenance of a fleet', () => {
  test('begun at one it is in force at all, and so is its end; none of them asks the store', async () => {
    const [a, b, c] = await startThree();
    const key = await a.issueKey({ perMinute: 100_000, perHour: 100_000 });
    expect((await a.get(LIST, { key })).status).toBe(200);
    for (const { clock } of gateways) clock.advance(40_000);
    const calls = a.store.requests.length;

    await a.admin('PUT', PATH, { for: '1h' });
    await untilAllAre(true);
    const load = [LIST, `${LIST}?page=2`, REPORT, `${LIST}/none`].flatMap((path) =>
      [a, b, c].flatMap((gateway) => Array.from({ length: 10 }, () => gateway.get(path, { key }))),
    );
    const statuses = new Set((await Promise.all(load)).map(({ status }) => status));
    expect(statuses).toEqual(new Set([200, 500]));
    expect(a.store.requests.length).toBe(calls);

    await b.admin('DELETE', PATH);
    await untilAllAre(false);
    // A failure of a moment ago is requested again at once, at each of them.
    for (const gateway of [a, b, c]) expect((await gateway.get(`${LIST}?page=2`, { key })).status).toBe(200);
    expect(a.store.requests.length).toBeGreaterThan(calls);
  });

  test('a process that starts later knows of it, with who began it; it outlives all that knew', async () => {
    const first = await start();
    await first.admin('PUT', PATH, { for: '1h' });
    const said = await stateAt(first);
    const later = await start();
    expect(await stateAt(later)).toEqual(said);
    for (const gateway of gateways.splice(0).toReversed()) await gateway.close();
    expect(await stateAt(await start())).toEqual(said);
  });

  test('it ends by itself in each process, by its own clock', async () => {
    const [a, b, c] = await startThree();
    await a.admin('PUT', PATH, { for: '10s' });
    await untilAllAre(true);
    a.clock.advance(9999);
    b.clock.advance(10_000);
    c.clock.advance(10_000);
    expect((await Promise.all(gateways.map(stateAt))).map(({ active }) => active)).toEqual([true, false, false]);
    a.clock.advance(1);
    expect((await stateAt(a)).active).toBe(false);
  });

  test('a process that gets no messages finds what was changed by looking', async () => {
    await atEach(redis, (client) =>
      client.call('ACL', 'SETUSER', 'deaf', 'on', '>word', '~*', '+@all', 'resetchannels'),
    );
    const a = await start();
    const b = await start(redis.url.replace('://', '://deaf:word@'));
    await a.admin('PUT', PATH, { for: '1h' });
    await a.admin('PUT', '/api/cache/ttl/list', { fresh: '7s' });
    await untilAllAre(true);
    await vi.waitFor(async () => expect((await b.admin('GET', '/api/cache/ttl')).text).toContain('"fresh":"7s"'), 5000);
    await a.admin('DELETE', PATH);
    await untilAllAre(false);
  });
});

describe('an entry that Redis holds', () => {
  test('is explained by a process that has never read it, and by what lies beside it', async () => {
    const [a, b] = await startThree();
    const key = await a.issueKey();
    await a.get(REPORT, { key });
    const explained = await explain(b);
    expect(explained).toMatchObject({
      next: { text: 'The next read is served from Redis.', from: 'redis', store: 'not-asked', miss: null },
      memory: null,
      redis: {
        state: 'asked',
        entry: { state: 'fresh', answer: 'found', filledAt: '2026-01-15T12:00:00.000Z', tags: TAGS },
      },
      flight: { since: null, leaseLeftMs: null, justFailed: false },
      lastMiss: null,
    });
    const { redis: seen } = z
      .looseObject({ redis: z.looseObject({ entry: z.looseObject({ bytes: z.number(), keptForMs: z.number() }) }) })
      .parse(explained);
    expect(seen.entry.bytes).toBeGreaterThan(1000);
    // Fresh 5 min, then 1 h stale and 24 h on error.
    expect(seen.entry.keptForMs).toBeGreaterThan(90_000_000 - 60_000);
    expect((await b.get(REPORT, { key })).headers['cache-status']).toMatch(/^evalgate; hit; ttl=\d+$/);
  });

  test('that can not be read is nothing; the next reader asks the store', async () => {
    const [a, b] = await startThree();
    const key = await a.issueKey();
    await a.get(REPORT, { key });
    for (const name of await namesIn(raw, '*evaluation*')) {
      for (const field of await raw.hkeys(name)) await raw.hset(name, field, 'no entry');
    }
    expect(await explain(b)).toMatchObject({
      redis: { state: 'unreadable', entry: null },
      next: { store: 'waited-for' },
    });
    expect((await b.get(REPORT, { key })).headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
    expect(await explain(b)).toMatchObject({ redis: { state: 'asked', entry: { state: 'fresh' } } });
  });

  test('a call of another process for it is shown, and its failure', async () => {
    const [a, b] = await startThree();
    const key = await a.issueKey();
    a.store.fail(503);
    const gate = a.store.hold();
    const reading = a.get(REPORT, { key });
    await a.store.waitForCalls(1);
    expect(await explain(b)).toMatchObject({ flight: { since: null, leaseLeftMs: SOME_MS } });
    expect(await explain(a)).toMatchObject({ flight: { since: '2026-01-15T12:00:00.000Z', leaseLeftMs: SOME_MS } });
    gate.release();
    expect((await reading).status).toBe(500);
    expect(await explain(b)).toMatchObject({ flight: { justFailed: true } });
  });

  test('of a Redis that does not answer nothing is shown but that', async () => {
    const a = await start();
    await redis.pause();
    try {
      expect(await explain(a)).toMatchObject({ redis: { state: 'unreachable', entry: null }, next: { from: 'store' } });
    } finally {
      await redis.resume();
    }
  });
});
