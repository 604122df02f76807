import { expect, test } from 'vitest';
import { type Dependency, worstOf } from '../../../src/telemetry/health.ts';

function dependency(status: Dependency['status'], more: Partial<Dependency> = {}): Dependency {
  return { name: 'store', status, since: '2026-01-15T12:00:00.000Z', detail: status, ...more };
}
const unknown = dependency('unknown');
const ok = dependency('ok');
const warned = dependency('degraded', { severity: 'warning' });
const critical = dependency('degraded', { severity: 'critical' });
const earlier = dependency('degraded', { severity: 'warning', since: '2026-01-15T11:59:00.000Z' });

test.each([
  ['critical before a warning', warned, critical, critical],
  ['a warning before all is well', ok, warned, warned],
  ['well, if another one has used it', unknown, ok, ok],
  ['of two warnings the one that is longer there', warned, earlier, earlier],
  ['its own, if it is no better elsewhere', ok, unknown, ok],
])('%s, whoever of the two answers', (_what, one, other, shown) => {
  expect(worstOf([one], [[other]])).toEqual([shown]);
  expect(worstOf([other], [[one]])).toEqual([shown]);
});

test('other dependencies are no match, and one that only another worker has is not shown', () => {
  const redis = dependency('degraded', { name: 'redis-state', severity: 'critical' });
  expect(worstOf([ok], [[redis], []])).toEqual([ok]);
});
