/** Trials of a time in a fleet of two processes over one Redis, with a clock that the test moves. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { hash32 } from '../../src/cache/hash.ts';
import { TrialKeys } from '../../src/cache/trial/keys.ts';
import { redisCounts } from '../../src/cache/trial/redis-counts.ts';
import { ENDED_KEY, RUNNING_KEY } from '../../src/cache/trial/redis-trial-scripts.ts';
import type { EndedTrial } from '../../src/cache/trial/trial.ts';
import { Trials } from '../../src/cache/trial/trials.ts';
import { systemClock } from '../../src/clock.ts';
import { type CacheMember, openMember } from '../support/cache-fleet.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ManualTimers } from '../support/manual-timers.ts';
import { cacheStateKey } from '../../src/redis/keys.ts';
import { linkDown, linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

interface Process {
  readonly member: CacheMember;
  readonly trials: Trials;
  readonly timers: ManualTimers;
  readonly over: EndedTrial[];
  readonly alone: EndedTrial[];
  isBreakerOpen: boolean;
}

const PLAN = {
  class: 'list',
  freshMs: 60_000,
  share: 0.5,
  forMs: 3_600_000,
  limits: { maxStoreLoad: 1.5, maxErrors: 0.05 },
} as const;
const HASHES = Array.from({ length: 400 }, (_, index) => hash32(`key ${index}`));
const SOON = { timeout: 5000, interval: 5 };

let redis: TestRedis;
let processes: Process[];
beforeEach(async () => {
  redis = await startRedis({ controls: true, isDurable: true });
  processes = [];
});
afterEach(async () => {
  for (const { trials, member } of processes) {
    await trials.close();
    member.close();
  }
  await redis.close();
});

/** The first one judges for all. `startMs`: what its clock shows. */
async function open(self: string, startMs = systemClock.nowMs()): Promise<Process> {
  const timers = new ManualTimers(new ManualClock(startMs));
  const { clock } = timers;
  const member = await openMember({ url: redis.url, clock });
  const process: Process = { member, timers, over: [], alone: [], isBreakerOpen: false, trials: trialsOf() };
  function trialsOf(): Trials {
    return new Trials({
      here: member.trials,
      ledger: member.trialLedger,
      board: redisCounts({ link: member.state, self }),
      times: member.times,
      predict: async (_class, each) => each.map(() => null),
      isBreakerOpen: () => process.isBreakerOpen,
      isJudge: () => self === 'one',
      self,
      clock,
      timers,
      hooks: { onOver: (trial) => process.over.push(trial), onAlone: (trial) => process.alone.push(trial) },
    });
  }
  processes.push(process);
  return process;
}

async function openTwo(): Promise<readonly [Process, Process]> {
  return [await open('one'), await open('two')];
}

async function started(by: Process): Promise<string> {
  const result = await by.trials.start(PLAN, 'anna');
  if (result.kind !== 'started') throw new Error('another one runs');
  await everywhere((process) => process.trials.running().length === 1);
  return result.view.trial.id;
}

async function everywhere(isSo: (process: Process) => boolean): Promise<void> {
  await vi.waitUntil(() => processes.every(isSo), SOON);
}

/** How many of the keys have another time than the class. */
function tried({ member }: Process): number {
  return HASHES.filter((keyHash) => member.times.of('list', keyHash).freshMs !== member.times.of('list').freshMs)
    .length;
}

/** Each key is read and asked for so often, or the trial's more often. */
function traffic({ member }: Process, id: string, { calls, factor = 1, failing = false }: Traffic): void {
  const keys = new TrialKeys({ id, share: PLAN.share });
  for (const keyHash of HASHES) {
    const about = { class: 'list', key: 'k', keyHash } as const;
    member.trials.onRead({ ...about, outcome: 'miss', tier: null, missReason: null, ageMs: 0, durationMs: 1 });
    const times = calls * (keys.has(keyHash) ? factor : 1);
    for (let call = 0; call < times; call++) {
      member.trials.onStoreCall({ ...about, isFailed: failing, route: null, durationMs: 1 });
    }
  }
}

interface Traffic {
  readonly calls: number;
  readonly factor?: number;
  readonly failing?: boolean;
}

