/** S2: how many requests are under way at a time, and that no key takes the place of the others. */
import { describe, expect, test, vi } from 'vitest';
import { Slots } from '../../../src/http/slots.ts';
import { systemClock } from '../../../src/time/clock.ts';
import { systemTimers } from '../../../src/time/timers.ts';
import { AnswerMemory } from '../../../src/upstream/answer-memory.ts';
import { metricOf } from '../../support/admin.ts';
import { forTest } from '../../support/opened.ts';
import { type Reply, startTestGateway } from '../../support/gateway.ts';
import { anEvaluation, EVALUATION_ID } from '../../support/records.ts';

const CALL = `/v2/calls/${EVALUATION_ID}`;

test('readers of one key who wait for a slow call take no slot of another who reads from memory', async () => {
  const gateway = await forTest(
    startTestGateway({ config: '{server: {maxInFlight: 5}, upstream: {adaptive: false}}' }),
  );
  const { get, store, issueKey } = gateway;
  store.put({ evaluations: [anEvaluation()] });
  const [busy, victim] = [await issueKey(), await issueKey()];
  expect((await get(CALL, { key: victim })).status).toBe(200);
  const gate = store.hold();
  const before = store.calls();
  // The room of those that wait has twice as many places as there are slots, of which one key may have four fifths.
  const waiting = Array.from({ length: 8 }, () => get('/v2/calls', { key: busy }));
  await store.waitForCalls(before + 1);
  await vi.waitFor(async () => expect(await metricOf(gateway, 'evalgate_http_connections{listener="public"}')).toBe(8));
  const reads = await Promise.all(Array.from({ length: 4 }, () => get(CALL, { key: victim })));
  const beyond = await Promise.all(Array.from({ length: 3 }, () => get('/v2/calls', { key: busy })));
  const others = await Promise.all([get(CALL, { key: busy }), get('/docs', { isUndocumented: true })]);
  expect(statuses([...reads, ...others])).toEqual([200, 200, 200, 200, 200, 200]);
  for (const { status, headers } of beyond) {
    // The key is known, and the request counted (R2).
    expect([status, headers['x-error-code'], headers['retry-after']]).toEqual([500, 'overloaded', '1']);
    expect(headers['x-ratelimit-limit']).toBe('120');
  }
  gate.release();
  expect(statuses(await Promise.all(waiting))).toEqual(waiting.map(() => 200));
  expect(store.calls() - before).toBe(1);
});

test('a reader for whom there is no place to wait gets the copy that is there', async () => {
  const { get, store, issueKey, clock } = await forTest(
    startTestGateway({ config: '{server: {maxInFlight: 1}, upstream: {adaptive: false}}' }),
  );
  store.put({ evaluations: [anEvaluation()] });
  const key = await issueKey();
  expect((await get(CALL, { key })).status).toBe(200);
  clock.advance(2 * 3_600_000);
  const gate = store.hold();
  const before = store.calls();
  const waiting = [get('/v2/calls', { key }), get('/v2/calls?page=2', { key })];
  await store.waitForCalls(before + 2);
  const kept = await get(CALL, { key });
  expect([kept.status, kept.headers['cache-status']]).toEqual([200, expect.stringMatching(/stale-if-error$/)]);
  gate.release();
  expect(statuses(await Promise.all(waiting))).toEqual([200, 200]);
});

function statuses(replies: readonly Reply[]): readonly number[] {
  return replies.map(({ status }) => status);
}

const memory = new AnswerMemory(1, { clock: systemClock, timers: systemTimers });

describe('slots', () => {
  test('of one address, and of one key, are at most four fifths', () => {
    const onRefused = vi.fn<() => void>();
    const slots = new Slots(10, memory, onRefused);
    const enter = (address: string, count: number) => Array.from({ length: count }, () => slots.enter(address));
    const balancer = enter('10.0.0.1', 9);
    expect(balancer.filter((slot) => slot !== null)).toHaveLength(8);
    expect(balancer.slice(0, 8).map((slot) => slot?.assign('busy'))).toEqual(Array.from({ length: 8 }, () => true));
    const [ninth, tenth, eleventh] = enter('10.0.0.1', 3);
    expect([ninth?.assign('busy'), tenth?.assign('quiet'), eleventh]).toEqual([false, true, null]);
    expect(onRefused).toHaveBeenCalledTimes(3);
  });

  test('are given back once, and a place in the room of those that wait as well', () => {
    const slots = new Slots(1, memory, () => undefined);
    const slot = slots.enter('a');
    expect(slots.enter('b')).toBeNull();
    expect([slot?.wait(), slot?.wait(), slots.serving.total, slots.waiting.total]).toEqual([true, true, 0, 1]);
    slot?.leave();
    slot?.leave();
    expect([slot?.wait(), slot?.assign('key'), slots.serving.total, slots.waiting.total]).toEqual([true, true, 0, 0]);
  });
});
