/**
 * Flights by themselves: several processes over one shared cache, each step in the hands of the test. The chapters follow a
 * call from its readers to its end: who shares it (C10), who must notice nothing of it (K7a), what its answer means for the
 * copies of others (C4), what if its leader, the store, its readers or Redis fail it, and what operators see of it.
 */
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { workspaceSetOf } from '../../../src/cache/address.ts';
import type { Reader } from '../../../src/cache/reader.ts';
import { recordRequest } from '../../../src/cache/request.ts';
import { RedisTimeoutError } from '../../../src/redis/errors.ts';
import { RedisWait } from '../../../src/redis/request-wait.ts';
import { StoreError } from '../../../src/upstream/store-error.ts';
import { aReader, aTask, FlightWorld, LEASE_MS, MAX_WAIT_MS, REQUEST } from '../../support/flight-world.ts';
import { anEvaluation } from '../../support/records.ts';

const A = '11111111-1111-4111-8111-111111111111';
const B = '22222222-2222-4222-8222-222222222222';
const C = '33333333-3333-4333-8333-333333333333';
const SECOND = 1000;
const STALE_MS = 20 * 60 * SECOND;
const NOT_FOUND_MS = 15 * SECOND;
const FRESH_MS = 300 * SECOND;
const DOWN = new StoreError('unreachable', 'the store is down', { retryAfterMs: 7000 });
/** A copy is never fresh, and usable for 1.5 s if the store fails. */
const SOON_OVER = { freshMs: 0, staleMs: 0, errorMs: 1500 };
const ALL_ZERO = { freshMs: 0, staleMs: 0, errorMs: 0 };

type Process = ReturnType<FlightWorld['process']>;

let world: FlightWorld;
let here: Process;
let there: Process;
beforeEach(() => {
  world = new FlightWorld();
  [here, there] = [world.process(), world.process()];
});

const recordSchema = z.object({ title: z.string() });

/** A read, and what it has come to so far: the title of the record, `none`, or the kind of the error. */
function read(process: Process, reader: Reader) {
  const seen = { what: 'waits', outcome: '', isKept: false };
  void process.cache.read(REQUEST, reader).then(
    ({ entry, outcome, isKept }) => {
      const what = entry.answer.kind === 'found' ? recordSchema.parse(entry.answer.record).title : 'none';
      return Object.assign(seen, { what, outcome, isKept });
    },
    (error: unknown) => Object.assign(seen, { what: error instanceof StoreError ? error.kind : 'a bug' }),
  );
  return seen;
}

/** Reads by several, and the call that the last of them caused. */
async function readAll(...reads: readonly (readonly [Process, Reader])[]) {
  const seen = reads.map(([process, reader]) => read(process, reader));
  await world.settle();
  return seen;
}

async function fill(process: Process, workspaceId: string, title = 'Old'): Promise<void> {
  const [seen] = await readAll([process, aReader(workspaceId)]);
  await world.calls.at(-1)?.found(workspaceId, title);
  expect(seen?.what).toBe(title);
}

const copyIn = ({ memory }: Process, owner: string) => memory.peek({ key: REQUEST.key, owner });

function hasNegative({ memory }: Process, workspaceIds: readonly string[]): boolean {
  return memory.inspect(REQUEST.key, workspaceSetOf({ workspaceIds })).negative !== null;
}

const whats = (reads: readonly { readonly what: string }[]): readonly string[] => reads.map(({ what }) => what);

describe('C10: how many calls', () => {
  test('a thousand cold readers of one set, in two processes, cost one call', async () => {
    const reads = await readAll(
      ...Array.from({ length: 1000 }, (_, i) => [i % 2 === 0 ? here : there, aReader(A)] as const),
    );
    expect(world.calls).toHaveLength(1);
    await world.calls[0]?.found(A);
    // They go on in batches, a turn of the event loop each.
    await expect.poll(() => new Set(whats(reads))).toEqual(new Set(['A title']));
    expect(reads.filter(({ outcome }) => outcome === 'miss')).toHaveLength(1);
    expect(reads.filter(({ outcome }) => outcome === 'collapsed')).toHaveLength(999);
    expect(world.calls).toHaveLength(1);
  });

  test('a set is the same in any order, and with repeats', async () => {
    await readAll([here, aReader(A, B)], [here, aReader(B, A)], [there, aReader(B, A, B)]);
    expect(world.calls).toHaveLength(1);
  });

  test('cold readers of three sets cost three calls, in one process or in two, with Redis or without', async () => {
    const alone = world.process({ alone: true });
    for (const [one, other] of [
      [here, here],
      [here, there],
      [alone, alone],
    ] as const) {
      world.calls.splice(0);
      world.redis.leases.clear();
      const reads = await readAll([one, aReader(A)], [other, aReader(B)], [one, aReader(A, B)], [other, aReader(A)]);
      expect(world.calls).toHaveLength(3);
      for (const call of world.calls) await call.found(A);
      expect(whats(reads)).toEqual(['A title', 'none', 'A title', 'A title']);
      world.redis.copies.clear();
      for (const { memory } of [one, other]) memory.purge(() => true);
      world.redis.negatives.clear();
    }
  });

  test('a stale copy is renewed once for all sets that may see it, in all processes', async () => {
    await fill(here, A);
    await fill(there, A).catch(() => undefined);
    world.calls.splice(0);
    await world.time.advance(STALE_MS);
    const reads = await readAll([here, aReader(A)], [here, aReader(A, B)], [there, aReader(B, A)], [there, aReader(A)]);
    expect(whats(reads)).toEqual(['Old', 'Old', 'Old', 'Old']);
    expect(world.calls).toHaveLength(1);
    expect(world.calls[0]?.ifNoneMatch).toBe('"1"');
    await world.calls[0]?.found(A, 'New');
    expect(whats(await readAll([here, aReader(A, B)], [there, aReader(A)]))).toEqual(['New', 'New']);
    expect(world.calls).toHaveLength(1);
  });

  test('a renewal that readers wait for is one for all sets, too', async () => {
    await fill(here, A);
    await world.time.advance(3 * 3600 * SECOND);
    world.calls.splice(0);
    const reads = await readAll([here, aReader(A)], [there, aReader(A, B)]);
    expect(world.calls).toHaveLength(1);
    await world.calls[0]?.found(A, 'New');
    expect(whats(reads)).toEqual(['New', 'New']);
  });

  test('a copy past its error time, or purged, is none: each set asks for itself', async () => {
    await fill(here, A);
    await world.time.advance(26 * 3600 * SECOND);
    await readAll([here, aReader(A)], [here, aReader(A, B)]);
    expect(world.calls).toHaveLength(3);
    await world.calls[1]?.found(A);
    await world.calls[2]?.found(A);
    await world.purges.purge(['all'], 'hard');
    await readAll([here, aReader(A)], [here, aReader(A, B)]);
    expect(world.calls).toHaveLength(5);
  });

  test('a copy that came into memory since the reader looked is served without a lease', async () => {
    await fill(here, A);
    const asked = here.shared.asked.length;
    expect((await here.flights.join(aTask(A), null).result).from).toBe('memory');
    expect(here.shared.asked).toHaveLength(asked);
  });
});

