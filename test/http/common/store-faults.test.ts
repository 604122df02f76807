/** A store that misbehaves in every way the sample knows: a clear 500 or the copy held, the reason in the log, and no more. */
import { describe, expect, test, vi } from 'vitest';
import { forFile, forTest } from '../../support/opened.ts';
import { MISBEHAVIOURS, type Misbehaviour } from '../../../src/sample/faults.ts';
import { startTestGateway } from '../../support/gateway.ts';
import { createStoreServer } from '../../support/store-server.ts';
import { TEXTS } from './endpoints.ts';
import {
  openUpstreamGateway,
  putCalls,
  startUpstreamGateway,
  type UpstreamGateway,
} from '../../support/upstream-settings.ts';

/** Nothing shows whose a record is that cannot be read at all (K7a: a foreign record looks like none). */
const BROKEN = 'the connection to the store failed';
const TOO_DEEP = "the store's evaluation % is nested deeper than 64 levels";

/** The message for the consumer, and the beginning of the private reason in the log. `%` stands for the requested id. */
const FAILURES: Partial<Record<Misbehaviour, readonly [told: string, logged: string]>> = {
  html: [TEXTS.garbled, "the store's answer is markup, not JSON"],
  'empty-body': [TEXTS.garbled, "the store's answer is empty"],
  'cut-off-json': [TEXTS.garbled, "the store's answer is not JSON"],
  'deep-arrays': [TEXTS.malformed, TOO_DEEP],
  'deep-objects': [TEXTS.malformed, TOO_DEEP],
  'deep-insights': [TEXTS.malformed, TOO_DEEP],
  'many-values': [TEXTS.malformed, "the store's evaluation % has more than 250000 values"],
  'many-faults': [TEXTS.malformed, "the store's evaluation % is malformed at people"],
  'broken-gzip': [TEXTS.garbled, 'the body cannot be decoded (Z_DATA_ERROR)'],
  'half-gzip': [TEXTS.garbled, 'the body cannot be decoded (Z_BUF_ERROR)'],
  'unknown-coding': [TEXTS.garbled, 'the body has a content coding that was not asked for'],
  redirect: [TEXTS.failing, 'the store answered with 302 (evaluation)'],
  'redirect-loop': [TEXTS.failing, 'the store answered with 307 (evaluation)'],
  'wrong-id': [TEXTS.garbled, 'the store answered for another id than evaluation % (at _id)'],
  'endless-body': [TEXTS.malformed, "the store's evaluation % is larger than 8000000 bytes"],
  'gzip-bomb': [TEXTS.malformed, "the store's evaluation % is larger than 8000000 bytes"],
  'endless-gzip': [TEXTS.garbled, 'the body has far more bytes than what it holds'],
  'endless-error': [TEXTS.failing, 'the store answered with 503 (evaluation)'],
  'slow-error': [TEXTS.failing, 'the store answered with 503 (evaluation)'],
  reset: [TEXTS.unreachable, `${BROKEN} before the answer (ECONNRESET)`],
  'reset-half-way': [TEXTS.unreachable, `${BROKEN} half-way through the answer`],
  close: [TEXTS.unreachable, `${BROKEN} before the answer (ECONNRESET)`],
  'half-body': [TEXTS.unreachable, `${BROKEN} half-way through the answer`],
  'half-chunked': [TEXTS.unreachable, `${BROKEN} half-way through the answer`],
  'bad-header': [TEXTS.garbled, 'the answer is not HTTP (HPE_INVALID_HEADER_TOKEN)'],
  'not-http': [TEXTS.garbled, 'the answer is not HTTP (HPE_INVALID_CONSTANT)'],
  'endless-headers': [TEXTS.garbled, 'the answer is not HTTP (HPE_HEADER_OVERFLOW)'],
  'endless-interim': [TEXTS.garbled, 'the store sent more than 16 interim responses'],
};
/** These go on until the deadline ends them. */
const LATE: readonly Misbehaviour[] = ['no-answer', 'hang', 'slow-headers', 'slow-body'];
/** These do no harm to the read. */
const HARMLESS: readonly Misbehaviour[] = ['two-answers', 'late-second-answer', 'wrong-workspace'];

test('every way of the sample to misbehave is tried here', () => {
  expect([...Object.keys(FAILURES), ...LATE, ...HARMLESS].toSorted()).toEqual(MISBEHAVIOURS.toSorted());
});

const PAST_STALE_MS = 2 * 3_600_000;

