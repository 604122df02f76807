/** Fair shares: who may have more, whose turn it is, and which place a full queue gives to another. */
import * as fc from 'fast-check';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { FairQueue, type Refusal, type Release, Shares } from '../../src/shares/shares.ts';

const timers = { after: () => () => {} };
let nowMs = 0;
const clock = { nowMicros: () => nowMs * 1000 };

interface Asked {
  readonly keyId: string;
  readonly isBackground: boolean;
  readonly amount: number;
  permit: Release | Refusal | null;
}

interface Limits {
  readonly capacity: number;
  readonly maxWaiting: number;
  readonly reservePercent: number;
  readonly leastReserve?: number;
}

/** A queue, and how each call that was put into it stands. */
class World {
  readonly queue: FairQueue;
  readonly calls: Asked[] = [];
  /** In a row, as a test counts them. */
  awaitedTurns = 0;

  readonly limits: Limits;

  constructor(limits: Limits) {
    this.limits = limits;
    this.queue = new FairQueue(limits, { clock, timers });
  }

  async acquire(keyId: string, isBackground = false, amount = 1): Promise<Asked> {
    const call: Asked = { keyId, isBackground, amount, permit: null };
    this.calls.push(call);
    const priority = isBackground ? 'background' : 'awaited';
    const decide = async (): Promise<void> => {
      call.permit = await this.queue.acquire({ holder: keyId, amount, priority, waitMs: 1000 });
    };
    void decide();
    await nextTurn();
    return call;
  }

  async release(call: Asked | undefined): Promise<void> {
    if (typeof call?.permit !== 'function') return;
    call.permit();
    this.calls.splice(this.calls.indexOf(call), 1);
    await nextTurn();
  }

  inFlight(keyId?: string): Asked[] {
    return this.calls.filter((call) => typeof call.permit === 'function' && (keyId ?? call.keyId) === call.keyId);
  }

  waiting(keyId?: string): Asked[] {
    return this.calls.filter((call) => call.permit === null && (keyId ?? call.keyId) === call.keyId);
  }
}

test('a read takes the place of a refresh, whosever it is, and a refresh never that of a read', async () => {
  const world = new World({ capacity: 1, maxWaiting: 2, reservePercent: 0 });
  await world.acquire('busy');
  const [older, newer] = [await world.acquire('quiet', true), await world.acquire('quiet', true)];
  await world.acquire('busy');
  expect([older.permit, newer.permit]).toEqual(['queue-full', null]);
  await world.acquire('busy');
  expect((await world.acquire('quiet', true)).permit).toBe('queue-full');
  expect(world.waiting().map(({ keyId }) => keyId)).toEqual(['busy', 'busy']);
});

test('a full queue drops the last call of the key with most waiting ones', async () => {
  const world = new World({ capacity: 1, maxWaiting: 3, reservePercent: 0 });
  await world.acquire('busy');
  const waiting = [await world.acquire('busy'), await world.acquire('busy'), await world.acquire('busy')];
  await world.acquire('quiet');
  expect(waiting.map(({ permit }) => permit)).toEqual([null, null, 'queue-full']);
});

test('keys with as many calls in flight are served in turn; one that comes takes its place behind the others', async () => {
  const world = new World({ capacity: 1, maxWaiting: 9, reservePercent: 0 });
  const first = await world.acquire('a');
  for (const keyId of ['a', 'b', 'a', 'b']) await world.acquire(keyId);
  expect(await turnsFrom(world, first)).toEqual(['a', 'a', 'b', 'a', 'b']);
});

const KEYS = ['a', 'b', 'c', 'd'] as const;

const steps = fc.array(
  fc.oneof(
    fc.record({ does: fc.constant('acquire'), keyId: fc.constantFrom(...KEYS), isBackground: fc.boolean() }),
    fc.record({ does: fc.constant('release'), which: fc.nat(100) }),
  ),
  { maxLength: 200 },
);

const limits = fc.record({
  capacity: fc.integer({ min: 1, max: 12 }),
  maxWaiting: fc.nat(10),
  reservePercent: fc.nat(90),
  leastReserve: fc.nat(1),
});

function maxPerKey({ capacity, reservePercent, leastReserve = 0 }: Limits): number {
  return Math.max(1, capacity - Math.max(leastReserve, Math.floor((capacity * reservePercent) / 100)));
}

