/** Clients that take their answers slowly or not at all, that pipeline, and that hold connections they do not use. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import * as fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { metricOf } from '../support/admin.ts';
import { cases } from '../support/cases.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { aTranscript, WORKSPACE_A } from '../support/records.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).toReversed()) await close();
});

async function gatewayWith(config: string): Promise<TestGateway> {
  const gateway = await startTestGateway({ config });
  closers.push(() => gateway.close());
  return gateway;
}

/** A connection that reads nothing until it is resumed. */
function dial(url: string, bytes: string, localAddress = '127.0.0.1'): Socket {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  closers.push(() => socket.destroy());
  socket.on('error', () => undefined).pause();
  socket.write(bytes);
  return socket;
}

function cut(gateway: TestGateway, reason: string): Promise<number> {
  return metricOf(gateway, `evalgate_http_connections_cut_total{reason="${reason}"}`);
}

async function waitFor(gateway: TestGateway, name: string, isThere: (value: number) => boolean): Promise<void> {
  await vi.waitFor(async () => expect(await metricOf(gateway, name)).toSatisfy(isThere), { timeout: 15_000 });
}

const GET_NOWHERE = 'GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n';

interface Sent {
  readonly method: string;
  readonly bodyBytes: number;
  readonly isChunked: boolean;
  readonly headerBytes: number;
}

function bytesOf({ method, bodyBytes, isChunked, headerBytes }: Sent, id: string): string {
  const head = `${method} /elsewhere HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${id}\r\nX-Long: ${'x'.repeat(headerBytes)}\r\n`;
  const body = 'x'.repeat(bodyBytes);
  if (bodyBytes === 0) return `${head}\r\n`;
  if (!isChunked) return `${head}Content-Length: ${bodyBytes}\r\n\r\n${body}`;
  return `${head}Transfer-Encoding: chunked\r\n\r\n${bodyBytes.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
}

/** How many whole answers have come. */
function answersIn(text: string): number {
  return text.split('HTTP/1.1 ').length - 1;
}

describe('answers that are not taken', () => {
  const BYTES = 7_000_000;

  async function startWorld(config: string) {
    const gateway = await gatewayWith(config);
    gateway.store.put({ transcripts: [aTranscript({ evaluationId: 'large', body: 'x'.repeat(BYTES) })] });
    const keys = { busy: await gateway.issueKey(), quiet: await gateway.issueKey() };
    const path = `/v1/workspaces/${WORKSPACE_A}/reports/large/transcript`;
    const ask = (key: string): Socket =>
      dial(gateway.publicUrl, `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    return { gateway, keys, ask };
  }

  test('of the key that has most are cut first, the oldest of them, and no other', { timeout: 60_000 }, async () => {
    const { gateway, keys, ask } = await startWorld('server: { maxUnsent: 30MB }');
    const quiet = ask(keys.quiet);
    await waitFor(gateway, 'evalgate_http_unsent_bytes', (bytes) => bytes > BYTES);
    const busy: Socket[] = [];
    for (const count of [2, 3, 4]) {
      busy.push(ask(keys.busy));
      await waitFor(gateway, 'evalgate_http_unsent_bytes', (bytes) => bytes > count * BYTES);
    }
    busy.push(ask(keys.busy));
    await vi.waitFor(async () => expect(await cut(gateway, 'unsent')).toBe(1), { timeout: 15_000 });
    expect(await metricOf(gateway, 'evalgate_http_unsent_bytes')).toBeLessThan(30_000_000);
    // It notices once it has read what the system holds.
    await vi.waitUntil(() => busy[0]?.resume().destroyed, { timeout: 15_000 });
    // The other key's answer comes whole once it is taken.
    let taken = 0;
    quiet.on('data', (chunk: Buffer) => (taken += chunk.length)).resume();
    await vi.waitUntil(() => taken > BYTES, { timeout: 15_000 });
  });

  test('for 30 s end with their connections; one that is taken goes on', { timeout: 60_000 }, async () => {
    const { gateway, keys, ask } = await startWorld('');
    const [stalled, slow] = [ask(keys.busy), ask(keys.quiet)];
    await waitFor(gateway, 'evalgate_http_unsent_bytes', (bytes) => bytes > 2 * BYTES);
    // The system takes what it can hold in some turns.
    for (let turn = 0; turn < 200; turn += 1) await setImmediate();
    gateway.clock.advance(29_000);
    let taken = 0;
    slow.on('data', (chunk: Buffer) => {
      taken += chunk.length;
      if (taken > 0.8 * BYTES) slow.pause();
    });
    slow.resume();
    await vi.waitUntil(() => slow.isPaused(), { timeout: 15_000 });
    gateway.clock.advance(2000);
    await waitFor(gateway, 'evalgate_http_connections_cut_total{reason="stalled"}', (count) => count === 1);
    expect(slow.destroyed).toBe(false);
    slow.removeAllListeners('data').on('data', (chunk: Buffer) => (taken += chunk.length));
    slow.resume();
    await vi.waitUntil(() => taken > BYTES, { timeout: 15_000 });
    await waitFor(gateway, 'evalgate_http_unsent_bytes', (bytes) => bytes === 0);
    await vi.waitUntil(() => stalled.resume().destroyed, { timeout: 15_000 });
  });
});

