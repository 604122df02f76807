import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { evalgate, type FakeServer, type Reply, serve } from './support.ts';

const WORKSPACE = '0b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11';
const TOKEN = `evg_${'x'.repeat(38)}`;
const VIEW = {
  keyId: 'k_1',
  name: 'Acme\u001B[31m export',
  status: 'active',
  workspaceIds: [WORKSPACE, '1b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11'],
  scopes: ['reports.read', 'calls.read'],
  createdAt: '2026-01-01T00:00:00.000Z',
  expiresAt: null,
  limits: { perMinute: 30, perHour: null },
  quotaId: 'q_1',
  lastUsedAt: '2026-02-01T00:00:00.000Z',
};

let admin: FakeServer;
let reply: Reply;
beforeEach(async () => {
  admin = await serve(() => reply);
});
afterEach(() => admin.close());

const keys = (args: readonly string[], env: Record<string, string> = {}, input = '') =>
  evalgate(['keys', ...args, '--admin', admin.url], { env, input });

test('create sends what was asked and prints the key, once', async () => {
  reply = [201, { key: VIEW, token: TOKEN }];
  const before = Date.now();
  const args = ['create', '--name', 'Acme', '--workspace', WORKSPACE, '--workspace', WORKSPACE.toUpperCase()];
  const more = [
    '--scope',
    'reports.read',
    '--scope',
    'calls.read',
    '--per-minute',
    '30',
    '--per-hour',
    '900',
    '--expires',
    '90d',
  ];
  const { code, stdout, stderr } = await keys([...args, ...more], { ADMIN_TOKEN: 'alice=s3cret' });
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout.split(TOKEN)).toHaveLength(2);
  const [request] = admin.received;
  expect(request).toMatchObject({
    method: 'POST',
    path: '/api/keys',
    authorization: 'Bearer s3cret',
    body: {
      name: 'Acme',
      workspaceIds: [WORKSPACE, WORKSPACE.toUpperCase()],
      scopes: ['reports.read', 'calls.read'],
      perMinute: 30,
      perHour: 900,
    },
  });
  const { expiresAt } = z.object({ expiresAt: z.iso.datetime() }).parse(request?.body);
  const lifeMs = Date.parse(expiresAt) - before;
  expect(lifeMs).toBeGreaterThanOrEqual(90 * 86_400_000);
  expect(lifeMs).toBeLessThan(90 * 86_400_000 + 20_000);
});

test('create --json prints one document with keyId, the key and its properties', async () => {
  reply = [201, { key: VIEW, token: TOKEN }];
  const { code, stdout } = await keys([
    'create',
    '--name',
    'a',
    '--workspace',
    WORKSPACE,
    '--scope',
    'calls.read',
    '--json',
  ]);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual({ ...VIEW, key: TOKEN });
  expect(admin.received[0]?.body).toEqual({ name: 'a', workspaceIds: [WORKSPACE], scopes: ['calls.read'] });
  expect(admin.received[0]?.authorization).toBeUndefined();
});

test('list prints a line a key, and lets no control character of a name through', async () => {
  const expired = {
    ...VIEW,
    keyId: 'k_22',
    name: 'b',
    workspaceIds: [WORKSPACE],
    expiresAt: '2020-01-01T00:00:00.000Z',
  };
  reply = [200, { keys: [VIEW, { ...expired, limits: { perMinute: null, perHour: null }, lastUsedAt: null }] }];
  const { code, stdout } = await keys(['list']);
  expect(code).toBe(0);
  expect(stdout.split('\n').map((line) => line.trimEnd().split(/ {2,}/))).toEqual([
    ['ID', 'NAME', 'STATUS', 'SCOPES', 'WORKSPACES', 'LIMITS', 'EXPIRES', 'LAST USED'],
    [
      'k_1',
      'Acme\uFFFD[31m export',
      'active',
      'reports.read,calls.read',
      `${WORKSPACE} +1`,
      '30/min default/h',
      'never',
      '2026-02-01T00:00:00.000Z',
    ],
    [
      'k_22',
      'b',
      'active, expired',
      'reports.read,calls.read',
      WORKSPACE,
      'default',
      '2020-01-01T00:00:00.000Z',
      'never',
    ],
    [''],
  ]);
});