describe('K7a: nothing of another set is noticed', () => {
  test('a stranger neither joins nor waits for the owner, and takes nothing from it', async () => {
    const [owner] = await readAll([here, aReader(A)]);
    const [stranger] = await readAll([here, aReader(B)]);
    expect(world.calls).toHaveLength(2);
    await world.calls[1]?.found(A);
    expect([owner?.what, stranger?.what]).toEqual(['waits', 'none']);
    await world.calls[0]?.found(A);
    expect(owner).toMatchObject({ what: 'A title', outcome: 'miss', isKept: true });
    expect(
      whats(await readAll([here, aReader(A)], [there, aReader(A)], [here, aReader(B)], [there, aReader(B)])),
    ).toEqual(['A title', 'A title', 'none', 'none']);
    const third = world.process();
    expect(whats(await readAll([third, aReader(B)], [third, aReader(A)]))).toEqual(['none', 'A title']);
    expect(world.calls).toHaveLength(2);
  });

  test('an absent answer and a foreign one leave the same: to readers of the set, and to others', async () => {
    const left: unknown[] = [];
    for (const kind of ['absent', 'foreign'] as const) {
      world = new FlightWorld();
      [here, there] = [world.process(), world.process()];
      const steps: unknown[] = [];
      const step = async (process: Process, ...workspaceIds: string[]): Promise<void> => {
        const before = world.calls.length;
        const [seen] = await readAll([process, aReader(...workspaceIds)]);
        for (const call of world.calls.slice(before)) await (kind === 'absent' ? call.absent() : call.found(C));
        await world.time.advance(1);
        const isInMemory = hasNegative(process, workspaceIds);
        steps.push([seen, world.calls.length - before, isInMemory, hasNegative(there, [B])]);
      };
      for (const process of [there, here, there]) {
        for (const set of [[B], [A], [A, B]]) await step(process, ...set);
      }
      left.push(steps);
    }
    expect(left[0]).toEqual(left[1]);
  });

  test('two sets at once, whose answers come in the other order, each keep that there is none', async () => {
    for (const process of [here, world.process({ alone: true })]) {
      world.calls.splice(0);
      await readAll([process, aReader(A)]);
      await world.time.advance(1);
      await readAll([process, aReader(B)]);
      await world.calls[1]?.absent();
      await world.calls[0]?.absent();
      expect(whats(await readAll([process, aReader(A)], [process, aReader(B)]))).toEqual(['none', 'none']);
      expect(world.calls).toHaveLength(2);
    }
  });

  test('an older answer never takes the place of a newer one', async () => {
    const alone = world.process({ alone: true });
    for (const [process, other] of [
      [here, here],
      [world.process(), world.process()],
      [alone, alone],
    ] as const) {
      world.calls.splice(0);
      world.redis.copies.clear();
      const [older] = await readAll([process, aReader(A)]);
      await world.time.advance(1);
      await readAll([other, aReader(A, B)]);
      await world.calls[1]?.found(A, 'Newer');
      await world.calls[0]?.found(A, 'Older');
      expect(older).toMatchObject({ what: 'Older', isKept: false });
      expect(whats(await readAll([process, aReader(A)], [other, aReader(A, B)]))).toEqual(['Newer', 'Newer']);
    }
  });

  test('but an older answer stays if the newer one was purged', async () => {
    const alone = world.process({ alone: true });
    await readAll([alone, aReader(A)]);
    await world.time.advance(1);
    await readAll([alone, aReader(A, B)]);
    await world.calls[1]?.answer({
      ...anEvaluation({ _id: 'ev_1', workspaceId: A }),
      scorecardRef: { id: 'sc_9', name: '' },
    });
    await world.purges.purge(['scorecard:sc_9'], 'hard');
    await world.calls[0]?.found(A, 'Older');
    expect(whats(await readAll([alone, aReader(A)]))).toEqual(['Older']);
    expect(world.calls).toHaveLength(2);
  });

  test('C4: a stranger to whom the store names the record its own takes nothing from the copy of others', async () => {
    await fill(here, A);
    await readAll([here, aReader(B)]);
    await world.calls.at(-1)?.found(A);
    expect(whats(await readAll([here, aReader(A)], [there, aReader(A)]))).toEqual(['Old', 'Old']);
    expect(world.calls).toHaveLength(2);
  });

  test('a malformed record of others is none; to its owner it is a failure', async () => {
    const [owner, stranger] = await readAll([here, aReader(A)], [here, aReader(B)]);
    for (const call of world.calls) await call.answer({ ...anEvaluation({ workspaceId: A }), title: 7 });
    expect([owner?.what, stranger?.what]).toEqual(['malformed', 'none']);
    expect(whats(await readAll([there, aReader(B)]))).toEqual(['none']);
    expect(world.calls).toHaveLength(2);
  });

  test('a record of the reader that another process stores ends what it knew of there being none; a stranger still knows', async () => {
    await readAll([there, aReader(A)], [there, aReader(B)]);
    for (const call of world.calls) await call.absent();
    await world.time.advance(SECOND);
    const [both] = await readAll([here, aReader(A, C)]);
    await world.calls.at(-1)?.found(A);
    expect(both?.what).toBe('A title');
    expect(hasNegative(there, [A])).toBe(false);
    expect(hasNegative(there, [B])).toBe(true);
    expect(whats(await readAll([there, aReader(A)], [there, aReader(B)]))).toEqual(['A title', 'none']);
    expect(world.calls).toHaveLength(3);
  });
});

