import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { z } from 'zod';
import { checkClock } from '../../../src/cli/doctor/clock.ts';
import { createSampleData, createSampleUpstream, type SampleUpstream } from '../../../src/sample/index.ts';
import { evalgate, type FakeServer, type Reply, serve } from './support.ts';

const data = createSampleData({ seed: 1, evaluations: 60 });
const [workspaceId = ''] = data.workspaceIds;
const reportSchema = z.object({
  ok: z.boolean(),
  checks: z.array(
    z.object({ name: z.string(), status: z.string(), message: z.string(), advice: z.string().nullable() }),
  ),
});

let store: SampleUpstream;
let storeUrl: string;
beforeEach(async () => {
  store = createSampleUpstream({ data, token: 't0ken' });
  storeUrl = (await store.listen(0)).url;
});
afterEach(() => store.close());

/** An admin address where nothing listens. */
const NO_GATEWAY = ['--admin', 'http://127.0.0.1:1'];

async function doctor(env: Record<string, string>, args: readonly string[] = NO_GATEWAY) {
  const { code, stdout, stderr } = await evalgate(['doctor', '--json', ...args], { env });
  expect(stderr).toBe('');
  const { ok, checks } = reportSchema.parse(JSON.parse(stdout));
  expect(code).toBe(ok ? 0 : 1);
  return { code, checks, brief: checks.map(({ name, status }) => `${status} ${name}`) };
}

const storeEnv = () => ({ UPSTREAM_URL: storeUrl, UPSTREAM_TOKEN: 't0ken' });

test('with nothing configured there is nothing wrong', async () => {
  const { code, brief } = await doctor({});
  expect([code, brief]).toEqual([0, ['ok config', 'skipped redis', 'skipped upstream', 'skipped admin']]);
});

test('a healthy store passes, and only reads are sent to it', async () => {
  const { code, checks } = await doctor(storeEnv());
  expect(code).toBe(0);
  expect(
    checks.map(({ status, name, message }) => `${status} ${name}: ${message.replace(/\d+ ms/, 'N ms')}`).slice(2, -1),
  ).toEqual([
    'ok upstream: the store answers, in N ms, and accepts the token',
    "ok clock: agrees with the store's to within some seconds",
    'ok contract: lists: its form is right; --workspace UUID looks at records too',
    'ok contract: If-None-Match: answered with 304',
    'ok contract: what does not exist: answered with 404 NOT_FOUND',
  ]);
  expect(store.counts).toMatchObject({ list: 2, evaluation: 1, other: 0 });
});

test('with --workspace the records themselves are looked at', async () => {
  const { code, checks } = await doctor(storeEnv(), [...NO_GATEWAY, '--workspace', workspaceId]);
  const completed = data.evaluations.filter(
    (record) => record.workspaceId === workspaceId && record.state === 'COMPLETED',
  );
  expect(completed.length).toBeGreaterThan(5);
  expect([code, checks[4]?.message]).toEqual([0, `lists: ${completed.length} records are whole`]);
});

const NO_ANSWER = 'the store gives no whole answer: ';

test.each([
  { what: 'a wrong token', env: { UPSTREAM_TOKEN: 'wrong' }, verdict: 'the store refuses the token (status 401)' },
  { what: 'a store that fails', faults: { status: 503 }, verdict: 'the store answers a list with status 503' },
  { what: 'a redirect', faults: { redirect: true }, verdict: 'the store redirects (status 302)' },
  { what: 'a body that never ends', faults: { endless: true }, env: { UPSTREAM_TIMEOUT: '1s' }, verdict: NO_ANSWER },
  { what: 'a reset connection', faults: { resetRate: 1 }, verdict: NO_ANSWER },
])('$what is found, with what to do about it', async ({ faults = {}, env = {}, verdict }) => {
  store.setFaults(faults);
  const { code, checks } = await doctor({ ...storeEnv(), ...env });
  const check = checks.find(({ name }) => name === 'upstream');
  expect([code, check?.status, check?.message.slice(0, verdict.length)]).toEqual([1, 'fail', verdict]);
  expect(check?.advice?.length).toBeGreaterThan(20);
});