test('list --json prints the keys as the listener gave them', async () => {
  reply = [200, { keys: [VIEW] }];
  expect(JSON.parse((await keys(['list', '--json'])).stdout)).toEqual({ keys: [VIEW] });
});

test.each([
  ['show', { method: 'GET', path: '/api/keys/k_1', body: undefined }],
  ['deprecate', { method: 'PATCH', path: '/api/keys/k_1', body: { status: 'deprecated' } }],
  ['revoke', { method: 'DELETE', path: '/api/keys/k_1', body: undefined }],
])('%s acts on one key and prints it', async (name, request) => {
  reply = [200, { key: VIEW }];
  const { code, stdout } = await keys([name, 'k_1', '--json']);
  expect(code).toBe(0);
  expect(JSON.parse(stdout)).toEqual(VIEW);
  expect(admin.received).toMatchObject([request]);
});

test('rotate sends the overlap, a day by default, and prints the successor', async () => {
  reply = [201, { key: VIEW, token: TOKEN }];
  const { stdout } = await keys(['rotate', 'k_1', '--overlap', '90m', '--json']);
  expect(JSON.parse(stdout)).toEqual({ ...VIEW, key: TOKEN });
  await keys(['rotate', 'k_1']);
  expect(admin.received.map(({ path, body }) => [path, body])).toEqual([
    ['/api/keys/k_1/rotate', { overlap: '90m' }],
    ['/api/keys/k_1/rotate', { overlap: '1d' }],
  ]);
});

test('the help of rotate tells the default as it would be written', async () => {
  const { stdout } = await keys(['rotate', '--help']);
  expect(stdout).toMatch(/--overlap <duration> +how long both keys are good \(default: 24h\)/);
});

const HASHED = { keyId: 'k_9', hash: 'ab'.repeat(32), name: 'old', workspaceIds: [WORKSPACE], scopes: ['calls.read'] };

test('import sends all keys of a file at once', async () => {
  reply = [200, { added: 1, replaced: 1 }];
  const other = { ...HASHED, keyId: 'k_8', hash: 'cd'.repeat(32), status: 'deprecated', limits: { perMinute: 5 } };
  // As some editors begin a file.
  const mark = '\u{FEFF}';
  const input = `${mark}${JSON.stringify(HASHED)}\r\n\n${JSON.stringify(other)}\n`;
  const { code, stdout } = await keys(['import', '-', '--json'], {}, input);
  expect([code, JSON.parse(stdout)]).toEqual([0, { added: 1, replaced: 1 }]);
  expect(admin.received).toMatchObject([{ method: 'POST', path: '/api/keys/import', body: { keys: [HASHED, other] } }]);
});

test('import lists every faulty line and sends nothing', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'evalgate-'));
  const file = join(directory, 'keys.jsonl');
  const lines = [
    HASHED,
    { ...HASHED, keyId: 'k_8', scopes: ['all'] },
    { ...HASHED, hash: 'ef'.repeat(32) },
    { keyId: 'k_7' },
  ];
  writeFileSync(file, [...lines.map((line) => JSON.stringify(line)), 'hunter2', ''].join('\n'));
  const { code, stdout, stderr } = await keys(['import', file]);
  rmSync(directory, { recursive: true });
  expect([code, stdout, admin.received]).toEqual([1, '', []]);
  const [heading, ...faults] = stderr.trimEnd().split('\n');
  expect(heading).toBe('Nothing was imported:');
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
});

test.each([
  ['a file that is not there', '/no/such/file', '"/no/such/file": it cannot be read: there is no such file.'],
  ['nothing', '-', 'Nothing was imported: the file holds no keys, only blank lines.'],
])('import of %s is refused', async (_, file, message) => {
  const { code, stderr } = await keys(['import', file]);
  expect(code).toBe(1);
  expect(stderr).toContain(message);
});

