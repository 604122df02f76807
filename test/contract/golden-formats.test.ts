/**
 * The cached answers that processes share in Redis, byte by byte: other processes, of this release and of the ones beside
 * it, read them. Random words and the store's name are replaced; a change of anything else is a change of the format, and
 * needs keys of another version.
 */
import { zstdDecompressSync } from 'node:zlib';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { forFile } from '../support/opened.ts';
import { startTestGateway } from '../support/gateway.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { anEvaluation, aTranscript, EVALUATION_ID, WORKSPACE_A, WORKSPACE_B } from '../support/records.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const WITHIN = { timeout: 10_000, interval: 5 };
const CALL = `/v2/calls/${EVALUATION_ID}`;
const KEY = `evalgate:{cache-<store>-v3%3a%7bevaluation%3a${EVALUATION_ID}%7d}`;
const CHANNEL = 'evalgate:channel:cache:<store>:0:flights';

const clock = new ManualClock();
const messages: string[] = [];

const redis = await forFile(startRedis());
const raw = await connectWhenUp(redis.url);
const subscriber = await connectWhenUp(redis.url);
await subscriber.psubscribe('evalgate:channel:cache:*:flights');
subscriber.on('pmessage', (_pattern: string, channel: string, message: string) => {
  messages.push(golden(`${channel} ${message}`));
});
const gateway = await forFile(startTestGateway({ env: { REDIS_URL: redis.url }, clock }));
const key = await gateway.issueKey();
afterAll(async () => {
  subscriber.disconnect();
  raw.disconnect();
});
beforeEach(async () => {
  const names = await raw.keys('evalgate:{cache-*');
  if (names.length > 0) await raw.del(...names);
  await gateway.admin('POST', '/api/cache/purge', { tags: ['all'] });
  messages.splice(0);
});

/** The store is named by a hash of its address; tokens, processes and histories are UUIDs. */
function golden(text: string): string {
  return text
    .replaceAll(/(cache[-:])[0-9a-f]{12}(?=[-:])/g, '$1<store>')
    .replaceAll(/(?!1{8}|2{8})[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>')
    .replaceAll(/"sequence":\d+/g, '"sequence":<number>')
    .replaceAll(/^key_[A-Za-z0-9]{12}$/g, '<key>')
    .replaceAll(/"etag":"[^}]*?",/g, '"etag":<etag>,')
    .replaceAll(/"message":"[^"]*"/g, '"message":<text>');
}

/** All keys of cached answers, with everything that they hold. */
async function held(): Promise<Record<string, unknown>> {
  const names = (await raw.keys('evalgate:{cache-*')).toSorted();
  const values = names.map(async (name) => {
    if ((await raw.type(name)) === 'string') return golden((await raw.get(name)) ?? '');
    const fields = await raw.hgetall(name);
    return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, golden(value)]));
  });
  return Object.fromEntries((await Promise.all(values)).map((value, i) => [golden(names[i] ?? ''), value]));
}

async function published(count: number): Promise<readonly string[]> {
  await vi.waitUntil(() => messages.length >= count, WITHIN);
  return messages.splice(0);
}

const POSITION = '"position":{"history":"<uuid>","sequence":<number>}';
const TIMES = '"requestedAtMs":1768478400000,"receivedAtMs":1768478400000';
const ABOUT = `{"format":3,"key":"v3:{evaluation:${EVALUATION_ID}}","owner":"${WORKSPACE_A}","kind":"evaluation",${TIMES}`;
/** The value of an owner whose copies have ended, in the list of a key's owners. */
const ENDED = '1768478400000';
const NEGATIVE = {
  meta: `${ABOUT},"tags":["all","class:evaluation","class:notFound","evaluation:${EVALUATION_ID}"],${POSITION},"answer":{"kind":"absent","code":"NOT_FOUND"}}`,
  body: '',
  by: '<key>',
};
/** The state of the call as last seen, by workspace. */
const SEEN = `{"digest":"FsAVyP47m3SOdNCf","differed":0,"requestedAtMs":1768478400000,${POSITION},"announced":0}`;
/** The message that a call for the readers of that workspace has ended, and what more it says. */
const ended = (filed: object | null, more = ''): string =>
  `${CHANNEL} {"sender":"<uuid>","filed":${JSON.stringify(filed)},"key":"v3:{evaluation:${EVALUATION_ID}}","set":"${WORKSPACE_A}"${more}}`;
/** It has found that the record is none of theirs. */
const DISOWNED = `,"disowned":{"owners":["${WORKSPACE_A}"],"requestedAtMs":1768478400000}`;

test('a copy under its workspace, the list of its key, and the message that it was filed', async () => {
  gateway.store.put({ evaluations: [anEvaluation()] });
  expect((await gateway.get(CALL, { key })).status).toBe(200);
  const body = JSON.stringify(anEvaluation());
  const bytes = Buffer.byteLength(body);
  const tags = `["all","class:evaluation","evaluation:${EVALUATION_ID}","workspace:${WORKSPACE_A}","scorecard:sc_1"]`;
  const answer = `{"kind":"found","etag":<etag>,"bytes":${bytes},"coding":"identity","decodedBytes":${bytes}}`;
  const expected = {
    [`${KEY}:copy-${WORKSPACE_A}`]: {
      meta: `${ABOUT},"tags":${tags},${POSITION},"answer":${answer}}`,
      body,
      by: '<key>',
    },
    [`${KEY}:owners`]: { [WORKSPACE_A]: 'copy' },
    [`${KEY}:seen`]: { [WORKSPACE_A]: SEEN },
  };
  await vi.waitFor(async () => expect(await held()).toEqual(expected), WITHIN);
  expect(await published(1)).toEqual([ended({ owner: WORKSPACE_A, requestedAtMs: 1768478400000 })]);
});

