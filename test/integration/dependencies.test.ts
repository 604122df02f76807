/** A gateway over a Redis that freezes, dies, falls silent and returns: what /readyz, the metrics and the log say of it. */
import { beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { logOf, readinessOf, samplesOf } from '../support/admin.ts';
import { runCli } from '../support/cli.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { forTest } from '../support/opened.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { withClient } from '../support/redis/client.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { WITHIN } from '../support/world.ts';

const REPORTS = `/v1/workspaces/${WORKSPACE_A}/reports`;
const REDIS_WELL = { 'redis-state': 'ok', 'redis-cache': 'ok', quota: 'ok', keys: 'ok' };
const REDIS_DOWN = { 'redis-state': 'degraded', 'redis-cache': 'degraded', quota: 'degraded', keys: 'degraded' };

let redis: TestRedis;
let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  redis = await forTest(startRedis({ isDurable: true }));
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await forTest(startTestGateway({ env: { REDIS_URL: redis.url, ...env } }));
  gateway.store.put({ evaluations: [anEvaluation()] });
  key = await gateway.issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });
  await become(REDIS_WELL);
}

const read = async (): Promise<number> => (await gateway.get(REPORTS, { key })).status;
const detailOf = async (name: string) => (await readinessOf(gateway)).of(name)?.detail;

async function become(expected: Readonly<Record<string, string>>): Promise<void> {
  await vi.waitFor(async () => expect((await readinessOf(gateway)).statuses).toMatchObject(expected), WITHIN);
}

const turnSchema = z.looseObject({ msg: z.string(), dependency: z.string(), lastedMs: z.number().optional() });

/** The lines about dependencies, in the order of their words, without those about what consumers get meanwhile. */
function turns(): z.output<typeof turnSchema>[] {
  const all = gateway.logLines.flatMap((line) => turnSchema.safeParse(JSON.parse(line)).data ?? []);
  return all.filter(({ dependency }) => dependency !== 'answers').toSorted((a, b) => (a.msg < b.msg ? -1 : 1));
}
const words = (): readonly string[] => turns().map(({ msg }) => msg);

const DOWN = [
  'Redis does not answer',
  'keys: Redis cannot be asked; only keys that it confirmed lately are let in',
  'quotas: this process goes on with its share of the limits',
];
const BACK = ['Redis answers again', 'keys: changes arrive again', 'quotas: exact over all processes again'];
/** After a Redis that answered all the time and refused changes. */
const TAKES_CHANGES = [
  'Redis takes changes again',
  'keys: they can be issued, changed and revoked again',
  'quotas: exact over all processes again',
];

/** The id of the gateway's connection for commands; null while there is none. */
async function stateConnectionOf({ url }: TestRedis): Promise<string | null> {
  const list = await withClient(url, (client) => client.call('CLIENT', 'LIST'));
  return /^id=(\d+) .* name=evalgate-state /m.exec(String(list))?.[1] ?? null;
}

/** Changes what everybody may do at Redis. */
const allow = (rule: string) => withClient(redis.url, (client) => client.call('ACL', 'SETUSER', 'default', rule));

