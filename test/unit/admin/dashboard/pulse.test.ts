import { expect, test } from 'vitest';
import { Pulse } from '../../../../src/admin/dashboard/pulse.ts';
import { hash32 } from '../../../../src/cache/hash.ts';
import type { ReadReport } from '../../../../src/cache/hooks.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const START_MS = Date.UTC(2026, 0, 15, 12);

function aRead(overrides: Partial<ReadReport> = {}): ReadReport {
  return {
    class: 'list',
    key: 'k',
    keyHash: hash32('k'),
    outcome: 'hit',
    tier: 'memory',
    missReason: null,
    ageMs: 0,
    durationMs: 1,
    ...overrides,
  };
}

test('each half minute has its own reads, slowest hundredth and copies that stood in', () => {
  const clock = new ManualClock(START_MS);
  const pulse = new Pulse(clock);
  for (let read = 0; read < 100; read += 1) pulse.hooks.onRead?.(aRead({ durationMs: read < 98 ? 1 : 400 }));
  clock.advance(29_999);
  pulse.hooks.onRead?.(aRead({ outcome: 'stale-if-error' }));
  clock.advance(1);
  const [over, underWay] = pulse.view();
  expect(over).toMatchObject({ atMs: START_MS, reads: 101, staleOnError: 1 });
  expect(over?.p99Ms).toBeGreaterThan(370);
  expect(over?.p99Ms).toBeLessThan(430);
  expect(underWay).toEqual({ atMs: START_MS + 30_000, reads: 0, p99Ms: null, staleOnError: 0 });
});

test('an hour is kept, and steps without reads are left out', () => {
  const clock = new ManualClock(START_MS);
  const pulse = new Pulse(clock);
  for (let step = 0; step < 300; step += 1) {
    if (step % 2 === 0) pulse.hooks.onRead?.(aRead());
    clock.advance(30_000);
  }
  const beats = pulse.view();
  expect(beats.at(0)?.atMs).toBe(clock.nowMs() - 3_600_000);
  expect(beats.slice(0, -1).every(({ reads }) => reads === 1)).toBe(true);
  expect(beats).toHaveLength(61);
});
