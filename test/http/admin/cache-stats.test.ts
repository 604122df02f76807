/** The statistics of reads for operators: /api/cache, /api/cache/top, /api/cache/history, /api/cache/advice. */
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { fileOf } from '../../support/files.ts';
import { forTest } from '../../support/opened.ts';
import { messageOf, START, statsOf } from '../../support/admin.ts';
import { runCli } from '../../support/cli.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { aTranscript, anEvaluation, WORKSPACE_A } from '../../support/records.ts';

const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
const CLASSES = ['list', 'evaluation', 'transcript', 'scorecard', 'rubric', 'dealInsights', 'notFound'];
const MEMORY_BYTES = 64_000_000;

let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  gateway = await forTest(startTestGateway());
  gateway.store.put({ evaluations: [anEvaluation()], transcripts: [aTranscript()] });
  key = await gateway.issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });
});

const read = async (path: string = LIST): Promise<number> => (await gateway.get(path, { key })).status;
/** An answer of a process without Redis. */
const ALONE = { scope: 'process', processes: 1, problem: null };
const keyOf = (id: string): unknown => expect.stringContaining(id);
const purge = (mode: string) => gateway.admin('POST', '/api/cache/purge', { tags: ['evaluation:ev_1'], mode });
const memorySchema = z.looseObject({ memory: z.object({ entries: z.number() }) });

/** Entries in memory that can be used, by class. */
async function held(): Promise<readonly number[]> {
  const all = await Promise.all(CLASSES.map((name) => statsOf(gateway, name)));
  return all.map((row) => memorySchema.parse(row).memory.entries);
}

const show = async (path: string): Promise<unknown> => (await gateway.admin('GET', path)).json;

/** Reads what the store takes so long to answer, by the clock. */
async function readSlowly(path: string, afterMs: number): Promise<void> {
  const calls = gateway.store.calls();
  const gate = gateway.store.hold();
  const waiting = read(path);
  await gateway.store.waitForCalls(calls + 1);
  gateway.clock.advance(afterMs);
  gate.release();
  await waiting;
}

