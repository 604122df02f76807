/** A store that fails too often is left alone, but for one probe a second, until a probe is answered. */
import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import type { Reply } from '../../support/gateway.ts';
import { sendError } from '../../support/store-server.ts';
import { linesOf, putCalls, startUpstreamGateway, type UpstreamGateway } from '../../support/upstream-settings.ts';

const FAILING = '{"error":{"message":"The evaluation store is failing at the moment. Try again later."}}';
const HELD_BACK = 'the call was held back: too many of the last ones failed';

const start = (upstream: object = {}, store = {}): Promise<UpstreamGateway> =>
  startUpstreamGateway({ breakerPercent: 50, ...upstream }, store);

let lastId = 0;
/** A call that was never asked for before. */
function readNew(gateway: UpstreamGateway): Promise<Reply> {
  lastId += 1;
  return gateway.read(`new_${lastId}`);
}

/** So many reads, and how many of them reached the store. */
async function readMany(gateway: UpstreamGateway, count: number): Promise<number> {
  const before = gateway.store.calls();
  for (let reads = 0; reads < count; reads += 1) await readNew(gateway);
  return gateway.store.calls() - before;
}

/** A gateway whose store has failed ten times in a row, and still fails. */
async function startOpen(): Promise<UpstreamGateway & { readonly mend: () => void }> {
  const gateway = await start();
  const mend = gateway.store.fail(503);
  expect(await readMany(gateway, 10)).toBe(10);
  return Object.assign(gateway, { mend });
}

async function isOpen(gateway: UpstreamGateway): Promise<boolean> {
  return (await gateway.metric('evalgate_store_breaker_open')) === 1;
}

describe('when it opens', () => {
  test('once ten calls have failed, the eleventh is a 500 at once, with one line in the log', async () => {
    const gateway = await startOpen();
    const refused = await readNew(gateway);
    expect([refused.status, refused.text, refused.headers['retry-after']]).toEqual([500, FAILING, '1']);
    expect(await gateway.failureOf(refused)).toBe(HELD_BACK);
    expect(await readMany(gateway, 20)).toBe(0);
    expect(
      linesOf(gateway).filter(({ msg }) => msg.startsWith('the store is failing: the circuit is open')),
    ).toHaveLength(1);
    const refusals = await gateway.metric('evalgate_store_calls_refused_total{reason="store-failing"}');
    expect([refusals, await isOpen(gateway)]).toEqual([21, true]);
    const ready = await gateway.admin('GET', '/readyz');
    expect([ready.status, ready.text]).toEqual([
      200,
      expect.stringContaining('the circuit is open: one probe per second'),
    ]);
  });

  test('once more than half of the last 80 calls have failed', async () => {
    const gateway = await start();
    expect(await readMany(gateway, 100)).toBe(100);
    gateway.store.fail(500);
    expect(await readMany(gateway, 40)).toBe(40);
    expect(await isOpen(gateway)).toBe(false);
    expect(await readMany(gateway, 5)).toBe(1);
  });

  test('failures of more than 10 s ago do not count', async () => {
    const gateway = await start();
    await readMany(gateway, 70);
    gateway.store.fail(500);
    expect(await readMany(gateway, 9)).toBe(9);
    gateway.clock.advance(10_000);
    expect(await readMany(gateway, 12)).toBe(10);
  });

  test.each([
    ['html', 10],
    ['close', 10],
    ['broken-gzip', 10],
    ['no-answer', 10],
    ['wrong-id', 20],
    ['redirect', 20],
  ] as const)('%s: of twenty reads %i reach the store', async (misbehave, expected) => {
    const gateway = await start({ timeout: misbehave === 'no-answer' ? '50ms' : '10s' });
    for (const id of putCalls(gateway, 20)) gateway.store.evaluations.set(id, { _id: id });
    gateway.store.evaluations.make = (id) => ({ _id: id });
    gateway.store.setFaults({ misbehave });
    expect(await readMany(gateway, 20)).toBe(expected);
  });

  test.each([
    [429, 10],
    [500, 10],
    [401, 20],
    [404, 20],
  ])('status %i: of twenty reads %i reach the store', async (status, expected) => {
    const gateway = await start();
    gateway.store.fail(status);
    expect(await readMany(gateway, 20)).toBe(expected);
  });

  test.each([
    [null, 30],
    [100, 30],
  ])('with upstream.breakerPercent %s it does not while a few calls succeed', async (breakerPercent, expected) => {
    const gateway = await start({ breakerPercent });
    await readNew(gateway);
    gateway.store.fail(500);
    expect(await readMany(gateway, 30)).toBe(expected);
  });

  test('calls that wait are refused at once', async () => {
    const gateway = await start({ maxConnections: 10, reservePercent: 0, maxQueue: 20, queueTimeout: '60s' });
    gateway.store.fail(503);
    const gate = gateway.store.hold();
    const replies = Array.from({ length: 25 }, () => readNew(gateway));
    await gateway.store.waitForCalls(10);
    gate.release();
    const failures = await Promise.all((await Promise.all(replies)).map((reply) => gateway.failureOf(reply)));
    const sent = gateway.store.calls();
    expect(failures.filter((failure) => failure === HELD_BACK)).toHaveLength(25 - sent);
    // Nine failures let the next calls go, the tenth none.
    expect(sent).toBeLessThan(20);
  });
});

