import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { createLocalCallRate } from '../../../../src/upstream/guard/call-rate.ts';
import { type Asking, type TurnAnswer, Turns } from '../../../../src/upstream/guard/turns.ts';
import { ManualTimers } from '../../../support/manual-timers.ts';

function openRig(limits: { readonly maxInFlight?: number; readonly maxQueue?: number } = {}) {
  const timers = new ManualTimers();
  const turns = new Turns({ maxInFlight: 1, maxQueue: 2, timers, ...limits });
  const log: string[] = [];
  /** Asks under a name; how that was answered goes into the log. */
  const ask = (name: string, asking: Partial<Asking> = {}): Promise<TurnAnswer> => {
    const answer = turns.take({ isBackground: false, waitMs: 1000, ...asking });
    void answer.then((turn) => log.push(`${name}: ${turn.kind === 'granted' ? 'granted' : turn.reason}`));
    return answer;
  };
  return { timers, turns, log, ask };
}

function releaseOf(answer: TurnAnswer): () => void {
  if (answer.kind === 'refused') throw new Error(`refused: ${answer.reason}`);
  return answer.release;
}

/** Gives the turn back after that time, if it was one. */
async function use(answer: Promise<TurnAnswer>, holdMs: number, timers: ManualTimers): Promise<void> {
  const turn = await answer;
  if (turn.kind === 'granted') timers.after(holdMs, turn.release);
}

test('as many as are allowed go at once; the others wait in order', async () => {
  const { turns, log, ask, timers } = openRig({ maxInFlight: 2, maxQueue: 2 });
  const [first] = await Promise.all([ask('a'), ask('b')]);
  void ask('c');
  void ask('d');
  await timers.advance(0);
  expect([log, turns.inFlight, turns.queued]).toEqual([['a: granted', 'b: granted'], 2, 2]);
  releaseOf(first)();
  releaseOf(first)();
  await timers.advance(0);
  expect([log.slice(2), turns.inFlight, turns.queued]).toEqual([['c: granted'], 2, 1]);
});

test('a full queue refuses at once', async () => {
  const { log, ask, timers } = openRig();
  for (const name of ['a', 'b', 'c', 'd']) void ask(name);
  await timers.advance(0);
  expect(log).toEqual(['a: granted', 'd: queue-full']);
});

test('with a queue of nothing whoever finds no room is refused at once', async () => {
  const { log, ask, timers } = openRig({ maxQueue: 0 });
  void ask('a');
  void ask('b');
  await timers.advance(0);
  expect(log).toEqual(['a: granted', 'b: queue-full']);
});

test('whoever has waited as long as it may leaves, and its place is free', async () => {
  const { turns, log, ask, timers } = openRig();
  void ask('a');
  void ask('b', { waitMs: 300 });
  await timers.advance(299);
  expect(log).toEqual(['a: granted']);
  await timers.advance(1);
  expect([log[1], turns.queued, timers.pendingCount]).toEqual(['b: queue-timeout', 0, 0]);
});

test('what somebody waits for goes before what nobody does', async () => {
  const { log, ask, timers } = openRig();
  const held = await ask('a');
  void ask('refresh', { isBackground: true });
  void ask('read');
  releaseOf(held)();
  await timers.advance(0);
  expect(log).toEqual(['a: granted', 'read: granted']);
});

test('in a full queue a read takes the place of the oldest refresh, and a refresh that of none', async () => {
  const { log, ask, timers } = openRig();
  void ask('a');
  void ask('old refresh', { isBackground: true });
  void ask('new refresh', { isBackground: true });
  void ask('read');
  void ask('late refresh', { isBackground: true });
  await timers.advance(0);
  expect(log.toSorted()).toEqual(['a: granted', 'late refresh: queue-full', 'old refresh: queue-full']);
});

test('all that wait can be sent away', async () => {
  const { turns, log, ask, timers } = openRig();
  void ask('a');
  void ask('b');
  void ask('c', { isBackground: true });
  turns.refuseAll('store-failing');
  await timers.advance(0);
  expect([log, turns.queued]).toEqual([['a: granted', 'b: store-failing', 'c: store-failing'], 0]);
});

test('a rate spaces calls, after a burst of a tenth of a second', async () => {
  const { turns, log, ask, timers } = openRig({ maxInFlight: 100, maxQueue: 100 });
  turns.limitBy(createLocalCallRate({ perSecond: () => 20, clock: timers.clock, timers }));
  for (let calls = 0; calls < 30; calls += 1) void ask(String(calls), { waitMs: 1001 });
  await timers.advance(0);
  expect(log).toHaveLength(2);
  await timers.advance(49);
  expect(log).toHaveLength(2);
  await timers.advance(1);
  expect(log).toHaveLength(3);
  await timers.advance(950);
  expect(log.filter((line) => line.endsWith('granted'))).toHaveLength(22);
  await timers.advance(1);
  expect(log.filter((line) => line.endsWith('queue-timeout'))).toHaveLength(8);
});

test('a rate below one a second lets one go at once and the next in its time', async () => {
  const { turns, log, ask, timers } = openRig({ maxInFlight: 100 });
  turns.limitBy(createLocalCallRate({ perSecond: () => 0.5, clock: timers.clock, timers }));
  void ask('a', { waitMs: 5000 });
  void ask('b', { waitMs: 5000 });
  await timers.advance(1999);
  expect(log).toEqual(['a: granted']);
  await timers.advance(1);
  expect(log).toEqual(['a: granted', 'b: granted']);
});

test('whatever comes, no more than allowed are in flight or wait, and everyone is answered in time', async () => {
  const step = fc.record({
    isBackground: fc.boolean(),
    waitMs: fc.integer({ min: 0, max: 50 }),
    holdMs: fc.integer({ min: 0, max: 60 }),
    pauseMs: fc.integer({ min: 0, max: 10 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
      const { turns, timers, log, ask } = openRig({ maxInFlight: 3, maxQueue: 4 });
      for (const [index, { isBackground, waitMs, holdMs, pauseMs }] of steps.entries()) {
        void use(ask(String(index), { isBackground, waitMs }), holdMs, timers);
        expect(turns.inFlight).toBeLessThanOrEqual(3);
        expect(turns.queued).toBeLessThanOrEqual(4);
        expect(turns.queued === 0 || turns.inFlight === 3).toBe(true);
        await timers.advance(pauseMs);
      }
      await timers.advance(200);
      expect([log.length, turns.inFlight, turns.queued, timers.pendingCount]).toEqual([steps.length, 0, 0, 0]);
    }),
    { numRuns: 30 },
  );
});
