/**
 * The example of docs/sync.md, run against a gateway while calls arrive, are completed late, change and go away, and while
 * other consumers keep copies of some pages fresher than of others.
 */
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { toCall } from '../../src/domain/call.ts';
import type { EvaluationRecord } from '../../src/domain/records.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { listenOnLoopback } from '../support/loopback.ts';
import { SeededRandom } from '../support/random.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';

const EXAMPLE = join(import.meta.dirname, '../../docs/examples/sync-calls.js');
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
/** How old a copy of a list may be while the store answers: fresh and stale, with a second for rounding. */
const OLDEST_COPY_MS = 5 * MINUTE + 31 * SECOND;

const callSchema = z.looseObject({ id: z.string() });
const changeSchema = z.object({ change: z.enum(['new', 'changed', 'gone']), call: callSchema });
const stateSchema = z.object({ calls: z.record(z.string(), z.object({ call: callSchema })) });
const resultSchema = z.object({ isWhole: z.boolean(), requests: z.number() });
const failedSchema = z.object({ stdout: z.string(), stderr: z.string() });
type Change = z.output<typeof changeSchema>;
type Result = z.output<typeof resultSchema>;

const exampleSchema = z.object({
  newState: z.custom<() => object>((value) => typeof value === 'function'),
  syncCalls: z.custom<(options: object) => Promise<unknown>>((value) => typeof value === 'function'),
  pageAt: z.custom<(place: number) => { number: number; size: number }>((value) => typeof value === 'function'),
});

/** A store that somebody works with, and a consumer that keeps a copy of it. */
class World {
  readonly gateway: TestGateway;
  readonly changes: Change[] = [];
  /** Waits of the example, in milliseconds. */
  readonly waits: number[] = [];
  key = '';
  state: object;
  beforeRequest: (path: string) => void | Promise<void> = () => {};
  onWait: () => void = () => {};
  readonly #example: z.output<typeof exampleSchema>;
  readonly #listedSinceMs = new Map<string, number>();
  #made = 0;

  constructor(gateway: TestGateway, example: z.output<typeof exampleSchema>) {
    this.gateway = gateway;
    this.#example = example;
    this.state = example.newState();
  }

  get nowMs(): number {
    return this.gateway.clock.nowMs();
  }

  get records(): EvaluationRecord[] {
    return [...this.#listedSinceMs.keys()].map((id) => this.record(id));
  }

  record(id: string): EvaluationRecord {
    const record = this.gateway.store.evaluations.get(id);
    if (record === undefined) throw new Error(`There is no ${id}`);
    return z.custom<EvaluationRecord>().parse(record);
  }

  /** A completed evaluation of a call of that time. */
  add(createdAtMs: number): void {
    this.#made += 1;
    // Ids in no order: of calls of one millisecond the later id comes first in the list.
    const id = `ev_${((this.#made * 7919) % 10_007).toString(36)}`;
    this.gateway.store.put({ evaluations: [anEvaluation({ _id: id, workspaceId: WORKSPACE_A, createdAtMs })] });
    this.#listedSinceMs.set(id, this.nowMs);
  }

  addMany(count: number, fromMs: number, everyMs: number): void {
    for (let i = 0; i < count; i += 1) this.add(fromMs - i * everyMs);
  }

  remove(id: string): void {
    this.gateway.store.evaluations.delete(id);
    this.#listedSinceMs.delete(id);
  }

  score(id: string, overallScore: number): void {
    this.gateway.store.evaluations.set(id, { ...this.record(id), overallScore });
  }

  /** Those that were in the list all the time since then. */
  listedSince(timeMs: number): string[] {
    return [...this.#listedSinceMs].filter(([, sinceMs]) => sinceMs <= timeMs).map(([id]) => id);
  }

  async sync(isFull = false): Promise<Result> {
    const done = await this.#example.syncCalls({
      url: this.gateway.publicUrl,
      key: this.key,
      workspaceId: WORKSPACE_A,
      state: this.state,
      isFull,
      emit: (change: unknown) => this.changes.push(changeSchema.parse(change)),
      now: () => this.nowMs,
      sleep: async (ms: number) => {
        this.waits.push(ms);
        this.gateway.clock.advance(ms);
        this.onWait();
        await this.renewed();
      },
    });
    return resultSchema.parse(done);
  }

