/** How a process reports what it can know of a Redis. */
import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { type Connectivity, ConnectivityReport } from '../../../src/redis/connectivity.ts';
import { FakeTime } from '../../support/flight-world.ts';

class ReplyError extends Error {
  override readonly name = 'ReplyError';
}

class World {
  readonly #events = new EventEmitter();
  readonly time = new FakeTime();
  readonly changes: Connectivity[] = [];
  readonly reasons: unknown[] = [];
  isUp = false;
  isCurrent = false;
  failure: unknown = null;
  readonly report = new ConnectivityReport({
    link: {
      isUp: () => this.isUp,
      downReason: new Error('down'),
      onUp: (listener) => this.#on('up', listener),
      onDown: (listener) => this.#on('down', listener),
    },
    isCurrent: () => this.isCurrent,
    failure: () => this.failure,
    timers: this.time,
    onChange: (now, reason) => {
      this.changes.push(now);
      this.reasons.push(reason);
    },
  });

  setUp(isUp: boolean): void {
    this.isUp = isUp;
    this.#events.emit(isUp ? 'up' : 'down', new Error('down'));
  }

  get listeners(): number {
    return this.#events.listenerCount('up') + this.#events.listenerCount('down');
  }

  #on(event: string, listener: (reason: Error) => void): () => void {
    this.#events.on(event, listener);
    return () => this.#events.off(event, listener);
  }
}

type Step = (world: World) => unknown;
const up: Step = (world) => world.setUp(true);
const down: Step = (world) => world.setUp(false);
const news: Step = (world) => (world.isCurrent = true);
const noNews: Step = (world) => (world.isCurrent = false);
const wait =
  (ms: number): Step =>
  ({ time }) =>
    time.advance(ms);

test.each<[string, readonly Step[], readonly Connectivity[]]>([
  ['neither answers nor refuses', [wait(5000)], []],
  ['answers, and its news arrive', [up, news, wait(250)], ['hearing']],
  ['answers almost a second before its news arrive', [up, wait(750), news, wait(250)], ['hearing']],
  ['answers, and its news do not arrive', [up, wait(1500)], ['deaf']],
  ['has its news arrive late', [up, wait(1500), news, wait(250)], ['deaf', 'hearing']],
  ['sends no more news', [up, news, wait(250), noNews, wait(250)], ['hearing', 'deaf']],
  ['goes away', [up, news, wait(250), down], ['hearing', 'alone']],
  [
    'comes back, the news a moment later',
    [up, news, wait(250), noNews, down, wait(5000), up, wait(750), news, wait(250)],
    ['hearing', 'alone', 'hearing'],
  ],
])('a Redis that %s', async (_, steps, changes) => {
  const world = new World();
  for (const step of steps) await step(world);
  expect(world.changes).toEqual(changes);
  expect(world.report.now).toBe(changes.at(-1) ?? 'alone');
});

test('a Redis that refuses to be asked for news counts as one that does not answer, and says why', async () => {
  const world = new World();
  world.failure = new ReplyError('NOPERM no rights');
  world.setUp(true);
  await world.time.advance(5000);
  expect([world.changes, world.reasons]).toEqual([['alone'], [world.failure]]);
});

test('a closed report looks no more, listens to nothing and reports nothing', async () => {
  const world = new World();
  world.isCurrent = true;
  world.setUp(true);
  world.report.close();
  world.setUp(false);
  await world.time.advance(5000);
  expect([world.changes, world.listeners]).toEqual([['hearing'], 0]);
});
