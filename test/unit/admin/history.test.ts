import { beforeEach, expect, test } from 'vitest';
import { createHistory, type History, type HistoryPoint, sumOf } from '../../../src/admin/history.ts';
import { hash32 } from '../../../src/cache/hash.ts';
import type { ReadReport } from '../../../src/cache/hooks.ts';
import type { CacheClass } from '../../../src/cache/times.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const STEP_MS = 30_000;

let clock: ManualClock;
let history: History;
let beganAtMs: number;
beforeEach(() => {
  clock = new ManualClock();
  history = createHistory(clock);
  beganAtMs = clock.nowMs();
});

function read(outcome: ReadReport['outcome'], cacheClass: CacheClass = 'list'): void {
  const tiers = { tier: null, missReason: null, ageMs: null, durationMs: 1 } as const;
  history.hooks.onRead?.({ class: cacheClass, key: 'key', keyHash: hash32('key'), outcome, ...tiers });
}

function callStore(cacheClass: CacheClass = 'list'): void {
  history.hooks.onStoreCall?.({
    class: cacheClass,
    key: 'key',
    route: null,
    durationMs: 1,
  });
}

function shown(points: readonly HistoryPoint[]): unknown {
  return points.map(({ atMs, classes }) => [atMs - beganAtMs, Object.fromEntries(classes)]);
}

test('reads, hits, store calls and failures are counted by class in steps of half a minute', async () => {
  for (const outcome of ['hit', 'stale-while-revalidate', 'stale-if-error', 'miss', 'collapsed', 'failed'] as const)
    read(outcome);
  read('hit', 'rubric');
  callStore();
  clock.advance(STEP_MS - 1);
  callStore();
  clock.advance(1);
  read('hit');
  expect(await history.view()).toMatchObject({ scope: 'process' });
  expect(shown((await history.view()).points)).toEqual([
    [
      0,
      {
        list: { reads: 6, hits: 2, storeCalls: 2, failed: 1 },
        rubric: { reads: 1, hits: 1, storeCalls: 0, failed: 0 },
      },
    ],
    [STEP_MS, { list: { reads: 1, hits: 1, storeCalls: 0, failed: 0 } }],
  ]);
});

test('it begins with the first step in which anything was, and has no gaps', async () => {
  expect(shown((await history.view()).points)).toEqual([[0, {}]]);
  clock.advance(5 * STEP_MS);
  read('miss');
  clock.advance(2 * STEP_MS);
  expect(shown((await history.view()).points)).toEqual([
    [5 * STEP_MS, { list: { reads: 1, hits: 0, storeCalls: 0, failed: 0 } }],
    [6 * STEP_MS, {}],
    [7 * STEP_MS, {}],
  ]);
});

test('an hour is kept, and the step under way', async () => {
  read('hit');
  clock.advance(120 * STEP_MS);
  expect((await history.view()).points).toHaveLength(121);
  clock.advance(STEP_MS);
  read('hit');
  expect(shown((await history.view()).points)).toEqual([
    [121 * STEP_MS, { list: { reads: 1, hits: 1, storeCalls: 0, failed: 0 } }],
  ]);
});

const of = (reads: number) => ({ reads, hits: 2 * reads, storeCalls: 3 * reads, failed: 4 * reads });

test('what several have done adds up by class', () => {
  const sum = sumOf([new Map([['list', of(1)]]), new Map([['rubric', of(5)]]), new Map([['list', of(2)]])]);
  expect(sum).toEqual(
    new Map([
      ['list', of(3)],
      ['rubric', of(5)],
    ]),
  );
});
