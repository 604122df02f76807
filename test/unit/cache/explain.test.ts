import * as fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { explain, type ExplainParts, type Explanation } from '../../../src/cache/explain.ts';
import { LastMisses } from '../../../src/cache/last-misses.ts';
import { MaintenanceState } from '../../../src/cache/maintenance.ts';
import { transcriptQuestion } from '../../../src/cache/question.ts';
import { CONTEXT, createRig, type Rig, TEST_TIMES } from '../../support/cache-rig.ts';
import { storeFailure } from '../../support/counting-store.ts';
import { ManualTimers, settle } from '../../support/manual-timers.ts';
import { MemoryFleet } from '../../support/memory-fleet.ts';
import { WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const { freshMs, staleMs, errorMs } = TEST_TIMES;
const ID = 'ev_1';
const OWN = [WORKSPACE_A];
const FOREIGN = [WORKSPACE_B];

/** A process of a fleet of two, or one that is alone, and what an operator can be told of it. */
function createWorld(isFleet: boolean) {
  const timers = new ManualTimers();
  const fleet = isFleet ? new MemoryFleet(timers) : null;
  const state = new MaintenanceState(timers.clock);
  const misses = new LastMisses();
  const shared = { timers, maintenance: state, ...(fleet === null ? {} : { fleet }) };
  const rig = createRig({ ...shared, hooks: { onRead: (read) => misses.note(read, timers.clock.nowMs()) } });
  const other = createRig({ ...shared, beside: rig });
  const parts: ExplainParts = {
    memory: rig.memory,
    inspector: fleet,
    flightOf: (key) => rig.reader.flightOf(key),
    lastMissOf: (key) => misses.of(key),
    maintenance: state,
    clock: timers.clock,
    times: rig.times,
    purges: rig.purges,
  };
  const question = transcriptQuestion(ID);
  return {
    timers,
    fleet,
    state,
    rig,
    other,
    read: async (of: Rig = rig, workspaceIds: readonly string[] = OWN) =>
      await of.reader.transcript(ID, { ...CONTEXT, workspaceIds }),
    explain: (workspaceIds: readonly string[] | null = OWN): Promise<Explanation> =>
      explain(question, workspaceIds, parts),
    beginMaintenance: (): void =>
      state.say({ sinceMs: timers.clock.nowMs(), untilMs: timers.clock.nowMs() + 1e7, by: 'alice' }),
  };
}

type World = ReturnType<typeof createWorld>;

let world: World;
beforeEach(() => {
  world = createWorld(false);
});

const sentence = async (of: World = world): Promise<string> => (await of.explain()).next.text;

describe('the next read in one sentence', () => {
  test('with no copy', async () => {
    expect(await sentence()).toBe('The next read asks the store and waits for its answer, because no copy is held.');
  });

  test('of a copy as it ages', async () => {
    await world.read();
    expect(await sentence()).toBe('The next read is served from memory.');
    await world.timers.advance(freshMs);
    expect(await sentence()).toBe('The next read is served from memory and starts one refresh behind.');
    await world.timers.advance(staleMs);
    expect(await sentence()).toBe(
      'The next read asks the store and waits for its answer, and is served the copy in memory if that fails or takes over 1 s, because the copy that is held has expired.',
    );
    await world.timers.advance(errorMs);
    expect(await sentence()).toBe(
      'The next read asks the store and waits for its answer, because the copy that is held has expired.',
    );
  });

  test('of what is absent', async () => {
    world.rig.store.absent.add(`transcript:${ID}`);
    await world.read();
    expect(await sentence()).toBe('The next read is answered 404 from memory.');
    expect(await world.explain()).toMatchObject({ class: 'notFound', memory: { isFound: false } });
  });

  test('after a purge, hard and soft', async () => {
    await world.read();
    await world.rig.purges.purge(['all'], 'soft');
    expect(await sentence()).toBe('The next read is served from memory and starts one refresh behind.');
    await world.rig.purges.purge(['all'], 'hard');
    expect(await sentence()).toBe(
      'The next read asks the store and waits for its answer, because the copy that is held was purged.',
    );
  });

  test('under maintenance', async () => {
    const until = 'the store is asked nothing until 2026-01-15T14:46:40.000Z';
    world.beginMaintenance();
    expect(await sentence()).toBe(
      `The next read fails with 500 and Retry-After, because no copy is held and ${until}.`,
    );
    world.state.say(null);
    await world.read();
    world.beginMaintenance();
    expect(await sentence()).toBe('The next read is served from memory.');
    await world.timers.advance(freshMs);
    expect(await sentence()).toBe(`The next read is served from memory and starts no refresh, because ${until}.`);
    await world.timers.advance(staleMs);
    expect(await sentence()).toBe(`The next read is served the expired copy in memory, because ${until}.`);
  });

  test('while a call is under way, and after one that has failed', async () => {
    world.rig.store.hold();
    const waiting = world.read();
    await settle();
    const asked = 'The next read waits for the call to the store that is under way here, because no copy is held.';
    expect(await sentence()).toBe(asked);
    expect((await world.explain()).flight).toEqual({ sinceMs: world.timers.clock.nowMs(), hasJustFailed: false });
    world.rig.store.held[0]?.fail(storeFailure());
    await expect(waiting).rejects.toThrow('the store is down');
    expect(await sentence()).toBe(
      'The next read fails with 500 and Retry-After, because no copy is held and the last call to the store has just failed and is not repeated yet.',
    );
    await world.timers.advance(1000);
    expect(await sentence()).toMatch(/^The next read asks the store/);
  });

  test('for a viewer whose record it is not', async () => {
    await world.read();
    expect((await world.explain(FOREIGN)).next.text).toMatch(/^The next read asks the store/);
    await world.read(world.rig, FOREIGN);
    expect((await world.explain(FOREIGN)).next.text).toBe(
      'The next read is answered 404 from memory: the record is of a workspace that is not asked for.',
    );
    expect((await world.explain(FOREIGN)).memory?.isVisible).toBe(false);
    expect(await sentence()).toBe('The next read is served from memory.');
    expect((await world.explain(null)).memory?.isVisible).toBeNull();
  });

  test('of what another process of the fleet holds, asks for, or has failed to get', async () => {
    world = createWorld(true);
    world.rig.store.hold();
    const waiting = world.read(world.other);
    await settle();
    expect(await sentence()).toBe(
      'The next read waits for the call to the store that another process has under way, because no copy is held.',
    );
    expect((await world.explain()).shared).toMatchObject({ state: 'asked', leaseLeftMs: 2000 });
    world.rig.store.release();
    await waiting;
    expect(await sentence()).toBe('The next read is served from Redis.');
    await world.timers.advance(freshMs + staleMs + errorMs);
    world.rig.store.failure = storeFailure();
    await expect(world.read(world.other)).rejects.toThrow('the store is down');
    await settle();
    expect(await sentence()).toMatch(/has just failed and is not repeated yet\.$/);
  });

  test('of a fleet that cannot be asked', async () => {
    world = createWorld(true);
    await world.read();
    if (world.fleet !== null) world.fleet.isDown = true;
    expect((await world.explain()).shared).toEqual({ state: 'unreachable' });
    expect(await sentence()).toBe('The next read is served from memory.');
  });
});

describe('a copy', () => {
  test('is told with its age, its times after jitter, its tags and its size', async () => {
    const filledAtMs = world.timers.clock.nowMs();
    await world.read();
    await world.timers.advance(4000);
    const { memory, times, lastMiss } = await world.explain();
    const jitterMs = memory?.jitterMs ?? Number.NaN;
    expect(jitterMs).toBeGreaterThan(0);
    expect(jitterMs).toBeLessThanOrEqual(freshMs / 10);
    expect(memory).toEqual({
      usability: 'fresh',
      ttlMs: freshMs - jitterMs - 4000,
      ageMs: 4000,
      isFound: true,
      class: 'transcript',
      isVisible: true,
      filledAtMs,
      fetchedAtMs: filledAtMs,
      tags: ['all', 'class:transcript', `evaluation:${ID}`, `workspace:${WORKSPACE_A}`],
      bytes: world.rig.memory.usage().bytes,
      isOutdated: false,
      jitterMs,
      freshUntilMs: filledAtMs + freshMs - jitterMs,
      staleUntilMs: filledAtMs + freshMs - jitterMs + staleMs,
      errorUntilMs: filledAtMs + freshMs - jitterMs + errorMs,
    });
    expect(times).toEqual(TEST_TIMES);
    expect(lastMiss).toEqual({ reason: 'never-seen', atMs: filledAtMs });
  });

  test('is not used by being looked at: what is explained makes room as if nobody had looked', async () => {
    const rig = createRig({ maxBytes: 6000 });
    const parts: ExplainParts = {
      memory: rig.memory,
      inspector: null,
      flightOf: (key) => rig.reader.flightOf(key),
      lastMissOf: () => null,
      maintenance: new MaintenanceState(rig.timers.clock),
      clock: rig.timers.clock,
      times: rig.times,
      purges: rig.purges,
    };
    await rig.reader.transcript('first', CONTEXT);
    for (let i = 0; rig.memory.keys().length === i + 1; i += 1) {
      await explain(transcriptQuestion('first'), OWN, parts);
      await rig.reader.transcript(`ev_${i}`, CONTEXT);
    }
    const { memory, wasEvicted, next } = await explain(transcriptQuestion('first'), OWN, parts);
    expect([memory, wasEvicted, next.miss]).toEqual([null, true, 'evicted']);
  });
});

type Step = (of: World) => Promise<unknown>;

const ignore = (promise: Promise<unknown>): Promise<unknown> => promise.catch(() => null);
const STEPS: Readonly<Record<string, Step>> = {
  read: (of) => ignore(of.read()),
  'read by others': (of) => ignore(of.read(of.rig, FOREIGN)),
  'read elsewhere': (of) => ignore(of.read(of.other)),
  'a while': (of) => of.timers.advance(freshMs / 2),
  'a longer while': (of) => of.timers.advance(staleMs),
  'an age': (of) => of.timers.advance(errorMs),
  'soft purge': (of) => of.rig.purges.purge(['all'], 'soft'),
  'hard purge': (of) => of.rig.purges.purge(['all'], 'hard'),
  'store fails': async (of) => (of.rig.store.failure = storeFailure()),
  'store is well': async (of) => (of.rig.store.failure = null),
  'is absent': async (of) => of.rig.store.absent.add(`transcript:${ID}`),
  'is there': async (of) => of.rig.store.absent.delete(`transcript:${ID}`),
  maintenance: async (of) => of.beginMaintenance(),
  'no maintenance': async (of) => of.state.say(null),
};

/** What a read really did. */
async function observe(of: World, viewer: readonly string[]) {
  const before = of.rig.store.count();
  const ended = await of.read(of.rig, viewer).then(
    ({ tier }) => ({ failed: false, tier }),
    () => ({ failed: true, tier: null }),
  );
  await settle();
  await settle();
  return { ...ended, calls: of.rig.store.count() - before };
}

/** What chance has brought up once, so that it need not again. */
const FOUND_BEFORE: [string[], readonly string[]][] = [
  [['read', 'a longer while', 'store fails', 'read elsewhere'], OWN],
  [['read', 'soft purge', 'read elsewhere'], OWN],
  [['read', 'hard purge', 'read elsewhere'], OWN],
  [['is absent', 'read', 'soft purge', 'read elsewhere'], OWN],
];

test.each([
  ['alone', false],
  ['of a fleet', true],
])('whatever has happened, a process %s does with the next read what was told', async (_, isFleet) => {
  const step = fc.constantFrom(...Object.keys(STEPS));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 12 }), fc.constantFrom(OWN, FOREIGN), async (names, viewer) => {
      const of = createWorld(isFleet);
      for (const name of names) await STEPS[name]?.(of);
      await settle();
      const { next } = await of.explain(viewer);
      const { failed, tier, calls } = await observe(of, viewer);
      const told = { isAsked: next.store !== 'not-asked', from: next.from };
      // Where the store is waited for, what comes of it is the store's to say.
      const done = { isAsked: calls === 1, from: next.store === 'waited-for' ? 'store' : tier };
      expect([calls <= 1, done]).toEqual([true, told]);
      expect(failed && next.store !== 'waited-for').toBe(next.from === null);
    }),
    { numRuns: 120, examples: FOUND_BEFORE },
  );
});
