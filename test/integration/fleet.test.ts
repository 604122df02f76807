/** Whole gateways over one Redis: what one does, the others know, and what operators are shown of all of them. */
import { beforeEach, describe, expect, test } from 'vitest';
import { forFile, forTest } from '../support/opened.ts';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.ts';
import { startGateway } from '../../src/gateway.ts';
import { createLogger } from '../../src/log/logger.ts';
import { auditOf, logOf, samplesOf, START, statsOf } from '../support/admin.ts';
import { runCli } from '../support/cli.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { World } from '../support/world.ts';

const REPORTS = `/v1/workspaces/${WORKSPACE_A}/reports`;
const REPORT = `${REPORTS}/${EVALUATION_ID}`;

let world: World;
let a: TestGateway;
let b: TestGateway;

const redis = await forFile(startRedis());
beforeEach(() => redis.flush());

async function startTwo(clock = new ManualClock()): Promise<void> {
  world = await forTest(World.start('redis', { redisUrl: redis.url, clock }));
  [a, b] = [world.here, world.there];
  a.store.put({ evaluations: [anEvaluation()] });
}

const nameSchema = z.object({ report: z.object({ name: z.string() }) });

/** The report's name at a gateway. */
async function nameAt(gateway: TestGateway, key: string): Promise<string> {
  return nameSchema.parse((await gateway.get(REPORT, { key })).json).report.name;
}

const until = (check: () => Promise<void>): Promise<void> => world.eventually(check);

test('a reader waits for the call of another process, which is counted as a wait', async () => {
  await startTwo();
  const key = await a.issueKey();
  const gate = a.store.hold();
  const first = a.get(REPORTS, { key });
  await a.store.waitForCalls(1, 'list');
  const second = b.get(REPORTS, { key });
  const explained = () => b.admin('GET', `/api/cache/explain?path=${encodeURIComponent(REPORTS)}`);
  const SOME_MS: unknown = expect.any(Number);
  await until(async () =>
    expect((await explained()).json).toMatchObject({ flight: { since: START, leaseLeftMs: SOME_MS } }),
  );
  gate.release();
  expect((await first).text).toBe((await second).text);
  expect(a.store.calls('list')).toBe(1);
  const waited = 'evalgate_cache_lease_wait_seconds_count{class="list",end="stored"}';
  await until(async () => expect((await samplesOf(b, waited))[waited]).toBe(1));
});

test('a change at one is in the audit of all, and outlives them', async () => {
  await startTwo();
  const { keyId } = await a.issue({ name: 'audited' });
  await a.admin('PUT', '/api/cache/ttl/list', { fresh: '7s' });
  const audited = await auditOf(b);
  expect(audited).toMatchObject([
    { at: START, action: 'cache.ttl.set', target: 'list', who: 'anonymous' },
    { at: START, action: 'key.create', target: keyId, to: { name: 'audited' } },
  ]);
  const set = { class: 'list', fresh: '7s', setBy: 'anonymous', setAt: START };
  await until(async () =>
    expect((await b.admin('GET', '/api/cache/ttl')).json).toMatchObject({
      classes: expect.arrayContaining([expect.objectContaining(set)]) as unknown,
    }),
  );
  await b.close();
  expect(await auditOf(await world.join())).toEqual(audited);
});

const fleetSchema = z.strictObject({
  problem: z.string().nullable(),
  changes: z.strictObject({ last: z.null(), inLastHour: z.literal(0) }),
  members: z.array(
    z.strictObject({
      id: z.string(),
      host: z.string(),
      pid: z.number(),
      version: z.string(),
      startedAt: z.iso.datetime(),
      status: z.string(),
      heardMsAgo: z.number(),
      clockAheadMs: z.number(),
      self: z.boolean(),
    }),
  ),
});

async function fleetAt(gateway: TestGateway) {
  return fleetSchema.parse((await gateway.admin('GET', '/api/fleet')).json);
}

const membersAt = async (gateway: TestGateway) => (await fleetAt(gateway)).members;

const statusesAt = async (gateway: TestGateway): Promise<readonly string[]> =>
  (await membersAt(gateway))
    .map(({ self, status }) => `${self ? 'self' : 'other'} ${status}`)
    .toSorted((x, y) => (x < y ? -1 : 1));

