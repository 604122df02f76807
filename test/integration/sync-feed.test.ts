/** `evalgate sync` by the feed of changes: what it reads is what has changed, and its folder holds what the store has. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { hashToken } from '../../src/keys/token.ts';
import { startProxy } from '../support/answering-proxy.ts';
import { runCli } from '../support/cli.ts';
import { type Folder, openFolder } from '../support/files.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { forTest } from '../support/opened.ts';
import { PROGRAM } from '../support/process.ts';
import { SeededRandom } from '../support/random.ts';
import { anEvaluation, aScoredCard, aTranscript, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { startRedis } from '../support/redis.ts';
import { WITHIN } from '../support/world.ts';

const PLENTY = 1_000_000;
const ANNOUNCED = { CHANGES_ANNOUNCED: 'true' };
const recordSchema = z.object({ overallScore: z.number() });
const transcriptSchema = z.object({ body: z.string() });
const lineSchema = z.looseObject({ id: z.string(), deleted: z.boolean().optional() });
const textSchema = z.object({ transcript: z.object({ text: z.string() }) });

let gateway: TestGateway;
let key: string;
let folder: Folder;

async function start(env: Readonly<Record<string, string>> = {}): Promise<void> {
  gateway = await forTest(startTestGateway({ env: { ...ANNOUNCED, ...env } }));
  key = await gateway.issueKey({ scopes: ['calls.read'], perMinute: PLENTY, perHour: PLENTY });
  folder = await forTest(openFolder());
  parts = ['--parts', 'transcript'];
}
beforeEach(() => start());

const CHANGED_AT = 1_700_000_000_000;

function put(id: string, overallScore = 50): void {
  const part = { evaluationId: id, workspaceId: WORKSPACE_A };
  const createdAtMs = CHANGED_AT + Number(id.slice(3)) * 1000;
  gateway.store.put({
    evaluations: [anEvaluation({ _id: id, workspaceId: WORKSPACE_A, createdAtMs, overallScore })],
    transcripts: [aTranscript({ ...part, body: `Ada: It was ${overallScore}.` })],
    scoredCards: [aScoredCard(part)],
  });
}

function putMany(count: number): void {
  for (let number = 0; number < count; number += 1) put(`ev_${number}`);
}

async function announce(...changes: readonly object[]): Promise<void> {
  const reply = await gateway.admin('POST', '/api/changes', {
    changes: changes.map((change) => ({ workspace: WORKSPACE_A, ...change })),
  });
  expect(reply.status).toBe(200);
}

let parts = ['--parts', 'transcript'];
const argsOf = (): string[] => ['sync', folder.path, '--url', gateway.publicUrl, '--once', ...parts];
const sync = async () => {
  const before = { list: gateway.store.calls('list'), all: gateway.store.calls() };
  const { status, stdout, stderr } = await runCli([...argsOf(), '--json'], { env: { EVALGATE_API_KEY: key } });
  expect([status, stderr.includes('Error')]).toEqual([0, false]);
  return {
    ...z.looseObject({}).parse(JSON.parse(stdout)),
    lists: gateway.store.calls('list') - before.list,
    calls: gateway.store.calls() - before.all,
  };
};

function contentOf(name: string): Map<string, Record<string, unknown>> {
  const lines = readFileSync(join(folder.path, name), 'utf8').trimEnd().split('\n').filter(Boolean);
  const last = new Map(lines.map((line) => lineSchema.parse(JSON.parse(line))).map((line) => [line.id, line]));
  return new Map([...last].filter(([, line]) => line.deleted !== true));
}

/** The copy, and what the store has, in the same form. */
const copied = () => ({
  scores: new Map([...contentOf('calls.jsonl')].map(([id, { score }]) => [id, score])),
  transcripts: new Map(
    [...contentOf('transcripts.jsonl')].map(([id, line]) => [id, textSchema.parse(line).transcript.text]),
  ),
});
const stored = () => ({
  scores: new Map([...gateway.store.evaluations].map(([id, record]) => [id, recordSchema.parse(record).overallScore])),
  transcripts: new Map([...gateway.store.transcripts].map(([id, record]) => [id, transcriptSchema.parse(record).body])),
});

