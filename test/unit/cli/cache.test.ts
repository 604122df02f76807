import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cacheCommand } from '../../../src/cli/cache/index.ts';
import { CliError } from '../../../src/cli/errors.ts';
import type { Terminal } from '../../../src/cli/terminal.ts';
import { evalgate, type FakeServer, type Received, type Reply, serve } from './support.ts';

const WORKSPACE = '0b5e7a52-3f0e-4c39-9d7c-6f3f1f0f7c11';
const TTL_ROW = {
  class: 'list',
  fresh: '45s',
  stale: '5m',
  error: '2h',
  freshMs: 45_000,
  staleMs: 300_000,
  errorMs: 7_200_000,
  source: { fresh: 'set', stale: 'default', error: 'file' },
  setBy: 'al\u001Bice',
  setAt: '2026-01-15T12:00:00.000Z',
};
const PURGED = { entries: 1234, bytes: 2_345_678, tags: ['class:list'], mode: 'hard', dryRun: false };

let admin: FakeServer;
let reply: (request: Received) => Reply;
beforeEach(async () => {
  admin = await serve((request) => reply(request));
});
afterEach(() => admin.close());

const cache = (args: readonly string[], env: Record<string, string> = {}) =>
  evalgate(['cache', ...args, '--admin', admin.url], { env });

const lines = (text: string): readonly string[][] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/));

test.each([
  ['', false],
  ['stats', true],
  ['top', true],
  ['explain', true],
  ['maintenance', false],
  ['maintenance status', true],
  ['maintenance on', true],
  ['maintenance off', true],
  ['ttl', false],
  ['ttl get', true],
  ['ttl set', true],
  ['ttl reset', true],
  ['purge', true],
])('cache %s has --help with examples, and --json where it answers', async (name, isAnswering) => {
  const command = ['cache', ...name.split(' ').filter((word) => word !== '')];
  const { code, stdout, stderr } = await evalgate([...command, '--help']);
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain(`Usage: ${['evalgate', ...command].join(' ')} `);
  expect(stdout).toContain('\nExamples:\n  $ ');
  expect(/^ {2}--json /m.test(stdout)).toBe(isAnswering);
});

describe('ttl', () => {
  test.each([[['ttl']], [['ttl', 'get']]])('%j shows a line a class and where each time comes from', async (args) => {
    const row = { ...TTL_ROW, class: 'rubric', source: { fresh: 'default', stale: 'default', error: 'default' } };
    reply = () => [200, { classes: [TTL_ROW, { ...row, setBy: null, setAt: null }] }];
    const { code, stdout } = await cache(args, { ADMIN_TOKEN: 's3cret' });
    expect([code, lines(stdout)]).toEqual([
      0,
      [
        ['CLASS', 'FRESH', 'STALE', 'ERROR', 'SET BY', 'SET AT'],
        ['list', '45s (set)', '5m', '2h (file)', 'al\uFFFDice', '2026-01-15T12:00:00.000Z'],
        ['rubric', '45s', '5m', '2h', '-', '-'],
      ],
    ]);
    expect(admin.received).toEqual([
      { method: 'GET', path: '/api/cache/ttl', authorization: 'Bearer s3cret', body: undefined },
    ]);
  });

  test('--json gives what the listener gave', async () => {
    reply = () => [200, { classes: [TTL_ROW] }];
    expect(JSON.parse((await cache(['ttl', '--json'])).stdout)).toEqual({ classes: [TTL_ROW] });
  });

  test('set sends the times that were given, and no others', async () => {
    reply = () => [200, TTL_ROW];
    const { code, stdout } = await cache(['ttl', 'set', 'list', '--fresh', '90s', '--error', '0s', '--json']);
    expect([code, JSON.parse(stdout)]).toEqual([0, TTL_ROW]);
    expect(admin.received).toMatchObject([
      { method: 'PUT', path: '/api/cache/ttl/list', body: { fresh: '90s', error: '0s' } },
    ]);
  });

  test('reset names the class alone', async () => {
    reply = () => [200, TTL_ROW];
    expect(await cache(['ttl', 'reset', 'dealInsights'])).toMatchObject({ code: 0, stderr: '' });
    expect(admin.received).toMatchObject([{ method: 'DELETE', path: '/api/cache/ttl/dealInsights', body: undefined }]);
  });
});

