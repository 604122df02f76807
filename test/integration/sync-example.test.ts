/**
 * The example of docs/sync.md, run against a gateway while calls arrive, are completed late, change and go away, and while
 * other consumers keep copies of some pages fresher than of others.
 */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { openFolder } from '../support/files.ts';
import { forTest } from '../support/opened.ts';
import { startTestGateway } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { changeSchema, EXAMPLE, loadExample, pathOf, stateSchema, SyncWorld, TIMES } from '../support/sync-world.ts';
import { SeededRandom } from '../support/random.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';

const { SECOND, MINUTE, HOUR } = TIMES;
/** How old a copy of a list may be while the store answers: fresh and stale, with a second for rounding. */
const OLDEST_COPY_MS = 5 * MINUTE + 31 * SECOND;

const failedSchema = z.object({ stdout: z.string(), stderr: z.string(), code: z.number() });
let world: SyncWorld;

const example = await loadExample();
beforeEach(async () => {
  world = new SyncWorld(await forTest(startTestGateway()), example);
  world.key = await world.gateway.issueKey({ scopes: ['calls.read'], perMinute: 100_000, perHour: 100_000 });
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    await world.beforeRequest(url.slice(world.gateway.publicUrl.length));
    return await fetch(url, init);
  });
});
afterEach(() => void vi.unstubAllGlobals());

test('pages of which one is a fresher copy than the next: none is missed and none repeated', async () => {
  world.addMany(230, world.nowMs - MINUTE, MINUTE);
  for (const [page, size] of [
    [1, 100],
    [2, 90],
    [3, 85],
  ] as const)
    await world.readByOther(pathOf(page, size));
  world.gateway.clock.advance(4 * MINUTE);
  for (let i = 0; i < 12; i += 1) world.add(world.nowMs - i);
  // Page 1 is read often, so its copy is new; the copies of the others are older, and still served.
  await world.readByOther(pathOf(1, 100));
  world.gateway.clock.advance(SECOND);
  await world.sync();
  expect(world.waits).toEqual([1000]);
  expect(world.idsOf('new').toSorted()).toEqual(Object.keys(world.original()).toSorted());
  expect(world.copy()).toEqual(world.original());
});

test.each([1, 2, 3])(
  'no gap and no repeat while calls arrive, are late, change and go away (seed %i)',
  async (seed) => {
    const random = new SeededRandom(seed);
    world.addMany(260, world.nowMs - 30 * MINUTE, 7 * MINUTE);
    const known = new Set<string>();
    const happen = (): void => {
      world.gateway.clock.advance(random.integer(0, 20 * SECOND));
      for (let i = random.integer(0, 3); i > 0; i -= 1) world.add(world.nowMs);
      // Evaluated some hours after the call.
      if (random.next() < 0.3) world.add(world.nowMs - random.integer(0, 5 * HOUR));
      const { _id: one } = random.pick(world.records[0] ?? anEvaluation(), ...world.records);
      if (random.next() < 0.3) world.score(one, random.integer(1, 99));
      if (random.next() < 0.2) world.remove(one);
    };
    world.beforeRequest = async (path) => {
      known.add(path);
      happen();
      if (random.next() < 0.4)
        await world.readByOther(random.pick(pathOf(1, 100), ...[...known].filter((one) => one.includes('?'))));
    };
    world.onWait = happen;
    const kinds: boolean[] = [];
    for (let turn = 0; turn < 6; turn += 1) {
      const listed = world.listedSince(world.nowMs - OLDEST_COPY_MS);
      kinds.push((await world.sync(turn === 4)).isWhole);
      const copy = world.copy();
      const missed = listed.filter((id) => copy[id] === undefined && world.gateway.store.evaluations.has(id));
      expect(missed).toEqual([]);
      world.gateway.clock.advance(random.integer(0, 10 * MINUTE));
    }
    expect(kinds).toEqual([true, false, false, false, true, false]);
    // Quiet, and longer than any copy is served.
    world.beforeRequest = () => {};
    world.onWait = () => {};
    world.gateway.clock.advance(3 * HOUR);
    await world.sync(true);
    expect(world.copy()).toEqual(world.original());
    const told = world.idsOf('new');
    expect(new Set(told).size).toBe(told.length);
    const gone = world.idsOf('gone');
    expect(new Set(gone).size).toBe(gone.length);
    expect(told.length - gone.length).toBe(world.records.length);
  },
);

