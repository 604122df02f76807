/** `evalgate keys` through the admin listener of a real gateway. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text as textOf } from 'node:stream/consumers';
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { hashToken } from '../../src/keys/token.ts';
import { auditOf } from '../support/admin.ts';
import { cellsOf, type CliOptions, runCli, runJson } from '../support/cli.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { fileOf } from '../support/files.ts';
import { forTest } from '../support/opened.ts';
import { runProcess } from '../support/process.ts';
import { createStoreServer } from '../support/store-server.ts';

const DAY_MS = 86_400_000;
const CREATE = ['create', '--name', 'Acme', '--workspace', WORKSPACE_A, '--scope', 'calls.read'] as const;
const view = z.looseObject({
  keyId: z.string(),
  quotaId: z.string(),
  createdAt: z.string(),
  expiresAt: z.string().nullable(),
});
const issued = view.extend({ key: z.string() });

let gateway: TestGateway;
beforeEach(async () => {
  gateway = await forTest(startTestGateway());
});

const keys = (args: readonly string[], options: CliOptions = {}) =>
  runCli(['keys', ...args, '--admin', gateway.adminUrl], options);
const document = (args: readonly string[], options: CliOptions = {}) =>
  runJson(['keys', ...args, '--admin', gateway.adminUrl], options);
const create = async (...more: readonly string[]) => issued.parse(await document([...CREATE, ...more]));
const statusOf = async (key: string) => (await gateway.get('/v2/calls', { key })).status;

describe('create', () => {
  test('prints the key once, with what it may do', async () => {
    const args = ['create', '--name', 'Acme export', '--workspace', WORKSPACE_A, '--workspace', WORKSPACE_B];
    const more = ['--scope', 'reports.read', '--scope', 'calls.read', '--per-minute', '30', '--per-hour', '900'];
    const { status, stdout, stderr } = await keys([...args, ...more]);
    expect([status, stderr]).toEqual([0, '']);
    const [token = ''] = /evg_[A-Za-z0-9]{38}/.exec(stdout) ?? [];
    expect(stdout.split(token)).toHaveLength(2);
    expect(cellsOf(stdout).slice(1)).toEqual([
      ['name', 'Acme export'],
      ['status', 'active'],
      ['scopes', 'reports.read, calls.read'],
      ['workspaces', `${WORKSPACE_A}, ${WORKSPACE_B}`],
      ['limits', '30/min 900/h'],
      ['quota', expect.any(String)],
      ['created', '2026-01-15T12:00:00.000Z'],
      ['expires', 'never'],
      ['from', 'any address'],
      ['last used', 'never'],
      [''],
      ['The key itself, shown this once and stored nowhere:'],
      [''],
      ['', token],
    ]);
    expect(await statusOf(token)).toBe(200);
  });

  test('--expires counts from now; --json has keyId, the key and its properties', async () => {
    const before = Date.now();
    const made = await create('--expires', '90d', '--per-minute', '30');
    const lifeMs = Date.parse(made.expiresAt ?? '') - before;
    expect(lifeMs).toBeGreaterThanOrEqual(90 * DAY_MS);
    expect(lifeMs).toBeLessThan(91 * DAY_MS);
    expect(made).toMatchObject({ name: 'Acme', status: 'active', limits: { perMinute: 30, perHour: null } });
    expect(await statusOf(made.key)).toBe(200);
  });
});

// Other systems have no device that is always full.
describe.skipIf(process.platform !== 'linux')('a key that cannot be printed is taken back', () => {
  const PROGRAM = join(import.meta.dirname, '../../src/cli/evalgate.js');
  /** The command as a process, with that standard output. */
  const run = async (args: readonly string[], output: 'full' | 'closed') => {
    const full = output === 'full' ? openSync('/dev/full', 'w') : null;
    const child = spawn(process.execPath, [PROGRAM, 'keys', ...args, '--admin', gateway.adminUrl], {
      stdio: ['ignore', full ?? 'pipe', 'pipe'],
    });
    child.stdout?.destroy();
    if (full !== null) closeSync(full);
    const closed = once(child, 'close');
    const stderr = await textOf(child.stderr ?? Readable.from([]));
    await closed;
    return { status: child.exitCode, stderr };
  };

  test.each([
    ['ENOSPC', 'full'],
    ['EPIPE', 'closed'],
  ] as const)('%s: create', async (code, output) => {
    const { status, stderr } = await run(CREATE, output);
    const made = z.looseObject({ target: z.string() }).parse((await auditOf(gateway)).at(-1));
    expect([status, stderr]).toEqual([
      1,
      `The new key could not be printed (${code}), so it was taken back: ${made.target} is revoked.\n`,
    ]);
    expect(await document(['list'])).toMatchObject({ keys: [{ keyId: made.target, status: 'revoked' }] });
  });

  test.each(['>&-', '>/dev/null'])('%s: create', async (redirection) => {
    const command = [
      'sh',
      '-c',
      `exec "$@" ${redirection}`,
      'sh',
      process.execPath,
      PROGRAM,
      'keys',
      ...CREATE,
    ] as const;
    const [shell, ...args] = command;
    const { code, stderr } = await runProcess(shell, [...args, '--admin', gateway.adminUrl]);
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(
        /^The new key could not be printed \(standard output is closed or the null device\), so it was taken back: /,
      ),
    ]);
    expect(await document(['list'])).toMatchObject({ keys: [{ status: 'revoked' }] });
  });

  test('rotate: the old key goes on as it was', async () => {
    const { key: _, ...old } = await create('--expires', '90d');
    const { status, stderr } = await run(['rotate', old.keyId], 'full');
    expect([status, stderr]).toEqual([1, expect.stringMatching(/^The new key could not be printed \(ENOSPC\)/)]);
    expect(await document(['list'])).toMatchObject({ keys: expect.arrayContaining([old]) as unknown });
    const listed = z.object({ keys: z.array(z.looseObject({ status: z.string() })) }).parse(await document(['list']));
    expect(listed.keys.map((one) => one.status).toSorted()).toEqual(['active', 'revoked']);
  });
});