/** Whether all limits hold, and no key waits for a connection that is free for it. */
function isInOrder(world: World, bounds: Limits): boolean {
  const { length: flying } = world.inFlight();
  const { length: waiting } = world.waiting();
  return (
    world.queue.load().held === flying &&
    world.queue.load().waiting === waiting &&
    flying <= bounds.capacity &&
    waiting <= bounds.maxWaiting &&
    KEYS.every((keyId) => {
      const own = world.inFlight(keyId).length;
      const mayHaveMore = flying < bounds.capacity && own < maxPerKey(bounds);
      return own <= maxPerKey(bounds) && !(mayHaveMore && world.waiting(keyId).length > 0);
    })
  );
}

/** Whether the call that was sent in place of the one that ended was next: by calls in flight; of one key, reads first. */
function isFair(served: Asked, waited: readonly Asked[], flying: ReadonlyMap<string, number>, world: World): boolean {
  const isBackgrounds = world.awaitedTurns >= 9;
  const callsOf = (keyId: string): number => flying.get(keyId) ?? 0;
  const rivals = waited.filter(({ keyId }) => callsOf(keyId) < maxPerKey(world.limits));
  return rivals.every(({ keyId, isBackground }) =>
    keyId === served.keyId
      ? isBackground || !served.isBackground || isBackgrounds
      : callsOf(served.keyId) <= callsOf(keyId) || (isBackgrounds && served.isBackground && !isBackground),
  );
}

test('whatever comes, the limits hold, no connection that may be used is idle, and turns are fair', async () => {
  await fc.assert(
    fc.asyncProperty(limits, steps, async (bounds, all) => {
      const world = new World(bounds);
      for (const step of all) {
        const before = world.inFlight();
        const waited = world.waiting();
        const ended = step.does === 'release' ? before[step.which % Math.max(1, before.length)] : undefined;
        if (step.does === 'acquire') await world.acquire(step.keyId, step.isBackground);
        else await world.release(ended);
        const stillFlying = before.filter((call) => call !== ended);
        const flying = new Map(KEYS.map((id) => [id, stillFlying.filter(({ keyId }) => keyId === id).length]));
        const served = world.inFlight().filter((call) => !before.includes(call));
        expect(served.length).toBeLessThanOrEqual(1);
        expect(served.every((call) => isFair(call, waited, flying, world))).toBe(true);
        for (const { isBackground } of served) world.awaitedTurns = isBackground ? 0 : world.awaitedTurns + 1;
        expect(isInOrder(world, bounds)).toBe(true);
      }
    }),
    { numRuns: 100 },
  );
});

test('one that needs more room than there is waits for it, and nobody who comes later goes before it', async () => {
  const world = new World({ capacity: 10, maxWaiting: 9, reservePercent: 20 });
  const [first, second] = [await world.acquire('a', false, 5), await world.acquire('b', false, 3)];
  const large = await world.acquire('c', false, 7);
  const small = await world.acquire('d', false, 1);
  await world.release(second);
  expect([large.permit, small.permit]).toEqual([null, null]);
  await world.release(first);
  expect([large, small].map(({ permit }) => typeof permit)).toEqual(['function', 'function']);
});

test('one that is larger than all there is goes alone, and a key that waits for its own share keeps nobody waiting', async () => {
  const world = new World({ capacity: 10, maxWaiting: 9, reservePercent: 20 });
  const huge = await world.acquire('a', false, 50);
  const next = await world.acquire('a', false, 6);
  expect([typeof huge.permit, next.permit]).toEqual(['function', null]);
  await world.release(huge);
  expect(typeof next.permit).toBe('function');
  const beyondShare = await world.acquire('a', false, 3);
  const other = await world.acquire('b', false, 4);
  expect([beyondShare.permit, typeof other.permit]).toEqual([null, 'function']);
});