describe('the calls that reach a consumer', () => {
  test('a recent run reads no further than a day back, and every day the whole list is read', async () => {
    world.addMany(1000, world.nowMs - MINUTE, 10 * MINUTE);
    const first = await world.sync();
    world.gateway.clock.advance(10 * MINUTE);
    const second = await world.sync();
    expect([first.isWhole, second.isWhole]).toEqual([true, false]);
    // One for the key; 144 calls of a day and those beside them are on two pages.
    expect(second.requests).toBe(3);
    const { _id: oldest = '' } = world.records.at(-1) ?? {};
    world.score(oldest, 1);
    world.changes.length = 0;
    world.gateway.clock.advance(25 * HOUR);
    expect((await world.sync()).isWhole).toBe(true);
    expect(world.changes).toMatchObject([{ change: 'changed', call: { id: oldest, score: 1 } }]);
  });

  test('a recent run finds calls that are gone from the part that it read, and asks for no others', async () => {
    world.addMany(1000, world.nowMs - MINUTE, 10 * MINUTE);
    await world.sync();
    const [, recent, ...others] = world.records.map(({ _id }) => _id);
    const old = others.at(-1);
    if (recent === undefined || old === undefined) throw new Error('There are no records.');
    for (const id of [recent, old]) world.remove(id);
    world.changes.length = 0;
    world.gateway.clock.advance(2 * HOUR);
    const { isWhole } = await world.sync();
    expect([isWhole, world.changes]).toMatchObject([false, [{ change: 'gone', call: { id: recent } }]]);
    expect(
      world.gateway.store.requests.filter(({ resource }) => resource === 'evaluation').map(({ id }) => id),
    ).toEqual([recent]);
  });

  test('an older copy of a call never takes the place of a newer one', async () => {
    world.addMany(150, world.nowMs - MINUTE, MINUTE);
    await world.readByOther(pathOf(2, 90));
    world.gateway.clock.advance(4 * MINUTE);
    const { _id: id = '' } = world.records[95] ?? {};
    world.score(id, 42);
    // The first page shows it as it is now, the second, which has it too, as it was.
    await world.sync();
    const told = world.changes.filter(({ call }) => call.id === id);
    expect(told).toMatchObject([{ change: 'new', call: { score: 42 } }]);
    expect(world.copy()).toEqual(world.original());
  });

  test('an unchanged call is not sent again', async () => {
    world.addMany(300, world.nowMs - MINUTE, MINUTE);
    await world.sync();
    world.changes.length = 0;
    const before = world.gateway.logLines.length;
    const { requests } = await world.sync(true);
    const statuses = world.gateway.logLines.slice(before).filter((line) => line.includes('"status":304'));
    // All but the one for the key.
    expect(statuses).toHaveLength(requests - 1);
    expect(world.changes).toEqual([]);
  });

  test('a call that is gone is told as gone once, when its own address says so', async () => {
    world.addMany(120, world.nowMs - MINUTE, MINUTE);
    await world.sync();
    const [{ _id: id } = anEvaluation()] = world.records;
    world.remove(id);
    world.changes.length = 0;
    world.gateway.clock.advance(10 * MINUTE);
    // Its own copy is served for an hour yet.
    await world.sync(true);
    expect(world.changes).toEqual([]);
    world.gateway.clock.advance(2 * HOUR);
    await world.sync(true);
    await world.sync(true);
    expect(world.changes).toMatchObject([{ change: 'gone', call: { id } }]);
  });

  test('without a workspace it takes the only one of the key, and asks for a name if there are several', async () => {
    world.addMany(3, world.nowMs - MINUTE, MINUTE);
    world.workspaceId = undefined;
    await world.sync();
    expect(world.copy()).toEqual(world.original());
    const other = '33333333-3333-4333-8333-333333333333';
    world.key = await world.gateway.issueKey({ workspaceIds: [WORKSPACE_A, other] });
    const before = world.gateway.store.calls();
    await expect(world.sync()).rejects.toThrow(
      new RegExp(`^the key key_\\w+ may see 2 workspaces; name one with --workspace: ${WORKSPACE_A}, ${other}$`),
    );
    expect(world.gateway.store.calls()).toBe(before);
  });

  test.each([
    ['ECONNREFUSED', 'nothing listens there'],
    ['ENOTFOUND', 'there is no host of that name'],
  ])('an address that ends in %s is not tried again', async (code, meaning) => {
    world.beforeRequest = () => {
      throw new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code }) });
    };
    await expect(world.sync()).rejects.toThrow(`no connection to ${world.gateway.publicUrl}: ${meaning} (${code})`);
    expect(world.waits).toEqual([]);
  });

  test('a state of another workspace is refused before anything is read', async () => {
    const other = '33333333-3333-4333-8333-333333333333';
    world.key = await world.gateway.issueKey({ workspaceIds: [WORKSPACE_A, other] });
    world.state = { ...world.state, workspaceId: other };
    await expect(world.sync()).rejects.toThrow(`the state is of the workspace ${other}, not of ${WORKSPACE_A}`);
    expect(world.gateway.store.calls()).toBe(0);
  });

  test('a list that is used up, and a store that fails, are waited for as long as the answers say', async () => {
    world.addMany(400, world.nowMs - MINUTE, MINUTE);
    world.key = await world.gateway.issueKey({ scopes: ['calls.read'], perMinute: 2, perHour: 100_000 });
    const restore = world.gateway.store.fail(503, { 'retry-after': '7' });
    world.onWait = restore;
    await world.sync();
    expect(world.waits[0]).toBe(7000);
    expect(world.waits.slice(1).length).toBeGreaterThan(0);
    // Each wait is reported with its length and its reason.
    expect(world.logLines).toHaveLength(world.waits.length);
    expect(world.logLines[0]).toMatch(/^waiting 7 s: \/v2\/calls\?\S+: 500 \{.+\} \(Retry-After\)$/);
    expect(world.logLines[1]).toMatch(/^waiting \d+ s: \/v2\/calls\?\S+: 429 \{.+\} \(Retry-After\)$/);
    expect(world.copy()).toEqual(world.original());
  });

  test.each([
    ['lacks the scope', { scopes: ['reports.read'] as const }, /^the key key_\w+ lacks the scope calls.read$/],
    [
      'may not see the workspace',
      { workspaceIds: ['33333333-3333-4333-8333-333333333333'] },
      /^the key key_\w+ may not see the workspace 11111111-/,
    ],
  ])('a key that %s is found out before anything is read', async (_what, wanted, message) => {
    world.key = await world.gateway.issueKey(wanted);
    await expect(world.sync()).rejects.toThrow(message);
    expect(world.gateway.store.calls('list')).toBe(0);
  });
});

