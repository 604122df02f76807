import { describe, expect, test } from 'vitest';
import type { CacheHooks } from '../../../src/cache/hooks.ts';
import type { Fleet } from '../../../src/cache/ports.ts';
import { createReadThrough } from '../../../src/cache/read-through.ts';
import type { StoredEntry } from '../../../src/cache/stored.ts';
import { StoreError } from '../../../src/upstream/store.ts';
import { CONTEXT, createRig, recordOf, type Rig, TEST_TIMES } from '../../support/cache-rig.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';
import { aStoredEvaluation, keyOfEvaluation } from '../../support/stored-entry.ts';
import { storeFailure } from '../../support/counting-store.ts';
import { ManualTimers, settle } from '../../support/manual-timers.ts';
import { MemoryFleet } from '../../support/memory-fleet.ts';

const { freshMs, staleMs, errorMs } = TEST_TIMES;

/** Processes with one store, one fleet and one clock. */
function createProcesses(count: number): { fleet: MemoryFleet; processes: readonly Rig[]; first: Rig; second: Rig } {
  const timers = new ManualTimers();
  const fleet = new MemoryFleet(timers);
  const first = createRig({ fleet, timers });
  const second = createRig({ fleet, beside: first });
  const others = Array.from({ length: count - 2 }, () => createRig({ fleet, beside: first }));
  return { fleet, processes: [first, second, ...others], first, second };
}

/** A reader of the process that sees another fleet. */
function readerOver({ store, memory, times, purges, timers }: Rig, fleet: Fleet): Rig['reader'] {
  return createReadThrough({ store, memory, times, purges, timers, clock: timers.clock, fleet });
}

/** An evaluation that the process might just have fetched. */
function storedNow({ timers, purges }: Rig, title: string): StoredEntry {
  return { ...aStoredEvaluation(timers.clock.nowMs(), { title }), position: purges.position() };
}

const bodyOf = async (rig: Rig): Promise<string> => recordOf(await rig.reader.transcript('ev_1', CONTEXT)).body;