test('work is done in turn, one at a time, and fails as it fails', async () => {
  const queue = new FairQueue({ capacity: 1, maxWaiting: 9, reservePercent: 0 }, { clock, timers });
  const begun: string[] = [];
  const gate = Promise.withResolvers<void>();
  const work = (name: string) => async (): Promise<void> => {
    begun.push(name);
    await gate.promise;
    if (name === 'a2') throw new Error('broken');
  };
  const all = ['a1', 'a2', 'a3', 'b1'].map((name) => queue.run({ holder: name.slice(0, 1) }, work(name)));
  await nextTurn();
  expect(begun).toEqual(['a1']);
  gate.resolve();
  const ends = (await Promise.allSettled(all)).map(({ status }) => status);
  expect(ends).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  expect(begun).toEqual(['a1', 'a2', 'b1', 'a3']);
  expect(queue.load()).toEqual({ held: 0, waiting: 0 });
});

test('what is cleared is refused, and work that has no turn is not done', async () => {
  const world = new World({ capacity: 1, maxWaiting: 9, reservePercent: 0 });
  const held = await world.acquire('a');
  const waiting = await world.acquire('b');
  const work = world.queue.run({ holder: 'c' }, () => Promise.resolve('done'));
  world.queue.clear();
  await expect(work).rejects.toThrow('there was no turn: refused');
  expect(waiting.permit).toBe('refused');
  await world.release(held);
  expect(world.queue.load()).toEqual({ held: 0, waiting: 0 });
});

async function turnsFrom(world: World, first: Asked): Promise<readonly string[]> {
  const names: string[] = [];
  for (let call: Asked | undefined = first; call !== undefined; [call] = world.inFlight()) {
    names.push(`${call.keyId}${call.isBackground ? ' renewal' : ''}`);
    await world.release(call);
  }
  return names;
}

test("the reads of one key do not keep another from its renewals, and a key's own reads go before them", async () => {
  const world = new World({ capacity: 1, maxWaiting: 20, reservePercent: 0 });
  const first = await world.acquire('a');
  for (const isBackground of [true, false, false]) await world.acquire('a', isBackground);
  await world.acquire('b', true);
  expect(await turnsFrom(world, first)).toEqual(['a', 'a', 'b renewal', 'a', 'a renewal']);
});

test('every tenth turn is a renewal', async () => {
  const world = new World({ capacity: 1, maxWaiting: 40, reservePercent: 0 });
  const first = await world.acquire('a');
  for (let turns = 0; turns < 20; turns += 1) await world.acquire('a');
  for (let turns = 0; turns < 3; turns += 1) await world.acquire('a', true);
  const turns = await turnsFrom(world, first);
  expect(turns.flatMap((name, index) => (name === 'a renewal' ? [index + 1] : []))).toEqual([10, 20, 24]);
});

test('the renewals of often-read records go first, and those of others are dropped first', async () => {
  const queue = new FairQueue({ capacity: 1, maxWaiting: 2, reservePercent: 0 }, { clock, timers });
  const done: string[] = [];
  const renew = async (name: string, worth: number, waitMs?: number): Promise<void> => {
    const turn = {
      holder: 'a',
      priority: 'background',
      worth: () => worth,
      ...(waitMs === undefined ? {} : { waitMs }),
    } as const;
    const release = await queue.acquire(turn);
    done.push(typeof release === 'string' ? `${name}: ${release}` : name);
    if (typeof release !== 'string') release();
  };
  const held = await queue.acquire({ holder: 'a' });
  const all = [renew('rare', 1), renew('often', 50), renew('now or never', 99, 0), renew('seldom', 2)];
  await nextTurn();
  if (typeof held !== 'string') held();
  await Promise.all(all);
  expect(done).toEqual(['now or never: queue-timeout', 'rare: queue-full', 'often', 'seldom']);
});

test('what more readers wait for goes first, also if they have come later', async () => {
  const queue = new FairQueue({ capacity: 1, maxWaiting: 9, reservePercent: 0 }, { clock, timers });
  const readers = new Map([
    ['first', 1],
    ['second', 1],
    ['popular', 1],
  ]);
  const done: string[] = [];
  const held = await queue.acquire({ holder: 'a' });
  const all = [...readers.keys()].map(async (name) => {
    const release = await queue.acquire({ holder: 'a', worth: () => readers.get(name) ?? 0 });
    done.push(name);
    if (typeof release !== 'string') release();
  });
  readers.set('popular', 5);
  if (typeof held !== 'string') held();
  await Promise.all(all);
  expect(done).toEqual(['popular', 'first', 'second']);
});

