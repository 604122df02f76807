/** The proxy that the fault tests are made with does to bytes what it says. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { listenOnLoopback, type RunningServer } from '../support/loopback.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';

let echo: Server;
let running: RunningServer;
let proxy: TcpProxy;
const clients: Socket[] = [];

beforeEach(async () => {
  echo = createServer({ allowHalfOpen: true }, (socket) => socket.pipe(socket));
  running = await listenOnLoopback(echo);
  proxy = await TcpProxy.start(running.url);
});
afterEach(async () => {
  for (const client of clients.splice(0)) client.destroy();
  await proxy.close();
  await running.close();
});

interface Client {
  readonly socket: Socket;
  /** What has come so far. */
  readonly received: () => string;
  /** Milliseconds until so many bytes have come. */
  readonly until: (bytes: number) => Promise<number>;
  /** How it ended: the error's code, or null. */
  readonly ended: Promise<string | null>;
}

async function dial(): Promise<Client> {
  const { port } = new URL(proxy.url);
  const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
  clients.push(socket);
  let received = '';
  socket.on('data', (chunk: Buffer) => (received += chunk.toString()));
  socket.on('end', () => socket.end());
  let code: string | null = null;
  socket.on('error', (error: NodeJS.ErrnoException) => (code = error.code ?? 'none'));
  const ended = new Promise<string | null>((resolve) => socket.on('close', () => resolve(code)));
  await once(socket, 'connect');
  return {
    socket,
    received: () => received,
    ended,
    until: async (bytes) => {
      const startedMs = performance.now();
      while (received.length < bytes) await once(socket, 'data');
      return performance.now() - startedMs;
    },
  };
}

test('without toxics everything gets through, in order, and so does the end', async () => {
  const client = await dial();
  const text = 'x'.repeat(3_000_000) + 'end';
  client.socket.end(text);
  await once(client.socket, 'end');
  expect(client.received()).toBe(text);
});

test('latency delays each piece and keeps their order, also with jitter', async () => {
  proxy.set('downstream', { latencyMs: 100, jitterMs: 90 });
  const client = await dial();
  client.socket.write('a');
  for (const letter of ['b', 'c', 'd', 'e', 'f']) {
    await new Promise<void>((resolve) => setTimeout(resolve, 2));
    client.socket.write(letter);
  }
  await client.until(6);
  expect(client.received()).toBe('abcdef');
  proxy.set('downstream', { latencyMs: 120 });
  client.socket.write('g');
  expect(await client.until(7)).toBeGreaterThanOrEqual(110);
});

test('bandwidth is what gets through in a time', async () => {
  proxy.set('downstream', { bandwidthBytesPerMs: 100, sliceBytes: 1000 });
  const client = await dial();
  client.socket.write('x'.repeat(20_000));
  expect(await client.until(20_000)).toBeGreaterThanOrEqual(150);
});

test('slices come one by one', async () => {
  proxy.set('downstream', { sliceBytes: 2, sliceDelayMs: 20 });
  const client = await dial();
  const pieces: string[] = [];
  client.socket.on('data', (chunk: Buffer) => pieces.push(chunk.toString()));
  client.socket.write('abcdef');
  await client.until(6);
  expect(pieces).toEqual(['ab', 'cd', 'ef']);
});

test('a timeout swallows everything and then ends the connection', async () => {
  proxy.set('upstream', { timeoutMs: 50 });
  const client = await dial();
  client.socket.write('lost');
  await client.ended;
  expect(client.received()).toBe('');
});

test('a black hole swallows without end, on open connections and new ones; healed, connections go on', async () => {
  const before = await dial();
  proxy.blackHole();
  const during = await dial();
  for (const { socket } of [before, during]) socket.write('lost');
  await new Promise<void>((resolve) => setTimeout(resolve, 50));
  expect([before.received(), during.received(), proxy.connections]).toEqual(['', '', 2]);
  proxy.heal();
  for (const client of [before, during]) {
    client.socket.write('here');
    await client.until(4);
    expect(client.received()).toBe('here');
  }
});

test('a limit ends the connection after so many bytes', async () => {
  proxy.set('downstream', { limitBytes: 5 });
  const client = await dial();
  client.socket.write('abcdefgh');
  await client.ended;
  expect(client.received()).toBe('abcde');
});

test('reset_peer is a reset, not an end', async () => {
  proxy.set('upstream', { resetPeerMs: 20 });
  const [one, other] = [await dial(), await dial()];
  one.socket.write('a');
  expect(await one.ended).toBe('ECONNRESET');
  proxy.heal();
  proxy.resetPeers();
  expect(await other.ended).toBe('ECONNRESET');
});

test('slow_close passes the end on late', async () => {
  proxy.set('upstream', { slowCloseMs: 100 });
  const client = await dial();
  const startedMs = performance.now();
  client.socket.end('bye');
  await once(client.socket, 'end');
  expect(client.received()).toBe('bye');
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(90);
});

test('one that refuses listens no more, until it does again', async () => {
  const open = await dial();
  await proxy.refuse();
  await open.ended;
  await expect(dial()).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  await proxy.listen();
  const after = await dial();
  after.socket.write('a');
  await after.until(1);
});

test('down ends what is open and what comes, up lets it through again', async () => {
  const open = await dial();
  proxy.down();
  await open.ended;
  await (
    await dial()
  ).ended;
  proxy.up();
  const after = await dial();
  after.socket.write('a');
  await after.until(1);
  expect(proxy.connections).toBe(1);
});
