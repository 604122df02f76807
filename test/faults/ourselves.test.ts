/** How the gateway bounds what its own clients can cost it. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { ApiKey } from '../../src/keys/key.ts';
import { MemoryRegistry } from '../../src/keys/memory-registry.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { GatewayProcess } from '../support/process.ts';
import { anEvaluation, EVALUATION_ID, WORKSPACE_A } from '../support/records.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  for (const close of closers.splice(0).toReversed()) await close();
});

async function gatewayWith(yaml: string): Promise<TestGateway> {
  const gateway = await startTestGateway({ config: yaml });
  closers.push(() => gateway.close());
  gateway.store.put({ evaluations: [anEvaluation()] });
  return gateway;
}

/** A connection of its own, on which bytes are sent as they are. */
async function dial(url: string, bytes: string, localAddress = '127.0.0.1'): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ port: Number(port), host: hostname, localAddress });
  socket.on('error', () => undefined);
  await new Promise<void>((resolve) => socket.write(bytes, () => resolve()));
  return socket;
}

const SLOW_KEY = 'key-whose-look-up-takes-long';
const SLOW: Omit<ApiKey, 'hash'> = {
  keyId: 'slow',
  name: 'slow',
  status: 'active',
  workspaceIds: [WORKSPACE_A],
  scopes: ['calls.read'],
  createdAtMs: 0,
  expiresAtMs: null,
  limits: { perMinute: null, perHour: null },
  quotaId: 'slow',
  lastUsedAtMs: null,
};

/** Look-ups of that key wait until they are released: a request holds a slot while its key is looked up. */
function holdLookUps() {
  const gate = Promise.withResolvers<void>();
  const find = vi.spyOn(MemoryRegistry.prototype, 'find').mockImplementation(async (hash) => {
    await gate.promise;
    return { ...SLOW, hash };
  });
  const lookUps = (): number => find.mock.calls.length;
  return {
    lookUps,
    waitForLookUps: (count: number) => vi.waitUntil(() => lookUps() === count),
    release: () => gate.resolve(),
  };
}

const LIVE = 'GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';

