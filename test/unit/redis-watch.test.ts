import { expect, test } from 'vitest';
import { createMetrics } from '../../src/admin/metrics/metrics.ts';
import { DependencyWatch, type Turn } from '../../src/dependencies.ts';
import { RedisWatch } from '../../src/redis-watch.ts';
import { ManualClock } from '../support/manual-clock.ts';

const GRACE_MS = 3_600_000;

function rig() {
  const clock = new ManualClock(Date.parse('2026-01-15T12:00:00.000Z'));
  const turns: Turn[] = [];
  const dependencies = new DependencyWatch({ clock, onTurn: (turn) => turns.push(turn) });
  const metrics = createMetrics({ version: '0' });
  const watch = new RedisWatch({ dependencies, metrics, clock, isOne: true });
  watch.watch({ caches: { health: () => [] }, processes: () => 2, graceMs: GRACE_MS });
  const detailOf = (name: string) => dependencies.list().find((one) => one.name === name)?.detail;
  const quota = () => dependencies.list().find(({ name }) => name === 'quota')?.status;
  return { watch, turns, clock, detailOf, quota, close: () => metrics.close() };
}

const hears = { role: 'state', hearing: 'hearing', reason: null } as const;

test('a quota is not exact while Redis is absent, whether or not anybody was let in meanwhile', () => {
  const { watch, quota, turns, close } = rig();
  expect([watch.isQuotaExact, quota()]).toEqual([false, 'degraded']);
  watch.onHearing(hears);
  expect([watch.isQuotaExact, turns.at(-1)]).toMatchObject([true, { name: 'quota', status: 'ok' }]);
  watch.onHearing({ ...hears, hearing: 'deaf' });
  expect([watch.isQuotaExact, quota()]).toEqual([true, 'ok']);
  watch.onHearing({ ...hears, hearing: 'alone' });
  expect([watch.isQuotaExact, turns.at(-1)]).toMatchObject([false, { name: 'quota', status: 'degraded' }]);
  // Redis is back before the log has taken in what was admitted without it.
  watch.quotaHooks.onAlone(new Error('no answer'));
  watch.onHearing(hears);
  expect(watch.isQuotaExact).toBe(false);
  watch.quotaHooks.onShared();
  expect([watch.isQuotaExact, quota()]).toEqual([true, 'ok']);
  close();
});

test('nothing is said of keys that were confirmed where none ever was', () => {
  const { watch, clock, detailOf, turns, close } = rig();
  watch.onTrust('offline');
  clock.advance(2 * GRACE_MS);
  expect(detailOf('keys')).toBe(
    'Redis could not be asked since this process started: no key is let in until it answers',
  );
  expect(turns.filter(({ name }) => name === 'keys').map(({ trouble }) => trouble)).toEqual(['never-asked']);
  watch.onTrust('heard');
  watch.onTrust('offline');
  expect(detailOf('keys')).toBe(
    'Redis cannot be asked: keys that it confirmed within 1h stay good, the last of them until 2026-01-15T15:00:00.000Z; no other key is let in',
  );
  close();
});