async function stateIn({ trials }: Process): Promise<string> {
  return (await trials.view('list'))?.trial.end?.state ?? 'running';
}

/** Lets each look, and Redis answer, until it is so. */
async function looking(isSo: () => boolean): Promise<void> {
  await vi.waitUntil(async () => {
    for (const { timers } of processes) await timers.advance(1000);
    return isSo();
  }, SOON);
}

test('what one begins rules the same keys in both, and what one stops is over in both', async () => {
  const [one, two] = await openTwo();
  await started(one);
  expect(HASHES.map((keyHash) => one.member.times.of('list', keyHash))).toEqual(
    HASHES.map((keyHash) => two.member.times.of('list', keyHash)),
  );
  expect(tried(two)).toBeGreaterThan(100);
  expect((await two.trials.stop('list', 'bob'))?.trial.end).toMatchObject({
    state: 'stopped',
    reason: 'Stopped by bob.',
  });
  await everywhere((process) => tried(process) === 0);
  expect(await one.trials.stop('list', 'anna')).toBeNull();
});

test('a process that joins in the middle takes part; one that is gone has its counts remembered', async () => {
  const one = await open('one');
  const id = await started(one);
  traffic(one, id, { calls: 1 });
  await one.timers.advance(1000);
  const two = await open('two');
  expect(tried(two)).toBe(tried(one));
  traffic(two, id, { calls: 1 });
  await one.trials.close();
  one.member.close();
  const view = await vi.waitUntil(async () => {
    const seen = await two.trials.view('list');
    return seen !== null && seen.arms.trial.reads + seen.arms.control.reads === 800 ? seen : null;
  }, SOON);
  expect(view.arms.trial.storeCalls + view.arms.control.storeCalls).toBe(800);
  processes = [two];
});

test('what both have seen together is too much, though it is nothing certain to either', async () => {
  const [one, two] = await openTwo();
  const id = await started(two);
  for (const process of processes) traffic(process, id, { calls: 1, factor: 3 });
  for (const process of processes) await process.timers.advance(118_000);
  expect([await stateIn(one), await stateIn(two)]).toEqual(['running', 'running']);
  await looking(() => one.over.length > 0);
  await everywhere((process) => tried(process) === 0);
  expect(await two.trials.view('list')).toMatchObject({
    trial: { end: { state: 'rolled-back', cause: 'store-load', writer: 'one' } },
  });
  expect([one.over.length, two.over.length]).toEqual([1, 0]);
});

test('a breaker that opens in one takes back all; one that was open before does not', async () => {
  const [one, two] = await openTwo();
  two.isBreakerOpen = true;
  await started(one);
  await two.timers.advance(3000);
  expect(await stateIn(two)).toBe('running');
  two.isBreakerOpen = false;
  await two.timers.advance(1000);
  two.isBreakerOpen = true;
  await two.timers.advance(1000);
  expect(tried(two)).toBe(0);
  await everywhere((process) => tried(process) === 0);
  await vi.waitUntil(() => two.over.length === 1, SOON);
  expect(two.over[0]?.end).toMatchObject({ state: 'rolled-back', cause: 'breaker' });
});

test('without Redis it ends by each clock, goes back for a process alone, and the others hear when Redis is back', async () => {
  const [one, two] = await openTwo();
  const id = await started(one);
  await redis.kill();
  await Promise.all(processes.map(({ member }) => linkDown(member.state)));
  expect([tried(one), tried(two)].every((count) => count > 100)).toBe(true);
  traffic(two, id, { calls: 1, failing: true });
  await two.timers.advance(2000);
  expect([tried(two), two.alone.length, two.over.length]).toEqual([0, 1, 0]);
  expect(two.alone[0]?.end).toMatchObject({ cause: 'store-errors' });
  expect(tried(one)).toBeGreaterThan(100);
  await redis.restart();
  await Promise.all(processes.map(({ member }) => linkUp(member.state)));
  await looking(() => two.over.length === 1 && tried(one) === 0);
  expect([await stateIn(one), two.alone.length]).toEqual(['rolled-back', 1]);
});

