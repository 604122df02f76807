import { expect, test } from 'vitest';
import { createMemoryQuota } from '../../../src/quota/memory-quota.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const LIMITS = { perMinute: 2, perHour: 5 };
const HOUR_MS = 3_600_000;

test('R1: without other windows the quota has a minute and an hour', () => {
  const clock = new ManualClock();
  const quota = createMemoryQuota({ clock });
  const admitted: boolean[] = [];
  const take = () => admitted.push(quota.take('q', LIMITS).admitted);
  take();
  take();
  clock.advance(60_000);
  take();
  clock.advanceMicros(1);
  take();
  take();
  take();
  expect(admitted).toEqual([true, true, false, true, true, false]);
});

test('R1: a clock that goes back admits nothing extra', () => {
  const clock = new ManualClock();
  const quota = createMemoryQuota({ clock });
  for (let i = 0; i < 2; i += 1) quota.take('q', LIMITS);
  const newestMicros = clock.nowMicros();
  clock.advance(-10 * HOUR_MS);
  expect(quota.take('q', LIMITS)).toMatchObject({ admitted: false, nowMicros: newestMicros });
});

test('requests are forgotten once they have left the hour', () => {
  const clock = new ManualClock();
  const quota = createMemoryQuota({ clock });
  for (let i = 0; i < 5; i += 1) {
    quota.take('q', LIMITS);
    clock.advance(HOUR_MS / 5);
  }
  expect(quota.entryCount).toBe(5);
  clock.advanceMicros(1);
  quota.take('q', LIMITS);
  expect(quota.entryCount).toBe(5);
  clock.advance(HOUR_MS / 2);
  quota.take('q', LIMITS);
  quota.take('other', LIMITS);
  expect(quota.entryCount).toBe(5);
});

test('a log is dropped once its newest request has left the hour, and not before', () => {
  const clock = new ManualClock();
  const quota = createMemoryQuota({ clock });
  quota.take('idle', LIMITS);
  clock.advance(HOUR_MS);
  quota.take('q', LIMITS);
  expect(quota.logCount).toBe(2);
  clock.advanceMicros(1);
  quota.take('q', LIMITS);
  expect(quota.logCount).toBe(1);
});

test('a log that is in use is not dropped in place of an idle one that came later', () => {
  const clock = new ManualClock();
  const quota = createMemoryQuota({ clock });
  quota.take('busy', LIMITS);
  quota.take('idle', LIMITS);
  clock.advance(HOUR_MS / 2);
  quota.take('busy', LIMITS);
  clock.advance(HOUR_MS / 2 + 1);
  const decision = quota.take('busy', LIMITS);
  expect(quota.logCount).toBe(1);
  expect(decision.hour.remaining).toBe(3);
});

test('idle logs go a few at a time, so that no request pays for all of them', () => {
  const clock = new ManualClock();
  const quota = createMemoryQuota({ clock });
  for (let i = 0; i < 100; i += 1) quota.take(`q${i}`, LIMITS);
  clock.advance(HOUR_MS + 1);
  const counts: number[] = [];
  for (let i = 0; i < 60; i += 1) {
    quota.take('q', LIMITS);
    counts.push(quota.logCount);
  }
  expect(counts.slice(0, 3)).toEqual([99, 97, 95]);
  expect(counts.at(-1)).toBe(1);
});