function remove(id: string): void {
  for (const table of [gateway.store.evaluations, gateway.store.transcripts, gateway.store.scoredCards])
    table.delete(id);
}

test('reads what was announced, and no list', async () => {
  putMany(120);
  await sync();
  expect(await sync()).toMatchObject({ written: 0, deleted: 0, parts: 0, calls: 0 });
  put('ev_3', 99);
  await announce({ evaluation: 'ev_3' });
  put('ev_500');
  await announce({ evaluation: 'ev_500', created: true });
  remove('ev_7');
  await announce({ evaluation: 'ev_7', deleted: true });
  put('ev_4', 12);
  await announce({ evaluation: 'ev_4', kinds: ['evaluation'] }, { evaluation: 'ev_4', kinds: ['transcript'] });
  // A call and a transcript of each that is there, and one question for the one that is gone.
  expect(await sync()).toMatchObject({ written: 3, deleted: 1, parts: 3, lists: 0, calls: 7 });
  expect(copied()).toEqual(stored());
});

test('reads all once if its place has expired, and goes on by the feed', async () => {
  putMany(30);
  await sync();
  put('ev_1', 99);
  await announce({ evaluation: 'ev_1' });
  gateway.clock.advance(7 * 86_400_000 + 1);
  put('ev_2', 98);
  await announce({ evaluation: 'ev_2' });
  expect(await sync()).toMatchObject({ written: 2, lists: 1 });
  expect(copied()).toEqual(stored());
  expect(await sync()).toMatchObject({ written: 0, calls: 0 });
});

/** A change of the transcript that shows nowhere else. */
const putTranscript = (id: string, body: string): void =>
  gateway.store.put({ transcripts: [aTranscript({ evaluationId: id, workspaceId: WORKSPACE_A, body })] });

test('reads all parts anew if its place has expired: one may have changed while its call did not', async () => {
  putMany(3);
  await sync();
  putTranscript('ev_1', 'Ada: Other words.');
  await announce({ evaluation: 'ev_1', kinds: ['transcript'] });
  gateway.clock.advance(7 * 86_400_000 + 1);
  await announce({ evaluation: 'ev_2', kinds: ['evaluation'] });
  expect(await sync()).toMatchObject({ written: 0, parts: 3 });
  expect(copied()).toEqual(stored());
});

test('ended in its first walk, it also reads what has changed before it goes on', async () => {
  putMany(40);
  const child = spawn(process.execPath, [PROGRAM, ...argsOf()], {
    env: { ...process.env, EVALGATE_API_KEY: key },
    stdio: 'ignore',
  });
  const ended = once(child, 'exit');
  await gateway.store.waitForCalls(20);
  child.kill('SIGKILL');
  await ended;
  const before = contentOf('transcripts.jsonl');
  expect(before.size).toBeGreaterThan(5);
  for (const id of before.keys()) {
    putTranscript(id, 'Ada: Other words.');
    await announce({ evaluation: id, kinds: ['transcript'] });
  }
  await sync();
  expect(copied()).toEqual(stored());
});

test('an old copy, which the store could not renew, is asked for again', async () => {
  putMany(3);
  await sync();
  put('ev_1', 99);
  const mend = gateway.store.fail(500);
  await announce({ evaluation: 'ev_1' });
  expect(await sync()).toMatchObject({ written: 0, unreadable: 2 });
  mend();
  gateway.clock.advance(60_000);
  expect(await sync()).toMatchObject({ written: 1, parts: 1, unreadable: 0 });
  expect(copied()).toEqual(stored());
  expect(await sync()).toMatchObject({ calls: 0 });
});

