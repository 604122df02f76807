/** Repetitions: few, only of what can succeed, and never sooner than the store asks for. */
import { expect, test, vi } from 'vitest';
import { systemTimers, type Timers } from '../../../src/time/timers.ts';
import { putCalls, startUpstreamGateway, type UpstreamGateway } from '../../support/upstream-settings.ts';

const start = (upstream: object = {}): Promise<UpstreamGateway> =>
  startUpstreamGateway({ retryPercent: 100, ...upstream });

/** So many good calls, each of which earns its share of a repetition. */
async function earn(gateway: UpstreamGateway, count: number): Promise<void> {
  for (const id of putCalls(gateway, count, 'earning')) await gateway.read(id);
}

test('a call that failed is repeated at most twice', async () => {
  const gateway = await start();
  await earn(gateway, 5);
  gateway.store.fail(503);
  const reply = await gateway.read('failing');
  expect([reply.status, gateway.store.calls()]).toEqual([500, 5 + 3]);
  expect(await gateway.metric('evalgate_store_retries_total{outcome="failed"}')).toBe(2);
});

test.each([
  ['a reset connection', { misbehave: 'reset' }],
  ['502', { status: 502 }],
  ['503', { status: 503 }],
  ['504', { status: 504 }],
] as const)('after %s the next answer counts', async (_what, faults) => {
  const gateway = await start();
  const [id = ''] = putCalls(gateway, 1);
  const gate = gateway.store.hold();
  const mend = gateway.store.setFaults(faults);
  const reply = gateway.read(id);
  await gateway.store.waitForCalls(1);
  gate.release();
  // The fault was chosen when the gate opened; the repetition comes later.
  await new Promise((resolve) => void setImmediate(resolve));
  mend();
  expect((await reply).status).toBe(200);
  expect(gateway.store.calls()).toBe(2);
  expect(await gateway.metric('evalgate_store_retries_total{outcome="answered"}')).toBe(1);
});

test.each([
  ['500', { status: 500 }],
  ['401', { status: 401 }],
  ['429 without a Retry-After', { status: 429 }],
  ['an unreadable answer', { misbehave: 'html' }],
  ['an answer in no time', { misbehave: 'no-answer' }],
  ['503 that asks for more time than is left', { status: 503, retryAfter: 9 }],
] as const)('after %s the call is not repeated', async (_what, faults) => {
  const gateway = await start({ timeout: '300ms' });
  await earn(gateway, 5);
  gateway.store.setFaults(faults);
  expect((await gateway.read('failing')).status).toBe(500);
  expect(gateway.store.calls()).toBe(5 + 1);
});

test.each([503, 429])('%i: a repetition waits for as long as the Retry-After of the store says', async (status) => {
  const repetitions: (() => void)[] = [];
  const after: Timers['after'] = (delayMs, run) => {
    if (delayMs < 2000 || delayMs > 2200) return systemTimers.after(delayMs, run);
    repetitions.push(run);
    return () => {};
  };
  const gateway = await startUpstreamGateway({ retryPercent: 100 }, { timers: { after } });
  const [id = ''] = putCalls(gateway, 1);
  const mend = gateway.store.fail(status, { 'retry-after': '2' });
  const reply = gateway.read(id);
  await vi.waitFor(() => expect(repetitions).toHaveLength(1));
  mend();
  expect(gateway.store.calls()).toBe(1);
  repetitions[0]?.();
  expect((await reply).status).toBe(200);
  expect(gateway.store.calls()).toBe(2);
});

test('upstream.timeout is for the call and its repetitions together', async () => {
  const gateway = await start({ timeout: '400ms' });
  await earn(gateway, 5);
  gateway.store.override(/failing/, ({ socket }) => {
    if (gateway.store.calls() > 6) return;
    gateway.clock.advance(300);
    socket.resetAndDestroy();
  });
  const reply = await gateway.read('failing');
  expect([reply.status, gateway.store.calls()]).toEqual([500, 7]);
  expect(await gateway.failureOf(reply)).toBe('the store gave no whole answer within 100 ms');
});

test('no more calls are repeated than upstream.retryPercent of all, however many fail', async () => {
  const gateway = await start({ retryPercent: 10 });
  gateway.store.fail(503);
  for (let reads = 0; reads < 100; reads += 1) await gateway.read(`failing_${reads}`);
  expect(gateway.store.calls()).toBe(110);
  expect(await gateway.metric('evalgate_store_retries_total{outcome="over-budget"}')).toBeGreaterThan(80);
});

test('after a long good time ten retries are left', async () => {
  const gateway = await start({ retryPercent: 10 });
  await earn(gateway, 200);
  gateway.store.fail(503);
  await Promise.all(Array.from({ length: 20 }, (_, index) => gateway.read(`failing_${index}`)));
  const repeated = gateway.store.calls() - 220;
  expect(repeated).toBeGreaterThanOrEqual(10);
  // The twenty earn two more.
  expect(repeated).toBeLessThanOrEqual(12);
});

test('with a budget of 0 nothing is repeated', async () => {
  const gateway = await start({ retryPercent: 0 });
  await earn(gateway, 20);
  gateway.store.fail(503);
  await gateway.read('failing');
  expect(gateway.store.calls()).toBe(21);
});

test('a refresh that nobody waits for is not repeated', async () => {
  const gateway = await start();
  const [id = ''] = putCalls(gateway, 1);
  await gateway.read(id);
  gateway.clock.advance(10 * 60_000);
  gateway.store.fail(503);
  expect((await gateway.read(id)).headers['cache-status']).toMatch(/detail=stale-while-revalidate$/);
  await gateway.store.waitForCalls(2);
  // While another read is repeated, a repetition of the refresh would come too.
  await gateway.read('failing');
  expect(gateway.store.requests.filter((request) => request.id === id)).toHaveLength(2);
});

test('while the breaker is open nothing is repeated', async () => {
  const gateway = await start({ breakerPercent: 50 });
  await earn(gateway, 10);
  gateway.clock.advance(10_000);
  gateway.store.fail(503);
  for (let reads = 0; reads < 10; reads += 1) await gateway.read(`failing_${reads}`);
  expect(gateway.store.calls()).toBe(20);
  gateway.clock.advance(1000);
  await gateway.read('probe');
  expect(gateway.store.calls()).toBe(21);
});
