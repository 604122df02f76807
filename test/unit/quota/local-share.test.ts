/** R5: the share of a limit that a process admits while Redis cannot be asked is admitted once. */
import { expect, test } from 'vitest';
import { LocalShare } from '../../../src/quota/local-share.ts';
import { SlidingWindowLog } from '../../../src/quota/window-log.ts';
import { ManualClock } from '../../support/manual-clock.ts';

const LIMITS = { perMinute: 120, perHour: 1000 };

function admittedOf(share: LocalShare, requests: number): number {
  return Array.from({ length: requests }, () => share.consume('q', LIMITS)).filter(({ admitted }) => admitted).length;
}

test('a decision that Redis made before it had what was admitted here gives nothing of the share back', () => {
  const clock = new ManualClock();
  const share = new LocalShare({ clock, processes: () => 3, maxQuotas: 10 });
  const redis = new SlidingWindowLog();
  const decisions = Array.from({ length: 30 }, () => redis.consume(clock.nowMicros(), LIMITS));
  // One answer of Redis is too late, so the share is used; the answers to calls that were sent after it still arrive.
  const used = admittedOf(share, 100);
  expect(used).toBe(40);
  for (const decision of decisions) share.learn('q', decision);
  expect(admittedOf(share, 100)).toBe(0);
  const merge = share.nextMerge('q');
  for (const decision of decisions) share.learn('q', decision);
  expect(admittedOf(share, 100)).toBe(0);

  // Redis has it now, and what it says counts again.
  for (const [at, count] of merge?.admissions ?? []) redis.add(at, count);
  if (merge !== null) share.merged(merge);
  share.learn('q', redis.consume(clock.nowMicros(), LIMITS));
  expect(redis.usage(clock.nowMicros(), LIMITS).minute.remaining).toBe(120 - 30 - 40 - 1);
  expect(admittedOf(share, 100)).toBe(16);
});

test('what other processes admitted before the last minute takes no room in it', () => {
  const clock = new ManualClock();
  const share = new LocalShare({ clock, processes: () => 1, maxQuotas: 10 });
  const redis = new SlidingWindowLog();
  for (let request = 0; request < 50; request += 1) redis.consume(clock.nowMicros(), LIMITS);
  clock.advance(120_000);
  share.learn('q', redis.consume(clock.nowMicros(), LIMITS));
  // Redis names how many are in the minute, and not whose: the one may be another's too.
  expect(admittedOf(share, 200)).toBe(LIMITS.perMinute - 2);
});
