/** A whole gateway over a Redis that freezes, dies and returns: what /readyz, the metrics and the log say of it. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const REPORTS = `/v1/workspaces/${WORKSPACE_A}/reports`;
const WITHIN = { timeout: 15_000, interval: 25 };

let redis: TestRedis;
let gateway: TestGateway;
beforeEach(async () => {
  redis = await startRedis({ controls: true });
});
afterEach(async () => {
  await gateway.close();
  await redis.close();
});

const readinessSchema = z.object({
  status: z.string(),
  dependencies: z.array(
    z.object({ name: z.string(), status: z.string(), since: z.iso.datetime(), detail: z.string() }),
  ),
});

async function statuses(): Promise<Record<string, string>> {
  const { dependencies } = readinessSchema.parse((await gateway.admin('GET', '/readyz')).json);
  return Object.fromEntries(dependencies.map(({ name, status }) => [name, status]));
}

const REDIS_WELL = { 'redis-state': 'ok', 'redis-cache': 'ok', quota: 'ok', keys: 'ok' };
const REDIS_DOWN = { 'redis-state': 'degraded', 'redis-cache': 'degraded', quota: 'degraded', keys: 'degraded' };

const lineSchema = z.looseObject({ level: z.string(), msg: z.string(), lastedMs: z.number().optional() });

/** The lines about turns so far: all but those that a request or the start has. */
function turnLines(): z.output<typeof lineSchema>[] {
  return gateway.logLines.map((line) => lineSchema.parse(JSON.parse(line))).filter((line) => 'dependency' in line);
}

async function metric(name: string): Promise<readonly string[]> {
  const { text } = await gateway.admin('GET', '/metrics');
  return text.split('\n').filter((line) => line.startsWith(name));
}

const DOWN_LINES = [
  'Redis does not answer',
  'keys: Redis cannot be asked; only keys that it confirmed lately are let in',
  'quotas: this process goes on with its share of the limits',
];
const BACK_LINES = [
  'Redis answers again',
  'keys: every change is heard of again',
  'quotas: exact over all processes again',
];

test.each(['frozen', 'killed'] as const)(
  'a Redis that is %s under load is told of once, and once as back; the page and the metrics follow',
  async (how) => {
    gateway = await startTestGateway({ env: { REDIS_URL: redis.url } });
    gateway.store.put({ evaluations: [anEvaluation()] });
    const key = await gateway.issueKey();
    const ask = () => gateway.get(REPORTS, { key });
    await ask();
    await vi.waitFor(async () => expect(await statuses()).toMatchObject(REDIS_WELL), WITHIN);
    expect(turnLines()).toEqual([]);
    expect(await metric('evalgate_redis_memory_used_bytes')).toHaveLength(2);

    if (how === 'frozen') await redis.pause();
    else await redis.kill();
    await vi.waitFor(async () => {
      expect((await Promise.all([ask(), ask(), ask()])).map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(await statuses()).toMatchObject(REDIS_DOWN);
    }, WITHIN);
    for (let round = 0; round < 20; round += 1) await Promise.all([ask(), ask(), ask()]);
    expect(
      turnLines()
        .map(({ msg }) => msg)
        .toSorted(),
    ).toEqual(DOWN_LINES);
    expect(await metric('evalgate_redis_up')).toEqual([
      'evalgate_redis_up{role="state"} 0',
      'evalgate_redis_up{role="cache"} 0',
    ]);
    expect(await metric('evalgate_redis_memory_used_bytes')).toEqual([]);
    expect(await metric('evalgate_dependency_up{dependency="redis-state"}')).toEqual([
      'evalgate_dependency_up{dependency="redis-state"} 0',
    ]);
    expect(await metric('evalgate_quota_exact')).toEqual(['evalgate_quota_exact 0']);

    gateway.clock.advance(60_000);
    if (how === 'frozen') await redis.resume();
    else await redis.restart();
    await vi.waitFor(async () => {
      await ask();
      expect(await statuses()).toMatchObject(REDIS_WELL);
    }, WITHIN);
    const back = turnLines().slice(DOWN_LINES.length);
    expect(back.map(({ msg }) => msg).toSorted()).toEqual(BACK_LINES);
    for (const { lastedMs } of back) expect(lastedMs).toBe(60_000);
    expect(await metric('evalgate_redis_up')).toEqual([
      'evalgate_redis_up{role="state"} 1',
      'evalgate_redis_up{role="cache"} 1',
    ]);
  },
  40_000,
);

test('a Redis that is not there at the start is told of once, with why', async () => {
  await redis.kill();
  gateway = await startTestGateway({ env: { REDIS_URL: redis.url } });
  await vi.waitFor(async () => expect(await statuses()).toMatchObject({ keys: 'degraded' }), WITHIN);
  expect(await statuses()).toMatchObject(REDIS_DOWN);
  expect(await metric('evalgate_quota_exact')).toEqual(['evalgate_quota_exact 0']);
  const { dependencies } = readinessSchema.parse((await gateway.admin('GET', '/readyz')).json);
  expect(dependencies.find(({ name }) => name === 'keys')?.detail).toBe(
    'Redis could not be asked since this process started: no key is let in until it answers',
  );
  const about = turnLines().filter(({ msg }) => msg === 'Redis does not answer');
  expect(about).toHaveLength(1);
  expect(about[0]).toMatchObject({ level: 'warn', dependency: 'redis' });
  expect(JSON.stringify(about[0])).toContain('ECONNREFUSED');
});

test('the start is told with what it stands on, and no address but its own', async () => {
  gateway = await startTestGateway({ env: { REDIS_URL: redis.url } });
  const lines = gateway.logLines.map((line) => lineSchema.parse(JSON.parse(line)));
  const started = lines.filter(({ msg }) => msg === 'started');
  expect(started).toMatchObject([
    { level: 'info', public: gateway.publicUrl, admin: gateway.adminUrl, store: 'configured', redis: 'one for all' },
  ]);
  for (const secret of [redis.url, gateway.store.url, gateway.store.token]) {
    expect(JSON.stringify(started)).not.toContain(secret);
  }
});

test('commands are timed where they are sent', async () => {
  gateway = await startTestGateway({ env: { REDIS_URL: redis.url } });
  const key = await gateway.issueKey();
  await gateway.get(REPORTS, { key });
  for (const role of ['state', 'cache']) {
    const [line = ''] = await metric(`evalgate_redis_command_duration_seconds_count{role="${role}"}`);
    expect(Number(line.split(' ')[1])).toBeGreaterThan(0);
  }
});
