/**
 * Every refusal of Redis is shown word for word, in `/readyz`, the log and the metrics, with what to grant or change; a
 * gateway that may not do what it needs is not ready, or goes on as without Redis.
 */
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:net';
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readinessOf } from '../support/admin.ts';
import { runCli } from '../support/cli.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { forFile, forTest } from '../support/opened.ts';
import { anEvaluation, aTranscript } from '../support/records.ts';
import { connectWhenUp, withClient } from '../support/redis/client.ts';
import { launchRedis, onHost, type ServerOptions } from '../support/redis/server.ts';
import { redisSource } from '../support/redis/source.ts';
import { spawnCluster, type TestRedis } from '../support/redis.ts';
import { dependency, quotasAreExact, redisIsWell, WITHIN } from '../support/world.ts';
import { findRedis } from './redis-findings.ts';

async function launch(options: ServerOptions = {}): Promise<TestRedis> {
  return onHost(await redisSource(), 1, (host, [port = 0]) => launchRedis(host, port, options));
}

const redis = await forFile(launch());
const client = await connectWhenUp(redis.url);
afterAll(() => client.disconnect());
beforeEach(async () => {
  await client.flushall();
  await grant();
});

const DOCUMENTED = ['on', '>sesame-opens', '~evalgate:*', '&evalgate:*', '+@all', '-@dangerous', '+info'];
const GRANT = 'grant its user ~evalgate:* &evalgate:* +@all -@dangerous +info, and rename no command';

/** Gives the gateways' user the documented rights, and then takes those. */
async function grant(...less: readonly string[]): Promise<void> {
  await client.acl('SETUSER', 'gateway', 'reset', ...DOCUMENTED, ...less);
}

const USER_URL = redis.url.replace('redis://', 'redis://gateway:sesame-opens@');

const start = (url = USER_URL): Promise<TestGateway> => forTest(startTestGateway({ env: { REDIS_URL: url } }));

const stateIs = (gateway: TestGateway, said: unknown): Promise<void> =>
  vi.waitFor(async () => expect(await dependency(gateway, 'redis-state')).toEqual(said), WITHIN);

async function metricsOf(gateway: TestGateway): Promise<string> {
  return (await gateway.admin('GET', '/metrics')).text;
}

