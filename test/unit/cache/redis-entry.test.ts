import { assert, asyncProperty, integer, string, uint8Array } from 'fast-check';
import { describe, expect, test } from 'vitest';
import { singleKey } from '../../../src/cache/cache-key.ts';
import { Entry } from '../../../src/cache/entry.ts';
import {
  BrokenEntryError,
  decodeEntry,
  decodeFilledAtMs,
  decodeTagged,
  encodeEntry,
  type EncodedEntry,
} from '../../../src/cache/redis-entry.ts';
import type { StoredEntry } from '../../../src/cache/stored.ts';
import type { ResourceKind } from '../../../src/upstream/store.ts';
import { aScorecard, aScoredCard, aTranscript, anEvaluation, dealInsights } from '../../support/records.ts';
import { aStoredAbsence, aStoredEvaluation, keyOfEvaluation } from '../../support/stored-entry.ts';

const FILLED_AT_MS = 1_772_600_767_089;
const key = keyOfEvaluation('ev_1');

function stored(kind: ResourceKind, record: unknown): StoredEntry {
  const entry = new Entry({ kind: 'found', record, etag: 'W/"é"', bytes: 12 }, FILLED_AT_MS);
  const position = { history: 'h', sequence: 3 };
  return { kind, entry, tags: ['all', `class:${kind}`, 'scorecard:a:b, "c"'], position, fetchedAtMs: FILLED_AT_MS + 9 };
}

const viewOf = ({ entry, ...rest }: StoredEntry): unknown => ({
  ...rest,
  answer: entry.answer,
  filledAtMs: entry.filledAtMs,
});

/** An entry with one member of what is known of it put another way. */
async function changed(from: RegExp, to: string): Promise<EncodedEntry> {
  const { meta, body } = await encodeEntry(key, aStoredEvaluation(FILLED_AT_MS));
  expect(meta).toMatch(from);
  return { meta: meta.replace(from, to), body };
}

describe('an entry as it lies in Redis', () => {
  test.each([
    ['list', 'v1:{list:x}', { items: [anEvaluation(), anEvaluation({ _id: 'ev_2' })], total: 7 }],
    ['evaluation', singleKey('evaluation', 'ev_1'), anEvaluation()],
    ['transcript', singleKey('transcript', 'ev_1'), aTranscript()],
    ['scorecard', singleKey('scorecard', 'ev_1'), aScoredCard()],
    ['dealInsights', singleKey('dealInsights', 'ev_1'), dealInsights()],
    ['rubric', singleKey('rubric', 'sc_1'), aScorecard()],
  ] as const)('a %s comes back as it was', async (kind, name, record) => {
    const entry = stored(kind, record);
    expect(viewOf(await decodeEntry(name, await encodeEntry(name, entry)))).toEqual(viewOf(entry));
  });

  test('what is absent comes back, and has no bytes', async () => {
    const absence = aStoredAbsence(FILLED_AT_MS);
    const encoded = await encodeEntry(key, absence);
    expect(encoded.body.length).toBe(0);
    expect(viewOf(await decodeEntry(key, encoded))).toEqual(viewOf(absence));
  });

  test('any text comes back, whatever its length', async () => {
    const texts = string({ unit: 'grapheme', maxLength: 3000 }).map((text) => text.toWellFormed());
    await assert(
      asyncProperty(texts, integer({ min: 1, max: 20 }), async (text, times) => {
        const entry = stored('transcript', aTranscript({ body: text.repeat(times) }));
        const name = singleKey('transcript', 'ev_1');
        expect(viewOf(await decodeEntry(name, await encodeEntry(name, entry)))).toEqual(viewOf(entry));
      }),
      { numRuns: 100 },
    );
  });

  test('a transcript of a megabyte comes back as it was', async () => {
    const entry = stored('transcript', aTranscript({ body: 'Sam: Yes.\n'.repeat(100_000) }));
    const name = singleKey('transcript', 'ev_1');
    expect(viewOf(await decodeEntry(name, await encodeEntry(name, entry)))).toEqual(viewOf(entry));
  });

  test('a record of 16 kB is compressed, a shorter one is kept as JSON', async () => {
    const frame = Buffer.byteLength(JSON.stringify(aTranscript({ body: '' })));
    const transcript = (bytes: number) => aTranscript({ body: 'a'.repeat(bytes - frame) });
    const short = await encodeEntry(key, stored('transcript', transcript(16_383)));
    const long = await encodeEntry(key, stored('transcript', transcript(16_384)));
    expect(short.body.toString()).toBe(JSON.stringify(transcript(16_383)));
    expect(long.body.length).toBeLessThan(1000);
  });

  test('what a purge and a comparison go by is read without the record', async () => {
    const { meta } = await encodeEntry(key, aStoredEvaluation(FILLED_AT_MS));
    expect(decodeTagged(meta)).toMatchObject({
      tags: ['all', 'class:evaluation', 'evaluation:ev_1'],
      position: { history: 'h', sequence: 3 },
    });
    expect(decodeFilledAtMs(key, meta)).toBe(FILLED_AT_MS);
    expect(() => decodeFilledAtMs('v1:{evaluation:other}', meta)).toThrow(BrokenEntryError);
    expect(() => decodeTagged('{}')).toThrow(BrokenEntryError);
  });
});