describe('while it is open', () => {
  test('C2: copies are served, past their stale time too', async () => {
    const gateway = await start();
    const [id = ''] = putCalls(gateway, 1);
    const first = await gateway.read(id);
    gateway.clock.advance(2 * 3_600_000);
    gateway.store.fail(503);
    await readMany(gateway, 10);
    const before = gateway.store.calls();
    const kept = await gateway.read(id);
    expect([kept.status, kept.text, gateway.store.calls()]).toEqual([200, first.text, before]);
    expect(kept.headers['cache-status']).toMatch(/detail=stale-if-error$/);
  });

  test('one probe a second goes to the store', async () => {
    const gateway = await startOpen();
    for (let second = 0; second < 4; second += 1) {
      gateway.clock.advance(999);
      expect(await readMany(gateway, 3)).toBe(0);
      gateway.clock.advance(1);
      expect(await readMany(gateway, 3)).toBe(1);
    }
  });

  test('only one probe at a time, until it has given no answer for 3 s', async () => {
    const gateway = await startOpen();
    gateway.mend();
    gateway.clock.advance(1000);
    const gate = gateway.store.hold();
    const probe = readNew(gateway);
    await gateway.store.waitForCalls(11);
    gateway.clock.advance(2999);
    expect(await readMany(gateway, 3)).toBe(0);
    gateway.clock.advance(1);
    const next = readNew(gateway);
    await gateway.store.waitForCalls(12);
    gate.release();
    expect((await Promise.all([probe, next])).map(({ status }) => status)).toEqual([404, 404]);
    expect(await isOpen(gateway)).toBe(false);
  });

  test.each([
    ['2', 2000],
    ['60', 4000],
  ])('a probe that is answered with Retry-After: %s puts the next one off to %i ms', async (retryAfter, delayMs) => {
    const gateway = await startOpen();
    gateway.mend();
    gateway.store.fail(503, { 'retry-after': retryAfter });
    gateway.clock.advance(1000);
    expect(await readMany(gateway, 1)).toBe(1);
    const refused = await readNew(gateway);
    expect(refused.headers['retry-after']).toBe(String(delayMs / 1000));
    gateway.clock.advance(delayMs - 1);
    expect(await readMany(gateway, 1)).toBe(0);
    gateway.clock.advance(1);
    expect(await readMany(gateway, 1)).toBe(1);
  });
});

describe('when it closes', () => {
  test('one probe that is answered ends it, and what failed before is forgotten', async () => {
    const gateway = await startOpen();
    gateway.mend();
    expect(await readMany(gateway, 5)).toBe(0);
    gateway.clock.advance(1000);
    expect(await readMany(gateway, 5)).toBe(5);
    expect(await isOpen(gateway)).toBe(false);
    // Five have been answered since: these would be 14 failures of 19 calls, and are 4 of 9.
    gateway.store.fail(503);
    expect(await readMany(gateway, 4)).toBe(4);
    expect(await isOpen(gateway)).toBe(false);
  });

  test('how calls end that were sent before it opened changes nothing', async () => {
    const gateway = await start({ maxConnections: 50 });
    const responses: ServerResponse[] = [];
    gateway.store.override(/early/, (_request, response) => void responses.push(response));
    const early = Array.from({ length: 12 }, (_, index) => gateway.read(`early_${index}`));
    await gateway.store.waitForCalls(12);
    const mend = gateway.store.fail(503);
    await readMany(gateway, 10);
    mend();
    gateway.clock.advance(1000);
    expect(await readMany(gateway, 1)).toBe(1);
    for (const response of responses) sendError(response, 503, 'LATE');
    expect((await Promise.all(early)).map(({ status }) => status)).toEqual(early.map(() => 500));
    expect([await isOpen(gateway), await readMany(gateway, 5)]).toEqual([false, 5]);
  });
});