describe('one flight in the fleet', () => {
  test('a cold herd over four processes costs one call, and all get its answer', async () => {
    const { processes, first } = createProcesses(4);
    first.store.hold();
    const reads = processes.flatMap(({ reader }) =>
      Array.from({ length: 25 }, async () => await reader.transcript('ev_1', CONTEXT)),
    );
    await first.timers.advance(500);
    first.store.release();
    await first.timers.advance(0);
    const answers = await Promise.all(reads);
    expect(first.store.count()).toBe(1);
    expect(new Set(answers.map(recordOf)).size).toBe(1);
    expect(answers.filter(({ outcome }) => outcome === 'miss').length).toBe(1);
    expect(answers.filter(({ outcome }) => outcome === 'collapsed').length).toBe(99);
  });

  test('a lease is renewed as long as the fetch runs, however slow the store is', async () => {
    const { first, second } = createProcesses(2);
    first.store.hold();
    const reads = [first, second].map(bodyOf);
    await first.timers.advance(7000);
    first.store.release();
    await first.timers.advance(0);
    expect(await Promise.all(reads)).toEqual(['Sam: 1', 'Sam: 1']);
    expect(first.store.count()).toBe(1);
  });

  test('a failure is told to the waiters of all processes at once, and not tried again by each of them', async () => {
    const { processes, first } = createProcesses(4);
    first.store.hold();
    const reads = Promise.allSettled(processes.flatMap((rig) => [bodyOf(rig), bodyOf(rig)]));
    await first.timers.advance(200);
    first.store.held.splice(0).forEach(({ fail }) => fail(storeFailure('down')));
    await first.timers.advance(0);
    for (const outcome of await reads) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { kind: 'unreachable', message: 'down' } });
    }
    await first.timers.advance(900);
    for (const rig of processes) await expect(bodyOf(rig)).rejects.toMatchObject({ kind: 'unreachable' });
    expect(first.store.count()).toBe(1);
  });

  test('another process that comes within 1 s of a failure is told of it without a call', async () => {
    const { first, second } = createProcesses(2);
    first.store.failure = storeFailure('down');
    await expect(bodyOf(first)).rejects.toMatchObject({ message: 'down' });
    await expect(bodyOf(second)).rejects.toMatchObject({ message: 'down' });
    expect(first.store.count()).toBe(1);
  });

  test('a call that is given up because nobody waits in its process is made by another process where one waits', async () => {
    const { first, second } = createProcesses(2);
    first.store.hold();
    let isWaiting = true;
    const left = first.reader.transcript('ev_1', { ...CONTEXT, isWaiting: () => isWaiting });
    await first.timers.advance(0);
    const waited = second.reader.transcript('ev_1', CONTEXT);
    await first.timers.advance(100);
    expect(first.store.count()).toBe(1);
    isWaiting = false;
    const [held] = first.store.held.splice(0);
    expect(held?.call.options.isWanted?.()).toBe(false);
    held?.fail(new StoreError('aborted', 'nobody waits'));
    await expect(left).rejects.toMatchObject({ kind: 'aborted' });
    await first.timers.advance(300);
    first.store.release();
    await first.timers.advance(0);
    expect(recordOf(await waited).body).toBe('Sam: 1');
    expect(first.store.count()).toBe(2);
  });

  test('how long other processes are waited for, and how that ends, is reported once a flight', async () => {
    const timers = new ManualTimers();
    const fleet = new MemoryFleet(timers);
    const waits: string[] = [];
    const hooks: CacheHooks = {
      onLeaseWait: (wait) => waits.push(`${wait.class} ${wait.end} ${Math.round(wait.durationMs)} ms`),
    };
    const first = createRig({ fleet, timers });
    const second = createRig({ fleet, beside: first, hooks });
    first.store.hold();
    const reads = [bodyOf(first), bodyOf(second), bodyOf(second)];
    await timers.advance(400);
    first.store.release();
    await timers.advance(0);
    await Promise.all(reads);
    expect(waits).toEqual(['transcript stored 400 ms']);

    first.store.hold();
    const failing = Promise.allSettled([first, second].map(async ({ reader }) => await reader.rubric('sc_1', CONTEXT)));
    await timers.advance(100);
    first.store.held.splice(0).forEach(({ fail }) => fail(storeFailure('down')));
    await timers.advance(0);
    await failing;
    expect(waits.slice(1)).toEqual(['rubric failed 100 ms']);

    await fleet.member().leases.acquire('v1:{scorecard:ev_9}');
    first.store.release();
    const takenOver = second.reader.scorecard('ev_9', CONTEXT);
    await timers.advance(2000);
    await takenOver;
    expect(waits.slice(2)).toEqual(['scorecard taken-over 2000 ms']);
  });

  test('the lease of a leader that died lapses, and a waiter takes over', async () => {
    const { fleet, second } = createProcesses(2);
    const { leases } = fleet.member();
    expect((await leases.acquire('v1:{transcript:ev_1}')).kind).toBe('acquired');
    const read = second.reader.transcript('ev_1', CONTEXT);
    await second.timers.advance(1900);
    expect(second.store.count()).toBe(0);
    await second.timers.advance(350);
    expect((await read).outcome).toBe('miss');
    expect(second.store.count()).toBe(1);
  });

  test('a leader that lost its lease overwrites nothing and keeps nothing', async () => {
    const { fleet, first, second } = createProcesses(2);
    first.store.hold();
    const paused = first.reader.transcript('ev_1', CONTEXT);
    await settle();
    // No timer of the paused process goes off.
    first.timers.clock.advance(2100);
    first.store.revision = 2;
    const held = first.store.held.splice(0);
    first.store.release();
    expect(await bodyOf(second)).toBe('Sam: 2');
    held.forEach(({ release }) => release());
    const late = await paused;
    expect(recordOf(late).body).toBe('Sam: 1');
    expect(late.stored).toBe(false);
    expect(await bodyOf(first)).toBe('Sam: 2');
    expect(recordOf(await second.reader.transcript('ev_1', CONTEXT)).body).toBe('Sam: 2');
    expect(fleet.tier.usage().entries).toBe(1);
    expect(first.store.count()).toBe(2);
  });

  test('a process that gets the lease just after another has stored looks again, and makes no call', async () => {
    const { fleet, first, second } = createProcesses(2);
    const gate = Promise.withResolvers<void>();
    const member = fleet.member();
    const acquire: Fleet['leases']['acquire'] = async (key) => {
      await gate.promise;
      return await member.leases.acquire(key);
    };
    const reader = readerOver(second, { ...member, leases: { ...member.leases, acquire } });
    const read = reader.transcript('ev_1', CONTEXT);
    await settle();
    await bodyOf(first);
    gate.resolve();
    expect(await read).toMatchObject({ outcome: 'hit', tier: 'redis' });
    expect(first.store.count()).toBe(1);
    expect((await member.leases.acquire('v1:{transcript:ev_1}')).kind).toBe('acquired');
  });

  test('a process whose look at the fleet took long looks again into its own memory, and makes no call', async () => {
    const { fleet, second } = createProcesses(2);
    const gate = Promise.withResolvers<undefined>();
    const member = fleet.member();
    fleet.isDown = true;
    let looks = 0;
    const get: Fleet['tier']['get'] = () => {
      looks += 1;
      return looks === 1 ? gate.promise : undefined;
    };
    const reader = readerOver(second, { ...member, tier: { ...member.tier, get } });
    const read = reader.evaluation('ev_1', CONTEXT);
    await settle();
    second.memory.set(keyOfEvaluation('ev_1'), {
      ...aStoredEvaluation(second.timers.clock.nowMs()),
      position: second.purges.position(),
    });
    gate.resolve(undefined);
    expect(await read).toMatchObject({ outcome: 'hit', tier: 'memory' });
    expect(second.store.count()).toBe(0);
  });

  test('who waits is told of a failure by the one who met it, and need not ask for the lease', async () => {
    const { fleet, first, second } = createProcesses(2);
    const member = fleet.member();
    let asked = 0;
    const acquire: Fleet['leases']['acquire'] = (key) => {
      asked += 1;
      return member.leases.acquire(key);
    };
    const reader = readerOver(second, { ...member, leases: { ...member.leases, acquire } });
    first.store.hold();
    const led = bodyOf(first);
    await settle();
    const read = reader.transcript('ev_1', CONTEXT);
    await settle();
    const askedBefore = asked;
    first.store.held.splice(0).forEach(({ fail }) => fail(storeFailure('down')));
    await expect(led).rejects.toMatchObject({ message: 'down' });
    await expect(read).rejects.toMatchObject({ message: 'down' });
    expect(asked).toBe(askedBefore);
  });

  test('where a class is never fresh, processes that wait share the answer all the same', async () => {
    const { processes, first } = createProcesses(4);
    first.times.set('transcript', { freshMs: 0, staleMs: 0, errorMs: 1000 });
    first.store.hold();
    const reads = processes.map(bodyOf);
    await first.timers.advance(100);
    first.store.release();
    await first.timers.advance(0);
    expect(await Promise.all(reads)).toEqual(['Sam: 1', 'Sam: 1', 'Sam: 1', 'Sam: 1']);
    expect(first.store.count()).toBe(1);
  });
});