describe('/api/cache', () => {
  const SOME_BYTES: unknown = expect.any(Number);
  const NO_OUTCOMES = {
    hit: 0,
    'stale-while-revalidate': 0,
    'stale-if-error': 0,
    changed: 0,
    collapsed: 0,
    miss: 0,
    failed: 0,
  };
  const NO_MISSES = { 'never-seen': 0, expired: 0, evicted: 0, purged: 0, changed: 0, 'not-cacheable': 0 };

  test('has one row per class, in the order of the classes; nothing is counted before anything is read', async () => {
    expect(await show('/api/cache')).toEqual({
      ...ALONE,
      since: START,
      memory: { entries: 0, bytes: 0, maxBytes: MEMORY_BYTES },
      redis: [],
      unstable: [],
      classes: CLASSES.map((name) => ({
        class: name,
        reads: 0,
        outcomes: NO_OUTCOMES,
        tiers: { memory: 0, redis: 0 },
        misses: NO_MISSES,
        hitRatio: null,
        storeCalls: 0,
        earlyRenewals: 0,
        storeCallsPerRead: null,
        refreshes: 0,
        changedRatio: null,
        unannouncedRatio: null,
        ageMs: null,
        latencyMs: null,
        memory: { entries: 0, bytes: 0 },
      })),
    });
  });

  test('counts reads by outcome, misses by reason, and calls to the store, each in its class', async () => {
    const { store, clock } = gateway;
    await read();
    await read();
    expect(await statsOf(gateway, 'list')).toEqual({
      class: 'list',
      reads: 2,
      outcomes: { ...NO_OUTCOMES, hit: 1, miss: 1 },
      tiers: { memory: 1, redis: 0 },
      misses: { ...NO_MISSES, 'never-seen': 1 },
      hitRatio: 0.5,
      storeCalls: 1,
      earlyRenewals: 0,
      storeCallsPerRead: 0.5,
      refreshes: 0,
      changedRatio: null,
      unannouncedRatio: null,
      ageMs: { p50: 0, p90: 0, p99: 0 },
      latencyMs: { p50: 0, p90: 0, p99: 0 },
      memory: { entries: 1, bytes: SOME_BYTES },
    });
    // Backfilled by the list: a hit without any call of its own.
    await read(`${LIST}/ev_1`);
    expect(await statsOf(gateway, 'evaluation')).toMatchObject({ reads: 1, outcomes: { hit: 1 }, storeCalls: 0 });

    // An absent record is of the class notFound, and so is the call for it.
    expect([await read(`${LIST}/none`), await read(`${LIST}/none`)]).toEqual([404, 404]);
    expect(await statsOf(gateway, 'notFound')).toMatchObject({
      reads: 2,
      outcomes: { hit: 1, miss: 1 },
      storeCalls: 1,
      memory: { entries: 1 },
    });
    expect(await statsOf(gateway, 'evaluation')).toMatchObject({ reads: 1, memory: { entries: 1 } });

    // Past stale and within error, with a store that fails.
    clock.advance(10 * 60_000);
    const heal = store.fail(503);
    expect([await read(), await read(`${LIST}/ev_1/transcript`)]).toEqual([200, 500]);
    heal();
    expect(await statsOf(gateway, 'list')).toMatchObject({
      reads: 3,
      outcomes: { ...NO_OUTCOMES, hit: 1, miss: 1, 'stale-if-error': 1 },
      hitRatio: 1 / 3,
      tiers: { memory: 2, redis: 0 },
      misses: { 'never-seen': 1, expired: 1 },
      storeCalls: store.calls('list'),
    });
    expect(await statsOf(gateway, 'transcript')).toMatchObject({
      reads: 1,
      outcomes: { ...NO_OUTCOMES, failed: 1 },
      misses: { 'never-seen': 1 },
      ageMs: null,
      storeCalls: store.calls('transcript'),
    });

    // A failure is remembered for a second.
    clock.advance(1000);
    await gateway.admin('POST', '/api/cache/purge', { tags: ['class:list'] });
    expect(await statsOf(gateway, 'list')).toMatchObject({ memory: { entries: 0, bytes: 0 } });
    await read();
    expect(await statsOf(gateway, 'list')).toMatchObject({
      reads: 4,
      misses: { 'never-seen': 1, expired: 1, purged: 1 },
      memory: { entries: 1 },
    });
  });

  test('readers of one call to the store are one miss and the rest collapsed', async () => {
    const gate = gateway.store.hold();
    const readers = [read(), read(), read()];
    await gateway.store.waitForCalls(1, 'list');
    gate.release();
    expect(await Promise.all(readers)).toEqual([200, 200, 200]);
    expect(await statsOf(gateway, 'list')).toMatchObject({ outcomes: { miss: 1, collapsed: 2 }, storeCalls: 1 });
  });

  test('a hard purge leaves nothing in memory, a soft one all', async () => {
    await read();
    await read(`${LIST}/none`);
    expect(await held()).toEqual([1, 1, 0, 0, 0, 0, 1]);
    await purge('soft');
    expect(await held()).toEqual([1, 1, 0, 0, 0, 0, 1]);
    await purge('hard');
    expect(await held()).toEqual([0, 0, 0, 0, 0, 0, 1]);
    expect(await show('/api/cache')).toMatchObject({ memory: { entries: 1 } });
  });

  test('a copy that was dropped for want of memory is missed as evicted', async () => {
    gateway = await forTest(startTestGateway({ config: '{cache: {memory: 1MB}, upstream: {adaptive: false}}' }));
    const body = 'x'.repeat(300_000);
    const ids = Array.from({ length: 6 }, (_, index) => `ev_${index}`);
    gateway.store.put({
      evaluations: ids.map((id) => anEvaluation({ _id: id })),
      transcripts: ids.map((id) => aTranscript({ evaluationId: id, body })),
    });
    key = await gateway.issueKey();
    for (const id of [...ids, 'ev_0']) expect(await read(`${LIST}/${id}/transcript`)).toBe(200);
    expect(await statsOf(gateway, 'transcript')).toMatchObject({ misses: { 'never-seen': 6, evicted: 1 } });
  });

  test('ages are within 7 % of the true ones, at every percentile', async () => {
    await gateway.admin('PUT', '/api/cache/ttl/list', { fresh: '1d' });
    await read();
    // Ages from 1 s to 100 s, each once, behind the one of 0.
    for (let second = 1; second < 100; second += 1) {
      gateway.clock.advance(1000);
      await read();
    }
    const { ageMs } = z
      .looseObject({ ageMs: z.strictObject({ p50: z.number(), p90: z.number(), p99: z.number() }) })
      .parse(await statsOf(gateway, 'list'));
    for (const [measured, exact] of [
      [ageMs.p50, 49_000],
      [ageMs.p90, 89_000],
      [ageMs.p99, 98_000],
    ] as const) {
      expect(Math.abs(measured - exact)).toBeLessThanOrEqual(0.07 * exact);
    }
  });
});

