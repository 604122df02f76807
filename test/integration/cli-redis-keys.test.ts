/** `evalgate keys` with REDIS_URL: the command against a real Redis, with and without a gateway beside it. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { userInfo } from 'node:os';
import { beforeEach, expect, test, vi } from 'vitest';
import { forFile, forTest } from '../support/opened.ts';
import { z } from 'zod';
import { hashToken } from '../../src/keys/token.ts';
import { auditOf, logOf } from '../support/admin.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { fileOf } from '../support/files.ts';
import { withClient } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';
import { type CliResult, runCli, runJson } from '../support/cli.ts';

const WORKSPACE = '0b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11';

const redis = await forFile(startRedis());
beforeEach(() => redis.flush());

/** By the clock of the machine, as the command is. */
const runGateway = (): Promise<TestGateway> =>
  forTest(startTestGateway({ env: { REDIS_URL: redis.url }, clock: new ManualClock(Date.now()) }));

const direct = (args: readonly string[], stdin = ''): Promise<CliResult> =>
  runCli(['keys', ...args], { env: { REDIS_URL: redis.url }, stdin });

const view = z.looseObject({
  keyId: z.string(),
  status: z.string(),
  quotaId: z.string(),
  expiresAt: z.string().nullable(),
});
const issued = view.extend({ key: z.string() });

/** The document of a command that must succeed. */
async function documentOf<T>(schema: z.ZodType<T>, args: readonly string[], stdin = ''): Promise<T> {
  return schema.parse(await runJson(['keys', ...args], { env: { REDIS_URL: redis.url }, stdin }));
}

const CREATE = ['create', '--name', 'Acme', '--workspace', WORKSPACE, '--scope', 'calls.read'] as const;
const create = (...more: readonly string[]) => documentOf(issued, [...CREATE, ...more]);

function importLine(keyId: string, token: string, more: object = {}): string {
  return JSON.stringify({
    keyId,
    hash: hashToken(token),
    name: keyId,
    workspaceIds: [WORKSPACE],
    scopes: ['calls.read'],
    ...more,
  });
}

test('a key lives from its creation to its end with Redis alone, no gateway running', async () => {
  const created = await create('--per-minute', '30', '--expires', '90d');
  expect(created).toMatchObject({
    name: 'Acme',
    status: 'active',
    workspaceIds: [WORKSPACE],
    scopes: ['calls.read'],
    limits: { perMinute: 30, perHour: null },
    lastUsedAt: null,
  });
  expect(created.key).toMatch(/^evg_[A-Za-z0-9]{38}$/);
  const { key: token, ...shown } = created;
  expect(await documentOf(view, ['show', created.keyId])).toMatchObject(shown);
  expect(await documentOf(view, ['deprecate', created.keyId])).toEqual({ ...shown, status: 'deprecated' });
  expect(await documentOf(view, ['revoke', created.keyId])).toEqual({ ...shown, status: 'revoked' });
  expect(await documentOf(z.unknown(), ['list'])).toEqual({ keys: [{ ...shown, status: 'revoked' }] });
  const everything = await withClient(redis.url, (client) => client.hgetall('evalgate:{keys}:records'));
  expect(Object.keys(everything)).toEqual([hashToken(token)]);
  expect(JSON.stringify(everything)).not.toContain(token);
});

test('a key is edited, deprecated and activated; what is not named stays as it is', async () => {
  const { key: _, ...created } = await create('--per-minute', '30', '--per-hour', '40', '--expires', '90d');
  const other = '1d1b1c66-30b5-4a4b-9f0d-3f8b5a9d3f11';
  const edit = ['edit', created.keyId, '--workspace', other, '--workspace', WORKSPACE, '--scope', 'reports.read'];
  const edited = { ...created, workspaceIds: [other, WORKSPACE], scopes: ['reports.read'] };
  expect(await documentOf(view, edit)).toEqual(edited);
  expect(await documentOf(view, ['edit', created.keyId, '--per-minute', 'default', '--expires', 'never'])).toEqual({
    ...edited,
    limits: { perMinute: null, perHour: 40 },
    expiresAt: null,
  });
  expect(await documentOf(view, ['deprecate', created.keyId])).toMatchObject({ status: 'deprecated' });
  expect(await documentOf(view, ['activate', created.keyId])).toMatchObject({ status: 'active', name: 'Acme' });
  const { status, stderr } = await direct(['edit', created.keyId]);
  expect([status, stderr]).toEqual([
    2,
    'Nothing to change: give --name, --workspace, --scope, --per-minute, --per-hour or --expires.\n',
  ]);
});

