/**
 * `cache.refreshRate`: after an announced change, records that were lately read are renewed before anybody reads them, so many a
 * second (C11: else each is renewed before it is next served).
 */
import { expect, test, vi } from 'vitest';
import { metricOf } from '../../support/admin.ts';
import { type Reply, startTestGateway, type TestGateway } from '../../support/gateway.ts';
import { HurriedTimers } from '../../support/hurried-timers.ts';
import { forTest } from '../../support/opened.ts';
import { anEvaluation, WORKSPACE_A, WORKSPACE_B } from '../../support/records.ts';

const PER_SECOND = 2;
const INTERVAL_MS = 1000 / PER_SECOND;
const NO_ROOM_WAIT_MS = 100;
const STALE_MS = 3_600_000;
const IDS = ['ev_1', 'ev_2', 'ev_3'] as const;

let gateway: TestGateway;
let timers: HurriedTimers;
let key: string;

/** Every call was read once, but for `ev_unread`; the store has others now. */
async function startWarm(env: Readonly<Record<string, string>> = {}, upstream: object = {}): Promise<void> {
  timers = new HurriedTimers();
  const config = JSON.stringify({ upstream: { adaptive: false, breakerPercent: null, retryPercent: 0, ...upstream } });
  const settings = { CACHE_REFRESH_RATE: String(PER_SECOND), CACHE_EVALUATION_FRESH: '24h', ...env };
  gateway = await forTest(startTestGateway({ env: settings, config, timers }));
  key = await gateway.issueKey({ perMinute: 1_000_000, perHour: 1_000_000 });
  putAll('old');
  for (const id of IDS) await read(id);
  gateway.clock.advance(1000);
  gateway.store.forget();
  putAll('new');
}

function putAll(title: string): void {
  gateway.store.put({ evaluations: [...IDS, 'ev_unread'].map((_id) => anEvaluation({ _id, title })) });
}

const read = (id: string): Promise<Reply> => gateway.get(`/v2/calls/${id}`, { key });

async function announce(ids: readonly string[] = [...IDS, 'ev_unread'], more: object = {}): Promise<void> {
  const changes = ids.map((evaluation) => ({ evaluation, workspace: WORKSPACE_A, ...more }));
  expect(await gateway.admin('POST', '/api/changes', { changes })).toMatchObject({ status: 200 });
}

/** Until no renewal is under way. */
async function settle(): Promise<void> {
  await vi.waitUntil(async () => (await metricOf(gateway, 'evalgate_store_calls_in_flight')) === 0);
}

/** So much time goes by for the rate, and for who looks for room. */
async function elapse(ms: number): Promise<void> {
  gateway.clock.advance(ms);
  timers.elapse(INTERVAL_MS);
  timers.elapse(NO_ROOM_WAIT_MS);
  await settle();
}

const nameOf = ({ text }: Reply): string => /"name":"(old|new|newest)"/.exec(text)?.[1] ?? text;

test('by default nothing is fetched until it is read', async () => {
  await startWarm({ CACHE_REFRESH_RATE: '0' });
  await announce();
  await elapse(60_000);
  expect(gateway.store.calls()).toBe(0);
  expect(nameOf(await read('ev_1'))).toBe('new');
});

test('records are renewed once each, at the rate, however many changes came', async () => {
  await startWarm();
  await announce(['ev_1']);
  await settle();
  for (let i = 0; i < 5; i += 1) await announce(['ev_2', 'ev_3', 'ev_unread']);
  await settle();
  expect(gateway.store.calls()).toBe(1);
  for (const calls of [2, 3, 3, 3]) {
    await elapse(INTERVAL_MS);
    expect(gateway.store.calls()).toBe(calls);
  }
  for (const id of IDS) {
    const reply = await read(id);
    expect([nameOf(reply), reply.headers['cache-status']]).toEqual(['new', expect.stringMatching(/hit; ttl=\d+$/)]);
  }
  expect(gateway.store.calls()).toBe(3);
});

test('a record that was not read within its stale time waits for its next reader, and so does one that is gone', async () => {
  await startWarm();
  gateway.clock.advance(STALE_MS - 1000);
  await read('ev_2');
  await announce();
  await settle();
  await read('ev_2');
  await announce(['ev_2'], { deleted: true });
  await elapse(INTERVAL_MS);
  expect(gateway.store.requests.map(({ path }) => path)).toEqual([expect.stringContaining('/ev_2')]);
});