describe('/api/cache/top', () => {
  const loadSchema = z.looseObject({ storeCalls: z.number(), storeMs: z.number() });
  const topSchema = z.strictObject({
    since: z.string(),
    scope: z.literal('process'),
    processes: z.literal(1),
    problem: z.null(),
    keys: z.array(z.strictObject({ ...loadSchema.shape, key: z.string(), class: z.string() })),
    routes: z.array(z.strictObject({ ...loadSchema.shape, route: z.string().nullable() })),
    apiKeys: z.array(z.strictObject({ ...loadSchema.shape, keyId: z.string().nullable() })),
    workspaces: z.array(z.strictObject({ ...loadSchema.shape, workspaceId: z.string().nullable() })),
    moreMemory: z.strictObject({
      evictedRatio: z.number().nullable(),
      savings: z.array(z.strictObject({ bytes: z.number(), storeRps: z.number(), seen: z.number() })),
    }),
  });
  const top = async (limit = 100) => topSchema.parse(await show(`/api/cache/top?limit=${limit}`));

  test.each([
    ['limit=0', 'The query parameter limit: given "0"; allowed: an integer from 1 to 100; 20 if it is left out.'],
    ['limit=101', 'The query parameter limit: given "101"; allowed: an integer from 1 to 100; 20 if it is left out.'],
    ['limit=ten', 'The query parameter limit: given "ten"; allowed: an integer from 1 to 100; 20 if it is left out.'],
    ['limit=1&limit=2', 'The query parameter limit may be given only once.'],
    ['top=3', 'Unknown query parameter "top". Known here: limit.'],
  ])('%s is refused', async (query, message) => {
    const answer = await gateway.admin('GET', `/api/cache/top?${query}`);
    expect([answer.status, messageOf(answer)]).toEqual([400, message]);
  });

  test('says how many calls more memory would spare, if what was evicted is still fresh when it is read again', async () => {
    gateway = await forTest(startTestGateway({ config: '{cache: {memory: 1MB}, upstream: {adaptive: false}}' }));
    key = await gateway.issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });
    const ids = Array.from({ length: 300 }, (_, index) => `ev_${index}`);
    gateway.store.put({ evaluations: ids.map((id) => anEvaluation({ _id: id, title: 'x'.repeat(2000) })) });
    const readAll = async (): Promise<void> => {
      for (const id of ids) await read(`/v2/calls/${id}`);
    };
    await readAll();
    expect((await top()).moreMemory).toEqual({ evictedRatio: 0, savings: [] });
    // In turns, so that each was evicted before it is read again.
    await readAll();
    gateway.clock.advance(100_000);
    const { evictedRatio, savings } = (await top()).moreMemory;
    expect(evictedRatio).toBe(0.5);
    const { storeRps = 0, seen = 0 } = savings.at(-1) ?? {};
    expect(seen).toBe((storeRps * 100) / 8);
    // All 300 would be spared; one in eight is looked at.
    expect(Math.abs((storeRps * 100) / 300 - 1)).toBeLessThan(0.25);
    const { stdout } = await runCli(['cache', 'top', '--admin', gateway.adminUrl]);
    expect(stdout).toMatch(
      /Evicted 50\.0 % of misses\. More memory \(cache\.memory\) per process: 8\.0 MB would save \d\.\d\d calls\/s.* \(from \d+ reads of one record in eight\)\.\n$/,
    );
    // A day later a larger memory would not have spared the call either.
    gateway.clock.advance(86_400_000);
    await readAll();
    expect((await top()).moreMemory.savings).toEqual([]);
  });

  test('counts what readers cause, refreshes and failures included, for key and route; hits are not', async () => {
    const { store, clock } = gateway;
    await read();
    await read();
    clock.advance(40_000);
    await read();
    await store.waitForCalls(2, 'list');
    const heal = store.fail(404);
    expect(await read('/v2/calls/ev_9')).toBe(500);
    heal();
    // The refresh is counted when its answer has come.
    const callsOfAll = async () => (await top()).keys.reduce((sum, { storeCalls }) => sum + storeCalls, 0);
    await expect.poll(callsOfAll).toBe(3);
    const { since, keys, routes, apiKeys, workspaces } = await top();
    expect(apiKeys.map(({ keyId, storeCalls }) => [keyId === null, storeCalls])).toEqual([[false, 3]]);
    expect(workspaces).toMatchObject([{ workspaceId: WORKSPACE_A, storeCalls: 3 }]);
    expect(since).toBe(START);
    expect(keys.toSorted((a, b) => a.storeCalls - b.storeCalls)).toMatchObject([
      { key: keyOf('ev_9'), class: 'evaluation', storeCalls: 1 },
      { key: keyOf(WORKSPACE_A), class: 'list', storeCalls: 2 },
    ]);
    expect(routes.toSorted((a, b) => a.storeCalls - b.storeCalls)).toMatchObject([
      { route: '/v2/calls/{callId}', storeCalls: 1 },
      { route: '/v1/workspaces/{workspaceId}/reports', storeCalls: 2 },
    ]);
  });

  test('the costliest come first, in whole milliseconds of the store, and no more than the limit', async () => {
    await readSlowly('/v2/calls/ev_1', 30);
    await readSlowly(`${LIST}/none`, 20);
    await readSlowly(LIST, 90.4);
    await readSlowly('/v2/calls/other', 20.6);
    const { keys, routes } = await top();
    expect(keys).toEqual([
      { key: keyOf(WORKSPACE_A), class: 'list', storeCalls: 1, storeMs: 90 },
      { key: keyOf('ev_1'), class: 'evaluation', storeCalls: 1, storeMs: 30 },
      { key: keyOf('other'), class: 'notFound', storeCalls: 1, storeMs: 21 },
      { key: keyOf('none'), class: 'notFound', storeCalls: 1, storeMs: 20 },
    ]);
    expect(routes).toEqual([
      { route: '/v1/workspaces/{workspaceId}/reports', storeCalls: 1, storeMs: 90 },
      { route: '/v2/calls/{callId}', storeCalls: 2, storeMs: 51 },
      { route: '/v1/workspaces/{workspaceId}/reports/{reportId}', storeCalls: 1, storeMs: 20 },
    ]);
    const one = await top(1);
    expect([one.keys, one.routes]).toEqual([keys.slice(0, 1), routes.slice(0, 1)]);
  });

  test('is of the last hour at most', async () => {
    const { clock } = gateway;
    await read('/v2/calls/early');
    clock.advance(1_800_000);
    await read('/v2/calls/late');
    expect((await top()).keys).toHaveLength(2);
    clock.advance(1_800_000);
    expect(await top()).toMatchObject({
      since: '2026-01-15T12:30:00.000Z',
      keys: [{ key: keyOf('late'), storeCalls: 1 }],
    });
    clock.advance(3_600_000);
    expect(await top()).toMatchObject({ since: '2026-01-15T14:00:00.000Z', keys: [], routes: [] });
  });
});