/** A read without a copy, a read with one, and a read after the store is well again. */
async function expectBorne(
  gateway: UpstreamGateway,
  way: Misbehaviour,
  { told, logged }: { readonly told: string; readonly logged: string },
): Promise<void> {
  const [held = '', cold = '', after = ''] = putCalls(gateway, 3, way);
  const copy = await gateway.read(held);
  gateway.clock.advance(PAST_STALE_MS);
  const before = gateway.store.calls();
  const mend = gateway.store.setFaults({ misbehave: way });
  const failed = await gateway.read(cold);
  const kept = await gateway.read(held);
  mend();
  expect([failed.status, failed.json]).toEqual([500, { error: { message: told } }]);
  expect(await gateway.failureOf(failed)).toContain(logged.replace('%', cold));
  expect([kept.status, kept.text]).toEqual([200, copy.text]);
  expect(kept.headers['cache-status']).toMatch(/; detail=stale-if-error$/);
  expect(gateway.store.calls() - before, 'neither repeated nor followed').toBe(2);
  expect((await gateway.read(after)).status).toBe(200);
}

const patient = await forFile(openUpstreamGateway());
const impatient = await forFile(openUpstreamGateway({ timeout: '500ms' }));

describe('a store that answers', () => {
  test.each(Object.entries(FAILURES))('S1, S2, C2: %s is a 500, or the copy that is held', async (way, expected) => {
    const known = MISBEHAVIOURS.find((name) => name === way) ?? 'html';
    await expectBorne(patient, known, { told: expected?.[0] ?? '', logged: expected?.[1] ?? '' });
  });

  test.each(LATE)('S2: %s is ended by upstream.timeout, which holds for the whole answer', async (way) => {
    await expectBorne(impatient, way, { told: TEXTS.timeout, logged: 'the store gave no whole answer within 500 ms' });
  });

  test('K2: nothing of all that put the token or the address of the store into the log', () => {
    for (const { logLines, store } of [patient, impatient]) {
      const lines = logLines.join('');
      expect(lines).toContain('"failure"');
      const secrets = [store.token, new URL(store.url).host, '/internal/v1'];
      expect(secrets.filter((text) => lines.includes(text))).toEqual([]);
    }
  });
});

describe('C4: an answer that nobody asked for is never served', () => {
  test.each(['two-answers', 'late-second-answer'] as const)('%s', async (way) => {
    const gateway = await startUpstreamGateway({ maxConnections: 1 });
    gateway.store.setFaults({ misbehave: way });
    for (const id of putCalls(gateway, 3)) {
      expect((await gateway.read(id)).json).toMatchObject({ call: { id } });
      // Whenever the other one comes, it costs the connection, so the next call cannot meet it.
      await vi.waitFor(() => expect(gateway.store.openConnections).toBe(0));
    }
  });

  test('the record of another workspace: a 404 for the call, a 500 for a list', async () => {
    const gateway = await startUpstreamGateway();
    const [id = ''] = putCalls(gateway, 1);
    gateway.store.setFaults({ misbehave: 'wrong-workspace' });
    expect((await gateway.read(id)).status).toBe(404);
    const list = await gateway.get('/v2/calls', { key: await gateway.issueKey() });
    expect([list.status, list.text.includes('someone_elses')]).toEqual([500, false]);
  });
});

test('a record with a hundred thousand faults is left out of a list', async () => {
  const gateway = await startUpstreamGateway();
  putCalls(gateway, 1);
  gateway.store.setFaults({ misbehave: 'many-faults' });
  const list = await gateway.get('/v2/calls', { key: await gateway.issueKey() });
  expect([list.status, list.json]).toMatchObject([200, { calls: [], pagination: { total_count: 1 } }]);
  expect(gateway.logLines.join('')).toMatch(/"resource":"list","id":"call_0","path":"people"/);
});

test.each([
  'endless-body',
  'gzip-bomb',
  'endless-gzip',
  'endless-error',
  'endless-headers',
  'endless-interim',
] as const)('the connection that carries %s is closed', async (way) => {
  const gateway = await startUpstreamGateway();
  gateway.store.setFaults({ misbehave: way });
  expect((await gateway.read('ev_1')).status).toBe(500);
  await vi.waitFor(() => expect(gateway.store.openConnections).toBe(0));
  expect(gateway.store.connections).toBe(1);
});

test('the body of an error is not waited for longer than a second: its status says enough', async () => {
  const gateway = await startUpstreamGateway({ timeout: '60s' });
  gateway.store.setFaults({ misbehave: 'slow-error' });
  const reply = await gateway.read('ev_1');
  expect([reply.status, reply.headers['retry-after']]).toEqual([500, '5']);
});

test('a gateway that stops ends the calls that nobody waits for, and closes every connection', async () => {
  const store = await forTest(createStoreServer());
  const gateway = await startTestGateway({ store });
  const key = await gateway.issueKey();
  const [id = ''] = putCalls(gateway, 1);
  await gateway.get(`/v2/calls/${id}`, { key });
  gateway.clock.advance(10 * 60_000);
  store.setFaults({ misbehave: 'no-answer' });
  const stale = await gateway.get(`/v2/calls/${id}`, { key });
  expect(stale.headers['cache-status']).toMatch(/detail=stale-while-revalidate$/);
  await store.waitForCalls(2);
  await gateway.close();
  await vi.waitFor(() => expect(store.openConnections).toBe(0));
});
