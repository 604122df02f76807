/** A key whose calls fail too often is held back, but for one probe a second, until a probe is answered. */
import { randomUUID } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { describe, expect, test, vi } from 'vitest';
import { linesOf } from '../../support/admin.ts';
import type { Reply } from '../../support/gateway.ts';
import { sendError } from '../../support/store-server.ts';
import { errorText, GET_CALL, TEXTS } from './endpoints.ts';
import { putCalls, startUpstreamGateway, type UpstreamGateway } from '../../support/upstream-settings.ts';

const FAILING = errorText(GET_CALL, 500, TEXTS.failing);
const HELD_BACK = 'the call was held back: too many of the last ones of its API key failed';

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

interface Tenant {
  /** The status of a read of a call that was never asked for before. */
  readOne(): Promise<number>;
  read(count: number): Promise<readonly number[]>;
}

async function newTenant(gateway: UpstreamGateway): Promise<Tenant> {
  const key = await gateway.issueKey({ workspaceIds: [randomUUID()], perMinute: 1_000_000, perHour: 1_000_000 });
  const readOne = async (): Promise<number> => {
    lastId += 1;
    return (await gateway.get(`/v2/calls/new_${lastId}`, { key })).status;
  };
  const read = async (count: number): Promise<readonly number[]> => {
    const statuses: number[] = [];
    for (let reads = 0; reads < count; reads += 1) statuses.push(await readOne());
    return statuses;
  };
  return { readOne, read };
}

function times(count: number, status: number): readonly number[] {
  return Array<number>(count).fill(status);
}

/** A gateway whose store has failed ten times in a row, and still fails. */
async function startOpen(): Promise<UpstreamGateway & { readonly mend: () => void }> {
  const gateway = await start();
  const mend = gateway.store.fail(503);
  expect(await readMany(gateway, 10)).toBe(10);
  return Object.assign(gateway, { mend });
}

async function isOpen(gateway: UpstreamGateway): Promise<boolean> {
  return (await gateway.metric('evalgate_store_breaker_open_keys')) === 1;
}

