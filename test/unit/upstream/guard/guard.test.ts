import { expect, test } from 'vitest';
import { type GuardLimits, guardStore } from '../../../../src/upstream/guard/guard.ts';
import { type FetchOptions, type StoreAnswer, StoreError } from '../../../../src/upstream/store.ts';
import type { ApiKeyRecord } from '../../../../src/domain/records.ts';
import { CountingStore } from '../../../support/counting-store.ts';
import { ManualTimers } from '../../../support/manual-timers.ts';

const LIMITS: GuardLimits = {
  timeoutMs: 10_000,
  maxInFlight: 2,
  maxQueue: 2,
  queueTimeoutMs: 1000,
  retryPercent: 0,
  breakerPercent: 50,
};
const ASKED: FetchOptions = { requestId: 'request-1' };
const ABSENT = { kind: 'absent', code: 'NOT_FOUND' } as const;

function refused(status: number, retryAfterMs: number | null = null): StoreError {
  return new StoreError('refused', `the store answered with ${status}`, { status, retryAfterMs });
}

class StoreWithKeys extends CountingStore {
  readonly keysAsked: string[] = [];

  apiKey(hash: string): Promise<StoreAnswer<ApiKeyRecord>> {
    this.keysAsked.push(hash);
    return Promise.resolve(ABSENT);
  }
}

function openRig(limits: Partial<GuardLimits> = {}, random = 0) {
  const timers = new ManualTimers();
  const store = new StoreWithKeys();
  const events: string[] = [];
  const guarded = guardStore({
    store,
    limits: { ...LIMITS, ...limits },
    clock: timers.clock,
    timers,
    random: () => random,
    hooks: {
      onRefused: ({ resource, reason }) => events.push(`${resource}: ${reason}`),
      onTurnTaken: ({ waitedMs }) => events.push(`waited ${waitedMs}`),
      onRetry: ({ outcome }) => events.push(`retry: ${outcome}`),
      onOpened: (error) => events.push(`opened: ${error.message}`),
      onClosed: () => events.push('closed'),
    },
  });
  const outcomes: string[] = [];
  /** Asks for a record that the store doesn't have; how that ended goes into the outcomes. */
  const ask = (name: string, options: Partial<FetchOptions> = {}): Promise<void> =>
    guarded.evaluation(name, { ...ASKED, ...options }).then(
      ({ kind }) => void outcomes.push(`${name}: ${kind}`),
      (error: unknown) => void outcomes.push(`${name}: ${error instanceof StoreError ? error.kind : String(error)}`),
    );
  const failTenTimes = async (): Promise<void> => {
    store.failure = refused(500);
    for (let calls = 0; calls < 10; calls += 1) await ask('failing');
    outcomes.length = 0;
  };
  return { timers, store, guarded, events, outcomes, ask, failTenTimes };
}

/** What the call rejects with. */
async function failureOf(call: Promise<unknown>): Promise<StoreError> {
  const outcome: unknown = await call.then(
    () => new Error('the call did not fail'),
    (error: unknown) => error,
  );
  if (outcome instanceof StoreError) return outcome;
  throw outcome;
}

test('every question of the interface is passed on as it is, and answered by the store', async () => {
  const { guarded, store, timers } = openRig();
  const query = { workspaceIds: ['w'], search: null, scorecardId: null, offset: 0, limit: 10 };
  const request = { ...ASKED, ifNoneMatch: '"1"' };
  await Promise.all([guarded.list(query, request), guarded.evaluation('e', request)]);
  await Promise.all([guarded.transcript('t', request), guarded.scorecard('s', request)]);
  await Promise.all([guarded.dealInsights('d', request), guarded.rubric('r', request)]);
  expect(await guarded.apiKey('hash', request)).toEqual(ABSENT);
  expect(store.keysAsked).toEqual(['hash']);
  expect(store.calls.map(({ kind, subject }) => [kind, subject])).toEqual([
    ['list', JSON.stringify(query)],
    ['evaluation', 'e'],
    ['transcript', 't'],
    ['scorecard', 's'],
    ['dealInsights', 'd'],
    ['rubric', 'r'],
  ]);
  expect(store.calls.every(({ options }) => options.ifNoneMatch === '"1"' && options.timeoutMs === 10_000)).toBe(true);
  expect(timers.pendingCount).toBe(0);
});

