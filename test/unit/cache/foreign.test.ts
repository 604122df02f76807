/** Records of workspaces that a reader doesn't ask for: never stored for it, never served to it, and no different from none. */
import { describe, expect, test } from 'vitest';
import { createPassThrough } from '../../../src/cache/pass-through.ts';
import { purge } from '../../../src/cache/purge.ts';
import type { ReadContext } from '../../../src/cache/reader.ts';
import type { Tag } from '../../../src/cache/tags.ts';
import { createRig, recordOf, type Rig, TEST_TIMES } from '../../support/cache-rig.ts';
import { storeFailure } from '../../support/counting-store.ts';
import { ManualTimers, settle } from '../../support/manual-timers.ts';
import { MemoryFleet } from '../../support/memory-fleet.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';
import { A, A_AND_C, B, C, malformedOfB, put, read } from './foreign.ts';

const { freshMs, staleMs, errorMs } = TEST_TIMES;
const NOT_FOUND_MS = 1000;

const titleFor = async (rig: Rig, context: ReadContext): Promise<string> => recordOf(await read(rig, context)).title;
const ABSENT = { entry: { answer: { kind: 'absent', code: 'NOT_FOUND' } } };

describe("C4: an answer of another workspace than the reader's", () => {
  test.each(['transcript', 'scorecard', 'dealInsights', 'rubric', 'evaluation'] as const)(
    'is absent to the reader of a %s, and is not stored',
    async (kind) => {
      const rig = createRig();
      put(rig, WORKSPACE_A);
      expect(await rig.reader[kind]('ev_1', B)).toMatchObject({ ...ABSENT, outcome: 'miss', tier: null });
      expect(rig.memory.keys()).toEqual([]);
      expect(await rig.reader[kind]('ev_1', A)).toMatchObject({ outcome: 'miss', stored: true });
      expect(rig.store.count()).toBe(2);
    },
  );

  test('never replaces a good copy: it is served on error as after any failure, and reported', async () => {
    const failed: string[] = [];
    const rig = createRig({
      hooks: { onRefreshFailed: ({ error }) => failed.push(`${error.kind}: ${error.message}`) },
    });
    put(rig, WORKSPACE_A, 'good');
    await read(rig, A);
    await rig.timers.advance(freshMs);
    put(rig, WORKSPACE_B, 'wrong');
    expect((await read(rig, A)).outcome).toBe('stale-while-revalidate');
    await settle();
    expect(failed).toEqual([
      'malformed: the answer (evaluation) is of another workspace than the one that was asked for',
    ]);
    await rig.timers.advance(staleMs);
    expect(await read(rig, A)).toMatchObject({
      outcome: 'stale-if-error',
      entry: { answer: { record: { title: 'good' } } },
    });
    put(rig, WORKSPACE_A, 'mended');
    await rig.timers.advance(NOT_FOUND_MS);
    expect(await titleFor(rig, A)).toBe('mended');
    expect(await read(rig, A)).toMatchObject({ outcome: 'hit' });
  });

  test('is asked for again no more often than what is absent, while a copy is served instead of it', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_A);
    await read(rig, A);
    await rig.timers.advance(freshMs);
    put(rig, WORKSPACE_B);
    for (let i = 0; i < 5; i++) {
      expect((await read(rig, A)).outcome).toBe('stale-while-revalidate');
      await settle();
    }
    expect(rig.store.count()).toBe(2);
    await rig.timers.advance(staleMs);
    for (let i = 0; i < 5; i++) expect((await read(rig, A)).outcome).toBe('stale-if-error');
    expect(rig.store.count()).toBe(3);
  });

  test('is absent once the copy is of no use any more', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_A);
    await read(rig, A);
    put(rig, WORKSPACE_B);
    await rig.timers.advance(freshMs + errorMs);
    expect(await read(rig, A)).toMatchObject({ ...ABSENT, outcome: 'miss' });
  });

  test('is absent without a cache, too', async () => {
    const { store, timers } = createRig();
    store.evaluations.set('ev_1', anEvaluation({ workspaceId: WORKSPACE_B }));
    const reader = createPassThrough(store, timers.clock);
    expect(await reader.evaluation('ev_1', A)).toMatchObject({ ...ABSENT, outcome: 'miss', stored: false });
    expect(recordOf(await reader.evaluation('ev_1', B)).workspaceId).toBe(WORKSPACE_B);
    store.failure = malformedOfB();
    expect(await reader.evaluation('ev_1', A)).toMatchObject(ABSENT);
    await expect(reader.evaluation('ev_1', B)).rejects.toBe(store.failure);
  });
});