/** At a terminal where somebody says yes or no. */
async function atTerminal(says: boolean): Promise<{ readonly out: string; readonly asked: readonly string[] }> {
  let out = '';
  const asked: string[] = [];
  const terminal: Terminal = {
    env: {},
    out: (text) => void (out += text),
    err: () => {},
    readInput: async () => '',
    confirm: async (...question) => {
      asked.push(...question);
      return says;
    },
  };
  reply = ({ body }) => [200, { ...PURGED, dryRun: JSON.stringify(body).includes('"dryRun":true') }];
  const args = ['purge', '--tag', 'class:list', '--admin', admin.url];
  await cacheCommand(terminal).parseAsync(args, { from: 'user' });
  return { out, asked };
}

describe('purge', () => {
  test('sends the tags as they are compared, and shows what was purged', async () => {
    const tags = [`workspace:${WORKSPACE}`, 'class:notFound'];
    reply = () => [200, { ...PURGED, tags, mode: 'soft' }];
    const args = ['--tag', `workspace:${WORKSPACE.toUpperCase()}`, 'evaluation:ev_1', '--tag', 'scorecard:sc_1'];
    const { code, stdout, stderr } = await cache(['purge', ...args, '--mode', 'soft']);
    expect([code, stderr, stdout]).toEqual([
      0,
      '',
      `Purged, soft: 1234 entries, 2.3 MB.\n  workspace:${WORKSPACE}\n  class:notFound\n`,
    ]);
    expect(admin.received).toMatchObject([
      {
        method: 'POST',
        path: '/api/cache/purge',
        body: {
          tags: [`workspace:${WORKSPACE}`, 'evaluation:ev_1', 'scorecard:sc_1'],
          mode: 'soft',
          dryRun: false,
        },
      },
    ]);
  });

  test.each(['class:list', 'all'])('of %s without --yes only shows what would go, and ends with 2', async (tag) => {
    reply = () => [200, { ...PURGED, entries: 1, bytes: 999, tags: [tag], dryRun: true }];
    const { code, stdout, stderr } = await cache(['purge', '--tag', 'evaluation:a', '--tag', tag]);
    expect([code, stdout, stderr]).toEqual([
      2,
      '',
      `Would be purged, hard: 1 entry, 999 B.\n  ${tag}\nNothing was purged. To purge this, give --yes.\n`,
    ]);
    expect(admin.received).toMatchObject([{ body: { tags: ['evaluation:a', tag], mode: 'hard', dryRun: true } }]);
  });

  test('of a class with --yes does it at once', async () => {
    reply = () => [200, PURGED];
    const { code, stdout } = await cache(['purge', '--tag', 'class:list', '--yes', '--json']);
    expect([code, JSON.parse(stdout)]).toEqual([0, PURGED]);
    expect(admin.received).toMatchObject([{ body: { dryRun: false } }]);
  });

  test('--dry-run never purges and needs no yes', async () => {
    reply = () => [200, { ...PURGED, dryRun: true }];
    const { code, stdout } = await cache(['purge', '--tag', 'all', '--dry-run', '--yes']);
    expect([code, stdout]).toEqual([0, 'Would be purged, hard: 1234 entries, 2.3 MB.\n  class:list\n']);
    expect(admin.received).toMatchObject([{ body: { dryRun: true } }]);
  });

  test('at a terminal the question shows what would go, and a yes purges it', async () => {
    expect(await atTerminal(true)).toEqual({
      out: 'Purged, hard: 1234 entries, 2.3 MB.\n  class:list\n',
      asked: ['Would be purged, hard: 1234 entries, 2.3 MB.\n  class:list', 'Purge this?'],
    });
    expect(admin.received).toMatchObject([{ body: { dryRun: true } }, { body: { dryRun: false } }]);
  });

  test('at a terminal a no purges nothing', async () => {
    await expect(atTerminal(false)).rejects.toEqual(new CliError('Nothing was purged.'));
    expect(admin.received).toMatchObject([{ body: { dryRun: true } }]);
  });
});

