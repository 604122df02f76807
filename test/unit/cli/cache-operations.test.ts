import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UNKNOWN_KEY, VIEWER_NEEDED } from '../../../src/admin/explain-endpoint.ts';
import { cacheCommand } from '../../../src/cli/cache/index.ts';
import { exitCodeOf } from '../../../src/cli/errors.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { type FakeServer, type Outcome, type Received, type Reply, serve } from './support.ts';

const WORKSPACE = '0b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11';

let admin: FakeServer;
let reply: (request: Received) => Reply;
beforeEach(async () => {
  admin = await serve((request) => reply(request));
});
afterEach(() => admin.close());

/** The command in this process: one of its own each would cost far more than what it does. */
async function cache(...args: readonly string[]): Promise<Outcome> {
  const said = { stdout: '', stderr: '' };
  const terminal: Terminal = {
    env: {},
    out: (text) => void (said.stdout += text),
    err: (text) => void (said.stderr += text),
    readInput: async () => '',
    confirm: async () => null,
  };
  try {
    await cacheCommand(terminal).parseAsync([...args, '--admin', admin.url], { from: 'user' });
    return { code: 0, ...said };
  } catch (error) {
    const message = error instanceof Error ? `${error.message}\n` : '';
    return { ...said, code: exitCodeOf(error), stderr: said.stderr + message };
  }
}

const lines = (text: string): readonly string[][] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));

describe('maintenance', () => {
  const OFF = { active: false, until: null, leftMs: 0, by: null, since: null };
  const ON = {
    active: true,
    until: '2026-01-15T12:30:00.000Z',
    leftMs: 1_799_000,
    by: 'al\u001Bice',
    since: '2026-01-15T12:00:00.000Z',
  };
  const ON_TEXT = [
    'Maintenance is on until 2026-01-15T12:30:00.000Z, 29m 59s from now: the store is asked nothing.',
    'Since 2026-01-15T12:00:00.000Z, said by al\uFFFDice.',
    '',
  ].join('\n');

  test.each([[['maintenance']], [['maintenance', 'status']]])('%j shows whether it is on', async (args) => {
    reply = () => [200, ON];
    expect(await cache(...args)).toEqual({ code: 0, stdout: ON_TEXT, stderr: '' });
    reply = () => [200, OFF];
    expect((await cache(...args)).stdout).toBe('Maintenance is off: the store is asked as usual.\n');
    expect(admin.received).toMatchObject([
      { method: 'GET', path: '/api/cache/maintenance' },
      { method: 'GET', path: '/api/cache/maintenance' },
    ]);
  });

  test('on sends how long, or until when, and off ends it', async () => {
    reply = () => [200, ON];
    expect((await cache('maintenance', 'on', '--for', '30m')).stdout).toBe(ON_TEXT);
    expect(JSON.parse((await cache('maintenance', 'on', '--until', '2026-01-15T12:30:00Z', '--json')).stdout)).toEqual(
      ON,
    );
    reply = () => [200, OFF];
    expect((await cache('maintenance', 'off')).code).toBe(0);
    expect(admin.received.map(({ method, body }) => [method, body])).toEqual([
      ['PUT', { for: '30m' }],
      ['PUT', { until: '2026-01-15T12:30:00Z' }],
      ['DELETE', undefined],
    ]);
  });
});

