/** C7: how the store is doing, as /readyz and the log say, by the outcome of real calls only. */
import { expect, test, vi } from 'vitest';
import { logOf, readinessOf, samplesOf, START, linesOf } from '../../support/admin.ts';
import { putCalls, startUpstreamGateway, type UpstreamGateway } from '../../support/upstream-settings.ts';

const healthOf = async (gateway: UpstreamGateway) => (await readinessOf(gateway)).of('store');

const ok = (detail: string, since = START) => ({ name: 'store', status: 'ok', since, detail });
const degraded = (detail: string, since = START) => ({ name: 'store', status: 'degraded', since, detail });

test('C7, S2: a store that was not asked is unknown, and one that answered is well, whatever the answer', async () => {
  const gateway = await startUpstreamGateway();
  const [id = ''] = putCalls(gateway, 1);
  const up = 'evalgate_dependency_up{dependency="store"}';
  expect(await healthOf(gateway)).toMatchObject({ status: 'unknown', detail: 'never answered: not called yet' });
  expect(await samplesOf(gateway, up)).toEqual({});
  await gateway.read(id);
  expect(await samplesOf(gateway, up)).toEqual({ [up]: 1 });
  expect(await healthOf(gateway)).toEqual(ok('last call was answered: status 200'));
  await gateway.read('none');
  expect(await healthOf(gateway)).toEqual(ok('last call was answered: status 404'));
  gateway.store.evaluations.set('broken', { _id: 'broken' });
  expect((await gateway.read('broken')).status).toBe(500);
  expect(await healthOf(gateway)).toEqual(ok('last call was answered: status 200'));
  gateway.clock.advance(2 * 3_600_000);
  await gateway.read(id);
  expect(await healthOf(gateway)).toEqual(ok('last call was answered: status 304'));
});

test.each([
  [{ status: 503 }, 'refused', 'the store answered with 503 UNAVAILABLE (evaluation)'],
  [{ misbehave: 'not-http' }, 'garbled', 'the answer is not HTTP (HPE_INVALID_CONSTANT)'],
  [{ misbehave: 'no-answer' }, 'timeout', 'the store gave no whole answer within 500 ms'],
  [{ misbehave: 'reset' }, 'unreachable', 'the connection to the store failed before the answer (ECONNRESET)'],
  [
    { status: 401 },
    'refused',
    "the store answered with 401 UNAUTHENTICATED (evaluation): the store does not take the gateway's token",
  ],
  [
    { status: 403 },
    'refused',
    "the store answered with 403 FAULT (evaluation): the store does not take the gateway's token",
  ],
] as const)('after %o it is failing, and the log says why, once', async (faults, outcome, failure) => {
  const gateway = await startUpstreamGateway({ timeout: '500ms' });
  gateway.store.setFaults(faults);
  const reply = await gateway.read('a');
  await gateway.read('b');
  const detail = `never answered; last call failed: ${failure}`;
  expect(await healthOf(gateway)).toEqual(degraded(detail));
  const requestId = reply.headers['x-request-id'];
  expect(linesOf(gateway).filter(({ msg }) => msg === 'the store is failing')).toEqual([
    expect.objectContaining({ level: 'warn', detail, resource: 'evaluation', outcome, requestId }),
  ]);
});

test('it is well again once no call has failed for 5 s, since the first that went well', async () => {
  const gateway = await startUpstreamGateway();
  for (const status of [503, 502]) {
    gateway.store.setFaults({ status });
    await gateway.read(`failing_${status}`);
    gateway.clock.advance(1000);
  }
  gateway.store.setFaults({});
  await gateway.read('a');
  gateway.clock.advance(3999);
  const last = 'the store answered with 502 BAD_GATEWAY (evaluation)';
  expect(await healthOf(gateway)).toEqual(
    degraded(`answers again, for less than 5 s; the last call that failed: ${last}`),
  );
  gateway.clock.advance(1);
  expect(await healthOf(gateway)).toEqual(ok('last call was answered: status 404', '2026-01-15T12:00:02.000Z'));
  expect(logOf(gateway, 'the store is failing')).toHaveLength(1);
  expect(logOf(gateway, 'the store answers again')).toEqual([{ level: 'info', dependency: 'store', lastedMs: 2000 }]);
});