describe("K7: another reader's copy", () => {
  test('is none: the store is asked, once in the time of what is absent, whoever else asks', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_B);
    await read(rig, B);
    expect(await read(rig, A)).toMatchObject({ ...ABSENT, outcome: 'miss', tier: null, stored: true });
    expect(rig.store.count()).toBe(2);
    expect(rig.store.calls[1]?.options).not.toHaveProperty('ifNoneMatch');
    for (const context of [A, C, A_AND_C]) {
      expect(await read(rig, context)).toMatchObject({ ...ABSENT, outcome: 'hit', tier: 'memory' });
    }
    expect(await read(rig, B)).toMatchObject({ outcome: 'hit' });
    expect(rig.store.count()).toBe(2);
    await rig.timers.advance(NOT_FOUND_MS);
    expect(await read(rig, A)).toMatchObject({ ...ABSENT, outcome: 'miss' });
    expect(rig.store.count()).toBe(3);
  });

  test('is not served when the store fails', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_B);
    await read(rig, B);
    await rig.timers.advance(freshMs + staleMs);
    rig.store.failure = storeFailure();
    await expect(read(rig, A)).rejects.toBe(rig.store.failure);
    expect((await read(rig, B)).outcome).toBe('stale-if-error');
  });

  test('is not told by a record that is malformed; its owner has a failure', async () => {
    const rig = createRig();
    rig.store.failure = malformedOfB();
    expect(await read(rig, A)).toMatchObject({ ...ABSENT, outcome: 'miss' });
    await expect(read(rig, B)).rejects.toBe(rig.store.failure);
    rig.store.failure = storeFailure();
    expect(await read(rig, A)).toMatchObject({ ...ABSENT, outcome: 'hit' });
  });

  test('is not touched by who probes for it, and its owner neither waits nor fails', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_B);
    const first = await read(rig, B);
    rig.store.hold();
    const probe = read(rig, A);
    await settle();
    expect((await read(rig, B)).entry).toBe(first.entry);
    for (const call of rig.store.held.splice(0)) call.fail(storeFailure());
    await expect(probe).rejects.toMatchObject({ kind: 'unreachable' });
    expect(await read(rig, B)).toMatchObject({ outcome: 'hit', entry: first.entry });
  });

  test('Q9: goes when the store tells somebody else that there is none', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_B);
    await read(rig, B);
    rig.store.evaluations.clear();
    expect(await read(rig, A)).toMatchObject(ABSENT);
    expect(await read(rig, B)).toMatchObject({ ...ABSENT, outcome: 'hit' });
  });

  test('who waits for a flight that another began decides for itself what it has brought', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_B);
    rig.store.hold();
    const reads = [read(rig, A), read(rig, B), read(rig, C)];
    await settle();
    rig.store.release();
    const [foreign, own, other] = await Promise.all(reads);
    expect([foreign, other]).toMatchObject([
      { ...ABSENT, outcome: 'miss' },
      { ...ABSENT, outcome: 'collapsed' },
    ]);
    expect(own).toMatchObject({
      outcome: 'collapsed',
      stored: false,
      entry: { answer: { record: { workspaceId: WORKSPACE_B } } },
    });
    expect(rig.store.count()).toBe(1);
  });

  test('is no base for a flight that waits for its owner: what was only found is asked for anew', async () => {
    const timers = new ManualTimers();
    const fleet = new MemoryFleet(timers);
    const one = createRig({ fleet, timers });
    const two = createRig({ fleet, beside: one });
    put(one, WORKSPACE_B);
    await read(one, B);
    // It is stored between the readers' look and their flight.
    const get = fleet.tier.get.bind(fleet.tier);
    let looks = 0;
    fleet.tier.get = (key) => (looks++ === 0 ? undefined : get(key));
    const [own, foreign] = await Promise.all([read(two, B), read(two, A)]);
    expect(own).toMatchObject({ outcome: 'hit', tier: 'redis' });
    expect(foreign).toMatchObject({ ...ABSENT, outcome: 'miss' });
    expect(one.store.count()).toBe(2);
  });
});

