import { expect, test } from 'vitest';
import { TopLoads } from '../../../src/admin/top-loads.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const HALF_HOUR_MS = 1_800_000;

function createTop() {
  const clock = new ManualClock();
  const top = new TopLoads(clock);
  const note = (key: string, durationMs: number, route: string | null = '/v2/calls/{callId}'): void =>
    top.note({ class: 'evaluation', key, route, durationMs });
  return { clock, top, note };
}

test('keys and routes are told by the time that they cost the store, the costliest first', () => {
  const { clock, top, note } = createTop();
  const sinceMs = clock.nowMs();
  note('cheap', 5);
  note('cheap', 5);
  note('dear', 100, '/v2/calls');
  note('middling', 40, null);
  expect(top.view(2)).toEqual({
    sinceMs,
    keys: [
      { key: 'dear', class: 'evaluation', storeCalls: 1, storeMs: 100 },
      { key: 'middling', class: 'evaluation', storeCalls: 1, storeMs: 40 },
    ],
    routes: [
      { route: '/v2/calls', storeCalls: 1, storeMs: 100 },
      { route: null, storeCalls: 1, storeMs: 40 },
    ],
  });
});

test('what is told is of the last half hour to hour', () => {
  const { clock, top, note } = createTop();
  const startMs = clock.nowMs();
  note('early', 10);
  clock.advance(HALF_HOUR_MS - 1);
  note('early', 10);
  clock.advance(1);
  note('late', 15);
  expect(top.view(9)).toMatchObject({ sinceMs: startMs, keys: [{ key: 'early', storeCalls: 2 }, { key: 'late' }] });
  clock.advance(HALF_HOUR_MS);
  expect(top.view(9)).toMatchObject({ sinceMs: startMs + HALF_HOUR_MS, keys: [{ key: 'late', storeCalls: 1 }] });
  clock.advance(2 * HALF_HOUR_MS);
  expect(top.view(9)).toEqual({ sinceMs: clock.nowMs(), keys: [], routes: [] });
});

test('of far more keys than are counted, those that carry the load are told, and never too many of their calls', () => {
  const { top, note } = createTop();
  // Ten keys with 1 % of the calls each, spread among 18,000 that come once.
  let once = 0;
  for (let i = 0; i < 20_000; i += 1) {
    const place = i % 100;
    if (place < 10) note(`heavy-${place}`, 10);
    else note(`once-${(once += 1)}`, 10);
  }
  const { keys } = top.view(100);
  const heavy = keys.slice(0, 10);
  expect(heavy.map(({ key }) => key).toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => `heavy-${i}`));
  for (const { storeCalls } of heavy) expect(storeCalls).toBe(200);
  expect(keys.length).toBe(100);
  for (const { storeCalls } of keys.slice(10)) expect(storeCalls).toBe(1);
});
