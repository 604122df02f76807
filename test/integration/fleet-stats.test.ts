/** Two gateways with one Redis show the last hour of both, at either of them. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { statsOf } from '../support/admin.ts';
import { runCli, runJson } from '../support/cli.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const REPORTS = `/v1/workspaces/${WORKSPACE_A}/reports`;

let redis: TestRedis;
let clock: ManualClock;
let gateways: TestGateway[] = [];

beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());
beforeEach(async () => {
  await redis.flush();
  // The command line reads Redis by the time of the machine.
  clock = new ManualClock(Date.now());
});
afterEach(async () => {
  // The first owns the store of the others.
  for (const gateway of gateways.toReversed()) await gateway.close();
  gateways = [];
});

/** One more, with the clock and the store of the first. */
async function start(): Promise<TestGateway> {
  const store = gateways[0] === undefined ? {} : { store: gateways[0].store };
  const gateway = await startTestGateway({ env: { REDIS_URL: redis.url }, clock, ...store });
  gateways.push(gateway);
  return gateway;
}

async function startTwo(): Promise<readonly [TestGateway, TestGateway]> {
  const a = await start();
  const b = await start();
  a.store.put({ evaluations: [anEvaluation()] });
  return [a, b];
}

/** Looks until it is so. */
function until(check: () => Promise<void>): Promise<void> {
  return vi.waitFor(check, { timeout: 15_000, interval: 20 });
}

const FLEET = { scope: 'fleet', processes: 2, problem: null };
const CUT_OFF = {
  scope: 'process',
  processes: 1,
  problem: 'Redis does not answer; the others are left out, of 2 known',
};

const show = async (gateway: TestGateway, path: string) => (await gateway.admin('GET', path)).json;

/** The answers of all of them. */
const expectOfAll = async (path: string, expected: object): Promise<void> => {
  for (const gateway of gateways) await until(async () => expect(await show(gateway, path)).toMatchObject(expected));
};

describe('the counts of the last hour', () => {
  test('are of all processes, whichever is asked, and say of how many; what one has counted outlives it', async () => {
    const [a, b] = await startTwo();
    const { keyId, token: key } = await a.issue({ perMinute: 5 });
    for (const gateway of [a, b, b, b]) await gateway.get(REPORTS, { key });
    await b.get('/v2/calls/none', { key });
    expect((await b.get(REPORTS, { key })).status).toBe(429);
    const list = { reads: 4, outcomes: { miss: 1, hit: 3 }, hitRatio: 0.75, storeCalls: 1, storeCallsPerRead: 0.25 };
    const stats = {
      classes: expect.arrayContaining([expect.objectContaining({ class: 'notFound', storeCalls: 1 })]) as unknown,
    };
    await expectOfAll('/api/cache', { ...FLEET, ...stats });
    for (const gateway of [a, b]) await until(async () => expect(await statsOf(gateway, 'list')).toMatchObject(list));
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
    const args = ['keys', 'show', keyId, '--json'];
    expect(await runJson(args, { env: { REDIS_URL: redis.url } })).toMatchObject({
      lastHour: { ...use, problem: null },
    });
    const cli = await runCli(['cache', 'stats', '--admin', b.adminUrl]);
    expect(cli.stdout).toMatch(/^Since \S+, by 2 processes\. /);
    // A process that begins anew does not make them go back.
    await b.close();
    gateways = [a];
    await until(async () => expect(await show(a, '/api/cache')).toMatchObject({ scope: 'fleet', processes: 1 }));
    expect(await statsOf(a, 'list')).toMatchObject(list);
    const again = await start();
    await until(async () => expect(await statsOf(again, 'list')).toMatchObject(list));
    clock.advance(3_600_000);
    await again.get(REPORTS, { key: await again.issueKey() });
    for (const gateway of [a, again])
      await until(async () => expect(await statsOf(gateway, 'list')).toMatchObject({ reads: 1 }));
  });

  test('without Redis are of one process, and say so; afterwards they are whole', async () => {
    const [a, b] = await startTwo();
    for (const gateway of [a, b])
      await until(async () =>
        expect((await gateway.admin('GET', '/api/fleet')).json).toMatchObject({ members: [{}, {}] }),
      );
    const key = await a.issueKey();
    for (const gateway of [a, b]) await gateway.get(REPORTS, { key });
    await until(async () => expect(await statsOf(a, 'list')).toMatchObject({ reads: 2 }));
    await redis.pause();
    try {
      await expectOfAll('/api/cache', CUT_OFF);
      await expectOfAll('/api/cache/top', CUT_OFF);
      await expectOfAll('/api/cache/history', CUT_OFF);
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
    for (const gateway of [a, b])
      await until(async () => expect(await statsOf(gateway, 'list')).toMatchObject({ reads: 3 }));
    await expectOfAll('/api/cache/top', FLEET);
  }, 40_000);
});