describe('a renewal whose answer is not for all who wait for it', () => {
  test('the record is gone: every set that waits learns it, by calls of their own', async () => {
    await fill(here, A);
    await world.time.advance(3 * 3600 * SECOND);
    world.calls.splice(0);
    const reads = await readAll([here, aReader(A)], [here, aReader(A, B)]);
    await world.calls[0]?.absent();
    expect(whats(reads)).toEqual(['none', 'waits']);
    await world.calls[1]?.absent();
    expect(whats(reads)).toEqual(['none', 'none']);
  });

  test.each([
    ['remembered', {}],
    ['not remembered', { notFound: ALL_ZERO }],
  ])('C4: the record is said to be of others (%s): the copy is served to nobody any more', async (_what, ttl) => {
    Object.assign(world.ttl, ttl);
    await fill(here, A);
    await fill(there, A).catch(() => undefined);
    await world.time.advance(3 * 3600 * SECOND);
    world.calls.splice(0);
    const reads = await readAll([here, aReader(A)], [here, aReader(A, B)], [there, aReader(A)]);
    for (let i = 0; i < world.calls.length; i += 1) await world.calls[i]?.found(C);
    expect(whats(reads)).toEqual(['none', 'none', 'none']);
    await readAll([here, aReader(A)], [here, aReader(A, C)], [there, aReader(A)]);
    for (const call of world.calls) await call.fail(DOWN);
    expect([copyIn(here, A), world.redis.copyOf(A)]).toEqual([undefined, undefined]);
  });

  test('C4: a refresh behind a stale copy ends it for all who may see it, everywhere', async () => {
    await fill(here, A);
    await readAll([there, aReader(A)]);
    await world.time.advance(STALE_MS);
    expect(whats(await readAll([here, aReader(A, B)]))).toEqual(['Old']);
    await world.calls[1]?.found(C);
    const reads = await readAll([here, aReader(A)], [there, aReader(A)], [there, aReader(A, B)]);
    for (const call of world.calls.slice(2)) await call.found(C);
    expect(whats(reads)).toEqual(['none', 'none', 'none']);
  });

  test('it failed on a record that only some see: the others, whose copy is over by then, find none', async () => {
    world.ttl.evaluation = SOON_OVER;
    await fill(here, A);
    await world.time.advance(SECOND);
    const reads = await readAll([here, aReader(A, B)], [here, aReader(A)]);
    await world.time.advance(SECOND);
    for (let i = 1; i <= 2; i += 1) await world.calls[i]?.answer({ ...anEvaluation({ workspaceId: B }), title: 7 });
    expect(whats(reads)).toEqual(['malformed', 'none']);
    expect(world.calls).toHaveLength(3);
  });

  test('the record has moved to a workspace that only some see', async () => {
    await fill(here, A);
    await world.time.advance(3 * 3600 * SECOND);
    world.calls.splice(0);
    const reads = await readAll([here, aReader(A, B)], [here, aReader(A)]);
    await world.calls[0]?.found(B, 'Moved');
    // It was a renewal of A's copy: those who may see B's too look again.
    expect(whats(reads)).toEqual(['waits', 'none']);
    await world.calls[1]?.found(B, 'Moved');
    expect(whats(reads)).toEqual(['Moved', 'none']);
    expect(world.calls).toHaveLength(2);
  });
});