  copy(): Record<string, unknown> {
    const { calls } = stateSchema.parse(JSON.parse(JSON.stringify(this.state)));
    return Object.fromEntries(Object.entries(calls).map(([id, { call }]) => [id, call]));
  }

  original(): Record<string, unknown> {
    return Object.fromEntries(this.records.map((record) => [record._id, toCall(record)]));
  }

  idsOf(change: Change['change']): string[] {
    return this.changes.filter((one) => one.change === change).map(({ call }) => call.id);
  }

  /** Resolves once what is renewed behind answers has come to its end. */
  async renewed(): Promise<void> {
    const isAtRest = async (): Promise<boolean> => {
      const { text } = await this.gateway.admin('GET', '/metrics');
      return /^evalgate_store_calls_in_flight 0$/m.test(text);
    };
    while (!(await isAtRest())) await new Promise((resolve) => setTimeout(resolve, 1));
  }

  /** Another consumer reads, and the refresh behind its answer comes to its end. */
  async readByOther(path: string): Promise<string[]> {
    const { json } = await this.gateway.get(path, { key: this.key });
    await this.renewed();
    return z
      .object({ calls: z.array(callSchema) })
      .parse(json)
      .calls.map(({ id }) => id);
  }
}

let example: z.output<typeof exampleSchema>;
let world: World;

beforeAll(async () => {
  const module: unknown = await import(EXAMPLE);
  example = exampleSchema.parse(module);
});
beforeEach(async () => {
  world = new World(await startTestGateway(), example);
  world.key = await world.gateway.issueKey({ scopes: ['calls.read'], perMinute: 100_000, perHour: 100_000 });
  const { fetch } = globalThis;
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    await world.beforeRequest(url.slice(world.gateway.publicUrl.length));
    return await fetch(url, init);
  });
});
afterEach(async () => {
  vi.unstubAllGlobals();
  await world.gateway.close();
});

function pathOf(page: number, size: number): string {
  return `/v2/calls?workspaceId=${WORKSPACE_A}&page=${page}&pageSize=${size}`;
}

/** Page 1 is read often, so its copy is new; the copies of the others are five minutes old, and still served. */
async function prepare(pages: readonly (readonly [number, number])[]): Promise<void> {
  world.addMany(230, world.nowMs - MINUTE, MINUTE);
  for (const [page, size] of pages) await world.readByOther(pathOf(page, size));
  world.gateway.clock.advance(4 * MINUTE);
  for (let i = 0; i < 12; i += 1) world.add(world.nowMs - i);
  await world.readByOther(pathOf(1, 100));
  world.gateway.clock.advance(SECOND);
}