test('no more calls are in flight than are allowed; what finds no room waits, and then is refused', async () => {
  const { ask, store, timers, outcomes, guarded, events } = openRig();
  store.hold();
  for (const name of ['a', 'b', 'c', 'd', 'e']) void ask(name);
  await timers.advance(400);
  expect(store.calls.map(({ subject }) => subject)).toEqual(['a', 'b']);
  expect([outcomes, guarded.guardStatus()]).toEqual([['e: overloaded'], { isOpen: false, inFlight: 2, queued: 2 }]);
  store.held.shift()?.release();
  await timers.advance(600);
  expect(outcomes).toEqual(['e: overloaded', 'a: absent', 'd: overloaded']);
  store.release();
  await timers.advance(0);
  expect(outcomes.slice(3).toSorted()).toEqual(['b: absent', 'c: absent']);
  expect(events).toEqual(['waited 0', 'waited 0', 'evaluation: queue-full', 'waited 400', 'evaluation: queue-timeout']);
});

test('what was refused for want of room can be tried again after all have gone that wait now', async () => {
  const { guarded, store } = openRig({ maxInFlight: 1, maxQueue: 0, queueTimeoutMs: 2500 });
  store.hold();
  void guarded.evaluation('a', ASKED);
  const { kind, retryAfterMs } = await failureOf(guarded.evaluation('b', ASKED));
  expect([kind, retryAfterMs]).toEqual(['overloaded', 2500]);
});

test('a refresh that nobody waits for lets reads go first', async () => {
  const { ask, store, timers } = openRig({ maxInFlight: 1 });
  store.hold();
  void ask('a');
  void ask('refresh', { isBackground: true });
  void ask('read');
  await timers.advance(0);
  store.release();
  await timers.advance(0);
  expect(store.calls.map(({ subject }) => subject)).toEqual(['a', 'read', 'refresh']);
});

test('what a call has waited is taken off the time that it may take', async () => {
  const { ask, store, timers } = openRig({ maxInFlight: 1, queueTimeoutMs: 5000 });
  store.hold();
  void ask('a');
  void ask('b', { timeoutMs: 4000 });
  await timers.advance(3000);
  store.release();
  await timers.advance(0);
  expect(store.calls.map(({ options }) => options.timeoutMs)).toEqual([10_000, 1000]);
});

test('while the store fails calls are refused at once, and those that wait too; one a second goes', async () => {
  const { ask, failTenTimes, store, timers, outcomes, events, guarded } = openRig();
  await failTenTimes();
  expect(events.at(-1)).toBe('opened: the store answered with 500');
  expect(guarded.guardStatus().isOpen).toBe(true);
  for (let calls = 0; calls < 50; calls += 1) void ask(`read-${calls}`);
  await timers.advance(0);
  expect(store.count()).toBe(10);
  expect(new Set(outcomes.map((line) => line.split(': ')[1]))).toEqual(new Set(['suspended']));
  const callsBySecond: number[] = [];
  for (let tenths = 1; tenths <= 50; tenths += 1) {
    await timers.advance(100);
    for (let calls = 0; calls < 5; calls += 1) await ask('read');
    if (tenths % 10 === 0) callsBySecond.push(store.count());
  }
  expect(callsBySecond).toEqual([11, 12, 13, 14, 15]);
});

test('calls that wait are sent away as soon as the breaker opens', async () => {
  const { ask, store, timers, outcomes, guarded } = openRig({ maxInFlight: 10, maxQueue: 20 });
  store.hold();
  for (let calls = 0; calls < 25; calls += 1) void ask(`read-${calls}`);
  await timers.advance(0);
  for (const held of store.held.splice(0)) held.fail(refused(503));
  await timers.advance(0);
  expect(outcomes.filter((line) => line.endsWith('refused'))).toHaveLength(10);
  expect(outcomes.filter((line) => line.endsWith('suspended'))).toHaveLength(15);
  expect([store.count(), guarded.guardStatus()]).toEqual([10, { isOpen: true, inFlight: 0, queued: 0 }]);
});

test('the first probe that is answered ends it', async () => {
  const { ask, failTenTimes, store, timers, outcomes, events, guarded } = openRig();
  await failTenTimes();
  store.failure = null;
  await ask('early');
  await timers.advance(1000);
  await ask('probe');
  await ask('next');
  expect(outcomes).toEqual(['early: suspended', 'probe: absent', 'next: absent']);
  expect(events).toContain('closed');
  expect(guarded.guardStatus()).toEqual({ isOpen: false, inFlight: 0, queued: 0 });
});