describe('C4: nothing outlives what the store says', () => {
  test.each([
    ['with Redis', false],
    ['without', true],
  ])('an answer from before the end of a copy files nothing, %s', async (_what, alone) => {
    for (const end of ['absent', 'moved'] as const) {
      world = new FlightWorld();
      const process = world.process({ alone });
      const [older] = await readAll([process, aReader(A)]);
      await world.time.advance(1);
      await readAll([process, aReader(A, B)]);
      await (end === 'absent' ? world.calls[1]?.absent() : world.calls[1]?.found(B, 'Moved'));
      await world.calls[0]?.found(A, 'Older');
      expect(older).toMatchObject({ what: 'Older', isKept: false });
      expect([copyIn(process, A), world.redis.copyOf(A)]).toEqual([undefined, undefined]);
      await readAll([process, aReader(A)]);
      expect(world.calls).toHaveLength(3);
    }
  });

  test('a copy that has ended is dropped in every process before the answer is given', async () => {
    await fill(here, A);
    await readAll([there, aReader(A)]);
    expect(copyIn(there, A)).toBeDefined();
    await world.time.advance(3 * 3600 * SECOND);
    const [seen] = await readAll([here, aReader(A, B)]);
    await world.calls[1]?.found(B, 'Moved');
    expect(copyIn(there, A)).toBeUndefined();
    // The renewal was of A's copy; what is B's is a call of its own.
    await world.calls[2]?.found(B, 'Moved');
    expect(seen?.what).toBe('Moved');
  });

  test('a copy that only memory still had ends when it was to be renewed, and Redis knows that there is none', async () => {
    await fill(here, A);
    world.redis.copies.clear();
    await world.time.advance(3 * 3600 * SECOND);
    await readAll([there, aReader(A)]);
    await world.calls[1]?.absent();
    expect(copyIn(here, A)).toBeDefined();
    const [seen] = await readAll([here, aReader(A, B)]);
    expect(copyIn(here, A)).toBeUndefined();
    // A call of its own fetches B's record.
    await world.calls[2]?.found(B, 'Moved');
    expect(seen?.what).toBe('Moved');
  });

  test('C9: a copy from the future ends too', async () => {
    await world.time.advance(10 * SECOND);
    await fill(here, A);
    await readAll([there, aReader(A)]);
    world.time.setBack(10 * SECOND);
    await readAll([here, aReader(A)]);
    await world.calls[1]?.absent();
    expect([copyIn(here, A), copyIn(there, A)]).toEqual([undefined, undefined]);
    expect(whats(await readAll([here, aReader(A)], [there, aReader(A)]))).toEqual(['none', 'none']);
  });

  test('if the journal can not be reached, that is reported, and the answer given', async () => {
    await fill(here, A);
    await world.time.advance(3 * 3600 * SECOND);
    world.journalFails = true;
    const [seen] = await readAll([here, aReader(A)]);
    await world.calls[1]?.absent();
    expect(seen?.what).toBe('none');
    expect(here.seen).toContainEqual(expect.objectContaining({ event: 'shared-failed', operation: 'moved' }));
  });

  test('what readers of others learn ends no copy', async () => {
    await fill(here, A);
    await world.time.advance(SECOND);
    await readAll([here, aReader(B)], [there, aReader(C)]);
    await world.calls[1]?.found(B, 'Moved');
    await world.calls[2]?.absent();
    expect(whats(await readAll([here, aReader(A)], [there, aReader(A)]))).toEqual(['Old', 'Old']);
  });

  test('absence is remembered for its time', async () => {
    await readAll([here, aReader(B)]);
    await world.calls[0]?.absent();
    await world.time.advance(NOT_FOUND_MS);
    await readAll([here, aReader(B)]);
    expect(world.calls).toHaveLength(2);
  });
});

describe('leaders that do not end as they should', () => {
  test('a dead leader: its lease lapses, one follower takes over, the others follow it', async () => {
    await readAll([here, aReader(A)]);
    here.shared.isPaused = true;
    const third = world.process();
    const reads = await readAll([there, aReader(A)], [third, aReader(A)]);
    await world.time.advance(LEASE_MS - 1);
    expect(world.calls).toHaveLength(1);
    await world.time.advance(SECOND);
    expect(world.calls).toHaveLength(2);
    await world.calls[1]?.found(A);
    await world.time.advance(0);
    expect(whats(reads)).toEqual(['A title', 'A title']);
    expect(world.calls).toHaveLength(2);
    expect(
      [...there.seen, ...third.seen]
        .filter(({ event }) => event === 'wait')
        .map(({ end }) => String(end))
        .toSorted(),
    ).toEqual(['stored', 'taken-over']);
  });

  test('a paused leader overwrites nothing, and keeps nothing', async () => {
    const [paused] = await readAll([here, aReader(A)]);
    here.shared.isPaused = true;
    await world.time.advance(LEASE_MS + 1);
    const [other] = await readAll([there, aReader(A)]);
    await world.calls[1]?.found(A, 'Newer');
    expect(other?.what).toBe('Newer');
    here.shared.isPaused = false;
    await world.calls[0]?.found(A, 'Older');
    expect(paused).toMatchObject({ what: 'Older', isKept: false });
    expect(whats(await readAll([here, aReader(A)], [there, aReader(A)]))).toEqual(['Newer', 'Newer']);
  });

  test('a paused leader whose lease lapsed, and nobody came, keeps nothing either', async () => {
    await readAll([here, aReader(A)]);
    here.shared.isPaused = true;
    await world.time.advance(LEASE_MS + 1);
    await world.calls[0]?.found(A);
    expect(world.redis.copies.size).toBe(0);
    expect(copyIn(here, A)).toBeUndefined();
  });

  test('a leader that lives is followed for as long as it renews its lease', async () => {
    await readAll([here, aReader(A)]);
    const [follower] = await readAll([there, aReader(A)]);
    await world.time.advance(5 * LEASE_MS);
    expect(world.calls).toHaveLength(1);
    await world.calls[0]?.found(A);
    expect(follower).toMatchObject({ what: 'A title', outcome: 'collapsed' });
  });

  test('a message that is lost costs a quarter of a second', async () => {
    await readAll([here, aReader(A)]);
    const [follower] = await readAll([there, aReader(A)]);
    there.shared.isPaused = true;
    await world.calls[0]?.found(A);
    expect(follower?.what).toBe('waits');
    await world.time.advance(250);
    expect(follower).toMatchObject({ what: 'A title', outcome: 'collapsed' });
    expect(world.calls).toHaveLength(1);
  });

  test('an end that comes while the refusal of the lease is on its way is not missed', async () => {
    await readAll([here, aReader(A)]);
    there.shared.answers = [];
    const [follower] = await readAll([there, aReader(A)]);
    await world.calls[0]?.found(A);
    for (const { arrive } of there.shared.answers.splice(0)) arrive();
    there.shared.answers = null;
    await world.settle();
    expect(follower).toMatchObject({ what: 'A title', outcome: 'collapsed' });
  });

  test('a reader who comes when the end of a renewal elsewhere is known has not waited for the store', async () => {
    await fill(here, A);
    await readAll([there, aReader(A)]);
    await world.time.advance(FRESH_MS + SECOND);
    await readAll([here, aReader(A)], [there, aReader(A)]);
    there.shared.answers = [];
    await world.calls.at(-1)?.found(A, 'New');
    await world.time.advance(1);
    const [late] = await readAll([there, aReader(A)]);
    expect(late?.what).toBe('waits');
    for (const { arrive } of there.shared.answers.splice(0)) arrive();
    there.shared.answers = null;
    await world.settle();
    expect(late).toMatchObject({ what: 'New', outcome: 'hit' });
    expect(world.calls).toHaveLength(2);
  });

  test('an answer that came between the look and the lease is found with the question for it', async () => {
    await readAll([here, aReader(A)]);
    there.shared.looks = [];
    const [late] = await readAll([there, aReader(A)]);
    await world.calls[0]?.found(A);
    for (const { go } of there.shared.looks) go();
    await world.settle();
    expect(late).toMatchObject({ what: 'A title', outcome: 'hit' });
    expect(world.calls).toHaveLength(1);
  });

  test('waiters share the answer even if a class is never fresh', async () => {
    world.ttl.evaluation = ALL_ZERO;
    world.ttl.notFound = ALL_ZERO;
    for (const end of ['found', 'absent'] as const) {
      world.calls.splice(0);
      await world.time.advance(1);
      const reads = await readAll([here, aReader(A)], [here, aReader(A)], [there, aReader(A)]);
      await (end === 'found' ? world.calls[0]?.found(A) : world.calls[0]?.absent());
      const what = end === 'found' ? 'A title' : 'none';
      expect(whats(reads)).toEqual([what, what, what]);
      expect(world.calls).toHaveLength(1);
    }
  });
});