const NONE = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };

describe('/api/cache/history', () => {
  const historySchema = z.strictObject({
    scope: z.literal('process'),
    processes: z.literal(1),
    problem: z.null(),
    since: z.string(),
    stepMs: z.literal(30_000),
    leftOut: z.array(z.unknown()),
    points: z.array(
      z.strictObject({
        at: z.string(),
        p50Ms: z.number().nullable(),
        p99Ms: z.number().nullable(),
        ageP90Ms: z.number().nullable(),
        stale: z.number(),
        records: z.object({ listed: z.number(), leftOut: z.number() }),
        staleOnError: z.number(),
        statuses: z.record(z.string(), z.number()),
        classes: z.record(z.string(), z.unknown()),
      }),
    ),
  });
  const history = async () => historySchema.parse(await show('/api/cache/history'));
  const QUIET = {
    p50Ms: null,
    p99Ms: null,
    ageP90Ms: null,
    stale: 0,
    staleOnError: 0,
    records: { listed: 0, leftOut: 0 },
    statuses: {},
  };
  const nothing = Object.fromEntries(CLASSES.map((name) => [name, NONE]));

  test('counts reads, hits, store calls and failures by class in steps of half a minute', async () => {
    const { store, clock } = gateway;
    for (const path of [LIST, LIST, `${LIST}/ev_1`, `${LIST}/none`]) await read(path);
    clock.advance(29_999);
    await read(`${LIST}/ev_1`);
    clock.advance(30_001);
    const heal = store.fail(503);
    await read(`${LIST}/ev_1/transcript`);
    heal();
    expect(await history()).toEqual({
      ...ALONE,
      since: START,
      stepMs: 30_000,
      leftOut: [],
      points: [
        {
          at: START,
          ...QUIET,
          p50Ms: 0,
          p99Ms: 0,
          // The exact time is 29.999 s; histograms are within 7 % of it.
          ageP90Ms: 31_300,
          records: { listed: 1, leftOut: 0 },
          statuses: { 200: 4, 404: 1 },
          classes: {
            ...nothing,
            list: { reads: 2, hits: 1, storeCalls: 1, failed: 0 },
            evaluation: { reads: 2, hits: 2, storeCalls: 0, failed: 0 },
            notFound: { reads: 1, hits: 0, storeCalls: 1, failed: 0 },
          },
        },
        { at: '2026-01-15T12:00:30.000Z', ...QUIET, classes: nothing },
        {
          at: '2026-01-15T12:01:00.000Z',
          ...QUIET,
          p50Ms: 0,
          p99Ms: 0,
          statuses: { 500: 1 },
          classes: { ...nothing, transcript: { reads: 1, hits: 0, storeCalls: 1, failed: 1 } },
        },
      ],
    });
  });

  test('begins with the first step in which anything was read, and keeps an hour', async () => {
    expect((await history()).points).toEqual([{ at: START, ...QUIET, classes: nothing }]);
    gateway.clock.advance(150_000);
    await read();
    expect((await history()).points.map(({ at }) => at)).toEqual(['2026-01-15T12:02:30.000Z']);
    gateway.clock.advance(3_570_000);
    expect((await history()).points).toHaveLength(120);
    gateway.clock.advance(30_000);
    await read();
    expect((await history()).points.map(({ at }) => at)).toEqual(['2026-01-15T13:02:30.000Z']);
  });

  test('has the copies that stood in for a store that failed', async () => {
    await read();
    gateway.clock.advance(600_000);
    gateway.store.fail(503);
    await read();
    await read();
    expect((await history()).points.at(-1)).toMatchObject({ stale: 2, staleOnError: 2, statuses: { 200: 2 } });
  });

  test('the slowest hundredth is within 7 % of what reads took, by the clock', async () => {
    await readSlowly(LIST, 400);
    const { points } = await history();
    const [p99Ms = Number.NaN] = points.map((point) => point.p99Ms ?? Number.NaN);
    expect(Math.abs(p99Ms - 400)).toBeLessThanOrEqual(28);
    expect(await statsOf(gateway, 'list')).toMatchObject({ latencyMs: { p50: p99Ms, p99: p99Ms } });
  });
});

