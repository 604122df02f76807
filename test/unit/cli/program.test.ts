import { existsSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { z } from 'zod';
import packageJson from '../../../package.json' with { type: 'json' };
import { evalgate, serve } from './support.ts';

const COMMANDS = [
  [],
  ['serve'],
  ['sample-upstream'],
  ['keys'],
  ...['create', 'list', 'show', 'deprecate', 'revoke', 'rotate', 'import'].map((name) => ['keys', name]),
  ['doctor'],
  ['openapi'],
];

test.each(COMMANDS)(
  'every command has --help with examples, and --json where it answers: %s %s',
  async (...command) => {
    const { code, stdout, stderr } = await evalgate([...command, '--help']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toContain(`Usage: ${['evalgate', ...command].join(' ')} `);
    expect(stdout).toContain('\nExamples:\n  $ ');
    const isGroup = command.length === 0 || command.join(' ') === 'keys';
    expect(/^ {2}--json /m.test(stdout)).toBe(!isGroup);
  },
);

test.each([[[]], [['keys']]])('without a command (%j) the help is shown and the status is 2', async (args) => {
  const { code, stdout, stderr } = await evalgate(args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain('Commands:');
});

test.each([
  [['sevre'], "unknown command 'sevre'\n(Did you mean serve?)"],
  [['serve', '--prot', '1'], "unknown option '--prot'"],
])('%j ends with 2 and a guess', async (args, message) => {
  const { code, stdout, stderr } = await evalgate(args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
});

test('--version prints the version of the package', async () => {
  expect(await evalgate(['--version'])).toEqual({ code: 0, stdout: `${packageJson.version}\n`, stderr: '' });
});

test('serve with a faulty configuration lists all faults and ends with 1', async () => {
  const { code, stdout, stderr } = await evalgate(['serve', '--json'], { env: { PORT: 'x', LOG_LEVEL: 'y' } });
  expect(code).toBe(1);
  expect(stderr).toMatch(/^The configuration has 2 faults:\n {2}PORT: given "x"; .*\n {2}LOG_LEVEL: given "y"; .*\n$/);
  expect(JSON.parse(stdout)).toEqual({ error: { message: stderr.trimEnd() } });
});

test('serve on a port in use says what to change', async () => {
  const taken = await serve(() => [200, {}]);
  const { code, stderr } = await evalgate(['serve'], {
    env: { PORT: String(taken.port), ADMIN_PORT: '0', LOG_LEVEL: 'silent' },
  });
  await taken.close();
  expect([code, stderr]).toEqual([
    1,
    `PORT=${taken.port} on 127.0.0.1 is taken: something listens there already. Stop it, or set PORT to another.\n`,
  ]);
});

const TOO_OLD =
  /^evalgate needs Node\.js 24 or newer, and this is 2[0-3]\.[\d.]+\.\nIt brings its own: run `npm ci` .*/;

test('under a Node.js that is too old the launcher says what to do and ends with 1', async () => {
  const pretend = "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '23.11.0' } })";
  const { code, stdout, stderr } = await evalgate(['--version'], {
    nodeFlags: ['--import', `data:text/javascript,${encodeURIComponent(pretend)}`],
  });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(TOO_OLD);
});

/** A real old Node.js, where this machine has one. */
const oldNode = ['/usr/bin/node', '/usr/local/bin/node'].find(
  (path) =>
    existsSync(path) && Number.parseInt(execFileSync(path, ['-p', 'process.versions.node']).toString(), 10) < 24,
);

test.skipIf(oldNode === undefined)('and so it does under a real one', async () => {
  const { code, stdout, stderr } = await evalgate(['serve'], { node: oldNode ?? '' });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toMatch(TOO_OLD);
});

const documentSchema = z.object({
  openapi: z.string(),
  info: z.object({ description: z.string() }),
  paths: z.record(z.string(), z.unknown()),
  components: z.record(z.string(), z.record(z.string(), z.unknown())),
});

test('openapi prints the whole document, with the limits of the configuration', async () => {
  const { code, stdout } = await evalgate(['openapi'], { env: { RATE_LIMIT_PER_MINUTE: '77' } });
  expect(code).toBe(0);
  const document = documentSchema.parse(JSON.parse(stdout));
  expect(document.openapi).toMatch(/^3\.1\./);
  expect(document.info.description).toContain('77 requests in any 60 seconds');
  expect(Object.keys(document.paths).filter((path) => path.startsWith('/v1/'))).toHaveLength(6);
  expect(Object.keys(document.paths).filter((path) => path.startsWith('/v2/'))).toHaveLength(6);
});

test.each(['v1', 'v2'] as const)(
  'openapi %s prints that surface alone, with the components that it uses and no others',
  async (surface) => {
    const { stdout } = await evalgate(['openapi', surface]);
    const document = documentSchema.parse(JSON.parse(stdout));
    expect(Object.keys(document.paths).every((path) => path.startsWith(`/${surface}/`))).toBe(true);
    expect(Object.keys(document.paths)).toHaveLength(6);
    const { securitySchemes = {}, ...components } = document.components;
    expect(Object.keys(securitySchemes)).toHaveLength(1);
    const defined = Object.entries(components).flatMap(([kind, members]) =>
      Object.keys(members).map((name) => `${kind}/${name}`),
    );
    const referred = [...stdout.matchAll(/"#\/components\/([^"]+)"/g)].map(([, reference]) => reference);
    expect(new Set(defined)).toEqual(new Set(referred));
  },
);

test('openapi of another surface is a wrong call', async () => {
  const { code, stderr } = await evalgate(['openapi', 'v3']);
  expect(code).toBe(2);
  expect(stderr).toContain('Allowed choices are v1, v2.');
});
