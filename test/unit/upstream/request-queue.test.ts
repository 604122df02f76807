/** The queue in front of the store by itself: whose turn it is, and which call a full queue drops. */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Permit, RequestQueue } from '../../../src/upstream/request-queue.ts';

const neverLate = { after: () => () => {} };

interface Asked {
  readonly keyId: string;
  readonly isBackground: boolean;
  permit: Permit | null;
}

/** A queue, and how each call that was put into it stands. */
class World {
  readonly queue: RequestQueue;
  readonly calls: Asked[] = [];

  constructor(limits: { readonly maxConnections: number; readonly maxQueue: number; readonly reservePercent: number }) {
    this.queue = new RequestQueue(limits, neverLate);
  }

  async acquire(keyId: string, isBackground = false): Promise<Asked> {
    const call: Asked = { keyId, isBackground, permit: null };
    this.calls.push(call);
    const decide = async (): Promise<void> => {
      call.permit = await this.queue.acquire({ keyId, isBackground, waitMs: 1000 });
    };
    void decide();
    await Promise.resolve();
    return call;
  }

  async release(call: Asked | undefined): Promise<void> {
    if (typeof call?.permit !== 'function') return;
    call.permit();
    this.calls.splice(this.calls.indexOf(call), 1);
    await Promise.resolve();
  }

  inFlight(keyId?: string): Asked[] {
    return this.calls.filter((call) => typeof call.permit === 'function' && (keyId ?? call.keyId) === call.keyId);
  }

  waiting(keyId?: string): Asked[] {
    return this.calls.filter((call) => call.permit === null && (keyId ?? call.keyId) === call.keyId);
  }
}

test('a read takes the place of a refresh, whosever it is, and a refresh never that of a read', async () => {
  const world = new World({ maxConnections: 1, maxQueue: 2, reservePercent: 0 });
  await world.acquire('busy');
  const [older, newer] = [await world.acquire('quiet', true), await world.acquire('quiet', true)];
  await world.acquire('busy');
  expect([older.permit, newer.permit]).toEqual(['queue-full', null]);
  await world.acquire('busy');
  expect((await world.acquire('quiet', true)).permit).toBe('queue-full');
  expect(world.waiting().map(({ keyId }) => keyId)).toEqual(['busy', 'busy']);
});

test('a full queue drops the last call of the key with most waiting ones', async () => {
  const world = new World({ maxConnections: 1, maxQueue: 3, reservePercent: 0 });
  await world.acquire('busy');
  const waiting = [await world.acquire('busy'), await world.acquire('busy'), await world.acquire('busy')];
  await world.acquire('quiet');
  expect(waiting.map(({ permit }) => permit)).toEqual([null, null, 'queue-full']);
});

test('keys with as many calls in flight are served in turn; one that comes takes its place behind the others', async () => {
  const world = new World({ maxConnections: 1, maxQueue: 9, reservePercent: 0 });
  const first = await world.acquire('a');
  for (const keyId of ['a', 'b', 'a', 'b']) await world.acquire(keyId);
  const served: string[] = [];
  for (let call: Asked | undefined = first; call !== undefined; [call] = world.inFlight()) {
    served.push(call.keyId);
    await world.release(call);
  }
  expect(served).toEqual(['a', 'a', 'b', 'a', 'b']);
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
  maxConnections: fc.integer({ min: 1, max: 12 }),
  maxQueue: fc.nat(10),
  reservePercent: fc.nat(90),
});

type Limits = typeof limits extends fc.Arbitrary<infer T> ? T : never;

function maxPerKey({ maxConnections, reservePercent }: Limits): number {
  return Math.max(1, maxConnections - Math.floor((maxConnections * reservePercent) / 100));
}

/** Whether all limits hold, and no key waits for a connection that is free for it. */
function isInOrder(world: World, bounds: Limits): boolean {
  const { length: flying } = world.inFlight();
  const { length: waiting } = world.waiting();
  return (
    world.queue.load().inFlight === flying &&
    world.queue.load().queued === waiting &&
    flying <= bounds.maxConnections &&
    waiting <= bounds.maxQueue &&
    KEYS.every((keyId) => {
      const own = world.inFlight(keyId).length;
      const mayHaveMore = flying < bounds.maxConnections && own < maxPerKey(bounds);
      return own <= maxPerKey(bounds) && !(mayHaveMore && world.waiting(keyId).length > 0);
    })
  );
}

/** Whether the call that was sent in place of the one that ended was next: reads first, then by calls in flight. */
function isFair(served: Asked, waited: readonly Asked[], flying: ReadonlyMap<string, number>, bounds: Limits): boolean {
  const callsOf = (keyId: string): number => flying.get(keyId) ?? 0;
  const rivals = waited.filter(({ keyId }) => callsOf(keyId) < maxPerKey(bounds));
  return rivals.every(({ keyId, isBackground }) => {
    if (isBackground !== served.isBackground) return isBackground;
    return callsOf(served.keyId) <= callsOf(keyId);
  });
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
        expect(served.every((call) => isFair(call, waited, flying, bounds))).toBe(true);
        expect(isInOrder(world, bounds)).toBe(true);
      }
    }),
    { numRuns: 300 },
  );
});