test('an export is what an import takes, and a gateway gives none', async () => {
  const { keyId, key } = await create('--per-hour', '40', '--expires', '90d');
  const { keyId: revoked } = await create();
  await direct(['rotate', keyId]);
  await direct(['revoke', revoked]);
  const { status, stdout, stderr } = await direct(['export']);
  expect([status, stderr]).toEqual([0, '']);
  expect(stdout).toContain(hashToken(key));
  expect(stdout).not.toContain(key);
  const listed = await documentOf(z.unknown(), ['list']);
  await redis.flush();
  expect((await direct(['export'])).stdout).toBe('');
  expect(await documentOf(z.unknown(), ['import', '-'], stdout)).toEqual({ added: 3, replaced: 0, unchanged: 0 });
  expect(await documentOf(z.unknown(), ['import', '-'], stdout)).toEqual({ added: 0, replaced: 0, unchanged: 3 });
  expect(await documentOf(z.unknown(), ['list'])).toEqual(listed);
  const lines = stdout.trimEnd().split('\n');
  expect(await documentOf(z.unknown(), ['export'])).toEqual({ keys: lines.map((line): unknown => JSON.parse(line)) });
  const { adminUrl } = await runGateway();
  const refused = await direct(['export', '--admin', adminUrl]);
  expect([refused.status, refused.stdout, refused.stderr]).toEqual([
    1,
    '',
    'The hashes of keys never leave the admin listener: set REDIS_URL to the Redis of the gateways, and export from there without --admin.\n',
  ]);
}, 30_000);

test('through the gateway and directly in Redis, answers and refusals are the same', async () => {
  const { adminUrl } = await runGateway();
  const { keyId } = await create();
  const revoked = await create();
  await direct(['revoke', revoked.keyId]);
  const calls: [args: string[], stdin?: string][] = [
    [['list']],
    [['list', '--json']],
    [['show', keyId]],
    [['show', keyId, '--json']],
    [['show', 'key_none', '--json']],
    [['deprecate', 'key_none']],
    [['revoke', 'key_none']],
    [['activate', 'key_none']],
    [['edit', keyId, '--name', 'new', '--per-minute', '7']],
    [['edit', keyId, '--name', 'x'.repeat(101), '--json']],
    [['edit', 'key_none', '--per-hour', 'default']],
    [['edit', revoked.keyId, '--expires', 'never']],
    [['activate', revoked.keyId]],
    [['rotate', 'key_none']],
    [['revoke', revoked.keyId]],
    [['deprecate', revoked.keyId, '--json']],
    [['rotate', revoked.keyId]],
    [['create', '--name', 'x'.repeat(101), '--workspace', WORKSPACE, '--scope', 'calls.read']],
    [['import', '-'], importLine(keyId, 'another')],
    [['import', '-', '--json'], importLine('k_1', 'one')],
  ];
  for (const [args, stdin = ''] of calls) {
    const here = await direct(args, stdin);
    // Imported keys are new again for the other way.
    if (args[0] === 'import' && here.status === 0) await redis.flush();
    const there = await runCli(['keys', ...args, '--admin', adminUrl], { env: { REDIS_URL: redis.url }, stdin });
    expect({ args, ...here }).toEqual({ args, ...there });
  }
  expect((await direct(['show', 'key_none'])).stderr).toBe(
    'There is no key with the id key_none. `evalgate keys list` shows the ids.\n',
  );
}, 60_000);

test('K4: a key is good at a running gateway as soon as it is created, and refused with 403 once it is revoked', async () => {
  const { publicUrl } = await runGateway();
  const { keyId, key } = await create();
  const status = async (): Promise<number> =>
    (await fetch(`${publicUrl}/v2/calls`, { headers: { authorization: `Bearer ${key}` } })).status;
  expect(await status()).toBe(200);
  expect((await direct(['revoke', keyId])).status).toBe(0);
  await vi.waitUntil(async () => (await status()) === 403, { timeout: 10_000, interval: 5 });
});