test('list has a line a key, whatever its status', async () => {
  expect((await keys(['list'])).stdout).toBe('There are no keys. `evalgate keys create` makes one.\n');
  const one = await create('--workspace', WORKSPACE_B, '--per-minute', '30');
  gateway.clock.advance(1000);
  const line = {
    keyId: 'k_old',
    hash: hashToken('old'),
    name: 'b',
    workspaceIds: [WORKSPACE_B],
    scopes: ['calls.read'],
    expiresAt: '2020-01-01T00:00:00.000Z',
  };
  await keys(['import', '-'], { stdin: JSON.stringify(line) });
  await statusOf(one.key);
  const { stdout } = await keys(['list']);
  expect(cellsOf(stdout)).toEqual([
    ['ID', 'NAME', 'STATUS', 'SCOPES', 'WORKSPACES', 'LIMITS', 'FROM', 'EXPIRES', 'LAST USED'],
    [
      one.keyId,
      'Acme',
      'active',
      'calls.read',
      `${WORKSPACE_A} +1`,
      '30/min default/h',
      'any',
      'never',
      '2026-01-15T12:00:01.000Z',
    ],
    ['k_old', 'b', 'active, expired', 'calls.read', WORKSPACE_B, 'default', 'any', '2020-01-01T00:00:00.000Z', 'never'],
  ]);
  const listed: unknown = await document(['list']);
  expect((await gateway.admin('GET', '/api/keys')).json).toEqual({ ...Object(listed), nextCursor: null });
});

test('a name can neither move the cursor nor turn the text around', async () => {
  await gateway.issue({ name: 'Acme\u202Egnp.exe' });
  expect((await keys(['list'])).stdout).toContain('  Acme\uFFFDgnp.exe  ');
});

