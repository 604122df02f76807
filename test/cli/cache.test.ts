/** `evalgate cache` on a real gateway in front of a scripted store. */
import { beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { forTest } from '../support/opened.ts';
import { cellsOf, type CliOptions, runCli, runJson } from '../support/cli.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';

const LIST = `/v1/workspaces/${WORKSPACE_A}/reports`;
const NOW = '2026-01-15T12:00:00.000Z';

let gateway: TestGateway;
let key: string;
beforeEach(async () => {
  gateway = await forTest(startTestGateway());
  gateway.store.put({ evaluations: [anEvaluation()] });
  key = await gateway.issueKey();
});

const cache = (...args: readonly string[]) => runCli(['cache', ...args, '--admin', gateway.adminUrl]);
const cacheJson = (...args: readonly string[]) => runJson(['cache', ...args, '--admin', gateway.adminUrl]);
const read = async (path = LIST) => String((await gateway.get(path, { key })).headers['cache-status']);

/** The listener's own answers. */
async function fromListener(path: string): Promise<unknown> {
  return (await gateway.admin('GET', path)).json;
}

describe('purge', () => {
  test('of an evaluation needs no yes, and a soft one makes no reader wait', async () => {
    await read();
    const { status, stdout, stderr } = await cache('purge', '--tag', 'evaluation:ev_1', '--mode', 'soft');
    expect([status, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      new RegExp(
        `^Purged, soft: 2 entries, \\d+\\.\\d kB\\.\n {2}1 by their tags\n {2}\\+ 1 list of 1 workspace\n {2}evaluation:ev_1\n {2}lists-of:${WORKSPACE_A}\n$`,
      ),
    );
    expect(await read()).toBe('evalgate; hit; ttl=0; detail=stale-while-revalidate');
    await gateway.store.waitForCalls(2, 'list');
  });

  test('of a class only shows what would go, until --yes', async () => {
    await read();
    const shown = await cache('purge', '--tag', 'class:list');
    expect([shown.status, shown.stdout]).toEqual([2, '']);
    expect(shown.stderr).toMatch(
      /^Would be purged, hard: 1 entry, \d+\.\d kB\.\n {2}class:list\nNothing was purged\. To purge this, give --yes\.\n$/,
    );
    await read();
    expect(gateway.store.calls('list')).toBe(1);
    expect(await cacheJson('purge', '--tag', 'class:list', '--yes')).toMatchObject({
      entries: 1,
      mode: 'hard',
      dryRun: false,
    });
    expect(await read()).toBe('evalgate; fwd=uri-miss; stored');
  });

  test('--dry-run never purges and needs no yes; several tags are given at once, in any case', async () => {
    await read();
    const tags = ['--tag', `workspace:${WORKSPACE_A.toUpperCase()}`, 'all', '--tag', 'scorecard:sc_1'];
    const { status, stdout } = await cache('purge', ...tags, '--dry-run', '--yes');
    expect(status).toBe(0);
    expect(stdout).toMatch(/^Would be purged, hard: 2 entries, \d+\.\d kB\.\n/);
    expect(stdout).toContain(`  workspace:${WORKSPACE_A}\n`);
    expect(await read()).toMatch(/^evalgate; hit;/);
  });

  test.each([
    ['y\n', 0, 'evalgate; fwd=uri-miss; stored'],
    ['yes\n', 0, 'evalgate; fwd=uri-miss; stored'],
    ['n\n', 1, 'evalgate; hit; ttl=30'],
    ['', 1, 'evalgate; hit; ttl=30'],
  ])('at a terminal it shows what would go and asks: %j', async (typed, status, next) => {
    await cache('ttl', 'set', 'list', '--fresh', '30s');
    await read();
    const args = ['cache', 'purge', '--tag', 'class:list', '--admin', gateway.adminUrl];
    const done = await runCli(args, { typed });
    expect(done.status).toBe(status);
    expect(done.stderr).toContain('Would be purged, hard: 1 entry');
    expect(done.stderr).toContain('Purge this? [y/N]');
    expect(done.stderr.endsWith('Nothing was purged.\n')).toBe(status === 1);
    expect((await read()).replace(/ttl=\d+/, 'ttl=30')).toBe(next);
  });

  test('of an evaluation that no copy shows, such as a mistyped one, is asked for at a terminal if it takes along any list', async () => {
    await read('/v2/calls');
    const args = ['cache', 'purge', '--tag', 'evaluation:nope', '--admin', gateway.adminUrl];
    const declined = await runCli(args, { typed: 'n\n' });
    expect([declined.status, declined.stdout]).toEqual([1, '']);
    expect(declined.stderr).toContain('  + all lists (1 list of 1 workspace), because no copy shows its workspace\n');
    expect(await read('/v2/calls')).toMatch(/^evalgate; hit;/);
    expect(await runCli([...args, '--yes'], { typed: '' })).toMatchObject({ status: 0, stderr: '' });
  });

  test('of an evaluation that takes along more than 100 lists is shown first at a terminal; scripts are not asked', async () => {
    const other = await gateway.issueKey({ workspaceIds: [WORKSPACE_B] });
    for (let page = 1; page <= 101; page += 1) await read(`/v2/calls?page=${page}&pageSize=1`);
    await gateway.get('/v2/calls', { key: other });
    const purge = (options: CliOptions, ...more: readonly string[]) =>
      runCli(['cache', 'purge', '--tag', 'evaluation:ev_none', ...more, '--admin', gateway.adminUrl], options);
    const listsTaken =
      '\n  0 by their tags\n  + all lists (102 lists of 2 workspaces), because no copy shows its workspace\n';
    const declined = await purge({ typed: 'n\n' });
    expect([declined.status, declined.stdout]).toEqual([1, '']);
    expect(declined.stderr).toContain(listsTaken);
    expect((await purge({}, '--dry-run')).stdout).toContain(listsTaken);
    const exact = await purge({ typed: '' }, '--exact');
    expect([exact.status, exact.stderr]).toEqual([0, '']);
    expect(exact.stdout).toMatch(/^Purged, hard: 0 entries, 0 B\.\n {2}evaluation:ev_none\n$/);
    const script = await purge({});
    expect([script.status, script.stderr]).toEqual([0, '']);
    expect(script.stdout).toContain(listsTaken);
    // Now there are fewer.
    expect(await purge({ typed: '' })).toMatchObject({ status: 0, stderr: '' });
  });
});

describe('ttl', () => {
  test('a time that is set rules stored answers at once, and reset goes back', async () => {
    await read();
    gateway.clock.advance(40_000);
    const set = await cache('ttl', 'set', 'list', '--fresh', '10m');
    expect([set.status, cellsOf(set.stdout)]).toEqual([
      0,
      [
        ['CLASS', 'FRESH', 'STALE', 'ERROR', 'SET BY', 'SET AT'],
        ['list', '10m (set)', '5m', '1h', 'anonymous', '2026-01-15T12:00:40.000Z'],
      ],
    ]);
    expect(await read()).toMatch(/^evalgate; hit; ttl=\d{3}$/);
    expect(await cacheJson('ttl', 'reset', 'list')).toMatchObject({ fresh: '30s', source: { fresh: 'default' } });
    expect(await read()).toMatch(/^evalgate; hit; ttl=-1\d; detail=stale-while-revalidate$/);
    await gateway.store.waitForCalls(2, 'list');
  });

  test.each([[['ttl']], [['ttl', 'get']]])(
    '%j shows a line a class; only times that were given are set',
    async (args) => {
      await cache('ttl', 'set', 'dealInsights', '--stale', '90s', '--error', '0s');
      const { stdout } = await cache(...args);
      expect(cellsOf(stdout)).toHaveLength(8);
      expect(cellsOf(stdout)).toContainEqual(['dealInsights', '5m', '90s (set)', '0s (set)', 'anonymous', NOW]);
      expect(cellsOf(stdout)).toContainEqual(['rubric', '10m', '1h', '1d', '-', '-']);
      expect(await cacheJson(...args)).toEqual(await fromListener('/api/cache/ttl'));
    },
  );

  test('C6a: --for sets them for a while, and shows until when and what is in force then', async () => {
    const set = await cache('ttl', 'set', 'list', '--fresh', '60s', '--for', '1h');
    expect([set.status, set.stderr]).toEqual([0, '']);
    expect(set.stdout).toMatch(/^list +1m \(set until \S+T\S+Z, then 30s\) +5m +1h +anonymous /m);
    expect((await cache('ttl')).stdout).toContain('1m (set until ');
    gateway.clock.advance(3_600_000);
    expect((await cache('ttl')).stdout).toMatch(/^list +30s +5m +1h +- +-$/m);
  });
});

describe('maintenance', () => {
  const ON = `Maintenance is on until 2026-01-15T12:30:00.000Z, 30m from now: nothing is sent to the store. Set by anonymous at ${NOW}.\n`;

  test('on for a time, its state, and off', async () => {
    expect(await cache('maintenance', 'on', '--for', '30m')).toEqual({ status: 0, stdout: ON, stderr: '' });
    expect((await gateway.get(LIST, { key })).status).toBe(500);
    expect((await cache('maintenance')).stdout).toBe(ON);
    expect(await cacheJson('maintenance', 'status')).toMatchObject({ active: true, leftMs: 1_800_000 });
    expect((await cache('maintenance', 'off')).stdout).toBe('Maintenance is off: the store is called as usual.\n');
    expect((await gateway.get(LIST, { key })).status).toBe(200);
  });

  test('on until a time', async () => {
    expect((await cache('maintenance', 'on', '--until', '2026-01-15T12:30:00Z')).stdout).toBe(ON);
  });
});

describe('stats', () => {
  test('shows reads by outcome with the hit ratio, misses by reason, and what is held', async () => {
    await read();
    await read();
    const { stdout } = await cache('stats');
    const [first, , heading, classes, list] = cellsOf(stdout);
    expect(first?.[0]).toMatch(
      /^Since 2026-01-15T12:00:00\.000Z, in steps of 5 minutes, by 1 process\. Memory of the answering process: 2 entries, \d+\.\d kB of 64\.0 MB\.$/,
    );
    expect([heading, classes]).toEqual([
      ['Reads by outcome'],
      'CLASS READS HIT STALE ON_ERROR CHANGED COLLAPSED MISS FAILED HIT_RATIO STORE_CALLS EARLY CALLS/READ UNANNOUNCED ENTRIES BYTES'
        .split(' ')
        .map((name) => name.replace('_', ' ')),
    ]);
    expect(list?.slice(0, -1)).toEqual([
      'list',
      '2',
      '1',
      '0',
      '0',
      '0',
      '0',
      '1',
      '0',
      '50.0 %',
      '1',
      '0',
      '0.50',
      '-',
      '1',
    ]);
    expect(cellsOf(stdout)).toContainEqual([
      'rubric',
      '0',
      '0',
      '0',
      '0',
      '0',
      '0',
      '0',
      '0',
      '-',
      '0',
      '0',
      '-',
      '-',
      '0',
      '0 B',
    ]);
    expect(stdout).toMatch(/^CLASS +NEVER-SEEN .*\nlist +1 /m);
    expect(stdout).toMatch(/^CLASS +AGE P50 +AGE P90 +AGE P99 +TIME P50 +TIME P90 +TIME P99\nlist +\S+ms /m);
    expect(await cacheJson('stats')).toEqual(await fromListener('/api/cache'));
  });

  test('a read that failed is no hit', async () => {
    gateway.store.fail(503);
    await read();
    expect((await cache('stats')).stdout).toMatch(/^list +1 +0 +0 +0 +0 +0 +0 +1 +0\.0 % +1 +0 +1\.00 /m);
  });
});

describe('top', () => {
  test('shows routes and keys with their calls and their time, or that there was no call', async () => {
    expect((await cache('top')).stdout).toBe(
      `Calls to the store. Since ${NOW}, in steps of 5 minutes, by 1 process. There were none.\n`,
    );
    await read();
    const document = z
      .looseObject({ keys: z.array(z.looseObject({ key: z.string() })) })
      .parse(await cacheJson('top', '--limit', '5'));
    expect(cellsOf((await cache('top')).stdout)).toEqual([
      [`Calls to the store. Since ${NOW}, in steps of 5 minutes, by 1 process.`],
      [''],
      ['ROUTE', 'STORE CALLS', 'STORE MS'],
      ['/v1/workspaces/{workspaceId}/reports', '1', expect.stringMatching(/^\d+$/)],
      [''],
      ['KEY', 'CLASS', 'STORE CALLS', 'STORE MS'],
      [document.keys[0]?.key, 'list', '1', expect.stringMatching(/^\d+$/)],
    ]);
    expect(document).toEqual(await fromListener('/api/cache/top?limit=5'));
  });
});

describe('explain', () => {
  const CALLS = '/v2/calls?page=1&pageSize=20';
  const explain = (...more: readonly string[]) => cache('explain', CALLS, '--workspace', WORKSPACE_A, ...more);

  test('says what the next read does, then the facts, then each copy', async () => {
    const before = cellsOf((await explain()).stdout);
    expect(before.slice(-2)).toEqual([
      ['memory', 'nothing held'],
      ['redis', 'not used'],
    ]);
    await read(CALLS);
    await cache('ttl', 'set', 'list', '--error', '2h');
    gateway.clock.advance(65_000);
    const { stdout } = await explain();
    expect(cellsOf(stdout).slice(1, 11)).toEqual([
      [''],
      ['Path', CALLS],
      ['Route', '/v2/calls'],
      ['Key', expect.stringMatching(/list/)],
      ['Copies of', WORKSPACE_A],
      ['Times', 'class list: fresh 30s, stale 5m, error 2h (set), set by anonymous'],
      ['Last miss here', `never-seen, at ${NOW}`],
      ['In flight', 'nothing'],
      [''],
      ['TIER', 'STATE', 'ANSWER', 'AGE', 'FRESH UNTIL', 'STALE UNTIL', 'ON ERROR UNTIL', 'BYTES'],
    ]);
    expect(stdout).toMatch(
      /^memory +stale +found +1m 5s +2026-01-15T12:00:2\S+ +\S+ +\S+ +\d+\.\d kB\nredis +not used\n/m,
    );
    expect(stdout).toMatch(
      /\n\nThe first read after FRESH UNTIL starts a background refresh; jitter set FRESH UNTIL .* earlier\.\n/,
    );
    expect(stdout).toMatch(new RegExp(`\\nTags: .*class:list.*\\nFiled under ${WORKSPACE_A}\\.\\n$`));
  });

  test('tells of a soft purge, of maintenance and of a call in flight', async () => {
    await read(CALLS);
    await cache('purge', '--tag', 'class:list', '--mode', 'soft', '--yes');
    await cache('maintenance', 'on', '--for', '30m');
    const { stdout } = await explain();
    expect(stdout).toMatch(/^memory +stale, soft-purged +found/m);
    expect(stdout).toMatch(
      /^Maintenance +nothing is sent to the store until 2026-01-15T12:30:00\.000Z, set by anonymous$/m,
    );
    await cache('maintenance', 'off');
    const gate = gateway.store.hold();
    const reading = gateway.get('/v2/calls/ev_none', { key });
    await gateway.store.waitForCalls(1, 'evaluation');
    expect((await cache('explain', '/v2/calls/ev_none')).stdout).toMatch(
      new RegExp(`^In flight +a call to the store since ${NOW}$`, 'm'),
    );
    gate.release();
    expect((await reading).status).toBe(404);
    expect((await cache('explain', '/v2/calls/ev_none', '--workspace', WORKSPACE_A)).stdout).toContain(
      'The first read after FRESH UNTIL asks the store and waits for it;',
    );
  });

  test('a reader is a key of the registry or some workspaces; --json gives what the listener gave', async () => {
    const { keyId } = await gateway.issue();
    const query = new URLSearchParams({ path: CALLS, keyId });
    expect(await cacheJson('explain', CALLS, '--key-id', keyId)).toEqual(
      await fromListener(`/api/cache/explain?${query.toString()}`),
    );
  });

  test.each([
    [
      [CALLS],
      'The answer of this path depends on who asks. Name a key of the registry with --key-id ID, or workspaces with --workspace UUID (repeat it for more).\n',
    ],
    [
      [CALLS, '--key-id', 'key_none'],
      'The registry has no key with the id of --key-id. `evalgate keys list` shows those that it has; for another key name its workspaces with --workspace UUID instead.\n',
    ],
    [['/v3'], 'The path "/v3" puts no question to the cache.'],
  ])('a refusal names the options, not the parameters of the listener: %j', async (args, message) => {
    const { status, stdout, stderr } = await cache('explain', ...args);
    expect([status, stdout]).toEqual([1, '']);
    expect(stderr).toContain(message);
  });
});

const WORKSPACES = ['--workspace', WORKSPACE_A];
test.each([
  [['purge'], "required option '--tag <tag...>' not specified"],
  [['purge', '--tag', 'class:lists'], 'class:NAME (one of list, evaluation, transcript,'],
  [['purge', '--tag', 'workspace:acme'], 'workspace:UUID'],
  [['purge', '--tag', 'all', '--mode', 'medium'], 'Allowed choices are hard, soft.'],
  [['ttl', 'set', 'lists', '--fresh', '1s'], 'Allowed choices are list, evaluation,'],
  [['ttl', 'set', 'list'], 'Nothing was set. Give at least one of --fresh, --stale and --error.'],
  [['ttl', 'set', 'list', '--fresh', '45'], 'Allowed: a duration like 250ms, 30s, 5m, 2h, 7d or 0s, from 0s to 365d.'],
  [['ttl', 'set', 'list', '--stale', '366d'], 'from 0s to 365d.'],
  [['ttl', 'set', 'list', '--fresh', '1s', '--for', '59s'], 'from 1m to 7d.'],
  [['ttl', 'set', 'list', '--for', '1h'], 'Nothing was set. Give at least one of --fresh, --stale and --error.'],
  [['ttl', 'reset'], "missing required argument 'class'"],
  [['top', '--limit', '101'], 'Allowed: an integer from 1 to 100.'],
  [['advice', '--class', 'lists'], 'Allowed choices are list, evaluation,'],
  [['explain'], "missing required argument 'path'"],
  [['explain', '/v2/calls', '--workspace', 'acme'], 'Allowed: a UUID.'],
  [['explain', 'v2/calls'], 'a path that begins with a slash, plain, such as "/v2/calls?page=2".'],
  [['explain', '/v2/calls', '--key-id', 'k', ...WORKSPACES], 'Give --key-id or --workspace, not both.'],
  [['maintenance', 'on'], 'Nothing was changed. Give one of --for and --until.'],
  [['maintenance', 'on', '--for', '1h', '--until', '2026-01-15T12:00:00Z'], 'Give one of --for and --until.'],
  [['maintenance', 'on', '--for', '25h'], 'from 1ms to 1d.'],
  [['maintenance', 'on', '--until', 'noon'], 'Allowed: a time in ISO 8601, such as 2026-01-15T12:30:00Z.'],
  [['stats', '--admin', 'localhost'], 'Allowed: an http:// or https:// address, such as http://127.0.0.1:8081.'],
])('a wrong call ends with 2 and says what is allowed: %j', async (args, message) => {
  const { status, stdout, stderr } = await runCli(['cache', ...args]);
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toContain(message);
});