test('a list that the store could not renew is asked for until it can', async () => {
  putMany(3);
  await gateway.get('/v2/calls?after=&pageSize=100', { key });
  gateway.clock.advance(5000);
  put('ev_1', 99);
  await announce({ evaluation: 'ev_1' });
  gateway.clock.advance(5000);
  const mend = gateway.store.fail(500);
  const running = sync();
  await vi.waitUntil(() => gateway.logLines.some((line) => line.includes('"cache":"changed"')), WITHIN);
  mend();
  gateway.clock.advance(2000);
  await running;
  expect(copied()).toEqual(stored());
});

test('a record that is damaged is asked for again, also one that is not in the copy yet', async () => {
  putMany(3);
  await sync();
  for (const id of ['ev_1', 'ev_50']) {
    gateway.store.evaluations.set(id, { _id: id, workspaceId: WORKSPACE_A });
    await announce({ evaluation: id, kinds: ['evaluation'] });
  }
  expect(await sync()).toMatchObject({ unreadable: 2 });
  gateway.clock.advance(60_000);
  put('ev_1', 77);
  remove('ev_50');
  expect(await sync()).toMatchObject({ written: 1, unreadable: 0 });
  expect(copied().scores).toEqual(stored().scores);
});

test('a new call that was damaged is read with its parts once it can be', async () => {
  putMany(3);
  await sync();
  gateway.store.evaluations.set('ev_50', { _id: 'ev_50', workspaceId: WORKSPACE_A });
  await announce({ evaluation: 'ev_50', created: true });
  expect(await sync()).toMatchObject({ unreadable: 1 });
  gateway.clock.advance(60_000);
  put('ev_50');
  expect(await sync()).toMatchObject({ written: 1, parts: 1, unreadable: 0 });
  expect(copied()).toEqual(stored());
});

/** Runs behind a proxy; the next run finds no feed at the place that it has reached. */
async function startBehindProxy() {
  const headers = { 'X-Error-Code': 'path_unknown' };
  const proxy = await forTest(startProxy(gateway.publicUrl, { status: 404, headers, body: '{}' }));
  const stateSchema = z.object({ cursor: z.string() });
  return {
    sync: async (): Promise<unknown> => {
      const args = ['sync', folder.path, '--url', proxy.url, '--once', '--json', ...parts];
      return JSON.parse((await runCli(args, { env: { EVALGATE_API_KEY: key } })).stdout);
    },
    hideFeed: (): void => {
      const { cursor } = stateSchema.parse(JSON.parse(readFileSync(join(folder.path, 'state.json'), 'utf8')));
      proxy.answerAt(`/v2/changes?limit=1000&after=${cursor}`);
    },
  };
}

test('goes on from its place if the feed is away for a while', async () => {
  putMany(5);
  const behind = await startBehindProxy();
  expect(await behind.sync()).toMatchObject({ written: 5, parts: 5 });
  putTranscript('ev_1', 'Ada: Other words.');
  await announce({ evaluation: 'ev_1', kinds: ['transcript'] });
  behind.hideFeed();
  expect(await behind.sync()).toMatchObject({ written: 0, parts: 0 });
  expect(await behind.sync()).toMatchObject({ written: 0, parts: 1 });
  expect(copied()).toEqual(stored());
});

test('takes no list of before a change that it has read by the feed', async () => {
  putMany(5);
  const behind = await startBehindProxy();
  await behind.sync();
  put('ev_1', 99);
  remove('ev_2');
  await announce({ evaluation: 'ev_1' }, { evaluation: 'ev_2', deleted: true });
  expect(await behind.sync()).toMatchObject({ written: 1, deleted: 1 });
  behind.hideFeed();
  // Lists follow within a second, and the clock stands still.
  expect(await behind.sync()).toMatchObject({ written: 0, deleted: 0 });
  expect(copied()).toEqual(stored());
});

