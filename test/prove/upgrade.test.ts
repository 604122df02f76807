/**
 * Rolling from 0.3 to this version and back, over one Redis: nothing is lost, and a copy of the other's is a miss. It needs a
 * checkout of 0.3 with its packages:
 *
 *     git worktree add ../evalgate-0.3 a5d8bad8 && (cd ../evalgate-0.3 && npm ci)
 *     EVALGATE_0_3=$PWD/../evalgate-0.3 npm run prove -- test/prove/upgrade.test.ts
 */
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { z } from 'zod';
import { GatewayProcess, PROGRAM } from '../support/process.ts';
import { anEvaluation, aScorecard, aScoredCard, aTranscript, dealInsights, WORKSPACE_A } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { createStoreServer } from '../support/store-server.ts';
import { count, prove, skipLoudly } from './bar.ts';

const OTHER = process.env['EVALGATE_0_3'];
const V1 = `/v1/workspaces/${WORKSPACE_A}/reports`;
const PATHS = [
  V1,
  '/v2/calls',
  ...[`${V1}/ev_1`, '/v2/calls/ev_1'].flatMap((path) => [path, `${path}/scorecard`, `${path}/transcript`]),
  `${V1}/ev_1/deal-insights`,
  '/v2/scorecards/sc_1/rubric',
  '/v2/calls/no-such-call',
];
const MINUTE_LIMIT = 5000;
const keysSchema = z.object({ keys: z.array(z.object({ keyId: z.string(), status: z.string() })) });
const timesSchema = z.object({ classes: z.array(z.looseObject({ class: z.string() })) });
const auditSchema = z.object({ entries: z.array(z.object({ action: z.string(), target: z.string() })) });

const running: GatewayProcess[] = [];
const errors: string[] = [];

const redis = await forFile(startRedis());
await redis.flush();
const store = await forFile(createStoreServer());
store.put({
  evaluations: Array.from({ length: 9 }, (_, index) => anEvaluation({ _id: `ev_${index + 1}` })),
  transcripts: [aTranscript()],
  scoredCards: [aScoredCard()],
  dealInsights: [dealInsights()],
  scorecards: [aScorecard()],
});
afterAll(() => Promise.all(running.map((gateway) => gateway.kill())));

function onLine(line: string): void {
  if (/"level":"(?:error|fatal)"/.test(line)) errors.push(line);
}

async function start(program: string): Promise<GatewayProcess> {
  const env = { REDIS_URL: redis.url, UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, DRAIN_DELAY: '0s' };
  const gateway = await GatewayProcess.start({ env, program, onLine });
  running.push(gateway);
  return gateway;
}

/** The statuses of all reads, and what is left of the key's minute after the last of them. */
async function readAll(gateway: GatewayProcess, key: string) {
  const statuses: number[] = [];
  let remaining = 0;
  for (const path of PATHS) {
    const response = await gateway.get(path, key);
    statuses.push(response.status);
    remaining = Number(response.headers.get('x-ratelimit-minute-remaining'));
    await response.arrayBuffer();
  }
  return { statuses, remaining };
}

/** The state that operators have set, as a gateway shows it. */
async function stateOf(gateway: GatewayProcess) {
  const { keys } = keysSchema.parse(await gateway.administer('GET', '/api/keys'));
  const { classes } = timesSchema.parse(await gateway.administer('GET', '/api/cache/ttl'));
  const { entries } = auditSchema.parse(await gateway.administer('GET', '/api/audit'));
  return {
    keys: Object.fromEntries(keys.map(({ keyId, status }) => [keyId, status])),
    list: classes.find((one) => one.class === 'list'),
    rubric: classes.find((one) => one.class === 'rubric'),
    audit: entries.map(({ action, target }) => `${action} ${target}`),
  };
}

test('0.3, both, 0.4, both, 0.3: keys, quotas, times, revocations and purges stay in force', async (context) => {
  if (OTHER === undefined) skipLoudly(context, 'EVALGATE_0_3 names no checkout of 0.3');
  const old = join(OTHER, 'src/cli/evalgate.js');
  const expected = PATHS.map((path) => (path.endsWith('no-such-call') ? 404 : 200));
  let reads = 0;
  const results: string[] = [];
  const check = async (gateway: GatewayProcess, what: string): Promise<void> => {
    const { statuses, remaining } = await readAll(gateway, token);
    reads += PATHS.length;
    if (statuses.join() !== expected.join()) results.push(`${what}: ${statuses.join()}`);
    if (remaining > MINUTE_LIMIT - PATHS.length) results.push(`${what}: the quota began anew`);
  };

  const first = await start(old);
  const { token } = await first.issue({ perMinute: MINUTE_LIMIT });
  const revoked = await first.issue();
  await first.administer('PUT', '/api/cache/ttl/list', { fresh: '45s', for: '1h' });
  await first.status('/v2/calls', token);
  reads += 1;
  await check(first, '0.3 alone');
  const before = await stateOf(first);

  const second = await start(PROGRAM);
  await check(second, '0.4 beside 0.3');
  await check(first, '0.3 beside 0.4');
  expect(await stateOf(second)).toEqual(before);
  // Each obeys the other at once.
  await second.administer('DELETE', `/api/keys/${revoked.keyId}`);
  await expect.poll(() => first.status('/v2/calls', revoked.token), { timeout: 2000 }).toBe(403);
  for (const [by, at] of [
    [first, second],
    [second, first],
  ] as const) {
    const calls = store.calls('rubric');
    await by.administer('POST', '/api/cache/purge', { tags: ['scorecard:sc_1'] });
    await expect
      .poll(async () => [await at.status('/v2/scorecards/sc_1/rubric', token), store.calls('rubric') > calls], {
        timeout: 2000,
      })
      .toEqual([200, true]);
  }

  await second.administer('PUT', '/api/cache/ttl/rubric', { fresh: '2m' });
  await expect.poll(async () => (await stateOf(first)).rubric, { timeout: 2000 }).toMatchObject({ fresh: '2m' });
  await first.administer('PUT', '/api/cache/ttl/rubric', { fresh: '3m' });
  await expect.poll(async () => (await stateOf(second)).rubric, { timeout: 2000 }).toMatchObject({ fresh: '3m' });

  const rolled = await stateOf(second);
  await first.stop();
  await check(second, '0.4 alone');
  const third = await start(old);
  await check(third, '0.3 again, beside 0.4');
  await check(second, '0.4, beside 0.3 again');
  expect(await stateOf(third)).toEqual(rolled);
  await second.stop();
  await check(third, '0.3 alone again');
  expect(await third.status('/v2/calls', revoked.token)).toBe(403);

  prove(context, {
    name: 'rolling from 0.3 to 0.4 and back',
    bar: 'every answer as expected, no error in the log',
    measured: `${count(reads)} reads, ${results.length} unexpected, ${errors.length} errors: ${[...results, ...errors].join('; ')}`,
    ok: results.length === 0 && errors.length === 0,
  });
});
