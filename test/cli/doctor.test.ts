/** `evalgate doctor` with real stores and gateways, sound and broken. Its findings about Redis are in test/integration. */
import type { ServerResponse } from 'node:http';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { runCli } from '../support/cli.ts';
import { startTestGateway } from '../support/gateway.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { createStoreServer, sendError, type StoreHandler, type StoreServer } from '../support/store-server.ts';

const reportSchema = z.object({
  ok: z.boolean(),
  checks: z.array(
    z.object({ name: z.string(), status: z.string(), message: z.string(), advice: z.string().nullable() }),
  ),
});

let store: StoreServer;
let folder: string;
beforeEach(async () => {
  store = await createStoreServer();
  folder = await mkdtemp(join(tmpdir(), 'evalgate-doctor-'));
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true });
});

/** An admin address where nothing listens. */
const NO_GATEWAY = ['--admin', 'http://127.0.0.1:1'];
const LIST = /\/internal\/v1\/evaluations$/;

async function doctor(env: Readonly<Record<string, string>>, args: readonly string[] = NO_GATEWAY) {
  const { status, stdout, stderr } = await runCli(['doctor', '--json', ...args], { env });
  expect(stderr).toBe('');
  const { ok, checks } = reportSchema.parse(JSON.parse(stdout));
  expect(status).toBe(ok ? 0 : 1);
  return { ok, checks, lines: checks.map(({ name, status: found, message }) => `${found} ${name}: ${message}`) };
}

/** In front of the store of the test. */
const examine = (env: Readonly<Record<string, string>> = {}, args: readonly string[] = []) =>
  doctor({ UPSTREAM_URL: store.url, UPSTREAM_TOKEN: store.token, ...env }, [...NO_GATEWAY, ...args]);

/** Answers with a list, with an ETag unless the headers say otherwise. */
function sendList(
  response: ServerResponse,
  items: readonly unknown[],
  headers: Record<string, string> = { etag: '"1"' },
) {
  response.writeHead(200, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify({ items, total: items.length }));
}

test('with nothing configured there is nothing wrong', async () => {
  expect((await doctor({})).lines).toEqual([
    'ok config: config/default.yaml; values other than defaults: 0 from the file, 0 from the environment',
    'skipped redis: not configured: keys, quotas and cache are in the memory of one process',
    'skipped upstream: UPSTREAM_URL is not set: only `evalgate serve --demo` starts, in front of the bundled sample store',
    'skipped admin: no gateway runs: nothing answers at http://127.0.0.1:1',
  ]);
});

test('C7: a sound store passes, and only reads are sent to it', async () => {
  const { ok, lines } = await examine();
  expect([ok, lines.map((line) => line.replace(/\d+ ms/, 'N ms')).slice(2, -1)]).toEqual([
    true,
    [
      'ok upstream: the store answers, in N ms, and accepts the token',
      "ok clock: differs from the store's by less than 5 seconds",
      'ok contract: lists: valid form; --workspace UUID checks records too',
      'ok contract: If-None-Match: answered with 304',
      'ok contract: a missing record: answered with 404 NOT_FOUND',
    ],
  ]);
  expect(store.requests.map(({ method, resource }) => `${method} ${resource}`)).toEqual([
    'GET list',
    'GET list',
    'GET evaluation',
  ]);
});

