/** The form and the levels of the log, and what never stands in it when the store or Redis is out of reach. */
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { fileOf } from '../../support/files.ts';
import { forTest } from '../../support/opened.ts';
import { logOf, linesOf } from '../../support/admin.ts';
import { startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { createStoreServer } from '../../support/store-server.ts';
import { programOnPath } from '../../support/process.ts';
import { anEvaluation, EVALUATION_ID } from '../../support/records.ts';

const CALL = `/v2/calls/${EVALUATION_ID}`;

const SOME_TEXT: unknown = expect.any(String);
const FRAMES: unknown = expect.stringMatching(/^at /);

let gateway: TestGateway;

async function start(env: Readonly<Record<string, string>>): Promise<void> {
  gateway = await forTest(startTestGateway({ env }));
}

const levels = (): ReadonlySet<string> => new Set(linesOf(gateway).map(({ level }) => level));

/** One more exchange, after which the lines of those before are written. */
const settle = () => gateway.admin('GET', '/livez');

/** An address of this machine at which nothing listens. */
async function nowhere(): Promise<URL> {
  const store = await createStoreServer();
  await store.close();
  return new URL(store.url);
}

describe('levels', () => {
  test.each([
    ['silent', []],
    ['error', []],
    ['warn', ['warn']],
    ['info', ['info', 'warn']],
    ['debug', ['debug', 'info', 'warn']],
  ])('at %s there are lines of %j', async (level, expected) => {
    await start({ LOG_LEVEL: level });
    gateway.store.fail(503);
    await gateway.get(CALL, { key: await gateway.issueKey() });
    await settle();
    expect([...levels()].toSorted((a, b) => (a < b ? -1 : 1))).toEqual(expected);
  });

  test('follow the configuration when it is read again', async () => {
    await start({ LOG_LEVEL: 'warn' });
    await gateway.get('/nowhere', { isUndocumented: true });
    gateway.reload({ LOG_LEVEL: 'info' });
    await gateway.get('/nowhere', { isUndocumented: true });
    await settle();
    expect(logOf(gateway, 'request')).toHaveLength(1);
  });
});

describe('log.requests', () => {
  test.each([
    ['all', [200, 401, 500]],
    ['errors', [401, 500]],
    ['off', []],
  ])('%s: the requests with these statuses have a line: %j', async (requests, expected) => {
    await start({ CONFIG_FILE: fileOf(`{log: {requests: ${requests}}, upstream: {breakerPercent: null}}`) });
    const key = await gateway.issueKey();
    gateway.store.put({ evaluations: [anEvaluation()] });
    await gateway.get(CALL, { key });
    await gateway.get(CALL);
    gateway.store.fail(503);
    await gateway.get('/v2/calls', { key });
    await settle();
    const written = logOf(gateway, 'request').filter(({ surface }) => surface === 'v2');
    expect(written.map(({ status }) => status)).toEqual(expected);
  });

  test('off: a failure of the gateway itself has a line, and a change is taken over while it runs', async () => {
    await start({ CONFIG_FILE: fileOf('{log: {requests: off}}') });
    gateway.store.evaluations.set(EVALUATION_ID, { ...anEvaluation(), state: 7 });
    const key = await gateway.issueKey();
    await gateway.get(CALL, { key });
    gateway.reload({ CONFIG_FILE: fileOf('{log: {requests: all}}') });
    await gateway.get(CALL);
    await settle();
    const written = logOf(gateway, 'request').filter(({ surface }) => surface === 'v2');
    expect(written).toMatchObject([{ status: 500, level: 'error' }, { status: 401 }]);
  });
});

describe('a line', () => {
  test('of each request is there once, in their order, with how long it took in milliseconds', async () => {
    await start({});
    const ids = Array.from({ length: 20 }, (_, index) => `id-${index}`);
    for (const id of ids) await gateway.get('/nowhere', { headers: { 'x-request-id': id }, isUndocumented: true });
    await settle();
    const texts = gateway.logLines.filter((line) => line.includes('"requestId":"id-'));
    expect(texts.map((text) => /"requestId":"([^"]+)"/.exec(text)?.[1])).toEqual(ids);
    for (const text of texts) expect(text).toMatch(/"durationMs":[0-9]+(?:\.[0-9]{1,3})?,/);
  });

  test('about a record that is not whole has the error with its kind and frames, and nothing of the record', async () => {
    await start({});
    gateway.store.evaluations.set(EVALUATION_ID, { ...anEvaluation({ title: 'hunter2' }), state: 7 });
    expect((await gateway.get(CALL, { key: await gateway.issueKey() })).status).toBe(500);
    await settle();
    const [line] = logOf(gateway, 'request').filter(({ status }) => status === 500);
    expect(line).toMatchObject({
      level: 'error',
      err: { type: 'StoreError', message: SOME_TEXT, stack: FRAMES },
    });
    expect(gateway.logLines.join('')).not.toContain('hunter2');
  });
});

describe('K2: what is out of reach is named without its address', () => {
  test.each([
    ['refuses connections', async () => `http://127.0.0.1:${(await nowhere()).port}/base`, 'ECONNREFUSED'],
    ['refuses them under a name', async () => `http://localhost:${(await nowhere()).port}/base`, 'ECONNREFUSED'],
    ['has no address', async () => 'http://store.invalid:9000/base', 'ENOTFOUND'],
  ])('a store that %s', async (_, address, code) => {
    const url = new URL(await address());
    await start({ LOG_LEVEL: 'trace', UPSTREAM_URL: url.href, UPSTREAM_TOKEN: 'hunter2' });
    const reply = await gateway.get(CALL, { key: await gateway.issueKey() });
    await settle();
    const log = gateway.logLines.join('');
    expect([reply.status, log]).toEqual([500, expect.stringContaining(code)]);
    for (const secret of ['hunter2', url.host, `:${url.port}`, '/base', 'store.invalid']) {
      expect(log).not.toContain(secret);
      expect(reply.text).not.toContain(secret);
    }
  });

  test.each(['redis://:hunter2@127.0.0.1', 'redis://user:hunter2@localhost', 'redis+cluster://:hunter2@localhost'])(
    'a Redis at %s',
    async (address) => {
      const { port } = await nowhere();
      await start({ LOG_LEVEL: 'trace', REDIS_URL: `${address}:${port}` });
      await vi.waitFor(() => expect(logOf(gateway, 'Redis does not answer')).toHaveLength(1), 10_000);
      expect(logOf(gateway, 'Redis does not answer')).toMatchObject([{ level: 'warn', reason: SOME_TEXT }]);
      const log = gateway.logLines.join('');
      expect(log).not.toContain('hunter2');
      expect(log).not.toContain(`:${port}`);
    },
    30_000,
  );
});

/** Runs a program at a terminal; util-linux has it. */
const SCRIPT = programOnPath('script');

test.skipIf(SCRIPT === null)('at a terminal a line is for a person: no JSON, no service and process', async () => {
  await start({});
  const program = join(import.meta.dirname, '../../../src/cli/evalgate.js');
  // The shell becomes the gateway, which outlives its terminal: SIGHUP makes it read its configuration again.
  const command = `echo pid $$; exec ${process.execPath} ${program} serve`;
  const child = spawn(SCRIPT ?? '', ['-qefc', command, '/dev/null'], {
    env: { ...process.env, PORT: '0', ADMIN_PORT: '0', UPSTREAM_URL: gateway.store.url, NO_COLOR: '1' },
    stdio: ['ignore', 'pipe', 'ignore'],
    detached: true,
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  try {
    await vi.waitFor(() => expect(text).toMatch(/^\[\d\d:\d\d:\d\d\.\d{3}\] INFO: started \{"version":/m), 15_000);
    expect(text).not.toContain('"service"');
  } finally {
    const [, pid] = /^pid (\d+)/m.exec(text) ?? [];
    if (pid !== undefined) process.kill(Number(pid), 'SIGKILL');
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  }
});
