/** The program as a whole, and the commands that run until they are stopped. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import packageJson from '../../package.json' with { type: 'json' };
import { runCli, runDoctor, runJson, type RunningCli, startCliUntil } from '../support/cli.ts';
import { fileOf } from '../support/files.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { createStoreServer } from '../support/store-server.ts';

let running: RunningCli | null = null;
afterEach(async () => {
  running?.signal('SIGINT');
  await running?.ended;
  running = null;
});

/** A JSON document is whole when its last brace stands alone. */
const WHOLE = /^\}$/m;

async function start(args: readonly string[], env: Record<string, string>): Promise<RunningCli> {
  running = await startCliUntil(WHOLE, [...args, '--json'], { env });
  return running;
}

describe('the program', () => {
  test.each([[[]], [['keys']], [['cache']]])('without a command (%j) shows the help and ends with 2', async (args) => {
    const { status, stdout, stderr } = await runCli(args);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain('Commands:');
  });

  test.each([
    [['sevre'], "unknown command 'sevre'\n(Did you mean serve?)"],
    [['serve', '--prot', '1'], "unknown option '--prot'"],
  ])('%j ends with 2 and a guess', async (args, message) => {
    const { status, stdout, stderr } = await runCli(args);
    expect([status, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  test('--version prints the version of the package', async () => {
    expect(await runCli(['--version'])).toEqual({ status: 0, stdout: `${packageJson.version}\n`, stderr: '' });
  });

  test('a wrong call with --json gives a document too', async () => {
    const { status, stdout } = await runCli(['keys', 'show', '--json']);
    expect([status, JSON.parse(stdout)]).toEqual([2, { error: { message: "error: missing required argument 'id'" } }]);
  });
});

const print = async (...args: readonly string[]) =>
  (await runCli(['openapi', ...args], { env: { RATE_LIMIT_PER_MINUTE: '77' } })).stdout;

describe('openapi', () => {
  const schema = z.object({
    openapi: z.string(),
    info: z.object({ description: z.string() }),
    paths: z.record(z.string(), z.unknown()),
    components: z.record(z.string(), z.record(z.string(), z.unknown())),
  });
  test('prints the whole document, with the limits of the configuration', async () => {
    const document = schema.parse(JSON.parse(await print()));
    expect(document.openapi).toMatch(/^3\.1\./);
    expect(document.info.description).toContain('77 requests in any 60 seconds');
    expect(Object.keys(document.paths)).toHaveLength(12);
  });

  test.each(['v1', 'v2'])('%s prints that surface, with the components that it uses and no others', async (surface) => {
    const text = await print(surface, '--json');
    const { paths, components } = schema.parse(JSON.parse(text));
    expect(Object.keys(paths).filter((path) => path.startsWith(`/${surface}/`))).toHaveLength(6);
    expect(Object.keys(paths)).toHaveLength(6);
    const { securitySchemes = {}, ...rest } = components;
    expect(Object.keys(securitySchemes)).toHaveLength(1);
    const defined = Object.entries(rest).flatMap(([kind, members]) =>
      Object.keys(members).map((name) => `${kind}/${name}`),
    );
    const referred = [...text.matchAll(/"#\/components\/([^"]+)"/g)].map(([, reference]) => reference);
    expect(new Set(defined)).toEqual(new Set(referred));
  });

  test('--server is the address that the document names, and has to be one', async () => {
    const document: unknown = JSON.parse(await print('--server', 'https://api.example.com/'));
    expect(document).toMatchObject({ servers: [{ url: 'https://api.example.com' }] });
    const { status, stderr } = await runCli(['openapi', '--server', 'nope']);
    expect([status, stderr]).toEqual([
      2,
      '--server: "nope" was given; allowed: an http:// or https:// address, such as https://api.example.com\n',
    ]);
  });

  test('of another surface is a wrong call', async () => {
    const { status, stderr } = await runCli(['openapi', 'v3']);
    expect(status).toBe(2);
    expect(stderr).toContain('Allowed choices are v1, v2.');
  });
});

const FREE = { PORT: '0', ADMIN_PORT: '0', LOG_LEVEL: 'silent' };
const servedSchema = z.object({
  publicUrl: z.string(),
  adminUrl: z.string(),
  demo: z.object({ v1Key: z.string(), v2Key: z.string(), curlLines: z.array(z.string()) }).nullable(),
});

describe('serve', () => {
  test('lists all faults of the configuration and ends with 1', async () => {
    const { status, stdout, stderr } = await runCli(['serve', '--json'], { env: { PORT: 'x', LOG_LEVEL: 'y' } });
    expect(status).toBe(1);
    expect(stderr).toMatch(
      /^The configuration has 2 faults:\n {2}PORT: given "x"; .*\n {2}LOG_LEVEL: given "y"; .*\n$/,
    );
    expect(JSON.parse(stdout)).toEqual({ error: { message: stderr.trimEnd() } });
  });

  test.each([
    ['PORT', 'ADMIN_PORT'],
    ['ADMIN_PORT', 'PORT'],
  ])('on a %s that is taken says what to change, and leaves nothing running', async (taken, other) => {
    const occupant = await createStoreServer();
    const { port } = new URL(occupant.url);
    const env = { ...FREE, [taken]: port, [other]: '0' };
    const { status, stderr } = await runCli(['serve', '--demo'], { env });
    await occupant.close();
    expect([status, stderr]).toEqual([
      1,
      `${taken}=${port} on 127.0.0.1 is taken: something listens there already. Stop it, or set ${taken} to another.\n`,
    ]);
  });

  test('on two ports that are taken names both', async () => {
    const occupants = [await createStoreServer(), await createStoreServer()];
    const [port = '', adminPort = ''] = occupants.map(({ url }) => new URL(url).port);
    const { status, stderr } = await runCli(['serve', '--demo'], { env: { PORT: port, ADMIN_PORT: adminPort } });
    for (const occupant of occupants) await occupant.close();
    expect([status, stderr.match(/^\w+=\d+ on 127\.0\.0\.1 is taken/gm)]).toEqual([
      1,
      [`PORT=${port} on 127.0.0.1 is taken`, `ADMIN_PORT=${adminPort} on 127.0.0.1 is taken`],
    ]);
  });

  test.each([
    [{}, true],
    [{ REDIS_URL: 'redis://127.0.0.1:1' }, false],
  ])('in front of a store of its own (%j) says how to make a key, and whether keys last', async (env, areLost) => {
    const own = { ...FREE, UPSTREAM_URL: 'http://127.0.0.1:1', UPSTREAM_TOKEN: 't', DRAIN_DELAY: '0s', ...env };
    running = await startCliUntil(/keys create .*\n(?:Without.*\n)?$/, ['serve'], { env: own });
    const { stdout } = running.output;
    expect(stdout).toMatch(/^ {2}npx evalgate keys create --name .* --workspace UUID .*--admin http:\S+$/m);
    expect(stdout.includes('Without REDIS_URL keys are held by this process and end with it.')).toBe(areLost);
    running.signal('SIGINT');
    expect((await running.ended).status).toBe(0);
  });

  test('in front of the bundled store prints addresses, a key a surface and a line for each endpoint', async () => {
    running = await startCliUntil(/(?:^curl .*\n){10}/m, ['serve', '--demo'], { env: FREE });
    const lines = running.output.stdout.split('\n');
    expect(lines.slice(0, 8)).toEqual([
      'evalgate is running in front of its bundled sample store.',
      '',
      expect.stringMatching(/^API {5}http:\/\/127\.0\.0\.1:\d+\/v1 and http:\/\/127\.0\.0\.1:\d+\/v2$/),
      expect.stringMatching(/^Docs {4}http:\/\/127\.0\.0\.1:\d+\/docs$/),
      expect.stringMatching(/^Admin {3}http:\/\/127\.0\.0\.1:\d+$/),
      expect.stringMatching(/^Keys {4}evg_\w{38} \(v1\)$/),
      expect.stringMatching(/^ {8}evg_\w{38} \(v2\)$/),
      '',
    ]);
    running.signal('SIGINT');
    expect((await running.ended).status).toBe(0);
  });

  test('without a store it refuses to start, and says both ways', async () => {
    const { status, stdout, stderr } = await runCli(['serve'], {
      env: { ...FREE, UPSTREAM_URl: 'http://127.0.0.1:1' },
    });
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toMatch(
      /^UPSTREAM_URL is not set: set it to the address of your evaluation store, or try the bundled sample store with `evalgate serve --demo` \(in a checkout: `npm start`\)\.$/m,
    );
  });

  test('in front of a store of its own it has no demo keys, not even as a demo; SIGTERM ends it with 0', async () => {
    const env = { ...FREE, UPSTREAM_URL: 'http://127.0.0.1:1', UPSTREAM_TOKEN: 't', DRAIN_DELAY: '0s' };
    const { output, signal, ended } = await start(['serve', '--demo'], env);
    const { publicUrl, adminUrl, demo } = servedSchema.parse(JSON.parse(output.stdout));
    expect([demo, (await fetch(`${adminUrl}/readyz`)).status]).toEqual([null, 200]);
    signal('SIGTERM');
    signal('SIGTERM');
    expect((await ended).status).toBe(0);
    for (const url of [publicUrl, adminUrl]) await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  test('SIGHUP ends one that was started at a terminal, which is gone by then', async () => {
    const env = { ...FREE, UPSTREAM_URL: 'http://127.0.0.1:1', UPSTREAM_TOKEN: 't', DRAIN_DELAY: '0s' };
    running = await startCliUntil(WHOLE, ['serve', '--json'], { env, typed: '' });
    running.signal('SIGHUP');
    expect((await running.ended).status).toBe(0);
  });

  test('SIGHUP reads the file again: what can change is in force at once, and an invalid file changes nothing', async () => {
    const file = fileOf('{rateLimit: {perMinute: 7}, keys: {grace: 1m}}');
    const write = (perMinute: unknown) =>
      writeFileSync(file, JSON.stringify({ rateLimit: { perMinute }, keys: { grace: '1m' } }));
    const { output, signal } = await start(['serve', '--demo'], { ...FREE, CONFIG_FILE: file });
    const { publicUrl, adminUrl, demo } = servedSchema.parse(JSON.parse(output.stdout));
    const limit = async () => {
      const headers = { authorization: `Bearer ${demo?.v2Key}` };
      return (await fetch(`${publicUrl}/v2/calls`, { headers })).headers.get('x-ratelimit-minute-limit');
    };
    const reloads = async () =>
      [
        ...(await (await fetch(`${adminUrl}/metrics`)).text()).matchAll(
          /^evalgate_config_reloads_total\{result="(\w+)"\} 1$/gm,
        ),
      ].map(([, result]) => result);
    const configCheck = async () => {
      const { lines } = await runDoctor({}, ['--admin', adminUrl]);
      return lines.filter((line) => / config: /.test(line)).at(-1);
    };
    expect(await limit()).toBe('7');
    write(9);
    signal('SIGHUP');
    expect([await limit(), await reloads()]).toEqual(['9', ['success']]);
    write('none');
    signal('SIGHUP');
    expect([await limit(), await reloads()]).toEqual(['9', ['success', 'failure']]);
    const refused = (await configCheck()) ?? '';
    expect(refused).toMatch(
      /^fail config: the old one stays in force, since the new one is invalid: rateLimit\.perMinute/,
    );
    expect(refused).toMatch(/\(since 20\S+Z\)$/);
    writeFileSync(file, 'server: {maxInFlight: 7}\nrateLimit: {perMinute: 11}');
    signal('SIGHUP');
    expect([await limit(), await configCheck()]).toEqual(['11', `ok config: in force as last read: ${file}`]);
    const settings = z
      .object({ settings: z.object({ server: z.object({ maxInFlight: z.object({ value: z.number() }) }) }) })
      .parse(await (await fetch(`${adminUrl}/api/config`)).json());
    expect(settings.settings.server.maxInFlight.value).toBe(1000);
  });
});

const list = (url: string, workspaceId: string, token: string) =>
  fetch(`${url}/internal/v1/evaluations?workspaceId=${workspaceId}`, {
    headers: { authorization: `Bearer ${token}` },
  });

describe('sample-upstream', () => {
  const startedSchema = z.object({
    url: z.string(),
    token: z.string().nullable(),
    evaluations: z.number(),
    workspaceIds: z.array(z.string()),
  });
  const startSample = async (args: readonly string[], env: Record<string, string> = {}) => {
    const { output } = await start(['sample-upstream', '--port', '0', '--latency', '0', ...args], env);
    return startedSchema.parse(JSON.parse(output.stdout));
  };
  test('serves as many evaluations as asked, and ends with 0 on SIGTERM', async () => {
    const { url, token, workspaceIds } = await startSample(['--evaluations', '40', '--seed', '7']);
    expect(token).toBe('sample-token');
    const totals = await Promise.all(
      workspaceIds.map(async (id) =>
        z.object({ total: z.number() }).parse(await (await list(url, id, 'sample-token')).json()),
      ),
    );
    expect(totals.reduce((sum, { total }) => sum + total, 0)).toBe(40);
    running?.signal('SIGTERM');
    expect((await running?.ended)?.status).toBe(0);
  });

  test('asks for the token of the environment, does not print it, and fails as told', async () => {
    const file = fileOf('my-own\n');
    const args = ['--evaluations', '5', '--status', '503', '--retry-after', '9'];
    const { url, token, workspaceIds } = await startSample(args, { UPSTREAM_TOKEN_FILE: file });
    expect(token).toBeNull();
    const [workspaceId = ''] = workspaceIds;
    expect((await list(url, workspaceId, 'sample-token')).status).toBe(401);
    const failed = await list(url, workspaceId, 'my-own');
    expect([failed.status, failed.headers.get('retry-after')]).toEqual([503, '9']);
  });

  test.each([
    [['--error-rate', '1.0'], 500],
    [['--redirect'], 302],
    [['--misbehave', 'redirect-loop'], 307],
  ])('fails as told: %j', async (args, status) => {
    const { url } = await startSample(['--evaluations', '5', ...args]);
    const headers = { authorization: 'Bearer sample-token' };
    expect((await fetch(`${url}/internal/v1/evaluations/x`, { headers, redirect: 'manual' })).status).toBe(status);
  });

  test('without --json says how to put a gateway before it', async () => {
    const args = ['sample-upstream', '--port', '0', '--evaluations', '5'];
    running = await startCliUntil(/evalgate serve\n$/, args, { env: { UPSTREAM_TOKEN: 's3cret' } });
    expect(running.output.stdout).toMatch(
      /^The sample store listens on http:\S+ with 5 evaluations in \d+ workspaces:\n/,
    );
    expect(running.output.stdout).toMatch(/\n {2}UPSTREAM_URL=http:\S+ UPSTREAM_TOKEN=\.\.\. npx evalgate serve\n$/);
  });

  test.each([
    [['--port', '65536'], 2, 'Allowed: an integer from 0 to 65535.'],
    [['--evaluations', '0'], 2, 'Allowed: an integer from 1 to 1000000.'],
    [
      ['--error-rate', '1.01'],
      2,
      "option '--error-rate <rate>' argument '1.01' is invalid. Allowed: a number from 0 to 1.",
    ],
    [['--hang-rate', 'often'], 2, 'Allowed: a number from 0 to 1.'],
    [['--status', '200'], 2, 'Allowed: an integer from 400 to 599.'],
    [['--retry-after', '1.5'], 2, 'Allowed: an integer from 0 to 86400.'],
    [['--capacity', '0'], 2, 'Allowed: an integer from 1 to 10000.'],
    [['--misbehave', 'badly'], 2, 'Allowed: one of the ways that --help lists.'],
    [['--gzip-bomb', 'yes'], 2, 'too many arguments'],
  ])('%j is a wrong call', async (args, expected, message) => {
    const { status, stdout, stderr } = await runCli(['sample-upstream', ...args]);
    expect([status, stdout]).toEqual([expected, '']);
    expect(stderr).toContain(message);
  });

  test('on a port that is taken, or without its token, says so', async () => {
    const occupant = createServer().listen(0, '127.0.0.1');
    await vi.waitUntil(() => occupant.listening);
    const { port } = z.object({ port: z.int() }).parse(occupant.address());
    const args = ['sample-upstream', '--evaluations', '5', '--port', String(port)];
    expect(await runCli(args)).toMatchObject({
      status: 1,
      stderr: `It cannot listen on 127.0.0.1:${port} (EADDRINUSE). Give another --port or --host.\n`,
    });
    occupant.close();
    const { status, stderr } = await runCli(args, { env: { UPSTREAM_TOKEN_FILE: '/none' } });
    expect(status).toBe(1);
    expect(stderr).toContain('UPSTREAM_TOKEN_FILE: given "/none"; it cannot be read: there is no such file;');
  });
});

test('one environment serves the gateway and its commands', async () => {
  const env = {
    ...FREE,
    UPSTREAM_URL: 'http://127.0.0.1:1',
    UPSTREAM_TOKEN: 't',
    ADMIN_TOKEN: 'an-admin-token-of-ours',
  };
  const { output } = await start(['serve', '--demo'], env);
  const { adminUrl, publicUrl } = servedSchema.parse(JSON.parse(output.stdout));
  const args = ['keys', 'create', '--name', 'a', '--workspace', WORKSPACE_A, '--scope', 'calls.read'];
  const own = { ...env, ADMIN_PORT: new URL(adminUrl).port };
  const key = z.object({ key: z.string() }).parse(await runJson(args, { env: own }));
  const response = await fetch(`${publicUrl}/v2/key`, { headers: { authorization: `Bearer ${key.key}` } });
  expect(response.status).toBe(200);
});
