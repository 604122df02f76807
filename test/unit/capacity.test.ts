import { expect, test } from 'vitest';
import { Capacity } from '../../src/capacity.ts';
import { ManualClock } from '../support/manual-clock.ts';

test('a process that refuses requests is short of capacity until it has refused none for ten seconds', () => {
  const clock = new ManualClock();
  const capacity = new Capacity(clock);
  expect(capacity.now().status).toBe('ok');
  const sinceMs = clock.nowMs();
  capacity.note();
  clock.advance(9999);
  capacity.note();
  clock.advance(9999);
  expect(capacity.now()).toMatchObject({ status: 'degraded', sinceMs });
  clock.advance(1);
  expect(capacity.now().status).toBe('ok');
  capacity.note();
  expect(capacity.now()).toMatchObject({ status: 'degraded', sinceMs: clock.nowMs() });
});