describe('when it opens', () => {
  test('once ten calls have failed, the eleventh is a 500 at once, with one line in the log', async () => {
    const gateway = await startOpen();
    const refused = await readNew(gateway);
    expect([refused.status, refused.text, refused.headers['retry-after']]).toEqual([500, FAILING, '1']);
    expect(await gateway.failureOf(refused)).toBe(HELD_BACK);
    expect(await readMany(gateway, 20)).toBe(0);
    expect(linesOf(gateway).filter(({ msg }) => msg.startsWith('the circuit of an API key is open'))).toEqual([
      expect.objectContaining({ level: 'warn', keyId: gateway.keyId }),
    ]);
    const refusals = await gateway.metric('evalgate_store_calls_refused_total{reason="key-failing"}');
    expect([refusals, await isOpen(gateway)]).toEqual([21, true]);
    expect(await gateway.metric('evalgate_store_breaker_open ')).toBe(0);
    const ready = await gateway.admin('GET', '/readyz');
    expect([ready.status, ready.text]).toEqual([
      200,
      expect.stringContaining(
        'the circuit of one or more API keys is open: one probe per second and key, other keys are served',
      ),
    ]);
  });

  test.each([
    ['Tue, 03 Nov 2026 12:00:30 GMT', '30'],
    ['Tue, 03 Nov 2026 11:59:00 GMT', '1'],
    [' 12 ', '12'],
    ['120', '60'],
    ['999999', '60'],
    ['0', '1'],
    ['Wed, 04 Nov 2026 12:00:00 GMT', '60'],
    ['-1', '5'],
    ['1.5', '5'],
    ['2026-11-03T12:00:30Z', '5'],
    ['Tue, 99 Nov 2026 12:00:30 GMT', '5'],
    ['', '5'],
  ])(
    "S2: the store's Retry-After %j is passed on, as %s, once calls are held back, and not before",
    async (sent, told) => {
      const gateway = await start();
      // Within a second, so that what is left of it is rounded up.
      gateway.clock.advance(Date.UTC(2026, 10, 3, 12, 0, 0, 500) - gateway.clock.nowMs());
      gateway.store.fail(503, { 'retry-after': sent });
      for (let call = 1; call < 10; call += 1) expect((await readNew(gateway)).headers['retry-after']).toBe('5');
      expect((await readNew(gateway)).headers['retry-after']).toBe(told);
      expect((await readNew(gateway)).headers['retry-after']).toBe('1');
    },
  );

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
    ['wrong-id', 10],
    ['redirect', 12],
    ['many-values', 12],
    ['deep-arrays', 12],
    ['endless-body', 12],
  ] as const)('%s: of twelve reads %i reach the store', async (misbehave, expected) => {
    const gateway = await start({ timeout: misbehave === 'no-answer' ? '50ms' : '10s' });
    for (const id of putCalls(gateway, 12)) gateway.store.evaluations.set(id, { _id: id });
    gateway.store.evaluations.make = (id) => ({ _id: id });
    gateway.store.setFaults({ misbehave });
    expect(await readMany(gateway, 12)).toBe(expected);
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

async function isOpenForAll(gateway: UpstreamGateway): Promise<boolean> {
  return (await gateway.metric('evalgate_store_breaker_open ')) === 1;
}

/** The store answers 404 unless it fails. */
describe('the circuit of all', () => {
  test('stays closed while only one key fails, however often and among how few others', async () => {
    const gateway = await start();
    const [attacker, victim] = [await newTenant(gateway), await newTenant(gateway)];
    for (let round = 0; round < 10; round += 1) {
      const mend = gateway.store.fail(500);
      await attacker.read(15);
      mend();
      expect(await victim.read(2)).toEqual([404, 404]);
    }
    expect(await isOpenForAll(gateway)).toBe(false);
  });

  test('stays closed while one key fails and another one fails now and then', async () => {
    const gateway = await start();
    const [attacker, victim] = [await newTenant(gateway), await newTenant(gateway)];
    const mend = gateway.store.fail(500);
    await attacker.read(15);
    expect(await victim.read(4)).toEqual(times(4, 500));
    mend();
    expect(await victim.read(20)).toEqual(times(20, 404));
    expect(await isOpenForAll(gateway)).toBe(false);
  });

  test('opens once the calls of two keys fail, with one line in the log, for every key', async () => {
    const gateway = await start();
    const [a, b, other] = [await newTenant(gateway), await newTenant(gateway), await newTenant(gateway)];
    gateway.store.fail(503);
    await a.read(10);
    expect(await isOpenForAll(gateway)).toBe(false);
    await b.read(10);
    expect(await isOpenForAll(gateway)).toBe(true);
    const before = gateway.store.calls();
    expect([await other.readOne(), gateway.store.calls()]).toEqual([500, before]);
    expect(await gateway.metric('evalgate_store_calls_refused_total{reason="store-failing"}')).toBe(1);
    const opened = 'the store is failing: the circuit is open';
    expect(linesOf(gateway).filter(({ msg }) => msg.startsWith(opened))).toHaveLength(1);
    expect((await gateway.admin('GET', '/readyz')).text).toContain('the circuit is open: one probe per second');
  });

  test('opens while many keys fail a few times each', async () => {
    const gateway = await start();
    gateway.store.fail(503);
    for (let keys = 0; keys < 11; keys += 1) await (await newTenant(gateway)).readOne();
    expect(await isOpenForAll(gateway)).toBe(true);
    expect(await gateway.metric('evalgate_store_breaker_open_keys')).toBe(0);
  });

  test('opens by the failures of one key if nothing listens at the store', async () => {
    const gateway = await start({}, { env: { UPSTREAM_URL: 'http://127.0.0.1:1' } });
    for (let reads = 0; reads < 10; reads += 1) await readNew(gateway);
    expect(await isOpenForAll(gateway)).toBe(true);
    expect(await gateway.failureOf(await readNew(gateway))).toBe(
      'the call was held back: too many of the last ones failed',
    );
  });

  test('opens by background refreshes, whoever they are for', async () => {
    const gateway = await start();
    const ids = putCalls(gateway, 10);
    for (const id of ids) await gateway.read(id);
    gateway.clock.advance(10 * 60_000);
    gateway.store.fail(500);
    for (const id of ids) {
      const before = gateway.store.calls();
      expect((await gateway.read(id)).status).toBe(200);
      await gateway.store.waitForCalls(before + 1);
    }
    await vi.waitFor(async () => expect(await gateway.metric('evalgate_store_breaker_open ')).toBe(1));
    expect(await gateway.metric('evalgate_store_breaker_open_keys')).toBe(0);
  });

  test('a key whose probes fail leaves every other turn to the others', async () => {
    const gateway = await start();
    const [attacker, b, victim] = [await newTenant(gateway), await newTenant(gateway), await newTenant(gateway)];
    const mend = gateway.store.fail(500);
    await attacker.read(10);
    await b.read(10);
    gateway.clock.advance(1000);
    expect(await attacker.readOne()).toBe(500);
    const probed = gateway.store.calls();
    gateway.clock.advance(1000);
    expect([await attacker.readOne(), gateway.store.calls()]).toEqual([500, probed]);
    mend();
    expect([await victim.readOne(), await isOpenForAll(gateway)]).toEqual([404, false]);
  });
});

test('the circuit of a key holds back nothing of another, whose calls have foreign ids too', async () => {
  const gateway = await start();
  const [id = ''] = putCalls(gateway, 1);
  const stranger = await gateway.issueKey({ workspaceIds: [randomUUID()] });
  const end = gateway.store.override(/bad_/, (_request, response) => sendError(response, 500, 'INTERNAL'));
  for (let reads = 0; reads < 15; reads += 1) await gateway.get(`/v2/calls/bad_${reads}`, { key: stranger });
  expect((await gateway.get(`/v2/calls/${id}`, { key: stranger })).status).toBe(500);
  gateway.clock.advance(1000);
  end();
  expect((await gateway.get(`/v2/calls/${id}`, { key: stranger })).status).toBe(404);
  expect((await gateway.read(id)).status).toBe(200);
});