test('show, deprecate and revoke act on one key, and its holder notices', async () => {
  const { key, ...shown } = await create();
  expect(await document(['show', shown.keyId])).toMatchObject({ ...shown, lastHour: { requests: 0, refused: 0 } });
  expect(await statusOf(key)).toBe(200);
  expect(await document(['show', shown.keyId])).toMatchObject({ lastHour: { requests: 1, refused: 0 } });
  expect((await keys(['show', shown.keyId])).stdout).toMatch(
    /^requests +1 in the last hour, 0 of them refused with 429$/m,
  );
  expect(await document(['deprecate', shown.keyId])).toMatchObject({ keyId: shown.keyId, status: 'deprecated' });
  expect(await statusOf(key)).toBe(403);
  const revoked = await keys(['revoke', shown.keyId]);
  expect([revoked.status, cellsOf(revoked.stdout)[2]]).toEqual([0, ['status', 'revoked']]);
  expect(revoked.stdout).toContain(`\nKey ${shown.keyId} is refused from now on;`);
  expect(await statusOf(key)).toBe(403);
});

test('K3: rotate issues a successor with the same quota; the old key ends after the overlap, a day by default', async () => {
  const first = await create();
  const successor = issued.parse(await document(['rotate', first.keyId, '--overlap', '90m']));
  expect(successor).toMatchObject({ quotaId: first.quotaId, expiresAt: null });
  expect(await document(['show', first.keyId])).toMatchObject({ expiresAt: '2026-01-15T13:30:00.000Z' });
  gateway.clock.advance(90 * 60_000);
  expect([await statusOf(first.key), await statusOf(successor.key)]).toEqual([403, 200]);
  const { stdout } = await keys(['rotate', successor.keyId]);
  expect(stdout).toContain('The key itself, shown this once and stored nowhere:');
  expect(stdout).toContain(`\nThe old key, ${successor.keyId}, ends at 2026-01-16T13:30:00.000Z, or `);
  expect(await document(['show', successor.keyId])).toMatchObject({ expiresAt: '2026-01-16T13:30:00.000Z' });
});

const linesText = (lines: readonly object[]): string => lines.map((line) => JSON.stringify(line)).join('\n');
const lineOf = (keyId: string, token: string, more: object = {}): object => ({
  keyId,
  hash: hashToken(token),
  name: keyId,
  workspaceIds: [WORKSPACE_A],
  scopes: ['calls.read'],
  ...more,
});

test('edit changes what it is given, and activate ends a deprecation', async () => {
  const { key: _, ...created } = await create('--per-minute', '30', '--per-hour', '40', '--expires', '90d');
  const edit = [
    'edit',
    created.keyId,
    '--workspace',
    WORKSPACE_B,
    '--workspace',
    WORKSPACE_A,
    '--scope',
    'reports.read',
  ];
  const edited = { ...created, workspaceIds: [WORKSPACE_B, WORKSPACE_A], scopes: ['reports.read'] };
  expect(await document(edit)).toEqual(edited);
  expect(await document(['edit', created.keyId, '--per-minute', 'default', '--expires', 'never'])).toEqual({
    ...edited,
    limits: { perMinute: null, perHour: 40 },
    expiresAt: null,
  });
  await document(['deprecate', created.keyId]);
  expect(await document(['activate', created.keyId])).toMatchObject({ status: 'active', name: 'Acme' });
  const { status, stderr } = await keys(['edit', created.keyId]);
  expect([status, stderr]).toEqual([
    2,
    'Nothing to change: give --name, --workspace, --scope, --per-minute, --per-hour, --expires or --from.\n',
  ]);
});

