/** `evalgate sync` against a gateway whose store changes: its folder holds what the store has, whenever it was ended. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { startProxy } from '../support/answering-proxy.ts';
import { runCli } from '../support/cli.ts';
import { type Folder, openFolder } from '../support/files.ts';
import { startTestGateway, type TestGateway } from '../support/gateway.ts';
import { forTest } from '../support/opened.ts';
import { PROGRAM } from '../support/process.ts';
import { SeededRandom } from '../support/random.ts';
import { anEvaluation, aScoredCard, aTranscript, WORKSPACE_A } from '../support/records.ts';

const PLENTY = 1_000_000;
const DAY_MS = 86_400_000;
const recordSchema = z.object({ overallScore: z.number() });
const lineSchema = z.looseObject({ id: z.string(), deleted: z.boolean().optional() });

let gateway: TestGateway;
let key: string;
let folder: Folder;

beforeEach(async () => {
  gateway = await forTest(startTestGateway());
  key = await gateway.issueKey({ scopes: ['calls.read'], perMinute: PLENTY, perHour: PLENTY });
  folder = await forTest(openFolder());
});

function put(id: string, createdAtMs: number, overallScore = 50): void {
  const part = { evaluationId: id, workspaceId: WORKSPACE_A };
  gateway.store.put({
    evaluations: [anEvaluation({ _id: id, workspaceId: WORKSPACE_A, createdAtMs, overallScore })],
    transcripts: [aTranscript(part)],
    scoredCards: [aScoredCard(part)],
  });
}

function putMany(count: number): void {
  for (let number = 0; number < count; number += 1) put(`ev_${number}`, 1_700_000_000_000 + number * 1000);
}

const argsOf = (...more: string[]): string[] => ['sync', folder.path, '--url', gateway.publicUrl, ...more];
const sync = (...more: string[]) => runCli(argsOf('--once', '--json', ...more), { env: { EVALGATE_API_KEY: key } });

/** The last line of each id in the file. Ids that are deleted are left out. */
function contentOf(name: string): Map<string, Record<string, unknown>> {
  const lines = readFileSync(join(folder.path, name), 'utf8').trimEnd().split('\n').filter(Boolean);
  const last = new Map(
    lines.map((line) => [lineSchema.parse(JSON.parse(line)).id, lineSchema.parse(JSON.parse(line))]),
  );
  return new Map([...last].filter(([, line]) => line.deleted !== true));
}

/** The score of each call, by id. */
const scoresInCopy = (): ReadonlyMap<string, unknown> =>
  new Map([...contentOf('calls.jsonl')].map(([id, { score }]) => [id, score]));

/** The same in the store. */
const scoresInStore = (): ReadonlyMap<string, unknown> =>
  new Map([...gateway.store.evaluations].map(([id, record]) => [id, recordSchema.parse(record).overallScore]));

test('copies all calls with their parts as the API has them, once', async () => {
  putMany(230);
  const { status, stdout } = await sync('--parts', 'transcript,scorecard');
  expect([status, JSON.parse(stdout)]).toEqual([0, { written: 230, deleted: 0, parts: 460, unreadable: 0 }]);
  expect(scoresInCopy()).toEqual(scoresInStore());
  const { json } = await gateway.get('/v2/calls/ev_7', { key });
  expect({ call: contentOf('calls.jsonl').get('ev_7') }).toEqual(json);
  const scorecard = await gateway.get('/v2/calls/ev_7/scorecard', { key });
  expect(contentOf('scorecards.jsonl').get('ev_7')).toEqual({ id: 'ev_7', ...z.looseObject({}).parse(scorecard.json) });
  const transcript = await gateway.get('/v2/calls/ev_7/transcript', { key });
  expect(contentOf('transcripts.jsonl').get('ev_7')).toMatchObject({
    transcript: z.object({ transcript: z.looseObject({}) }).parse(transcript.json).transcript,
  });
  expect(JSON.parse((await sync('--parts', 'transcript,scorecard')).stdout)).toMatchObject({ written: 0, parts: 0 });
});

test('finds what was added, changed and deleted, and reads the parts of those alone', async () => {
  putMany(120);
  await sync('--parts', 'scorecard');
  put('ev_new', 1_699_000_000_000);
  put('ev_3', 1_700_000_003_000, 99);
  for (const id of ['ev_0', 'ev_77', 'ev_119']) gateway.store.evaluations.delete(id);
  gateway.clock.advance(2 * DAY_MS);
  const { stdout } = await sync('--parts', 'scorecard');
  expect(JSON.parse(stdout)).toEqual({ written: 2, deleted: 3, parts: 2, unreadable: 0 });
  expect(scoresInCopy()).toEqual(scoresInStore());
  expect(contentOf('scorecards.jsonl').has('ev_77')).toBe(false);
});

