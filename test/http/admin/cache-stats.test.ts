import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { aTranscript, anEvaluation, WORKSPACE_A } from '../../support/records.ts';
import { aStoredAbsence, aStoredEvaluation, keyOfEvaluation } from '../../support/stored-entry.ts';
import { createCacheRig, MAX_BYTES } from './cache-rig.ts';
import { type RunningAdmin, startAdmin, START } from './harness.ts';

let gateway: TestGateway | undefined;
let admin: RunningAdmin | undefined;
afterEach(async () => {
  await gateway?.close();
  await admin?.close();
  gateway = undefined;
  admin = undefined;
});

const statsSchema = z.object({
  since: z.string(),
  memory: z.object({ entries: z.number(), bytes: z.number(), maxBytes: z.number() }),
  classes: z.array(z.looseObject({ class: z.string(), memory: z.object({ entries: z.number(), bytes: z.number() }) })),
});

const SOME_BYTES: unknown = expect.any(Number);
const NO_OUTCOMES = { hit: 0, 'stale-while-revalidate': 0, 'stale-if-error': 0, collapsed: 0, miss: 0, failed: 0 };
const NO_MISSES = { 'never-seen': 0, expired: 0, evicted: 0, purged: 0, 'not-cacheable': 0 };

test('a class a row, in the order of the classes; nothing is counted before anything is read', async () => {
  admin = await startAdmin();
  const { status, json } = await admin.get('/api/cache');
  expect([status, json]).toEqual([
    200,
    {
      since: START,
      memory: { entries: 0, bytes: 0, maxBytes: MAX_BYTES },
      classes: ['list', 'evaluation', 'transcript', 'scorecard', 'rubric', 'dealInsights', 'notFound'].map((name) => ({
        class: name,
        reads: 0,
        outcomes: NO_OUTCOMES,
        tiers: { memory: 0, redis: 0 },
        misses: NO_MISSES,
        storeCalls: 0,
        ageMs: null,
        latencyMs: null,
        memory: { entries: 0, bytes: 0 },
      })),
    },
  ]);
});

test('reads are counted by outcome, misses by reason, and calls to the store, each in its class', async () => {
  gateway = await startTestGateway();
  const { store, clock } = gateway;
  store.put({ evaluations: [anEvaluation()], transcripts: [aTranscript()] });
  const key = await gateway.issueKey();
  const list = `/v1/workspaces/${WORKSPACE_A}/reports`;
  const statsOf = async (cacheClass: string) => {
    const { classes } = statsSchema.parse((await gateway?.admin('GET', '/api/cache'))?.json);
    return classes.find((row) => row.class === cacheClass);
  };
  const read = async (path: string) => (await gateway?.get(path, { key }))?.status;

  await read(list);
  await read(list);
  expect(await statsOf('list')).toEqual({
    class: 'list',
    reads: 2,
    outcomes: { ...NO_OUTCOMES, hit: 1, miss: 1 },
    tiers: { memory: 1, redis: 0 },
    misses: { ...NO_MISSES, 'never-seen': 1 },
    storeCalls: 1,
    ageMs: { p50: 0, p90: 0, p99: 0 },
    latencyMs: { p50: 0, p90: 0, p99: 0 },
    memory: { entries: 1, bytes: SOME_BYTES },
  });
  // Seeded by the list: a hit without any call of its own.
  await read(`${list}/ev_1`);
  expect(await statsOf('evaluation')).toMatchObject({ reads: 1, outcomes: { hit: 1 }, storeCalls: 0 });

  // What is absent is of the class notFound, the call for it too.
  expect([await read(`${list}/none`), await read(`${list}/none`)]).toEqual([404, 404]);
  expect(await statsOf('notFound')).toMatchObject({
    reads: 2,
    outcomes: { hit: 1, miss: 1 },
    storeCalls: 1,
    memory: { entries: 1 },
  });
  expect(await statsOf('evaluation')).toMatchObject({ reads: 1, memory: { entries: 1 } });

  // Past stale and within error, with a store that fails.
  clock.advance(10 * 60_000);
  const heal = store.fail(503);
  expect(await read(list)).toBe(200);
  expect(await read(`${list}/ev_1/transcript`)).toBe(500);
  heal();
  expect(await statsOf('list')).toMatchObject({
    reads: 3,
    outcomes: { ...NO_OUTCOMES, hit: 1, miss: 1, 'stale-if-error': 1 },
    tiers: { memory: 2, redis: 0 },
    misses: { 'never-seen': 1, expired: 1 },
    storeCalls: store.calls('list'),
  });
  expect(await statsOf('transcript')).toMatchObject({
    reads: 1,
    outcomes: { ...NO_OUTCOMES, failed: 1 },
    misses: { 'never-seen': 1 },
    storeCalls: store.calls('transcript'),
  });

  // A failure is remembered for a second.
  clock.advance(1000);
  await gateway.admin('POST', '/api/cache/purge', { tags: ['class:list'] });
  expect(await statsOf('list')).toMatchObject({ memory: { entries: 0, bytes: 0 } });
  await read(list);
  expect(await statsOf('list')).toMatchObject({
    reads: 4,
    misses: { 'never-seen': 1, expired: 1, purged: 1 },
    memory: { entries: 1 },
  });
});