describe('pipelined requests', () => {
  test('are answered in order, however many of them wait', async () => {
    const gateway = await gatewayWith('');
    const paths = Array.from({ length: 60 }, (_, index) => `/nowhere-${index}`);
    const requests = paths.map((path) => `HEAD ${path} HTTP/1.1\r\nHost: a\r\nX-Request-Id: ${path.slice(1)}\r\n\r\n`);
    const socket = dial(gateway.publicUrl, requests.join(''));
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString())).resume();
    await vi.waitUntil(() => answersIn(text) === paths.length, { timeout: 15_000 });
    expect(text.match(/nowhere-\d+/g)).toEqual(paths.map((path) => path.slice(1)));
  });

  test('of a connection are begun a few at a time', async () => {
    const gateway = await gatewayWith('');
    const key = await gateway.issueKey();
    const gate = gateway.store.hold();
    const request = (id: number): string =>
      `GET /v2/calls/call-${id} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
    const socket = dial(gateway.publicUrl, Array.from({ length: 20 }, (_, id) => request(id)).join(''));
    await gateway.store.waitForCalls(4);
    // Another connection's request is served meanwhile; by then more would have been begun.
    expect((await gateway.get('/v2/key', { key })).status).toBe(200);
    expect(gateway.store.calls()).toBe(4);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString())).resume();
    gate.release();
    await vi.waitUntil(() => answersIn(text) === 20, { timeout: 15_000 });
    expect(gateway.store.requests.map(({ id }) => id)).toEqual(Array.from({ length: 20 }, (_, id) => `call-${id}`));
  });

  const anyRequest = fc.record({
    method: fc.constantFrom('GET', 'HEAD', 'POST', 'PUT'),
    bodyBytes: fc.constantFrom(0, 1, 900, 5000, 70_000),
    isChunked: fc.boolean(),
    headerBytes: fc.constantFrom(0, 1000, 9000),
  });

  test('are answered in order, however their bytes are cut, and whatever bodies they have', async () => {
    const gateway = await gatewayWith('');
    let sent = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(anyRequest, { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 8 }),
        async (requests, cuts) => {
          const ids = requests.map(() => `request-${(sent += 1)}`);
          const bytes = requests.map((request, index) => bytesOf(request, ids[index] ?? '')).join('');
          const socket = dial(gateway.publicUrl, '');
          let text = '';
          socket.on('data', (chunk: Buffer) => (text += chunk.toString())).resume();
          for (let at = 0, piece = 0; at < bytes.length; piece += 1) {
            const size = cuts[piece % cuts.length] ?? 1;
            socket.write(bytes.slice(at, at + size));
            at += size;
            await setImmediate();
          }
          await vi.waitUntil(() => answersIn(text) === ids.length, { timeout: 15_000 });
          expect([...text.matchAll(/x-request-id: (\S+)/gi)].map(([, id]) => id)).toEqual(ids);
          socket.destroy();
        },
      ),
      { numRuns: cases(40) },
    );
  }, 60_000);

  test('behind answers that are not taken wait, and so does a body that has not arrived whole', async () => {
    const gateway = await gatewayWith('');
    const post = bytesOf({ method: 'POST', bodyBytes: 100_000, isChunked: false, headerBytes: 0 }, 'last');
    const socket = dial(
      gateway.publicUrl,
      `${'GET /openapi.json HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(3)}${post.slice(0, 50_000)}`,
    );
    // Another connection is served meanwhile.
    for (let i = 0; i < 5; i += 1) expect((await gateway.get('/v2/calls')).status).toBe(401);
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString())).resume();
    socket.write(post.slice(50_000));
    await vi.waitUntil(() => /x-request-id: last/i.test(text), { timeout: 15_000 });
  });

  test.each([
    ['at once', ''],
    ['after an answer', GET_NOWHERE],
  ])('by the thousand, sent %s, end with their connection, and cost no work', async (_when, before) => {
    const gateway = await gatewayWith('');
    const socket = dial(gateway.publicUrl, before === '' ? GET_NOWHERE.repeat(2500) : before);
    if (before !== '') {
      socket.resume();
      await once(socket, 'data');
      socket.pause().write(GET_NOWHERE.repeat(2500));
    }
    await vi.waitUntil(() => socket.resume().destroyed);
    expect(await cut(gateway, 'pipelined')).toBe(1);
    const lines = gateway.logLines.filter((line) => line.includes('"status":'));
    expect(lines.length).toBeLessThan(10);
    expect((await gateway.get('/v2/nowhere', { isUndocumented: true })).status).toBe(404);
  });
});