test('a part that is not ready is asked for again, and a damaged record keeps its copy', async () => {
  putMany(3);
  gateway.store.transcripts.delete('ev_1');
  await sync('--parts', 'transcript');
  expect([...contentOf('transcripts.jsonl').keys()]).toEqual(['ev_2', 'ev_0']);
  gateway.store.put({ transcripts: [aTranscript({ evaluationId: 'ev_1', workspaceId: WORKSPACE_A })] });
  gateway.store.evaluations.set('ev_2', { _id: 'ev_2', workspaceId: WORKSPACE_A });
  gateway.clock.advance(2 * DAY_MS);
  const { stdout, status } = await sync('--parts', 'transcript');
  expect([status, JSON.parse(stdout)]).toMatchObject([0, { parts: 1, deleted: 0, unreadable: 1 }]);
  expect(contentOf('transcripts.jsonl').has('ev_1')).toBe(true);
  expect(contentOf('calls.jsonl').has('ev_2')).toBe(true);
});

test('killed by SIGKILL at random moments, it goes on where it was', async () => {
  putMany(120);
  const random = new SeededRandom(7);
  let rounds = 0;
  for (let isDone = false; !isDone; rounds += 1) {
    const child = spawn(process.execPath, [PROGRAM, ...argsOf('--once', '--parts', 'transcript,scorecard')], {
      env: { ...process.env, EVALGATE_API_KEY: key },
      stdio: 'ignore',
    });
    // After so many more requests than before.
    const until = gateway.store.requests.length + random.integer(1, 60);
    const ended = once(child, 'exit').then(() => true);
    isDone = await Promise.race([ended, gateway.store.waitForCalls(until).then(() => false)]);
    child.kill('SIGKILL');
    await ended;
  }
  expect(rounds).toBeGreaterThan(3);
  expect((await sync('--parts', 'transcript,scorecard')).status).toBe(0);
  expect(scoresInCopy()).toEqual(scoresInStore());
  expect(contentOf('transcripts.jsonl').size).toBe(120);
  expect(contentOf('scorecards.jsonl').size).toBe(120);
}, 60_000);

test('a line that was cut off is read again', async () => {
  putMany(5);
  await sync();
  const path = join(folder.path, 'calls.jsonl');
  appendFileSync(path, '{"id":"ev_4","sco');
  expect((await sync()).status).toBe(0);
  expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(6);
});

