/** The queue for the store: a bounded number of calls in flight, a bounded queue, and readers before refreshes. */
import { describe, expect, test, vi } from 'vitest';
import { linesOf } from '../../support/admin.ts';
import type { Reply } from '../../support/gateway.ts';
import { anEvaluation, WORKSPACE_A } from '../../support/records.ts';
import { errorText, GET_CALL, TEXTS } from './endpoints.ts';
import { putCalls, startUpstreamGateway, type UpstreamGateway } from '../../support/upstream-settings.ts';

const SHIELDED = errorText(GET_CALL, 500, TEXTS.shielded);

async function waitForQueued(gateway: UpstreamGateway, count: number): Promise<void> {
  await vi.waitFor(async () => expect(await gateway.metric('evalgate_store_calls_queued')).toBe(count));
}

/** Ids in the order in which the store was asked for them. */
function askedIds({ store }: UpstreamGateway): readonly unknown[] {
  return store.requests.map(({ id }) => id);
}

/** Copies of these calls that are stale, so that the next read of each refreshes it. */
async function makeStale(gateway: UpstreamGateway, ids: readonly string[]): Promise<void> {
  for (const id of ids) await gateway.read(id);
  gateway.clock.advance(10 * 60_000);
  gateway.store.requests.length = 0;
}

test('calls wait in order; one that finds upstream.maxQueue others waiting is refused at once', async () => {
  const gateway = await startUpstreamGateway({ maxConnections: 1, maxQueue: 2, queueTimeout: '60s', timeout: '60s' });
  const [a = '', b = '', c = '', d = ''] = putCalls(gateway, 4);
  const gate = gateway.store.hold();
  const replies = [gateway.read(a)];
  for (const [index, id] of [b, c].entries()) {
    await gateway.store.waitForCalls(1);
    replies.push(gateway.read(id));
    await waitForQueued(gateway, index + 1);
  }
  const refused = await gateway.read(d);
  expect([refused.status, refused.text, refused.headers['retry-after']]).toEqual([500, SHIELDED, '60']);
  expect(await gateway.failureOf(refused)).toBe('the call was not sent to the store: 2 others waited');
  gate.release();
  expect((await Promise.all(replies)).map(({ status }) => status)).toEqual([200, 200, 200]);
  expect(askedIds(gateway)).toEqual([a, b, c]);
  expect(await gateway.metric('evalgate_store_calls_refused_total{reason="queue-full"}')).toBe(1);
  // Calls that the gateway did not send say nothing about the store.
  expect(linesOf(gateway).filter(({ msg }) => msg === 'the store is failing')).toEqual([]);
});

test('a call that has waited upstream.queueTimeout is refused and never sent', async () => {
  const gateway = await startUpstreamGateway({ maxConnections: 1, queueTimeout: '50ms' });
  const [a = '', b = '', c = ''] = putCalls(gateway, 3);
  const gate = gateway.store.hold();
  const first = gateway.read(a);
  await gateway.store.waitForCalls(1);
  const refused = await gateway.read(b);
  expect([refused.status, refused.text, refused.headers['retry-after']]).toEqual([500, SHIELDED, '1']);
  expect(await gateway.failureOf(refused)).toBe('the call was not sent to the store: it had waited for 50 ms');
  gate.release();
  expect((await first).status).toBe(200);
  expect((await gateway.read(c)).status).toBe(200);
  expect(askedIds(gateway)).toEqual([a, c]);
});

test('C11: a copy from before a change is renewed before it is served, however long its call waits for its turn', async () => {
  const gateway = await startUpstreamGateway({ maxConnections: 1, queueTimeout: '50ms' });
  const [changed = '', busy = '', other = ''] = putCalls(gateway, 3);
  await gateway.read(changed);
  gateway.store.put({ evaluations: [anEvaluation({ _id: changed, title: 'another' })] });
  const changes = [{ evaluation: changed, workspace: WORKSPACE_A }];
  expect((await gateway.admin('POST', '/api/changes', { changes })).status).toBe(200);
  const gate = gateway.store.hold();
  const first = gateway.read(busy);
  await gateway.store.waitForCalls(2);
  const waiting = gateway.read(changed);
  await waitForQueued(gateway, 1);
  // Its time in the queue is over after that of the call before it.
  expect((await gateway.read(other)).text).toBe(SHIELDED);
  gate.release();
  expect((await first).status).toBe(200);
  expect((await waiting).text).toContain('another');
});

test('with a queue of nothing a call that finds no connection free is refused, and its copy is served', async () => {
  const gateway = await startUpstreamGateway({ maxConnections: 1, maxQueue: 0 });
  const [a = '', b = ''] = putCalls(gateway, 2);
  await makeStale(gateway, [a, b]);
  gateway.clock.advance(2 * 3_600_000);
  const gate = gateway.store.hold();
  const first = gateway.read(a);
  await gateway.store.waitForCalls(1);
  const kept = await gateway.read(b);
  expect([kept.status, kept.headers['cache-status']]).toEqual([200, expect.stringMatching(/detail=stale-if-error$/)]);
  gate.release();
  expect((await first).status).toBe(200);
});