describe('/api/cache/advice', () => {
  const adviceSchema = z.strictObject({
    at: z.string(),
    processes: z.number(),
    load: z.strictObject({
      upstreamRps: z.number(),
      upstreamRpsError: z.number(),
      recommendedRps: z.number(),
      recommendedRpsError: z.number(),
      limitRps: z.number(),
      limit: z.string(),
      warning: z.string().nullable(),
    }),
    classes: z.array(z.looseObject({ class: z.string(), curve: z.array(z.looseObject({ freshMs: z.number() })) })),
  });

  test('has every class, its limit, its curve, and what really happened; the limit follows the configuration', async () => {
    for (let second = 0; second < 10; second += 1) {
      for (const path of [LIST, `${LIST}/ev_1`]) await read(path);
      gateway.clock.advance(10_000);
    }
    const { at, processes, classes } = adviceSchema.parse(await show('/api/cache/advice'));
    expect([at, processes, classes.map((each) => each.class)]).toEqual(['2026-01-15T12:01:40.000Z', 1, CLASSES]);
    const [list, evaluation, transcript] = classes;
    expect(list).toMatchObject({
      reads: 10,
      outdatedLimit: 0.02,
      measured: { hitRatio: 0.9, storeCallsPerRead: gateway.store.calls('list') / 10 },
    });
    expect(list?.curve.length).toBeGreaterThan(5);
    // Backfilled by the list.
    expect(evaluation).toMatchObject({ reads: 10, measured: { hitRatio: 1, upstreamRps: 0 } });
    expect(transcript).toMatchObject({ reads: 0, measured: null });
    gateway.reload({ CONFIG_FILE: fileOf('cache: {classes: {list: {outdatedLimit: 5%}}}') });
    expect(await show('/api/cache/advice')).toMatchObject({
      classes: CLASSES.map((name) => ({ class: name, outdatedLimit: name === 'list' ? 0.05 : 0.02 })),
    });
  });
});