test('who is held back is told when the next probe may go, and no sooner than a second', async () => {
  const { failTenTimes, guarded, store, timers, ask } = openRig();
  await failTenTimes();
  expect((await failureOf(guarded.evaluation('a', ASKED))).retryAfterMs).toBe(1000);
  store.failure = refused(503, 3000);
  await timers.advance(1000);
  await ask('probe');
  expect((await failureOf(guarded.evaluation('a', ASKED))).retryAfterMs).toBe(3000);
  await timers.advance(2900);
  expect((await failureOf(guarded.evaluation('a', ASKED))).retryAfterMs).toBe(1000);
});

test('what cannot be reached for a moment is asked again, up to three times in all', async () => {
  const { ask, store, timers, outcomes, events } = openRig({ retryPercent: 100 }, 0.5);
  for (let calls = 0; calls < 4; calls += 1) await ask('well');
  store.failure = refused(503);
  void ask('a');
  await timers.advance(49);
  expect(store.count()).toBe(5);
  await timers.advance(1);
  expect(store.count()).toBe(6);
  await timers.advance(100);
  expect([store.count(), outcomes.at(-1)]).toEqual([7, 'a: refused']);
  expect(events.filter((event) => event.startsWith('retry'))).toEqual(['retry: failed', 'retry: failed']);
});

test('a repetition that is answered is as good as a first answer', async () => {
  const { ask, store, timers, outcomes, events } = openRig({ retryPercent: 100 }, 0.5);
  store.failure = new StoreError('unreachable', 'no connection');
  void ask('a');
  await timers.advance(49);
  store.failure = null;
  await timers.advance(1);
  expect([outcomes, events.at(-1)]).toEqual([['a: absent'], 'retry: answered']);
});

test('a tenth of the calls may be repeated, and no more', async () => {
  const { ask, store, events, outcomes, timers } = openRig({ retryPercent: 10, breakerPercent: null });
  store.failure = refused(503);
  for (let calls = 0; calls < 1000; calls += 1) {
    void ask('a');
    await timers.advance(1);
  }
  await timers.advance(1000);
  expect(store.count()).toBe(1100);
  expect(outcomes).toHaveLength(1000);
  expect(events.filter((event) => event === 'retry: over-budget').length).toBeGreaterThan(800);
});

test.each([
  ['an answer that would be the same again', refused(500), {}],
  ['a store that asks for more time than is left', refused(503, 10_000), {}],
  ['what nobody waits for', refused(503), { isBackground: true }],
] as const)('not repeated is %s', async (_, failure, options) => {
  const { ask, store, timers, outcomes } = openRig({ retryPercent: 100 });
  store.failure = failure;
  void ask('a', options);
  await timers.advance(20_000);
  expect([store.count(), outcomes]).toEqual([1, ['a: refused']]);
});

test("a repetition waits for as long as the store asks for, within the call's time", async () => {
  const { ask, store, timers } = openRig({ retryPercent: 100 });
  store.failure = refused(429, 3000);
  void ask('a', { timeoutMs: 5000 });
  await timers.advance(2999);
  expect(store.count()).toBe(1);
  store.failure = null;
  await timers.advance(1);
  expect(store.calls.map(({ options }) => options.timeoutMs)).toEqual([5000, 2000]);
});

test('nothing is repeated while the breaker is open', async () => {
  const { ask, failTenTimes, store, timers } = openRig({ retryPercent: 100 });
  await failTenTimes();
  store.failure = refused(503);
  await timers.advance(1000);
  await ask('probe');
  await timers.advance(500);
  expect(store.count()).toBe(11);
});

test('an argument that could not be sent is thrown as it is, and its place is free again', async () => {
  const { guarded, store } = openRig({ maxInFlight: 1, maxQueue: 0 });
  store.evaluation = () => Promise.reject(new TypeError('not an id'));
  for (let calls = 0; calls < 20; calls += 1) {
    await expect(guarded.evaluation('?', ASKED)).rejects.toThrow(TypeError);
  }
  expect(guarded.guardStatus()).toEqual({ isOpen: false, inFlight: 0, queued: 0 });
});