/** Makes so many calls in 30 s, each of which fails if `fails` says so; returns what the store was taken for meanwhile. */
async function callFor30s(gateway: UpstreamGateway, calls: number, fails: (index: number) => boolean) {
  const seen = new Set<string>();
  for (let index = 0; index < calls; index += 1) {
    gateway.store.setFaults(fails(index) ? { status: 500 } : {});
    await gateway.read(`${gateway.clock.nowMs()}_${index}`);
    const { status = '' } = (await healthOf(gateway)) ?? {};
    seen.add(`${status}${(await isDown(gateway)) ? ', down' : ''}`);
    gateway.clock.advance(30_000 / calls);
  }
  return [...seen];
}

const twoOfFive = (index: number): boolean => index % 5 > 2;

/** For the alert EvalgateStoreDown. */
const isDown = async (gateway: UpstreamGateway) => (await gateway.metric('evalgate_store_down')) === 1;

test('a store whose last call failed, and only few before, says why it is well', async () => {
  const gateway = await startUpstreamGateway();
  await gateway.read('a');
  gateway.store.setFaults({ status: 503 });
  await gateway.read('b');
  const failure = 'last call failed: the store answered with 503 UNAVAILABLE (evaluation)';
  expect(await healthOf(gateway)).toEqual(ok(`not degraded, since too few calls have failed; ${failure}`));
});

test('a store of whose calls 4 % fail is well, and its line says how many do', async () => {
  const gateway = await startUpstreamGateway();
  expect(await callFor30s(gateway, 100, (index) => index % 25 === 13)).toEqual(['ok']);
  expect(await healthOf(gateway)).toMatchObject(
    named('last call was answered: status 404; 4 of 96 calls of the last 30 s failed'),
  );
  expect(linesOf(gateway).filter(({ dependency }) => dependency === 'store')).toEqual([]);
});

test('a store of whose calls 40 % fail is degraded once there were 20, and not down', async () => {
  const gateway = await startUpstreamGateway();
  expect(await callFor30s(gateway, 15, twoOfFive)).toEqual(['ok']);
  expect(await callFor30s(gateway, 100, twoOfFive)).toEqual(['ok', 'degraded']);
  expect(await callFor30s(gateway, 100, twoOfFive)).toEqual(['degraded']);
  const { detail } = (await healthOf(gateway)) ?? {};
  const failure = 'the store answered with 500 INTERNAL (evaluation)';
  expect(detail).toMatch(/^\d+ of \d+ calls of the last 30 s failed; (?:last call failed|the last call that failed): /);
  expect(detail).toContain(failure);
  expect(logOf(gateway, 'the store is failing')).toHaveLength(1);
});

test('upstream.degradedPercent says which share of calls may fail', async () => {
  const gateway = await startUpstreamGateway({ degradedPercent: 50 });
  expect(await callFor30s(gateway, 100, twoOfFive)).toEqual(['ok']);
});

test('a store without a successful call for 30 s is down, whoever calls how seldom, until one succeeds', async () => {
  const gateway = await startUpstreamGateway();
  await gateway.read('a');
  gateway.store.setFaults({ status: 503 });
  gateway.clock.advance(60_000);
  await gateway.read('b');
  await gateway.read('c');
  // A call in a quiet hour may fail by accident.
  expect([await healthOf(gateway), await isDown(gateway)]).toMatchObject([{ status: 'ok' }, false]);
  await gateway.read('d');
  const detail =
    'no call has succeeded for 30 s; last call failed: the store answered with 503 UNAVAILABLE (evaluation)';
  const since = '2026-01-15T12:01:00.000Z';
  expect([await healthOf(gateway), await isDown(gateway)]).toEqual([degraded(detail, since), true]);
  gateway.clock.advance(3_600_000);
  expect([await healthOf(gateway), await isDown(gateway)]).toEqual([degraded(detail, since), true]);
  expect(logOf(gateway, 'the store is down: no call succeeds')).toHaveLength(1);
  gateway.store.setFaults({});
  await gateway.read('e');
  expect(await isDown(gateway)).toBe(false);
});