describe('what is no entry of the key is refused', () => {
  test('an entry of another key', async () => {
    const encoded = await encodeEntry(key, aStoredEvaluation(FILLED_AT_MS));
    await expect(decodeEntry(keyOfEvaluation('ev_2'), encoded)).rejects.toThrow(BrokenEntryError);
  });

  test('C4: a record of another id under the right name', async () => {
    const encoded = await encodeEntry(key, stored('evaluation', anEvaluation({ _id: 'ev_2' })));
    await expect(decodeEntry(key, encoded)).rejects.toThrow('another id');
  });

  test('a record without a required member, and its error names the member and no value', async () => {
    const { title: _, ...rest } = anEvaluation();
    const encoded = await encodeEntry(key, stored('evaluation', rest));
    await expect(decodeEntry(key, encoded)).rejects.toThrow(/^what is stored of .* is no entry: wrong at title$/);
  });

  test('internal members that somebody wrote into a record do not come out', async () => {
    const encoded = await encodeEntry(key, stored('evaluation', { ...anEvaluation(), reviewerNotes: 'secret' }));
    expect((await decodeEntry(key, encoded)).entry.answer).toMatchObject({ record: anEvaluation() });
    expect(JSON.stringify((await decodeEntry(key, encoded)).entry.answer)).not.toContain('secret');
  });

  test.each([
    ['another format', /"format":1/, '"format":2'],
    ['an unknown kind', /"kind":"evaluation"/, '"kind":"keys"'],
    ['no time', /"filledAtMs":\d+,/, ''],
    ['a tag that is none', /"all"/, '"every"'],
    ['no position', /"position":\{.*?\}/, '"position":null'],
    ['another length', /"decodedBytes":\d+/, '"decodedBytes":5'],
    ['another coding', /"identity"/, '"zstd"'],
  ])('%s', async (_, from, to) => {
    await expect(decodeEntry(key, await changed(from, to))).rejects.toThrow(BrokenEntryError);
  });

  test.each([5000, 300_000])('bytes that hold more than the %i that they are said to', async (said) => {
    const name = singleKey('transcript', 'ev_1');
    const bomb = await encodeEntry(name, stored('transcript', aTranscript({ body: 'a'.repeat(1_000_000) })));
    const meta = bomb.meta.replace(/"decodedBytes":\d+/, `"decodedBytes":${said}`);
    await expect(decodeEntry(name, { meta, body: bomb.body })).rejects.toThrow(BrokenEntryError);
  });

  test('any other text and bytes', async () => {
    const { meta, body } = await encodeEntry(key, aStoredEvaluation(FILLED_AT_MS));
    await assert(
      asyncProperty(string(), uint8Array(), async (text, bytes) => {
        await expect(decodeEntry(key, { meta: text, body })).rejects.toThrow(BrokenEntryError);
        await expect(decodeEntry(key, { meta, body: Buffer.from(bytes) })).rejects.toThrow(BrokenEntryError);
      }),
    );
  });
});