describe('the shared tier', () => {
  test('what one process fetched is a hit in another, and after that a hit in its memory', async () => {
    const { first, second } = createProcesses(2);
    await first.reader.transcript('ev_1', CONTEXT);
    expect(await second.reader.transcript('ev_1', CONTEXT)).toMatchObject({ outcome: 'hit', tier: 'redis' });
    expect(await second.reader.transcript('ev_1', CONTEXT)).toMatchObject({ outcome: 'hit', tier: 'memory' });
    expect(first.store.count()).toBe(1);
  });

  test('what another process has refreshed unheard is found at the next refresh, without a call', async () => {
    const { fleet, first } = createProcesses(2);
    const key = keyOfEvaluation('ev_1');
    first.memory.set(key, storedNow(first, 'old'));
    await first.timers.advance(freshMs);
    fleet.tier.set(key, storedNow(first, 'new'));
    expect((await first.reader.evaluation('ev_1', CONTEXT)).outcome).toBe('stale-while-revalidate');
    await settle();
    const read = await first.reader.evaluation('ev_1', CONTEXT);
    expect(read).toMatchObject({ outcome: 'hit', tier: 'memory' });
    expect(recordOf(read).title).toBe('new');
    expect(first.store.count()).toBe(0);
  });

  test('a stale copy in the shared tier is served at once where the one in memory is older than that', async () => {
    const { fleet, first } = createProcesses(2);
    const key = keyOfEvaluation('ev_1');
    first.memory.set(key, storedNow(first, 'old'));
    await first.timers.advance(staleMs);
    fleet.tier.set(key, storedNow(first, 'new'));
    await first.timers.advance(freshMs);
    first.store.hold();
    const read = await first.reader.evaluation('ev_1', CONTEXT);
    expect(read).toMatchObject({ outcome: 'stale-while-revalidate', tier: 'redis', ageMs: freshMs });
    expect(recordOf(read).title).toBe('new');
  });

  test('an older copy in the shared tier replaces nothing newer in memory', async () => {
    const { fleet, first } = createProcesses(2);
    const key = keyOfEvaluation('ev_1');
    fleet.tier.set(key, storedNow(first, 'old'));
    await first.timers.advance(1);
    first.memory.set(key, storedNow(first, 'new'));
    await first.timers.advance(freshMs + staleMs);
    first.store.failure = storeFailure();
    const read = await first.reader.evaluation('ev_1', CONTEXT);
    expect(read).toMatchObject({ outcome: 'stale-if-error', tier: 'memory' });
    expect(recordOf(read).title).toBe('new');
    expect(first.memory.get(key)?.entry).toBe(read.entry);
  });

  test('what a list seeds is there for the other processes', async () => {
    const { first, second } = createProcesses(2);
    first.store.evaluations.set('ev_1', anEvaluation());
    const query = { workspaceIds: [WORKSPACE_A], search: null, scorecardId: null, offset: 0, limit: 50 };
    await first.reader.list(query, CONTEXT);
    await settle();
    expect(await second.reader.evaluation('ev_1', CONTEXT)).toMatchObject({ outcome: 'hit', tier: 'redis' });
    expect(first.store.count()).toBe(1);
  });

  test('a stale copy that another process has refreshed costs no call', async () => {
    const { first, second } = createProcesses(2);
    await bodyOf(first);
    await bodyOf(second);
    await first.timers.advance(freshMs);
    await bodyOf(first);
    await settle();
    expect(first.store.count()).toBe(2);
    expect((await second.reader.transcript('ev_1', CONTEXT)).ageMs).toBe(0);
    expect(first.store.count()).toBe(2);
  });

  test('Q9: what has become absent in one process leaves the memory of the others', async () => {
    const { first, second } = createProcesses(2);
    await bodyOf(first);
    await first.timers.advance(1);
    first.memory.clear();
    await bodyOf(second);
    first.store.absent.add('transcript:ev_1');
    await first.purges.purge(['class:transcript'], 'soft');
    await first.reader.transcript('ev_1', CONTEXT);
    await settle();
    expect((await second.reader.transcript('ev_1', CONTEXT)).entry.answer.kind).toBe('absent');
    expect(first.store.count()).toBe(2);
  });

  test('a copy in the shared tier serves a process without one when the store fails', async () => {
    const { first, second } = createProcesses(2);
    await bodyOf(first);
    await first.timers.advance(freshMs + staleMs);
    first.store.failure = storeFailure();
    expect(await second.reader.transcript('ev_1', CONTEXT)).toMatchObject({ outcome: 'stale-if-error', tier: 'redis' });
  });

  test('a purge rules what the shared tier holds', async () => {
    const { first, second } = createProcesses(2);
    await bodyOf(first);
    await first.purges.purge(['evaluation:ev_1'], 'hard');
    expect((await second.reader.transcript('ev_1', CONTEXT)).outcome).toBe('miss');
    expect(first.store.count()).toBe(2);
  });

  test('a purge that comes while a process waits for the lease rules the copy that it came with: no 304 brings it back', async () => {
    const { fleet, second } = createProcesses(2);
    await bodyOf(second);
    await second.timers.advance(freshMs + errorMs);
    const attempt = await fleet.member().leases.acquire('v1:{transcript:ev_1}');
    const read = second.reader.transcript('ev_1', CONTEXT);
    await settle();
    await second.purges.purge(['all'], 'hard');
    if (attempt.kind === 'acquired') await attempt.lease.release();
    await second.timers.advance(250);
    await read;
    expect(second.store.calls.at(-1)?.options).not.toHaveProperty('ifNoneMatch');
  });
});