test('K11: --from binds a key to addresses, and any frees it', async () => {
  const bound = await create('--from', '203.0.113.7', '--from', '2001:DB8::/32');
  const from = ['203.0.113.7/32', '2001:db8::/32'];
  expect(bound).toMatchObject({ from });
  expect(await statusOf(bound.key)).toBe(403);
  expect((await keys(['show', bound.keyId])).stdout).toMatch(/^from +203\.0\.113\.7\/32, 2001:db8::\/32$/m);
  expect(cellsOf((await keys(['list'])).stdout)[1]).toContain('203.0.113.7/32 +1');
  const [line = ''] = (await keys(['export'])).stdout.split('\n');
  expect(JSON.parse(line)).toMatchObject({ from });
  const moved = ['edit', bound.keyId, '--from', '127.0.0.0/8', '--from', '::1'];
  expect(await document(moved)).toMatchObject({ from: ['127.0.0.0/8', '::1/128'] });
  expect(await statusOf(bound.key)).toBe(200);
  expect(await document(['edit', bound.keyId, '--from', 'any'])).toMatchObject({ from: null });
});

describe('export', () => {
  test('is what an import takes: a line a key, with its hash', async () => {
    const { keyId, key } = await create('--per-hour', '40', '--expires', '90d');
    const { keyId: revoked } = await create();
    await keys(['rotate', keyId]);
    await keys(['revoke', revoked]);
    const { status, stdout, stderr } = await keys(['export']);
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toContain(hashToken(key));
    expect(stdout).not.toContain(key);
    const other = await forTest(startTestGateway());
    const there = ['--admin', other.adminUrl];
    const load = () => runJson(['keys', 'import', '-', ...there], { stdin: stdout });
    expect(await runJson(['keys', 'export', ...there])).toEqual({ keys: [] });
    expect(await load()).toEqual({ added: 3, replaced: 0, unchanged: 0, leftOut: 0 });
    expect(await load()).toEqual({ added: 0, replaced: 0, unchanged: 3, leftOut: 0 });
    expect(await runJson(['keys', 'list', ...there])).toEqual(await document(['list']));
    const lines = stdout.trimEnd().split('\n');
    expect(await document(['export'])).toEqual({ keys: lines.map((line): unknown => JSON.parse(line)) });
  });

  test('that breaks off is a failure', async () => {
    gateway.store.override('/api/key-export', (_, response) => {
      response.write(`${JSON.stringify(lineOf('k_1', 'one'))}\n{"keyId"`, () => response.destroy());
    });
    const { status, stderr } = await runCli(['keys', 'export', '--admin', gateway.store.url]);
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining('(it closed the connection before the answer was whole)'),
    ]);
  });
});

