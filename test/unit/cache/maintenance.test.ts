import { beforeEach, describe, expect, test } from 'vitest';
import { gatedStore, maintenanceGate } from '../../../src/cache/maintenance-gate.ts';
import { MaintenanceState } from '../../../src/cache/maintenance.ts';
import { MemoryTier } from '../../../src/cache/memory-tier.ts';
import { MemoryPurgeLog } from '../../../src/cache/purge-log.ts';
import { createReadThrough } from '../../../src/cache/read-through.ts';
import { AdjustableTimes } from '../../../src/cache/times.ts';
import type { StoreError } from '../../../src/upstream/store.ts';
import { CONTEXT, createRig, type Rig, TEST_TIMES } from '../../support/cache-rig.ts';
import { CountingStore } from '../../support/counting-store.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { ManualTimers, settle } from '../../support/manual-timers.ts';
import { MemoryFleet } from '../../support/memory-fleet.ts';

const { freshMs, staleMs, errorMs } = TEST_TIMES;
const HOUR_MS = 3_600_000;

test('whoever watches is told when something is said', () => {
  let said = 0;
  const state = new MaintenanceState(new ManualClock(), () => (said += 1));
  state.say({ sinceMs: 0, untilMs: 1, by: 'alice' });
  state.say(null);
  expect(said).toBe(2);
});

describe('reads while it is on', () => {
  let timers: ManualTimers;
  let state: MaintenanceState;
  let rig: Rig;
  let reported: string[];
  beforeEach(() => {
    timers = new ManualTimers();
    state = new MaintenanceState(timers.clock);
    reported = [];
    rig = createRig({
      timers,
      maintenance: state,
      hooks: {
        onStoreCall: () => reported.push('call'),
        onRefreshFailed: () => reported.push('refresh failed'),
      },
    });
  });

  const begin = (forMs = HOUR_MS): void =>
    state.say({ sinceMs: timers.clock.nowMs(), untilMs: timers.clock.nowMs() + forMs, by: 'alice' });
  const read = async (id = 'ev_1') => await rig.reader.transcript(id, CONTEXT);

  /** The outcome of a read that is answered without any time going by. */
  const outcomeAtOnce = async (id = 'ev_1'): Promise<string> => {
    let outcome = 'waits';
    read(id).then(
      (answer) => (outcome = answer.outcome),
      (error: StoreError) => (outcome = error.kind),
    );
    await settle();
    return outcome;
  };

  test.each([
    ['fresh', 0, 'hit'],
    ['stale', freshMs, 'stale-while-revalidate'],
    ['past that', freshMs + staleMs, 'stale-if-error'],
    ['at the end of its use', freshMs + errorMs, 'paused'],
  ])('a copy that is %s is answered for at once, and the store is not asked', async (_, ageMs, outcome) => {
    await read();
    await timers.advance(ageMs);
    begin();
    for (let i = 0; i < 50; i += 1) expect(await outcomeAtOnce()).toBe(outcome);
    await timers.advance(2000);
    expect(rig.store.count()).toBe(1);
    expect(reported).toEqual(['call']);
  });

  test('what has no copy fails at once, and says when to try again: at its end, but within a minute', async () => {
    begin(HOUR_MS);
    await expect(read()).rejects.toMatchObject({ kind: 'paused', retryAfterMs: 60_000, isTransient: true });
    begin(5000);
    await expect(read()).rejects.toMatchObject({ kind: 'paused', retryAfterMs: 5000 });
    expect(rig.store.count()).toBe(0);
  });

  test('its end is the end of it: the store is asked for what failed a moment ago', async () => {
    begin(1000);
    await expect(read()).rejects.toMatchObject({ kind: 'paused' });
    await timers.advance(999);
    await expect(read()).rejects.toMatchObject({ kind: 'paused' });
    await timers.advance(1);
    expect((await read()).outcome).toBe('miss');
    begin();
    await expect(read('ev_2')).rejects.toMatchObject({ kind: 'paused' });
    state.say(null);
    expect((await read('ev_2')).outcome).toBe('miss');
    expect(rig.store.count()).toBe(2);
  });

  test('a stale copy is refreshed again by the first read after it', async () => {
    await read();
    await timers.advance(freshMs);
    begin(1000);
    expect(await outcomeAtOnce()).toBe('stale-while-revalidate');
    await timers.advance(1000);
    expect(await outcomeAtOnce()).toBe('stale-while-revalidate');
    await settle();
    expect(rig.store.count()).toBe(2);
  });

  test('a call that was under way when it began is waited for by those who did', async () => {
    rig.store.hold();
    const waiting = read();
    await settle();
    begin();
    rig.store.release();
    expect((await waiting).outcome).toBe('miss');
    expect(await outcomeAtOnce()).toBe('hit');
  });
});

describe('the gate', () => {
  const gated = (fleet: MemoryFleet | null = null) => {
    const timers = fleet === null ? new ManualTimers() : fleetTimers;
    const store = Object.assign(new CountingStore(), {
      apiKey: () => Promise.resolve({ kind: 'absent', code: 'NOT_FOUND' } as const),
    });
    const state = new MaintenanceState(timers.clock);
    const behindGate = gatedStore(store, maintenanceGate(state, timers.clock));
    const reader = createReadThrough({
      store: behindGate,
      memory: new MemoryTier({ maxBytes: 2 ** 24 }),
      purges: new MemoryPurgeLog(),
      times: new AdjustableTimes(),
      clock: timers.clock,
      timers,
      fleet: fleet?.member() ?? null,
    });
    const begin = (): void => state.say({ sinceMs: 0, untilMs: timers.clock.nowMs() + HOUR_MS, by: 'alice' });
    return { store, state, behindGate, reader, begin };
  };
  const fleetTimers = new ManualTimers();

  test('no question passes it while it is on, a key neither; all do again once it is over', async () => {
    const { store, state, behindGate, begin } = gated();
    const options = { requestId: 'request-1' };
    const query = { workspaceIds: ['w'], search: null, scorecardId: null, offset: 0, limit: 1 };
    const ask = () =>
      Promise.allSettled([
        behindGate.list(query, options),
        behindGate.evaluation('a', options),
        behindGate.transcript('a', options),
        behindGate.scorecard('a', options),
        behindGate.dealInsights('a', options),
        behindGate.rubric('a', options),
        behindGate.apiKey('a', options),
      ]);
    begin();
    for (const end of await ask()) expect(end).toMatchObject({ status: 'rejected', reason: { kind: 'paused' } });
    expect(store.count()).toBe(0);
    state.say(null);
    for (const end of await ask()) expect(end.status).toBe('fulfilled');
    expect(store.count()).toBe(6);
  });

  test.each([
    ['a gateway that is alone', null],
    ['a fleet', new MemoryFleet(fleetTimers)],
  ])('what had begun before it and comes to the gate too late is no failure that %s remembers', async (_, fleet) => {
    const { store, state, reader, begin } = gated(fleet);
    begin();
    await expect(reader.transcript('ev_1', CONTEXT)).rejects.toMatchObject({ kind: 'paused' });
    await settle();
    state.say(null);
    expect((await reader.transcript('ev_1', CONTEXT)).outcome).toBe('miss');
    expect(store.count()).toBe(1);
  });
});