describe('top', () => {
  const TOP = {
    since: '2026-01-15T12:00:00.000Z',
    scope: 'process',
    keys: [{ key: 'v1:{list:a}', class: 'list', storeCalls: 12, storeMs: 3456 }],
    routes: [
      { route: '/v2/calls', storeCalls: 11, storeMs: 3400 },
      { route: null, storeCalls: 1, storeMs: 56 },
    ],
  };

  test('shows routes and keys with their calls and their time', async () => {
    reply = () => [200, TOP];
    const { code, stdout } = await cache('top', '--limit', '5');
    expect([code, lines(stdout)]).toEqual([
      0,
      [
        ['Calls to the store since 2026-01-15T12:00:00.000Z.'],
        [''],
        ['ROUTE', 'STORE CALLS', 'STORE MS'],
        ['/v2/calls', '11', '3400'],
        ['(no request)', '1', '56'],
        [''],
        ['KEY', 'CLASS', 'STORE CALLS', 'STORE MS'],
        ['v1:{list:a}', 'list', '12', '3456'],
      ],
    ]);
    expect(admin.received).toMatchObject([{ method: 'GET', path: '/api/cache/top?limit=5' }]);
    expect(JSON.parse((await cache('top', '--json')).stdout)).toEqual(TOP);
  });

  test('the help says why its numbers differ from those of `cache stats`', async () => {
    const { stdout } = await cache('top', '--help');
    expect(stdout).toContain('`cache stats`\ncounts every call that was sent, retries too');
  });

  test('says so where there was no call', async () => {
    reply = () => [200, { ...TOP, keys: [], routes: [] }];
    expect((await cache('top')).stdout).toBe('Calls to the store since 2026-01-15T12:00:00.000Z. There were none.\n');
  });
});

describe('explain', () => {
  const ENTRY = {
    state: 'stale',
    answer: 'found',
    visible: true,
    ageMs: 65_000,
    freshUntil: '2026-01-15T12:00:28.000Z',
    staleUntil: '2026-01-15T12:05:28.000Z',
    errorUntil: '2026-01-15T13:00:28.000Z',
    jitterMs: 2000,
    softPurged: false,
    tags: ['all', 'class:list'],
    bytes: 12_345,
  };
  const EXPLANATION = {
    path: '/v2/calls?page=2&pageSize=20',
    route: '/v2/calls',
    workspaces: [WORKSPACE],
    at: '2026-01-15T12:01:05.000Z',
    key: 'v1:{list:a}',
    class: 'list',
    next: {
      text: 'The next read is served from memory and starts one refresh behind.',
      from: 'memory',
      store: 'behind',
      miss: null,
    },
    memory: ENTRY,
    redis: { state: 'asked', entry: { ...ENTRY, state: 'fresh', visible: false, softPurged: true, freshUntil: null } },
    flight: { since: null, leaseLeftMs: 1500, justFailed: false },
    lastMiss: { reason: 'expired', at: '2026-01-15T11:59:00.000Z' },
    times: {
      fresh: '30s',
      stale: '5m',
      error: '2h',
      source: { fresh: 'default', stale: 'file', error: 'set' },
      setBy: 'alice',
    },
    maintenance: { until: '2026-01-15T12:30:00.000Z', by: 'bob' },
  };

  test('tells the next read in a sentence, then the facts, then each copy', async () => {
    reply = () => [200, EXPLANATION];
    const { code, stdout } = await cache('explain', '/v2/calls?page=2&pageSize=20', '--key-id', 'key_1');
    expect([code, lines(stdout)]).toEqual([
      0,
      [
        ['The next read is served from memory and starts one refresh behind.'],
        [''],
        ['Path', '/v2/calls?page=2&pageSize=20'],
        ['Route', '/v2/calls'],
        ['Key', 'v1:{list:a}'],
        ['Times', 'class list: fresh 30s, stale 5m (file), error 2h (set), set by alice'],
        ['Last miss here', 'expired, at 2026-01-15T11:59:00.000Z'],
        ['Under way', 'a call to the store by another process'],
        ['Maintenance', 'the store is asked nothing until 2026-01-15T12:30:00.000Z, said by bob'],
        [''],
        ['TIER', 'STATE', 'ANSWER', 'AGE', 'FRESH UNTIL', 'STALE UNTIL', 'ON ERROR UNTIL', 'BYTES'],
        ['memory', 'stale', 'found', '1m 5s', ENTRY.freshUntil, ENTRY.staleUntil, ENTRY.errorUntil, '12.3 kB'],
        [
          'redis',
          'fresh, softly purged, of another workspace',
          'found',
          '1m 5s',
          '-',
          ENTRY.staleUntil,
          ENTRY.errorUntil,
          '12.3 kB',
        ],
        [''],
        ['The first read after FRESH UNTIL starts a refresh behind; jitter makes that 2s earlier.'],
        ['Tags: all class:list'],
      ],
    ]);
    const query = new URLSearchParams({ path: '/v2/calls?page=2&pageSize=20', keyId: 'key_1' });
    expect(admin.received).toMatchObject([{ method: 'GET', path: `/api/cache/explain?${query.toString()}` }]);
  });

  test('says where nothing is held, in memory and in Redis', async () => {
    const nothing = { ...EXPLANATION, memory: null, lastMiss: null, maintenance: null };
    const shown = async (state: string) => {
      reply = () => [200, { ...nothing, redis: { state, entry: null } }];
      return lines((await cache('explain', '/v2/calls', '--workspace', WORKSPACE, WORKSPACE)).stdout).slice(-2);
    };
    expect(await shown('alone')).toEqual([
      ['memory', 'nothing held'],
      ['redis', 'not used'],
    ]);
    expect((await shown('unreachable'))[1]).toEqual(['redis', 'does not answer']);
    expect((await shown('unreadable'))[1]).toEqual(['redis', 'something that is no entry']);
    expect((await shown('asked'))[1]).toEqual(['redis', 'nothing held']);
    expect(admin.received[0]?.path).toBe(
      `/api/cache/explain?path=%2Fv2%2Fcalls&workspace=${WORKSPACE}&workspace=${WORKSPACE}`,
    );
  });

  test('of what is absent: there is no refresh behind', async () => {
    const absent = { ...ENTRY, answer: 'absent', staleUntil: ENTRY.freshUntil };
    reply = () => [200, { ...EXPLANATION, memory: absent }];
    expect((await cache('explain', '/v2/calls')).stdout).toContain(
      'The first read after FRESH UNTIL asks the store and waits for it;',
    );
  });

  test('--json gives what the listener gave, and a refusal is told with exit status 1', async () => {
    reply = () => [200, EXPLANATION];
    expect(JSON.parse((await cache('explain', '/v2/calls', '--json')).stdout)).toEqual(EXPLANATION);
    reply = () => [400, { error: { message: 'The path "/v3" puts no question to the cache.' } }];
    expect(await cache('explain', '/v3')).toEqual({
      code: 1,
      stdout: '',
      stderr: 'The path "/v3" puts no question to the cache.\n',
    });
  });

  test.each([
    [
      400,
      `${VIEWER_NEEDED} Give keyId (the id of a key).`,
      'What this path shows depends on who asks. Name a key of the registry with --key-id ID, or workspaces with --workspace UUID (repeat it for more).\n',
    ],
    [
      404,
      `${UNKNOWN_KEY} GET /api/keys lists them.`,
      'The registry has no key with the id of --key-id. `evalgate keys list` shows those that it has; for another key name its workspaces with --workspace UUID instead.\n',
    ],
  ])('a refusal with %i that names query parameters is told with the options instead', async (status, given, told) => {
    reply = () => [status, { error: { message: given } }];
    expect(await cache('explain', '/v2/calls')).toEqual({ code: 1, stdout: '', stderr: told });
  });
});