test.each(['frozen', 'killed'] as const)(
  'C8: a Redis that is %s under load is reported once, and once as back; readiness and metrics follow',
  async (how) => {
    await start();
    await read();
    expect(turns()).toEqual([]);
    const used = Object.keys(await samplesOf(gateway, 'evalgate_redis_memory_used_bytes', 'evalgate_redis_keys'));
    expect(used).toHaveLength(4);

    if (how === 'frozen') await redis.pause();
    else await redis.kill();
    await vi.waitFor(async () => {
      expect(await Promise.all([read(), read(), read()])).toEqual([200, 200, 200]);
      expect((await readinessOf(gateway)).statuses).toMatchObject(REDIS_DOWN);
    }, WITHIN);
    for (let round = 0; round < 20; round += 1) await Promise.all([read(), read(), read()]);
    expect(words()).toEqual(DOWN);
    expect(await detailOf('keys')).toBe(
      'Redis cannot be asked: keys that it confirmed within 10m stay good, the last of them until 2026-01-15T12:10:00.000Z; no other key is let in',
    );
    expect(await detailOf('quota')).toBe('Redis does not decide: this process goes on as the only process');
    expect(
      await samplesOf(gateway, 'evalgate_redis_', 'evalgate_quota_exact', 'evalgate_dependency_up{dependency="re'),
    ).toMatchObject({
      'evalgate_redis_up{role="state"}': 0,
      'evalgate_redis_up{role="cache"}': 0,
      'evalgate_redis_hearing{role="state",state="alone"}': 1,
      'evalgate_redis_hearing{role="state",state="hearing"}': 0,
      'evalgate_dependency_up{dependency="redis-state"}': 0,
      evalgate_quota_exact: 0,
    });
    expect(await samplesOf(gateway, 'evalgate_redis_memory_used_bytes', 'evalgate_redis_keys')).toEqual({});

    gateway.clock.advance(60_000);
    if (how === 'frozen') await redis.resume();
    else await redis.restart();
    await vi.waitFor(async () => {
      await read();
      expect((await readinessOf(gateway)).statuses).toMatchObject(REDIS_WELL);
    }, WITHIN);
    const back = turns().filter(({ lastedMs }) => lastedMs !== undefined);
    expect(back.map(({ msg, lastedMs }) => [msg, lastedMs])).toEqual(BACK.map((msg) => [msg, 60_000]));
    expect(words()).toHaveLength(DOWN.length + BACK.length);
    expect(await samplesOf(gateway, 'evalgate_redis_up', 'evalgate_redis_hearing{role="state"')).toEqual({
      'evalgate_redis_up{role="state"}': 1,
      'evalgate_redis_up{role="cache"}': 1,
      'evalgate_redis_hearing{role="state",state="hearing"}': 1,
      'evalgate_redis_hearing{role="state",state="deaf"}': 0,
      'evalgate_redis_hearing{role="state",state="alone"}': 0,
    });
  },
  40_000,
);

test('the doctor of a gateway without Redis says which dependency is down, and then that keys cannot be asked for', async () => {
  await start();
  await redis.kill();
  await become(REDIS_DOWN);
  const { status, stdout } = await runCli(['doctor', '--admin', gateway.adminUrl]);
  expect(status).toBe(1);
  expect(stdout).toMatch(/^fail {4}redis-state +does not answer/m);
  expect(stdout).toMatch(/^fail {4}admin +The key registry cannot be asked/m);
});

test('C8: while Redis answers and its messages do not arrive it is asked before memory is used, and that is reported', async () => {
  await start();
  await read();
  expect(await read()).toBe(200);
  // Subscriptions end and are refused from then on, as is the wait for events; all else is answered.
  await allow('-xread');
  await allow('resetchannels');
  await become({ 'redis-state': 'degraded', 'redis-cache': 'degraded', quota: 'ok', keys: 'degraded' });
  expect(await detailOf('keys')).toBe('changes may be missed: each key is confirmed at Redis before it is used');
  expect(words()).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^Redis refuses what a gateway needs: NOPERM/),
      'keys: changes may be missed; each key is confirmed before it is used',
    ]),
  );
  expect(words()).not.toContain('Redis does not answer');
  expect(await samplesOf(gateway, 'evalgate_redis_')).toMatchObject({
    'evalgate_redis_up{role="state"}': 1,
    'evalgate_redis_hearing{role="state",state="deaf"}': 1,
  });
  expect(await read()).toBe(200);
  await allow('allchannels');
  await allow('+xread');
  await become(REDIS_WELL);
  expect(words()).toEqual(expect.arrayContaining(['Redis answers again', 'keys: changes arrive again']));
}, 40_000);

const STARTING = { code: 503, status: 'starting' };