test('a second run on the folder is refused while the first one works, and not once it was killed', async () => {
  putMany(3);
  const env = { ...process.env, EVALGATE_API_KEY: key };
  const first = spawn(process.execPath, [PROGRAM, ...argsOf()], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  await once(first.stderr, 'data');
  const ended = once(first, 'exit');
  const { status, stderr } = await sync();
  expect(status).toBe(1);
  expect(stderr).toContain(`Process ${first.pid} works on ${folder.path}, and only one at a time can.`);
  first.kill('SIGKILL');
  await ended;
  expect((await sync()).status).toBe(0);
  expect(readdirSync(folder.path).filter((name) => name.startsWith('running-'))).toEqual([]);
});

test('a folder that cannot be one is named, and why', async () => {
  const file = join(folder.path, 'file');
  appendFileSync(file, '');
  const { status, stderr } = await runCli(['sync', file, '--url', gateway.publicUrl, '--once'], {
    env: { EVALGATE_API_KEY: key },
  });
  expect([status, stderr]).toEqual([
    1,
    `${file}: EEXIST: file already exists, mkdir '${file}'. Give a folder that this user may write to, and that has room.\n`,
  ]);
});

test('whatever a text holds, the copy can be opened again', async () => {
  const body = `Ada: one${['\u2028', '\u2029', '\u0085', '\v', '\f'].join(' and ')} end.`;
  const part = { evaluationId: 'ev_1', workspaceId: WORKSPACE_A };
  gateway.store.put({
    evaluations: [anEvaluation({ _id: 'ev_1', workspaceId: WORKSPACE_A, title: body })],
    transcripts: [aTranscript({ ...part, body })],
  });
  expect((await sync('--parts', 'transcript')).status).toBe(0);
  const { status, stdout } = await sync('--parts', 'transcript');
  expect([status, JSON.parse(stdout)]).toEqual([0, { written: 0, deleted: 0, parts: 0, unreadable: 0 }]);
  expect(contentOf('calls.jsonl').get('ev_1')).toMatchObject({ name: body });
});

test('it waits as long as the limit of the key says', async () => {
  putMany(3);
  key = await gateway.issueKey({ scopes: ['calls.read'], perMinute: 2, perHour: PLENTY });
  await gateway.get('/v2/calls', { key });
  gateway.clock.advance(59_000);
  const running = sync();
  await vi.waitUntil(() => gateway.logLines.some((line) => line.includes('"status":429')));
  gateway.clock.advance(1001);
  expect((await running).status).toBe(0);
  expect(scoresInCopy()).toEqual(scoresInStore());
});

const argsBehind = (url: string): string[] => ['sync', folder.path, '--url', url, '--once', '--json'];

test('it waits for the limit of a key that others use, however often they are quicker', async () => {
  putMany(3);
  const headers = { 'X-Error-Code': 'rate_limited', 'Retry-After': '0' };
  const proxy = await forTest(
    startProxy(gateway.publicUrl, { status: 429, headers, body: '{"error":{"message":"Used up."}}' }),
  );
  proxy.answerAt('/v2/calls?after=&pageSize=100', () => {}, 40);
  const { status } = await runCli(argsBehind(proxy.url), { env: { EVALGATE_API_KEY: key } });
  expect(status).toBe(0);
  expect(scoresInCopy()).toEqual(scoresInStore());
});

test.each([
  { status: 404, body: 'default backend - 404' },
  { status: 200, body: '<html>Back soon</html>' },
])("a proxy's own $status says nothing about a record", async ({ status, body }) => {
  putMany(3);
  const proxy = await forTest(startProxy(gateway.publicUrl, { status, body }));
  const syncBehind = () => runCli(argsBehind(proxy.url), { env: { EVALGATE_API_KEY: key } });
  expect((await syncBehind()).status).toBe(0);
  gateway.store.evaluations.delete('ev_0');
  gateway.clock.advance(2 * DAY_MS);
  // Asked again, the gateway has it.
  proxy.answerAt('/v2/calls/ev_0', () => put('ev_0', 1_700_000_000_000, 77));
  expect(JSON.parse((await syncBehind()).stdout)).toMatchObject({ written: 1, deleted: 0 });
  expect(scoresInCopy().get('ev_0')).toBe(77);
  proxy.answerAt('/v2/key');
  const { status: exit, stderr } = await syncBehind();
  expect([exit, stderr]).toEqual([1, expect.stringContaining('Is --url the address of an evalgate gateway?')]);
});

describe('it says what to do', () => {
  test.each([
    { args: [], env: {}, code: 2, message: 'Set EVALGATE_API_KEY' },
    { args: [], env: { EVALGATE_API_KEY: 'evg_x' }, code: 1, message: 'answered 401' },
    { args: ['--key-file', '/nowhere'], env: {}, code: 1, message: 'Give a file that holds the API key' },
    { args: ['--parts', 'rubric'], env: {}, code: 2, message: 'Allowed: transcript, scorecard' },
  ])('$args with $env: $message', async ({ args, env, code, message }) => {
    const { status, stderr } = await runCli(argsOf('--once', ...args), { env });
    expect(status).toBe(code);
    expect(stderr).toContain(message);
    expect(existsSync(join(folder.path, 'calls.jsonl'))).toBe(false);
  });

  test('when the key lacks the scope', async () => {
    key = await gateway.issueKey({ scopes: ['reports.read'] });
    const { status, stderr } = await sync();
    expect([status, stderr]).toEqual([1, expect.stringContaining('needs calls.read')]);
  });

  test('when nothing listens', async () => {
    const { status, stderr } = await runCli(['sync', folder.path, '--url', 'http://127.0.0.1:1', '--once'], {
      env: { EVALGATE_API_KEY: key },
    });
    expect([status, stderr]).toEqual([1, expect.stringContaining('http://127.0.0.1:1 cannot be reached')]);
  });

  test('when the folder is a copy of something else', async () => {
    folder.write('state.json', '{"version":1,"url":"http://elsewhere.example","cursor":null}');
    const { status, stderr } = await sync();
    expect([status, stderr]).toEqual([1, expect.stringContaining('is a copy of http://elsewhere.example')]);
  });
});
