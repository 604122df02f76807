import { afterEach, expect, test } from 'vitest';
import { createHistory } from '../../../src/admin/history.ts';
import { singleInstance, type Instances } from '../../../src/redis/instances.ts';
import { CACHE_CLASSES } from '../../../src/cache/times.ts';
import type { WhatIfReport } from '../../../src/cache/what-if/feed.ts';
import { WhatIfModel } from '../../../src/cache/what-if/model.ts';
import { AdjustableTimes } from '../../../src/cache/times.ts';
import { createInsight } from '../../support/insight.ts';
import { ManualClock } from '../../support/manual-clock.ts';
import { aRead } from '../../support/what-if-fleet.ts';
import { type RunningAdmin, startAdmin, START } from './harness.ts';

const clock = new ManualClock(Date.parse(START));
const insight = createInsight(clock);
const NONE = { reads: 0, hits: 0, storeCalls: 0, failed: 0 };

let admin: RunningAdmin | undefined;
afterEach(async () => {
  await admin?.close();
  admin = undefined;
});

async function get(path: string, overrides: Parameters<typeof startAdmin>[0] = { insight }): Promise<unknown> {
  admin = await startAdmin({ clock, ...overrides });
  const { status, json } = await admin.get(path);
  expect(status).toBe(200);
  return json;
}

test('/api/cache/history has all classes in each point, oldest first, and says whose it is', async () => {
  const own = new ManualClock(Date.parse(START));
  const history = createHistory(own);
  history.hooks.onRead?.(aRead('k'));
  own.advance(30_000);
  const nothing = Object.fromEntries(CACHE_CLASSES.map((cacheClass) => [cacheClass, NONE]));
  expect(await get('/api/cache/history', { insight: { ...insight, history } })).toEqual({
    scope: 'process',
    stepMs: 30_000,
    points: [
      { at: '2026-01-15T12:00:00.000Z', classes: { ...nothing, list: { ...NONE, reads: 1, hits: 1 } } },
      { at: '2026-01-15T12:00:30.000Z', classes: nothing },
    ],
  });
});

test('/api/fleet has the processes, which of them was asked, and nothing of the store', async () => {
  const about = { host: 'gw-1', pid: 7, version: '1.2.3', startedAtMs: Date.parse(START), store: 'secret' } as const;
  const one = singleInstance({ ...about, status: 'ready' });
  const list: Instances['list'] = () => [...one.list(), { ...about, id: 'other', status: 'draining' }];
  const shown = { host: 'gw-1', pid: 7, version: '1.2.3', startedAt: START };
  expect(await get('/api/fleet', { insight: { ...insight, members: { id: one.id, list } } })).toEqual({
    members: [
      { ...shown, id: one.id, status: 'ready', self: true },
      { ...shown, id: 'other', status: 'draining', self: false },
    ],
  });
});

test('/api/cache/advice has every class, and beside what would be what really happened in the whole fleet', async () => {
  const nowMs = clock.nowMs();
  const snapshot = new WhatIfModel({ clock, times: new AdjustableTimes() }).snapshot();
  const report = (reads: number, storeCalls: number, forMs: number): WhatIfReport => ({
    snapshot,
    measured: [{ class: 'list', reads, storeCalls, sinceMs: nowMs - forMs }],
  });
  const reports = [report(60, 20, 10_000), report(40, 5, 5000), { snapshot, measured: [] }];
  const json = await get('/api/cache/advice', { insight: { ...insight, whatIf: { reports: async () => reports } } });
  expect(json).toMatchObject({ at: START, processes: 3 });
  expect(json).toHaveProperty('classes.length', CACHE_CLASSES.length);
  expect(json).toHaveProperty('classes.0.class', 'list');
  expect(json).toHaveProperty('classes.0.outdatedLimit', 0.02);
  // 25 calls for 100 reads; 20 in 10 s in one process and 5 in 5 s in the other.
  expect(json).toHaveProperty('classes.0.measured', { hitRatio: 0.75, upstreamRps: 3 });
  expect(json).toHaveProperty('classes.1.measured', null);
});

test('a class that was read and asked more than once for a read has no hits', async () => {
  const snapshot = new WhatIfModel({ clock, times: new AdjustableTimes() }).snapshot();
  const measured = [{ class: 'rubric', reads: 2, storeCalls: 3, sinceMs: clock.nowMs() } as const];
  const whatIf = { reports: async () => [{ snapshot, measured }] };
  const json = await get('/api/cache/advice', { insight: { ...insight, whatIf } });
  expect(json).toHaveProperty('classes.4.measured', { hitRatio: 0, upstreamRps: 3 });
});
