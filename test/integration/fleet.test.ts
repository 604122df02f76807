/** Whole gateways over one Redis: what one does, the others know, and what operators are shown of all of them. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { loadConfig } from '../../src/config/load.ts';
import { startGateway } from '../../src/gateway.ts';
import { createLogger } from '../../src/log/logger.ts';
import { auditOf, logOf, readinessOf, samplesOf, START, statsOf } from '../support/admin.ts';
import { startTestGateway, type TestGateway, type TestGatewayOptions } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

const REPORTS = `/v1/workspaces/${WORKSPACE_A}/reports`;
const REPORT = `${REPORTS}/${EVALUATION_ID}`;
const WITHIN = { timeout: 15_000, interval: 20 };

let redis: TestRedis;
let clock: ManualClock;
let gateways: TestGateway[] = [];
let a: TestGateway;
let b: TestGateway;

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());
beforeEach(async () => {
  await redis.flush();
  clock = new ManualClock();
});
afterEach(async () => {
  // The first owns the store of the others.
  for (const gateway of gateways.toReversed()) await gateway.close();
  gateways = [];
});

/** One more, with the clock of all; in front of the first one's store unless it is to have one of its own. */
async function start(env: TestGatewayOptions['env'] = {}, ownStore = false): Promise<TestGateway> {
  const [first] = gateways;
  const store = first === undefined || ownStore ? {} : { store: first.store };
  const gateway = await startTestGateway({ env: { REDIS_URL: redis.url, ...env }, clock, ...store });
  gateways.push(gateway);
  return gateway;
}

async function startTwo(): Promise<void> {
  a = await start();
  b = await start();
  a.store.put({ evaluations: [anEvaluation()] });
}

const nameSchema = z.object({ report: z.object({ name: z.string() }) });

/** The report's name at a gateway. */
async function nameAt(gateway: TestGateway, key: string): Promise<string> {
  return nameSchema.parse((await gateway.get(REPORT, { key })).json).report.name;
}

const timesSchema = z.object({ classes: z.array(z.unknown()) });

/** The times of lists at a gateway. */
async function listTimesAt(gateway: TestGateway): Promise<unknown> {
  return timesSchema.parse((await gateway.admin('GET', '/api/cache/ttl')).json).classes[0];
}

/** Looks until it is so. */
function until(check: () => Promise<void>): Promise<void> {
  return vi.waitFor(check, WITHIN);
}