describe('failures', () => {
  test('one failure is the answer to all of the set who wait, and to who comes within a second, everywhere', async () => {
    const reads = await readAll([here, aReader(A)], [here, aReader(A)], [there, aReader(A)]);
    await world.calls[0]?.fail(DOWN);
    expect(whats(reads)).toEqual(['unreachable', 'unreachable', 'unreachable']);
    await world.time.advance(SECOND - 1);
    const third = world.process();
    expect(whats(await readAll([here, aReader(A)], [there, aReader(A)], [third, aReader(A)]))).toEqual([
      'unreachable',
      'unreachable',
      'unreachable',
    ]);
    expect(world.calls).toHaveLength(1);
    await world.time.advance(SECOND);
    await readAll([here, aReader(A)]);
    expect(world.calls).toHaveLength(2);
  });

  test('C9: it is not remembered again because the clock was set back', async () => {
    const alone = world.process({ alone: true });
    await readAll([alone, aReader(A)]);
    await world.calls[0]?.fail(DOWN);
    world.time.setBack(5 * SECOND);
    await world.time.advance(5 * SECOND);
    await readAll([alone, aReader(A)]);
    expect(world.calls).toHaveLength(2);
  });

  test('it is remembered for its set alone', async () => {
    await readAll([here, aReader(A)]);
    await world.calls[0]?.fail(DOWN);
    await readAll([here, aReader(B)], [there, aReader(A, B)]);
    expect(world.calls).toHaveLength(3);
  });

  test('a renewal that failed is not tried anew for a second, by any set', async () => {
    await fill(here, A);
    await world.time.advance(STALE_MS);
    await readAll([here, aReader(A)]);
    await world.calls[1]?.fail(DOWN);
    expect(whats(await readAll([here, aReader(A, B)], [there, aReader(A)], [there, aReader(A, B)]))).toEqual([
      'Old',
      'Old',
      'Old',
    ]);
    expect(world.calls).toHaveLength(2);
    expect(here.seen.filter(({ event }) => event === 'refresh-failed')).toHaveLength(1);
  });

  test.each(['overloaded', 'suspended', 'paused', 'aborted', 'internal'] as const)(
    'a failure of this process alone (%s) keeps no other from a call of its own',
    async (kind) => {
      const reads = await readAll([here, aReader(A)], [there, aReader(A)]);
      await world.calls[0]?.fail(new StoreError(kind, 'not the store'));
      expect(whats(reads)).toEqual([kind, 'waits']);
      expect(world.calls).toHaveLength(2);
      await world.calls[1]?.found(A);
      expect(whats(reads)).toEqual([kind, 'A title']);
    },
  );

  test.each([
    ['overloaded', true],
    ['paused', false],
    ['aborted', false],
  ] as const)('%s is remembered here: %s', async (kind, isRemembered) => {
    await readAll([here, aReader(A)]);
    await world.calls[0]?.fail(new StoreError(kind, 'it was not sent'));
    await readAll([here, aReader(A)]);
    expect(world.calls).toHaveLength(isRemembered ? 1 : 2);
  });
});

/** Here is a stale copy, which a reader has been given while it is renewed. */
async function renewBehindReader(): Promise<void> {
  await fill(here, A);
  await world.time.advance(STALE_MS);
  expect(whats(await readAll([here, aReader(A)]))).toEqual(['Old']);
  expect(world.calls[1]?.isUrgent).toBe(false);
}

async function change(): Promise<void> {
  const about = { isCreated: false, isDeleted: false, previousWorkspace: null, etags: {}, shown: null };
  const changes = [{ tag: 'evaluation:ev_1', workspace: A, kinds: ['evaluation'], ...about }];
  const how = { mode: 'soft', isAnnounced: true, atMs: world.time.nowMs() } as const;
  await world.journal.append({ kind: 'changes', ...how, changes, lists: [] });
}