describe('import', () => {
  test('takes over all keys of a file, or of standard input, and again without harm', async () => {
    const lines = [lineOf('k_9', 'nine'), lineOf('k_8', 'eight', { status: 'deprecated', limits: { perMinute: 5 } })];
    // A byte order mark, as some editors write it, other line ends, and an empty line.
    const text = `\u{FEFF}${JSON.stringify(lines[0])}\r\n\n${JSON.stringify(lines[1])}\n`;
    const file = fileOf(text);
    expect((await keys(['import', file])).stdout).toBe('Imported: 2 new, 0 replaced, 0 unchanged.\n');
    expect(await document(['import', '-'], { stdin: text })).toEqual({
      added: 0,
      replaced: 0,
      unchanged: 2,
      leftOut: 0,
    });
    expect([await statusOf('nine'), await statusOf('eight')]).toEqual([200, 403]);
  });

  test('lists every fault of every line, shows no line, and takes over none', async () => {
    const lines = [
      lineOf('k_9', 'nine'),
      lineOf('k_8', 'eight', { scopes: ['all'] }),
      lineOf('k_9', 'other'),
      { keyId: 'k_7' },
    ];
    const file = fileOf([...lines.map((line) => JSON.stringify(line)), 'hunter2', ''].join('\n'));
    const { status, stdout, stderr } = await keys(['import', file]);
    expect([status, stdout]).toEqual([1, '']);
    const [heading, ...faults] = stderr.trimEnd().split('\n');
    expect(heading).toBe('Nothing was imported: 4 of 5 keys refused:');
    expect(faults.map((fault) => fault.trim().split(':').slice(0, 2).join(':'))).toEqual([
      'line 2: scopes[0]',
      'line 3: keyId',
      'line 4: hash',
      'line 4: name',
      'line 4: workspaceIds',
      'line 4: scopes',
      'line 5: not JSON; allowed',
    ]);
    expect(faults[1]).toBe('  line 3: keyId: the same as on line 1; allowed: each keyId once');
    expect(stderr).not.toContain('hunter2');
    expect(await document(['list'])).toEqual({ keys: [] });
  });

  test('of more than a request holds goes in pages; a fault on the last page leaves the first ones unchanged too', async () => {
    const lines = Array.from({ length: 1200 }, (_, place) => lineOf(`k_${place}`, `token ${place}`));
    await keys(['import', '-'], { stdin: linesText([lineOf('k_9', 'nine')]) });
    const refused = await keys(['import', '-'], { stdin: linesText([...lines.slice(10), lineOf('k_9', 'other')]) });
    expect([refused.status, refused.stderr]).toEqual([
      1,
      'Nothing was imported: 1 key is refused.\n- line 1191: There is already a key k_9 with another hash. Import it under another keyId.\n',
    ]);
    expect(await document(['list'])).toMatchObject({ keys: [{ keyId: 'k_9' }] });
    expect(await document(['import', '-'], { stdin: linesText(lines.slice(10)) })).toMatchObject({ added: 1190 });
    expect((await keys(['export'])).stdout.trimEnd().split('\n')).toHaveLength(1191);
  });

  test('names the line of a key that contradicts one that is there already', async () => {
    await keys(['import', '-'], { stdin: JSON.stringify(lineOf('k_9', 'nine')) });
    const lines = [lineOf('k_8', 'eight'), lineOf('k_7', 'nine'), lineOf('k_9', 'other')];
    const { status, stderr } = await keys(['import', '-'], {
      stdin: `\n${lines.map((line) => JSON.stringify(line)).join('\n')}`,
    });
    expect([status, stderr]).toEqual([
      1,
      'Nothing was imported: 2 keys are refused.\n- line 3: The hash of key k_7 is already that of key k_9.\n- line 4: There is already a key k_9 with another hash. Import it under another keyId.\n',
    ]);
    expect(await document(['list'])).toMatchObject({ keys: [{ keyId: 'k_9' }] });
  });

  test.each([
    ['a file that is not there', '/no/such/file', '"/no/such/file": it cannot be read: there is no such file.'],
    ['nothing', '-', 'Nothing was imported: the file holds no keys, only blank lines.'],
  ])('%s is refused', async (_, file, message) => {
    const { status, stderr } = await keys(['import', file]);
    expect(status).toBe(1);
    expect(stderr).toContain(message);
  });
});

const READ_CALLS = ['--workspace', WORKSPACE_A, '--scope', 'calls.read'];
test.each([
  [['create', ...READ_CALLS], 'A new key needs --name as well.'],
  [['create'], 'A new key needs --name, --workspace, --scope as well.'],
  [['create', '--name', ' ', ...READ_CALLS], 'Allowed: a text that is not blank.'],
  [['create', '--name', 'a', '--workspace', 'w', '--scope', 'calls.read'], "argument 'w' is invalid. Allowed: a UUID."],
  [
    ['create', '--name', 'a', '--workspace', WORKSPACE_A, '--scope', 'all'],
    'Allowed choices are reports.read, calls.read, coaching.read.',
  ],
  [['create', '--name', 'a', ...READ_CALLS, '--per-hour', '0'], 'Allowed: an integer from 1 to 1000000000.'],
  [['create', '--name', 'a', ...READ_CALLS, '--expires', '90'], 'Allowed: a duration like'],
  [['create', '--name', 'a', ...READ_CALLS, '--from', '10.0.0.0/33'], 'Allowed: a subnet or an address, such as'],
  [['edit', 'k_1', '--from', 'any', '--from', '::1'], '--from any means every address: give it alone'],
  [['rotate', 'k_1', '--overlap', '366d'], 'from 0s to 365d.'],
  [['show'], "missing required argument 'id'"],
  [['show', '../x'], 'Allowed: the id of a key'],
  [['creat'], '(Did you mean create?)'],
  [['list', 'extra'], 'too many arguments'],
])('a wrong call ends with 2 and says what is allowed: %j', async (args, message) => {
  const { status, stdout, stderr } = await runCli(['keys', ...args]);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
});

