import { expect, test } from 'vitest';
import { DependencyWatch, type Turn } from '../../src/dependencies.ts';
import { watchMaintenance } from '../../src/maintenance-watch.ts';
import { ManualTimers } from '../support/manual-timers.ts';

const MINUTE_MS = 60_000;

function rig() {
  const timers = new ManualTimers();
  const turns: Turn[] = [];
  const dependencies = new DependencyWatch({ clock: timers.clock, onTurn: (turn) => turns.push(turn) });
  const state = watchMaintenance(dependencies, timers.clock, timers);
  const begin = (forMs: number) => state.say(state.until(timers.clock.nowMs() + forMs, 'alice'));
  return { timers, turns, dependencies, state, begin, startedAtMs: timers.clock.nowMs() };
}

test('an end that nobody asks about is told when it comes', async () => {
  const { timers, turns, begin } = rig();
  begin(30 * MINUTE_MS);
  await timers.advance(30 * MINUTE_MS - 1);
  expect(turns.map(({ status }) => status)).toEqual(['degraded']);
  await timers.advance(1);
  expect(turns).toMatchObject([{ status: 'degraded' }, { status: 'ok', lastedMs: 30 * MINUTE_MS }]);
  expect(timers.pendingCount).toBe(0);
});

test('an end that is noticed late is dated by when it was', () => {
  const { timers, turns, dependencies, begin, startedAtMs } = rig();
  begin(30 * MINUTE_MS);
  timers.clock.advance(90 * MINUTE_MS);
  const since = new Date(startedAtMs + 30 * MINUTE_MS).toISOString();
  expect(dependencies.list()).toEqual([{ name: 'maintenance', status: 'ok', since, detail: 'off' }]);
  expect(turns.at(-1)?.lastedMs).toBe(30 * MINUTE_MS);
});

test('an end that is moved counts, and one that somebody brings about is dated by that', async () => {
  const { timers, turns, dependencies, state, begin, startedAtMs } = rig();
  begin(30 * MINUTE_MS);
  begin(60 * MINUTE_MS);
  await timers.advance(45 * MINUTE_MS);
  expect(turns).toHaveLength(1);
  state.say(null);
  expect(turns.at(-1)).toMatchObject({ status: 'ok', lastedMs: 45 * MINUTE_MS });
  expect(dependencies.list()[0]?.since).toBe(new Date(startedAtMs + 45 * MINUTE_MS).toISOString());
  expect(timers.pendingCount).toBe(0);
});