test.each([
  [['top', '--limit', '101'], 'Allowed: an integer from 1 to 100.'],
  [['explain'], "missing required argument 'path'"],
  [['explain', '/v2/calls', '--workspace', 'acme'], 'Allowed: a UUID.'],
  [['explain', 'v2/calls'], 'a path that begins with a slash, plain, such as "/v2/calls?page=2".'],
  [['explain', '%2Fv2%2Fcalls'], 'a path that begins with a slash, plain'],
  [['explain', '/v2/calls', '--key-id', 'k', '--workspace', WORKSPACE], 'Give --key-id or --workspace, not both.'],
  [['maintenance', 'on'], 'Nothing was changed. Give one of --for and --until.'],
  [['maintenance', 'on', '--for', '1h', '--until', '2026-01-15T12:00:00Z'], 'Give one of --for and --until.'],
  [['maintenance', 'on', '--for', '25h'], 'from 1ms to 1d.'],
  [['maintenance', 'on', '--until', 'noon'], 'Allowed: a time in ISO 8601, such as 2026-01-15T12:30:00Z.'],
])('a wrong call ends with 2, says what is allowed, and sends nothing: %j', async (args, message) => {
  const { code, stdout, stderr } = await cache(...args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
  expect(admin.received).toEqual([]);
});