function request(path: string, key: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${key}\r\n\r\n`;
}

const aborted = (gateway: TestGateway): number =>
  gateway.logLines.filter((line) => line.includes('"aborted":true')).length;

const OVERLOADED = 'The gateway has as many requests under way as it can serve. Try again later.';
const CALL = `/v2/calls/${EVALUATION_ID}`;
const REPORTS = `/v1/workspaces/${WORKSPACE_A}/reports`;

describe('S2: more requests at a time than it works on', () => {
  test('are refused before their key is looked up, in the form of their surface', async () => {
    const gateway = await gatewayWith('server: { maxInFlight: 1 }');
    const key = await gateway.issueKey();
    const slow = holdLookUps();
    const first = gateway.get(CALL, { key: SLOW_KEY });
    await slow.waitForLookUps(1);
    const [v1, v2, list] = await Promise.all([
      gateway.get(`${REPORTS}/${EVALUATION_ID}`, { key: SLOW_KEY }),
      gateway.get(CALL, { key }),
      gateway.get(REPORTS),
    ]);
    expect([v1.json, v2.json, list.json]).toEqual([
      { error: OVERLOADED },
      { error: { message: OVERLOADED } },
      { reports: [], error: OVERLOADED },
    ]);
    for (const { status, headers } of [v1, v2, list]) {
      expect([status, headers['retry-after'], headers['x-ratelimit-limit']]).toEqual([500, '1', undefined]);
    }
    const elsewhere = ['/docs', '/v2/nowhere'].map((path) => gateway.get(path, { key, isUndocumented: true }));
    expect((await Promise.all(elsewhere)).map(({ status }) => status)).toEqual([500, 500]);
    expect(slow.lookUps()).toBe(1);
    slow.release();
    expect((await first).status).toBe(200);
    expect((await gateway.get(CALL, { key })).status).toBe(200);
  });

  test('do not include those whose clients have gone, also behind another on their connection', async () => {
    const gateway = await gatewayWith('server: { maxInFlight: 3 }');
    const key = await gateway.issueKey();
    const slow = holdLookUps();
    const socket = await dial(gateway.publicUrl, request(CALL, SLOW_KEY).repeat(3));
    await slow.waitForLookUps(3);
    expect((await gateway.get(CALL, { key })).status).toBe(500);
    socket.destroy();
    await vi.waitUntil(() => aborted(gateway) === 3);
    expect((await gateway.get('/v2/key', { key })).status).toBe(200);
    slow.release();
    expect((await gateway.get(CALL, { key })).status).toBe(200);
    const lines = gateway.logLines.filter((line) => line.includes('"aborted":true'));
    expect(lines.every((line) => line.includes('"status":499'))).toBe(true);
  });

  test('do not include those whose answers are only being taken slowly', async () => {
    const gateway = await gatewayWith('server: { maxInFlight: 1 }');
    const bundle = '/docs/swagger-ui-bundle.js';
    const slow = await dial(gateway.publicUrl, `GET ${bundle} HTTP/1.1\r\nHost: a\r\n\r\n`);
    slow.pause();
    await vi.waitFor(async () => expect((await gateway.get('/docs', { isUndocumented: true })).status).toBe(200));
    expect(slow.bytesRead).toBeLessThan(1_000_000);
    slow.destroy();
  });
});

describe('work for clients that have gone', () => {
  test('is not begun: no read for a request that was left while its key was looked up', async () => {
    const gateway = await gatewayWith('');
    const slow = holdLookUps();
    const socket = await dial(gateway.publicUrl, request(CALL, SLOW_KEY));
    await slow.waitForLookUps(1);
    socket.destroy();
    await vi.waitUntil(() => aborted(gateway) === 1);
    slow.release();
    // A request that comes later is past where the other one would have been.
    expect((await gateway.get(`${CALL}0`, { key: SLOW_KEY })).status).toBe(404);
    expect(gateway.store.requests.map(({ id }) => id)).not.toContain(EVALUATION_ID);
  });

  test('goes on if another waits for it', async () => {
    const gateway = await gatewayWith('');
    const key = await gateway.issueKey();
    const gate = gateway.store.hold();
    const socket = await dial(gateway.publicUrl, request(CALL, key));
    await gateway.store.waitForCalls(1);
    const other = gateway.get(CALL, { key });
    socket.destroy();
    await vi.waitUntil(() => aborted(gateway) === 1);
    gate.release();
    expect((await other).status).toBe(200);
    expect(gateway.store.calls()).toBe(1);
  });
});

describe('an address of more than 8192 bytes', () => {
  const long = `?search=${'x'.repeat(9000)}`;
  const TOO_LONG = 'The address is longer than 8192 bytes.';

  test.each([
    [`/v2/calls${long}`, 400, { error: { message: TOO_LONG } }],
    [`${CALL}${long}`, 400, { error: { message: TOO_LONG } }],
    [`${REPORTS}${long}`, 400, { reports: [], error: TOO_LONG }],
    [`${REPORTS}/${EVALUATION_ID}${long}`, 404, { error: 'There is no such report in this workspace.' }],
  ])('S1: %# is answered in its form', async (path, status, body) => {
    const gateway = await gatewayWith('');
    const reply = await gateway.get(path, { key: await gateway.issueKey() });
    expect([reply.status, reply.json]).toEqual([status, body]);
    expect((await gateway.get(path)).status).toBe(401);
    expect(gateway.store.calls()).toBe(0);
  });
});

/** Resolves with all that came until the other side ended the connection. */
async function ended(socket: Socket): Promise<string> {
  let text = '';
  socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
  socket.resume();
  await new Promise<void>((resolve) => socket.on('close', () => resolve()));
  return text;
}

describe('connections', () => {
  test('further ones than there may be are closed at once if none idles', async () => {
    const { publicUrl } = await gatewayWith('server: { maxConnections: 2 }');
    const half = 'GET / HTTP/1.1\r\nHost';
    const first = await Promise.all([dial(publicUrl, half), dial(publicUrl, half)]);
    const third = await dial(publicUrl, 'GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    expect(await ended(third)).toBe('');
    for (const socket of first) socket.destroy();
  });

  test('further ones of one address are closed at once if that is limited, and others are accepted', async () => {
    const { publicUrl } = await gatewayWith('server: { maxConnectionsPerAddress: 2 }');
    const half = 'GET / HTTP/1.1\r\nHost';
    const first = await Promise.all([dial(publicUrl, half), dial(publicUrl, half)]);
    expect(await ended(await dial(publicUrl, LIVE))).toBe('');
    expect(await ended(await dial(publicUrl, LIVE, '127.0.0.2'))).toMatch(/^HTTP\/1\.1 404 /);
    const [gone] = first;
    gone?.destroy();
    await vi.waitFor(async () => expect(await ended(await dial(publicUrl, LIVE))).toMatch(/^HTTP\/1\.1 404 /));
    for (const socket of first) socket.destroy();
  });

  test('one address that holds hundreds of half-sent requests keeps no probe from being answered', async () => {
    const { adminUrl } = await gatewayWith('');
    const half = await Promise.all(
      Array.from({ length: 600 }, () => dial(adminUrl, 'GET /readyz HTTP/1.1\r\nHost: localhost\r\nX: y')),
    );
    expect(await ended(await dial(adminUrl, LIVE, '127.0.0.2'))).toMatch(/^HTTP\/1\.1 200 OK/);
    for (const socket of half) socket.destroy();
  });
});

test('requests that had arrived when a busy gateway was told to stop are answered, all of them', async () => {
  const gateway = await GatewayProcess.start({ env: { DRAIN_DELAY: '0s', LOG_LEVEL: 'error' } });
  closers.push(() => gateway.kill());
  // Stopped, it accepts nothing, as if it were busy with a long computation: the system keeps what comes.
  gateway.signal('SIGSTOP');
  const sockets = await Promise.all(Array.from({ length: 40 }, () => dial(gateway.publicUrl, request('/v1/key', 'x'))));
  gateway.signal('SIGTERM');
  gateway.signal('SIGCONT');
  const answers = await Promise.all(sockets.map(ended));
  expect(new Set(answers.map((answer) => answer.slice(0, 12)))).toEqual(new Set(['HTTP/1.1 401']));
  expect(await gateway.exited).toEqual([0, null]);
});

test('requests that arrive while idle connections are being closed are answered', async () => {
  const gateway = await gatewayWith('');
  const bytes = 'GET /elsewhere HTTP/1.1\r\nHost: a\r\n\r\n';
  const sockets = await Promise.all(Array.from({ length: 200 }, () => dial(gateway.publicUrl, bytes)));
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  // The first to be closed shows that the gateway has begun. Those that are far behind it still get their answers.
  const late = sockets.slice(100);
  const answers = late.map(ended);
  sockets[0]?.once('close', () => {
    for (const socket of late) socket.write(bytes);
  });
  await gateway.close();
  for (const answer of await Promise.all(answers)) {
    expect(answer).toMatch(/^HTTP\/1\.1 404 /);
    expect(answer).toContain('Connection: close\r\n');
  }
});