describe('/api/fleet', () => {
  test('has each process at all of them, by one id; one that drains and goes is known at once', async () => {
    await startTwo();
    await world.everywhere(async (gateway) => expect(await statusesAt(gateway)).toEqual(['other ready', 'self ready']));
    const idsAt = async (gateway: TestGateway) => (await membersAt(gateway)).map(({ id }) => id);
    expect(await idsAt(a)).toEqual(await idsAt(b));
    expect((await membersAt(a)).every(({ pid, startedAt }) => pid === process.pid && startedAt === START)).toBe(true);
    expect(await samplesOf(a, 'evalgate_fleet_processes')).toEqual({ evalgate_fleet_processes: 2 });

    const key = await a.issueKey();
    const gate = a.store.hold();
    const inFlight = b.get(`${REPORTS}?page=3`, { key });
    await a.store.waitForCalls(1);
    const closed = b.close();
    await until(async () => expect(await statusesAt(a)).toEqual(['other draining', 'self ready']));
    gate.release();
    await inFlight;
    await closed;
    await until(async () => expect(await statusesAt(a)).toEqual(['self ready']));
  });
});

const historySchema = z.object({
  scope: z.string(),
  points: z.array(
    z.object({ at: z.string(), classes: z.record(z.string(), z.looseObject({ reads: z.number(), hits: z.number() })) }),
  ),
});

/** Whose history it is, and reads and hits of lists by step. */
async function historyAt(gateway: TestGateway): Promise<readonly [string, ...(readonly [number, number])[]]> {
  const { scope, points } = historySchema.parse((await gateway.admin('GET', '/api/cache/history')).json);
  return [scope, ...points.map(({ classes: { list } }) => [list?.reads ?? 0, list?.hits ?? 0] as const)];
}

test('the history is of all processes together, whichever is asked, step by step, and outlives those that end', async () => {
  await startTwo();
  const key = await a.issueKey();
  for (const gateway of [a, b, b, b]) await gateway.get(REPORTS, { key });
  world.clock.advance(30_000);
  await b.get(REPORTS, { key });
  await world.everywhere(async (gateway) => expect(await historyAt(gateway)).toEqual(['fleet', [4, 3], [1, 1]]));
  // Pending writes happen at the end.
  await b.get(REPORTS, { key });
  await b.close();
  expect(await historyAt(a)).toEqual(['fleet', [4, 3], [2, 2]]);
  expect(await historyAt(await world.join())).toEqual(['fleet', [4, 3], [2, 2]]);
});

const FLEET = { scope: 'fleet', processes: 2, problem: null };
const CUT_OFF = {
  scope: 'process',
  processes: 1,
  problem: 'Redis does not answer; the others are left out, of 2 known',
};

const show = async (gateway: TestGateway, path: string) => (await gateway.admin('GET', path)).json;

/** The answers of all of them. */
const expectOfAll = async (path: string, expected: object): Promise<void> => {
  await world.everywhere(async (gateway) => expect(await show(gateway, path)).toMatchObject(expected));
};