describe.each<[right: string, less: readonly string[], reply: RegExp]>([
  ['a command of one script', ['-lindex'], /ERR The user executing the script can't run this command or subcommand/],
  ['a command of heartbeats', ['-zadd'], /ERR The user executing the script can't run this command or subcommand/],
  ['scripts', ['-evalsha', '-eval'], /NOPERM this user has no permissions to run the 'eval(?:sha)?' command/],
  ['channels', ['resetchannels'], /ERR The user executing the script can't publish to|ERR .*channels?/],
  ['messages', ['-subscribe'], /NOPERM this user has no permissions to run the 'subscribe' command/],
  ['its names', ['resetkeys', '~other:*'], /(?:ERR|NOPERM) .*keys?/],
])('a user without the right to %s', (_right, less, reply) => {
  test('keeps gateways from becoming ready, with the reply word for word and the rights to grant', async () => {
    await grant(...less);
    const [gateway, other] = [await start(), await start()];
    for (const one of [gateway, other]) {
      await stateIs(one, expect.stringMatching(reply));
      await stateIs(one, expect.stringContaining(GRANT));
      expect((await readinessOf(one)).status).toBe('starting');
    }
    const replies = await Promise.all(
      Array.from({ length: 10 }, async () => gateway.get('/v2/key', { key: `evg_${'0'.repeat(38)}` })),
    );
    expect(replies.filter(({ status }) => status === 200)).toEqual([]);
    await vi.waitFor(() => expect(gateway.logLines.join('')).toMatch(reply), WITHIN);
    expect(await metricsOf(gateway)).toMatch(new RegExp(`^evalgate_redis_refusal\\{.*${reply.source}.*\\} 1$`, 'm'));
    for (const text of [...gateway.logLines, await metricsOf(gateway)]) expect(text).not.toMatch(/sesame|delete/i);
    await grant();
    for (const one of [gateway, other]) await redisIsWell(one);
    expect((await readinessOf(gateway)).status).toBe('ready');
  });

  test('is found by the doctor, with its reply and the rights to grant', async () => {
    await grant(...less);
    const { found } = await findRedis({ REDIS_URL: USER_URL });
    const failures = found.filter(({ status }) => status === 'fail');
    expect(failures.map(({ advice }) => advice)).toEqual([
      'Give its user these rights: ACL SETUSER name ~evalgate:* &evalgate:* +@all -@dangerous +info',
    ]);
    expect(failures[0]?.message).toMatch(reply);
  });
});

test('a right that is taken from a gateway that runs is missed within half a minute, also if nobody uses it', async () => {
  const now = performance.now.bind(performance);
  let laterMs = 0;
  const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + laterMs);
  onTestFinished(() => clock.mockRestore());
  const gateway = await start();
  await redisIsWell(gateway);
  await grant('-lindex');
  await redisIsWell(gateway);
  laterMs = 30_000;
  await stateIs(gateway, expect.stringMatching(/ERR The user executing the script can't run this command/));
  await grant();
  await redisIsWell(gateway);
});

test('a purge that may not delete is in force, says what Redis refused and fails', async () => {
  const gateway = await start();
  await redisIsWell(gateway);
  const key = await gateway.issueKey();
  const evaluation = anEvaluation();
  gateway.store.put({ evaluations: [evaluation] });
  const path = `/v2/calls/${evaluation['_id']}`;
  for (let read = 0; read < 2; read += 1) await gateway.get(path, { key });
  await grant('-unlink', '-del');
  const admin = ['--admin', gateway.adminUrl];
  const { status, stdout } = await runCli(['cache', 'purge', '--tag', 'all', '--yes', '--wait', ...admin]);
  expect([status, stdout]).toEqual([
    1,
    expect.stringMatching(/Redis refuses: ERR The user executing the script can't run/),
  ]);
  expect(stdout).toContain('IN FORCE, BYTES NOT DELETED');
  expect((await gateway.get(path, { key })).headers['cache-status']).toMatch(/fwd=/);
  await grant();
  await redisIsWell(gateway);
  const again = await runCli(['cache', 'purge', '--tag', 'all', '--yes', '--wait', ...admin]);
  expect([again.status, again.stdout]).toEqual([0, expect.not.stringContaining('refuses')]);
});

test('a right that is taken from gateways that run: limits are shared as without Redis, and no quota is blamed', async () => {
  const [gateway, other] = [await start(), await start()];
  gateway.store.put({ evaluations: [anEvaluation()] });
  for (const one of [gateway, other]) await quotasAreExact(one);
  await vi.waitFor(async () => {
    expect((await gateway.admin('GET', '/api/fleet')).json).toMatchObject({ members: [{}, {}] });
    expect((await other.admin('GET', '/api/fleet')).json).toMatchObject({ members: [{}, {}] });
  }, WITHIN);
  const key = await gateway.issueKey({ perMinute: 6 });
  for (const one of [gateway, other]) expect((await one.get('/v2/key', { key })).status).toBe(200);
  await grant('-lindex', '-llen');
  const asked = await Promise.all(
    [gateway, other].flatMap((one) => Array.from({ length: 10 }, () => one.get('/v2/calls', { key }))),
  );
  // Each its half; a key that a gateway has just looked up for the first time may not be confirmed there yet.
  expect(asked.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(6);
  for (const one of [gateway, other]) {
    await stateIs(one, expect.stringContaining("ERR The user executing the script can't run this command"));
    expect(await dependency(one, 'quota')).toMatch(/^degraded: Redis does not decide/);
    expect(one.logLines.join('')).not.toMatch(/one quota|delete/i);
  }
  await grant();
  for (const one of [gateway, other]) await redisIsWell(one);
});

test.each([
  ['EVALSHA', 'ERR unknown command'],
  ['LINDEX', 'ERR Unknown Redis command called from script'],
])('a renamed %s is reported as what Redis says', async (command, reply) => {
  const renamed = await forTest(launch({ config: [`rename-command ${command} ""`] }));
  const gateway = await start(renamed.url);
  await stateIs(gateway, expect.stringContaining(reply));
  await stateIs(gateway, expect.stringContaining('rename no command'));
  expect((await readinessOf(gateway)).status).toBe('starting');
});

test('a renamed CLIENT changes nothing', async () => {
  const renamed = await forTest(launch({ config: ['rename-command CLIENT ""'] }));
  const gateway = await start(renamed.url);
  await redisIsWell(gateway);
  expect((await readinessOf(gateway)).status).toBe('ready');
});

describe('a Cluster', () => {
  test('that is named as a single server', async () => {
    const cluster = await forTest(spawnCluster());
    const url = cluster.servers[0] ?? '';
    const gateway = await start(url);
    const said =
      /is a node of a Cluster, and holds only some of the keys \(MOVED .*\): begin REDIS_URL with redis\+cluster:\/\//;
    await stateIs(gateway, expect.stringMatching(said));
    expect((await readinessOf(gateway)).status).toBe('starting');
    const { found } = await findRedis({ REDIS_URL: url });
    expect(found.map(({ advice }) => advice)).toEqual([
      'It is a node of a Cluster: begin REDIS_URL with redis+cluster:// or rediss+cluster://.',
    ]);
  });
});

test('a Cluster whose nodes do not say at which host they are is asked where it was found', async () => {
  const config = ['cluster-preferred-endpoint-type unknown-endpoint'];
  const cluster = await forTest(spawnCluster({ config }));
  const gateway = await start(cluster.url);
  gateway.store.put({ evaluations: [anEvaluation()] });
  await redisIsWell(gateway);
  const key = await gateway.issueKey();
  expect((await gateway.get('/v2/calls', { key })).status).toBe(200);
  await quotasAreExact(gateway);
  const { ok, found } = await findRedis({ REDIS_URL: cluster.url });
  expect([ok, found.filter(({ status }) => status === 'fail').map(({ message }) => message)]).toEqual([
    false,
    ['REDIS_URL: loses all API keys when it restarts: it saves nothing'],
  ]);
  // The slots move, and a redirection names a port only.
  const slot = await withClient(cluster.servers[0] ?? '', (one) => one.cluster('KEYSLOT', '{keys}'));
  const from = await cluster.ownerOf(slot);
  const to = cluster.primaries.find((one) => one !== from) ?? from;
  await cluster.beginMove(slot, to);
  await cluster.endMove(slot, to);
  expect(await gateway.issueKey()).not.toBe(key);
  await redisIsWell(gateway);
});

describe('a value that Redis refuses for its size', () => {
  const CALLS = Array.from({ length: 3 }, (_, i) => `ev_large_${i}`);
  const PATHS = CALLS.map((id) => `/v2/calls/${id}/transcript`);

  async function read(url: string) {
    const small = await forTest(launch({ config: ['proto-max-bulk-len 1048576'] }));
    const admin = await connectWhenUp(small.url);
    onTestFinished(() => admin.disconnect());
    await admin.acl('SETUSER', 'gateway', 'reset', ...DOCUMENTED);
    const gateway = await start(small.url.replace('redis://', url));
    gateway.store.put({
      evaluations: CALLS.map((id) => anEvaluation({ _id: id })),
      // It is no smaller when it is compressed.
      transcripts: CALLS.map((id) =>
        aTranscript({ evaluationId: id, body: randomBytes(2_500_000).toString('base64') }),
      ),
    });
    await redisIsWell(gateway);
    const key = await gateway.issueKey();
    const ids = async (): Promise<readonly string[]> =>
      [...String(await admin.call('CLIENT', 'LIST')).matchAll(/^id=(\d+) .* name=evalgate-cache /gm)].map(
        ([, id = '']) => id,
      );
    const before = await ids();
    const statuses: number[] = [];
    for (const path of PATHS) statuses.push((await gateway.get(path, { key })).status);
    expect(statuses).toEqual([200, 200, 200]);
    return { gateway, before, after: await ids(), key, ids };
  }

  test('costs no connection', async () => {
    const { gateway, before, after } = await read('redis://');
    expect(after).toEqual(before);
    expect(await dependency(gateway, 'redis-cache')).toMatch(/^ok/);
  });

  test('costs one connection of a user who may not read the limit, and is not tried again', async () => {
    const { gateway, before, key, ids } = await read('redis://gateway:sesame-opens@');
    await redisIsWell(gateway);
    const after = await ids();
    expect(before.length + after.length).toBe(2);
    await gateway.admin('POST', '/api/cache/purge', { tags: ['all'] });
    for (const path of PATHS) expect((await gateway.get(path, { key })).status).toBe(200);
    expect(await ids()).toEqual(after);
    expect(gateway.logLines.join('')).not.toContain('Redis refuses');
  });
});

describe('what Redis says while it refuses connections', () => {
  test('is kept: too many clients', async () => {
    const full = await forTest(launch());
    const gateway = await start(full.url);
    await redisIsWell(gateway);
    const admin = await connectWhenUp(full.url);
    onTestFinished(() => admin.disconnect());
    await admin.config('SET', 'maxclients', '1');
    await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const said = 'refuses the connection (ERR max number of clients reached)';
    await stateIs(gateway, expect.stringContaining(said));
    await vi.waitFor(() => expect(gateway.logLines.join('')).toContain('max number of clients'), WITHIN);
    const late = await start(`${full.url}/3`);
    await stateIs(late, expect.stringContaining(said));
    const { found } = await findRedis({ REDIS_URL: full.url });
    expect(found[0]?.message).toContain('ERR max number of clients reached');
    expect(found[0]?.advice).toBe('See maxclients and protected-mode there, and its log.');
    await admin.config('SET', 'maxclients', '1000');
    for (const one of [gateway, late]) await redisIsWell(one);
  });

  test.each(['redis://', 'redis+cluster://'])('is kept: protected mode, %s', async (scheme) => {
    const reply = 'DENIED Redis is running in protected mode because protected mode is enabled.';
    const server = createServer((socket) => void socket.end(`-${reply}\r\n`));
    const { port } = await forTest(listenOnLoopback(server));
    const gateway = await start(`${scheme}127.0.0.1:${port}`);
    await stateIs(gateway, expect.stringContaining(`refuses the connection (${reply})`));
  });
});
