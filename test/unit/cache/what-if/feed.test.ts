import { expect, test } from 'vitest';
import { hash32 } from '../../../../src/cache/hash.ts';
import { combineHooks } from '../../../../src/cache/combine-hooks.ts';
import type { ReadReport } from '../../../../src/cache/hooks.ts';
import { WhatIfModel } from '../../../../src/cache/what-if/model.ts';
import { localWhatIf } from '../../../../src/cache/what-if/what-if.ts';
import { AdjustableTimes } from '../../../../src/cache/times.ts';
import { ManualClock } from '../../../support/manual-clock.ts';

const clock = new ManualClock();
const READ: ReadReport = {
  class: 'list',
  key: 'v1:{list:all}',
  keyHash: hash32('v1:{list:all}'),
  outcome: 'hit',
  tier: 'memory',
  missReason: null,
  ageMs: 5,
  durationMs: 0.1,
};

test('a gateway that is alone follows what it reads itself, but nothing that failed', async () => {
  const reads: unknown[] = [];
  const refreshes: unknown[] = [];
  const model = new WhatIfModel({ clock, times: new AdjustableTimes() });
  const whatIf = localWhatIf({
    clock,
    model: {
      read: (...read) => reads.push(read),
      refreshed: (...refreshed) => refreshes.push(refreshed),
      snapshot: () => model.snapshot(),
    },
  });
  const hooks = combineHooks({}, whatIf.hooks);
  const beganAtMs = clock.nowMs();
  hooks.onRead(READ);
  clock.advance(2000);
  hooks.onRead({ ...READ, outcome: 'miss', tier: null, missReason: 'expired' });
  hooks.onRead({ ...READ, outcome: 'failed', tier: null, missReason: 'expired', ageMs: null });
  hooks.onRefresh({ class: 'list', key: READ.key, changed: true, sinceMs: 700 });
  const keyHash = hash32(READ.key);
  hooks.onStoreCall({ class: 'list', key: READ.key, route: null, durationMs: 9 });
  expect(reads).toEqual([
    ['list', keyHash, beganAtMs],
    ['list', keyHash, beganAtMs + 2000],
  ]);
  expect(refreshes).toEqual([['list', true, 700]]);
  expect(await whatIf.reports()).toEqual([
    { snapshot: model.snapshot(), measured: [{ class: 'list', reads: 2, storeCalls: 1, sinceMs: beganAtMs }] },
  ]);
});
