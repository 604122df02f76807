/** WORKERS=2 as an operator sees it: the real program, its first process and the workers of it. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { GatewayProcess, PROGRAM, runProcess } from '../support/process.ts';
import { anEvaluation } from '../support/records.ts';
import { freePort } from '../support/loopback.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';

/** The machine may do other things too. */
const SOON = { timeout: 15_000 };

let redis: TestRedis;
let store: StoreServer;
let folder: string;
let configFile: string;
const running: GatewayProcess[] = [];

beforeAll(async () => {
  [redis, store, folder] = await Promise.all([
    startRedis(),
    createStoreServer(),
    mkdtemp(join(tmpdir(), 'evalgate-workers-')),
  ]);
  configFile = join(folder, 'my.yaml');
  store.put({ evaluations: [anEvaluation({ _id: 'ev_1' })] });
});
afterAll(async () => {
  await Promise.all(running.map((gateway) => gateway.kill()));
  await Promise.all([redis.close(), store.close(), rm(folder, { recursive: true })]);
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<GatewayProcess> {
  const gateway = await GatewayProcess.start({
    env: {
      WORKERS: '2',
      REDIS_URL: redis.url,
      UPSTREAM_URL: store.url,
      UPSTREAM_TOKEN: store.token,
      DRAIN_DELAY: '400ms',
      CONFIG_FILE: configFile,
      // With 0, Node chooses others once all workers have ended at the same time.
      PORT: String(await freePort()),
      ADMIN_PORT: String(await freePort()),
      ...env,
    },
  });
  running.push(gateway);
  return gateway;
}

async function metric(gateway: GatewayProcess, sample: string): Promise<number> {
  const text = await (await gateway.admin('GET', '/metrics')).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}

const timesSchema = z.object({ classes: z.array(z.object({ class: z.string(), fresh: z.unknown() })) });

async function listTimes(gateway: GatewayProcess): Promise<string> {
  const { classes } = timesSchema.parse(await gateway.administer('GET', '/api/cache/ttl'));
  return JSON.stringify(classes.find((row) => row.class === 'list'));
}

test('two workers answer as one: reloaded, replaced, counted and drained together', async () => {
  await writeFile(configFile, 'cache: {classes: {list: {fresh: 41s}}}');
  const gateway = await start();
  const workersOf = async () => (await gateway.readiness()).dependencies.find(({ name }) => name === 'workers');
  expect(await gateway.readiness()).toMatchObject({ code: 200, status: 'ready' });
  expect(await workersOf()).toMatchObject({ status: 'ok', detail: '2 of 2 workers answer' });
  expect(await metric(gateway, 'evalgate_workers{state="answered"}')).toBe(2);

  const key = await gateway.issueKey();
  const get = () => gateway.get('/v2/calls/ev_1', key);
  for (let i = 0; i < 20; i += 1) expect((await get()).status).toBe(200);
  const counted = 'evalgate_http_requests_total{surface="v2",route="/v2/calls/{callId}",method="GET",status="200"}';
  expect(await metric(gateway, counted)).toBe(20);

  // A new configuration reaches those that run and those that come later; an invalid one nobody, not even later.
  await writeFile(configFile, 'cache: {classes: {list: {fresh: 42s}}}');
  gateway.signal('SIGHUP');
  await expect.poll(() => gateway.logged('configuration reloaded').length, SOON).toBe(1);
  await writeFile(configFile, 'cache: {classes: {list: {fresh: never}}}');
  gateway.signal('SIGHUP');
  await expect
    .poll(() => gateway.logged('the new configuration is invalid; the old one stays in force').length, SOON)
    .toBe(1);
  await expect.poll(() => metric(gateway, 'evalgate_config_reloads_total{result="failure"}'), SOON).toBe(1);
  for (const pid of gateway.workerPids.slice(0, 2)) process.kill(pid, 'SIGKILL');
  await gateway.untilReady(4);
  await expect.poll(async () => (await workersOf().catch(() => undefined))?.detail, SOON).toBe('2 of 2 workers answer');
  expect(await listTimes(gateway)).toContain('42');
  expect(await metric(gateway, 'evalgate_workers{state="answered"}')).toBe(2);
  expect(await metric(gateway, counted)).toBe(20);

  // Requests in flight are finished after the signal to end, and a second signal changes nothing.
  const gate = store.hold();
  const inFlight = gateway.get('/v2/calls/ev_2', key);
  await store.waitForCalls(2, 'evaluation');
  gateway.signal('SIGTERM');
  await expect.poll(async () => (await gateway.readiness()).status, SOON).toBe('draining');
  expect((await gateway.readiness()).code).toBe(503);
  expect(await workersOf()).toMatchObject({ status: 'degraded', detail: '0 of 2 workers answer' });
  gateway.signal('SIGTERM');
  const during = await get();
  expect([during.status, during.headers.get('connection')]).toEqual([200, 'close']);
  gate.release();
  expect((await inFlight).status).toBe(404);
  expect(await gateway.exited).toEqual([0, null]);
}, 60_000);

test('in front of the sample store all workers let in the same two keys, and their quota is one', async () => {
  const gateway = await start({ UPSTREAM_URL: '', UPSTREAM_TOKEN: '', CONFIG_FILE: '', RATE_LIMIT_PER_MINUTE: '6' });
  const demo = z.object({ v2Key: z.string(), curlLines: z.array(z.string()) }).parse(gateway.demo);
  const url = demo.curlLines.find((line) => line.includes('/v2/calls?'))?.split("'")[3] ?? '';
  const statuses: number[] = [];
  // A connection a request, so that both workers are asked.
  for (let i = 0; i < 12; i += 1) {
    const headers = { authorization: `Bearer ${demo.v2Key}`, connection: 'close' };
    statuses.push((await fetch(url, { headers })).status);
  }
  expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array<number>(6).fill(200), ...Array<number>(6).fill(429)]);
  gateway.signal('SIGKILL');
  // Without the first process its workers don't stay.
  await expect
    .poll(
      () =>
        fetch(url).then(
          () => 'answers',
          () => 'refuses',
        ),
      SOON,
    )
    .toBe('refuses');
}, 60_000);

