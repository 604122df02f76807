/** The proxy of the fault tests does to connections what it says. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listenOnLoopback, type RunningServer } from '../support/loopback.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

let echo: RunningServer;
let proxy: TcpProxy;
const clients: Socket[] = [];

beforeEach(async () => {
  echo = await listenOnLoopback(createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket)));
  proxy = await TcpProxy.start(echo.url);
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await proxy.close();
  await echo.close();
});

async function dial() {
  const socket = connect({ port: Number(new URL(proxy.url).port), host: '127.0.0.1', allowHalfOpen: true });
  clients.push(socket);
  let received = '';
  let code: string | null = null;
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.on('end', () => socket.end());
  socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code ?? 'none'));
  const ended = new Promise<string | null>((resolve) => socket.on('close', () => resolve(code)));
  await once(socket, 'connect');
  const until = async (bytes: number): Promise<string> => {
    while (received.length < bytes) await once(socket, 'data');
    return received;
  };
  return { socket, received: () => received, until, ended };
}

async function expectEcho(client: Awaited<ReturnType<typeof dial>>): Promise<void> {
  client.socket.write('here');
  expect(await client.until(4)).toBe('here');
}

test('it passes everything on, in order, and so the end', async () => {
  const client = await dial();
  const text = 'x'.repeat(3_000_000) + 'end';
  client.socket.end(text);
  await once(client.socket, 'end');
  expect(client.received()).toBe(text);
});

test('a delay holds each piece back and keeps their order, also with jitter', async () => {
  proxy.delay('downstream', 100, 90);
  const client = await dial();
  for (const letter of 'abcdef') {
    client.socket.write(letter);
    await sleep(2);
  }
  expect(await client.until(6)).toBe('abcdef');
  proxy.delay('downstream', 120);
  const sinceMs = performance.now();
  client.socket.write('g');
  await client.until(7);
  expect(performance.now() - sinceMs).toBeGreaterThanOrEqual(110);
});

test('a black hole swallows on open connections and new ones; healed, they go on', async () => {
  const before = await dial();
  proxy.blackHole();
  const during = await dial();
  for (const { socket } of [before, during]) socket.write('lost');
  // What comes after is all that comes.
  await sleep(50);
  proxy.heal();
  await expectEcho(before);
  await expectEcho(during);
});

test('a reset is a reset, not an end: of open connections at once, of others as they begin to talk', async () => {
  const open = await dial();
  proxy.resetPeers();
  expect(await open.ended).toBe('ECONNRESET');
  proxy.reset();
  const other = await dial();
  other.socket.write('a');
  expect(await other.ended).toBe('ECONNRESET');
});

test('a cut ends what is open and what comes, until it is healed', async () => {
  const open = await dial();
  proxy.cut();
  await open.ended;
  await (
    await dial()
  ).ended;
  proxy.heal();
  await expectEcho(await dial());
});

test('one that refuses listens no more, until it does again', async () => {
  const open = await dial();
  await proxy.refuse();
  await open.ended;
  await expect(dial()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await proxy.listen();
  await expectEcho(await dial());
});

test('a connection for messages stalls, the others go on', async () => {
  const [messages, other] = [await dial(), await dial()];
  messages.socket.write('evalgate-state-messages');
  await messages.until(23);
  await expectEcho(other);
  expect(proxy.stallMessages()).toBe(1);
  messages.socket.write('lost');
  other.socket.write('more');
  await other.until(8);
  expect(messages.received()).toBe('evalgate-state-messages');
});
