/** Three whole gateways over one Redis: maintenance begun at one is in force at all; and what Redis holds is explained. */
import type { Redis } from 'ioredis';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { CacheNames, cacheStateKey } from '../../src/redis/names.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const PATH = '/api/cache/maintenance';
const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
/** What issue 5 allows a change to take until it is in force everywhere. */
const WITHIN_MS = 1000;

const SOME_MS: unknown = expect.any(Number);
const TAGS: unknown = expect.arrayContaining([`evaluation:${EVALUATION_ID}`, `workspace:${WORKSPACE_A}`]);

let redis: TestRedis;
let raw: Redis;
let gateways: TestGateway[] = [];

beforeAll(async () => {
  redis = await startRedis();
  raw = await connectWhenUp(redis.url, 5000);
});
afterAll(async () => {
  raw.disconnect();
  await redis.close();
});
beforeEach(() => redis.flush());
afterEach(async () => {
  await Promise.all(gateways.map((gateway) => gateway.close()));
  gateways = [];
});

/** In front of the first one's store. */
async function start(clock = new ManualClock()): Promise<TestGateway> {
  const store = gateways[0]?.store;
  const upstream = store === undefined ? {} : { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token };
  const gateway = await startTestGateway({ env: { REDIS_URL: redis.url, ...upstream }, clock });
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
const areAll = async (active: boolean): Promise<boolean> =>
  (await Promise.all(gateways.map(stateAt))).every((state) => state.active === active);

/** How long it takes until it is so; the test's own time is the bound. */
async function untilAllAre(active: boolean): Promise<number> {
  const startedMs = performance.now();
  while (!(await areAll(active))) await new Promise(setImmediate);
  return performance.now() - startedMs;
}

describe('maintenance of a fleet', () => {
  test('begun at one it is in force at all within a second, and so is its end; none of them asks the store', async () => {
    const [a, b, c] = await startThree();
    const key = await a.issueKey({ perMinute: 100_000, perHour: 100_000 });
    expect((await a.get(LIST, { key })).status).toBe(200);
    for (const { clock } of gateways) clock.advance(40_000);
    const calls = a.store.requests.length;

    await a.admin('PUT', PATH, { for: '1h' });
    expect(await untilAllAre(true)).toBeLessThan(WITHIN_MS);
    const load = [LIST, `${LIST}?page=2`, `${LIST}/${EVALUATION_ID}`, `${LIST}/none`].flatMap((path) =>
      [a, b, c].flatMap((gateway) => Array.from({ length: 10 }, () => gateway.get(path, { key }))),
    );
    const statuses = new Set((await Promise.all(load)).map(({ status }) => status));
    expect(statuses).toEqual(new Set([200, 500]));
    expect(a.store.requests.length).toBe(calls);

    await b.admin('DELETE', PATH);
    expect(await untilAllAre(false)).toBeLessThan(WITHIN_MS);
    // What failed a moment ago is asked for at once, at each of them.
    for (const gateway of [a, b, c]) expect((await gateway.get(`${LIST}?page=2`, { key })).status).toBe(200);
    expect(a.store.requests.length).toBeGreaterThan(calls);
  });

  test('a process that starts later knows of it, with who began it; it outlives all that knew', async () => {
    const first = await start();
    await first.admin('PUT', PATH, { for: '1h' });
    const said = await stateAt(first);
    const later = await start();
    expect(await stateAt(later)).toEqual(said);
    await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
    expect(await stateAt(await start())).toEqual(said);
  });

  test('it ends by itself in each process, by its own clock', async () => {
    await startThree();
    const [a, b, c] = gateways.map(({ clock }) => clock);
    await gateways[0]?.admin('PUT', PATH, { for: '10s' });
    await untilAllAre(true);
    a?.advance(9999);
    b?.advance(10_000);
    c?.advance(10_000);
    expect((await Promise.all(gateways.map(stateAt))).map(({ active }) => active)).toEqual([true, false, false]);
    a?.advance(1);
    expect(await areAll(false)).toBe(true);
  });

  test('one whose message was lost is found by looking; what can not be read counts as none', async () => {
    const gateway = await start();
    const untilMs = gateway.clock.nowMs() + 60_000;
    const said = JSON.stringify({ sinceMs: gateway.clock.nowMs(), untilMs, by: 'alice' });
    await raw.hset(cacheStateKey('head'), 'maintenance', said);
    await untilAllAre(true);
    expect((await stateAt(gateway)).by).toBe('alice');
    await raw.hset(cacheStateKey('head'), 'maintenance', '{"untilMs":"soon"}');
    await untilAllAre(false);
  });
});

describe('an entry that Redis holds', () => {
  test('is explained by a process that has never read it, and by what lies beside it', async () => {
    const [a, b] = await startThree();
    const key = await a.issueKey();
    const path = `${LIST}/${EVALUATION_ID}`;
    await a.get(path, { key });
    const explained = (await b.admin('GET', `/api/cache/explain?path=${encodeURIComponent(path)}`)).json;
    expect(explained).toMatchObject({
      key: 'v1:{evaluation:ev_1}',
      next: { text: 'The next read is served from Redis.', from: 'redis', store: 'not-asked', miss: null },
      memory: null,
      redis: {
        state: 'asked',
        entry: {
          state: 'fresh',
          answer: 'found',
          filledAt: '2026-01-15T12:00:00.000Z',
          tags: TAGS,
        },
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
    expect((await b.get(path, { key })).headers['cache-status']).toMatch(/^evalgate; hit; ttl=\d+$/);
  });

  test('that can not be read is nothing, and a call of another process is told', async () => {
    const [a] = await startThree();
    const path = `${LIST}/${EVALUATION_ID}`;
    const [name] = await raw.keys('evalgate:{cache-*');
    expect(name).toBeUndefined();
    const key = await a.issueKey();
    await a.get(path, { key });
    await a.admin('POST', '/api/cache/purge', { tags: ['all'] });
    const [entry = ''] = await raw.keys('evalgate:{cache-*evaluation*');
    const store = /\{cache-([^-]+)-/.exec(entry)?.[1] ?? '';
    await raw.hset(entry, 'meta', 'no entry');
    const names = new CacheNames(store);
    await raw.set(names.beside(names.of('v1:{evaluation:ev_1}'), 'lease'), 'token', 'PX', 60_000);
    expect((await a.admin('GET', `/api/cache/explain?path=${encodeURIComponent(path)}`)).json).toMatchObject({
      redis: { state: 'unreadable', entry: null },
      flight: { leaseLeftMs: SOME_MS },
      next: { store: 'waited-for', miss: 'purged' },
    });
  });
});