describe('pages of which one is a fresher copy than the next', () => {
  test('reading them one after another misses calls: what the page of the documentation warns of', async () => {
    await prepare([
      [1, 100],
      [2, 100],
      [3, 100],
    ]);
    const read = new Set<string>();
    for (const page of [1, 2, 3]) for (const id of await world.readByOther(pathOf(page, 100))) read.add(id);
    const missed = world.listedSince(world.nowMs - 4 * MINUTE).filter((id) => !read.has(id));
    expect(missed).toHaveLength(12);
  });

  test('the example misses none and repeats none', async () => {
    await prepare([
      [1, 100],
      [2, 90],
      [3, 85],
    ]);
    await world.sync();
    expect(world.waits).toEqual([1000]);
    expect(world.idsOf('new').toSorted()).toEqual(Object.keys(world.original()).toSorted());
    expect(world.copy()).toEqual(world.original());
  });
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
    for (let run = 0; run < 6; run += 1) {
      const listed = world.listedSince(world.nowMs - OLDEST_COPY_MS);
      kinds.push((await world.sync(run === 4)).isWhole);
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

function callsNamed(prefix: string, count: number): object[] {
  return Array.from({ length: count }, (_, i) => ({ id: `${prefix}${i}`, created_at: '2026-01-01T00:00:00.000Z' }));
}

describe('what comes to a consumer', () => {
  test('a call that was evaluated late is found behind those that are known already', async () => {
    world.addMany(300, world.nowMs - MINUTE, 4 * MINUTE);
    await world.sync();
    world.gateway.clock.advance(10 * MINUTE);
    world.add(world.nowMs - 15 * HOUR);
    world.changes.length = 0;
    const { isWhole } = await world.sync();
    expect([isWhole, world.changes.map(({ change }) => change)]).toEqual([false, ['new']]);
    expect(world.copy()).toEqual(world.original());
  });

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

  test('a record that is left out of a page does not end the list', async () => {
    world.addMany(150, world.nowMs - MINUTE, MINUTE);
    const broken = {
      ...anEvaluation({ _id: 'ev_broken', workspaceId: WORKSPACE_A, createdAtMs: world.nowMs }),
      title: 5,
    };
    world.gateway.store.evaluations.set('ev_broken', broken);
    await world.sync();
    expect(world.copy()).toEqual(world.original());
  });

  test('where so much has come that nothing is joined any more, it begins anew at the front', async () => {
    const before = callsNamed('old', 150);
    const after = [...callsNamed('new', 300), ...before];
    // Two gateways answer in turn as it happens, and one of them has old copies.
    const snapshots = [before, after, after, after, after, before];
    vi.stubGlobal('fetch', async (url: string) => {
      const { pathname, searchParams } = new URL(url);
      const own = { key: { id: 'k', scopes: ['calls.read'], workspace_ids: [WORKSPACE_A] } };
      if (pathname === '/v2/key') return Response.json(own);
      const list = snapshots.shift() ?? after;
      const [page, size] = [Number(searchParams.get('page')), Number(searchParams.get('pageSize'))];
      const body = { calls: list.slice((page - 1) * size, page * size), pagination: { total_count: list.length } };
      return Response.json(body, { headers: { age: '0', 'cache-control': 'private, max-age=0' } });
    });
    await world.sync();
    expect(snapshots).toEqual([]);
    expect(Object.keys(world.copy())).toHaveLength(after.length);
  });

  test('what has not changed is not sent again', async () => {
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

  test('a call whose record can no longer be published is kept, and does not keep the others back', async () => {
    world.addMany(120, world.nowMs - MINUTE, MINUTE);
    await world.sync();
    const [{ _id: id } = anEvaluation()] = world.records;
    world.gateway.store.evaluations.set(id, { ...world.record(id), title: 5 });
    world.changes.length = 0;
    // Longer than any copy of it is served.
    world.gateway.clock.advance(26 * HOUR);
    world.add(world.nowMs);
    await world.sync(true);
    expect(world.changes).toMatchObject([{ change: 'new' }]);
    expect(Object.keys(world.copy())).toHaveLength(121);
    expect(world.copy()[id]).toMatchObject({ id });
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

test('each page has ten calls in common with what came before it, and reaches on from wherever that ended', () => {
  const stuck: number[] = [];
  for (let end = 10; end <= 10_000; end += 1) {
    const { number, size } = example.pageAt(end - 10);
    if ((number - 1) * size > end - 10 || number * size <= end || size > 100) stuck.push(end);
  }
  expect(stuck).toEqual([]);
  let pages = 0;
  for (let end = 0; end < 10_000; pages += 1) {
    const { number, size } = example.pageAt(Math.max(0, end - 10));
    end = number * size;
  }
  expect(pages).toBe(125);
});

/** Answers as the gateway would, but for one page: that one is answered by what the test hands in. */
function answering(total: number, second: RequestListener) {
  const calls = callsNamed('c', total);
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(request.url ?? '');
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://gateway.invalid');
    const [page, size] = [Number(searchParams.get('page')), Number(searchParams.get('pageSize'))];
    if (page > 1) {
      second(request, response);
      return;
    }
    const own = { key: { id: 'k', scopes: ['calls.read'], workspace_ids: [WORKSPACE_A] } };
    const list = { calls: calls.slice(0, size), pagination: { total_count: total } };
    const body = pathname === '/v2/key' ? own : pathname === '/v2/calls' ? list : null;
    response.writeHead(body === null ? 404 : 200, { 'content-type': 'application/json', etag: '"e"' });
    response.end(JSON.stringify(body ?? { error: { message: 'There is no such address in this API.' } }));
  });
  const lastPage: RequestListener = (_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ calls: calls.slice(90), pagination: { total_count: total } }));
  };
  return { server, asked, lastPage };
}

function refuse(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(403).end('{"error":"no longer"}');
}

function linesOf(stdout: string): number {
  return stdout.split('\n').length - 1;
}

describe('as a program', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'evalgate-sync-'));
  });
  afterAll(() => rm(folder, { recursive: true }));

  test('it prints a line a change, keeps its state in a file, and says what is wrong', async () => {
    world.addMany(130, world.nowMs - MINUTE, MINUTE);
    const file = join(folder, 'calls.json');
    const env = { ...process.env, EVALGATE_URL: world.gateway.publicUrl, EVALGATE_KEY: world.key };
    const run = (...args: string[]) => promisify(execFile)(process.execPath, [EXAMPLE, ...args], { env });
    const first = await run('--workspace', WORKSPACE_A, '--state', file);
    const told = first.stdout
      .trimEnd()
      .split('\n')
      .map((line) => changeSchema.parse(JSON.parse(line)));
    expect(told.map(({ change }) => change)).toEqual(Array.from({ length: 130 }, () => 'new'));
    expect(told.map(({ call }) => call.id)).toEqual(world.records.map(({ _id }) => _id));
    expect(first.stderr).toBe('all: 130 calls in 3 requests\n');
    expect(Object.keys(stateSchema.parse(JSON.parse(await readFile(file, 'utf8'))).calls)).toHaveLength(130);
    const second = await run('--workspace', WORKSPACE_A, '--state', file, '--full');
    expect([second.stdout, second.stderr]).toEqual(['', 'all: 130 calls in 3 requests\n']);
    await expect(run('--state', file)).rejects.toMatchObject({
      code: 1,
      stderr: 'usage: EVALGATE_KEY=... node sync-calls.js --workspace UUID --state FILE [--full]\n',
    });
  });

  /** Against a server that answers the second page so; its address may be followed by something. */
  async function runAgainst(second: RequestListener, file: string, { suffix = '' } = {}) {
    const { server, asked, lastPage } = answering(130, (request, response) => {
      if (asked.filter((path) => path.includes('page=2')).length === 1) second(request, response);
      else lastPage(request, response);
    });
    const running = await listenOnLoopback(server);
    try {
      const env = { ...process.env, EVALGATE_URL: `${running.url}${suffix}`, EVALGATE_KEY: 'evg_x' };
      const args = [EXAMPLE, '--workspace', WORKSPACE_A, '--state', join(folder, file)];
      return await promisify(execFile)(process.execPath, args, { env }).catch((error: unknown) =>
        failedSchema.parse(error),
      );
    } finally {
      await running.close();
    }
  }

  test('a run that fails half-way has told of what it read: the next one does not tell of it again', async () => {
    const first = await runAgainst(refuse, 'half.json');
    expect([linesOf(first.stdout), first.stderr]).toEqual([
      100,
      `/v2/calls?workspaceId=${WORKSPACE_A}&page=2&pageSize=90: 403 {"error":"no longer"}\n`,
    ]);
    const second = await runAgainst(refuse, 'half.json');
    expect(linesOf(second.stdout)).toBe(0);
    const third = await runAgainst(
      (_request, response) => void response.writeHead(503, { 'retry-after': '0' }).end(),
      'half.json',
    );
    expect([linesOf(third.stdout), third.stderr]).toEqual([30, 'all: 130 calls in 4 requests\n']);
  });

  test('an answer that breaks off is asked for again', async () => {
    const { stdout, stderr } = await runAgainst((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '9000' });
      response.write('{"calls":', () => response.destroy());
    }, 'broken.json');
    expect([linesOf(stdout), stderr]).toEqual([130, 'all: 130 calls in 4 requests\n']);
  });

  test('a time to try again that is given as a date is waited for as well', async () => {
    const sentMs = Date.now();
    const date = new Date(sentMs + 2000).toUTCString();
    const { stdout } = await runAgainst(
      (_request, response) => void response.writeHead(429, { 'retry-after': date }).end(),
      'date.json',
    );
    expect(linesOf(stdout)).toBe(130);
    expect(Date.now()).toBeGreaterThanOrEqual(Date.parse(date));
  });

  test('an address may end with a slash, and one that is not evalgate’s is told as such', async () => {
    expect((await runAgainst(refuse, 'slash.json', { suffix: '/' })).stderr).toContain('page=2&pageSize=90: 403');
    expect(await runAgainst(refuse, 'wrong.json', { suffix: '/elsewhere' })).toMatchObject({
      stdout: '',
      stderr: '/v2/key was answered with 404: is this the address of evalgate?\n',
    });
  });
});