/** Standard output, standard error and exit status of a run, also of one that fails. */
async function run(url: string, ...args: readonly string[]) {
  const env = { ...process.env, EVALGATE_URL: url, EVALGATE_KEY: world.key };
  try {
    return { ...(await promisify(execFile)(process.execPath, [EXAMPLE, ...args], { env })), code: 0 };
  } catch (error) {
    return failedSchema.parse(error);
  }
}

function refuse(response: ServerResponse): void {
  response.writeHead(403).end('{"error":"no longer"}');
}

describe('as a program', () => {
  const folder = openFolder();
  afterAll(() => folder.close());

  test('it prints a line a change, keeps its state in a file, and says what is wrong', async () => {
    world.addMany(130, world.nowMs - MINUTE, MINUTE);
    const file = join(folder.path, 'calls.json');
    const { publicUrl } = world.gateway;
    const first = await run(publicUrl, '--workspace', WORKSPACE_A, '--state', file);
    const lines = first.stdout.trimEnd().split('\n');
    const changes = lines.map((line) => changeSchema.parse(JSON.parse(line)));
    expect(changes.map(({ change, call }) => `${change} ${call.id}`)).toEqual(
      world.records.map(({ _id }) => `new ${_id}`),
    );
    expect(first.stderr).toBe('all: 130 calls in 3 requests\n');
    expect(Object.keys(stateSchema.parse(JSON.parse(await readFile(file, 'utf8'))).calls)).toHaveLength(130);
    // An address may end with a slash.
    const second = await run(`${publicUrl}/`, '--workspace', WORKSPACE_A, '--state', file, '--full');
    expect([second.stdout, second.stderr]).toEqual(['', 'all: 130 calls in 3 requests\n']);
    // The key has one workspace, so it need not be named.
    expect((await run(publicUrl, '--state', file, '--full')).stderr).toBe('all: 130 calls in 3 requests\n');
    expect((await run(publicUrl)).stderr).toBe('--state FILE is missing; --help shows how to run this\n');
    expect((await run(publicUrl, '--help')).stdout).toMatch(
      /^usage: .+ --state FILE \[--workspace UUID\] \[--full\]\n/,
    );
    const page = await listenOnLoopback(createServer((_, response) => response.end('<html>')));
    const { stderr } = await run(page.url, '--state', file);
    await page.close();
    expect(stderr).toBe('/v2/key: 200 without JSON: is this the address of evalgate?\n');
    const elsewhere = await run(`${publicUrl}/elsewhere`, '--workspace', WORKSPACE_A, '--state', file);
    expect(elsewhere.stderr).toMatch(/^\/v2\/key was answered with 40\d/);
  });

  test.each([
    ['is cut short', '{"workspaceId":', /JSON/],
    ['is of something else', '{"calls":{}}', /it has no workspaceId, pages, lastRunMs, lastFullMs/],
  ])('a state file that %s is named with the reason, and kept', async (_what, text, reason) => {
    const file = folder.write('damaged.json', text);
    const { stdout, stderr, code } = await run(world.gateway.publicUrl, '--state', file);
    expect([stdout, code]).toEqual(['', 1]);
    expect(stderr.startsWith(`${file} is not a state of this program: `)).toBe(true);
    expect(stderr).toMatch(reason);
    expect(await readFile(file, 'utf8')).toBe(text);
    expect(world.gateway.store.calls()).toBe(0);
  });

  test('a state that can be neither read nor written is found before a change is printed', async () => {
    world.addMany(1, world.nowMs - MINUTE, MINUTE);
    const unread = await run(world.gateway.publicUrl, '--state', folder.path);
    expect([unread.stdout, unread.stderr]).toEqual([
      '',
      expect.stringMatching(`^${folder.path} can't be read: EISDIR`),
    ]);
    const file = join(folder.path, 'absent', 'calls.json');
    const unwritten = await run(world.gateway.publicUrl, '--state', file);
    expect([unwritten.stdout, unwritten.stderr]).toEqual([
      '',
      expect.stringMatching(`^${file} can't be written: ENOENT`),
    ]);
  });

  test('a run that fails half-way has reported what it read: the next one does not report it again', async () => {
    world.addMany(130, world.nowMs - MINUTE, MINUTE);
    const file = join(folder.path, 'half.json');
    const before = pathOf(2, 90);
    const proxy = await listenOnLoopback(createServer((request, response) => void pass(request, response)));
    let answerSecond: ((response: ServerResponse) => void) | null = refuse;
    /** To the gateway, but for the second page as long as that is answered here. */
    async function pass({ url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
      if (answerSecond !== null && url.includes('page=2')) {
        answerSecond(response);
        return;
      }
      const answer = await fetch(world.gateway.publicUrl + url, {
        headers: { authorization: headers.authorization ?? '' },
      });
      response.writeHead(answer.status, { 'content-type': 'application/json' }).end(await answer.text());
    }
    const args = ['--workspace', WORKSPACE_A, '--state', file];
    try {
      const first = await run(proxy.url, ...args);
      expect([linesOf(first.stdout), first.stderr]).toEqual([100, `${before}: 403 {"error":"no longer"}\n`]);
      expect(linesOf((await run(proxy.url, ...args)).stdout)).toBe(0);
      // An answer that breaks off, and one that asks for a second try.
      const answers = [
        (response: ServerResponse) => {
          response.writeHead(200, { 'content-length': '9000' }).write('{"calls":', () => response.destroy());
        },
        (response: ServerResponse) => {
          response.writeHead(503, { 'retry-after': '0' }).end();
        },
      ];
      answerSecond = (response) => {
        answers.shift()?.(response);
        if (answers.length === 0) answerSecond = null;
      };
      const third = await run(proxy.url, ...args);
      expect([linesOf(third.stdout), third.stderr.split('\n')]).toEqual([
        30,
        [
          expect.stringMatching(/^waiting 2 s: \/v2\/calls\?\S+: \S/),
          `waiting 0 s: ${before}: 503 (Retry-After)`,
          'all: 130 calls in 5 requests',
          '',
        ],
      ]);
    } finally {
      await proxy.close();
    }
  });
});

function linesOf(stdout: string): number {
  return stdout.split('\n').length - 1;
}