describe('C11: a copy from before a change, and a store that is well', () => {
  const GIVEN_UP = new StoreError('overloaded', 'it had waited long enough', { isGivenUp: true });
  const FULL = new StoreError('overloaded', 'as many wait as may');

  test('a renewal that is given up in the queue, because nobody waits for it, is made anew for those who have joined it', async () => {
    await renewBehindReader();
    await change();
    const reads = await readAll([here, aReader(A)], [here, aReader(A, B)]);
    await world.calls[1]?.fail(GIVEN_UP);
    expect(whats(reads)).toEqual(['waits', 'waits']);
    expect(world.calls.map(({ isUrgent }) => isUrgent)).toEqual([false, false, true]);
    await world.calls[2]?.found(A, 'New');
    expect(whats(reads)).toEqual(['New', 'New']);
  });

  test('nor does it keep those who come within a second from a call', async () => {
    await renewBehindReader();
    await world.calls[1]?.fail(GIVEN_UP);
    await change();
    const reads = await readAll([here, aReader(A)]);
    await world.calls[2]?.found(A, 'New');
    expect(whats(reads)).toEqual(['New']);
  });

  test('they get the old copy if their own call finds the queue full, all for one call', async () => {
    await fill(here, A);
    await change();
    const reads = await readAll([here, aReader(A)], [here, aReader(A)]);
    await world.calls[1]?.fail(FULL);
    reads.push(...(await readAll([here, aReader(A)])));
    expect(reads).toMatchObject(reads.map(() => ({ what: 'Old', outcome: 'changed' })));
    expect(world.calls).toHaveLength(2);
  });
});

describe('deadlines', () => {
  test('a call without an end ends after the longest wait, for all who wait, and its lease with it', async () => {
    const reads = await readAll([here, aReader(A)], [here, aReader(A)], [there, aReader(A)]);
    await world.time.advance(MAX_WAIT_MS - 1);
    expect(whats(reads)).toEqual(['waits', 'waits', 'waits']);
    await world.time.advance(1);
    expect(whats(reads)).toEqual(['timeout', 'timeout', 'timeout']);
    expect(world.redis.leases.size).toBe(0);
    await world.time.advance(SECOND);
    await readAll([here, aReader(A)]);
    expect(world.calls).toHaveLength(2);
  });

  test('the lease of a part ends in time, though its evaluation is still asked whose it is', async () => {
    const request = recordRequest('transcript', 'ev_1');
    here.flights.join({ ...aTask(A), request }, null).result.catch(() => {});
    await vi.waitFor(() => expect(world.calls).toHaveLength(1));
    await world.time.advance(SECOND);
    await world.calls[0]?.answer({});
    await vi.waitFor(() => expect(world.calls).toHaveLength(2));
    await world.time.advance(MAX_WAIT_MS - SECOND);
    await vi.waitFor(() => expect([...world.redis.leases.keys()]).toEqual([`${REQUEST.key} ${A}`]));
  });

  test('who has a copy that is over after that second waits on', async () => {
    world.ttl.evaluation = SOON_OVER;
    await fill(here, A);
    await world.time.advance(SECOND);
    const [seen] = await readAll([here, aReader(A)]);
    await world.time.advance(SECOND);
    expect(seen?.what).toBe('waits');
    await world.calls[1]?.found(A, 'New');
    expect(seen?.what).toBe('New');
  });

  test('a flight that has ended is not late any more', async () => {
    const { result, signal } = here.flights.join(aTask(A), null);
    await world.settle();
    await world.calls[0]?.found(A);
    await result;
    await world.time.advance(MAX_WAIT_MS);
    expect(signal.aborted).toBe(false);
  });

  test('C9: who has a copy waits no longer because the clock was set back', async () => {
    await fill(here, A);
    await world.time.advance(3 * 3600 * SECOND);
    await readAll([here, aReader(A)]);
    world.time.setBack(5 * SECOND);
    const [second] = await readAll([here, aReader(A)]);
    await world.time.advance(SECOND);
    expect(second?.what).toBe('Old');
  });

  test('its answer, should it come, is nobody’s', async () => {
    await readAll([here, aReader(A)]);
    await world.time.advance(MAX_WAIT_MS);
    await world.calls[0]?.found(A);
    expect(copyIn(here, A)).toBeUndefined();
    expect(world.redis.copies.size).toBe(0);
  });

  test('a follower waits no longer than that, the time of its own call included', async () => {
    await readAll([here, aReader(A)]);
    await world.time.advance(SECOND);
    const [follower] = await readAll([there, aReader(A)]);
    here.shared.isPaused = true;
    await world.time.advance(3 * SECOND);
    expect(world.calls).toHaveLength(2);
    await world.time.advance(MAX_WAIT_MS - 3 * SECOND - 1);
    expect(follower?.what).toBe('waits');
    await world.time.advance(1);
    expect(follower?.what).toBe('timeout');
  });

  test('a wait for another process that comes to nothing is reported as such', async () => {
    await readAll([here, aReader(A)]);
    // A lease that is renewed without a call that ends.
    world.redis.failures.clear();
    const [follower] = await readAll([there, aReader(A)]);
    here.shared.failing = ['fail'];
    await world.time.advance(MAX_WAIT_MS);
    expect(follower?.what).toBe('timeout');
    expect(there.seen).toContainEqual(expect.objectContaining({ event: 'wait', end: 'timeout' }));
  });

  test('C3: who has a copy waits a second, then gets it; the call goes on and renews it', async () => {
    await fill(here, A);
    await world.time.advance(3 * 3600 * SECOND);
    const [first] = await readAll([here, aReader(A)]);
    await world.time.advance(SECOND - 1);
    expect(first?.what).toBe('waits');
    await world.time.advance(1);
    expect(first).toMatchObject({ what: 'Old', outcome: 'stale-if-error' });
    const [second] = await readAll([here, aReader(A, B)]);
    await world.time.advance(0);
    expect(second?.what).toBe('Old');
    await world.calls[1]?.found(A, 'New');
    expect(whats(await readAll([here, aReader(A)]))).toEqual(['New']);
    expect(world.calls).toHaveLength(2);
  });
});

/** A reader, and what makes it leave. */
const leaver = (): { readonly reader: Reader; readonly leave: () => void } => {
  const controller = new AbortController();
  return { reader: { ...aReader(A), signal: controller.signal }, leave: () => controller.abort() };
};

