/** `evalgate state`: what is lost with Redis is exported through a gateway, and brought back. */
import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeEach, expect, test, vi } from 'vitest';
import { forFile, forTest } from '../support/opened.ts';
import { z } from 'zod';
import { auditOf, logOf, messageOf, samplesOf } from '../support/admin.ts';
import { runCli, runJson } from '../support/cli.ts';
import { parseYaml, readText, ROOT } from '../support/deploy-files.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { dependency, redisIsWell, WITHIN } from '../support/world.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { WORKSPACE_A } from '../support/records.ts';
import { atEach } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const HOUR_MS = 3_600_000;

let clock: ManualClock;
let gateway: TestGateway;
const redis = await forFile(startRedis());
beforeEach(async () => {
  await redis.flush();
  // By the clock of the machine, as the command is.
  clock = new ManualClock(Date.now());
  gateway = await forTest(startTestGateway({ env: { REDIS_URL: redis.url }, clock }));
  await redisIsWell(gateway);
});

const run = (words: readonly string[], stdin = '') =>
  runCli(['state', ...words, '--admin', gateway.adminUrl], { env: { EVALGATE_OPERATOR: 'ann' }, stdin });
const exported = async (): Promise<readonly string[]> => (await run(['export'])).stdout.trimEnd().split('\n');
const importText = async (lines: readonly string[], ...more: readonly string[]) =>
  runJson(['state', 'import', '-', ...more, '--admin', gateway.adminUrl], { stdin: lines.join('\n') });

const counts = (added: number, replaced = 0, unchanged = 0, leftOut = 0) => ({ added, replaced, unchanged, leftOut });

/** Two keys, of which one is rotated and one revoked; times for good and for a while; maintenance. */
async function change(): Promise<{ readonly token: string; readonly revoked: string }> {
  const { keyId, token } = await gateway.issue({ perMinute: 30 });
  const other = await gateway.issue();
  await gateway.admin('POST', `/api/keys/${keyId}/rotate`, { overlap: '1h' });
  await gateway.admin('DELETE', `/api/keys/${other.keyId}`);
  await gateway.admin('PUT', '/api/cache/ttl/list', { fresh: '45s' });
  await gateway.admin('PUT', '/api/cache/ttl/list', { fresh: '5m', error: '2h', for: '1h' });
  await gateway.admin('PUT', '/api/cache/maintenance', { for: '2h' });
  return { token, revoked: other.token };
}