test('a key in place of its id is refused and not repeated', async () => {
  const token = `evg_${'x'.repeat(38)}`;
  for (const args of [
    ['keys', 'show', token],
    ['keys', 'edit', token, '--name', 'a'],
    ['cache', 'explain', '/v2/calls', '--key-id', token],
  ]) {
    const { status, stdout, stderr } = await runCli([...args, '--json']);
    expect([status, stderr]).toEqual([2, expect.stringContaining('not the key itself')]);
    expect(stdout + stderr).not.toContain(token);
  }
});

describe('the way to the admin listener', () => {
  test('a refusal points to a command, and with --json it is a document too', async () => {
    const message = 'There is no key with the id k_1. `evalgate keys list` shows the ids.';
    expect(await keys(['show', 'k_1', '--json'])).toEqual({
      status: 1,
      stdout: `${JSON.stringify({ error: { message } }, null, 2)}\n`,
      stderr: `${message}\n`,
    });
  });

  test('its token is the first of ADMIN_TOKEN or of its file, its port that of ADMIN_PORT', async () => {
    const guarded = await forTest(startTestGateway({ env: { ADMIN_TOKEN: 'alice=s3cret,bob=0ther' } }));
    const file = fileOf('s3cret\n');
    const port = { ADMIN_PORT: new URL(guarded.adminUrl).port };
    const list = (env: Record<string, string>) => runCli(['keys', 'list'], { env: { ...port, ...env } });
    expect(await list({ ADMIN_TOKEN: 'alice=s3cret,bob=unknown' })).toMatchObject({ status: 0, stderr: '' });
    expect(await list({ ADMIN_TOKEN_FILE: file })).toMatchObject({ status: 0, stderr: '' });
    const refused = await list({});
    expect([refused.status, refused.stderr.split('\n').slice(-2)]).toEqual([
      1,
      ['Set ADMIN_TOKEN, or ADMIN_TOKEN_FILE, to a token that the gateway was started with.', ''],
    ]);
  });

  test('who acts is named by --as or EVALGATE_OPERATOR: the token of that name is used, and the audit has the name', async () => {
    const ADMIN_TOKEN = 'alice:viewer=s3cret,bob=0ther';
    const guarded = await forTest(startTestGateway({ env: { ADMIN_TOKEN } }));
    const whoAmI = async (args: readonly string[], env: Record<string, string>, url = guarded.adminUrl) => {
      const { stdout, stderr } = await runCli(['whoami', '--admin', url, ...args], { env });
      return stdout + stderr;
    };
    expect(await whoAmI([], { ADMIN_TOKEN })).toBe('alice (viewer)\n');
    expect(await whoAmI(['--as', 'bob'], { ADMIN_TOKEN })).toBe('bob (admin)\n');
    expect(await whoAmI([], { ADMIN_TOKEN, EVALGATE_OPERATOR: 'bob' })).toBe('bob (admin)\n');
    expect(await whoAmI(['--as', 'alice'], { ADMIN_TOKEN, EVALGATE_OPERATOR: 'bob' })).toBe('alice (viewer)\n');
    expect(await whoAmI(['--as', 'eve'], { ADMIN_TOKEN })).toBe(
      'ADMIN_TOKEN: it has no token of eve, whom --as or EVALGATE_OPERATOR names; it has alice, bob\n',
    );
    // The gateway goes by the token, not by the name that --as gives.
    expect(await whoAmI(['--as', 'bob'], { ADMIN_TOKEN: 's3cret' })).toBe('alice (viewer)\n');
    expect(await whoAmI([], { EVALGATE_OPERATOR: 'no name' })).toContain('EVALGATE_OPERATOR is no name. Allowed: 1');
    expect(await whoAmI(['--as', 'ann'], {}, gateway.adminUrl)).toBe('ann (admin)\n');
    const refused = await runCli(['cache', 'purge', '--tag', 'all', '--admin', guarded.adminUrl], {
      env: { ADMIN_TOKEN },
    });
    expect([refused.status, refused.stderr]).toEqual([1, expect.stringContaining('has the role viewer')]);
    await keys([...CREATE, '--as', 'ann']);
    expect((await auditOf(gateway))[0]).toMatchObject({ who: 'ann', action: 'key.create' });
  });

  test.each([
    [{ ADMIN_TOKEN: 'a', ADMIN_TOKEN_FILE: '/none' }, 'ADMIN_TOKEN_FILE: given "/none"; ADMIN_TOKEN is set too;'],
    [{ ADMIN_TOKEN_FILE: '/none' }, 'ADMIN_TOKEN_FILE: given "/none"; it cannot be read: there is no such file;'],
    [{ ADMIN_TOKEN: 'alice=a,b' }, 'ADMIN_TOKEN: part 2 (between commas) is not a name=token pair'],
  ])('a token that cannot be read is refused: %j', async (env, message) => {
    const { status, stdout, stderr } = await keys(['list'], { env });
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain(message);
  });

  test('another server is not mistaken for the admin listener, and redirects are not followed', async () => {
    const advice = 'Give the address of the admin listener with --admin URL.\n';
    for (const url of [gateway.publicUrl, `${gateway.publicUrl}/docs#`, gateway.store.url]) {
      const { status, stdout, stderr } = await runCli(['keys', 'list', '--admin', url]);
      expect([status, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^The server at .* is not an admin listener of evalgate/);
      expect(stderr.endsWith(advice)).toBe(true);
    }
    gateway.store.override('/api/keys', (_, response) => {
      response.writeHead(302, { location: `${gateway.adminUrl}/api/keys` }).end();
    });
    const redirected = await runCli(['keys', 'list', '--admin', gateway.store.url]);
    expect(redirected.stderr).toContain('is not an admin listener of evalgate: status 302.');
  });

  test('if no gateway runs, the message says how to start one', async () => {
    const gone = await createStoreServer();
    await gone.close();
    const { status, stderr } = await runCli(['keys', 'list', '--admin', `${gone.url}/`]);
    expect([status, stderr]).toEqual([
      1,
      `No admin listener answers at ${gone.url} (ECONNREFUSED).\nThis command acts through a running gateway. Start one with \`evalgate serve\` (in a checkout: \`npm start\`), or give the address of one with --admin URL or EVALGATE_ADMIN_URL.\n`,
    ]);
  });

  test('its address is that of EVALGATE_ADMIN_URL, and REDIS_URL changes nothing; --admin goes before both', async () => {
    const env = { EVALGATE_ADMIN_URL: `${gateway.adminUrl}/`, REDIS_URL: 'redis://127.0.0.1:1', ADMIN_PORT: '1' };
    const list = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
      runCli(['keys', 'list', ...args], { env: { ...env, ...more } });
    expect(await list([])).toMatchObject({ status: 0, stderr: '' });
    const other = await list(['--admin', 'http://127.0.0.1:2']);
    expect([other.status, other.stderr]).toEqual([1, expect.stringContaining('answers at http://127.0.0.1:2 (')]);
    const none = await list([], { EVALGATE_ADMIN_URL: '' });
    expect(none.stderr).toContain('answers at http://127.0.0.1:1 (');
    expect(await list([], { EVALGATE_ADMIN_URL: 'gateway:8081' })).toEqual({
      status: 2,
      stdout: '',
      stderr:
        'EVALGATE_ADMIN_URL is no address. Allowed: an http:// or https:// address, such as http://127.0.0.1:8081.\n',
    });
  });
});