describe('faults of a store are found, with a remedy', () => {
  const noAnswer = 'fail upstream: the store gives no whole answer: ';
  const cases: readonly {
    readonly what: string;
    readonly handler?: StoreHandler;
    readonly env?: Readonly<Record<string, string>>;
    readonly found: string;
    readonly advice: string;
  }[] = [
    {
      what: 'a wrong token',
      env: { UPSTREAM_TOKEN: 'wrong' },
      found: 'fail upstream: the store refuses the token (status 401)',
      advice: 'Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.',
    },
    {
      what: 'a store that fails',
      handler: (_, response) => sendError(response, 503, 'FAILURE'),
      found: 'fail upstream: the store answers a list with status 503',
      advice: 'Check that UPSTREAM_URL is the base address of the store, and the log of the store.',
    },
    {
      what: 'a redirect',
      handler: (_, response) => void response.writeHead(302, { location: '/elsewhere' }).end(),
      found: 'fail upstream: the store redirects (status 302), and redirects are never followed',
      advice: 'Set UPSTREAM_URL to where it redirects to.',
    },
    {
      what: 'a body that never ends',
      handler: (_, response) => void response.writeHead(200).write('{"items":['),
      env: { UPSTREAM_TIMEOUT: '200ms' },
      found: `${noAnswer}no answer in time`,
      advice: 'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.',
    },
    {
      what: 'a body larger than is read',
      handler: (_, response) => void response.end('x'.repeat(9_000_000)),
      found: `${noAnswer}the answer is larger than 8000000 bytes`,
      advice: 'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.',
    },
    {
      what: 'a reset connection',
      handler: (request) => void request.socket.resetAndDestroy(),
      found: `${noAnswer}ECONNRESET`,
      advice: 'Check UPSTREAM_URL, the network between, UPSTREAM_TIMEOUT and the store itself.',
    },
    {
      what: 'a page of HTML',
      handler: (_, response) => void response.end('<html>'),
      found: 'fail contract: a list of the store is not {"items": [...], "total": integer}',
      advice: 'Check that UPSTREAM_URL is the base address of the store.',
    },
    {
      what: 'lists without ETag',
      handler: (_, response) => sendList(response, [], {}),
      found: 'warn contract: a list of the store has no ETag',
      advice: 'It works, but every refresh costs the store a whole answer.',
    },
    {
      what: 'If-None-Match that is ignored',
      handler: (_, response) => sendList(response, []),
      found: 'warn contract: If-None-Match: answered with 200 instead of 304',
      advice:
        'It works, but every refresh costs the store a whole answer. A busy store may just have changed: try again.',
    },
    {
      what: 'malformed records',
      handler: (_, response) => sendList(response, [anEvaluation(), { ...anEvaluation(), title: 7 }]),
      found: 'warn contract: 1 of 2 records are malformed',
      advice: 'They are left out of lists; the log of the gateway names them and the member that is wrong.',
    },
    {
      what: 'records of another workspace',
      handler: (_, response) => sendList(response, [anEvaluation({ workspaceId: WORKSPACE_B }), anEvaluation()]),
      found: 'fail contract: a list of one workspace holds 1 records of another',
      advice: 'They are never served. Have the store corrected.',
    },
  ];

  test.each(cases)('$what', async ({ handler, env, found, advice }) => {
    if (handler !== undefined) store.override(LIST, handler);
    const { ok, checks, lines } = await examine(env, ['--workspace', WORKSPACE_A.toUpperCase()]);
    const place = lines.indexOf(found);
    expect([found, lines]).toEqual([found, expect.arrayContaining([found])]);
    expect([ok, checks[place]?.advice]).toEqual([!found.startsWith('fail'), advice]);
  });

  test.each([
    [{ error: 'no' }, ' without a code'],
    [{ code: 'GONE', message: 'no' }, ' "GONE"'],
  ])('Q9: a 404 that is %j is no absence', async (body, shown) => {
    store.override(/evaluations\/[^/]+$/, (_, response) => {
      response.writeHead(404).end(JSON.stringify(body));
    });
    const { ok, lines } = await examine();
    expect([ok, lines.at(-2)]).toEqual([
      false,
      `fail contract: a missing record: answered with 404${shown} instead of 404 NOT_FOUND`,
    ]);
  });

  test('with --workspace the records themselves are looked at, and none is wrong', async () => {
    store.put({ evaluations: [anEvaluation(), anEvaluation({ _id: 'ev_2' })] });
    const { ok, lines } = await examine({}, ['--workspace', WORKSPACE_A]);
    expect([ok, lines[4]]).toEqual([true, 'ok contract: lists: 2 records are whole']);
  });

  test.each([
    [0, /^ok clock: differs from the store's by less than 5 seconds$/],
    [65_000, /^fail clock: this machine's clock is 6[456] s behind the store's$/],
    [-65_000, /^fail clock: this machine's clock is 6[456] s ahead of the store's$/],
    [null, /^skipped clock: the store sends no Date header to compare with$/],
  ])('a clock of the store that is %j ms ahead', async (aheadMs, found) => {
    store.override(LIST, (_, response) => {
      response.sendDate = false;
      const headers = aheadMs === null ? {} : { date: new Date(Date.now() + aheadMs).toUTCString() };
      sendList(response, [], { etag: '"1"', ...headers });
    });
    expect((await examine()).lines[3]).toMatch(found);
  });
});

describe('the configuration', () => {
  test('that is faulty is the finding, and the store is not looked at', async () => {
    const { ok, checks, lines } = await doctor({ PORT: 'x' });
    expect([ok, lines.length, checks[0]?.advice]).toEqual([
      false,
      2,
      'Correct what is listed; docs/configuration.md lists all settings.',
    ]);
    expect(lines[0]).toContain('PORT: given "x"');
  });

  test('with what is hardly meant, and with admin tokens that can be guessed, is warned of', async () => {
    const { ok, checks } = await doctor({ ADMIN_TOKEN: 'alice=short,bob=0123456789abcdef', REDIS_HOST: 'r' });
    expect([ok, checks.slice(1, 3)]).toEqual([
      true,
      [
        {
          name: 'config',
          status: 'warn',
          message:
            'REDIS_HOST is set and is no setting of evalgate. Those that begin with REDIS_ are REDIS_URL, REDIS_URL_FILE, REDIS_CACHE_URL, REDIS_CACHE_URL_FILE.',
          advice: 'Change it, unless it is meant.',
        },
        {
          name: 'config',
          status: 'warn',
          message: 'admin tokens of fewer than 16 characters can be guessed: alice',
          advice: 'Make new ones: openssl rand -base64 24',
        },
      ],
    ]);
    // Said once, whoever can reach the listener.
    const open = await doctor({ ADMIN_HOST: '0.0.0.0', ADMIN_TOKEN: 'short' });
    expect(open.checks.filter(({ message }) => message.includes('can be guessed'))).toHaveLength(1);
  });
});

describe('a running gateway', () => {
  const address = 'Give the address of the admin listener with --admin URL.';

  test('is found, and whether it takes our token', async () => {
    const gateway = await startTestGateway({ env: { ADMIN_TOKEN: 'a-token-of-operators' }, store });
    try {
      const { adminUrl, publicUrl } = gateway;
      const admin = async (url: string, env = {}) => (await doctor(env, ['--admin', url])).checks.at(-1);
      expect(await admin(adminUrl, { ADMIN_TOKEN: 'a-token-of-operators' })).toMatchObject({
        status: 'ok',
        message: `a gateway runs at ${adminUrl} and knows 0 keys`,
      });
      expect(await admin(adminUrl)).toMatchObject({
        status: 'fail',
        advice: 'Set ADMIN_TOKEN, or ADMIN_TOKEN_FILE, to a token that the gateway was started with.',
      });
      expect(await admin(adminUrl, { ADMIN_TOKEN: 'alice=a,b' })).toMatchObject({
        status: 'fail',
        message: 'ADMIN_TOKEN: part 2 (between commas) is not a name=token pair',
        advice: null,
      });
      for (const url of [publicUrl, `${publicUrl}/v2`, store.url]) {
        expect(await admin(url)).toMatchObject({ name: 'admin', status: 'fail', advice: address });
      }
    } finally {
      await gateway.close();
    }
  });
});

test('a gateway that is named is looked at itself, and not what this shell would start', async () => {
  const token = 'a-token-of-operators';
  const gateway = await startTestGateway({ env: { ADMIN_TOKEN: token, UPSTREAM_TIMEOUT: '7s' }, store });
  try {
    const env = { ADMIN_TOKEN: token, UPSTREAM_TIMEOUT: '5s', UPSTREAM_URL: 'http://127.0.0.1:1', DRAIN_DELAY: '2s' };
    const { ok, lines } = await doctor(env, ['--admin', gateway.adminUrl]);
    expect(ok).toBe(true);
    expect(lines).toEqual([
      expect.stringMatching(
        /^ok config: the gateway's own: \S+; values other than defaults: \d+ from the file, \d+ from/,
      ),
      `warn config: UPSTREAM_URL is "http://127.0.0.1:1" in this shell; the gateway runs with "${store.url}"`,
      'warn config: UPSTREAM_TIMEOUT is "5s" in this shell; the gateway runs with "7s"',
      'skipped config: not compared, since they are secrets: ADMIN_TOKEN',
      'ok ready: the gateway is ready',
      expect.stringMatching(/^skipped store: /),
      expect.stringMatching(/^ok capacity: /),
      expect.stringMatching(/^ok maintenance: /),
      `ok admin: a gateway runs at ${gateway.adminUrl} and knows 0 keys`,
    ]);
    expect((await doctor({}, ['--admin', gateway.adminUrl])).lines).toHaveLength(1);
    const { stdout } = await runCli(['doctor', '--admin', gateway.adminUrl], { env });
    expect(stdout).toMatch(/^ok {6}maintenance  off$/m);
    expect(stdout).toMatch(/^ok {6}ready {8}the gateway is ready$/m);
  } finally {
    await gateway.close();
  }
});

test('maintenance, which somebody switched on, is only a warning', async () => {
  const gateway = await startTestGateway({ store });
  try {
    await runCli(['cache', 'maintenance', 'on', '--for', '30m', '--admin', gateway.adminUrl]);
    const { ok, checks } = await doctor({}, ['--admin', gateway.adminUrl]);
    expect([ok, checks.find(({ name }) => name === 'maintenance')]).toMatchObject([
      true,
      { status: 'warn', advice: 'To end it: evalgate cache maintenance off.' },
    ]);
  } finally {
    await gateway.close();
  }
});

test('for people each finding is a line, with what to do beneath', async () => {
  const file = join(folder, 'my.yaml');
  await writeFile(file, 'rateLimit: {perMinute: 5}\n');
  const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: 'wrong', CONFIG_FILE: file };
  const { status, stdout } = await runCli(['doctor', ...NO_GATEWAY], { env });
  expect([status, stdout.split('\n')]).toEqual([
    1,
    [
      `ok      config    ${file}; values other than defaults: 1 from the file, 2 from the environment`,
      'skipped redis     not configured: keys, quotas and cache are in the memory of one process',
      'fail    upstream  the store refuses the token (status 401)',
      '                  What to do: Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.',
      "ok      clock     differs from the store's by less than 5 seconds",
      'skipped admin     no gateway runs: nothing answers at http://127.0.0.1:1',
      '',
    ],
  ]);
});