test('a stop that was made while a process went back by itself is the word that counts', async () => {
  const [one, two] = await openTwo();
  const id = await started(one);
  const predicted = { trial: null, control: null };
  const about = { reason: 'x', atMs: 1, writer: 'two', controlFreshMs: 30_000, predicted };
  two.member.trials.endHere(id, { state: 'rolled-back', cause: 'breaker', ...about });
  expect((await one.trials.stop('list', 'anna'))?.trial.end?.state).toBe('stopped');
  await two.timers.advance(1000);
  await looking(() => two.member.trials.owed().length === 0);
  expect([await stateIn(one), await stateIn(two), two.over]).toEqual(['stopped', 'stopped', []]);
});

test('a stop that Redis has lost is told again by who knows of it, and is no news', async () => {
  const [one, two] = await openTwo();
  await started(one);
  const [running] = one.member.trials.all();
  await one.trials.stop('list', 'anna');
  await everywhere((process) => tried(process) === 0);
  // As after a failover to a copy that had not heard of it.
  const { client } = one.member.state;
  await client.hset(RUNNING_KEY, 'list', JSON.stringify(running));
  await client.del(ENDED_KEY);
  await client.hset(cacheStateKey('head'), 'trials', 'another version');
  // That one owes it may be over before anybody looks: what tells is that it is gone again.
  await vi.waitUntil(async () => {
    for (const { timers } of processes) await timers.advance(1000);
    const isOver = (await client.hget(RUNNING_KEY, 'list')) === null;
    return isOver && processes.every(({ member }) => member.trials.owed().length === 0);
  }, SOON);
  expect([await stateIn(one), tried(one), tried(two), one.over, two.over]).toEqual(['stopped', 0, 0, [], []]);
});

test('a process whose clock is ahead ends it for itself alone', async () => {
  const [one, two] = await openTwo();
  await started(one);
  const ahead = await open('three', systemClock.nowMs() + 7_200_000);
  await ahead.timers.advance(1000);
  expect(tried(ahead)).toBe(0);
  // Nobody else goes by that clock.
  expect([tried(one) > 100, await stateIn(two), ahead.over]).toEqual([true, 'running', []]);
});

test('one whose time has come makes room for the next', async () => {
  const past = systemClock.nowMs() - 7_200_000;
  const [one, two] = [await open('one', past), await open('two', past)];
  const id = await started(one);
  for (const { timers } of processes) timers.clock.advance(3_600_000);
  const next = await two.trials.start({ ...PLAN, freshMs: 90_000 }, 'bob');
  expect(next.kind).toBe('started');
  await looking(() => one.over.length + two.over.length > 0);
  expect([...one.over, ...two.over].map(({ id: each, end }) => [each, end.state])).toEqual([[id, 'ended']]);
});

test('what Redis has forgotten is over', async () => {
  const [one, two] = await openTwo();
  await started(one);
  await redis.flush();
  await everywhere((process) => tried(process) === 0);
  expect(await two.trials.views()).toEqual([]);
});

test('a time that is set or reset meanwhile rules the other keys; the trial goes on', async () => {
  const [one, two] = await openTwo();
  await started(one);
  await two.member.timesControl.set('list', { freshMs: 10_000, staleMs: 1 });
  await everywhere(({ member }) => member.times.of('list').freshMs === 10_000);
  const key = HASHES.find((keyHash) => one.member.times.of('list', keyHash).freshMs === 60_000) ?? 0;
  expect(two.member.times.of('list', key)).toMatchObject({ freshMs: 60_000, staleMs: 1 });
  await two.member.timesControl.reset('list');
  await everywhere(({ member }) => member.times.of('list').freshMs === 30_000);
  expect(one.member.times.of('list', key)).toMatchObject({ freshMs: 60_000, staleMs: 300_000 });
});

test('what is adopted rules everywhere', async () => {
  const [one, two] = await openTwo();
  await started(one);
  expect((await two.trials.adopt('list', 'bob'))?.times.to.freshMs).toBe(60_000);
  await everywhere(({ member }) => member.times.of('list').freshMs === 60_000);
  expect(await one.trials.view('list')).toMatchObject({
    trial: { end: { state: 'adopted', controlFreshMs: 30_000 } },
    arms: { control: { freshMs: 30_000 } },
  });
});
