import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HistoryView } from '../../src/admin/history.ts';
import { createRedisHistory } from '../../src/admin/redis-history.ts';
import { hash32 } from '../../src/cache/hash.ts';
import type { ReadReport } from '../../src/cache/hooks.ts';
import { historyKey } from '../../src/redis/names.ts';
import { openRedis, type RedisLink } from '../../src/redis/connection.ts';
import { until } from '../support/key-fleet.ts';
import { ManualClock } from '../support/manual-clock.ts';
import { ManualTimers } from '../support/manual-timers.ts';
import { linkUp } from '../support/redis-link.ts';
import { startRedis, type TestRedis } from '../support/redis.ts';

const STEP_MS = 30_000;
const WRITE_MS = 3000;

let redis: TestRedis;
let link: RedisLink;
let clock: ManualClock;
let timers: ManualTimers;
beforeEach(async () => {
  redis = await startRedis({ controls: true });
  link = openRedis({ url: redis.url, role: 'state' });
  await linkUp(link);
  clock = new ManualClock();
  timers = new ManualTimers(clock);
});
afterEach(async () => {
  await link.close();
  await redis.close();
});

interface Process {
  read(outcome: ReadReport['outcome']): void;
  view(): Promise<HistoryView>;
  close(): Promise<void>;
}

function open(self: string, store = 'test'): Process {
  const history = createRedisHistory({ link, store, self, clock, timers });
  const asked = { class: 'list', key: 'key', keyHash: hash32('key') } as const;
  const rest = { ...asked, tier: null, missReason: null, ageMs: null, durationMs: 1 } as const;
  return {
    read: (outcome) => history.hooks.onRead?.({ ...rest, outcome }),
    view: () => history.view(),
    close: () => history.close(),
  };
}

/** Reads and hits of lists a step, oldest first. */
function reads({ points }: HistoryView): readonly (readonly [number, number])[] {
  return points.map(({ classes }) => [classes.get('list')?.reads ?? 0, classes.get('list')?.hits ?? 0]);
}

/** Lets everybody write, and waits until this is what all of them know. */
async function written(processes: readonly Process[], expected: readonly (readonly [number, number])[]): Promise<void> {
  await timers.advance(WRITE_MS);
  await until(async () => {
    const views = await Promise.all(processes.map((process) => process.view()));
    return views.every((view) => JSON.stringify(reads(view)) === JSON.stringify(expected));
  }, 5000);
}

test('it adds up over processes, and over their ends', async () => {
  const [one, two] = [open('one'), open('two')];
  one.read('hit');
  two.read('miss');
  await written([one, two], [[2, 1]]);
  clock.advance(STEP_MS);
  two.read('hit');
  await written(
    [one, two],
    [
      [2, 1],
      [1, 1],
    ],
  );
  await one.close();
  await two.close();
  const later = open('three');
  later.read('hit');
  expect(reads(await later.view())).toEqual([
    [2, 1],
    [2, 2],
  ]);
});

test('what was not written yet is written at the end', async () => {
  const one = open('one');
  one.read('hit');
  await one.close();
  expect(reads(await open('two').view())).toEqual([[1, 1]]);
});

test('what is written again counts once', async () => {
  const step = historyKey('test', clock.nowMs());
  const [one, two] = [open('one'), open('two')];
  one.read('hit');
  await written([one, two], [[1, 1]]);
  one.read('miss');
  await written([one, two], [[2, 1]]);
  one.read('miss');
  await written([one, two], [[3, 1]]);
  expect(await link.client.hlen(step)).toBe(1);
});

test('it is kept for two hours', async () => {
  const one = open('one');
  one.read('hit');
  await one.close();
  const leftMs = await link.client.pttl(historyKey('test', clock.nowMs()));
  expect(leftMs).toBeGreaterThan(7_190_000);
  expect(leftMs).toBeLessThanOrEqual(7_200_000);
});

test('two stores over one Redis have histories of their own', async () => {
  const one = open('one');
  one.read('hit');
  await one.close();
  expect(reads(await open('two', 'other').view())).toEqual([[0, 0]]);
});

test('what another release has written is left out', async () => {
  const one = open('one');
  one.read('hit');
  await link.client.hset(historyKey('test', clock.nowMs()), { a: '{', b: '{"list":[1]}', c: '{"list":[1,1,0,0]}' });
  expect(reads(await one.view())).toEqual([[2, 2]]);
});

test('without Redis it is what this process has seen, and says so; when Redis is back it is whole', async () => {
  const [one, two] = [open('one'), open('two')];
  two.read('hit');
  await written([one, two], [[1, 1]]);
  expect((await one.view()).scope).toBe('fleet');
  await redis.pause();
  one.read('miss');
  expect(await one.view()).toMatchObject({ scope: 'process' });
  expect(reads(await one.view())).toEqual([[1, 0]]);
  clock.advance(STEP_MS);
  one.read('miss');
  await timers.advance(WRITE_MS);
  await redis.resume();
  await linkUp(link);
  await written(
    [one, two],
    [
      [2, 1],
      [1, 0],
    ],
  );
});