test('workers that crash at once are replaced later and later, and the others go on serving', async () => {
  const gateway = await start({ CONFIG_FILE: '' });
  const key = await gateway.issueKey();
  for (let crash = 0; crash < 3; crash += 1) {
    const pid = gateway.workerPids.at(-1);
    if (pid === undefined) throw new Error('There is no worker.');
    process.kill(pid, 'SIGKILL');
    await gateway.untilEnded(pid);
    expect(await gateway.status('/v2/calls/ev_1', key)).toBe(200);
    await gateway.untilReady(3 + crash);
  }
  const delaysMs = gateway
    .logged('worker ended by itself; another is started')
    .map((line) => [line['end'], line['delayMs']]);
  expect(delaysMs).toEqual([100, 200, 400].map((delayMs) => ['ended by SIGKILL', delayMs]));
  // If several end together, none serves until the next ones are ready.
  for (const pid of gateway.workerPids.slice(0, 1).concat(gateway.workerPids.slice(-1))) process.kill(pid, 'SIGKILL');
  await gateway.untilReady(7);
  expect(await gateway.status('/v2/calls/ev_1', key)).toBe(200);
  expect(await gateway.stop()).toEqual([0, null]);
}, 60_000);

interface Faulty {
  readonly what: string;
  readonly env: () => Readonly<Record<string, string>>;
  readonly message: RegExp;
}

const faulty: readonly Faulty[] = [
  {
    what: 'no Redis',
    env: () => ({ REDIS_URL: '' }),
    message: /WORKERS: given "2"; several processes share keys and quotas through Redis, and there is none/g,
  },
  {
    what: 'a port that is taken',
    env: () => ({ PORT: new URL(redis.url).port }),
    message: /^PORT=\d+ on 127\.0\.0\.1 is taken: something listens there already/gm,
  },
  {
    what: 'that both ports are taken',
    env: () => ({ PORT: new URL(redis.url).port, ADMIN_PORT: new URL(store.url).port }),
    message: /^PORT=\d+ on 127\.0\.0\.1 is taken: .*\nADMIN_PORT=\d+ on 127\.0\.0\.1 is taken: /gm,
  },
];

test.each(faulty)(
  '$what is told once, and the exit status is 1',
  async ({ env, message }) => {
    const usual = { PORT: '0', ADMIN_PORT: '0', WORKERS: '2', REDIS_URL: redis.url, LOG_LEVEL: 'fatal' };
    const { code, stderr } = await runProcess(process.execPath, [PROGRAM, 'serve', '--demo'], {
      ...process.env,
      ...usual,
      ...env(),
    });
    expect(code).toBe(1);
    expect(stderr.match(message)).toHaveLength(1);
    expect(stderr).not.toContain('    at ');
  },
  30_000,
);