test('an export brings all back to an emptied Redis, and twice nothing twice', async () => {
  const { token, revoked } = await change();
  const [audit, ttls, maintenance] = [await auditOf(gateway), await view('ttl'), await view('maintenance')];
  const lines = await exported();
  expect([lines[0], lines.at(-1)]).toEqual([
    expect.stringMatching(/^\{"kind":"state","version":1,"at":"/),
    '{"kind":"end"}',
  ]);
  expect(lines.join('\n')).not.toContain(token);
  await vi.waitFor(
    async () => expect(await samplesOf(gateway, 'evalgate_keys')).toMatchObject({ evalgate_keys: 3 }),
    WITHIN,
  );
  await redis.flush();
  await vi.waitFor(async () => expect(await dependency(gateway, 'keys')).toMatch(/^degraded: Redis lost/), WITHIN);
  const brought = { keys: counts(3), times: counts(3), maintenance: counts(1), audit: counts(audit.length) };
  expect(await importText(lines, '--dry-run')).toMatchObject({ dryRun: true, ...brought });
  expect(await importText(lines)).toMatchObject({ dryRun: false, ...brought });
  await redisIsWell(gateway);
  expect([await statusOf(token), await statusOf(revoked)]).toEqual([200, 403]);
  expect([await view('ttl'), await view('maintenance')]).toEqual([ttls, maintenance]);
  const [imported, ...before] = await auditOf(gateway);
  expect(imported).toMatchObject({ action: 'state.import', target: 'state', to: brought });
  expect(before).toEqual(audit);
  // In the log once: those that came back were logged when they were made.
  expect(logOf(gateway, 'changed by an operator')).toHaveLength(audit.length + 1);
  const again = (await exported()).filter((line) => !line.includes('state.import'));
  // Keys are in no order.
  expect([again.at(-1), again.slice(1).toSorted()]).toEqual([lines.at(-1), lines.slice(1).toSorted()]);
  const same = { keys: counts(0, 0, 3), times: counts(0, 0, 3), maintenance: counts(0, 0, 1) };
  expect(await importText(lines)).toMatchObject({ ...same, audit: counts(0, 0, audit.length) });
  expect(await auditOf(gateway)).toEqual([imported, ...before]);
});

test('what has ended since is not brought back, and what was changed since is replaced', async () => {
  await change();
  const lines = await exported();
  await gateway.admin('DELETE', '/api/cache/ttl/list');
  await gateway.admin('PUT', '/api/cache/ttl/list', { fresh: '10s' });
  await gateway.admin('DELETE', '/api/cache/maintenance');
  const old = lines.map((line) => line.replace(/(?<="until":")[^"]+/, ended));
  const answer = await importText(old);
  expect(answer).toMatchObject({ times: counts(0, 1, 0, 2), maintenance: counts(0, 0, 0, 1) });
  expect(await view('ttl')).toMatchObject({
    classes: [{ class: 'list', fresh: '45s', error: '1h' }, {}, {}, {}, {}, {}, {}],
  });
  expect(await view('maintenance')).toMatchObject({ active: false });
});

test('a key that was revoked since is left out, and all else is brought back', async () => {
  const { token, revoked } = await change();
  const { keyId } = await gateway.issue();
  const lines = await exported();
  await gateway.admin('DELETE', `/api/keys/${keyId}`);
  await gateway.admin('DELETE', '/api/cache/maintenance');
  const back = { keys: counts(0, 0, 3, 1), maintenance: counts(1) };
  expect(await importText(lines, '--dry-run')).toMatchObject(back);
  expect((await run(['import', '-'], lines.join('\n'))).stdout).toContain('\nLeft out: keys that were revoked since');
  expect((await gateway.admin('GET', `/api/keys/${keyId}`)).json).toMatchObject({ key: { status: 'revoked' } });
  expect([await statusOf(token), await statusOf(revoked)]).toEqual([200, 403]);
});

const refusalOf = async (...written: readonly string[]) => {
  const { status, stderr } = await run(['import', '-'], written.join('\n'));
  expect(status).toBe(1);
  return stderr.trimEnd().split('\n');
};

test('nothing is imported from a file with faults, which are all named', async () => {
  const { keyId } = await gateway.issue();
  const lines = await exported();
  await gateway.admin('DELETE', `/api/keys/${keyId}`);
  const [head = '', key = '', end = ''] = [lines[0], lines.find((line) => line.includes('"kind":"key"')), lines.at(-1)];
  const wrong = [
    '{"kind":"keys"}',
    'no',
    '{"kind":"time","class":"lists","name":"fresh","ttl":"1y","until":"2999-01-01T00:00:00Z"}',
    key,
    key,
  ];
  expect(await refusalOf(head.replace('1', '2'), ...wrong)).toEqual([
    'Nothing was imported: 9 faults:',
    '  line 1: version: given 2; allowed: 1',
    '  line 3: not JSON; allowed: one JSON object per line',
    '  line 2: kind: given "keys"; allowed: key, time, maintenance, audit',
    expect.stringMatching(/^ {2}line 4: class: given "lists"; allowed: list, evaluation, .*notFound$/),
    '  line 4: ttl: given "1y"; allowed: a duration from 0s to 365d, such as 250ms, 30s, 5m, 2h or 7d',
    expect.stringMatching(
      /^ {2}line 4: until: given "2999.*; allowed: a time in ISO 8601 with its offset, up to 20.*, or null for good$/,
    ),
    '  line 6: keyId: the same as line 5; allowed: each once',
    '  line 6: hash: the same as line 5; allowed: each once',
    '  line 6: the last, but not the end: the file was cut off; allowed at its end: {"kind":"end"}',
  ]);
  expect(await refusalOf(head, key, end, end)).toEqual([
    'Nothing was imported: 1 fault:',
    `  line 3: the end, too early or with more members; allowed: ${end} as the last line`,
  ]);
  expect(await refusalOf(head, key, '{"kind":"end","keys":1}')).toEqual([
    'Nothing was imported: 1 fault:',
    `  line 3: the end, too early or with more members; allowed: ${end} as the last line`,
  ]);
  const time = '{"kind":"time","class":"list","name":"fresh","ttl":"9s","until":null}';
  const twin = key.replace(/(?<="hash":")./, (digit) => (digit === '0' ? '1' : '0'));
  expect((await refusalOf(head, time, twin, end)).join('\n')).toMatch(
    new RegExp(`^Nothing was imported: 1 key is refused.\n- line 3: There is already a key ${keyId} with another hash`),
  );
  expect(await view('ttl')).not.toMatchObject({ classes: [{ fresh: '9s' }] });
});

const ended = (iso: string): string => new Date(Date.parse(iso) - 3 * HOUR_MS).toISOString();
const numberedKey = (place: number) => ({
  keyId: `k_${place}`,
  hash: place.toString(16).padStart(64, '0'),
  name: 'n'.repeat(100),
  workspaceIds: Array.from({ length: 40 }, (_, i) => `${String(i).padStart(8, '0')}${WORKSPACE_A.slice(8)}`),
  scopes: ['calls.read'],
});

test('a state larger than a request comes and goes in pages', async () => {
  const lines = Array.from({ length: 1200 }, (_, place) => JSON.stringify({ kind: 'key', ...numberedKey(place) }));
  const head = JSON.stringify({ kind: 'state', version: 1, at: '2026-01-15T12:00:00Z' });
  expect(Buffer.byteLength(lines.join('\n'))).toBeGreaterThan(2 * 1024 * 1024);
  const answer = await importText([head, ...lines, '{"kind":"end"}']);
  expect(answer).toMatchObject({ keys: counts(1200) });
  const back = await exported();
  expect(back.filter((line) => line.includes('"kind":"key"'))).toHaveLength(1200);
});

test('a listener names the faults of a body by their place, and changes nothing', async () => {
  const refused = await gateway.admin('POST', '/api/state/import', {
    records: [{ kind: 'time', class: 'list', name: 'fresh', ttl: '9s', until: null }, { kind: 'purge' }],
  });
  expect([refused.status, messageOf(refused)]).toEqual([
    400,
    'The body has 1 fault; nothing was changed.\n- records[1]: kind: given "purge"; allowed: key, time, maintenance, audit',
  ]);
  expect(await auditOf(gateway)).toEqual([]);
});

const aKey = (place: number) => ({ kind: 'key', ...numberedKey(place) });
const anEntry = (from: unknown) => ({
  kind: 'audit',
  id: 'a',
  at: '2026-01-15T12:00:00.000Z',
  who: 'ann',
  action: 'key.edit',
  target: 'k',
  from,
  to: null,
});

test('an entry of the audit that is nested too deep is refused before a key is imported', async () => {
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  const body = `{"records":[${JSON.stringify(aKey(1))},${JSON.stringify(anEntry('DEEP')).replace('"DEEP"', deep)}]}`;
  const refused = await gateway.adminRaw('POST', '/api/state/import', {
    headers: { 'content-type': 'application/json' },
    body,
  });
  expect([refused.status, messageOf(refused)]).toEqual([
    400,
    'The body has 1 fault; nothing was changed.\n- records[1]: from: given an array of 1; allowed: any JSON of at most 20 levels',
  ]);
  expect((await gateway.admin('GET', '/api/keys')).json).toMatchObject({ keys: [] });
  expect(await auditOf(gateway)).toEqual([]);
});

test('an import that breaks off after its keys says so, and so does the audit; repeated, it is whole', async () => {
  await gateway.admin('PUT', '/api/cache/ttl/rubric', { fresh: '10m' });
  const time = { kind: 'time', class: 'list', name: 'fresh', ttl: '9s', until: null };
  const records = [aKey(1), time, anEntry(null)];
  const send = () => gateway.admin('POST', '/api/state/import', { records });
  // Only the last part needs it.
  await atEach(redis, (client) => client.call('ACL', 'SETUSER', 'default', '-rpush'));
  const refused = await send();
  await atEach(redis, (client) => client.call('ACL', 'SETUSER', 'default', '+rpush'));
  const made = { keys: counts(1), times: counts(1) };
  expect([refused.status, messageOf(refused)]).toEqual([
    503,
    expect.stringContaining(
      'so only a part of the change was made (keys: 1 new, 0 replaced; times: 1 new, 0 replaced). GET /api/audit has what was made.',
    ),
  ]);
  await vi.waitFor(() => redisIsWell(gateway), WITHIN);
  expect(await auditOf(gateway)).toMatchObject([
    { action: 'state.import', to: { outcome: 'partly made', made, asked: { records: 3 } } },
    { action: 'cache.ttl.set', target: 'rubric' },
  ]);
  const whole = { keys: counts(0, 0, 1), times: counts(0, 0, 1), maintenance: counts(0), audit: counts(1) };
  expect((await send()).json).toEqual(whole);
});

test('a gateway without Redis has a state too', async () => {
  const alone = await forTest(startTestGateway({ clock }));
  await change();
  const lines = await exported();
  const { stdout } = await runCli(['state', 'import', '-', '--admin', alone.adminUrl], { stdin: lines.join('\n') });
  expect(stdout).toMatch(
    /^Imported the state of .*:\n +new .*\nkeys +3 .*\ntimes +3 .*\nmaintenance +1 .*\naudit +[1-9]/,
  );
  expect((await auditOf(alone)).slice(1)).toEqual(await auditOf(gateway));
});

test('the backup job of Kubernetes writes exports that are whole, and leaves none that is not', async () => {
  await change();
  const folder = await mkdtemp(join(tmpdir(), 'evalgate-'));
  const program = join(ROOT, 'src/cli/evalgate.js');
  await writeFile(join(folder, 'evalgate'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, { mode: 0o755 });
  const script = jobSchema.parse(parseYaml(readText('deploy/kubernetes/components/backup/cron-job.yaml'))[0]);
  const backUp = (url: string) =>
    promisify(execFile)('sh', ['-euc', script.replaceAll('/backup', folder)], {
      env: { PATH: `${folder}:${process.env['PATH'] ?? ''}`, EVALGATE_ADMIN_URL: url },
    });
  await backUp(gateway.adminUrl);
  await expect(backUp('http://127.0.0.1:1')).rejects.toThrow('No admin listener answers');
  const [name = '', ...more] = (await readdir(folder)).filter((file) => file.startsWith('state-'));
  expect([name, more]).toEqual([expect.stringMatching(/^state-\d{8}T\d{6}Z\.jsonl$/), []]);
  expect((await readFile(join(folder, name), 'utf8')).trimEnd().split('\n').slice(1)).toEqual(
    (await exported()).slice(1),
  );
  await rm(folder, { recursive: true });
});

const jobSchema = z
  .object({
    spec: z.object({
      jobTemplate: z.object({
        spec: z.object({
          template: z.object({ spec: z.object({ containers: z.tuple([z.object({ args: z.tuple([z.string()]) })]) }) }),
        }),
      }),
    }),
  })
  .transform(({ spec }) => spec.jobTemplate.spec.template.spec.containers[0].args[0]);

const statusOf = async (key: string): Promise<number> => (await gateway.get('/v2/key', { key })).status;
const view = async (part: string): Promise<unknown> => (await gateway.admin('GET', `/api/cache/${part}`)).json;