const auditSchema = z.object({ entries: z.array(z.looseObject({ who: z.string(), action: z.string() })) });

test('a change made here is in the audit of the gateways, by the account at this machine', async () => {
  const { adminUrl } = await runGateway();
  const { keyId } = await create('--per-minute', '30');
  const successor = await documentOf(issued, ['rotate', keyId, '--overlap', '2h']);
  await direct(['deprecate', successor.keyId]);
  await direct(['deprecate', successor.keyId]);
  await direct(['revoke', 'key_none']);
  await direct(['import', '-'], importLine('k_1', 'one'));
  const { entries } = auditSchema.parse(await (await fetch(`${adminUrl}/api/audit`)).json());
  const who = `cli:${userInfo().username}`;
  expect(entries).toMatchObject([
    { who, action: 'key.import', target: 'keys', from: null, to: { added: 1, replaced: 0, keyIds: ['k_1'] } },
    {
      who,
      action: 'key.deprecate',
      target: successor.keyId,
      from: { status: 'active' },
      to: { status: 'deprecated' },
    },
    { who, action: 'key.rotate', target: keyId, from: { expiresAt: null }, to: { successor: successor.keyId } },
    { who, action: 'key.create', target: keyId, from: null, to: { name: 'Acme', limits: { perMinute: 30 } } },
  ]);
  expect(JSON.stringify(entries)).not.toContain(successor.key);
}, 30_000);

test('a key is made and shown even if the audit cannot be written', async () => {
  await withClient(redis.url, (client) => client.set('evalgate:audit', 'no list'));
  const { keyId, key } = await create();
  expect(key).toMatch(/^evg_/);
  expect(await documentOf(view, ['show', keyId])).toMatchObject({ status: 'active' });
});

test('the address may stand in a secret file or in the configuration file', async () => {
  const { keyId } = await create();
  const secret = fileOf(`${redis.url}\n`);
  const file = fileOf(`redis: {url: "${redis.url}"}\n`);
  for (const env of [{ REDIS_URL_FILE: secret }, { CONFIG_FILE: file }]) {
    const { status, stdout } = await runCli(['keys', 'show', keyId, '--json'], { env });
    expect([status, view.parse(JSON.parse(stdout)).keyId]).toEqual([0, keyId]);
  }
});

test('--admin goes through the listener, whatever the configuration says', async () => {
  const { status, stderr } = await direct(['list', '--admin', 'http://127.0.0.1:1']);
  expect(status).toBe(1);
  expect(stderr).toContain('No admin listener answers at http://127.0.0.1:1');
});

const listIn = (db: number): Promise<CliResult> =>
  runCli(['keys', 'list', '--json'], { env: { REDIS_URL: `${redis.url}/${db}` } });

test('another database of the same Redis holds other keys, and one that does not exist is not mistaken for the first', async () => {
  await create();
  const other = await listIn(3);
  expect(JSON.parse(other.stdout)).toEqual({ keys: [] });
  const { status, stdout, stderr } = await listIn(999);
  expect([status, JSON.parse(stdout)]).toEqual([1, { error: { message: stderr.trimEnd() } }]);
  expect(stderr).toContain('DB index is out of range');
});

test('a record that is broken is told on standard error, and the others are listed', async () => {
  const { keyId } = await create();
  await withClient(redis.url, (client) => client.hset('evalgate:{keys}:records', 'ab'.repeat(32), '{}'));
  const { status, stdout, stderr } = await direct(['list', '--json']);
  expect(status).toBe(0);
  expect(
    z
      .object({ keys: z.array(view) })
      .parse(JSON.parse(stdout))
      .keys.map((key) => key.keyId),
  ).toEqual([keyId]);
  expect(stderr).toMatch(/^The record of the key with the hash abab.* is broken: .* It is left out here\.\n$/);
});

const host = (): string => redis.url.replace('redis://', '');