describe('readers who leave', () => {
  test('the signal of a call aborts once the last of them has left, and not before', async () => {
    const [one, other] = [leaver(), leaver()];
    await readAll([here, one.reader], [here, other.reader]);
    const [call] = world.calls;
    one.leave();
    expect(call?.signal?.aborted).toBe(false);
    other.leave();
    expect(call?.signal?.aborted).toBe(true);
  });

  test('a call that was sent goes on: who comes next has its answer, and it is kept', async () => {
    const { reader, leave } = leaver();
    await readAll([here, reader]);
    leave();
    const [next] = await readAll([here, aReader(A)]);
    await world.calls[0]?.found(A);
    expect(next).toMatchObject({ what: 'A title', outcome: 'collapsed' });
    expect(world.calls).toHaveLength(1);
    expect(world.redis.copies.size).toBe(1);
  });

  test('a call that was not sent fails nobody who came since: they make another', async () => {
    const { reader, leave } = leaver();
    const [gone] = await readAll([here, reader]);
    leave();
    const [next] = await readAll([here, aReader(A)]);
    await world.calls[0]?.fail(new StoreError('aborted', 'nobody waits'));
    expect([gone?.what, next?.what]).toEqual(['aborted', 'waits']);
    expect(world.calls).toHaveLength(2);
    await world.calls[1]?.found(A);
    expect(next?.what).toBe('A title');
  });

  test('a gateway that stops aborts its calls once, and begins none anew', async () => {
    const reads = await readAll([here, leaver().reader], [here, aReader(A)]);
    await world.calls[0]?.fail(new StoreError('aborted', 'the gateway stops'));
    expect(whats(reads)).toEqual(['aborted', 'aborted']);
    expect(world.calls).toHaveLength(1);
  });

  test('who waits for another process and leaves asks for nothing any more', async () => {
    await readAll([here, aReader(A)]);
    const { reader, leave } = leaver();
    const [follower] = await readAll([there, reader]);
    leave();
    await world.time.advance(250);
    expect(follower?.what).toBe('aborted');
    const asked = there.shared.asked.length;
    await world.time.advance(MAX_WAIT_MS);
    expect(there.shared.asked).toHaveLength(asked);
    expect(world.calls).toHaveLength(1);
  });

  test('a reader who has left before the flight begins causes no call', async () => {
    const { reader, leave } = leaver();
    leave();
    expect(whats(await readAll([here, reader]))).toEqual(['aborted']);
    expect(world.calls).toHaveLength(0);
  });

  test('a renewal is of use though its readers leave', async () => {
    await fill(here, A);
    await world.time.advance(3 * 3600 * SECOND);
    const { reader, leave } = leaver();
    await readAll([here, reader]);
    leave();
    expect(world.calls[1]?.signal?.aborted).toBe(false);
  });
});

describe('purges', () => {
  test('an answer that was asked for before a purge answers nobody who came after it', async () => {
    const [before] = await readAll([here, aReader(A)]);
    await world.purges.purge(['evaluation:ev_1'], 'hard');
    await world.time.advance(1);
    const reads = await readAll([here, aReader(A)], [there, aReader(A)]);
    await world.calls[0]?.found(A, 'Old');
    expect(before).toMatchObject({ what: 'Old', isKept: false });
    expect(whats(reads)).toEqual(['waits', 'waits']);
    await world.calls[1]?.found(A, 'New');
    expect(whats(reads)).toEqual(['New', 'New']);
    expect(world.calls).toHaveLength(2);
  });

  test('a negative entry too', async () => {
    await readAll([here, aReader(B)]);
    await world.purges.purge(['class:notFound'], 'hard');
    const [after] = await readAll([here, aReader(B)]);
    await world.calls[0]?.absent();
    expect(after?.what).toBe('waits');
    await world.calls[1]?.found(B);
    expect(after?.what).toBe('A title');
  });

  test('a copy that was purged while a flight waited for the lease is no base to renew on', async () => {
    await fill(here, A);
    await world.time.advance(STALE_MS);
    here.shared.looks = [];
    await readAll([here, aReader(A)]);
    await world.purges.purge(['all'], 'hard');
    for (const { go } of here.shared.looks) go();
    await world.settle();
    expect(world.calls[1]).toMatchObject({ ifNoneMatch: undefined });
  });

  test('an answer from before a purge that is forgotten by now is not kept', async () => {
    const alone = world.process({ alone: true });
    const [seen] = await readAll([alone, aReader(A)]);
    await world.purges.purge(['evaluation:ev_1'], 'hard');
    await world.purges.forget(world.purges.position.sequence);
    await world.calls[0]?.found(A);
    expect(seen).toMatchObject({ what: 'A title', isKept: false });
    expect(copyIn(alone, A)).toBeUndefined();
  });

  test('after a purge a copy of the same millisecond is seen', async () => {
    await fill(here, A);
    await world.purges.purge(['all'], 'hard');
    const [other] = await readAll([there, aReader(A)]);
    await world.calls[1]?.found(A, 'New');
    expect(other?.what).toBe('New');
    expect(whats(await readAll([here, aReader(A)]))).toEqual(['New']);
    expect(world.calls).toHaveLength(2);
  });
});

