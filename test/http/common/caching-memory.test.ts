/** `cache.memory`: what is cached stays within it, and the gateway goes on serving whatever had to make room. */
import { expect, test } from 'vitest';
import { forFile } from '../../support/opened.ts';
import { z } from 'zod';
import { World, HIT, MISS, type Reader } from '../../support/world.ts';
import { aTranscript } from '../../support/records.ts';
import { GET_CALL, GET_CALL_TRANSCRIPT } from './endpoints.ts';

const MEMORY_BYTES = 100_000;
const statsSchema = z.looseObject({ memory: z.looseObject({ entries: z.number(), bytes: z.number() }) });

const world = await forFile(World.start('memory', { settings: `cache:\n  memory: ${MEMORY_BYTES / 1000}kB` }));

async function held(): Promise<{ readonly entries: number; readonly bytes: number }> {
  return statsSchema.parse((await world.change('GET', '/api/cache')).json).memory;
}

async function readerOfLong(length: number): Promise<Reader> {
  const reader = await world.reader(GET_CALL_TRANSCRIPT);
  const { id: evaluationId, workspaceId } = reader.subject;
  world.store.put({ transcripts: [aTranscript({ evaluationId, workspaceId, body: 'Sam: '.padEnd(length, 'x') })] });
  return reader;
}

test('the least recently read makes room, and a read of it misses and says why', async () => {
  const first = await readerOfLong(1000);
  const used = await readerOfLong(1000);
  await first.ask();
  await used.ask();
  for (let read = 0; read < 100; read += 1) {
    await (await readerOfLong(1000)).ask();
    expect(await used.ask()).toMatchObject({ cache: HIT });
    // To be explained is not to be read.
    await first.explain();
  }
  const { entries, bytes } = await held();
  expect(bytes).toBeLessThanOrEqual(MEMORY_BYTES);
  expect(entries).toBeGreaterThan(2);
  expect(await first.explain()).toMatchObject({ evicted: true, memory: null, next: { miss: 'evicted' } });
  expect(await first.ask()).toMatchObject({ status: 200, cache: MISS });
  expect([first.calls(), used.calls()]).toEqual([2, 1]);
  expect(await first.explain()).toMatchObject({ evicted: false, memory: { state: 'fresh' } });
});

test('an answer that is larger than all of it is served, and not said to be stored', async () => {
  const reader = await readerOfLong(2 * MEMORY_BYTES);
  for (const calls of [1, 2]) {
    expect(await reader.ask()).toMatchObject({ status: 200, cache: 'evalgate; fwd=uri-miss' });
    expect(reader.calls()).toBe(calls);
  }
});

test('made-up searches push out nothing but each other', async () => {
  const reader = await world.reader(GET_CALL);
  await reader.ask();
  for (let read = 0; read < 60; read += 1) {
    const search = `/v2/calls?search=${'made-up'.repeat(5)}${read}`;
    expect((await world.here.get(search, { key: reader.key })).status).toBe(200);
  }
  expect(await reader.ask()).toMatchObject({ cache: HIT });
  expect((await held()).bytes).toBeLessThanOrEqual(MEMORY_BYTES);
});

test('probing for records of others pushes out nothing that is cached', async () => {
  const [mine, theirs] = [await world.reader(GET_CALL), await world.reader(GET_CALL)];
  await mine.ask();
  for (let probe = 0; probe < 60; probe += 1) {
    const { path } = await world.reader(GET_CALL);
    expect((await world.here.get(path, { key: theirs.key })).status).toBe(404);
  }
  expect(await mine.ask()).toMatchObject({ cache: HIT });
});
