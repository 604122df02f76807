/** Cached records in Redis are encrypted with the first key, and read with any; what cannot be decrypted is no copy. */
import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { forFile } from '../support/opened.ts';
import { ENDPOINTS, GET_CALL, GET_CALL_TRANSCRIPT, LIST_CALLS } from '../http/common/endpoints.ts';
import { putSubject } from '../http/common/subject.ts';
import { logOf, readinessOf, samplesOf } from '../support/admin.ts';
import { runCli } from '../support/cli.ts';
import { World, HIT, MISS, type Reader } from '../support/world.ts';
import type { TestGateway } from '../support/gateway.ts';
import { aTranscript } from '../support/records.ts';

const [FIRST = '', SECOND = ''] = Array.from({ length: 2 }, () => randomBytes(32).toString('base64'));
const UNDECRYPTABLE = 'a cached copy cannot be decrypted: it and its like count as none';
const MARK = 'Confidential-Renewal';

const world = await forFile(World.start('redis', { env: { CACHE_ENCRYPTION_KEYS: FIRST } }));

const gatewayWith = (keys: string): Promise<TestGateway> => world.join({ env: { CACHE_ENCRYPTION_KEYS: keys } });
const entryOf = async ({ subject }: Reader): Promise<string> =>
  (await world.names(`evalgate:{cache-*${subject.id}*`)).find((name) => name.includes('}:copy-')) ?? '';

/** How many copies counted as none at a gateway, for that reason. */
async function undecryptable(gateway: TestGateway, reason: 'unknown-key' | 'altered'): Promise<number> {
  const name = `evalgate_cache_undecryptable_total{reason="${reason}"}`;
  return (await samplesOf(gateway, name))[name] ?? Number.NaN;
}

test('nothing that a record says is readable in Redis, and the other gateway serves all of it from there', async () => {
  const subject = putSubject(world.store, undefined, { title: MARK });
  const body = `${MARK}: it is said.\n`.repeat(2000);
  world.store.put({ transcripts: [aTranscript({ evaluationId: subject.id, workspaceId: subject.workspaceId, body })] });
  const readers = await Promise.all(ENDPOINTS.map((endpoint) => world.readerOf(endpoint, subject)));
  for (const reader of readers) await reader.ask(world.here);
  const calls = world.store.requests.length;
  for (const reader of readers) expect(await reader.ask(world.there)).toMatchObject({ status: 200, cache: HIT });
  expect(world.store.requests).toHaveLength(calls);
  const raw = await world.raw();
  const bodies = await Promise.all(
    (await world.names('evalgate:{cache-*}:copy-*')).map(async (name) => {
      const { meta = Buffer.alloc(0), body: sealed = Buffer.alloc(0) } = await raw.hgetallBuffer(name);
      expect(sealed.length).toBeGreaterThan(28);
      return meta.toString('latin1') + sealed.toString('latin1');
    }),
  );
  expect(bodies.length).toBeGreaterThan(5);
  for (const text of bodies) expect(text).not.toMatch(new RegExp(`${MARK}|"title"|example\\.com|it is said`));
});

test('keys rotate: all decrypt, the first encrypts, and a copy of a key that is gone is none', async () => {
  const reader = await world.reader(GET_CALL);
  await reader.ask(world.here);
  const both = await gatewayWith(`${SECOND},${FIRST}`);
  const rotated = await gatewayWith(SECOND);
  expect((await reader.ask(both)).cache).toEqual(HIT);
  const other = await world.reader(LIST_CALLS);
  await other.ask(both);
  expect((await other.ask(rotated)).cache).toEqual(HIT);
  expect(await undecryptable(rotated, 'unknown-key')).toBe(0);
  expect((await reader.explain(rotated)).redis.state).toBe('unreadable');
  expect((await reader.ask(rotated)).cache).toBe(MISS);
  expect((await reader.ask(both)).cache).toEqual(HIT);
  expect(reader.calls()).toBe(2);
  const next = await world.reader(GET_CALL);
  await next.ask(world.here);
  expect((await next.ask(rotated)).cache).toBe(MISS);
  expect(await undecryptable(rotated, 'unknown-key')).toBeGreaterThan(1);
  expect(logOf(rotated, UNDECRYPTABLE)).toHaveLength(1);
  const all = [both, rotated, world.here].flatMap(({ logLines }) => logLines).join('');
  for (const key of [FIRST, SECOND]) expect(all).not.toContain(key);
});

test("in a rolling upgrade, processes with keys and those without read none of each other's copies", async () => {
  const plain = await world.join({ env: { CACHE_ENCRYPTION_KEYS: '' } });
  const reader = await world.reader(GET_CALL_TRANSCRIPT);
  await reader.ask(plain);
  expect(await reader.ask(world.here)).toMatchObject({ status: 200, cache: MISS });
  expect(reader.calls()).toBe(2);
  const sealed = await world.reader(GET_CALL_TRANSCRIPT);
  await sealed.ask(world.here);
  expect(await sealed.ask(plain)).toMatchObject({ status: 200, cache: MISS });
  expect(logOf(plain, UNDECRYPTABLE)).toHaveLength(1);
});

test.each([
  [
    'the body of another entry',
    (_meta: string, body: Buffer, other: Buffer) => [_meta, other.length > 0 ? other : body],
  ],
  ['a younger time', (meta: string, body: Buffer) => [meta.replace(/"receivedAtMs":\d/, '"receivedAtMs":2'), body]],
  [
    'a bit turned',
    (meta: string, body: Buffer) => [meta, Buffer.from(body.map((byte, at) => (at === 20 ? byte ^ 1 : byte)))],
  ],
  ['a body cut off', (meta: string, body: Buffer) => [meta, body.subarray(0, 10)]],
] as const)('a copy with %s is none', async (_how, alter) => {
  const [reader, other] = [await world.reader(GET_CALL), await world.reader(GET_CALL)];
  await Promise.all([reader.ask(world.here), other.ask(world.here)]);
  const raw = await world.raw();
  const [name, otherName] = [await entryOf(reader), await entryOf(other)];
  const { meta = Buffer.alloc(0), body = Buffer.alloc(0) } = await raw.hgetallBuffer(name);
  const otherBody = (await raw.hgetBuffer(otherName, 'body')) ?? Buffer.alloc(0);
  const [newMeta = '', newBody = ''] = alter(meta.toString(), body, otherBody);
  await raw.hset(name, { meta: newMeta, body: newBody });
  const before = await undecryptable(world.there, 'altered');
  expect(await reader.ask(world.there)).toMatchObject({ status: 200, cache: MISS });
  expect(await undecryptable(world.there, 'altered')).toBeGreaterThan(before);
});

test('/readyz and the doctor say whether records are encrypted', async () => {
  expect((await readinessOf(world.here)).of('redis-cache')?.detail).toBe(
    'answers, and its messages arrive; cached records are encrypted',
  );
  const found = async (keys: string): Promise<string> => {
    const env = { REDIS_URL: world.redis?.url ?? '', CACHE_ENCRYPTION_KEYS: keys };
    return (await runCli(['doctor', '--admin', 'http://127.0.0.1:1'], { env })).stdout;
  };
  expect(await found(`${FIRST},${SECOND}`)).toContain(
    'ok      encryption   cached records in Redis are encrypted (AES-256-GCM); 2 keys decrypt',
  );
  expect(await found('')).toContain(
    'skipped encryption   CACHE_ENCRYPTION_KEYS is not set: cached records are in Redis as they are',
  );
});