test('a page of HTML in place of a list breaks the contract', async () => {
  store.setFaults({ htmlRate: 1 });
  const { code, checks } = await doctor(storeEnv());
  expect([code, checks[4]?.status, checks[4]?.message]).toEqual([
    1,
    'fail',
    'a list of the store is not {"items": [...], "total": integer}',
  ]);
});

const page = { items: [], total: 0 };
const notFound = { code: 'NOT_FOUND', message: 'none' };

/** The doctor in front of a store that answers lists and single reads so. */
async function doctorWith(list: Reply, single: Reply, args: readonly string[] = []) {
  const fake = await serve(({ path }) => (path.startsWith('/internal/v1/evaluations?') ? list : single));
  const found = await doctor({ UPSTREAM_URL: fake.url, UPSTREAM_TOKEN: 't' }, [...NO_GATEWAY, ...args]);
  await fake.close();
  return {
    ...found,
    paths: fake.received.map(({ path }) => path),
    messages: found.checks.map(({ message }) => message),
  };
}

test('a store without ETags works, at a price', async () => {
  const { code, brief } = await doctorWith([200, page], [404, notFound]);
  expect([code, brief.slice(4, 7)]).toEqual([0, ['warn contract', 'skipped contract', 'ok contract']]);
});

test('a store that ignores If-None-Match works, at a price', async () => {
  const { code, messages } = await doctorWith([200, page, { etag: '"1"' }], [404, notFound]);
  expect([code, messages[5]]).toEqual([0, 'If-None-Match: answered with 200 in place of 304']);
});

test('a 404 without its code is no absence', async () => {
  const { code, messages } = await doctorWith([200, page, { etag: '"1"' }], [404, { error: 'no' }]);
  expect([code, messages[6]]).toEqual([
    1,
    'what does not exist is answered with 404 without a code in place of 404 NOT_FOUND',
  ]);
});

test('malformed records are told', async () => {
  const [first, second] = data.evaluations.filter((record) => record.workspaceId === workspaceId);
  const list: Reply = [200, { items: [first, { ...second, title: 7 }], total: 2 }, { etag: '"1"' }];
  const { code, messages } = await doctorWith(list, [404, notFound], ['--workspace', workspaceId]);
  expect([code, messages[4]]).toEqual([0, '1 of 2 records are malformed']);
});

test('a record of another workspace is found', async () => {
  const foreign = data.evaluations.filter((record) => record.workspaceId !== workspaceId).slice(0, 2);
  const list: Reply = [200, { items: foreign, total: 2 }, { etag: '"1"' }];
  const { code, messages, paths } = await doctorWith(list, [404, notFound], ['--workspace', workspaceId.toUpperCase()]);
  expect([code, messages[4]]).toEqual([1, 'a list of one workspace holds 2 records of another']);
  expect(paths[0]).toContain(`workspaceId=${workspaceId.toUpperCase()}&state=COMPLETED`);
});

test('a faulty configuration is the finding', async () => {
  const { code, checks } = await doctor({ PORT: 'x' });
  expect(code).toBe(1);
  expect(checks[0]?.message).toContain('PORT: given "x"');
  expect(checks.map(({ name }) => name)).toEqual(['config', 'admin']);
});

test('what the configuration warns of and weak admin tokens are told', async () => {
  const { code, brief, checks } = await doctor({
    ADMIN_TOKEN: 'alice=short,bob=0123456789abcdef',
    UPSTREAM_TOKEN: 'unused',
  });
  expect([code, brief.slice(0, 3)]).toEqual([0, ['ok config', 'warn config', 'warn config']]);
  expect(checks[2]?.message).toBe('admin tokens of fewer than 16 characters can be guessed: alice');
});

test('a running gateway is found, and whether it takes our token', async () => {
  let reply: Reply = [200, { keys: [{}, {}] }];
  const admin: FakeServer = await serve(() => reply);
  const { checks } = await doctor({}, ['--admin', admin.url]);
  expect(checks.at(-1)).toMatchObject({ status: 'ok', message: `a gateway runs at ${admin.url} and knows 2 keys` });
  reply = [401, { error: { message: 'No admin token was given.' } }];
  const refused = await doctor({}, ['--admin', admin.url]);
  await admin.close();
  expect(refused.checks.at(-1)).toEqual({
    name: 'admin',
    status: 'fail',
    message: 'No admin token was given.',
    advice: 'Set ADMIN_TOKEN, or ADMIN_TOKEN_FILE, to a token that the gateway was started with.',
  });
});