/** One whose request was answered. */
async function idle(gateway: TestGateway, localAddress: string): Promise<Socket> {
  const socket = dial(gateway.publicUrl, GET_NOWHERE, localAddress);
  socket.resume();
  await once(socket, 'data');
  return socket;
}

describe('as many connections as there may be', () => {
  test('the one is closed that has idled longest, of the address that has most', async () => {
    const gateway = await gatewayWith('server: { maxConnections: 5 }');
    const other = await idle(gateway, '127.0.0.2');
    const many = [];
    for (let index = 0; index < 4; index += 1) many.push(await idle(gateway, '127.0.0.1'));
    const [first, second, third] = many;
    // A connection that is used again idles from then on.
    first?.write(GET_NOWHERE);
    await once(first ?? other, 'data');
    await idle(gateway, '127.0.0.3');
    await vi.waitUntil(() => second?.destroyed);
    await idle(gateway, '127.0.0.3');
    await vi.waitUntil(() => third?.destroyed);
    expect([other, first].map((socket) => socket?.destroyed)).toEqual([false, false]);
    expect([await cut(gateway, 'idle'), await metricOf(gateway, 'evalgate_http_connections_dropped_total')]).toEqual([
      2, 0,
    ]);
  });

  test('one that has sent a part of a request for seconds idles, too', async () => {
    const gateway = await gatewayWith('server: { maxConnections: 3 }');
    const other = await idle(gateway, '127.0.0.2');
    const halves = [1, 2].map(() => dial(gateway.publicUrl, 'GET /', '127.0.0.1').resume());
    await waitFor(gateway, 'evalgate_http_connections{listener="public"}', (count) => count === 3);
    await vi.waitFor(
      async () => {
        const late = dial(gateway.publicUrl, GET_NOWHERE, '127.0.0.3').resume();
        await Promise.race([once(late, 'data'), once(late, 'close')]);
        expect(late.destroyed).toBe(false);
      },
      { timeout: 8000, interval: 500 },
    );
    await vi.waitUntil(() => halves.filter((half) => half.destroyed).length === 1);
    expect(other.destroyed).toBe(false);
  });

  test('never one with a request under way, which may not have arrived whole', async () => {
    const gateway = await gatewayWith('server: { maxConnections: 2 }');
    const key = await gateway.issueKey();
    const gate = gateway.store.hold();
    const busy = dial(gateway.publicUrl, `GET /v2/calls HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`);
    await gateway.store.waitForCalls(1);
    const half = await idle(gateway, '127.0.0.1');
    half.write('GET /elsewhere HTTP/1.1\r\nHos');
    await vi.waitFor(async () => {
      const late = dial(gateway.publicUrl, GET_NOWHERE);
      late.resume();
      await vi.waitUntil(() => late.destroyed);
      expect(await metricOf(gateway, 'evalgate_http_connections_dropped_total')).toBeGreaterThan(0);
    });
    half.write('t: a\r\n\r\n');
    await once(half, 'data');
    busy.resume();
    gate.release();
    await once(busy, 'data');
    expect([busy.destroyed, half.destroyed]).toEqual([false, false]);
  });
});

test('server.keepAlive: how long an idle connection stays open, which each answer says', async () => {
  const replies = [];
  for (const config of ['', 'server: { keepAlive: 620s }']) {
    replies.push(
      await (await gatewayWith(config)).get('/docs', { isUndocumented: true, headers: { connection: 'keep-alive' } }),
    );
  }
  expect(replies.map(({ headers }) => headers['keep-alive'])).toEqual(['timeout=75', 'timeout=620']);
});

test('a gateway that ends does not wait for connections on which no request arrives', async () => {
  const gateway = await startTestGateway();
  const sockets = [gateway.publicUrl, gateway.adminUrl].flatMap((url) => [dial(url, ''), dial(url, 'GET /livez HT')]);
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  await waitFor(gateway, 'evalgate_http_connections{listener="public"}', (value) => value >= 2);
  const closed = Promise.all(sockets.map((socket) => once(socket.resume(), 'close')));
  // Requests in flight may take 30 s, more than a test.
  await gateway.close();
  expect(await closed).toHaveLength(4);
});