describe('the counts of the last hour', () => {
  // The command line reads Redis by the time of the machine.
  beforeEach(() => startTwo(new ManualClock(Date.now())));

  test('are of all processes, whichever is asked, and say of how many; what one has counted outlives it', async () => {
    const { keyId, token: key } = await a.issue({ perMinute: 5 });
    for (const gateway of [a, b, b, b]) await gateway.get(REPORTS, { key });
    await b.get('/v2/calls/none', { key });
    expect((await b.get(REPORTS, { key })).status).toBe(429);
    const list = {
      reads: 4,
      outcomes: { miss: 1, hit: 3 },
      hitRatio: 0.75,
      storeCalls: 1,
      storeCallsPerRead: 0.25,
      tiers: { memory: 2, redis: 1 },
    };
    const stats = {
      classes: expect.arrayContaining([expect.objectContaining({ class: 'notFound', storeCalls: 1 })]) as unknown,
    };
    await expectOfAll('/api/cache', { ...FLEET, ...stats });
    await world.everywhere(async (gateway) => expect(await statsOf(gateway, 'list')).toMatchObject(list));
    await expectOfAll('/api/cache/top', {
      ...FLEET,
      routes: expect.arrayContaining([
        { route: '/v1/workspaces/{workspaceId}/reports', storeCalls: 1, storeMs: 0 },
        { route: '/v2/calls/{callId}', storeCalls: 1, storeMs: 0 },
      ]) as unknown,
    });
    const use = { requests: 6, refused: 1 };
    await expectOfAll(`/api/keys/${keyId}`, { lastHour: { ...FLEET, ...use } });
    await expectOfAll('/api/key-use', { ...FLEET, keys: [{ keyId, ...use }] });
    const cli = await runCli(['cache', 'stats', '--admin', b.adminUrl]);
    expect(cli.stdout).toMatch(/^Since \S+, in steps of 5 minutes, by 2 processes\. /);
    // A process that begins anew does not make them go back.
    await world.leave(b);
    await until(async () => expect(await show(a, '/api/cache')).toMatchObject({ scope: 'fleet', processes: 1 }));
    expect(await statsOf(a, 'list')).toMatchObject(list);
    const again = await world.join();
    await until(async () => expect(await statsOf(again, 'list')).toMatchObject(list));
    world.clock.advance(3_600_000);
    await again.get(REPORTS, { key: await again.issueKey() });
    for (const gateway of [a, again])
      await until(async () => expect(await statsOf(gateway, 'list')).toMatchObject({ reads: 1 }));
  });

  test('without Redis are of one process, and say so; afterwards they are whole', async () => {
    await world.everywhere(async (gateway) => expect(await statusesAt(gateway)).toHaveLength(2));
    const key = await a.issueKey();
    for (const gateway of [a, b]) await gateway.get(REPORTS, { key });
    await until(async () => expect(await statsOf(a, 'list')).toMatchObject({ reads: 2 }));
    await redis.pause();
    try {
      await expectOfAll('/api/cache', CUT_OFF);
      await expectOfAll('/api/cache/top', CUT_OFF);
      await expectOfAll('/api/cache/history', CUT_OFF);
      expect(await historyAt(a)).toEqual(['process', [1, 0]]);
      const unseen = 'Redis does not answer, so only changes that are not yet written there are shown';
      await expectOfAll('/api/audit', { problem: unseen, entries: [] });
      expect(await statsOf(a, 'list')).toMatchObject({ reads: 1 });
      const cli = await runCli(['cache', 'top', '--admin', a.adminUrl]);
      expect(cli.stdout).toContain(', by ONE PROCESS ONLY: Redis does not answer');
      await a.get(REPORTS, { key });
    } finally {
      await redis.resume();
      await redis.settled?.();
    }
    await world.everywhere(async (gateway) => expect(await statsOf(gateway, 'list')).toMatchObject({ reads: 3 }));
    await expectOfAll('/api/cache/top', FLEET);
    await world.everywhere(async (gateway) => expect(await historyAt(gateway)).toEqual(['fleet', [3, 2]]));
  }, 40_000);
});

test('C4: in front of two stores answers and histories are apart, and the log warns that they are two', async () => {
  await startTwo();
  await world.leave(b);
  const { clock } = world;
  b = await forTest(startTestGateway({ env: { REDIS_URL: redis.url }, clock }));
  a.store.put({ evaluations: [anEvaluation({ title: 'Of store A' })] });
  b.store.put({ evaluations: [anEvaluation({ title: 'Of store B' })] });
  const key = await a.issueKey();
  for (let time = 0; time < 2; time += 1) {
    expect([await nameAt(a, key), await nameAt(b, key)]).toEqual(['Of store A', 'Of store B']);
  }
  await a.get(REPORTS, { key });
  await until(async () => expect(await historyAt(a)).toEqual(['fleet', [1, 0]]));
  expect(await historyAt(b)).toEqual(['fleet', [0, 0]]);
  const warning =
    'other gateways over this Redis serve a different store: keys, limits, times and purges are shared with them, answers are not';
  for (const gateway of [a, b]) {
    await until(async () =>
      expect(logOf(gateway, warning)).toMatchObject([{ level: 'warn', others: [{ pid: process.pid }] }]),
    );
    // Both know of the other by now.
    expect(await show(gateway, '/api/cache')).toMatchObject({ scope: 'fleet', processes: 1 });
  }
}, 30_000);

test('demo keys end with the process that made them: none is left in Redis for a gateway in front of a real store', async () => {
  await startTwo();
  const loaded = loadConfig({ env: { PORT: '0', ADMIN_PORT: '0', REDIS_URL: redis.url } });
  const sample = await startGateway(loaded, { logger: createLogger({ level: 'silent' }) });
  const key = sample.demo?.v2Key ?? '';
  const authorization = `Bearer ${key}`;
  expect((await fetch(`${sample.publicUrl}/v2/calls`, { headers: { authorization } })).status).toBe(200);
  expect((await a.get('/v2/calls', { key })).status).toBe(401);
  await sample.stop(0);
  expect((await (await world.join()).get('/v2/calls', { key })).status).toBe(401);
});
