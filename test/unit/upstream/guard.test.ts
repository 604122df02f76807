/** The outcome for the first readers of a new process, over a store whose capacity is yet to be found. */
import { expect, test } from 'vitest';
import { Guard, type GuardLimits } from '../../../src/upstream/guard.ts';
import { RESOURCES } from '../../../src/upstream/resources.ts';
import type { Fetch } from '../../../src/upstream/store.ts';
import { StoreError } from '../../../src/upstream/store-error.ts';
import { FakeTime } from '../../support/flight-world.ts';

const LIMITS: GuardLimits = {
  maxConnections: 50,
  maxQueue: 100,
  reservePercent: 20,
  timeoutMs: 10_000,
  queueTimeoutMs: 1000,
  adaptive: true,
  retryPercent: 0,
  breakerPercent: 50,
};

/** A store that answers a record after the time that `latencyMs` gives it; null: never. */
class World {
  readonly time = new FakeTime();
  readonly guard: Guard;
  readonly ended: { readonly id: string; readonly afterMs: number; readonly error: unknown }[] = [];
  /** The most calls that were under way. */
  most = 0;
  #inFlight = 0;

  constructor(latencyMs: (path: string) => number | null, limits: Partial<GuardLimits> = {}) {
    const { time } = this;
    const send: Fetch = async (resource, params, { timeoutMs = 0, onHeaders }) => {
      this.#inFlight += 1;
      this.most = Math.max(this.most, this.#inFlight);
      const ms = latencyMs(resource.path(params));
      await new Promise<void>((resolve) => void time.after(Math.min(ms ?? Infinity, timeoutMs), resolve));
      this.#inFlight -= 1;
      if (ms === null || ms > timeoutMs) throw new StoreError('timeout', 'no answer came');
      onHeaders?.();
      return { kind: 'absent', code: 'NOT_FOUND' };
    };
    this.guard = new Guard(send, { limits: { ...LIMITS, ...limits }, clock: time, timers: time });
  }

  read(id: string, keyId: string, isUrgent = false): void {
    const startedMs = this.time.nowMs();
    const end = (error: unknown): void => void this.ended.push({ id, afterMs: this.time.nowMs() - startedMs, error });
    const options = { requestId: id, keyId, isUrgent };
    void this.guard.fetch(RESOURCES.evaluation, { id }, options).then(() => end(null), end);
  }

  failed(): unknown[] {
    return this.ended.filter(({ error }) => error !== null);
  }
}

function readMany(world: World, count: number, keys: number): void {
  for (let i = 0; i < count; i += 1) world.read(`r${i}`, `key-${i % keys}`);
}

test('a burst that a fixed limit would bear is borne by one that is found', async () => {
  for (const adaptive of [true, false]) {
    const world = new World(() => 100, { adaptive });
    readMany(world, 150, 5);
    await world.time.advance(3000);
    expect(world.failed()).toEqual([]);
    expect(world.ended).toHaveLength(150);
    // Three waves of 50, and at first some smaller ones.
    expect(Math.max(...world.ended.map(({ afterMs }) => afterMs))).toBeLessThanOrEqual(adaptive ? 1100 : 300);
  }
});

test('a slow store’s first readers wait for few of its answers, none longer than upstream.timeout', async () => {
  const world = new World(() => 800);
  readMany(world, 60, 5);
  await world.time.advance(10_000);
  expect(world.failed()).toEqual([]);
  expect(Math.max(...world.ended.map(({ afterMs }) => afterMs))).toBeLessThanOrEqual(7 * 800);
});

test('one API key alone makes the limit grow, though it may not have all of it', async () => {
  const world = new World(() => 50);
  readMany(world, 140, 1);
  await world.time.advance(3000);
  expect(world.failed()).toEqual([]);
  expect(world.most).toBeGreaterThan(30);
  expect(world.guard.status().limit).toBeGreaterThanOrEqual(40);
});

test.each([
  ['a first call that hangs', ['r0']],
  ['first calls that all hang', ['r0', 'r1', 'r2', 'r3']],
])('%s: the others are answered', async (_what, hanging) => {
  const world = new World((path) => (hanging.some((id) => path.endsWith(`/${id}`)) ? null : 50));
  readMany(world, 60, 5);
  await world.time.advance(4000);
  expect(world.ended).toHaveLength(60 - hanging.length);
  expect(world.failed()).toEqual([]);
  expect(world.guard.status().limit).toBeGreaterThanOrEqual(16);
});

test('a store that answers nothing at all gets more calls from second to second, and opens the circuit', async () => {
  const world = new World(() => null);
  readMany(world, 40, 5);
  await world.time.advance(999);
  expect(world.most).toBe(2);
  await world.time.advance(2001);
  expect(world.most).toBe(16);
  await world.time.advance(10_000);
  expect(world.failed()).toHaveLength(40);
  expect(world.guard.status().isOpen).toBe(true);
});

test('C11: an urgent call waits for its turn as long as a call may take; others give up after upstream.queueTimeout', async () => {
  const world = new World((path) => (path.endsWith('/slow') ? 3000 : 20), { adaptive: false, maxConnections: 1 });
  world.read('slow', 'key');
  world.read('urgent', 'key', true);
  world.read('other', 'key');
  await world.time.advance(4000);
  const ends = world.ended.map(({ id, afterMs, error }) => [
    id,
    afterMs,
    error instanceof StoreError && error.isGivenUp,
  ]);
  expect(ends).toEqual([
    ['other', 1000, true],
    ['slow', 3000, false],
    ['urgent', 3020, false],
  ]);
});