test('workers are not ready either before Redis has answered, and they say why', async () => {
  const gateway = await start({ REDIS_URL: 'redis://127.0.0.1:1', CONFIG_FILE: '' });
  const { code, status, dependencies } = await gateway.readiness();
  expect([code, status]).toEqual([503, 'starting']);
  expect(dependencies.find(({ name }) => name === 'redis-state')?.detail).toContain(
    'not ready until it has answered once',
  );
  expect(dependencies.find(({ name }) => name === 'workers')?.detail).toBe('0 of 2 workers answer');
});

test('a worker that is started in an outage of Redis is ready as its siblings are', async () => {
  const own = await startRedis();
  const gateway = await start({ REDIS_URL: own.url, CONFIG_FILE: '' });
  await expect.poll(async () => (await gateway.readiness()).code, SOON).toBe(200);
  await own.kill();
  const [first, second] = gateway.workerPids;
  for (const pid of [first, second]) {
    if (pid === undefined) throw new Error('There is no worker.');
    const started = gateway.workerPids.length;
    process.kill(pid, 'SIGKILL');
    await gateway.untilReady(started + 1);
  }
  // No worker is left that Redis has answered.
  const { code, dependencies } = await gateway.readiness();
  expect(code).toBe(200);
  expect(dependencies.find(({ name }) => name === 'redis-state')?.detail).toMatch(
    /^does not answer.*: this process goes on by itself$/,
  );
  expect(await gateway.stop()).toEqual([0, null]);
  await own.close();
}, 60_000);

/** On a connection of its own: those that a stopped worker has accepted get no answer. */
async function askAnew(url: string, headers: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const signal = AbortSignal.timeout(2000);
  const response = await fetch(url, { headers: { ...headers, connection: 'close' }, signal });
  const json: unknown = await response.json();
  return json;
}

test('a worker that is stopped is named, killed and replaced', async () => {
  const gateway = await start({ CONFIG_FILE: '' });
  const [pid = 0] = gateway.workerPids;
  const workers = async () => JSON.stringify(await askAnew(`${gateway.adminUrl}/readyz`).catch(() => null));
  process.kill(pid, 'SIGSTOP');
  await expect
    .poll(workers, SOON)
    .toMatch(
      new RegExp(`1 of 2 workers answer; worker [12] \\(process ${pid}\\) does not, and is replaced if it stays so`),
    );
  await gateway.untilReady(3);
  await expect.poll(workers, SOON).toContain('2 of 2 workers answer"');
  expect(gateway.logged('worker does not answer and is killed')).toMatchObject([{ workerPid: pid }]);
  expect(await gateway.stop()).toEqual([0, null]);
}, 60_000);

test('whichever worker answers /readyz, it says what any of them has met', async () => {
  const gateway = await start({ CONFIG_FILE: '' });
  const mend = store.override(/ev_broken/, (_request, response) => void response.writeHead(500).end());
  expect(await gateway.status('/v2/calls/ev_broken', await gateway.issueKey())).toBe(500);
  const statuses = async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, () => askAnew(`${gateway.adminUrl}/readyz`)));
    const lists = answers.map((answer) => z.object({ dependencies: dependenciesSchema }).parse(answer).dependencies);
    return lists.map((list) => list.find(({ name }) => name === 'store')?.status);
  };
  await expect.poll(statuses, SOON).toEqual(Array(8).fill('degraded'));
  mend();
  expect(await gateway.stop()).toEqual([0, null]);
}, 60_000);

const dependenciesSchema = z.array(z.object({ name: z.string(), status: z.string() }));
const historySchema = z.object({
  scope: z.string(),
  processes: z.number(),
  problem: z.string().nullable(),
  points: z.array(z.object({ statuses: z.record(z.string(), z.number()) })),
});

test('without Redis, what operators see is the sum of all workers', async () => {
  const own = await startRedis();
  const gateway = await start({ REDIS_URL: own.url, CONFIG_FILE: '' });
  const authorization = `Bearer ${await gateway.issueKey()}`;
  for (let i = 0; i < 30; i += 1) await askAnew(`${gateway.publicUrl}/v2/calls/ev_1`, { authorization });
  const history = async () => {
    const { points, ...whose } = historySchema.parse(await gateway.administer('GET', '/api/cache/history'));
    return { ...whose, requests: points.reduce((sum, { statuses }) => sum + (statuses['200'] ?? 0), 0) };
  };
  await own.kill();
  await expect.poll(history, SOON).toMatchObject({ scope: 'process', processes: 2, requests: 30 });
  expect(await gateway.stop()).toEqual([0, null]);
  await own.close();
}, 60_000);