/** A process that has learned, for A, that the record is of B. */
async function createKnown(): Promise<Rig> {
  const rig = createRig();
  put(rig, WORKSPACE_B);
  await read(rig, A);
  return rig;
}

describe('what is known to be of others', () => {
  test.each<Tag>(['all', 'class:evaluation', 'class:notFound', 'evaluation:ev_1', `workspace:${WORKSPACE_A}`])(
    'is purged by %s, like what is absent',
    async (tag) => {
      const rig = await createKnown();
      await purge({ tags: [tag], mode: 'hard', isDryRun: false }, { ...rig, shared: null });
      expect((await read(rig, A)).outcome).toBe('miss');
    },
  );

  test('is forgotten when a record of another workspace is stored, and not when the same is', async () => {
    const rig = await createKnown();
    await read(rig, B);
    expect((await read(rig, A)).outcome).toBe('hit');
    put(rig, WORKSPACE_A, 'moved');
    const query = { workspaceIds: [WORKSPACE_A], search: null, scorecardId: null, offset: 0, limit: 50 };
    await rig.timers.advance(1);
    await rig.reader.list(query, A);
    rig.memory.delete('v1:{evaluation:ev_1}');
    expect(await read(rig, A)).toMatchObject({ outcome: 'miss', entry: { answer: { record: { title: 'moved' } } } });
  });

  test('is dropped with the rest of the memory, and not kept while that keeps nothing', async () => {
    const rig = await createKnown();
    expect(rig.memory.usage().entries).toBe(1);
    rig.memory.suspend();
    expect(rig.memory.usage()).toEqual({ entries: 0, bytes: 0 });
    for (let i = 0; i < 2; i++) expect((await read(rig, A)).outcome).toBe('miss');
    rig.memory.resume();
    expect((await read(rig, A)).outcome).toBe('miss');
    expect((await read(rig, A)).outcome).toBe('hit');
  });

  test('is bounded: the least recently used is forgotten', async () => {
    const rig = createRig({ maxBytes: 40_000 });
    for (const id of ['ev_1', 'ev_2', 'ev_3']) {
      put(rig, WORKSPACE_B, 'title', id);
      await read(rig, A, id);
    }
    expect((await read(rig, A, 'ev_3')).outcome).toBe('hit');
    expect((await read(rig, A, 'ev_2')).outcome).toBe('hit');
    expect((await read(rig, A, 'ev_1')).outcome).toBe('miss');
  });

  test('what was asked for before a purge is not remembered after it', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_B);
    rig.store.hold();
    const probe = read(rig, A);
    await settle();
    await rig.purges.purge(['evaluation:ev_1'], 'hard');
    rig.store.release();
    expect(await probe).toMatchObject({ ...ABSENT, stored: false });
    put(rig, WORKSPACE_A, 'moved');
    expect(await titleFor(rig, A)).toBe('moved');
  });
});