describe('Redis fails', () => {
  test.each(['look', 'complete', 'fail', 'release', 'backfill'])(
    'at %s: the reader is answered, and it is reported',
    async (operation) => {
      here.shared.failing = [operation];
      const [found] = await readAll([here, aReader(A)]);
      await world.calls[0]?.found(A);
      expect(found).toMatchObject({ what: 'A title', isKept: true });
      expect(whats(await readAll([here, aReader(A)]))).toEqual(['A title']);
      const [failed, unsent] = await readAll([here, aReader(B)], [here, aReader(A, B, A)]);
      await world.calls[1]?.fail(DOWN);
      expect([failed?.what, unsent?.what]).toEqual(['unreachable', 'A title']);
      const isSilent = operation === 'release' || operation === 'backfill';
      expect(here.seen.some(({ event }) => event === 'shared-failed')).toBe(!isSilent);
    },
  );

  test('an older copy that it still holds does not take the place of the one in memory', async () => {
    await fill(here, A);
    await world.time.advance(3 * 3600 * SECOND);
    here.shared.failing = ['complete'];
    await fill(here, A, 'New');
    world.redis.leases.clear();
    const seen: string[] = [];
    for (const failing of [[], ['look']]) {
      here.shared.failing = failing;
      await world.time.advance(3 * 3600 * SECOND);
      const reads = await readAll([here, aReader(A)]);
      await world.calls.at(-1)?.fail(DOWN);
      seen.push(...whats(reads));
    }
    expect(seen).toEqual(['New', 'New']);
  });

  test('nor an older entry that there is none', async () => {
    const seen: string[] = [];
    for (const failing of [[], ['complete'], ['look'], ['look']]) {
      here.shared.failing = failing;
      await world.time.advance(failing[0] === 'look' ? 1 : NOT_FOUND_MS);
      world.redis.leases.clear();
      const before = world.calls.length;
      const reads = await readAll([here, aReader(A)]);
      for (const call of world.calls.slice(before)) await call.found(C);
      seen.push(...whats(reads));
    }
    expect(seen).toEqual(['none', 'none', 'none', 'none']);
    expect(world.calls).toHaveLength(2);
  });

  test('each process then asks for itself', async () => {
    for (const each of [here, there]) each.shared.failing = ['look'];
    const reads = await readAll([here, aReader(A)], [there, aReader(A)]);
    expect(world.calls).toHaveLength(2);
    for (const call of world.calls) await call.found(A);
    expect(whats(reads)).toEqual(['A title', 'A title']);
    expect(world.redis.copies.size).toBe(0);
  });

  test('a lease that is granted after the reader gave up on Redis is given back', async () => {
    here.shared.looks = [];
    // It has waited so long that each answer has only a few milliseconds more.
    const reading = read(here, { ...aReader(A), redisWait: new RedisWait(0) });
    await vi.waitFor(() => expect(world.calls).toHaveLength(1));
    for (const { go } of here.shared.looks) go();
    await world.settle();
    expect(world.redis.leases.size).toBe(0);
    await world.calls[0]?.found(A);
    expect(reading.what).toBe('A title');
  });
});

/** The reader has waited for Redis as long as it may. */
class OverWait extends RedisWait {
  override within<T>(): Promise<T> {
    return Promise.reject(new RedisTimeoutError(0));
  }
}

describe('R6: readers who may not wait for Redis any more', () => {
  test('a reader that may not wait for Redis any more is answered by a call of its own', async () => {
    await fill(here, A);
    const [seen] = await readAll([there, { ...aReader(A), redisWait: new OverWait(0) }]);
    expect(world.calls).toHaveLength(2);
    await world.calls[1]?.found(A, 'New');
    expect(seen).toMatchObject({ what: 'New', outcome: 'miss' });
  });

  test('what Redis refuses after its reader gave up on Redis does not stay in memory', async () => {
    const redisWait = new RedisWait(250);
    const [late] = await readAll([here, { ...aReader(A), redisWait }]);
    here.shared.isPaused = true;
    await world.time.advance(LEASE_MS + 1);
    await readAll([there, aReader(A)]);
    await world.calls[1]?.found(A, 'Newer');
    vi.spyOn(redisWait, 'within').mockRejectedValue(new RedisTimeoutError(0));
    await world.calls[0]?.found(A, 'Older');
    expect(late?.what).toBe('Older');
    expect(copyIn(here, A)).toBeUndefined();
    here.shared.isPaused = false;
    expect(whats(await readAll([here, aReader(A)]))).toEqual(['Newer']);
  });

  test('a refresh that nobody waits for is not bound by how long its reader may wait for Redis', async () => {
    await fill(here, A);
    await world.time.advance(STALE_MS);
    here.shared.looks = [];
    await readAll([here, { ...aReader(A), redisWait: new OverWait(0) }]);
    expect(world.calls).toHaveLength(1);
    for (const { go } of here.shared.looks) go();
    await world.settle();
    await world.calls[1]?.found(A, 'New');
    expect(whats(await readAll([there, aReader(A)]))).toEqual(['New']);
  });
});

describe('what operators see', () => {
  test('the flights of a key, and those of one set; failures for a second', async () => {
    const [atMs, { key }] = [world.time.nowMs(), REQUEST];
    const { result } = here.flights.join(aTask(A), null);
    result.catch(() => undefined);
    expect(here.flights.flightOf(key, null)).toEqual({ sinceMs: atMs, hasJustFailed: false });
    expect(here.flights.flightOf(key, workspaceSetOf(aReader(A)))).toEqual({ sinceMs: atMs, hasJustFailed: false });
    expect(here.flights.flightOf(key, workspaceSetOf(aReader(B)))).toEqual({ sinceMs: null, hasJustFailed: false });
    await world.settle();
    await world.calls[0]?.fail(DOWN);
    expect(here.flights.flightOf(key, null)).toEqual({ sinceMs: null, hasJustFailed: true });
    expect(here.flights.flightOf(key, workspaceSetOf(aReader(B)))).toEqual({ sinceMs: null, hasJustFailed: false });
    await world.time.advance(SECOND);
    expect(here.flights.flightOf(key, workspaceSetOf(aReader(A)))).toEqual({ sinceMs: null, hasJustFailed: false });
  });

  test('a gateway that stops learns how many of its calls have not ended in time', async () => {
    const { result } = here.flights.join(aTask(A), null);
    const [inTime, late] = [here.flights.settled(2 * SECOND), here.flights.settled(SECOND)];
    await world.time.advance(SECOND);
    expect(await late).toBe(1);
    await world.calls[0]?.found(A);
    await result;
    expect(await inTime).toBe(0);
  });
});