test('what is absent counts as notFound alone, and the memory in all holds what was purged until it is replaced', async () => {
  const clock = new ManualClock(Date.parse(START));
  const rig = createCacheRig(clock);
  const position = rig.purges.position();
  rig.memory.set(keyOfEvaluation('a'), { ...aStoredEvaluation(0, { id: 'a' }), position });
  rig.memory.set(keyOfEvaluation('b'), { ...aStoredAbsence(0, 'b'), position });
  admin = await startAdmin({ cache: rig.controls });
  const { get, call } = admin;
  const stats = async () => statsSchema.parse((await get('/api/cache')).json);
  const held = async () =>
    (await stats()).classes.flatMap(({ class: name, memory }) => (memory.entries > 0 ? [[name, memory.entries]] : []));
  expect(await held()).toEqual([
    ['evaluation', 1],
    ['notFound', 1],
  ]);
  await call('POST', '/api/cache/purge', { tags: ['evaluation:a'], mode: 'soft' });
  expect(await held()).toHaveLength(2);
  await call('POST', '/api/cache/purge', { tags: ['evaluation:a'] });
  expect(await held()).toEqual([['notFound', 1]]);
  expect((await stats()).memory).toEqual({ ...rig.memory.usage(), maxBytes: MAX_BYTES });
  expect(rig.memory.usage().entries).toBe(2);
});

test('a copy that was found in Redis counts as of that tier', async () => {
  const rig = createCacheRig(new ManualClock());
  rig.counters.countRead({
    class: 'rubric',
    outcome: 'hit',
    tier: 'redis',
    missReason: null,
    ageMs: 4000,
    durationMs: 0.5,
  });
  rig.counters.countRead({
    class: 'rubric',
    outcome: 'collapsed',
    tier: null,
    missReason: 'evicted',
    ageMs: 0,
    durationMs: 120,
  });
  admin = await startAdmin({ cache: rig.controls });
  const { classes } = statsSchema.parse((await admin.get('/api/cache')).json);
  expect(classes.find((row) => row.class === 'rubric')).toMatchObject({
    reads: 2,
    outcomes: { ...NO_OUTCOMES, hit: 1, collapsed: 1 },
    tiers: { memory: 0, redis: 1 },
    misses: { ...NO_MISSES, evicted: 1 },
    storeCalls: 0,
    ageMs: { p50: 0, p90: 3967, p99: 3967 },
    latencyMs: { p50: 0.495, p90: 118.783, p99: 118.783 },
  });
});