test('a gateway is not ready before Redis has answered once, and stays ready when it is gone later', async () => {
  await redis.kill();
  gateway = await forTest(startTestGateway({ env: { REDIS_URL: redis.url } }));
  expect(await readinessOf(gateway)).toMatchObject(STARTING);
  expect(await detailOf('redis-state')).toBe(
    'has not answered since this process started (ECONNREFUSED): not ready until it has answered once',
  );
  expect(await samplesOf(gateway, 'evalgate_readiness')).toMatchObject({
    'evalgate_readiness{status="starting"}': 1,
    'evalgate_readiness{status="ready"}': 0,
  });
  expect((await gateway.admin('GET', '/api/fleet')).json).toMatchObject({ members: [{ status: 'starting' }] });
  await become(REDIS_DOWN);
  expect(await samplesOf(gateway, 'evalgate_quota_exact')).toEqual({ evalgate_quota_exact: 0 });
  const never = 'Redis could not be asked since this process started: no key is let in until it answers';
  expect(await detailOf('keys')).toBe(never);
  // Nothing is said of keys that were confirmed, since none ever was.
  gateway.clock.advance(3_600_000);
  expect(await detailOf('keys')).toBe(never);
  const [about, ...more] = logOf(gateway, 'Redis does not answer');
  expect([about, more]).toMatchObject([{ level: 'warn', dependency: 'redis' }, []]);
  expect(JSON.stringify(about)).toContain('ECONNREFUSED');

  await redis.restart();
  await become(REDIS_WELL);
  expect(await readinessOf(gateway)).toMatchObject({ code: 200, status: 'ready' });
  expect((await gateway.admin('GET', '/api/fleet')).json).toMatchObject({ members: [{ status: 'ready' }] });

  await redis.kill();
  await become(REDIS_DOWN);
  expect(await readinessOf(gateway)).toMatchObject({ code: 200, status: 'ready' });
  expect(await detailOf('redis-state')).toMatch(/^does not answer(?: \(E[A-Z]+\))?: this process goes on by itself$/);
}, 40_000);

test.each([
  [
    'no password',
    (url: string) => url,
    'NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time',
  ],
  [
    'a wrong password',
    (url: string) => url.replace('//', '//:hunter2@'),
    'WRONGPASS invalid username-password pair or user is disabled.',
  ],
])('a gateway with %s for Redis is never ready, and says why', async (_, address, reply) => {
  await allow('>correct-horse');
  gateway = await forTest(startTestGateway({ env: { REDIS_URL: address(redis.url) } }));
  await vi.waitFor(async () => expect(await detailOf('redis-state')).toContain(reply), WITHIN);
  expect(await readinessOf(gateway)).toMatchObject(STARTING);
  expect(await detailOf('redis-state')).toBe(
    `refuses the user or the password of REDIS_URL (${reply}): not ready until it has answered once`,
  );
  expect((await gateway.admin('GET', '/readyz')).text).not.toContain('hunter2');
  const cause = `Redis refuses the user or the password of REDIS_URL (${reply})`;
  expect((await gateway.admin('GET', '/api/fleet')).json).toMatchObject({
    problem: `${cause}, so nothing is heard of other processes (1 known in all)`,
  });
  const cutOff = { scope: 'process', problem: `${cause}; no other process is known` };
  expect((await gateway.admin('GET', '/api/cache')).json).toMatchObject(cutOff);
});