const ADDRESS_ADVICE = 'Give the address of the admin listener with --admin URL.';
test.each<readonly [string, Reply, string | null]>([
  [
    'a registry out of reach',
    [503, { error: { message: 'No keys.' } }],
    'See /readyz there, and the redis lines above.',
  ],
  ['another listener of the gateway', [404, { error: { message: 'No keys.' } }], ADDRESS_ADVICE],
  ['a refusal that says itself what to do', [403, { error: { message: 'No keys.' } }], null],
])('what is advised where keys cannot be had fits why: %s', async (_, reply, advice) => {
  const admin = await serve(() => reply);
  const { checks } = await doctor({}, ['--admin', admin.url]);
  await admin.close();
  expect(checks.at(-1)).toEqual({ name: 'admin', status: 'fail', message: 'No keys.', advice });
});

test('something else at the address is told once what to do about', async () => {
  const other = await serve(() => [200, 'hello']);
  const { checks } = await doctor({}, ['--admin', other.url]);
  await other.close();
  const message = `What answers at ${other.url} is not an admin listener of evalgate, or of another version.`;
  expect(checks.at(-1)).toEqual({ name: 'admin', status: 'fail', message, advice: ADDRESS_ADVICE });
});

test('for people each finding is a line, with what to do beneath', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'evalgate-'));
  writeFileSync(join(directory, 'my.yaml'), 'rateLimit: {perMinute: 5}\n');
  const env = { ...storeEnv(), UPSTREAM_TOKEN: 'wrong', CONFIG_FILE: join(directory, 'my.yaml') };
  const { code, stdout } = await evalgate(['doctor', ...NO_GATEWAY], { env });
  rmSync(directory, { recursive: true });
  expect(code).toBe(1);
  expect(stdout.split('\n')).toEqual([
    `ok      config    ${directory}/my.yaml; values other than defaults: 1 from the file, 2 from the environment`,
    'skipped redis     not configured: keys, quotas and cache are in the memory of one process',
    'fail    upstream  the store refuses the token (status 401)',
    '                  What to do: Set UPSTREAM_TOKEN or UPSTREAM_TOKEN_FILE to the token that the store expects.',
    "ok      clock     agrees with the store's to within some seconds",
    'skipped admin     no gateway runs: nothing answers at http://127.0.0.1:1',
    '',
  ]);
});

test.each([
  ['Tue, 20 Jan 2026 10:00:00 GMT', 500, 'ok', "agrees with the store's to within some seconds"],
  ['Tue, 20 Jan 2026 10:00:00 GMT', 5500, 'ok', "agrees with the store's to within some seconds"],
  ['Tue, 20 Jan 2026 10:00:00 GMT', 5501, 'fail', "this machine's clock is 5 s ahead of the store's"],
  ['Tue, 20 Jan 2026 10:00:00 GMT', -59_500, 'fail', "this machine's clock is 60 s behind the store's"],
  ['nonsense', 0, 'skipped', 'the store sends no Date header to compare with'],
])('a Date of %s and a clock that is %i ms on: %s', (date, offMs, status, message) => {
  const nowMs = Date.UTC(2026, 0, 20, 10) + offMs;
  const check = checkClock({ headers: new Headers({ date }), sentAtMs: nowMs, answeredAtMs: nowMs });
  expect(check).toMatchObject({ status, message });
});

test('a slow answer makes the comparison of clocks less sure, by half the time it took', () => {
  const date = 'Tue, 20 Jan 2026 10:00:00 GMT';
  const nowMs = Date.UTC(2026, 0, 20, 10) + 8500;
  const at = (tookMs: number) =>
    checkClock({ headers: new Headers({ date }), sentAtMs: nowMs - tookMs / 2, answeredAtMs: nowMs + tookMs / 2 });
  expect([at(5998).status, at(6000).status]).toEqual(['fail', 'ok']);
});
