/**
 * `evalgate doctor` with real gateways, sound and broken. Its findings about the store are in doctor-store.test.ts, those about
 * Redis in test/integration.
 */
import { beforeEach, describe, expect, test } from 'vitest';
import { NO_GATEWAY, runCli, runDoctor as doctor } from '../support/cli.ts';
import { startTestGateway } from '../support/gateway.ts';
import { fileOf } from '../support/files.ts';
import { forTest } from '../support/opened.ts';
import { createStoreServer, type StoreServer } from '../support/store-server.ts';

let store: StoreServer;
beforeEach(async () => {
  store = await forTest(createStoreServer());
});

test('with nothing configured there is nothing wrong', async () => {
  expect((await doctor({})).lines).toEqual([
    'ok config: config/default.yaml; values other than defaults: 0 from the file, 0 from the environment',
    'skipped redis: not configured: keys, quotas and cache are in the memory of one process',
    'skipped upstream: UPSTREAM_URL is not set: only `evalgate serve --demo` starts, in front of the bundled sample store',
    'skipped admin: no gateway runs: nothing answers at http://127.0.0.1:1',
  ]);
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

/** The doctor's finding on the gateway at that address. */
const admin = async (url: string, env = {}) => (await doctor(env, ['--admin', url])).checks.at(-1);

describe('a running gateway', () => {
  const address = 'Give the address of the admin listener with --admin URL.';

  test('is found, and whether it takes our token', async () => {
    const gateway = await forTest(startTestGateway({ env: { ADMIN_TOKEN: 'a-token-of-operators' }, store }));
    const { adminUrl, publicUrl } = gateway;
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
  });
});

test('a gateway that is named is looked at itself, and not what this shell would start', async () => {
  const token = 'a-token-of-operators';
  const gateway = await forTest(startTestGateway({ env: { ADMIN_TOKEN: token, UPSTREAM_TIMEOUT: '7s' }, store }));
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
    expect.stringMatching(/^ok answers: /),
    expect.stringMatching(/^ok maintenance: /),
    expect.stringMatching(/^ok config: in force as last read: /),
    `ok admin: a gateway runs at ${gateway.adminUrl} and knows 0 keys`,
  ]);
  expect((await doctor({}, ['--admin', gateway.adminUrl])).lines).toHaveLength(1);
  const { stdout } = await runCli(['doctor', '--admin', gateway.adminUrl], { env });
  expect(stdout).toMatch(/^ok {6}maintenance  off$/m);
  expect(stdout).toMatch(/^ok {6}ready {8}the gateway is ready$/m);
});

test('a gateway that runs nearby is looked at too, whether its address is spelt out or not', async () => {
  const gateway = await forTest(startTestGateway({ store }));
  gateway.store.fail(503);
  const key = await gateway.issueKey();
  await gateway.get('/v2/calls', { key });
  const { port } = new URL(gateway.adminUrl);
  const run = (args: readonly string[]) =>
    runCli(['doctor', ...args], { env: { ADMIN_PORT: port, UPSTREAM_URL: store.url } });
  const unnamed = await run([]);
  expect(unnamed.status).toBe(1);
  expect(unnamed.stdout).toMatch(/^fail {4}upstream /m);
  expect(unnamed.stdout).toMatch(/^fail {4}store {8}.*\(since /m);
  expect(await run(['--admin', `http://127.0.0.1:${port}`])).toEqual(unnamed);
});

test('maintenance, which somebody switched on, is only a warning', async () => {
  const gateway = await forTest(startTestGateway({ store }));
  await runCli(['cache', 'maintenance', 'on', '--for', '30m', '--admin', gateway.adminUrl]);
  const { ok, checks } = await doctor({}, ['--admin', gateway.adminUrl]);
  expect([ok, checks.find(({ name }) => name === 'maintenance')]).toMatchObject([
    true,
    { status: 'warn', advice: 'To end it: evalgate cache maintenance off.' },
  ]);
});

test('for people each finding is a line, with what to do beneath', async () => {
  const file = fileOf('rateLimit: {perMinute: 5}\n');
  const env = { UPSTREAM_URL: store.url, UPSTREAM_TOKEN: 'wrong', CONFIG_FILE: file };
  const { status, stdout } = await runCli(['doctor', ...NO_GATEWAY], { env });
  expect([status, stdout.split('\n')]).toEqual([
    1,
    [
      `ok      config       ${file}; values other than defaults: 1 from the file, 2 from the environment`,
      'skipped redis        not configured: keys, quotas and cache are in the memory of one process',
      'fail    upstream     the store refuses the token (status 401)',
      '                     What to do: Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.',
      "ok      clock        differs from the store's by less than 5 seconds",
      'skipped admin        no gateway runs: nothing answers at http://127.0.0.1:1',
      '',
    ],
  ]);
});
