import { expect, test } from 'vitest';
import type { Dependency } from '../../../src/telemetry/health.ts';
import { readinessOf } from '../../../src/telemetry/readiness.ts';

function dependency(status: Dependency['status'], more: Partial<Dependency> = {}): Dependency {
  return { name: 'store', status, since: '2026-01-15T12:00:00.000Z', detail: status, ...more };
}
const unknown = dependency('unknown');
const ok = dependency('ok');
const warned = dependency('degraded', { severity: 'warning' });
const critical = dependency('degraded', { severity: 'critical' });
const earlier = dependency('degraded', { severity: 'warning', since: '2026-01-15T11:59:00.000Z' });

/** The dependencies that a worker shows that has met `own`, beside another worker that has met `other`. */
function shown(own: Dependency, other: readonly Dependency[]): readonly Dependency[] {
  const workers = { ready: 2, wanted: 2, sinceMs: 0, silent: [], dependencies: [[own], other] };
  const { dependencies } = readinessOf({ status: 'ready', dependencies: [own], workers, hasRedisAnswered: true });
  return dependencies.filter(({ name }) => name !== 'workers');
}

test.each([
  ['critical before a warning', warned, critical, critical],
  ['a warning before all is well', ok, warned, warned],
  ['well, if another one has used it', unknown, ok, ok],
  ['of two warnings the one that is longer there', warned, earlier, earlier],
])('%s, whichever of the two workers answers', (_what, one, other, worst) => {
  expect(shown(one, [other])).toEqual([worst]);
  expect(shown(other, [one])).toEqual([worst]);
});

test('only dependencies of the same name are compared', () => {
  expect(shown(ok, [dependency('degraded', { name: 'redis-state', severity: 'critical' })])).toEqual([ok]);
});
