/** The state that evalgate 0.1 left in Redis is in force, and its trials of a TTL, which no longer exist, do no harm. */
import { afterAll, expect, test, vi } from 'vitest';
import { forFile } from '../support/opened.ts';
import { startTestGateway } from '../support/gateway.ts';
import { anEvaluation, WORKSPACE_A } from '../support/records.ts';
import { connectWhenUp } from '../support/redis/client.ts';
import { startRedis } from '../support/redis.ts';

const HEAD = 'evalgate:{cache}:head';
const NOW_MS = Date.parse('2026-01-15T12:00:00Z');
const TRIAL = {
  id: '3f0c2a54-0000-4000-8000-000000000001',
  class: 'list',
  freshMs: 5000,
  controlFreshMs: 45_000,
  share: 1,
  limits: { maxStoreLoad: 1.5, maxErrors: 0.05 },
  startedAtMs: NOW_MS - 60_000,
  startedBy: 'alice',
  untilMs: NOW_MS + 3_600_000,
  end: null,
};
const ROLLBACK = {
  at: '2026-01-15T11:00:00.000Z',
  who: 'evalgate',
  action: 'cache.trial.rollback',
  target: 'list',
  from: { id: TRIAL.id, class: 'list', fresh: '5s', share: 0.5 },
  to: { cause: 'breaker', reason: 'Its breaker has opened.' },
};

const redis = await forFile(startRedis());
const raw = await connectWhenUp(redis.url, 5000);
await redis.flush();
const maintenance = { sinceMs: NOW_MS - 1000, untilMs: NOW_MS + 600_000, by: 'bob' };
await raw.hset(HEAD, {
  history: 'a-history-of-0.1',
  sequence: 1,
  times: 'a-version',
  maintenance: JSON.stringify(maintenance),
  trials: 'a-version',
});
await raw.rpush('evalgate:{cache}:purges', 'AAAAAAAAAAAA ["soft",["class:rubric"]]');
await raw.hset('evalgate:{cache}:times', 'list.freshMs', '45000');
await raw.hset('evalgate:{cache}:trials', 'list', JSON.stringify(TRIAL));
await raw.lpush('evalgate:{cache}:trials:ended', '{"of":"another release"}');
await raw.hset(`evalgate:{cache}:trials:counts:${TRIAL.id}`, 'a-process', '{}');
await raw.lpush('evalgate:audit', JSON.stringify(ROLLBACK));
const gateway = await forFile(startTestGateway({ env: { REDIS_URL: redis.url } }));
afterAll(() => raw.disconnect());

const body = async (path: string): Promise<unknown> => (await gateway.admin('GET', path)).json;
const isRubricTimeKnown = async (): Promise<boolean> =>
  JSON.stringify(await body('/api/cache/ttl')).includes('"freshMs":1000,');

test('times, maintenance and the audit of 0.1 are as they were', async () => {
  expect(await body('/api/cache/ttl')).toMatchObject({
    classes: [{ class: 'list', fresh: '45s', source: { fresh: 'set' } }, {}, {}, {}, {}, {}, {}],
  });
  expect(await body('/api/cache/maintenance')).toMatchObject({ active: true, by: 'bob' });
  expect(await body('/api/audit')).toMatchObject({ entries: [ROLLBACK] });
});

test('a trial of 0.1 rules no key, also when another process changes it, and is left where it is', async () => {
  expect((await gateway.admin('DELETE', '/api/cache/maintenance')).status).toBe(200);
  gateway.store.put({ evaluations: [anEvaluation()] });
  const key = await gateway.issueKey();
  const list = `/v1/workspaces/${WORKSPACE_A}/reports`;
  expect((await gateway.get(list, { key })).status).toBe(200);
  await raw.hset('evalgate:{cache}:trials', 'list', JSON.stringify({ ...TRIAL, freshMs: 1000 }));
  await raw.hset(HEAD, 'trials', 'another-version');
  // Later changes are known by then.
  await raw.hset('evalgate:{cache}:times', 'rubric.freshMs', '1000');
  await raw.hset(HEAD, 'times', 'another-version');
  await vi.waitUntil(isRubricTimeKnown, { timeout: 10_000, interval: 20 });
  // Past the trial's 5 s, and before the end of the 45 s in force.
  gateway.clock.advance(30_000);
  expect((await gateway.get(list, { key })).status).toBe(200);
  expect(gateway.store.calls()).toBe(1);
  expect(await raw.hget('evalgate:{cache}:trials', 'list')).toContain(TRIAL.id);
});