describe('without the fleet', () => {
  test('C8: entries in memory stay usable, misses go to the store, and each failure of the fleet is reported', async () => {
    const operations: string[] = [];
    const timers = new ManualTimers();
    const fleet = new MemoryFleet(timers);
    const hooks = { onFleetFailed: ({ operation }: { readonly operation: string }) => operations.push(operation) };
    const rig = createRig({ fleet, timers, hooks });
    await rig.reader.transcript('before', CONTEXT);
    fleet.isDown = true;
    expect((await rig.reader.transcript('before', CONTEXT)).outcome).toBe('hit');
    expect(await rig.reader.transcript('after', CONTEXT)).toMatchObject({ outcome: 'miss', stored: true });
    expect((await rig.reader.transcript('after', CONTEXT)).outcome).toBe('hit');
    expect(rig.store.count()).toBe(2);
    expect(operations).toEqual(['get', 'acquire']);
  });

  test('a fleet that is lost during a fetch costs no reader anything', async () => {
    const { fleet, first, second } = createProcesses(2);
    first.store.hold();
    const reads = [first, second].map(async (rig) => await rig.reader.transcript('ev_1', CONTEXT));
    await first.timers.advance(100);
    fleet.isDown = true;
    await first.timers.advance(300);
    first.store.release();
    await first.timers.advance(0);
    expect((await Promise.all(reads)).map((read) => recordOf(read).body)).toEqual(['Sam: 1', 'Sam: 1']);
    expect(first.store.count()).toBe(2);
  });
});
