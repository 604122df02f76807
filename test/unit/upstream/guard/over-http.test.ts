/** The guard around the real client, in front of real servers. */
import { onTestFinished, expect, test } from 'vitest';
import { systemClock } from '../../../../src/clock.ts';
import { systemTimers } from '../../../../src/timers.ts';
import { type GuardLimits, guardStore } from '../../../../src/upstream/guard/guard.ts';
import { anEvaluation, EVALUATION_ID } from '../../../support/records.ts';
import { ASKED, failureOf, openClient, openEvilStore, openStore } from '../harness.ts';

const LIMITS: GuardLimits = {
  timeoutMs: 5000,
  maxInFlight: 4,
  maxQueue: 1000,
  queueTimeoutMs: 5000,
  retryPercent: 100,
  breakerPercent: 50,
};

function guard(store: ReturnType<typeof openClient>['client'], limits: Partial<GuardLimits> = {}) {
  return guardStore({ store, limits: { ...LIMITS, ...limits }, clock: systemClock, timers: systemTimers });
}

test('a store that resets connections is asked again, and its answer counts', async () => {
  const { store, client } = await openStore();
  store.put({ evaluations: [anEvaluation()] });
  const heal = store.resetConnections();
  const answer = guard(client).evaluation(EVALUATION_ID, ASKED);
  await store.waitForCalls(1);
  heal();
  expect((await answer).kind).toBe('found');
  expect(store.calls()).toBe(2);
});

test("a 503's Retry-After is heeded, as is a 429's", async () => {
  const { store, client } = await openStore();
  store.put({ evaluations: [anEvaluation()] });
  for (const status of [503, 429]) {
    const heal = store.fail(status, { 'retry-after': '1' });
    const startedMs = performance.now();
    const answer = guard(client).evaluation(EVALUATION_ID, ASKED);
    await store.waitForCalls(status === 503 ? 1 : 3);
    heal();
    expect((await answer).kind).toBe('found');
    expect(performance.now() - startedMs).toBeGreaterThanOrEqual(1000);
  }
});

test('a repetition gets no more time than the first try has left', async () => {
  const { store, client } = await openStore({ timeoutMs: 600_000 });
  let calls = 0;
  store.override(/^/, (request) => {
    calls += 1;
    // The first is reset after a while, the second is never answered.
    if (calls === 1) setTimeout(() => request.socket.resetAndDestroy(), 300);
  });
  const startedMs = performance.now();
  const failure = await failureOf(guard(client, { timeoutMs: 1000 }).evaluation(EVALUATION_ID, ASKED));
  expect([failure.kind, calls]).toEqual(['timeout', 2]);
  expect(performance.now() - startedMs).toBeLessThan(3000);
});

test('the store never has more calls at once than are allowed, however many are made', async () => {
  const { store, client } = await openStore({ maxConnections: 100 });
  let [inFlight, most] = [0, 0];
  store.override(/^/, (_, response) => {
    inFlight += 1;
    most = Math.max(most, inFlight);
    setTimeout(() => {
      inFlight -= 1;
      response.writeHead(404, { 'content-type': 'application/json' }).end('{"code":"NOT_FOUND","message":""}');
    }, 5);
  });
  const guarded = guard(client);
  const answers = await Promise.all(Array.from({ length: 100 }, () => guarded.evaluation(EVALUATION_ID, ASKED)));
  expect([most, answers.every(({ kind }) => kind === 'absent')]).toEqual([4, true]);
});

test.each(['an HTML page', 'closed without an answer', 'broken gzip'] as const)(
  'a store that answers with %s is left alone after ten calls',
  async (evil) => {
    const { client } = await openEvilStore(evil);
    const guarded = guard(client, { retryPercent: 0 });
    for (let calls = 0; calls < 10; calls += 1) await failureOf(guarded.evaluation(EVALUATION_ID, ASKED));
    expect((await failureOf(guarded.evaluation(EVALUATION_ID, ASKED))).kind).toBe('suspended');
  },
);

test('where nobody listens, calls fail as unreachable and then are held back', async () => {
  const { client, calls } = openClient({ baseUrl: 'http://127.0.0.1:1' });
  onTestFinished(() => client.close());
  const guarded = guard(client, { retryPercent: 0 });
  const kinds: string[] = [];
  for (let tries = 0; tries < 12; tries += 1) {
    kinds.push((await failureOf(guarded.evaluation(EVALUATION_ID, ASKED))).kind);
  }
  expect(kinds).toEqual([...Array.from({ length: 10 }, () => 'unreachable'), 'suspended', 'suspended']);
  expect(calls).toHaveLength(10);
});