test('one key never has all of what there is, unless that is one', () => {
  const most = [1, 2, 3, 4, 5, 10].map((capacity) => {
    const shares = new Shares({ capacity, reservePercent: 20, leastReserve: 1 });
    while (shares.admits('busy')) shares.take('busy');
    return shares.total;
  });
  expect(most).toEqual([1, 1, 2, 3, 4, 8]);
});

test('a queue that is resized grants what can be granted then, and takes nothing back', async () => {
  const world = new World({ capacity: 1, maxWaiting: 9, reservePercent: 0 });
  const calls = [
    await world.acquire('a'),
    await world.acquire('a'),
    await world.acquire('b'),
    await world.acquire('b'),
  ];
  world.queue.resize({ capacity: 3, maxWaiting: 9 });
  await nextTurn();
  expect(world.inFlight()).toHaveLength(3);
  world.queue.resize({ capacity: 1, maxWaiting: 9 });
  await world.release(calls[0]);
  await world.release(world.inFlight()[0]);
  expect([world.inFlight().length, world.waiting().length]).toEqual([1, 1]);
  await world.release(world.inFlight()[0]);
  expect([world.inFlight().length, world.waiting().length]).toEqual([1, 0]);
});

test('shares: the last fifth is for those who have less than an equal share, however many are greedy', () => {
  const shares = new Shares({ capacity: 100, reservePercent: 20 });
  const takeAll = (holder: string): number => {
    while (shares.admits(holder)) shares.take(holder);
    return shares.of(holder);
  };
  // The last of them have come late, and find what is left for an equal share.
  expect(['a', 'b'].map(takeAll)).toEqual([80, 20]);
  shares.giveBack('a', 30);
  expect(['a', 'b', 'c'].map(takeAll)).toEqual([60, 33, 7]);
  shares.giveBack('a', 10);
  expect([takeAll('a'), takeAll('d')]).toEqual([50, 10]);
  shares.giveBack('c', 1);
  expect([shares.admits('a'), shares.admits('c'), shares.admits('new')]).toEqual([false, true, true]);
});

test('shares: nobody takes the last fifth, a newcomer finds it, and the largest gives up first', () => {
  const shares = new Shares({ capacity: 10, reservePercent: 20 });
  for (let taken = 0; shares.admits('busy'); taken += 1) shares.take('busy');
  expect([shares.of('busy'), shares.hasRoom(), shares.isWithinShare('busy')]).toEqual([8, true, false]);
  shares.take('quiet');
  shares.take('other');
  expect([shares.admits('quiet'), shares.admits('new'), shares.largest()]).toEqual([false, false, 'busy']);
  shares.giveBack('busy', 8);
  expect([shares.total, shares.of('busy'), shares.largest()]).toEqual([2, 0, 'quiet']);
});

test('among equals the one goes first whose turns have taken least', async () => {
  const world = new World({ capacity: 1, maxWaiting: 99, reservePercent: 0 });
  const order = await turnsOf(world, { long: 12, short: 12 });
  expect(order.slice(0, 13)).toEqual(['long', ...Array.from({ length: 12 }, () => 'short')]);
  expect(order).toHaveLength(24);
});

test('one that has not waited has saved up nothing', async () => {
  const world = new World({ capacity: 1, maxWaiting: 99, reservePercent: 0 });
  await turnsOf(world, { other: 20 });
  const order = await turnsOf(world, { other: 9, late: 9 });
  expect(order.slice(0, 8).filter((keyId) => keyId === 'late')).toHaveLength(4);
});

const TURN_MS: Readonly<Record<string, number>> = { long: 700, short: 10, other: 10, late: 10 };

/** So many of each key at once: whose turn it was, until all had theirs. */
async function turnsOf(world: World, calls: Readonly<Record<string, number>>): Promise<string[]> {
  for (const [keyId, count] of Object.entries(calls)) {
    for (let n = 0; n < count; n += 1) await world.acquire(keyId);
  }
  const order: string[] = [];
  for (let [call] = world.inFlight(); call !== undefined; [call] = world.inFlight()) {
    order.push(call.keyId);
    nowMs += TURN_MS[call.keyId] ?? 0;
    await world.release(call);
  }
  return order;
}
