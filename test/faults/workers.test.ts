/** WORKERS=2 as an operator sees it: the real program, its first process and the workers of it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { z } from 'zod';
import { anEvaluation } from '../support/records.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';
import { Served } from '../support/served.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';

/** The machine may do other things too. */
const SOON = { timeout: 15_000 };
const PROGRAM = join(import.meta.dirname, '../../src/cli/evalgate.js');

let redis: TestRedis;
let store: StoreServer;
let folder: string;
let configFile: string;
const running: Served[] = [];

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
  await Promise.all(running.map((served) => served.kill()));
  await Promise.all([redis.close(), store.close(), rm(folder, { recursive: true })]);
});

async function start(env: Readonly<Record<string, string>> = {}): Promise<Served> {
  const served = await Served.start({
    WORKERS: '2',
    REDIS_URL: redis.url,
    UPSTREAM_URL: store.url,
    UPSTREAM_TOKEN: store.token,
    DRAIN_DELAY: '400ms',
    CONFIG_FILE: configFile,
    ...env,
  });
  running.push(served);
  return served;
}

async function metric(served: Served, sample: string): Promise<number> {
  const text = await (await served.admin('GET', '/metrics')).text();
  const line = text.split('\n').find((candidate) => candidate.startsWith(`${sample} `));
  return Number(line?.split(' ').at(-1) ?? Number.NaN);
}

const timesSchema = z.object({ classes: z.array(z.object({ class: z.string(), fresh: z.unknown() })) });

async function listTimes(served: Served): Promise<string> {
  const { classes } = timesSchema.parse(await (await served.admin('GET', '/api/cache/ttl')).json());
  return JSON.stringify(classes.find((row) => row.class === 'list'));
}

test('two workers answer as one: reloaded, replaced, counted and drained together', async () => {
  await writeFile(configFile, 'cache: {classes: {list: {fresh: 41s}}}');
  const served = await start();
  const workersOf = async () => (await served.readiness()).dependencies.find(({ name }) => name === 'workers');
  expect(await served.readiness()).toMatchObject({ code: 200, status: 'ready' });
  expect(await workersOf()).toMatchObject({ status: 'ok', detail: '2 of 2 are ready' });
  expect(await metric(served, 'evalgate_workers{state="answered"}')).toBe(2);

  const { token } = await served.issueKey();
  const get = () => fetch(`${served.publicUrl}/v2/calls/ev_1`, { headers: { authorization: `Bearer ${token}` } });
  for (let i = 0; i < 20; i += 1) expect((await get()).status).toBe(200);
  const counted = 'evalgate_http_requests_total{surface="v2",route="/v2/calls/{callId}",method="GET",status="200"}';
  expect(await metric(served, counted)).toBe(20);

  // A new configuration reaches those that run and those that come later; an invalid one nobody, not even later.
  await writeFile(configFile, 'cache: {classes: {list: {fresh: 42s}}}');
  served.signal('SIGHUP');
  await expect.poll(() => served.logged('configuration reloaded').length, SOON).toBe(1);
  await writeFile(configFile, 'cache: {classes: {list: {fresh: never}}}');
  served.signal('SIGHUP');
  await expect
    .poll(() => served.logged('the new configuration is invalid; the old one stays in force').length, SOON)
    .toBe(1);
  await expect.poll(() => metric(served, 'evalgate_config_reloads_total{result="failure"}'), SOON).toBe(1);
  for (const pid of served.workerPids.slice(0, 2)) process.kill(pid, 'SIGKILL');
  await served.untilReady(4);
  await expect.poll(async () => (await workersOf().catch(() => undefined))?.detail, SOON).toBe('2 of 2 are ready');
  expect(await listTimes(served)).toContain('42');
  expect(await metric(served, 'evalgate_workers{state="answered"}')).toBe(2);
  expect(await metric(served, counted)).toBe(20);

  // What is in flight when all are told to end is finished, and a second signal changes nothing.
  const gate = store.gate();
  const inFlight = fetch(`${served.publicUrl}/v2/calls/ev_2`, { headers: { authorization: `Bearer ${token}` } });
  await store.waitForCalls(2, 'evaluation');
  served.signal('SIGTERM');
  await expect.poll(async () => (await served.readiness()).status, SOON).toBe('draining');
  expect((await served.readiness()).code).toBe(503);
  served.signal('SIGTERM');
  const during = await get();
  expect([during.status, during.headers.get('connection')]).toEqual([200, 'close']);
  gate.release();
  expect((await inFlight).status).toBe(404);
  expect(await served.exited).toEqual([0, null]);
}, 60_000);

test('in front of the sample store all workers let in the same two keys, and their quota is one', async () => {
  const served = await start({ UPSTREAM_URL: '', UPSTREAM_TOKEN: '', CONFIG_FILE: '', RATE_LIMIT_PER_MINUTE: '6' });
  const demo = z.object({ v2Key: z.string(), curlLines: z.array(z.string()) }).parse(served.demo);
  const url = demo.curlLines.find((line) => line.includes('/v2/calls?'))?.split("'")[3] ?? '';
  const statuses: number[] = [];
  // A connection a request, so that both workers are asked.
  for (let i = 0; i < 12; i += 1) {
    const headers = { authorization: `Bearer ${demo.v2Key}`, connection: 'close' };
    statuses.push((await fetch(url, { headers })).status);
  }
  expect(statuses.toSorted((a, b) => a - b)).toEqual([...Array<number>(6).fill(200), ...Array<number>(6).fill(429)]);
  served.signal('SIGKILL');
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
];

test.each(faulty)(
  '$what is told once, and the exit status is 1',
  async ({ env, message }) => {
    const usual = { PORT: '0', ADMIN_PORT: '0', WORKERS: '2', REDIS_URL: redis.url, LOG_LEVEL: 'fatal' };
    const child = spawn(process.execPath, [PROGRAM, 'serve'], {
      env: { ...process.env, ...usual, ...env() },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let text = '';
    child.stderr.on('data', (chunk: Buffer) => (text += chunk.toString()));
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(text.match(message)).toHaveLength(1);
    expect(text).not.toContain('    at ');
  },
  30_000,
);