test('stats shows reads by outcome with the hit ratio, and misses by reason', async () => {
  const outcomes = { hit: 90, 'stale-while-revalidate': 4, 'stale-if-error': 3, collapsed: 2, miss: 1, failed: 0 };
  const misses = { 'never-seen': 5, purged: 1 };
  const spread = { ageMs: { p50: 4000, p90: 25_000, p99: 61_000 }, latencyMs: { p50: 0.0495, p90: 1.5, p99: 1500 } };
  const row = { class: 'list', reads: 100, outcomes, tiers: {}, misses, storeCalls: 6, ...spread };
  const none = { hit: 0, 'stale-while-revalidate': 0, 'stale-if-error': 0, collapsed: 0, miss: 0, failed: 0 };
  const document = {
    since: '2026-01-15T12:00:00.000Z',
    memory: { entries: 12, bytes: 99_949, maxBytes: 64_000_000 },
    classes: [
      { ...row, memory: { entries: 11, bytes: 99_950 } },
      {
        ...row,
        class: 'rubric',
        reads: 0,
        outcomes: none,
        misses: {},
        storeCalls: 0,
        ageMs: null,
        latencyMs: null,
        memory: { entries: 0, bytes: 0 },
      },
    ],
  };
  reply = () => [200, document];
  const { code, stdout } = await cache(['stats']);
  expect([code, lines(stdout)]).toEqual([
    0,
    [
      ['Since 2026-01-15T12:00:00.000Z. In memory: 12 entries, 99.9 kB of 64.0 MB.'],
      [''],
      ['Reads by how they were answered'],
      'CLASS READS HIT STALE ON_ERROR COLLAPSED MISS FAILED STORE_CALLS HIT_RATIO ENTRIES BYTES'
        .split(' ')
        .map((name) => name.replace('_', ' ')),
      ['list', '100', '90', '4', '3', '2', '1', '0', '6', '94.0 %', '11', '100 kB'],
      ['rubric', '0', '0', '0', '0', '0', '0', '0', '0', '-', '0', '0 B'],
      [''],
      ['Misses by why'],
      ['CLASS', 'NEVER-SEEN', 'PURGED'],
      ['list', '5', '1'],
      ['rubric', '0', '0'],
      [''],
      ['Age when served, and time of a read: half, nine in ten and all but one in a hundred are within it'],
      ['CLASS', 'AGE P50', 'AGE P90', 'AGE P99', 'TIME P50', 'TIME P90', 'TIME P99'],
      ['list', '4s', '25s', '1m 1s', '0.0495ms', '1.5ms', '1s'],
      ['rubric', '-', '-', '-', '-', '-', '-'],
    ],
  ]);
  expect(admin.received).toMatchObject([{ method: 'GET', path: '/api/cache' }]);
  expect(JSON.parse((await cache(['stats', '--json'])).stdout)).toEqual(document);
});

test.each([
  [['purge'], "required option '--tag <tag...>' not specified"],
  [['purge', '--tag', 'class:lists'], 'class:NAME (one of list, evaluation, transcript,'],
  [['purge', '--tag', 'workspace:acme'], 'workspace:UUID'],
  [['purge', '--tag', 'all', '--mode', 'medium'], 'Allowed choices are hard, soft.'],
  [['ttl', 'set', 'lists', '--fresh', '1s'], 'Allowed choices are list, evaluation,'],
  [['ttl', 'set', 'list'], 'Nothing was set. Give at least one of --fresh, --stale and --error.'],
  [['ttl', 'set', 'list', '--fresh', '45'], 'Allowed: a duration like'],
  [['ttl', 'set', 'list', '--stale', '366d'], 'from 0s to 365d.'],
  [['ttl', 'reset'], "missing required argument 'class'"],
])('a wrong call ends with 2, says what is allowed, and sends nothing: %j', async (args, message) => {
  const { code, stdout, stderr } = await cache(args);
  expect([code, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
  expect(admin.received).toEqual([]);
});

test('an error of the listener is told as it is', async () => {
  reply = () => [401, { error: { message: 'No admin token was given.' } }];
  expect(await cache(['ttl', 'reset', 'list'])).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'No admin token was given.\nSet ADMIN_TOKEN, or ADMIN_TOKEN_FILE, to a token that the gateway was started with.\n',
  });
});