test('a password that is changed while the gateway runs is named as the cause', async () => {
  await start();
  await allow('>correct-horse');
  await withClient(redis.url.replace('//', '//:correct-horse@'), async (client) => {
    for (const type of ['normal', 'pubsub']) await client.call('CLIENT', 'KILL', 'TYPE', type);
  });
  await become(REDIS_DOWN);
  await vi.waitFor(async () => expect(await detailOf('redis-state')).toMatch(/\((?:NOAUTH|WRONGPASS) /), WITHIN);
  expect(await detailOf('redis-state')).toMatch(
    /^refuses the user or the password of REDIS_URL \([A-Z]+ .*\): this process goes on by itself$/,
  );
  expect(await readinessOf(gateway)).toMatchObject({ code: 200, status: 'ready' });
  expect(words().join()).toMatch(/Redis refuses what a gateway needs: (?:NOAUTH|WRONGPASS) /);
});

test.each([
  ['scripts', '-evalsha -eval', "NOPERM this user has no permissions to run the 'eval(?:sha)?' command"],
  ['looks for changes', '-hmget', "ERR The user executing the script can't run this command or subcommand"],
])('a user who may not send %s any more is named as the cause', async (_, rule, reply) => {
  await start();
  await read();
  await withClient(redis.url, async (client) => {
    for (const one of rule.split(' ')) await client.call('ACL', 'SETUSER', 'default', one);
  });
  await vi.waitFor(async () => {
    await read();
    expect(await detailOf('redis-state')).toMatch(
      new RegExp(`^refuses .*\\(${reply}\\).*: this process goes on by itself$`),
    );
  }, WITHIN);
  await become({ 'redis-state': 'degraded', keys: 'degraded' });
});

test('a primary that has become a read-only replica is named as the cause', async () => {
  await start();
  // No process listens on port 1.
  await withClient(redis.url, (client) => client.call('REPLICAOF', '127.0.0.1', '1'));
  await vi.waitFor(async () => {
    expect(await read()).toBe(200);
    expect(await detailOf('redis-state')).toMatch(/read-only replica \(READONLY /);
  }, WITHIN);
  // Until the primary was looked for once more, at the same address: that is neither an outage nor its end.
  const connection = await stateConnectionOf(redis);
  await vi.waitFor(async () => {
    expect(await read()).toBe(200);
    expect([connection, null]).not.toContain(await stateConnectionOf(redis));
    expect(await detailOf('redis-state')).toMatch(/read-only replica \(READONLY /);
  }, WITHIN);
  expect(words()).toEqual([
    'Redis refuses changes: limits are per process',
    'keys: Redis refuses changes; none can be issued, changed or revoked',
    'quotas: this process goes on with its share of the limits',
  ]);
  await withClient(redis.url, (client) => client.call('REPLICAOF', 'NO', 'ONE'));
  await become(REDIS_WELL);
  const back = turns().filter(({ lastedMs }) => lastedMs !== undefined);
  // The new connections can be noticed before their subscription stands.
  const others = back.map(({ msg }) => msg).filter((msg) => msg !== 'keys: changes arrive again');
  expect(others).toEqual(TAKES_CHANGES);
}, 40_000);

test('a full Redis that becomes a read-only replica is named as that from then on', async () => {
  await start();
  await withClient(redis.url, (client) => client.config('SET', 'maxmemory', '1'));
  await vi.waitFor(async () => {
    await read();
    expect(await detailOf('redis-state')).toMatch(/^Redis is full/);
    expect((await readinessOf(gateway)).statuses).toMatchObject({ quota: 'degraded' });
  }, WITHIN);
  await withClient(redis.url, async (client) => {
    await client.config('SET', 'maxmemory', '0');
    await client.call('REPLICAOF', '127.0.0.1', '1');
  });
  await vi.waitFor(async () => {
    expect(await detailOf('redis-state')).toMatch(/^Redis is a read-only replica \(READONLY .*\); limits/);
  }, WITHIN);
});

const FULL = "Redis is full (OOM command not allowed when used memory > 'maxmemory'.)";
const REFUSED =
  'limits are per process; no key can be created, activated, edited, rotated or imported; revoking and deprecating keys, purges, times and maintenance work';

test('a full Redis is named with all that follows from it, by a process that nobody asks for anything too', async () => {
  await start();
  const doctor = ['doctor', '--admin', gateway.adminUrl];
  expect((await runCli(doctor)).status).toBe(0);
  await withClient(redis.url, (client) => client.config('SET', 'maxmemory', '1'));
  await become(REDIS_DOWN);
  expect(await detailOf('redis-state')).toBe(`${FULL}; ${REFUSED}`);
  expect(await detailOf('redis-cache')).toBe(`${FULL}; new answers are kept in memory only`);
  expect(await detailOf('quota')).toBe('Redis does not decide: this process goes on as the only process');
  expect(await detailOf('keys')).toBe(
    `${FULL}; keys stay good, and can be revoked and deprecated; none can be created, activated, edited, rotated or imported`,
  );
  expect(await readinessOf(gateway)).toMatchObject({ code: 200, status: 'ready' });
  expect((await gateway.admin('GET', '/api/fleet')).json).toMatchObject({
    problem: `${FULL}, so nothing is heard of other processes (1 known in all)`,
  });
  const problem = `${FULL}; what the other processes have counted since is left out`;
  expect((await gateway.admin('GET', '/api/cache')).json).toMatchObject({ scope: 'fleet', processes: 1, problem });
  const cli = await runCli(['cache', 'stats', '--admin', gateway.adminUrl]);
  expect(cli.stdout).toContain(`, by 1 process: ${problem}. `);
  const { status, stdout } = await runCli(doctor);
  expect(status).toBe(1);
  expect(stdout).toMatch(
    /^fail {4}redis-state +Redis is full \(OOM .*\); limits are per process; no key can be created, .* maintenance work \(since .*\)\n +What to do: See the runbook/m,
  );
  expect(stdout).toMatch(/^ok {6}ready +the gateway is ready$/m);
  expect(stdout).toMatch(/^ok {6}admin +a gateway runs/m);
  const full = [
    'Redis is full (maxmemory): limits are per process, and only what needs no memory can be changed',
    'keys: Redis is full; none can be created, activated, edited, rotated or imported',
    'quotas: this process goes on with its share of the limits',
  ];
  expect(words()).toEqual(full);
  expect(await read()).toBe(200);

  await withClient(redis.url, (client) => client.config('SET', 'maxmemory', '0'));
  await become(REDIS_WELL);
  expect(words()).toHaveLength(2 * full.length);
  expect(words()).toEqual(expect.arrayContaining(TAKES_CHANGES));
}, 40_000);

test('a Redis that comes back empty is reported: all keys are gone', async () => {
  await start();
  expect(await read()).toBe(200);
  await redis.flush();
  await vi.waitFor(async () => expect(await read()).toBe(401), WITHIN);
  const told = 'Redis has lost what the gateways keep there';
  const lines = () => gateway.logLines.filter((line) => line.includes(told));
  await vi.waitFor(() => expect(lines()).toHaveLength(1), WITHIN);
  expect(JSON.parse(lines()[0] ?? '')).toMatchObject({ level: 'error' });
  await gateway.admin('POST', '/api/cache/purge', { tags: ['all'] });
  expect(lines()).toHaveLength(1);
});

test('a Redis that lost only what operators had set is reported for an hour', async () => {
  await start();
  expect(await detailOf('history')).toBe('purges and settings are as they were recorded');
  await gateway.admin('PUT', '/api/cache/maintenance', { for: '3h' });
  await become({ maintenance: 'degraded' });
  await withClient(redis.url, (client) => client.del('evalgate:{keys}:state'));
  await become({ history: 'degraded', maintenance: 'ok', keys: 'ok' });
  expect(await detailOf('history')).toMatch(
    /^Redis lost purges and settings at 12:00: times and maintenance are what it holds now, .*; reported until 13:00$/,
  );
  gateway.clock.advance(3_600_000);
  await become({ history: 'ok' });
});

test('two uses of Redis are distinguished if they are two, and are one if they are one', async () => {
  await start({ REDIS_CACHE_URL: `${redis.url}/1` });
  const started = logOf(gateway, 'started');
  expect(started).toMatchObject([{ redis: 'one for state, one for the cache' }]);
  expect(JSON.stringify(started)).not.toContain(redis.url);
  await redis.kill();
  await become(REDIS_DOWN);
  expect(logOf(gateway, 'Redis does not answer').map(({ dependency }) => dependency)).toEqual(
    expect.arrayContaining(['redis-state', 'redis-cache']),
  );
});

test('commands are timed if they are sent, and counted if they fail', async () => {
  await start();
  await read();
  const name = 'evalgate_redis_command_duration_seconds_count';
  const counts = await samplesOf(gateway, name);
  for (const role of ['state', 'cache']) expect(counts[`${name}{role="${role}"}`]).toBeGreaterThan(0);
  await redis.pause();
  await become(REDIS_DOWN);
  const failures = await samplesOf(gateway, 'evalgate_redis_command_failures_total');
  await redis.resume();
  expect(failures['evalgate_redis_command_failures_total{role="state",reason="timeout"}']).toBeGreaterThan(0);
});
