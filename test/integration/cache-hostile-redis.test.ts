/** Values that somebody else has written into the cache Redis are bounded as the store's answers are, and count as no copy. */
import { randomBytes } from 'node:crypto';
import { zstdCompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type EndpointRow, GET_CALL, GET_RUBRIC, LIST_CALLS } from '../http/common/endpoints.ts';
import { forFile } from '../support/opened.ts';
import { samplesOf } from '../support/admin.ts';
import { HIT, MISS, type Reader, World } from '../support/world.ts';

const SETTINGS = '  maxResponse: 1MB\n';
const BROKEN = 'the cache Redis holds what cannot be read';

const metaSchema = z.looseObject({ key: z.string(), answer: z.looseObject({}) });

/** The name, the metadata and the bytes of what is there of a reader's record, negative or not. */
async function entryOf(world: World, reader: Reader) {
  const raw = await world.raw();
  const { key } = await reader.explain(world.here);
  for (const name of await world.names('evalgate:{cache-*}:[ac][bo][sp]*')) {
    const { meta: text = Buffer.alloc(0), body = Buffer.alloc(0) } = await raw.hgetallBuffer(name);
    const meta = metaSchema.parse(JSON.parse(text.toString()));
    if (meta.key === key) return { name, meta, body };
  }
  throw new Error(`there is no entry of ${key}`);
}

/** Puts that text in the place of the record, as if it had been written by a gateway. */
async function replace(world: World, reader: Reader, text: (record: string) => string, about: object = {}) {
  const { name, meta, body } = await entryOf(world, reader);
  const plain = Buffer.from(text(body.toString()));
  const isLong = plain.length > 16_384;
  const answer = { ...meta.answer, coding: isLong ? 'zstd' : 'identity', decodedBytes: plain.length, ...about };
  const written = { meta: JSON.stringify({ ...meta, answer }), body: isLong ? zstdCompressSync(plain) : plain };
  await (await world.raw()).hset(name, written);
}

const TOO_LONG = 64_000_000;
/** A record with an unknown member of that value. */
const member =
  (value: string) =>
  (record: string): string =>
    record.replace(/^\{/, `{"unknown":${value},`);

describe('without keys', async () => {
  const world = await forFile(World.start('redis', { settings: SETTINGS }));

  const read = async (endpoint: EndpointRow): Promise<Reader> => {
    const reader = await world.reader(endpoint);
    expect(await reader.ask(world.here)).toMatchObject({ status: 200, cache: MISS });
    return reader;
  };

  test('a record that somebody else has written is a copy if the store could have sent it', async () => {
    const reader = await read(GET_CALL);
    await replace(world, reader, (record) => record.replace('"title":"', '"title":"Rewritten '));
    const seen = await reader.ask(world.there);
    expect([seen.status, seen.cache]).toEqual([200, HIT]);
    expect(seen.text).toContain('Rewritten');
  });

  test.each([
    ['of many megabytes', GET_CALL, (record: string) => ' '.repeat(TOO_LONG) + record, {}],
    ['said to be of an answer that is too long', GET_CALL, (record: string) => record, { bytes: 1_000_001 }],
    ['nested too deep', GET_CALL, member('['.repeat(100) + ']'.repeat(100)), {}],
    ['nested too deep, in an object that is open', GET_RUBRIC, member('['.repeat(100) + ']'.repeat(100)), {}],
    ['of too many values', GET_CALL, member(`[${'1,'.repeat(300_000)}1]`), {}],
    [
      'with a member of too many values',
      GET_CALL,
      (record: string) => record.replace('"people":[', `"people":[${'{},'.repeat(21_000)}`),
      {},
    ],
    ['a list of faulty records', LIST_CALLS, () => `{"items":[${'{},'.repeat(2000)}{}],"total":1}`, {}],
    ['no JSON', GET_CALL, () => '<html>', {}],
  ] as const)('a record %s is none', async (_what, endpoint, text, about) => {
    const reader = await read(endpoint);
    await replace(world, reader, text, about);
    const before = world.there.logLines.length;
    expect(await reader.ask(world.there)).toMatchObject({ status: 200, cache: MISS });
    expect(reader.calls()).toBe(2);
    expect(world.there.logLines.slice(before).join('')).toContain(BROKEN);
    expect((await reader.ask(world.here)).status).toBe(200);
  });

  test('a record that says it is small is reckoned by its size', async () => {
    const reader = await read(GET_CALL);
    const before = await memoryOf(world);
    await replace(world, reader, (record) => record.replace('"title":"', `"title":"${'x'.repeat(100_000)}`), {
      bytes: 1,
    });
    expect((await reader.ask(world.there)).cache).toEqual(HIT);
    expect((await memoryOf(world)) - before).toBeGreaterThan(350_000);
  });
});

describe('with keys', async () => {
  const env = { CACHE_ENCRYPTION_KEYS: randomBytes(32).toString('base64') };
  const world = await forFile(World.start('redis', { env }));
  const plain = await world.join({ env: { CACHE_ENCRYPTION_KEYS: '' } });

  const refused = async (): Promise<number> => {
    const name = 'evalgate_cache_undecryptable_total{reason="unencrypted"}';
    return (await samplesOf(world.there, name))[name] ?? Number.NaN;
  };

  test.each([GET_CALL, GET_RUBRIC, LIST_CALLS])('an entry that is not encrypted is none ($name)', async (endpoint) => {
    const reader = await world.reader(endpoint);
    expect(await reader.ask(plain)).toMatchObject({ status: 200, cache: MISS });
    const before = await refused();
    expect(await reader.ask(world.there)).toMatchObject({ status: 200, cache: MISS });
    expect(await refused()).toBeGreaterThan(before);
    expect((await reader.ask(world.here)).cache).toEqual(HIT);
    expect(reader.calls()).toBe(2);
  });

  test('a negative entry that is not authenticated is none', async () => {
    const reader = await world.reader(GET_CALL, { isStored: false });
    expect(await reader.ask(plain)).toMatchObject({ status: 404 });
    const before = await refused();
    expect(await reader.ask(world.there)).toMatchObject({ status: 404 });
    expect(await refused()).toBeGreaterThan(before);
    expect(await reader.ask(world.here)).toMatchObject({ status: 404 });
    expect(reader.calls()).toBe(2);
  });

  test('a negative entry under a name that is not its own is none', async () => {
    const [gone, present] = [await world.reader(GET_CALL, { isStored: false }), await world.reader(GET_CALL)];
    await Promise.all([gone.ask(world.here), present.ask(world.here)]);
    const [negative, entry] = [await entryOf(world, gone), await entryOf(world, present)];
    const meta = JSON.stringify({ ...negative.meta, key: entry.meta.key, tags: entry.meta['tags'] });
    await (await world.raw()).hset(entry.name, { meta, body: '' });
    expect(await present.ask(world.there)).toMatchObject({ status: 200 });
    expect(present.calls()).toBe(2);
  });
});

/** Bytes that the other gateway's copies take in its memory. */
async function memoryOf({ there }: World): Promise<number> {
  const name = 'evalgate_cache_bytes{tier="memory"}';
  return (await samplesOf(there, name))[name] ?? Number.NaN;
}