test.each([
  ['budget=0x1', 'budget: given "0x1"; allowed: the calls a second that the store may be asked for, such as 10'],
  ['force=yes', 'force: given "yes"; allowed: true: also recommend times that make the store work harder'],
  ['list=45', 'list: given "45"; allowed: a fresh time, such as 45s'],
  ['rubric=1m', 'Unknown query parameter "rubric". Known here: budget, force, list, evaluation.'],
])('/api/cache/advice?%s is refused', async (query, message) => {
  const answer = await gateway.admin('GET', `/api/cache/advice?${query}`);
  expect(answer.status).toBe(400);
  expect(messageOf(answer)).toContain(message);
});

test('/api/cache/advice is as if the times that are given were in force, and keeps to the budget', async () => {
  for (let second = 0; second < 10; second += 1) {
    for (const path of [LIST, `${LIST}/ev_1`]) await read(path);
    gateway.clock.advance(10_000);
  }
  const advised = z.object({
    load: z.looseObject({ limitRps: z.number() }),
    classes: z.array(z.looseObject({ current: z.looseObject({ freshMs: z.number() }).nullable() })),
  });
  const { load, classes } = advised.parse(await show('/api/cache/advice?list=2m&evaluation=7m&budget=0.01&force=true'));
  expect(classes.slice(0, 2).map(({ current }) => current?.freshMs)).toEqual([120_000, 420_000]);
  expect(load).toMatchObject({ limitRps: 0.01, limit: 'the budget' });
});

test('/api/fleet has the process itself, and nothing of the store', async () => {
  const { text, json } = await gateway.admin('GET', '/api/fleet');
  const about = { host: expect.any(String), id: expect.any(String), version: expect.any(String) } as Record<
    string,
    unknown
  >;
  expect(json).toEqual({
    problem: null,
    changes: { last: null, inLastHour: 0 },
    members: [
      { ...about, pid: process.pid, startedAt: START, status: 'ready', heardMsAgo: 0, clockAheadMs: 0, self: true },
    ],
  });
  expect(text).not.toContain('store');
});
