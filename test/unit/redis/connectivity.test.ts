/** C8: how a process knows whether what it holds is up to date with a Redis. */
import { EventEmitter } from 'node:events';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type Connectivity, ConnectivityWatch, oneAtATime } from '../../../src/redis/connectivity.ts';
import { systemTimers } from '../../../src/time/timers.ts';
import { ManualClock } from '../../support/manual-clock.ts';

/** A link, or its subscriber, that a test sets up and down. */
class FakeHealth {
  readonly #events = new EventEmitter();
  #isUp = false;

  set(isUp: boolean): void {
    this.#isUp = isUp;
    this.#events.emit(isUp ? 'up' : 'down', new Error('down'));
  }

  readonly isUp = (): boolean => this.#isUp;
  readonly onUp = (listener: () => void) => this.#on('up', listener);
  readonly onDown = (listener: (reason: Error) => void) => this.#on('down', listener);

  #on(event: string, listener: (reason: Error) => void): () => void {
    this.#events.on(event, listener);
    return () => this.#events.off(event, listener);
  }

  get listeners(): number {
    return this.#events.listenerCount('up') + this.#events.listenerCount('down');
  }
}

class World {
  readonly link = Object.assign(new FakeHealth(), { subscriber: new FakeHealth() });
  readonly clock = new ManualClock();
  readonly changes: Connectivity[] = [];
  isSettled = false;
  looks = 0;
  /** What a look comes to; by default that of a Redis which answers if the link is up. */
  look = (): Promise<void> => (this.link.isUp() ? Promise.resolve() : Promise.reject(new Error('no answer')));
  readonly watch = new ConnectivityWatch({
    link: this.link,
    look: () => {
      this.looks += 1;
      return this.look();
    },
    clock: this.clock,
    timers: systemTimers,
    onChange: (now) => void this.changes.push(now),
  });

  constructor() {
    void this.#awaitSettled();
  }

  async #awaitSettled(): Promise<void> {
    await this.watch.settled;
    this.isSettled = true;
  }

  /** Both clocks go on together. */
  async wait(ms: number): Promise<void> {
    for (let left = ms; left > 0; left -= 50) {
      this.clock.advance(Math.min(50, left));
      await vi.advanceTimersByTimeAsync(Math.min(50, left));
    }
    await vi.advanceTimersByTimeAsync(0);
  }
}

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

type Step = (world: World) => unknown;
const up: Step = ({ link }) => link.set(true);
const down: Step = ({ link }) => link.set(false);
const heard: Step = ({ link }) => link.subscriber.set(true);
const unheard: Step = ({ link }) => link.subscriber.set(false);
const wait =
  (ms: number): Step =>
  (world) =>
    world.wait(ms);
/** A look whose answer takes that long; those under way are not changed. */
const looksTake =
  (ms: number): Step =>
  (world) => {
    world.look = () => new Promise((resolve) => void setTimeout(resolve, ms));
  };

test.each<[string, readonly Step[], readonly Connectivity[], isSettled: boolean]>([
  ['neither answers nor refuses', [wait(5000)], [], false],
  ['refuses', [down], [], true],
  ['answers, and its messages arrive', [up, heard], ['connected'], true],
  ['answers a second before its messages arrive', [up, wait(950), heard], ['connected'], true],
  ['answers, and its messages do not arrive for over a second', [up, wait(1500)], ['subscriptionLost'], false],
  ['has its messages arrive late', [up, wait(1500), heard], ['subscriptionLost', 'connected'], true],
  ['loses the subscription', [up, heard, unheard], ['connected', 'subscriptionLost'], true],
  ['loses and regains it', [up, heard, unheard, heard], ['connected', 'subscriptionLost', 'connected'], true],
  ['goes away', [up, heard, down], ['connected', 'disconnected'], true],
  ['goes away with the subscription', [up, heard, down, unheard], ['connected', 'disconnected'], true],
  [
    'comes back, the subscription a moment later',
    [up, heard, down, unheard, wait(5000), up, wait(900), heard],
    ['connected', 'disconnected', 'connected'],
    true,
  ],
  [
    'comes back for a moment only, again and again',
    [up, heard, down, unheard, up, wait(900), down, up, wait(900), down],
    ['connected', 'disconnected'],
    true,
  ],
  [
    'loses the subscription during a look, and regains it',
    [up, heard, looksTake(100), wait(550), unheard, heard, wait(90)],
    // The look that was under way proves nothing: only the next one does.
    ['connected', 'subscriptionLost'],
    true,
  ],
])('a Redis that %s', async (_, steps, changes, isSettled) => {
  const world = new World();
  for (const step of steps) {
    await step(world);
    await world.wait(0);
  }
  expect(world.changes).toEqual(changes);
  expect(world.watch.now).toBe(changes.at(-1) ?? 'disconnected');
  expect(world.isSettled).toBe(isSettled);
});

test('what was published by the last look has arrived: it is up to date as of when that was sent', async () => {
  const world = new World();
  world.link.set(true);
  world.link.subscriber.set(true);
  await world.wait(0);
  world.look = () => new Promise((resolve) => void setTimeout(resolve, 200));
  const ageMs = (): number => world.clock.nowMs() - world.watch.upToDateAtMs;
  expect(ageMs()).toBe(0);
  await world.wait(650);
  // It was sent after 500 ms, and has not been answered yet.
  expect(ageMs()).toBe(650);
  await world.wait(100);
  expect(ageMs()).toBe(250);
  world.link.subscriber.set(false);
  expect(ageMs()).toBe(Number.POSITIVE_INFINITY);
});

test('looks come twice a second, and at once when a connection comes or goes', async () => {
  const world = new World();
  world.link.set(true);
  world.link.subscriber.set(true);
  await world.wait(0);
  const before = world.looks;
  await world.wait(10_000);
  expect(world.looks - before).toBe(20);
  for (const [set, change] of [
    [unheard, 1],
    [heard, 2],
    [down, 3],
    [up, 4],
  ] as const) {
    await set(world);
    await world.wait(0);
    expect(world.looks - before).toBe(20 + change);
  }
});

test('a closed watch looks no more, listens to nothing and reports nothing', async () => {
  const world = new World();
  world.link.set(true);
  world.link.subscriber.set(true);
  await world.wait(0);
  world.watch.close();
  const looks = world.looks;
  world.link.set(false);
  await world.wait(5000);
  expect([world.looks - looks, world.changes]).toEqual([0, ['connected']]);
  expect(world.link.listeners + world.link.subscriber.listeners).toBe(0);
});

test('calls while one runs get one run after it, which begins after all of them', async () => {
  const [begun, ends]: [string[], (() => void)[]] = [[], []];
  let asked = 0;
  const call = oneAtATime(() => {
    begun.push(`after ${asked} calls`);
    return new Promise((resolve) => void ends.push(resolve));
  });
  const ask = (): Promise<void> => {
    asked += 1;
    return call();
  };
  const [first, second, third] = [ask(), ask(), ask()];
  ends[0]?.();
  await first;
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toEqual(['after 1 calls', 'after 3 calls']);
  ends[1]?.();
  await Promise.all([second, third]);
  expect(begun).toHaveLength(2);
});