test('C3: reads that somebody waits for go before refreshes, and take their places in a full queue', async () => {
  const gateway = await startUpstreamGateway({ maxConnections: 1, maxQueue: 2, queueTimeout: '60s', timeout: '60s' });
  const [busy = '', old = '', newer = '', read = ''] = putCalls(gateway, 4);
  await makeStale(gateway, [old, newer]);
  const gate = gateway.store.hold();
  const first = gateway.read(busy);
  await gateway.store.waitForCalls(1);
  for (const [index, id] of [old, newer].entries()) {
    expect((await gateway.read(id)).headers['cache-status']).toMatch(/detail=stale-while-revalidate$/);
    await waitForQueued(gateway, index + 1);
  }
  // The oldest refresh gives up its place.
  const second = gateway.read(read);
  const refused = 'evalgate_store_calls_refused_total{reason="renewal-dropped"}';
  await vi.waitFor(async () => expect(await gateway.metric(refused)).toBe(1));
  gate.release();
  expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200]);
  await gateway.store.waitForCalls(3);
  expect(askedIds(gateway)).toEqual([busy, read, newer]);
});

/** Two keys at a store that bears ten calls, of which one key may have eight. */
async function startWithTwoKeys() {
  const limits = { maxConnections: 10, maxQueue: 10, queueTimeout: '60s', timeout: '60s' };
  const gateway = await startUpstreamGateway(limits);
  const keys = { busy: await gateway.issueKey(), quiet: await gateway.issueKey() };
  const readMany = (who: 'busy' | 'quiet', count: number): readonly Promise<Reply>[] =>
    putCalls(gateway, count, who).map((id) => gateway.get(`/v2/calls/${id}`, { key: keys[who] }));
  /** How many calls each key has sent. */
  const sent = (): readonly number[] =>
    ['busy', 'quiet'].map((who) => gateway.store.requests.filter(({ id }) => id?.startsWith(who) === true).length);
  return { gateway, readMany, sent };
}

describe('one busy key and another', () => {
  test('find connections, their share of the queue, and turns until both have as many calls in flight', async () => {
    const { gateway, readMany, sent } = await startWithTwoKeys();
    const { store } = gateway;
    const hold = store.hold();
    const busy = readMany('busy', 18);
    await store.waitForCalls(8);
    await waitForQueued(gateway, 10);
    expect(sent()).toEqual([8, 0]);
    const quiet = readMany('quiet', 6);
    await store.waitForCalls(10);
    const dropped = 'evalgate_store_calls_refused_total{reason="queue-full"}';
    await vi.waitFor(async () => expect(await gateway.metric(dropped)).toBe(4));
    expect(sent()).toEqual([8, 2]);
    for (const [ended, ...expected] of [
      ['busy', 8, 3],
      ['busy', 8, 4],
      ['busy', 8, 5],
      // Each has five in flight now, so whoever has one less is next.
      ['busy', 9, 5],
      ['quiet', 9, 6],
    ] as const) {
      hold.answers.find(({ path }) => path.includes(`/${ended}_`))?.send();
      await store.waitForCalls(expected[0] + expected[1]);
      expect(sent()).toEqual(expected);
    }
    hold.release();
    expect((await Promise.all(quiet)).map(({ status }) => status)).toEqual(quiet.map(() => 200));
    const statuses = (await Promise.all(busy)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(14);
  });

  test('upstream.reservePercent 0 gives all connections to the one that comes first', async () => {
    const gateway = await startUpstreamGateway({ maxConnections: 10, reservePercent: 0 });
    const hold = gateway.store.hold();
    const replies = putCalls(gateway, 10).map((id) => gateway.read(id));
    await gateway.store.waitForCalls(10);
    hold.release();
    expect((await Promise.all(replies)).map(({ status }) => status)).toEqual(replies.map(() => 200));
  });
});

test('a reader who leaves while the call waits costs the store nothing', async () => {
  const gateway = await startUpstreamGateway({ maxConnections: 1, queueTimeout: '60s', timeout: '60s' });
  const [a = '', b = '', c = ''] = putCalls(gateway, 3);
  const gate = gateway.store.hold();
  const first = gateway.read(a);
  await gateway.store.waitForCalls(1);
  const controller = new AbortController();
  const headers = { authorization: `Bearer ${await gateway.issueKey()}` };
  const gone = fetch(`${gateway.publicUrl}/v2/calls/${b}`, { headers, signal: controller.signal }).catch(() => 'gone');
  await waitForQueued(gateway, 1);
  controller.abort();
  await gone;
  await vi.waitFor(() => expect(linesOf(gateway)).toContainEqual(expect.objectContaining({ aborted: true })));
  gate.release();
  expect((await first).status).toBe(200);
  expect((await gateway.read(c)).status).toBe(200);
  expect(askedIds(gateway)).toEqual([a, c]);
});

test('upstream.maxRequestsPerSecond: after a burst of a tenth of it calls go one by one', async () => {
  const limits = { maxRequestsPerSecond: 20, queueTimeout: '60s', timeout: '60s' };
  const gateway = await startUpstreamGateway(limits);
  const replies = putCalls(gateway, 8).map((id) => gateway.read(id));
  await gateway.store.waitForCalls(2);
  await waitForQueued(gateway, 6);
  for (let sent = 3; sent <= 8; sent += 1) {
    expect(gateway.store.calls()).toBe(sent - 1);
    gateway.clock.advance(50);
    await gateway.store.waitForCalls(sent);
    await waitForQueued(gateway, 8 - sent);
  }
  expect((await Promise.all(replies)).map(({ status }) => status)).toEqual(replies.map(() => 200));
});