test.each([
  [['create', '--workspace', WORKSPACE, '--scope', 'calls.read'], "required option '--name <text>' not specified"],
  [['create', '--name', 'a', '--workspace', 'w', '--scope', 'calls.read'], "argument 'w' is invalid. Allowed: a UUID."],
  [
    ['create', '--name', 'a', '--workspace', WORKSPACE, '--scope', 'all'],
    'Allowed choices are reports.read, calls.read, coaching.read.',
  ],
  [
    ['create', '--name', 'a', '--workspace', WORKSPACE, '--scope', 'calls.read', '--per-hour', '0'],
    'Allowed: an integer from 1 to 1000000000.',
  ],
  [
    ['create', '--name', 'a', '--workspace', WORKSPACE, '--scope', 'calls.read', '--expires', '90'],
    'Allowed: a duration like',
  ],
  [['rotate', 'k_1', '--overlap', '366d'], 'from 0s to 365d.'],
  [['show'], "missing required argument 'id'"],
  [['show', '../x'], 'Allowed: the id of a key'],
  [['show', TOKEN], 'not the key itself'],
  [['creat'], '(Did you mean create?)'],
  [['list', 'extra'], 'too many arguments'],
])('a wrong call ends with 2 and says what is allowed: %j', async (args, message) => {
  const { code, stdout, stderr } = await evalgate(['keys', ...args]);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
});

test('an error of the listener is told as it is, with --json as a document too', async () => {
  reply = [404, { error: { message: 'There is no key with the id k_1.' } }];
  expect(await keys(['show', 'k_1', '--json'])).toEqual({
    code: 1,
    stdout: `${JSON.stringify({ error: { message: 'There is no key with the id k_1.' } }, null, 2)}\n`,
    stderr: 'There is no key with the id k_1.\n',
  });
});

test('a refused token says how to give the right one', async () => {
  reply = [401, { error: { message: 'No admin token was given.' } }];
  const { code, stderr } = await keys(['list']);
  expect([code, stderr]).toEqual([
    1,
    'No admin token was given.\nSet ADMIN_TOKEN, or ADMIN_TOKEN_FILE, to a token that the gateway was started with.\n',
  ]);
});

test.each([
  ['HTML', [200, '<html>']],
  ['a redirect', [302, '', { location: 'http://127.0.0.1:9/' }]],
  ['something else in JSON', [200, { keys: [{ keyId: 1 }] }]],
] as const)('%s is not taken for the admin listener', async (_, given) => {
  reply = given;
  const { code, stdout, stderr } = await keys(['list'], { ADMIN_TOKEN: 's3cret' });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain(`What answers at ${admin.url} is not an admin listener of evalgate`);
});

test('where no gateway runs, the message says how to start one', async () => {
  await admin.close();
  const { code, stderr } = await keys(['list']);
  expect([code, stderr]).toEqual([
    1,
    `No admin listener answers at ${admin.url} (ECONNREFUSED). Start the gateway with \`npm start\`, or give the address with --admin URL.\n`,
  ]);
});

test('the token can stand in a file, and the port in ADMIN_PORT', async () => {
  reply = [200, { keys: [] }];
  const directory = mkdtempSync(join(tmpdir(), 'evalgate-'));
  const file = join(directory, 'token');
  writeFileSync(file, 's3cret\n');
  const env = { ADMIN_TOKEN_FILE: file, ADMIN_PORT: String(admin.port) };
  const outcome = await evalgate(['keys', 'list'], { env });
  const both = await evalgate(['keys', 'list'], { env: { ...env, ADMIN_TOKEN: 'other' } });
  rmSync(directory, { recursive: true });
  expect(outcome).toMatchObject({ code: 0, stderr: '' });
  expect(admin.received).toMatchObject([{ authorization: 'Bearer s3cret' }]);
  expect(both.code).toBe(1);
  expect(both.stderr).toContain('ADMIN_TOKEN is set too; allowed: only one of ADMIN_TOKEN and ADMIN_TOKEN_FILE');
});

test('the listener points to its own addresses; the command points to a command', async () => {
  reply = [404, { error: { message: 'There is no key with the id k_1. GET /api/keys lists the ids.' } }];
  const { code, stderr } = await keys(['show', 'k_1']);
  expect([code, stderr]).toEqual([1, 'There is no key with the id k_1. `evalgate keys list` shows the ids.\n']);
});

test('where keys are is told by the whole configuration: one that is faulty is refused, unless the listener is named', async () => {
  const env = { PORT: 'x' };
  const { code, stdout, stderr } = await evalgate(['keys', 'list'], { env });
  expect([code, stdout]).toEqual([1, '']);
  expect(stderr).toContain('PORT: given "x"');
  reply = [200, { keys: [] }];
  expect((await keys(['list'], env)).code).toBe(0);
});