test('reads the parts of a call whose moves were announced in another order than they were made', async () => {
  const workspaceIds = [WORKSPACE_A, WORKSPACE_B];
  key = await gateway.issueKey({ scopes: ['calls.read'], workspaceIds, perMinute: PLENTY, perHour: PLENTY });
  putMany(2);
  await sync();
  const part = { evaluationId: 'ev_1', workspaceId: WORKSPACE_B };
  gateway.store.put({
    evaluations: [anEvaluation({ _id: 'ev_1', workspaceId: WORKSPACE_B, overallScore: 99 })],
    transcripts: [aTranscript({ ...part, body: 'Ada: Other words.' })],
    scoredCards: [aScoredCard(part)],
  });
  const elsewhere = '33333333-3333-4333-8333-333333333333';
  await announce({ evaluation: 'ev_1', workspace: WORKSPACE_B, previousWorkspace: elsewhere });
  await sync();
  await announce({ evaluation: 'ev_1', workspace: elsewhere, previousWorkspace: WORKSPACE_A });
  await sync();
  expect(copied()).toEqual(stored());
});

test('parts that are wanted later are read', async () => {
  putMany(5);
  parts = [];
  await sync();
  parts = ['--parts', 'transcript'];
  expect(await sync()).toMatchObject({ written: 0, parts: 5, lists: 0 });
  expect(copied()).toEqual(stored());
});

test('parts that are not wanted for a while are not taken for what they were, and are deleted with their call', async () => {
  putMany(5);
  await sync();
  parts = [];
  putTranscript('ev_1', 'Ada: Other words.');
  remove('ev_2');
  await announce({ evaluation: 'ev_1', kinds: ['transcript'] }, { evaluation: 'ev_2', deleted: true });
  expect(await sync()).toMatchObject({ deleted: 1, parts: 0 });
  expect(contentOf('transcripts.jsonl').has('ev_2')).toBe(false);
  parts = ['--parts', 'transcript'];
  expect(await sync()).toMatchObject({ written: 0, parts: 1 });
  expect(copied()).toEqual(stored());
});

test('reads all once after Redis was emptied', async () => {
  const redis = await forTest(startRedis());
  await start({ REDIS_URL: redis.url });
  putMany(30);
  await sync();
  await redis.flush();
  const own = {
    keyId: 'again',
    hash: hashToken(key),
    name: 'again',
    workspaceIds: [WORKSPACE_A],
    scopes: ['calls.read'],
  };
  const limits = { perMinute: PLENTY, perHour: PLENTY };
  expect((await gateway.admin('POST', '/api/keys/import', { keys: [{ ...own, limits }] })).status).toBe(200);
  put('ev_1', 99);
  await announce({ evaluation: 'ev_1' });
  expect(await sync()).toMatchObject({ lists: 1 });
  expect(copied()).toEqual(stored());
  expect(await sync()).toMatchObject({ written: 0, calls: 0 });
});

test('killed by SIGKILL at random moments among changes, it loses none', async () => {
  putMany(60);
  await sync();
  const random = new SeededRandom(11);
  let score = 100;
  for (let round = 0; round < 20; round += 1) {
    for (let index = 0; index < 5; index += 1) {
      const id = `ev_${random.integer(0, 70)}`;
      if (random.integer(0, 4) === 0 && gateway.store.evaluations.has(id)) {
        remove(id);
        await announce({ evaluation: id, deleted: true });
      } else {
        const isNew = !gateway.store.evaluations.has(id);
        put(id, (score += 1));
        await announce({ evaluation: id, created: isNew });
      }
    }
    const child = spawn(process.execPath, [PROGRAM, ...argsOf()], {
      env: { ...process.env, EVALGATE_API_KEY: key },
      stdio: 'ignore',
    });
    const until = gateway.store.requests.length + random.integer(1, 8);
    const ended = once(child, 'exit');
    await Promise.race([ended, gateway.store.waitForCalls(until)]);
    child.kill('SIGKILL');
    await ended;
  }
  await sync();
  expect(copied()).toEqual(stored());
}, 120_000);