test('three calls in a row that fail make it degraded at once, and down after 30 s', async () => {
  const gateway = await startUpstreamGateway();
  await gateway.read('a');
  gateway.store.setFaults({ status: 503 });
  for (const id of ['b', 'c', 'd']) await gateway.read(id);
  expect([await healthOf(gateway), await isDown(gateway)]).toMatchObject([{ status: 'degraded', since: START }, false]);
  gateway.clock.advance(29_999);
  expect(await isDown(gateway)).toBe(false);
  gateway.clock.advance(1);
  expect([await healthOf(gateway), await isDown(gateway)]).toMatchObject([{ status: 'degraded', since: START }, true]);
});

test('while the circuit of all keys is open it is down', async () => {
  const gateway = await startUpstreamGateway({ breakerPercent: 50 }, { env: { UPSTREAM_URL: 'http://127.0.0.1:1' } });
  for (let reads = 0; reads < 10; reads += 1) await gateway.read(`of_${reads}`);
  expect(await isDown(gateway)).toBe(true);
  expect((await healthOf(gateway))?.detail).toMatch(
    /^the circuit is open: one probe per second; last call failed: .*ECONNREFUSED/,
  );
});

test('the text of a trouble that changes with each call changes twice in four seconds', async () => {
  const gateway = await startUpstreamGateway();
  const texts = new Set<string>();
  for (const status of [500, 501, 502, 503, 504]) {
    gateway.store.setFaults({ status });
    await gateway.read(`at_${status}`);
    texts.add(JSON.stringify(await healthOf(gateway)));
  }
  expect([...texts].map((text) => /with (\d+)/.exec(text)?.[1])).toEqual(['500', '501', '502']);
});

const named = (detail: string) => ({ status: 'ok', detail });

/** Reads so many calls at once; each is answered after that time. */
async function readSlowly(gateway: UpstreamGateway, count: number, tookMs: number): Promise<void> {
  const before = gateway.store.calls();
  const gate = gateway.store.hold();
  const replies = putCalls(gateway, count, `of_${before}`).map((id) => gateway.read(id));
  await gateway.store.waitForCalls(before + count);
  gateway.clock.advance(tookMs);
  gate.release();
  expect((await Promise.all(replies)).map(({ status }) => status)).toEqual(replies.map(() => 200));
}

test('calls that take long are named, and are no trouble by themselves', async () => {
  const gateway = await startUpstreamGateway();
  await readSlowly(gateway, 3, 4200);
  expect(await healthOf(gateway)).toMatchObject(named('last call was answered: status 200; calls take 4.2 s'));
  expect(await gateway.admin('GET', '/readyz')).toMatchObject({ status: 200, json: { status: 'ready' } });
  await readSlowly(gateway, 3, 1500);
  expect(await healthOf(gateway)).toMatchObject(named('last call was answered: status 200'));
  expect(linesOf(gateway).filter(({ dependency }) => dependency === 'store')).toEqual([]);
});

test('that calls are not sent because too many wait is named, until one gets its turn soon', async () => {
  const gateway = await startUpstreamGateway({ maxConnections: 1, maxQueue: 1, queueTimeout: '50ms' });
  const [a = '', b = '', c = ''] = putCalls(gateway, 3);
  const gate = gateway.store.hold();
  const first = gateway.read(a);
  await gateway.store.waitForCalls(1);
  expect((await gateway.read(b)).status).toBe(500);
  gate.release();
  expect((await first).status).toBe(200);
  const detail = 'last call was answered: status 200; calls wait for their turn so long that some are not sent';
  expect(await healthOf(gateway)).toMatchObject(named(detail));
  await gateway.read(c);
  expect(await healthOf(gateway)).toMatchObject(named('last call was answered: status 200'));
});

test('a long wait for a turn is named with its length', async () => {
  const gateway = await startUpstreamGateway({ maxConnections: 1, queueTimeout: '60s', timeout: '60s' });
  const [a = '', b = ''] = putCalls(gateway, 2);
  const gate = gateway.store.hold();
  const replies = [gateway.read(a)];
  await gateway.store.waitForCalls(1);
  replies.push(gateway.read(b));
  await vi.waitFor(async () => expect(await gateway.metric('evalgate_store_calls_queued')).toBe(1));
  gateway.clock.advance(3000);
  gate.release();
  await Promise.all(replies);
  const detail = 'last call was answered: status 200; calls take 3.0 s; calls wait 3.0 s for their turn';
  expect(await healthOf(gateway)).toMatchObject(named(detail));
});