describe('in front of one store', () => {
  beforeEach(startTwo);

  test('an answer that one has fetched is there for all', async () => {
    const key = await a.issueKey();
    const first = await a.get(REPORTS, { key });
    const second = await b.get(REPORTS, { key });
    expect(first.headers['cache-status']).toBe('evalgate; fwd=uri-miss; stored');
    expect(second.headers['cache-status']).toMatch(/^evalgate; hit; ttl=\d+$/);
    expect(second.text).toBe(first.text);
    expect(a.store.calls('list')).toBe(1);
    await until(async () =>
      expect(await statsOf(b, 'list')).toMatchObject({
        outcomes: { miss: 1, hit: 1 },
        tiers: { memory: 0, redis: 1 },
        storeCalls: 1,
      }),
    );
  });

  test('a reader waits for the call of another process, which is counted as a wait', async () => {
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

  test('K4: a key that is revoked at one is refused at all', async () => {
    const { keyId, token: key } = await a.issue();
    expect((await b.get(REPORTS, { key })).status).toBe(200);
    await a.admin('DELETE', `/api/keys/${keyId}`);
    await until(async () => expect((await b.get(REPORTS, { key })).status).toBe(403));
    expect((await a.get(REPORTS, { key })).status).toBe(403);
  });

  test('a purge at one reaches the memory of all, and the next reader sees the change', async () => {
    const key = await a.issueKey();
    expect([await nameAt(a, key), await nameAt(b, key)]).toEqual([anEvaluation().title, anEvaluation().title]);
    a.store.put({ evaluations: [anEvaluation({ title: 'Renamed' })] });
    expect(await nameAt(b, key)).toBe(anEvaluation().title);
    const purged = await a.admin('POST', '/api/cache/purge', { tags: [`evaluation:${EVALUATION_ID}`] });
    expect(purged.status).toBe(200);
    await until(async () => expect(await nameAt(b, key)).toBe('Renamed'));
    expect(await nameAt(a, key)).toBe('Renamed');
  });

  test('a change at one is in the audit of all, and outlives them', async () => {
    const { keyId } = await a.issue({ name: 'audited' });
    await a.admin('PUT', '/api/cache/ttl/list', { fresh: '7s' });
    const audited = await auditOf(b);
    expect(audited).toMatchObject([
      { at: START, action: 'cache.ttl.set', target: 'list', who: 'anonymous' },
      { at: START, action: 'key.create', target: keyId, to: { name: 'audited' } },
    ]);
    await b.close();
    expect(await auditOf(await start())).toEqual(audited);
  });

  test('a cache time set at one is in force at all, and so is its end', async () => {
    await a.admin('PUT', '/api/cache/ttl/list', { fresh: '7s' });
    await until(async () =>
      expect(await listTimesAt(b)).toMatchObject({ fresh: '7s', setBy: 'anonymous', setAt: START }),
    );
    expect(await listTimesAt(await start())).toMatchObject({ fresh: '7s' });
    const end = await b.admin('DELETE', '/api/cache/ttl/list');
    expect(end.json).toMatchObject({ class: 'list', fresh: '30s', source: { fresh: 'default' } });
    await until(async () => expect(await listTimesAt(a)).toMatchObject({ fresh: '30s' }));
  });
});

const fleetSchema = z.strictObject({
  problem: z.string().nullable(),
  members: z.array(
    z.strictObject({
      id: z.string(),
      host: z.string(),
      pid: z.number(),
      version: z.string(),
      startedAt: z.iso.datetime(),
      status: z.string(),
      heardMsAgo: z.number(),
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
    for (const gateway of [a, b])
      await until(async () => expect(await statusesAt(gateway)).toEqual(['other ready', 'self ready']));
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

  test('a process that is cut off is silent, and dropped after ten seconds; it says itself that it hears of nobody', async () => {
    const proxy = await TcpProxy.start(redis.url);
    a = await start();
    b = await start({ REDIS_URL: proxy.url });
    for (const gateway of [a, b]) await until(async () => expect(await statusesAt(gateway)).toHaveLength(2));
    const other = async () => (await membersAt(a)).find(({ self }) => !self);
    expect((await other())?.heardMsAgo).toBeLessThan(5000);
    await proxy.refuse();
    await until(async () => expect((await other())?.heardMsAgo).toBeGreaterThan(5000));
    for (const gateway of [a, b]) await until(async () => expect(await statusesAt(gateway)).toEqual(['self ready']));
    const silence = 'Redis does not answer, so nothing is heard of other processes (2 known in all)';
    expect([(await fleetAt(a)).problem, (await fleetAt(b)).problem]).toEqual([null, silence]);
    await b.close();
    await proxy.close();
  }, 40_000);

  test('R5: without Redis a process goes on with its share of the limits, as /readyz says', async () => {
    await startTwo();
    for (const gateway of [a, b]) await until(async () => expect(await statusesAt(gateway)).toHaveLength(2));
    await redis.pause();
    try {
      await until(async () =>
        expect((await readinessOf(a)).of('quota')).toMatchObject({
          status: 'degraded',
          detail: 'Redis does not decide: this process goes on with its share, one of 2',
        }),
      );
    } finally {
      await redis.resume();
      await redis.settled?.();
    }
    await until(async () => expect((await readinessOf(a)).of('quota')?.status).toBe('ok'));
  }, 30_000);
});

const adviceSchema = z.looseObject({
  processes: z.number(),
  classes: z.array(
    z.looseObject({
      class: z.string(),
      reads: z.number(),
      measured: z.looseObject({ hitRatio: z.number() }).nullable(),
    }),
  ),
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

describe('advice and history', () => {
  test('are of all processes together, whichever is asked, step by step, and outlive those that end', async () => {
    await startTwo();
    const key = await a.issueKey();
    for (const gateway of [a, b, b, b]) await gateway.get(REPORTS, { key });
    for (const gateway of [a, b]) {
      await until(async () => {
        const { processes, classes } = adviceSchema.parse((await gateway.admin('GET', '/api/cache/advice')).json);
        expect([processes, classes[0]]).toMatchObject([2, { class: 'list', reads: 4, measured: { hitRatio: 0.75 } }]);
      });
    }
    clock.advance(30_000);
    await b.get(REPORTS, { key });
    for (const gateway of [a, b])
      await until(async () => expect(await historyAt(gateway)).toEqual(['fleet', [4, 3], [1, 1]]));
    // Pending writes happen at the end.
    await b.get(REPORTS, { key });
    await b.close();
    expect(await historyAt(a)).toEqual(['fleet', [4, 3], [2, 2]]);
    expect(await historyAt(await start())).toEqual(['fleet', [4, 3], [2, 2]]);
  });

  test('the history without Redis is what this process has seen, and says so; afterwards it is whole', async () => {
    await startTwo();
    const key = await a.issueKey();
    for (const gateway of [a, b]) await gateway.get(REPORTS, { key });
    await until(async () => expect(await historyAt(a)).toEqual(['fleet', [2, 1]]));
    await redis.pause();
    try {
      await until(async () => expect(await historyAt(a)).toEqual(['process', [1, 0]]));
      await a.get(REPORTS, { key });
    } finally {
      await redis.resume();
      await redis.settled?.();
    }
    for (const gateway of [a, b]) await until(async () => expect(await historyAt(gateway)).toEqual(['fleet', [3, 2]]));
  }, 30_000);
});

test('C4: in front of two stores answers and histories are apart, and the log warns that they are two', async () => {
  a = await start();
  b = await start({}, true);
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
    'other gateways over this Redis stand in front of another store: keys, limits, times and purges are shared with them, answers are not';
  for (const gateway of [a, b]) {
    await until(async () =>
      expect(logOf(gateway, warning)).toMatchObject([{ level: 'warn', others: [{ pid: process.pid }] }]),
    );
  }
}, 30_000);

test('demo keys end with the process that made them: none is left in Redis for a gateway in front of a real store', async () => {
  a = await start();
  const loaded = loadConfig({ env: { PORT: '0', ADMIN_PORT: '0', REDIS_URL: redis.url } });
  const sample = await startGateway(loaded, { logger: createLogger({ level: 'silent' }) });
  const key = sample.demo?.v2Key ?? '';
  const authorization = `Bearer ${key}`;
  expect((await fetch(`${sample.publicUrl}/v2/calls`, { headers: { authorization } })).status).toBe(200);
  expect((await a.get('/v2/calls', { key })).status).toBe(401);
  await sample.stop(0);
  expect((await (await start()).get('/v2/calls', { key })).status).toBe(401);
});
