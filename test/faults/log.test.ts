/** The log must not decide over the service: standard error and standard output that nobody takes. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { firstJson, PROGRAM } from '../support/process.ts';
import { freePort } from '../support/loopback.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

/** The machine may do other things too. */
const SOON = { timeout: 60_000 };
/** More than the log may hold while nobody takes it: 1 MB waiting, and what is on its way. */
const REQUESTS = 5000;
const CONNECTIONS = 10;
/** As many as a connection may have unanswered, and fewer. */
const PIPELINED = 50;
const DROPPED = 'lines of the log were dropped: nobody took them';

const announcedSchema = z.object({ publicUrl: z.string(), adminUrl: z.string() });

let redis: TestRedis;
let folder: string;
const children: ChildProcess[] = [];
beforeAll(async () => {
  redis = await startRedis();
});
afterAll(() => redis.close());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'evalgate-log-'));
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

interface Gateway extends z.output<typeof announcedSchema> {
  readonly child: ChildProcess;
  readonly exited: Promise<readonly unknown[]>;
}

async function start(stderr: number, workers: number): Promise<Gateway> {
  const several = { WORKERS: String(workers), REDIS_URL: redis.url };
  const [port, adminPort] = [await freePort(), await freePort()];
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--demo', '--json'], {
    stdio: ['ignore', 'pipe', stderr],
    env: {
      ...process.env,
      ...(workers > 1 ? several : {}),
      PORT: String(port),
      ADMIN_PORT: String(adminPort),
      DRAIN_DELAY: '0s',
    },
  });
  children.push(child);
  closeSync(stderr);
  const exited = once(child, 'exit');
  return { ...announcedSchema.parse(await firstJson(child)), child, exited };
}

/** Each request has a line of the log. Sent along `CONNECTIONS`, so that each worker gets some. */
async function request(url: string, count: number): Promise<void> {
  const one = `GET /nowhere HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${'x'.repeat(64)}\r\n`;
  const each = count / CONNECTIONS;
  const { port, hostname: host } = new URL(url);
  const send = async (requests: number): Promise<number> => {
    const socket = connect({ port: Number(port), host });
    socket.write(`${`${one}\r\n`.repeat(requests - 1)}${one}Connection: close\r\n\r\n`);
    return (await text(socket)).split('HTTP/1.1 404 ').length - 1;
  };
  const answers = Array.from({ length: CONNECTIONS }, async () => {
    let answered = 0;
    for (let left = each; left > 0; left -= PIPELINED) answered += await send(Math.min(left, PIPELINED));
    return answered;
  });
  expect(await Promise.all(answers)).toEqual(Array.from({ length: CONNECTIONS }, () => each));
}

async function dropped({ adminUrl }: Gateway): Promise<number> {
  const metrics = await (await fetch(`${adminUrl}/metrics`)).text();
  return Number(/^evalgate_log_lines_dropped_total (\d+)$/m.exec(metrics)?.[1]);
}

/** A named pipe and a process that writes all it reads there into a file. */
function pipe() {
  const [path, file] = [join(folder, 'pipe'), join(folder, 'log')];
  execFileSync('sh', ['-c', 'mkfifo "$0"', path]);
  const read = (): ChildProcess => {
    const reader = spawn('sh', ['-c', 'exec cat "$0" >> "$1"', path, file], { stdio: 'ignore' });
    children.push(reader);
    return reader;
  };
  const reader = read();
  return { reader, read, end: openSync(path, 'w'), lines: () => readFileSync(file, 'utf8').split('\n') };
}

describe.each([1, 2])('with %d workers', (workers) => {
  test('a full disk costs lines, and nothing else', SOON, async () => {
    const gateway = await start(openSync('/dev/full', 'w'), workers);
    await request(gateway.publicUrl, 200);
    await expect.poll(() => dropped(gateway), SOON).toBeGreaterThan(200);
    gateway.child.kill('SIGTERM');
    expect(await gateway.exited).toEqual([0, null]);
  });

  test('a reader that never reads again holds up no end', SOON, async () => {
    const { reader, end } = pipe();
    const gateway = await start(end, workers);
    reader.kill('SIGSTOP');
    await request(gateway.publicUrl, 300);
    gateway.child.kill('SIGTERM');
    expect(await gateway.exited).toEqual([0, null]);
  });
});

test('a reader that leaves costs lines until another one comes, who learns how many', SOON, async () => {
  const { reader, read, end, lines } = pipe();
  const gateway = await start(end, 2);
  await expect.poll(() => lines().join('\n'), SOON).toContain('"msg":"started"');
  reader.kill('SIGKILL');
  await once(reader, 'exit');
  await request(gateway.publicUrl, 200);
  await expect.poll(() => dropped(gateway), SOON).toBeGreaterThanOrEqual(200);
  read();
  await expect
    .poll(async () => {
      await request(gateway.publicUrl, CONNECTIONS);
      return lines().join('\n');
    }, SOON)
    .toContain(DROPPED);
  gateway.child.kill('SIGTERM');
  expect(await gateway.exited).toEqual([0, null]);
  await expect.poll(() => lines().join('\n'), SOON).toContain('"msg":"stopped"');
});

test('a reader that reads no more costs lines beyond a bound, and gets those that waited', SOON, async () => {
  const { reader, end, lines } = pipe();
  const gateway = await start(end, 1);
  reader.kill('SIGSTOP');
  await request(gateway.publicUrl, REQUESTS);
  expect(await dropped(gateway)).toBeGreaterThan(0);
  const lost = await dropped(gateway);
  reader.kill('SIGCONT');
  const reported = (): number =>
    lines()
      .filter((line) => line.includes(DROPPED))
      .reduce((sum, line) => sum + z.object({ dropped: z.int() }).parse(JSON.parse(line)).dropped, 0);
  await expect.poll(reported, SOON).toBe(lost);
  for (const line of lines().slice(0, -1)) JSON.parse(line);
  gateway.child.kill('SIGTERM');
  expect(await gateway.exited).toEqual([0, null]);
});

test.each([
  ['takes nothing', () => openSync('/dev/full', 'w')],
  ['has lost its reader', unreadPipe],
])('standard output that %s keeps no gateway from serving', SOON, async (_, open) => {
  const output = await open();
  const child = spawn(process.execPath, [PROGRAM, 'serve', '--demo'], {
    stdio: ['ignore', output, 'pipe'],
    env: { ...process.env, PORT: '0', ADMIN_PORT: '0', DRAIN_DELAY: '0s' },
  });
  children.push(child);
  closeSync(output);
  let log = '';
  child.stderr?.on('data', (chunk: Buffer) => (log += chunk.toString()));
  await expect.poll(() => log, SOON).toContain('standard output takes nothing');
  const started = log.split('\n').find((line) => line.includes('"msg":"started"')) ?? '';
  await request(z.object({ public: z.string() }).parse(JSON.parse(started)).public, CONNECTIONS);
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([0, null]);
});

async function unreadPipe(): Promise<number> {
  const { reader, end } = pipe();
  reader.kill('SIGKILL');
  await once(reader, 'exit');
  return end;
}