test('a record from 16 KiB of JSON on is compressed with Zstandard', async () => {
  const text = 'Riley: hello there\n'.repeat(1000);
  gateway.store.put({ transcripts: [aTranscript({ body: text })] });
  expect((await gateway.get(`${CALL}/transcript`, { key })).status).toBe(200);
  const [name = ''] = await raw.keys('evalgate:{cache-*}:copy-*');
  expect(golden(name)).toBe(`${KEY.replace('evaluation', 'transcript')}:copy-${WORKSPACE_A}`);
  const record = JSON.stringify(aTranscript({ body: text }));
  const bytes = Buffer.byteLength(record);
  expect(golden((await raw.hget(name, 'meta')) ?? '')).toContain(
    `"answer":{"kind":"found","etag":<etag>,"bytes":${bytes},"coding":"zstd","decodedBytes":${bytes}}`,
  );
  const body = await raw.hgetBuffer(name, 'body');
  expect(zstdDecompressSync(body ?? Buffer.alloc(0)).toString()).toBe(record);
});

test('an absence: a negative entry for the workspace that was asked for, and when its copies ended', async () => {
  gateway.store.evaluations.delete(EVALUATION_ID);
  expect((await gateway.get(CALL, { key })).status).toBe(404);
  expect(await held()).toEqual({
    [`${KEY}:absent-${WORKSPACE_A}`]: NEGATIVE,
    [`${KEY}:owners`]: { [WORKSPACE_A]: ENDED },
  });
  expect(await published(1)).toEqual([ended(null, DISOWNED)]);
});

test('a record of another workspace leaves the same', async () => {
  gateway.store.put({ evaluations: [anEvaluation({ workspaceId: WORKSPACE_B })] });
  expect((await gateway.get(CALL, { key })).status).toBe(404);
  expect(await held()).toEqual({
    [`${KEY}:absent-${WORKSPACE_A}`]: NEGATIVE,
    [`${KEY}:owners`]: { [WORKSPACE_A]: ENDED },
  });
  expect(await published(1)).toEqual([ended(null, DISOWNED)]);
});

test('several workspaces are named by the SHA-256 of their sorted list, in base64url', async () => {
  gateway.store.evaluations.delete(EVALUATION_ID);
  const other = await gateway.issueKey({ workspaceIds: [WORKSPACE_B, WORKSPACE_A] });
  expect((await gateway.get(CALL, { key: other })).status).toBe(404);
  expect(Object.keys(await held())).toEqual([
    `${KEY}:absent-8SY6A82yvkC1TfU99wYCoOn8x_jfThcViRu_DpLYP08`,
    `${KEY}:owners`,
  ]);
});

test('a lease, and a failure that is remembered for a second', async () => {
  gateway.store.put({ evaluations: [anEvaluation()] });
  const recover = gateway.store.fail(503, { 'retry-after': '9' });
  const gate = gateway.store.hold();
  const before = gateway.store.calls();
  const reading = gateway.get(CALL, { key });
  await gateway.store.waitForCalls(before + 1);
  expect(await held()).toEqual({ [`${KEY}:lease-${WORKSPACE_A}`]: '<uuid>' });
  const [lease = ''] = await raw.keys('evalgate:{cache-*');
  expect(await raw.pttl(lease)).toBeGreaterThan(0);
  expect(await raw.pttl(lease)).toBeLessThanOrEqual(2000);
  gate.release();
  expect((await reading).status).toBe(500);
  recover();
  const failure = '{"kind":"refused","message":<text>,"retryAfterMs":null,"status":503,"workspaceId":null}';
  expect(await published(1)).toEqual([ended(null)]);
  expect(await held()).toEqual({ [`${KEY}:failure-${WORKSPACE_A}`]: failure });
});

test('the lease of a renewal is that of the workspace of the record', async () => {
  gateway.store.put({ evaluations: [anEvaluation()] });
  const both = await gateway.issueKey({ workspaceIds: [WORKSPACE_B, WORKSPACE_A] });
  expect((await gateway.get(CALL, { key: both })).status).toBe(200);
  clock.advance(20 * 60_000);
  const gate = gateway.store.hold();
  const before = gateway.store.calls();
  expect((await gateway.get(CALL, { key: both })).status).toBe(200);
  await gateway.store.waitForCalls(before + 1);
  const copy = [`${KEY}:copy-${WORKSPACE_A}`, `${KEY}:owners`, `${KEY}:seen`];
  expect(Object.keys(await held()).toSorted()).toEqual([...copy, `${KEY}:lease-${WORKSPACE_A}`].toSorted());
  gate.release();
  await vi.waitUntil(async () => Object.keys(await held()).length === 3, WITHIN);
});