test('a reader of another workspace does not count', async () => {
  await startWarm();
  gateway.clock.advance(STALE_MS);
  const foreign = await gateway.issueKey({ workspaceIds: [WORKSPACE_B] });
  expect((await gateway.get('/v2/calls/ev_1', { key: foreign })).status).toBe(404);
  gateway.store.forget();
  await announce();
  await elapse(INTERVAL_MS);
  expect(gateway.store.calls()).toBe(0);
});

test('nothing is renewed, or queued to be, while the store has no room', async () => {
  await startWarm({}, { maxConnections: 1 });
  const hold = gateway.store.hold();
  const waiting = read('ev_unread');
  await gateway.store.waitForCalls(1);
  await announce(['ev_1']);
  gateway.clock.advance(60_000);
  timers.elapse(NO_ROOM_WAIT_MS);
  expect(await metricOf(gateway, 'evalgate_store_calls_queued')).toBe(0);
  hold.release();
  await waiting;
  await elapse(INTERVAL_MS);
  expect(gateway.store.calls()).toBe(2);
});

test('nothing is renewed during maintenance', async () => {
  await startWarm();
  expect((await gateway.admin('PUT', '/api/cache/maintenance', { for: '10m' })).status).toBe(200);
  await announce(['ev_1']);
  await elapse(INTERVAL_MS);
  expect(gateway.store.calls()).toBe(0);
  expect((await gateway.admin('DELETE', '/api/cache/maintenance')).status).toBe(200);
  await elapse(INTERVAL_MS);
  expect(gateway.store.calls()).toBe(1);
});

test('a record that was renewed and not read since is left to its next reader', async () => {
  await startWarm();
  const hold = gateway.store.hold();
  await announce(['ev_1']);
  await gateway.store.waitForCalls(1);
  putAll('newest');
  for (let i = 0; i < 5; i += 1) await announce(['ev_1']);
  hold.release();
  await settle();
  await announce(['ev_1']);
  for (let i = 0; i < 4; i += 1) await elapse(INTERVAL_MS);
  expect(gateway.store.calls()).toBe(1);
  expect(nameOf(await read('ev_1'))).toBe('newest');
  expect(gateway.store.calls()).toBe(2);
  await announce(['ev_1']);
  await elapse(INTERVAL_MS);
  expect(gateway.store.calls()).toBe(3);
});

test('one that fails is made again for the next reader', async () => {
  await startWarm();
  const recover = gateway.store.fail(500);
  await announce(['ev_1']);
  await settle();
  recover();
  for (let i = 0; i < 4; i += 1) await elapse(INTERVAL_MS);
  expect(gateway.store.calls()).toBe(1);
  expect(nameOf(await read('ev_1'))).toBe('new');
  expect(gateway.store.calls()).toBe(2);
});

test('after a hard change, too', async () => {
  await startWarm();
  const changes = [{ evaluation: 'ev_1', workspace: WORKSPACE_A }];
  expect((await gateway.admin('POST', '/api/changes', { mode: 'hard', changes })).status).toBe(200);
  await settle();
  expect(nameOf(await read('ev_1'))).toBe('new');
  expect(gateway.store.calls()).toBe(1);
});

test('a copy with another ETag than was announced is renewed again after 1, 3 and 10 s, unread', async () => {
  await startWarm();
  await announce(['ev_1'], { etags: { evaluation: '"another"' } });
  const afterAll = [1000, 3000, 10_000, 60_000];
  for (const [renewals, delayMs] of afterAll.entries()) {
    await gateway.store.waitForCalls(renewals + 1);
    await settle();
    gateway.clock.advance(delayMs - 1);
    timers.elapse(delayMs - 1);
    expect(gateway.store.calls()).toBe(renewals + 1);
    gateway.clock.advance(1);
    timers.elapse(delayMs);
  }
  await settle();
  expect(gateway.store.calls()).toBe(afterAll.length);
});

test('one with the announced ETag is not', async () => {
  await startWarm();
  await read('ev_unread');
  const path = gateway.store.requests[0]?.path.replace('ev_unread', 'ev_1');
  const headers = { authorization: `Bearer ${gateway.store.token}` };
  const etag = (await fetch(`${gateway.store.url}${path}`, { headers })).headers.get('etag');
  gateway.store.forget();
  await announce(['ev_1'], { etags: { evaluation: etag } });
  await gateway.store.waitForCalls(1);
  await settle();
  gateway.clock.advance(1000);
  timers.elapse(1000);
  await elapse(INTERVAL_MS);
  expect(gateway.store.calls()).toBe(1);
});