describe('a record that has moved', () => {
  test.each([
    ['in one process', false],
    ['in a fleet', true],
  ])(
    'is fetched by who may see it now, replaces the old copy, and is absent to who might before: %s',
    async (_, isFleet) => {
      const timers = new ManualTimers();
      const fleet = new MemoryFleet(timers);
      const one = createRig(isFleet ? { fleet, timers } : { timers });
      const two = isFleet ? createRig({ fleet, beside: one }) : one;
      put(one, WORKSPACE_A, 'before');
      await read(one, A);
      put(one, WORKSPACE_B, 'after');
      await timers.advance(1);
      expect(await titleFor(two, B)).toBe('after');
      expect(await read(two, B)).toMatchObject({ outcome: 'hit' });
      expect(await read(one, A)).toMatchObject({ ...ABSENT, outcome: 'miss' });
      expect(await read(one, A)).toMatchObject({ ...ABSENT, outcome: 'hit' });
      expect(await titleFor(one, B)).toBe('after');
      expect(one.store.count()).toBe(3);
    },
  );

  test('the new owner gets it from the very flight that the old owner began', async () => {
    const rig = createRig();
    put(rig, WORKSPACE_A, 'before');
    await read(rig, A);
    await rig.timers.advance(freshMs + staleMs);
    put(rig, WORKSPACE_B, 'after');
    rig.store.hold();
    const reads = [read(rig, A), read(rig, B)];
    await settle();
    rig.store.release();
    expect((await Promise.all(reads)).map((answer) => recordOf(answer).title)).toEqual(['before', 'after']);
    expect(await titleFor(rig, B)).toBe('after');
  });
});

describe('in a fleet', () => {
  test('a probe leaves nothing behind for others, and keeps nobody from asking', async () => {
    const timers = new ManualTimers();
    const fleet = new MemoryFleet(timers);
    const one = createRig({ fleet, timers });
    const two = createRig({ fleet, beside: one });
    put(one, WORKSPACE_B);
    one.store.hold();
    const [probe, own] = [read(one, A), read(two, B)];
    await timers.advance(0);
    one.store.release();
    await timers.advance(300);
    expect(await probe).toMatchObject(ABSENT);
    expect(await own).toMatchObject({ outcome: 'miss', stored: true });
    expect(fleet.tier.keys()).toEqual(['v1:{evaluation:ev_1}']);
    expect(one.store.count()).toBe(2);
  });

  test('what another process asks for its owner tells a probe that it is not its own', async () => {
    const timers = new ManualTimers();
    const fleet = new MemoryFleet(timers);
    const one = createRig({ fleet, timers });
    const two = createRig({ fleet, beside: one });
    put(one, WORKSPACE_B);
    one.store.hold();
    const [own, probe] = [read(one, B), read(two, A)];
    await timers.advance(100);
    one.store.release();
    await timers.advance(0);
    expect(await own).toMatchObject({ outcome: 'miss' });
    expect(await probe).toMatchObject(ABSENT);
    expect(one.store.count()).toBe(1);
  });

  test('an old copy of the owner tells a probe nothing that waits for the probe of another process', async () => {
    const timers = new ManualTimers();
    const fleet = new MemoryFleet(timers);
    const one = createRig({ fleet, timers });
    const two = createRig({ fleet, beside: one });
    put(one, WORKSPACE_B);
    await read(one, B);
    one.store.hold();
    const probes = [read(one, A), read(two, C)];
    await timers.advance(100);
    one.store.release();
    await timers.advance(0);
    expect(await Promise.all(probes)).toMatchObject([ABSENT, ABSENT]);
    expect(one.store.count()).toBe(3);
  });

  test('a malformed record of others is absent in the process that hears of the failure, too', async () => {
    const timers = new ManualTimers();
    const fleet = new MemoryFleet(timers);
    const one = createRig({ fleet, timers });
    const two = createRig({ fleet, beside: one });
    one.store.failure = malformedOfB();
    await expect(read(one, B)).rejects.toBe(one.store.failure);
    expect(await read(two, A)).toMatchObject(ABSENT);
    await expect(read(two, B)).rejects.toMatchObject({ kind: 'malformed', workspaceId: WORKSPACE_B });
    expect(one.store.count()).toBe(1);
  });
});