test.each([
  [
    'Sentinels',
    () => 'redis+sentinel://:s3cret@127.0.0.1:1/main?sentinelPassword=s3cret',
    "REDIS_URL: the primary main of the Sentinels at 127.0.0.1:1 can't be used (no Sentinel answers: ",
  ],
  [
    'a Cluster',
    () => 'redis+cluster://:s3cret@127.0.0.1:1,127.0.0.1:2',
    "REDIS_URL: the Cluster at 127.0.0.1:1, 127.0.0.1:2 can't be used (",
  ],
  [
    'nothing there',
    () => 'redis://127.0.0.1:1',
    "REDIS_URL: Redis at 127.0.0.1:1 can't be used (ECONNREFUSED). Check that it runs, and host, port and scheme (rediss:// for TLS) in REDIS_URL.",
  ],
  [
    'a wrong password',
    () => `redis://someone:s3cret@${host()}`,
    'Give a user and password that it takes in REDIS_URL: redis://user:password@host:port.',
  ],
  ['an impossible port', () => 'redis://:s3cret@127.0.0.1:99999', 'REDIS_URL: given (a secret, not shown)'],
])('%s: said plainly, without the password', async (_, url, message) => {
  const { status, stdout, stderr } = await runCli(['keys', 'list'], { env: { REDIS_URL: url() } });
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toContain(message);
  expect(stderr).not.toContain('s3cret');
});

test('a server that answers in another language is not Redis', async () => {
  const server = createServer((socket) => void socket.on('error', () => undefined).write('220 mail.example ESMTP\r\n'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = z.object({ port: z.int() }).parse(server.address());
  const { status, stderr } = await runCli(['keys', 'list'], { env: { REDIS_URL: `redis://127.0.0.1:${port}` } });
  server.close();
  expect([status, stderr]).toEqual([
    1,
    `REDIS_URL: Redis at 127.0.0.1:${port} can't be used (the server is not Redis). Check that it runs, and host, port and scheme (rediss:// for TLS) in REDIS_URL.\n`,
  ]);
});

test('a frozen Redis is given up on, and nothing hangs', async () => {
  await redis.pause();
  try {
    const { status, stderr } = await direct(['list']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/can't be used \((?:no answer within 5 s|Command timed out|ETIMEDOUT)\)/);
  } finally {
    await redis.resume();
  }
});

test('the rights that the documentation names are enough for every command', async () => {
  const rights = ['~evalgate:*', '&evalgate:*', '+@all', '-@dangerous', '+info'];
  await withClient(redis.url, (client) => client.acl('SETUSER', 'evalgate', 'on', '>secret', ...rights));
  const env = { REDIS_URL: `redis://evalgate:secret@${host()}` };
  const run = (args: readonly string[], stdin = '') => runJson(['keys', ...args], { env, stdin });
  const { keyId } = issued.parse(await run(CREATE));
  await run(['rotate', keyId]);
  await run(['deprecate', keyId]);
  await run(['import', '-'], importLine('k_1', 'one'));
  expect(z.object({ keys: z.array(view) }).parse(await run(['list'])).keys).toHaveLength(3);
});

test('if a change is refused, it says that the change may have been made', async () => {
  await withClient(redis.url, (client) =>
    client.acl('SETUSER', 'reader', 'on', '>secret', '~*', '&*', '+@all', '-hset'),
  );
  const { status, stdout, stderr } = await runCli(['keys', ...CREATE], {
    env: { REDIS_URL: `redis://reader:secret@${host()}` },
  });
  expect([status, stdout]).toEqual([1, '']);
  expect(stderr).toContain('Redis cannot be asked for keys:');
  expect(stderr).toContain('The change may have been made all the same: `evalgate keys list` shows.');
});

test('a change made in Redis names who made it, and reaches the log of one gateway of all, also if none runs yet', async () => {
  const env = { REDIS_URL: redis.url, EVALGATE_OPERATOR: 'ann' };
  const { keyId } = issued.parse(await runJson(['keys', ...CREATE], { env }));
  const [a, b] = [await runGateway(), await runGateway()];
  const logged = () => [a, b].flatMap((one) => logOf(one, 'changed by an operator')).map(({ audit }) => audit);
  await vi.waitFor(() => expect(logged()).toEqual([expect.objectContaining({ who: 'ann', target: keyId })]));
  await runCli(['keys', 'revoke', keyId, '--as', 'ben'], { env });
  await vi.waitFor(() => expect(logged()).toHaveLength(2));
  expect(logged()).toContainEqual(expect.objectContaining({ who: 'ben', action: 'key.revoke', target: keyId }));
  expect(await auditOf(b)).toEqual(expect.arrayContaining([...logged()]));
});
